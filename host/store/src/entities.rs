//! The instances about an entity, of all definitions and restarts. An unknown entity has an empty list.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;

/// An instance about an entity, with its related instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityInstance {
    pub id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    pub status: String,
    pub outcome: Option<String>,
    pub end_reason: Option<String>,
    pub revision: u32,
    pub initiator: String,
    pub requesters: Vec<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub ended_by: Option<String>,
    pub predecessor: Option<Uuid>,
    pub successors: Vec<Uuid>,
    pub parent: Option<Uuid>,
    pub title: Option<String>,
    pub summary: Option<String>,
}

impl EntityInstance {
    /// Its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        const LINE_BYTES: usize = 600;
        const ID_BYTES: usize = 40;
        let requesters = self.requesters.iter().map(|id| 3 + id.len());
        let reason = self.end_reason.as_ref().map_or(0, String::len);
        let labels = [&self.title, &self.summary].into_iter().flatten();
        let reason = reason + labels.map(String::len).sum::<usize>();
        LINE_BYTES + reason + requesters.sum::<usize>() + ID_BYTES * self.successors.len()
    }
}

/// A page of the instances about an entity.
#[derive(Debug)]
pub struct EntityHistory {
    /// At most `limit`: callers ask for one more than they return.
    pub found: Vec<EntityInstance>,
    /// The last instance that was looked at, if more may follow.
    pub reached: Option<Uuid>,
}

/// Instances about an entity that one page examines, for a viewer who may not see all of them.
const ABOUT_MAX: i64 = 1_000;

/// Instances about the entity that were started after the instance `after`, oldest first.
pub async fn history(
    reader: &Reader,
    viewer: &Viewer,
    entity: &Entity,
    definition: Option<&str>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<EntityHistory, StoreError> {
    let mut looking = reader.looking(viewer).await?;
    let after = after.unwrap_or_default();
    let (mut among, mut reached) = (None, None);
    if viewer.is_restricted() {
        let about = sqlx::query_scalar!(
            "select id from instance where tenant_id = $1 and entity_type = $2 and entity_id = $3 and id > $4
            order by id limit $5",
            viewer.tenant.0,
            entity.kind,
            entity.id,
            after,
            ABOUT_MAX
        );
        let about = about.fetch_all(looking.places().await?).await?;
        let is_full = i64::try_from(about.len()).is_ok_and(|read| read >= ABOUT_MAX);
        reached = about.last().copied().filter(|_| is_full);
        among = Some(about);
    }
    let rows = sqlx::query!(
        r#"select i.id, i.definition_key, i.definition_version, i.status, i.outcome, i.end_reason, i.revision, i.initiator,
            i.requesters, i.started_at as "started_at: Time", i.ended_at as "ended_at: Time", i.ended_by, i.predecessor, i.parent,
            i.title, i.summary,
            array(
                select s.id from instance s where s.tenant_id = i.tenant_id and s.predecessor = i.id order by s.id
            ) as "successors!"
        from instance i
        where i.tenant_id = $1 and i.entity_type = $2 and i.entity_id = $3 and i.id > $4
          and ($5::text is null or i.definition_key = $5) and ($7::uuid[] is null or i.id = any($7))
        order by i.id
        limit $6"#,
        viewer.tenant.0,
        entity.kind,
        entity.id,
        after,
        definition,
        limit,
        among as _
    )
    .fetch_all(looking.seen().await?)
    .await?;
    let found = rows.into_iter().map(|row| EntityInstance {
        id: row.id,
        definition_key: row.definition_key,
        definition_version: row.definition_version.cast_unsigned(),
        status: row.status,
        outcome: row.outcome,
        end_reason: row.end_reason,
        revision: row.revision.cast_unsigned(),
        initiator: row.initiator,
        requesters: row.requesters,
        started_at: row.started_at.0,
        ended_at: row.ended_at.map(|time| time.0),
        ended_by: row.ended_by,
        predecessor: row.predecessor,
        successors: row.successors,
        parent: row.parent,
        title: row.title,
        summary: row.summary,
    });
    let found = found.collect();
    Ok(EntityHistory { found, reached })
}

/// The entity of an instance; none if there is no such instance, or the viewer does not see it.
pub async fn of_instance(
    reader: &Reader,
    viewer: &Viewer,
    instance: InstanceId,
) -> Result<Option<Entity>, StoreError> {
    let row = sqlx::query!(
        "select entity_type, entity_id from instance where tenant_id = $1 and id = $2",
        viewer.tenant.0,
        instance.0
    )
    .fetch_optional(&mut reader.reading(viewer).await?)
    .await?;
    Ok(row.map(|row| Entity {
        kind: row.entity_type,
        id: row.entity_id,
    }))
}
