//! The content of events that their entries lack: titles, and names of states and tasks, as at the time of the event.
//!
//! This module reads it for a batch of entries at a time, with a constant number of statements. Definition versions never
//! change, so their texts are cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use sqlx::PgConnection;
use uuid::Uuid;

use wrkflw_core::cloudevent::PublicEntry;
use wrkflw_core::event::{About, DefinitionTexts};
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::{TenantId, VersionRef};
use wrkflw_core::template::Labels;

/// Definition versions whose texts a process keeps. When there are more, it forgets all.
const KEPT_MAX: usize = 500;
/// Migrations of an instance behind an event that are considered for the former name of a state.
const MIGRATIONS_MAX: i64 = 20;

/// Tenant, key and version.
type VersionKey = (i32, String, i32);

/// The texts of definition versions. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptTexts(Arc<Mutex<HashMap<VersionKey, Arc<DefinitionTexts>>>>);

/// The definition versions of a batch that this release cannot read, with the reasons. A later release may have published them.
#[derive(Debug, Default)]
pub(super) struct UnreadableVersions(HashMap<VersionKey, String>);

/// An entry whose context is to be read.
pub(super) struct Undescribed<'e> {
    pub(super) tenant: TenantId,
    pub(super) seq: i64,
    pub(super) entry: &'e mut PublicEntry,
}

/// The members of a later event that tell the state before it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Later {
    previous_title: Option<String>,
    previous_summary: Option<String>,
    states: HashMap<String, String>,
}

impl KeptTexts {
    fn get(&self, key: &VersionKey) -> Option<Arc<DefinitionTexts>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).cloned()
    }

    fn keep(&self, key: VersionKey, texts: Arc<DefinitionTexts>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, texts);
    }

    /// Reads the context of the entries. Their labels must be those that the instances have now. The entries of unreadable versions
    /// must not be sent, because they would lack the content that the version makes public.
    pub(super) async fn describe(
        &self,
        connection: &mut PgConnection,
        entries: &mut [Undescribed<'_>],
    ) -> Result<UnreadableVersions, sqlx::Error> {
        if entries.is_empty() {
            return Ok(UnreadableVersions::default());
        }
        let unreadable = self.add_definitions(connection, entries).await?;
        add_names(connection, entries).await?;
        undo_later_changes(connection, entries).await?;
        Ok(unreadable)
    }

    async fn add_definitions(
        &self,
        connection: &mut PgConnection,
        entries: &mut [Undescribed<'_>],
    ) -> Result<UnreadableVersions, sqlx::Error> {
        let mut unreadable = UnreadableVersions::default();
        let mut unknown: Vec<VersionKey> = entries
            .iter()
            .map(Undescribed::version)
            .filter(|key| self.get(key).is_none())
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        let mut read = HashMap::new();
        if !unknown.is_empty() {
            let tenants: Vec<i32> = unknown.iter().map(|key| key.0).collect();
            let keys: Vec<String> = unknown.iter().map(|key| key.1.clone()).collect();
            let versions: Vec<i32> = unknown.iter().map(|key| key.2).collect();
            let rows = sqlx::query!(
                "select v.tenant_id, v.key, v.version, v.graph
                from unnest($1::int[], $2::text[], $3::int[]) s (tenant_id, key, version)
                join definition_version v on v.tenant_id = s.tenant_id and v.key = s.key and v.version = s.version",
                &tenants,
                &keys,
                &versions
            );
            for row in rows.fetch_all(&mut *connection).await? {
                let key = (row.tenant_id, row.key, row.version);
                match serde_json::from_str::<Graph>(&row.graph) {
                    Ok(graph) => {
                        let texts = Arc::new(DefinitionTexts::of(&graph));
                        self.keep(key.clone(), texts.clone());
                        read.insert(key, texts);
                    }
                    Err(error) => {
                        unreadable.0.insert(key, error.to_string());
                    }
                }
            }
        }
        for undescribed in entries {
            let key = undescribed.version();
            let texts = read.get(&key).cloned().or_else(|| self.get(&key));
            undescribed.entry.context.definition = texts.unwrap_or_default();
        }
        Ok(unreadable)
    }
}

impl UnreadableVersions {
    /// Why the version of this entry cannot be read.
    pub(super) fn reason(&self, tenant: TenantId, entry: &PublicEntry) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let error = self.0.get(&version_of(tenant, entry))?;
        let VersionRef { key, version } = &entry.definition;
        Some(format!(
            "this release cannot read version {version} of the definition {key}: {error}"
        ))
    }
}

