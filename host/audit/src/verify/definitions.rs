//! Folds a definition from its stream: the active version, the versions with graphs and components, and the declared
//! attributes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Problem;
use super::rows::{Expected, ExpectedRow, Table, digest, time};
use crate::record::Snapshot;
use crate::record::rows::{RecordedVersion, TableRows};
use wrkflw_core::audit::Entry;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::{TenantId, VersionRef};
use wrkflw_core::json::Json;

static DEFINITION: Table = Table {
    name: "definition",
    code: "definition",
    key: &["key"],
    hidden: &[],
};
pub(super) static VERSION: Table = Table {
    name: "definition_version",
    code: "version",
    key: &["key", "version"],
    hidden: &["config", "config_digest", "graph"],
};
static DECLARATION: Table = Table {
    name: "attribute_declaration",
    code: "declaration",
    key: &["definition_key", "name", "type"],
    hidden: &[],
};
static COMPONENT: Table = Table {
    name: "component",
    code: "component",
    key: &["digest"],
    hidden: &["bytes"],
};

/// The members that all payloads of a definition's entries have.
#[derive(Deserialize)]
struct NamedVersion {
    key: String,
    version: u32,
}

/// The payload of a new version's entry. The first releases did not record the SDK and the contract. Not every version has a note. The
/// config and the graph keep the digits of their numbers.
#[derive(Deserialize)]
struct Published {
    component: String,
    config: Json,
    graph: Box<RawValue>,
    sdk: Option<String>,
    wit: Option<String>,
    note: Option<String>,
}

/// The graph in the payload of a new version's entry, as an export has it.
#[derive(Deserialize)]
struct Drawn {
    graph: Graph,
}

/// The further member of a stopped version's entry.
#[derive(Deserialize)]
struct Stopped {
    reason: String,
}

/// A definition, folded from its entries.
pub(super) struct Definition {
    tenant: TenantId,
    id: Uuid,
    key: Option<String>,
    created: Option<Timestamp>,
    active: Option<u32>,
    revision: u32,
    versions: BTreeMap<u32, ExpectedRow>,
    declared: BTreeSet<(String, String)>,
    components: BTreeSet<String>,
}

