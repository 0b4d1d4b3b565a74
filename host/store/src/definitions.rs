//! Definitions, their versions and components.

mod insertion;
pub mod list;
pub mod running;
pub mod stops;

use jiff::Timestamp;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use self::insertion::insert_version;
pub use self::list::versions;
use super::pool::transacted;
use super::streams::{Note, append};
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::graph::{Graph, NameUse};
use wrkflw_core::ids::{Digest, TenantId, VersionRef};
use wrkflw_core::json::Json;

/// A published version with its content.
#[derive(Debug)]
pub struct VersionRow {
    pub digest: Digest,
    pub config: Json,
    pub graph: Graph,
    /// The size of the graph's text.
    pub graph_bytes: usize,
    /// The digests of component and config. After a restore, another content may get the same number.
    pub content: Vec<u8>,
}

/// A version to activate, or to migrate to.
#[derive(Debug)]
pub struct Target {
    /// As in [`VersionRow::content`].
    pub content: Vec<u8>,
    pub retired: bool,
    pub stopped: bool,
    /// Whether new instances run it.
    pub active: bool,
}

/// A version to publish.
#[derive(Debug)]
pub struct NewVersion<'a> {
    pub key: &'a str,
    pub digest: Digest,
    pub bytes: &'a [u8],
    pub config: &'a Json,
    pub config_digest: [u8; 32],
    pub graph: &'a Graph,
    pub sdk: Option<&'a str>,
    pub wit: &'a str,
    /// Why it is published.
    pub note: Option<&'a str>,
    /// The id of the audit stream, used if the definition is new.
    pub definition_id: Uuid,
}

/// The payload of a new version's entry. A value of `serde_json` would not keep the digits of its numbers.
#[derive(Serialize)]
struct Published<'a> {
    key: &'a str,
    version: u32,
    component: String,
    config: &'a Json,
    graph: &'a Graph,
    sdk: Option<&'a str>,
    wit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

/// The number of a published version, and whether it is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    pub version: u32,
    pub created: bool,
}

/// The result of a change of a version's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusChange {
    Changed,
    /// It had that status already.
    Unchanged,
    Retired,
    /// It is stopped, and must be resumed first.
    Stopped,
    Missing,
    /// Too many versions are stopped already.
    TooMany,
}

/// Publishes a version under the next number. Identical content keeps its number and its note.
pub async fn publish(
    store: &Store,
    tenant: TenantId,
    new: &NewVersion<'_>,
    note: &Note<'_>,
) -> Result<Numbered, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let at = Time(note.at);
        sqlx::query!(
            "insert into component (digest, bytes, created_at) values ($1, $2, $3) on conflict do nothing",
            new.digest.0.as_slice(),
            new.bytes,
            at as _
        )
        .execute(&mut *transaction)
        .await?;
        sqlx::query!(
            "insert into definition (tenant_id, key, id, revision, created_at) values ($1, $2, $3, 0, $4) on conflict do nothing",
            tenant.0,
            new.key,
            new.definition_id,
            at as _
        )
        .execute(&mut *transaction)
        .await?;
        wrkflw_fault::point("publish.component");
        // The lock on the definition makes publishers wait for each other, so that numbers have no gaps.
        let (id, revision) = lock(&mut transaction, tenant, new.key)
            .await?
            .ok_or(sqlx::Error::RowNotFound)?;
        let known = sqlx::query_scalar!(
            "select version from definition_version where tenant_id = $1 and key = $2 and digest = $3 and config_digest = $4",
            tenant.0,
            new.key,
            new.digest.0.as_slice(),
            new.config_digest.as_slice()
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(version) = known {
            return Ok(Numbered {
                version: version.cast_unsigned(),
                created: false,
            });
        }
        let version = insert_version(&mut transaction, tenant, new, note).await?;
        wrkflw_fault::point("publish.version");
        let payload = Published {
            key: new.key,
            version,
            component: new.digest.to_string(),
            config: new.config,
            graph: new.graph,
            sdk: new.sdk,
            wit: new.wit,
            note: new.note,
        };
        append(
            &mut transaction,
            stream(tenant, id),
            note.draft("VERSION_PUBLISHED", revision, &payload),
        )
        .await?;
        transaction.commit().await?;
        Ok(Numbered {
            version,
            created: true,
        })
    }))
    .await
}

