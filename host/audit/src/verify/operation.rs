//! Folds the operation streams: webhook subscriptions and bulk operations.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Problem;
use super::rows::{Expected, ExpectedRow, Table, time};
use crate::record::rows::TableRows;
use crate::record::{ITEMS_KEPT, Snapshot};
use wrkflw_core::audit::Entry;
use wrkflw_core::ids::TenantId;
use wrkflw_core::json::Json;

static SUBSCRIPTION: Table = Table {
    name: "subscription",
    code: "subscription",
    key: &["id"],
    hidden: &[],
};
static OPERATION: Table = Table {
    name: "bulk_operation",
    code: "operation",
    key: &["id"],
    hidden: &[],
};
static ITEMS: Table = Table {
    name: "bulk_item",
    code: "operation",
    key: &["operation_id"],
    hidden: &["instance_id"],
};

/// How far a host's clock may be ahead of the database's. The host's clock gives the time of an operation; the database's
/// decides when its items are deleted.
const CLOCKS_APART: Duration = Duration::from_hours(24);

#[derive(Deserialize)]
struct Created {
    subscription: Uuid,
    url: String,
    types: Vec<String>,
    definition: Option<String>,
}

#[derive(Deserialize)]
struct Deleted {
    subscription: Uuid,
}

/// The payload of a new operation's entry. The first releases recorded fewer members.
#[derive(Deserialize)]
struct NewOperationPayload {
    action: String,
    settings: Value,
    total: u32,
    roles: Option<Vec<String>>,
    more: Option<bool>,
    instances: Option<String>,
}

/// The fold of one operation stream.
pub(super) struct Operation {
    tenant: TenantId,
    /// The id of a bulk operation; nil for the tenant's own stream.
    id: Uuid,
    subscriptions: BTreeMap<Uuid, ExpectedRow>,
    begun: Option<ExpectedRow>,
    /// The digest of its instances' ids.
    items: Option<String>,
}

impl Operation {
    pub(super) fn new(tenant: TenantId, id: Uuid) -> Operation {
        Operation {
            tenant,
            id,
            subscriptions: BTreeMap::new(),
            begun: None,
            items: None,
        }
    }

    /// Folds the next entry.
    pub(super) fn take(&mut self, entry: &Entry, problems: &mut Vec<Problem>) {
        if let Err(error) = self.fold(entry) {
            let detail = format!("its payload cannot be read: {error}");
            problems.push(Problem::new(Some(entry.seq), "payload", detail));
        }
    }

    fn fold(&mut self, entry: &Entry) -> Result<(), serde_json::Error> {
        let (draft, tenant) = (&entry.draft, json!(self.tenant));
        let payload = draft.payload.as_str();
        match draft.kind.as_str() {
            "SUBSCRIPTION_CREATED" => {
                let created: Created = serde_json::from_str(payload)?;
                let row = vec![
                    ("tenant_id", tenant),
                    ("id", json!(created.subscription)),
                    ("url", json!(created.url)),
                    ("types", json!(created.types)),
                    ("definition_key", json!(created.definition)),
                    ("created_at", time(draft.at)),
                    ("created_by", json!(draft.actor)),
                ];
                self.subscriptions.insert(created.subscription, row);
            }
            "SUBSCRIPTION_DELETED" => {
                let deleted: Deleted = serde_json::from_str(payload)?;
                self.subscriptions.remove(&deleted.subscription);
            }
            "OPERATION_BEGUN" => {
                let begun: NewOperationPayload = serde_json::from_str(payload)?;
                let mut row = vec![
                    ("tenant_id", tenant),
                    ("id", json!(self.id)),
                    ("action", json!(begun.action)),
                    ("settings", json!(Json::of(&begun.settings).as_str())),
                    ("requested_by", json!(draft.actor)),
                    ("created_at", time(draft.at)),
                    ("total", json!(begun.total)),
                    ("stopped_by", Value::Null),
                ];
                let roles = begun.roles.map(|roles| json!(Json::of(&roles).as_str()));
                row.extend(roles.map(|roles| ("roles", roles)));
                row.extend(begun.more.map(|more| ("more", json!(more))));
                self.begun = Some(row);
                self.items = begun.instances;
            }
            "OPERATION_STOPPED" => {
                if let Some(row) = &mut self.begun {
                    row.retain(|(column, _)| *column != "stopped_by");
                    row.push(("stopped_by", json!(draft.actor)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares it with the stored rows.
    pub(super) async fn compare<S: Snapshot>(
        self,
        snapshot: &mut S,
        problems: &mut Vec<Problem>,
    ) -> Result<(), S::Error> {
        if self.id.is_nil() {
            let mut expected = Expected::new(&SUBSCRIPTION);
            self.subscriptions
                .into_values()
                .for_each(|row| expected.add(row));
            expected.compare_all(&snapshot.table(TableRows::Subscriptions).await?, problems);
            return Ok(());
        }
        let kept = ITEMS_KEPT.saturating_sub(CLOCKS_APART);
        let stored = snapshot
            .table(TableRows::Operation { id: self.id, kept })
            .await?;
        if let (Some(items), [row]) = (self.items, &stored[..])
            && row.get("instances").is_some_and(|digest| !digest.is_null())
        {
            let (id, mut expected) = (json!(self.id), Expected::new(&ITEMS));
            expected.add(vec![
                ("operation_id", id.clone()),
                ("instance_id", json!(items)),
            ]);
            let instances = row.get("instances").cloned().unwrap_or_default();
            let row = [("operation_id", id), ("instance_id", instances)];
            let row = row
                .into_iter()
                .map(|(column, value)| (column.to_owned(), value));
            expected.compare_all(&[row.collect()], problems);
        }
        let mut expected = Expected::new(&OPERATION);
        self.begun.into_iter().for_each(|row| expected.add(row));
        expected.compare_all(&stored, problems);
        Ok(())
    }
}