impl Definition {
    pub(super) fn new(tenant: TenantId, id: Uuid) -> Definition {
        Definition {
            tenant,
            id,
            key: None,
            created: None,
            active: None,
            revision: 0,
            versions: BTreeMap::new(),
            declared: BTreeSet::new(),
            components: BTreeSet::new(),
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
        let draft = &entry.draft;
        let NamedVersion { key, version } = serde_json::from_str(draft.payload.as_str())?;
        self.created.get_or_insert(draft.at);
        match draft.kind.as_str() {
            "VERSION_PUBLISHED" => self.publish(entry, &key, version)?,
            "VERSION_ACTIVATED" => {
                self.active = Some(version);
                self.revision += 1;
            }
            "VERSION_RETIRED" => {
                self.active = self.active.filter(|active| *active != version);
                self.revision += 1;
                self.set_retired(version, [time(draft.at), json!(draft.actor)]);
            }
            "VERSION_REINSTATED" => {
                self.revision += 1;
                self.set_retired(version, [Value::Null, Value::Null]);
            }
            "VERSION_STOPPED" => self.stop(entry, version)?,
            "VERSION_RESUMED" => {
                self.revision += 1;
                self.set_stopped(version, [Value::Null, Value::Null, Value::Null]);
            }
            _ => {}
        }
        self.key.get_or_insert(key);
        Ok(())
    }

    fn stop(&mut self, entry: &Entry, version: u32) -> Result<(), serde_json::Error> {
        let draft = &entry.draft;
        let Stopped { reason } = serde_json::from_str(draft.payload.as_str())?;
        self.revision += 1;
        self.set_stopped(version, [time(draft.at), json!(draft.actor), json!(reason)]);
        Ok(())
    }

    fn set_retired(&mut self, version: u32, [at, by]: [Value; 2]) {
        if let Some(row) = self.versions.get_mut(&version) {
            row.retain(|(column, _)| !column.starts_with("retired_"));
            row.extend([("retired_at", at), ("retired_by", by)]);
        }
    }

    fn set_stopped(&mut self, version: u32, [at, by, reason]: [Value; 3]) {
        if let Some(row) = self.versions.get_mut(&version) {
            row.retain(|(column, _)| !column.starts_with("stop"));
            row.extend([
                ("stopped_at", at),
                ("stopped_by", by),
                ("stop_reason", reason),
            ]);
        }
    }

    fn publish(&mut self, entry: &Entry, key: &str, version: u32) -> Result<(), serde_json::Error> {
        let draft = &entry.draft;
        let Published {
            component,
            config,
            graph,
            sdk,
            wit,
            note,
        } = serde_json::from_str(draft.payload.as_str())?;
        let mut row = vec![
            ("tenant_id", json!(self.tenant)),
            ("key", json!(key)),
            ("version", json!(version)),
            ("digest", json!(component)),
            ("config", digest(config.as_str())),
            ("config_digest", digest(config.as_str())),
            ("graph", digest(graph.get())),
            ("published_at", time(draft.at)),
            ("published_by", json!(draft.actor)),
            ("note", json!(note)),
            ("retired_at", Value::Null),
            ("retired_by", Value::Null),
            ("stopped_at", Value::Null),
            ("stopped_by", Value::Null),
            ("stop_reason", Value::Null),
        ];
        if let Some(wit) = wit {
            row.extend([("sdk", json!(sdk)), ("wit", json!(wit))]);
        }
        self.versions.insert(version, row);
        self.components.insert(component);
        let graph: Value = serde_json::from_str(graph.get())?;
        let attributes = graph.get("attributes").and_then(Value::as_array);
        for attribute in attributes.into_iter().flatten() {
            let of = |member: &str| attribute.get(member).and_then(Value::as_str);
            if let (Some(name), Some(kind)) = (of("name"), of("kind")) {
                self.declared.insert((name.to_owned(), kind.to_owned()));
            }
        }
        Ok(())
    }

    /// Compares it with the stored rows.
    pub(super) async fn compare<S: Snapshot>(
        self,
        snapshot: &mut S,
        problems: &mut Vec<Problem>,
    ) -> Result<(), S::Error> {
        let Some(key) = self.key else { return Ok(()) };
        let tenant = json!(self.tenant);
        let mut expected = Expected::new(&DEFINITION);
        expected.add(vec![
            ("tenant_id", tenant.clone()),
            ("key", json!(key)),
            ("id", json!(self.id)),
            ("active_version", json!(self.active)),
            ("revision", json!(self.revision)),
            ("created_at", self.created.map_or(Value::Null, time)),
        ]);
        expected.compare_all(
            &snapshot.table(TableRows::Definition(self.id)).await?,
            problems,
        );
        let mut expected = Expected::new(&VERSION);
        self.versions
            .into_values()
            .for_each(|row| expected.add(row));
        expected.compare_all(&snapshot.table(TableRows::Versions(&key)).await?, problems);
        let mut expected = Expected::new(&DECLARATION);
        for (name, kind) in self.declared {
            expected.add(vec![
                ("tenant_id", tenant.clone()),
                ("definition_key", json!(key)),
                ("name", json!(name)),
                ("type", json!(kind)),
            ]);
        }
        expected.compare_all(
            &snapshot.table(TableRows::Declarations(&key)).await?,
            problems,
        );
        let (mut expected, digests) = (Expected::new(&COMPONENT), Vec::from_iter(self.components));
        for digest in &digests {
            expected.add(vec![("digest", json!(digest)), ("bytes", json!(digest))]);
        }
        expected.compare_all(
            &snapshot.table(TableRows::Components(&digests)).await?,
            problems,
        );
        Ok(())
    }
}

/// The columns that an export has of a version.
pub(super) fn exported(version: &RecordedVersion) -> ExpectedRow {
    let VersionRef {
        key,
        version: number,
    } = &version.reference;
    vec![
        ("key", json!(key)),
        ("version", json!(number)),
        ("digest", json!(version.component)),
        ("config", digest(version.config.as_str())),
        ("graph", digest(Json::of(&version.graph).as_str())),
        ("wit", json!(version.wit)),
    ]
}

/// The same columns of the version that an entry published. None if it published none. The graph is parsed and written again, like the
/// graph of a line, because releases add members.
pub(super) fn published(
    entry: &Entry,
) -> Result<Option<(VersionRef, ExpectedRow)>, serde_json::Error> {
    if entry.draft.kind != "VERSION_PUBLISHED" {
        return Ok(None);
    }
    let text = entry.draft.payload.as_str();
    let NamedVersion { key, version } = serde_json::from_str(text)?;
    let Published {
        component,
        config,
        wit,
        ..
    } = serde_json::from_str(text)?;
    let Drawn { graph } = serde_json::from_str(text)?;
    let has_wit = wit.is_some();
    let recorded = RecordedVersion {
        reference: VersionRef { key, version },
        component,
        config,
        graph,
        wit: wit.unwrap_or_default(),
    };
    let mut row = exported(&recorded);
    row.retain(|(column, _)| has_wit || *column != "wit");
    Ok(Some((recorded.reference, row)))
}