/// The facts that decide whether a version may be activated, or be the target of a migration.
pub async fn target(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
) -> Result<Option<Target>, StoreError> {
    let found = sqlx::query_as!(
        Target,
        r#"select v.digest || v.config_digest as "content!", v.retired_at is not null as "retired!", v.stopped_at is not null as "stopped!",
            v.version is not distinct from d.active_version as "active!"
        from definition_version v join definition d on d.tenant_id = v.tenant_id and d.key = v.key
        where v.tenant_id = $1 and v.key = $2 and v.version = $3"#,
        tenant.0,
        reference.key,
        reference.version.cast_signed()
    );
    Ok(found.fetch_optional(&store.writer).await?)
}

/// Activates a version: new instances run it. `unknown` has the names that it uses and the tenant does not have. The
/// audit records them.
pub async fn activate(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    unknown: &[NameUse],
    note: &Note<'_>,
) -> Result<StatusChange, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let Some(found) = status(&mut transaction, tenant, reference).await? else {
            return Ok(StatusChange::Missing);
        };
        if found.retired {
            return Ok(StatusChange::Retired);
        }
        // Every start would be refused.
        if found.stopped {
            return Ok(StatusChange::Stopped);
        }
        if found.active == Some(reference.version) {
            return Ok(StatusChange::Unchanged);
        }
        set_active(&mut transaction, tenant, reference, Some(reference.version)).await?;
        let mut payload = serde_json::json!({ "key": reference.key, "version": reference.version, "before": found.active });
        if !unknown.is_empty() {
            payload["unknown"] = serde_json::to_value(unknown).unwrap_or_default();
        }
        let draft = note.draft("VERSION_ACTIVATED", found.revision + 1, &payload);
        append(&mut transaction, stream(tenant, found.id), draft).await?;
        transaction.commit().await?;
        Ok(StatusChange::Changed)
    }))
    .await
}

/// Retires a version: new instances cannot run it. Running ones continue.
pub async fn retire(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    note: &Note<'_>,
) -> Result<StatusChange, StoreError> {
    set_retired(store, tenant, reference, true, note).await
}

/// Reinstates a retired version: it can be activated again, and instances can be migrated to it.
pub async fn reinstate(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    note: &Note<'_>,
) -> Result<StatusChange, StoreError> {
    set_retired(store, tenant, reference, false, note).await
}

async fn set_retired(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    retired: bool,
    note: &Note<'_>,
) -> Result<StatusChange, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let Some(found) = status(&mut transaction, tenant, reference).await? else {
            return Ok(StatusChange::Missing);
        };
        if found.retired == retired {
            return Ok(StatusChange::Unchanged);
        }
        sqlx::query!(
            "update definition_version set retired_at = $4, retired_by = $5 where tenant_id = $1 and key = $2 and version = $3",
            tenant.0,
            reference.key,
            reference.version.cast_signed(),
            retired.then_some(Time(note.at)) as _,
            retired.then_some(note.actor)
        )
        .execute(&mut *transaction)
        .await?;
        let left = found.active.filter(|active| *active != reference.version);
        set_active(&mut transaction, tenant, reference, left).await?;
        let mut payload = serde_json::json!({ "key": reference.key, "version": reference.version });
        let kind = if retired {
            payload["wasActive"] = (left != found.active).into();
            "VERSION_RETIRED"
        } else {
            "VERSION_REINSTATED"
        };
        let draft = note.draft(kind, found.revision + 1, &payload);
        append(&mut transaction, stream(tenant, found.id), draft).await?;
        transaction.commit().await?;
        Ok(StatusChange::Changed)
    }))
    .await
}

/// Reads a version with its content.
pub async fn version(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
) -> Result<Option<VersionRow>, StoreError> {
    let row = sqlx::query!(
        r#"select digest, config, graph, digest || config_digest as "content!" from definition_version
        where tenant_id = $1 and key = $2 and version = $3"#,
        tenant.0,
        reference.key,
        reference.version.cast_signed()
    )
    .fetch_optional(&store.writer)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(VersionRow {
        digest: digest_of(reference, row.digest)?,
        config: Json::from_canonical(row.config),
        graph: serde_json::from_str(&row.graph).map_err(|error| inconsistent(reference, error))?,
        graph_bytes: row.graph.len(),
        content: row.content,
    }))
}

