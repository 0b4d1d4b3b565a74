//! Attributes as rows: one value column each.

use super::Rows;
use crate::domain::answer::AttributeValue;
use crate::domain::instance::Instance;
use crate::store::time::Time;

impl Rows {
    pub(super) fn attributes(&mut self, member: i32, before: Option<&Instance>, after: &Instance) {
        let old = before
            .map(|before| before.attributes.clone())
            .unwrap_or_default();
        for name in old
            .keys()
            .filter(|name| !after.attributes.contains_key(*name))
        {
            self.unattributed.member.push(member);
            self.unattributed.name.push(name.clone());
        }
        for (name, value) in after
            .attributes
            .iter()
            .filter(|(name, value)| old.get(*name) != Some(*value))
        {
            self.attribute(member, name, value);
        }
    }

    fn attribute(&mut self, member: i32, name: &str, value: &AttributeValue) {
        let rows = &mut self.attributed;
        rows.member.push(member);
        rows.name.push(name.to_owned());
        let (mut text, mut boolean, mut decimal, mut float, mut timestamp, mut bytes) =
            (None, None, None, None, None, None);
        rows.kind.push(
            match value {
                AttributeValue::Text(value) => {
                    text = Some(value.clone());
                    "text"
                }
                AttributeValue::Boolean(value) => {
                    boolean = Some(*value);
                    "boolean"
                }
                AttributeValue::Decimal(value) => {
                    decimal = Some(value.clone());
                    "decimal"
                }
                AttributeValue::Float(value) => {
                    float = Some(*value);
                    "float"
                }
                AttributeValue::Timestamp(value) => {
                    timestamp = Some(Time(*value));
                    "timestamp"
                }
                AttributeValue::Bytes(value) => {
                    bytes = Some(value.clone());
                    "bytes"
                }
            }
            .to_owned(),
        );
        rows.text.push(text);
        rows.boolean.push(boolean);
        rows.decimal.push(decimal);
        rows.float.push(float);
        rows.timestamp.push(timestamp);
        rows.bytes.push(bytes);
    }
}
