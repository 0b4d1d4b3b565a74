//! Search attributes: the declarations, the instances that meet conditions, and the values for a page of instances.
//!
//! [`super::instances`] decides which instances a search returns. This module only narrows the choice.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::pool::Limited;
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::graph::AttributeType;
use wrkflw_core::ids::{TenantId, hex};
use wrkflw_core::search::{Bound, Condition, Operator};

/// Maximum declarations that are read at once: more than a request names.
const DECLARATIONS_MAX: i64 = 200;

/// An attribute that some version of a definition declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub kind: AttributeType,
}

/// The attributes that a definition declares, or any definition of the tenant; with `names`, only these. A name
/// occurs once for each type that it is declared with.
pub async fn declared(
    reader: &Reader,
    tenant: TenantId,
    definition: Option<&str>,
    names: Option<&[String]>,
) -> Result<Vec<Declared>, StoreError> {
    let rows = sqlx::query!(
        "select distinct name, type from attribute_declaration
        where tenant_id = $1 and ($2::text is null or definition_key = $2) and ($3::text[] is null or name = any($3))
        order by name, type limit $4",
        tenant.0,
        definition,
        names as _,
        DECLARATIONS_MAX
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let declared = rows.into_iter().map(|row| {
        let kind = AttributeType::named(&row.r#type).ok_or_else(|| {
            let detail = format!("the type {}", row.r#type);
            StoreError::inconsistent("attribute_declaration", &row.name, detail)
        })?;
        Ok(Declared {
            name: row.name,
            kind,
        })
    });
    declared.collect()
}

/// The attributes of these instances.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    instances: &[Uuid],
) -> Result<BTreeMap<Uuid, BTreeMap<String, AttributeValue>>, StoreError> {
    let rows = sqlx::query!(
        r#"select instance_id, name, text_value, boolean_value, decimal_value::text as decimal_value, float_value,
            timestamp_value as "timestamp_value: Time", bytes_value
        from attribute where tenant_id = $1 and instance_id = any($2)"#,
        viewer.tenant.0,
        instances
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for row in rows {
        let value = row
            .text_value
            .map(AttributeValue::Text)
            .or(row.boolean_value.map(AttributeValue::Boolean))
            .or(row.decimal_value.map(AttributeValue::Decimal))
            .or(row.float_value.map(AttributeValue::Float))
            .or(row
                .timestamp_value
                .map(|time| AttributeValue::Timestamp(time.0)))
            .or(row.bytes_value.map(AttributeValue::Bytes))
            .ok_or_else(|| StoreError::inconsistent("attribute", row.instance_id, "no value"))?;
        found
            .entry(row.instance_id)
            .or_default()
            .insert(row.name, value);
    }
    Ok(found)
}

/// Conditions as parallel arrays, with one element for each condition.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) kinds: Vec<String>,
    pub(super) operators: Vec<String>,
    pub(super) bounds: Vec<String>,
}

impl Columns {
    pub(super) fn of<'a>(conditions: impl IntoIterator<Item = &'a Condition>) -> Columns {
        let mut columns = Columns::default();
        for condition in conditions {
            columns.names.push(condition.attribute.clone());
            columns.kinds.push(condition.kind.name().to_owned());
            columns.operators.push(condition.operator.name().to_owned());
            columns.bounds.push(bound(condition));
        }
        columns
    }
}

/// The bounds as PostgreSQL reads them: an array for `in`, else the single bound.
fn bound(condition: &Condition) -> String {
    let plain = |bound: &Bound| match bound {
        Bound::Plain(text) => text.clone(),
        Bound::Bytes(bytes) => format!("\\x{}", hex(bytes)),
    };
    let mut bounds = condition.bounds.iter().map(plain);
    if condition.operator != Operator::In {
        return bounds.next().unwrap_or_default();
    }
    let quoted: Vec<_> = bounds
        .map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        .collect();
    format!("{{{}}}", quoted.join(","))
}

/// The conditions on one attribute, for one index scan. Two of them may form a range.
pub(super) struct Probe<'a> {
    name: &'a str,
    kind: &'static str,
    columns: Columns,
}

impl Probe<'_> {
    /// A probe for each attribute that instances must have.
    pub(super) fn all(conditions: &[Condition]) -> Vec<Probe<'_>> {
        let mut by_attribute: BTreeMap<(&str, &'static str), Vec<&Condition>> = BTreeMap::new();
        for condition in conditions {
            // The index does not have instances that lack the attribute.
            if condition.operator != Operator::Absent {
                let key = (condition.attribute.as_str(), condition.kind.name());
                by_attribute.entry(key).or_default().push(condition);
            }
        }
        let probe = |((name, kind), conditions)| Probe {
            name,
            kind,
            columns: Columns::of(conditions),
        };
        by_attribute.into_iter().map(probe).collect()
    }

    /// Whether the index returns the matches in the order of the instances' ids.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(&self.columns.operators[..], [one] if one == "eq" || one == "in")
    }

    /// Whether the scan is limited to a part of the instances that have the attribute.
    pub(super) fn is_range(&self) -> bool {
        let broad = |operator: &String| operator == "ne" || operator == "exists";
        !self.columns.operators.iter().all(broad)
    }

    /// All instances that may match, sorted; none if they are more than `most`. No other instance matches.
    pub(super) async fn whole(
        &self,
        connection: &mut Limited,
        most: i32,
    ) -> Result<Option<Vec<Uuid>>, StoreError> {
        let mut found = self.find(connection, None, most).await?;
        if let Some(found) = &mut found {
            found.sort_unstable();
        }
        Ok(found)
    }

    /// The newest instances before this one that may match, newest first.
    pub(super) async fn newest(
        &self,
        connection: &mut Limited,
        before: Uuid,
        most: i32,
    ) -> Result<Vec<Uuid>, StoreError> {
        let found = self.find(connection, Some(before), most).await?;
        Ok(found.unwrap_or_default())
    }

    async fn find(
        &self,
        connection: &mut Limited,
        before: Option<Uuid>,
        most: i32,
    ) -> Result<Option<Vec<Uuid>>, StoreError> {
        let found = sqlx::query_scalar!(
            "select attribute_holders($1, $2, $3, $4, $5, $6)",
            self.name,
            self.kind,
            &self.columns.operators,
            &self.columns.bounds,
            before,
            most
        );
        Ok(found.fetch_one(connection).await?)
    }
}

/// The ids that are in both. `others` must be sorted.
pub(super) fn common(mut ids: Vec<Uuid>, others: &[Uuid]) -> Vec<Uuid> {
    ids.retain(|id| others.binary_search(id).is_ok());
    ids
}
