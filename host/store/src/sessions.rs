//! Sign-ins of browsers.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub id: Uuid,
    pub client: String,
    pub roles: Vec<String>,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The settings of pages of one person. A setting that the person did not choose is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preference {
    pub language: Option<String>,
    pub time_zone: Option<String>,
    pub theme: Option<String>,
}

/// A session that was found by its secret.
#[derive(Debug)]
pub struct FoundSession {
    pub person: String,
    pub row: SessionRow,
    pub preference: Preference,
}

/// A session that begins.
#[derive(Debug)]
pub struct NewSession<'a> {
    pub id: Uuid,
    pub secret_digest: &'a [u8],
    pub person: &'a str,
    pub roles: &'a [String],
    pub client: &'a str,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub provider_session: Option<&'a str>,
    pub id_token: Option<&'a str>,
}

/// A row with its columns' types.
struct Row {
    id: Uuid,
    client: String,
    roles: Vec<String>,
    created_at: Time,
    used_at: Time,
    expires_at: Time,
}

impl Row {
    fn session(self) -> SessionRow {
        SessionRow {
            id: self.id,
            client: self.client,
            roles: self.roles,
            created_at: self.created_at.0,
            used_at: self.used_at.0,
            expires_at: self.expires_at.0,
        }
    }
}

/// At most `most` sessions of a person, the newest first.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    person: &str,
    most: i64,
) -> Result<Vec<SessionRow>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id, client, roles, created_at as "created_at: Time", used_at as "used_at: Time",
            expires_at as "expires_at: Time"
        from session where tenant_id = $1 and person = $2 order by id desc limit $3"#,
        tenant.0,
        person,
        most
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(rows.into_iter().map(Row::session).collect())
}

/// The session whose secret has this digest, with its person and the person's settings.
pub async fn get(
    reader: &Reader,
    tenant: TenantId,
    secret_digest: &[u8],
) -> Result<Option<FoundSession>, StoreError> {
    let row = sqlx::query!(
        r#"select id, s.person, client, roles, created_at as "created_at: Time", used_at as "used_at: Time",
            expires_at as "expires_at: Time", language as "language?", time_zone as "time_zone?", theme as "theme?"
        from session s left join preference p on p.tenant_id = s.tenant_id and p.person = s.person
        where s.tenant_id = $1 and secret_digest = $2"#,
        tenant.0,
        secret_digest
    )
    .fetch_optional(&mut reader.reading(tenant).await?)
    .await?;
    Ok(row.map(|row| FoundSession {
        person: row.person,
        row: SessionRow {
            id: row.id,
            client: row.client,
            roles: row.roles,
            created_at: row.created_at.0,
            used_at: row.used_at.0,
            expires_at: row.expires_at.0,
        },
        preference: Preference {
            language: row.language,
            time_zone: row.time_zone,
            theme: row.theme,
        },
    }))
}

/// The settings of a person.
pub async fn preference(
    reader: &Reader,
    tenant: TenantId,
    person: &str,
) -> Result<Preference, StoreError> {
    let found = sqlx::query_as!(
        Preference,
        "select language, time_zone, theme from preference where tenant_id = $1 and person = $2",
        tenant.0,
        person
    )
    .fetch_optional(&mut reader.reading(tenant).await?)
    .await?;
    Ok(found.unwrap_or_default())
}

/// Adds a session. If the person has `most` already, the oldest ones end.
pub async fn add(
    store: &Store,
    tenant: TenantId,
    new: &NewSession<'_>,
    most: i64,
) -> Result<(), StoreError> {
    sqlx::query!(
        "with ended as (
            delete from session where tenant_id = $1 and id in (
                select id from session where tenant_id = $1 and person = $4 order by id desc offset $9)
         )
         insert into session (tenant_id, id, secret_digest, person, roles, client, created_at, used_at, expires_at,
             provider_session, id_token)
         values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $10, $11)",
        tenant.0,
        new.id,
        new.secret_digest,
        new.person,
        new.roles,
        new.client,
        Time(new.created_at) as _,
        Time(new.expires_at) as _,
        most - 1,
        new.provider_session,
        new.id_token
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Records the use of a session.
pub async fn touch(
    store: &Store,
    tenant: TenantId,
    id: Uuid,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update session set used_at = greatest(used_at, $3) where tenant_id = $1 and id = $2",
        tenant.0,
        id,
        Time(at) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Ends a session of this person. Returns its ID token, if it has one; none if they have no session with this id.
pub async fn delete(
    store: &Store,
    tenant: TenantId,
    person: &str,
    id: Uuid,
) -> Result<Option<Option<String>>, StoreError> {
    let ended = sqlx::query_scalar!(
        "delete from session where tenant_id = $1 and person = $2 and id = $3 returning id_token",
        tenant.0,
        person,
        id
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(ended)
}

/// Ends the sessions of one session at the identity provider; without its name, all sessions of the person. The provider
/// knows no tenants. Returns how many ended.
pub async fn delete_of_provider(
    store: &Store,
    person: Option<&str>,
    provider_session: Option<&str>,
) -> Result<u64, StoreError> {
    let ended = match provider_session {
        Some(session) => sqlx::query!(
            "delete from session where provider_session = $1 and ($2::text is null or person = $2)",
            session,
            person
        ),
        None => sqlx::query!("delete from session where person = $1", person),
    };
    Ok(ended.execute(&store.writer).await?.rows_affected())
}
