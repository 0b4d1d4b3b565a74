//! Sign-ins of browsers. A session begins with a proven identity, is found by the secret of a cookie, and is ended by the person.
//!
//! The database has only the digest of the secret. A session ends [`SESSION_MAX`] after its beginning, or when it was not used
//! for [`SESSION_IDLE_MAX`].

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use wrkflw_core::ids::TenantId;
use wrkflw_runtime::clock;
use wrkflw_store::StoreError;
use wrkflw_store::sessions::{self, FoundSession, NewSession, Preference, SessionRow};

/// How long a session lasts at most. Its roles are those of the sign-in, so this bounds how old they are.
pub const SESSION_MAX: Duration = Duration::from_hours(24);
/// How long a session lasts without use.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(4);
/// The use of a session is recorded once in this time.
const USE_RECORDED: Duration = Duration::from_mins(1);
/// The longest name of a browser that is kept, in characters.
const CLIENT_CHARS_MAX: usize = 200;
/// Sessions of one person. A further one ends the oldest.
const SESSIONS_MAX: i64 = 100;

/// A session and its person.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: Uuid,
    pub who: Identity,
    /// When it ends at the latest.
    pub until: Timestamp,
    pub preference: Preference,
}

/// The session at the identity provider by which a session began.
#[derive(Debug, Clone)]
pub struct ProviderSession {
    /// Its name at the provider, if the provider tells it.
    pub name: Option<String>,
    /// Sent to the provider when the person signs out.
    pub id_token: String,
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// The sign-ins of browsers to the console.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub(super) engine: &'a Engine,
}

impl Sessions<'_> {
    /// Begins a session of an authenticated person, at most until `until`. Returns the secret that finds the session.
    pub async fn begin(
        self,
        who: &Identity,
        client: &str,
        until: Timestamp,
        provider: Option<&ProviderSession>,
    ) -> Result<[u8; 32], StoreError> {
        let (now, secret) = (self.engine.0.clock.now(), clock::random());
        let client = client.chars().filter(|char| !char.is_control());
        let client: String = client.take(CLIENT_CHARS_MAX).collect();
        let new = NewSession {
            id: clock::new_id(),
            secret_digest: &digest(&secret),
            person: &who.subject,
            roles: &who.roles,
            client: &client,
            created_at: now,
            expires_at: until.min(clock::later(now, SESSION_MAX)),
            provider_session: provider.and_then(|one| one.name.as_deref()),
            id_token: provider.map(|one| one.id_token.as_str()),
        };
        let store = &self.engine.0.store;
        sessions::add(store, who.tenant, &new, SESSIONS_MAX).await?;
        Ok(secret)
    }

    /// The session with this secret, if it has not ended. Records its use.
    pub async fn get(self, tenant: TenantId, secret: &[u8]) -> Result<Option<Session>, Error> {
        let (store, now) = (&self.engine.0.store, self.engine.0.clock.now());
        let found = sessions::get(store, tenant, &digest(secret)).await?;
        let idle = |row: &SessionRow| clock::later(row.used_at, SESSION_IDLE_MAX) <= now;
        let found = found.filter(|one| one.row.expires_at > now && !idle(&one.row));
        let Some(FoundSession {
            person,
            row,
            preference,
        }) = found
        else {
            return Ok(None);
        };
        let tenant_name = self.engine.tenant_name(tenant).await?;
        if clock::later(row.used_at, USE_RECORDED) <= now {
            sessions::touch(store, tenant, row.id, now).await?;
        }
        Ok(Some(Session {
            id: row.id,
            who: Identity {
                tenant,
                tenant_name: tenant_name.to_string(),
                subject: person,
                roles: row.roles,
                embedded_by: None,
            },
            until: row.expires_at,
            preference,
        }))
    }

    /// The sessions of the caller that have not ended, the newest first.
    pub async fn list(self, who: &Identity) -> Result<Vec<SessionRow>, Error> {
        let now = self.engine.0.clock.now();
        let reader = self.engine.reader();
        let rows = sessions::list(reader, who.tenant, &who.subject, SESSIONS_MAX);
        let mut rows = rows.await?;
        rows.retain(|row| {
            row.expires_at > now && clock::later(row.used_at, SESSION_IDLE_MAX) > now
        });
        Ok(rows)
    }

    /// Ends a session of the caller. Returns its ID token, if it began at an identity provider.
    pub async fn end(self, who: &Identity, id: Uuid) -> Result<Option<String>, Error> {
        let store = &self.engine.0.store;
        let ended = sessions::delete(store, who.tenant, &who.subject, id).await?;
        ended.ok_or_else(|| Error::missing("session of yours", id))
    }

    /// Ends the sessions that began by one session at the identity provider; without its name, all sessions of the person.
    /// Returns how many sessions ended.
    pub async fn end_of_provider(
        self,
        person: Option<&str>,
        session: Option<&str>,
    ) -> Result<u64, StoreError> {
        let store = &self.engine.0.store;
        sessions::delete_of_provider(store, person, session).await
    }
}