impl Undescribed<'_> {
    fn version(&self) -> VersionKey {
        version_of(self.tenant, self.entry)
    }
}

fn version_of(tenant: TenantId, entry: &PublicEntry) -> VersionKey {
    let VersionRef { key, version } = &entry.definition;
    (tenant.0, key.clone(), version.cast_signed())
}

/// Adds the names of states and tasks that the entries mention only by id.
async fn add_names(
    connection: &mut PgConnection,
    entries: &mut [Undescribed<'_>],
) -> Result<(), sqlx::Error> {
    let (mut tenants, mut instances) = (Vec::new(), Vec::new());
    let (mut states, mut tasks): (Vec<Option<Uuid>>, Vec<Option<Uuid>>) = (Vec::new(), Vec::new());
    for undescribed in entries.iter() {
        // A payload may be large, so other tasks run in between.
        tokio::task::yield_now().await;
        let entry = &undescribed.entry;
        let about = About::of(&entry.kind, &entry.payload);
        tenants.push(undescribed.tenant.0);
        instances.push(entry.instance.0);
        states.push(about.state.filter(|_| about.state_name.is_none()));
        tasks.push(about.task.filter(|_| about.task_title.is_none()));
    }
    let rows = sqlx::query!(
        r#"select s.name as "state?", t.label as "task?"
        from unnest($1::int[], $2::uuid[], $3::uuid[], $4::uuid[]) with ordinality e (tenant_id, instance_id, state_id, task_id, place)
        left join state_instance s on s.tenant_id = e.tenant_id and s.instance_id = e.instance_id and s.id = e.state_id
        left join task t on t.tenant_id = e.tenant_id and t.instance_id = e.instance_id and t.id = e.task_id
        order by e.place"#,
        &tenants,
        &instances,
        &states as _,
        &tasks as _
    );
    let rows = rows.fetch_all(&mut *connection).await?;
    for (Undescribed { entry, .. }, row) in entries.iter_mut().zip(rows) {
        entry.context.state_name = row.state;
        entry.context.task_title = row.task;
    }
    Ok(())
}

/// Gives the entries the labels and the names of states that were true before later events changed them.
async fn undo_later_changes(
    connection: &mut PgConnection,
    entries: &mut [Undescribed<'_>],
) -> Result<(), sqlx::Error> {
    let tenants: Vec<i32> = entries.iter().map(|one| one.tenant.0).collect();
    let instances: Vec<Uuid> = entries.iter().map(|one| one.entry.instance.0).collect();
    let seqs: Vec<i64> = entries.iter().map(|one| one.seq).collect();
    let rows = sqlx::query!(
        r#"select e.place as "place!", m.type as "kind!", m.payload as "payload!"
        from unnest($1::int[], $2::uuid[], $3::bigint[]) with ordinality e (tenant_id, instance_id, seq, place)
        cross join lateral (
            (
                select a.type, a.payload, a.seq from audit_entry a
                where a.tenant_id = e.tenant_id and a.stream_kind = 'instance' and a.stream_id = e.instance_id
                  and a.type = 'FLOW_RETITLED' and a.seq > e.seq
                order by a.seq limit 1
            )
            union all
            (
                select a.type, a.payload, a.seq from audit_entry a
                where a.tenant_id = e.tenant_id and a.stream_kind = 'instance' and a.stream_id = e.instance_id
                  and a.type = 'FLOW_MIGRATED' and a.seq > e.seq
                order by a.seq limit $4
            )
        ) m
        order by e.place, m.seq desc"#,
        &tenants,
        &instances,
        &seqs,
        MIGRATIONS_MAX
    );
    for row in rows.fetch_all(&mut *connection).await? {
        let place = usize::try_from(row.place - 1).unwrap_or(usize::MAX);
        let Some(undescribed) = entries.get_mut(place) else {
            continue;
        };
        // A payload may have been erased.
        let later: Later = serde_json::from_str(&row.payload).unwrap_or_default();
        let context = &mut undescribed.entry.context;
        if row.kind == "FLOW_RETITLED" {
            context.labels = Labels {
                title: later.previous_title,
                summary: later.previous_summary,
            };
        } else if let Some(name) = &mut context.state_name {
            let before = later.states.iter().find(|(_, new)| *new == name);
            if let Some((old, _)) = before {
                name.clone_from(old);
            }
        }
    }
    Ok(())
}
