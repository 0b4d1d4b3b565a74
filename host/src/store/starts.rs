//! What a start needs before there is an instance.

use jiff::Timestamp;
use sqlx::types::Uuid;

use super::jobs::Job;
use super::load::{Principalship, StoredReply};
use super::time::Time;
use super::{Store, StoreError};
use crate::domain::actor::Actor;
use crate::domain::ids::{CommandId, InstanceId, TaskId, TenantId};

/// The actor's standing, and what is known of the definition.
#[derive(Debug)]
pub struct Startable {
    pub actor: Actor,
    pub reply: Option<StoredReply>,
    /// None when there is no definition of this key.
    pub definition: Option<Activation>,
    /// As of [`Loaded::standing`].
    ///
    /// [`Loaded::standing`]: super::load::Loaded::standing
    pub standing: Uuid,
}

/// An instance that has not ended, with who started it and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: InstanceId,
    pub initiator: String,
    pub started_at: Timestamp,
}

/// Which version new instances take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// With what it consists of, as of [`VersionRow::content`].
    ///
    /// [`VersionRow::content`]: super::definitions::VersionRow::content
    pub version: Option<(u32, Vec<u8>)>,
    /// Nothing of that version runs.
    pub stopped: bool,
}

/// The instances above each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The foremost that was looked at.
    pub root: InstanceId,
    /// How many there are, the first and the last included.
    pub depth: u32,
}

impl Store {
    /// Loads for a start.
    pub async fn load_start(
        &self,
        who: &Principalship,
        definition: &str,
        key: Option<&str>,
    ) -> Result<Startable, StoreError> {
        let row = sqlx::query!(
            r#"select
                array(
                    select group_id from membership
                    where tenant_id = $1 and person_id = $2 and valid_to is null order by group_id
                ) as "groups!",
                array(
                    select distinct permission from role_permission
                    where tenant_id = $1 and role = any($3) order by permission
                ) as "permissions!",
                coalesce((
                    select t.standing_mark from tenant t where t.id = $1
                ), '00000000-0000-0000-0000-000000000000') as "standing!",
                d.key as "definition?",
                d.active_version,
                (
                    select v.digest || v.config_digest from definition_version v
                    where v.tenant_id = $1 and v.key = d.key and v.version = d.active_version
                ) as content,
                coalesce((
                    select v.stopped_at is not null from definition_version v
                    where v.tenant_id = d.tenant_id and v.key = d.key and v.version = d.active_version
                ), false) as "stopped!",
                k.fingerprint as "reply_fingerprint?",
                k.status as "reply_status?",
                k.body as "reply_body?",
                k.headers as "reply_headers?"
            from (values (1)) as one
            left join definition d on d.tenant_id = $1 and d.key = $4
            left join idempotency_key k on k.tenant_id = $1 and k.principal = $2 and k.key = $5"#,
            who.tenant.0,
            who.subject,
            &who.roles,
            definition,
            key
        )
        .fetch_one(&self.writer)
        .await?;
        let reply = StoredReply::of(
            row.reply_body,
            row.reply_status,
            row.reply_fingerprint,
            row.reply_headers,
        );
        let version = row
            .active_version
            .and_then(|version| u32::try_from(version).ok())
            .zip(row.content);
        Ok(Startable {
            actor: Actor {
                id: who.subject.clone(),
                groups: row.groups,
                permissions: row.permissions,
                on_behalf_of: None,
                stands_in_for: Vec::new(),
            },
            reply,
            definition: row.definition.map(|_| Activation {
                version,
                stopped: row.stopped,
            }),
            standing: row.standing,
        })
    }

    /// The running instance of this definition about this entity.
    pub async fn running(
        &self,
        tenant: TenantId,
        definition: &str,
        entity_type: &str,
        entity_id: &str,
    ) -> Result<Option<Running>, StoreError> {
        let found = sqlx::query!(
            r#"select id, initiator, started_at as "started_at: Time" from instance where tenant_id = $1 and definition_key = $2 and entity_type = $3 and entity_id = $4
             and status in ('RUNNING', 'SUSPENDED')"#,
            tenant.0,
            definition,
            entity_type,
            entity_id
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(found.map(|row| Running {
            id: InstanceId(row.id),
            initiator: row.initiator,
            started_at: row.started_at.0,
        }))
    }

    /// The line from this instance up to the first, which has no parent; looked at up to `most`.
    pub async fn line(
        &self,
        tenant: TenantId,
        instance: InstanceId,
        most: u32,
    ) -> Result<Line, StoreError> {
        let line = sqlx::query!(
            r#"with recursive line (id, parent, depth) as (
                select i.id, i.parent, 1 from instance i where i.tenant_id = $1 and i.id = $2
                union all
                select i.id, i.parent, l.depth + 1
                from line l join instance i on i.tenant_id = $1 and i.id = l.parent
                where l.depth < $3
            )
            select id as "id!", depth as "depth!" from line order by depth desc limit 1"#,
            tenant.0,
            instance.0,
            most.cast_signed()
        );
        let line = line.fetch_optional(&self.writer).await?;
        Ok(line.map_or(
            Line {
                root: instance,
                depth: 0,
            },
            |line| Line {
                root: InstanceId(line.id),
                depth: line.depth.cast_unsigned(),
            },
        ))
    }

    /// Takes a place among the descendants of a root for the child that the job starts, once for each job; false where
    /// `most` are taken. Counted in one statement, so that those who start at the same moment do not pass the bound.
    pub async fn take_place(
        &self,
        job: &Job,
        root: InstanceId,
        most: u32,
    ) -> Result<bool, StoreError> {
        let has_place = sqlx::query_scalar!(
            r#"with uncounted as materialized (
                select tenant_id, id from job where tenant_id = $1 and id = $2 and not counted for update
            ),
            taken as (
                insert into descendant_count (tenant_id, root_id, started)
                select tenant_id, $3, 1 from uncounted where $4 > 0
                on conflict (tenant_id, root_id) do update set started = descendant_count.started + 1
                    where descendant_count.started < $4
                returning tenant_id
            ),
            marked as (
                update job j set counted = true from taken where j.tenant_id = taken.tenant_id and j.id = $2
            )
            select (exists (select from taken) or not exists (select from uncounted)) as "has_place!""#,
            job.tenant.0,
            job.id,
            root.0,
            most.cast_signed()
        );
        Ok(has_place.fetch_one(&self.writer).await?)
    }

    /// The instance that a task belongs to.
    pub async fn instance_of(
        &self,
        tenant: TenantId,
        task: TaskId,
    ) -> Result<Option<InstanceId>, StoreError> {
        let id = sqlx::query_scalar!(
            "select instance_id from task where tenant_id = $1 and id = $2",
            tenant.0,
            task.0
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(id.map(InstanceId))
    }

    /// Whether a command was carried out: asked when the connection broke before its verdict came.
    pub async fn was_committed(
        &self,
        tenant: TenantId,
        instance: InstanceId,
        command: CommandId,
    ) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"select exists(
                select from audit_entry
                where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and command_id = $3
            ) as "found!""#,
            tenant.0,
            instance.0,
            command.0
        )
        .fetch_one(&self.writer)
        .await?;
        Ok(found)
    }
}