/// The bytes of a component.
pub async fn component(store: &Store, digest: Digest) -> Result<Vec<u8>, StoreError> {
    let bytes = sqlx::query_scalar!(
        "select bytes from component where digest = $1",
        digest.0.as_slice()
    );
    Ok(bytes.fetch_one(&store.writer).await?)
}

/// Components of active versions of all tenants, each once with one of its versions, from the last published.
pub async fn active_components(
    store: &Store,
    limit: i64,
) -> Result<Vec<(VersionRef, Digest)>, StoreError> {
    let rows = sqlx::query!(
        "select key, version, digest from (
            select distinct on (v.digest) v.key, v.version, v.digest, v.published_at
            from definition d
            join definition_version v on v.tenant_id = d.tenant_id and v.key = d.key and v.version = d.active_version
            where v.stopped_at is null
            order by v.digest, v.published_at desc
        ) v
        order by v.published_at desc limit $1",
        limit
    )
    .fetch_all(&store.writer)
    .await?;
    rows.into_iter()
        .map(|row| {
            let reference = VersionRef {
                key: row.key,
                version: row.version.cast_unsigned(),
            };
            let digest = digest_of(&reference, row.digest)?;
            Ok((reference, digest))
        })
        .collect()
}

/// Stores an engine profile, so that evaluations can be verified later.
pub async fn record_profile(
    store: &Store,
    digest: Digest,
    profile: &Json,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into engine_profile (digest, profile, recorded_at) values ($1, $2, $3) on conflict do nothing",
        digest.0.as_slice(),
        profile.as_str(),
        Time(at) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

fn inconsistent(reference: &VersionRef, detail: impl ToString) -> StoreError {
    StoreError::inconsistent("definition_version", reference, detail)
}

/// The digest of a version's component, as its row has it.
fn digest_of(reference: &VersionRef, bytes: Vec<u8>) -> Result<Digest, StoreError> {
    let bytes = bytes.try_into();
    let bytes = bytes.map_err(|_| inconsistent(reference, "a malformed digest"))?;
    Ok(Digest(bytes))
}

fn stream(tenant: TenantId, id: Uuid) -> Stream {
    Stream {
        tenant,
        kind: StreamKind::Definition,
        id,
    }
}

async fn lock(
    connection: &mut PgConnection,
    tenant: TenantId,
    key: &str,
) -> Result<Option<(Uuid, u32)>, StoreError> {
    let query = sqlx::query!(
        "select id, revision from definition where tenant_id = $1 and key = $2 for update",
        tenant.0,
        key
    );
    let row = query.fetch_optional(connection).await?;
    Ok(row.map(|row| (row.id, row.revision.cast_unsigned())))
}

/// The state of a version, and of its definition, which is locked.
struct VersionStatus {
    id: Uuid,
    revision: u32,
    active: Option<u32>,
    retired: bool,
    stopped: bool,
}

async fn status(
    connection: &mut PgConnection,
    tenant: TenantId,
    reference: &VersionRef,
) -> Result<Option<VersionStatus>, StoreError> {
    let row = sqlx::query!(
        r#"select d.id, d.revision, d.active_version, v.retired_at is not null as "retired!",
            v.stopped_at is not null as "stopped!"
        from definition d join definition_version v on v.tenant_id = d.tenant_id and v.key = d.key
        where d.tenant_id = $1 and d.key = $2 and v.version = $3
        for update of d"#,
        tenant.0,
        reference.key,
        reference.version.cast_signed()
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| VersionStatus {
        id: row.id,
        revision: row.revision.cast_unsigned(),
        active: row.active_version.map(i32::cast_unsigned),
        retired: row.retired,
        stopped: row.stopped,
    }))
}

async fn set_active(
    connection: &mut PgConnection,
    tenant: TenantId,
    reference: &VersionRef,
    active: Option<u32>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update definition set active_version = $3, revision = revision + 1 where tenant_id = $1 and key = $2",
        tenant.0,
        reference.key,
        active.map(u32::cast_signed)
    )
    .execute(connection)
    .await?;
    Ok(())
}
