//! What a command needs, in one query: the instance with all its parts, the actor's groups and permissions, and the stored reply
//! when the request was answered before.

mod rows;

use jiff::Timestamp;
use sqlx::types::{Json as Column, Uuid};

use self::rows::InstanceRow;
use super::definitions::stops::listed;
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::actor::{Actor, StandIn};
use wrkflw_core::audit::Head;
use wrkflw_core::command::SignalKey;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::instance::Instance;

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
    pub state_instances: u32,
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
    /// Key of the definition of which an instance is to be started.
    pub definition: Option<&'a str>,
}

impl Asked<'_> {
    /// Nothing but what stands at this moment.
    pub fn at(now: Timestamp) -> Asked<'static> {
        Asked {
            key: None,
            now,
            signal: None,
            definition: None,
        }
    }
}

/// What was found. The instance comes as the database writes it; reading it may take long.
#[derive(Debug)]
pub struct Loaded<I = Stored> {
    pub actor: Actor,
    pub reply: Option<StoredReply>,
    pub found: Option<I>,
    /// The definition of which an instance is to be started, if there is one of that key.
    pub definition: Option<Startable>,
    /// What the version consists of that the instance runs under or would be started under, as of [`VersionRow::content`].
    ///
    /// [`VersionRow::content`]: super::definitions::VersionRow::content
    pub content: Option<Vec<u8>>,
    /// Stands for the tenant's directory, and what anybody may do, as they were: drawn at random with each change, so that
    /// it never comes again, not even in a database that was set back and changed otherwise.
    pub access_mark: Uuid,
    /// The actor stays what they are until that mark changes: no absence begins or ends for them of itself.
    pub lasting: bool,
    /// The signal asked about, where it has counted already.
    pub signalled: Option<Counted>,
    /// The tenant's versions of which nothing runs, until that mark changes.
    pub stopped: Vec<VersionRef>,
}

/// A definition of which instances may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Startable {
    /// None where no version is active.
    pub active_version: Option<u32>,
}

/// An instance with all its parts, as JSON made by the query.
#[derive(Debug)]
pub struct Written {
    instance: String,
    state_instances: String,
    tasks: String,
    attributes: String,
}

impl Written {
    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.instance.len() + self.state_instances.len() + self.tasks.len() + self.attributes.len()
    }

    fn read(self) -> Result<Stored, StoreError> {
        let row: InstanceRow = rows::read("instance", &self.instance)?;
        let state_instances = rows::read("state_instance", &self.state_instances)?;
        let tasks = rows::read("task", &self.tasks)?;
        let attributes = rows::read("attribute", &self.attributes)?;
        row.into_domain(state_instances, tasks, attributes)
    }
}

impl Loaded<Written> {
    /// Reads the instance.
    pub fn read(self) -> Result<Loaded, StoreError> {
        let found = self.found.map(Written::read).transpose()?;
        Ok(Loaded {
            found,
            actor: self.actor,
            reply: self.reply,
            definition: self.definition,
            content: self.content,
            access_mark: self.access_mark,
            lasting: self.lasting,
            signalled: self.signalled,
            stopped: self.stopped,
        })
    }
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
    pub definition: Option<String>,
}

impl Wanted {
    /// This as well.
    pub fn asking(who: Principalship, instance: InstanceId, asked: Asked<'_>) -> Wanted {
        Wanted {
            key: asked.key.map(str::to_owned),
            signal: asked.signal.cloned(),
            definition: asked.definition.map(str::to_owned),
            ..Wanted::of(who, instance, asked.now)
        }
    }

    /// Nothing but what stands at this moment.
    pub fn of(who: Principalship, instance: InstanceId, now: Timestamp) -> Wanted {
        Wanted {
            who,
            instance,
            key: None,
            now,
            signal: None,
            definition: None,
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
    definition: Vec<Option<String>>,
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
            columns.definition.push(wanted.definition.clone());
        }
        columns
    }
}

impl Store {
    /// Loads for a command on an instance; of a tenant's own instances only.
    pub async fn load(&self, wanted: &Wanted) -> Result<Loaded<Written>, StoreError> {
        let mut loaded = self.load_together(&[wanted]).await?;
        loaded.pop().ok_or(StoreError::Lost)
    }

    /// Loads for several commands in one statement, at most [`LOAD_MAX`]; the results are in the order of `wanted`.
    pub async fn load_together(
        &self,
        wanted: &[&Wanted],
    ) -> Result<Vec<Loaded<Written>>, StoreError> {
        assert!(wanted.len() <= LOAD_MAX);
        let columns = Columns::of(wanted);
        let mut rows = sqlx::query_file!(
            "src/load.sql",
            &columns.tenant as _,
            &columns.instance as _,
            &columns.subject as _,
            &columns.roles as _,
            &columns.key as _,
            &columns.now as _,
            &columns.signal as _,
            &columns.identity as _,
            &columns.definition as _,
        )
        .fetch_all(&self.writer)
        .await?;
        rows.sort_unstable_by_key(|row| row.number);
        let loaded = wanted.iter().zip(rows).map(|(wanted, row)| {
            let found = row.instance.map(|instance| Written {
                instance,
                state_instances: row.state_instances,
                tasks: row.tasks,
                attributes: row.attributes,
            });
            Loaded {
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
                definition: row.definition.map(|_| Startable {
                    active_version: row
                        .active_version
                        .and_then(|version| u32::try_from(version).ok()),
                }),
                content: row.content,
                access_mark: row.access_mark,
                lasting: row.lasting,
                signalled: row.signalled_at.map(|at| Counted {
                    content: row.signalled_content.filter(|content| !content.is_empty()),
                    entry: row.signalled_entry,
                    at: at.0,
                }),
                stopped: listed(row.stopped),
            }
        });
        Ok(loaded.collect())
    }
}

/// An array inside an array does not travel; its text does.
fn array(items: &[impl ToString]) -> String {
    let mut text = String::from("{");
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index > 0 { ",\"" } else { "\"" });
        for letter in item.to_string().chars() {
            if matches!(letter, '"' | '\\') {
                text.push('\\');
            }
            text.push(letter);
        }
        text.push('"');
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_text_keeps_what_ids_may_contain() {
        assert_eq!(
            array(&["a", "b,c", "d\"e\\f", ""]),
            r#"{"a","b,c","d\"e\\f",""}"#
        );
        assert_eq!(array(&[] as &[String]), "{}");
    }
}
