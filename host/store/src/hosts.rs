//! The hosts that run, for operators. A host renews its row, and a row that is not renewed expires.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

/// A host that has not renewed its row for so long counts as stopped.
pub const HOST_EXPIRY: Duration = Duration::from_secs(30);
/// Limit of the hosts in a list.
pub(crate) const HOSTS_MAX: i64 = 1000;

/// A host that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    pub id: Uuid,
    /// The name of the machine, and the port that the host listens on.
    pub name: String,
    pub version: String,
    pub roles: Vec<String>,
    pub started_at: Timestamp,
    /// When it last renewed its row, by the clock of the database.
    pub seen_at: Timestamp,
}

/// The facts that a host writes about itself.
#[derive(Debug, Clone)]
pub struct NewHost {
    pub id: Uuid,
    pub name: String,
    pub version: String,
    pub roles: Vec<String>,
    pub started_at: Timestamp,
}

/// The hosts that renewed their row within [`HOST_EXPIRY`], those that run longest first, at most [`HOSTS_MAX`]. They serve all
/// tenants, so each tenant reads the same.
pub async fn list(reader: &Reader, tenant: TenantId) -> Result<Vec<HostRow>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, name, version, roles, started_at as "started_at: Time", seen_at as "seen_at: Time"
        from host where seen_at > now() - make_interval(secs => $1) order by started_at, id limit $2"#,
        HOST_EXPIRY.as_secs_f64(),
        HOSTS_MAX
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let hosts = rows.into_iter().map(|row| HostRow {
        id: row.id,
        name: row.name,
        version: row.version,
        roles: row.roles,
        started_at: row.started_at.0,
        seen_at: row.seen_at.0,
    });
    Ok(hosts.collect())
}

/// Writes or renews the row of a host.
pub async fn renew(store: &Store, host: &NewHost) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into host (id, name, version, roles, started_at, seen_at) values ($1, $2, $3, $4, $5, now())
         on conflict (id) do update set seen_at = now()",
        host.id,
        host.name,
        host.version,
        &host.roles,
        Time(host.started_at) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Deletes the row of a host that stops.
pub async fn delete(store: &Store, id: Uuid) -> Result<(), StoreError> {
    sqlx::query!("delete from host where id = $1", id)
        .execute(&store.writer)
        .await?;
    Ok(())
}
