//! What a start needs before there is an instance.

use jiff::Timestamp;
use sqlx::types::Uuid;

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
            definition: row.definition.map(|_| Activation { version }),
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

    /// How many instances the line has from this one up to the first, which has no parent; counted up to `most`.
    pub async fn depth(
        &self,
        tenant: TenantId,
        instance: InstanceId,
        most: u32,
    ) -> Result<u32, StoreError> {
        let depth = sqlx::query_scalar!(
            r#"with recursive line (parent, depth) as (
                select i.parent, 1 from instance i where i.tenant_id = $1 and i.id = $2
                union all
                select i.parent, l.depth + 1
                from line l join instance i on i.tenant_id = $1 and i.id = l.parent
                where l.depth < $3
            )
            select coalesce(max(depth), 0) as "depth!" from line"#,
            tenant.0,
            instance.0,
            most.cast_signed()
        );
        Ok(depth.fetch_one(&self.writer).await?.cast_unsigned())
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
