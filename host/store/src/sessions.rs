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
}

/// A row with its columns' types.
struct Row {
    id: Uuid,
    person: String,
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

impl Reader {
    /// At most `most` sessions of a person, the newest first.
    pub async fn sessions(
        &self,
        tenant: TenantId,
        person: &str,
        most: i64,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            r#"select id, person, client, roles, created_at as "created_at: Time", used_at as "used_at: Time",
                expires_at as "expires_at: Time"
            from session where tenant_id = $1 and person = $2 order by id desc limit $3"#,
            tenant.0,
            person,
            most
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        Ok(rows.into_iter().map(Row::session).collect())
    }

    /// The session whose secret has this digest, and its person.
    pub async fn session(
        &self,
        tenant: TenantId,
        secret_digest: &[u8],
    ) -> Result<Option<(String, SessionRow)>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            r#"select id, person, client, roles, created_at as "created_at: Time", used_at as "used_at: Time",
                expires_at as "expires_at: Time"
            from session where tenant_id = $1 and secret_digest = $2"#,
            tenant.0,
            secret_digest
        )
        .fetch_optional(&mut *self.reading(tenant).await?)
        .await?;
        Ok(row.map(|row| (row.person.clone(), row.session())))
    }
}

impl Store {
    /// Adds a session. If the person has `most` already, the oldest ones end.
    pub async fn add_session(
        &self,
        tenant: TenantId,
        new: &NewSession<'_>,
        most: i64,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "with ended as (
                delete from session where tenant_id = $1 and id in (
                    select id from session where tenant_id = $1 and person = $4 order by id desc offset $9)
             )
             insert into session (tenant_id, id, secret_digest, person, roles, client, created_at, used_at, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $7, $8)",
            tenant.0,
            new.id,
            new.secret_digest,
            new.person,
            new.roles,
            new.client,
            Time(new.created_at) as _,
            Time(new.expires_at) as _,
            most - 1
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Records the use of a session.
    pub async fn use_session(
        &self,
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
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Ends a session of this person. False if they have none with this id.
    pub async fn delete_session(
        &self,
        tenant: TenantId,
        person: &str,
        id: Uuid,
    ) -> Result<bool, StoreError> {
        let ended = sqlx::query!(
            "delete from session where tenant_id = $1 and person = $2 and id = $3",
            tenant.0,
            person,
            id
        )
        .execute(&self.writer)
        .await?;
        Ok(ended.rows_affected() > 0)
    }
}
