//! What a command needs, in one query: the instance with all its parts, the actor's standing, and the stored reply
//! when the request was answered before.

mod rows;

use jiff::Timestamp;
use sqlx::types::Json as Column;

use self::rows::{AttributeRow, InstanceRow, StayRow, TaskRow};
use super::time::Time;
use super::{Store, StoreError};
use crate::domain::actor::{Actor, StandIn};
use crate::domain::audit::Head;
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::instance::Instance;

/// The newest stays already left that flow logic is shown.
pub const PAST_MAX: i32 = 100;

/// Who asks, as the token says.
#[derive(Debug, Clone)]
pub struct Principalship {
    pub tenant: TenantId,
    pub subject: String,
    pub roles: Vec<String>,
}

/// A reply that is repeated for the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply {
    pub fingerprint: Vec<u8>,
    pub status: u16,
    pub body: String,
    pub headers: String,
}

impl StoredReply {
    /// From the columns of an outer join: none of them is null, or all.
    pub(super) fn of(
        body: Option<String>,
        status: Option<i16>,
        fingerprint: Option<Vec<u8>>,
        headers: Option<String>,
    ) -> Option<StoredReply> {
        let status = u16::try_from(status?).ok()?;
        Some(StoredReply {
            fingerprint: fingerprint?,
            status,
            body: body?,
            headers: headers?,
        })
    }
}

/// An instance with what the store keeps beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub instance: Instance,
    /// The end of its audit stream.
    pub head: Head,
    /// How many state instances it has had.
    pub stays: u32,
}

/// What is asked beside the instance.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The idempotency key that a reply may be kept under.
    pub key: Option<&'a str>,
    /// The moment at which absences are looked at.
    pub now: Timestamp,
    /// The id of a signal that may have counted.
    pub signal: Option<&'a str>,
}

impl Asked<'_> {
    /// Nothing but what stands at this moment.
    pub fn at(now: Timestamp) -> Asked<'static> {
        Asked {
            key: None,
            now,
            signal: None,
        }
    }
}

/// What was found.
#[derive(Debug)]
pub struct Loaded {
    pub actor: Actor,
    pub reply: Option<StoredReply>,
    pub found: Option<Stored>,
    /// Counts the changes of the directory so far.
    pub directory: u64,
    /// The signal asked about has counted already.
    pub signalled: bool,
}

impl Store {
    /// Loads for a command on an instance; of a tenant's own instances only.
    pub async fn load(
        &self,
        who: &Principalship,
        instance: InstanceId,
        asked: Asked<'_>,
    ) -> Result<Loaded, StoreError> {
        let row = sqlx::query_file!(
            "src/store/load.sql",
            who.tenant.0,
            instance.0,
            &who.subject,
            &who.roles,
            asked.key,
            PAST_MAX,
            Time(asked.now) as _,
            asked.signal
        )
        .fetch_one(&self.writer)
        .await?;
        let actor = Actor {
            id: who.subject.clone(),
            groups: row.groups,
            permissions: row.permissions,
            on_behalf_of: None,
            stands_in_for: row.stands_in_for.0,
        };
        let reply = StoredReply::of(
            row.reply_body,
            row.reply_status,
            row.reply_fingerprint,
            row.reply_headers,
        );
        let found = match row.instance {
            None => None,
            Some(Column(stored)) => {
                Some(stored.into_domain(row.stays.0, row.tasks.0, row.attributes.0)?)
            }
        };
        Ok(Loaded {
            actor,
            reply,
            found,
            directory: row.directory.cast_unsigned(),
            signalled: row.signalled,
        })
    }
}
