//! Attributes as rows, with one value column each. The row of a removed attribute has no type.

use super::{Attribute, Of, Rows};
use crate::time::Time;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::instance::Instance;

impl<'a> Rows<'a> {
    pub(super) fn attributes(&mut self, of: Of, before: Option<&'a Instance>, after: &'a Instance) {
        let old = before.map(|before| &before.attributes);
        let gone = old.into_iter().flat_map(|old| old.keys());
        for name in gone.filter(|name| !after.attributes.contains_key(*name)) {
            self.attributes.push(Attribute::of(of, name, None));
        }
        for (name, value) in &after.attributes {
            if old.and_then(|old| old.get(name)) != Some(value) {
                self.attributes.push(Attribute::of(of, name, Some(value)));
            }
        }
    }
}

impl<'a> Attribute<'a> {
    fn of(of: Of, name: &'a str, value: Option<&'a AttributeValue>) -> Attribute<'a> {
        let mut row = Attribute {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            name,
            r#type: None,
            text_value: None,
            boolean_value: None,
            decimal_value: None,
            float_value: None,
            timestamp_value: None,
            bytes_value: None,
        };
        let kind = match value {
            None => return row,
            Some(AttributeValue::Text(value)) => {
                row.text_value = Some(value);
                "text"
            }
            Some(AttributeValue::Boolean(value)) => {
                row.boolean_value = Some(*value);
                "boolean"
            }
            Some(AttributeValue::Decimal(value)) => {
                row.decimal_value = Some(value);
                "decimal"
            }
            Some(AttributeValue::Float(value)) => {
                row.float_value = Some(*value);
                "float"
            }
            Some(AttributeValue::Timestamp(value)) => {
                row.timestamp_value = Some(Time(*value));
                "timestamp"
            }
            Some(AttributeValue::Bytes(value)) => {
                row.bytes_value = Some(value);
                "bytes"
            }
        };
        row.r#type = Some(kind);
        row
    }
}
