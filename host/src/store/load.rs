//! What a command needs, in one query: the instance with all its parts, the actor's standing, and the stored reply
//! when the request was answered before.

mod rows;

use jiff::Timestamp;
use sqlx::types::{Json as Column, Uuid};

use self::rows::{AttributeRow, InstanceRow, StayRow, TaskRow};
use super::commit::array;
use super::definitions::stops::listed;
use super::time::Time;
use super::{Store, StoreError};
use crate::domain::actor::{Actor, StandIn};
use crate::domain::audit::Head;
use crate::domain::command::SignalKey;
use crate::domain::ids::{InstanceId, TenantId, VersionRef};
use crate::domain::instance::Instance;

/// Who asks, as the token says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// How many loads one statement may carry.
pub const LOAD_MAX: usize = 32;

/// What is asked beside the instance.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The idempotency key that a reply may be kept under.
    pub key: Option<&'a str>,
    /// The moment at which absences are looked at.
    pub now: Timestamp,
    /// A signal that may have counted.
    pub signal: Option<&'a SignalKey>,
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
    /// What the version consists of that the instance runs under, as of [`VersionRow::content`].
    ///
    /// [`VersionRow::content`]: super::definitions::VersionRow::content
    pub content: Option<Vec<u8>>,
    /// Stands for the tenant's directory, and what anybody may do, as they were: drawn at random with each change, so that
    /// it never comes again, not even in a database that was set back and changed otherwise.
    pub standing: Uuid,
    /// The actor stays what they are until that mark changes: no absence begins or ends for them of itself.
    pub lasting: bool,
    /// The signal asked about, where it has counted already.
    pub signalled: Option<Counted>,
    /// The tenant's versions of which nothing runs, until that mark changes.
    pub stopped: Vec<VersionRef>,
}

/// A signal that has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// SHA-256 over its input; none where an earlier release counted it.
    pub content: Option<Vec<u8>>,
    /// The audit entry by which the instance received it.
    pub entry: Option<Uuid>,
    pub at: Timestamp,
}

/// One load.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub who: Principalship,
    pub instance: InstanceId,
    /// As of [`Asked`].
    pub key: Option<String>,
    pub now: Timestamp,
    pub signal: Option<SignalKey>,
}

impl Wanted {
    /// Nothing but what stands at this moment.
    pub fn of(who: Principalship, instance: InstanceId, now: Timestamp) -> Wanted {
        Wanted {
            who,
            instance,
            key: None,
            now,
            signal: None,
        }
    }
}

/// Loads as columns, ready to travel as arrays.
#[derive(Default)]
struct Columns {
    tenant: Vec<i32>,
    instance: Vec<Uuid>,
    subject: Vec<String>,
    roles: Vec<String>,
    key: Vec<Option<String>>,
    now: Vec<Time>,
    signal: Vec<Option<String>>,
    identity: Vec<Option<Vec<u8>>>,
}

impl Columns {
    fn of(wanted: &[&Wanted]) -> Columns {
        let mut columns = Columns::default();
        for wanted in wanted {
            columns.tenant.push(wanted.who.tenant.0);
            columns.instance.push(wanted.instance.0);
            columns.subject.push(wanted.who.subject.clone());
            columns.roles.push(array(&wanted.who.roles));
            columns.key.push(wanted.key.clone());
            columns.now.push(Time(wanted.now));
            let signal = wanted.signal.as_ref();
            columns.signal.push(signal.map(|key| key.id.clone()));
            columns
                .identity
                .push(signal.map(|key| key.identity(&wanted.who.subject).to_vec()));
        }
        columns
    }
}

impl Store {
    /// Loads for a command on an instance; of a tenant's own instances only.
    pub async fn load(
        &self,
        who: &Principalship,
        instance: InstanceId,
        asked: Asked<'_>,
    ) -> Result<Loaded, StoreError> {
        let wanted = Wanted {
            key: asked.key.map(str::to_owned),
            signal: asked.signal.cloned(),
            ..Wanted::of(who.clone(), instance, asked.now)
        };
        let mut loaded = self.load_together(&[&wanted]).await?;
        loaded.pop().unwrap_or(Err(StoreError::Lost))
    }

    /// Loads for several commands in one statement, at most [`LOAD_MAX`]; the results are in the order of `wanted`.
    pub async fn load_together(
        &self,
        wanted: &[&Wanted],
    ) -> Result<Vec<Result<Loaded, StoreError>>, StoreError> {
        assert!(wanted.len() <= LOAD_MAX);
        let columns = Columns::of(wanted);
        let mut rows = sqlx::query_file!(
            "src/store/load.sql",
            &columns.tenant as _,
            &columns.instance as _,
            &columns.subject as _,
            &columns.roles as _,
            &columns.key as _,
            &columns.now as _,
            &columns.signal as _,
            &columns.identity as _,
        )
        .fetch_all(&self.writer)
        .await?;
        rows.sort_unstable_by_key(|row| row.number);
        let loaded = wanted.iter().zip(rows).map(|(wanted, row)| {
            let found = match row.instance {
                None => None,
                Some(Column(stored)) => {
                    Some(stored.into_domain(row.stays.0, row.tasks.0, row.attributes.0)?)
                }
            };
            Ok(Loaded {
                actor: Actor {
                    id: wanted.who.subject.clone(),
                    groups: row.groups,
                    permissions: row.permissions,
                    on_behalf_of: None,
                    stands_in_for: row.stands_in_for.0,
                },
                reply: StoredReply::of(
                    row.reply_body,
                    row.reply_status,
                    row.reply_fingerprint,
                    row.reply_headers,
                ),
                found,
                content: row.content,
                standing: row.standing,
                lasting: row.lasting,
                signalled: row.signalled_at.map(|at| Counted {
                    content: row.signalled_content.filter(|content| !content.is_empty()),
                    entry: row.signalled_entry,
                    at: at.0,
                }),
                stopped: listed(row.stopped),
            })
        });
        Ok(loaded.collect())
    }
}
