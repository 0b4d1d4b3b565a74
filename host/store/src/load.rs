//! Loads everything that a command needs in one query: the instance with all its parts, the actor's groups and permissions, and
//! the stored reply if the request was answered before.

mod parts;
mod rows;

use std::sync::Arc;

use jiff::Timestamp;
use sqlx::types::{Json as Column, Uuid};

pub use self::parts::{WrittenParts, parts};
use self::rows::InstanceRow;
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::actor::{Actor, StandIn};
use wrkflw_core::audit::Head;
use wrkflw_core::command::SignalKey;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::instance::Instance;

/// The caller, as the token says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
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
    /// From the columns of an outer join, which are all null or all set.
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

/// An instance, with the columns that its domain type does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub instance: Instance,
    /// The head of its audit stream.
    pub head: Head,
    /// The number of its state instances so far.
    pub state_instances: u32,
}

/// Limit of the loads in one statement.
pub const LOAD_MAX: usize = 32;

/// What to load beside the instance.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The idempotency key of the request, which may have a stored reply.
    pub key: Option<&'a str>,
    /// The moment for which absences are read.
    pub now: Timestamp,
    /// A signal that the instance may have counted already.
    pub signal: Option<&'a SignalKey>,
    /// The key of the definition, for a start.
    pub definition: Option<&'a str>,
}

impl LoadOptions<'_> {
    /// Nothing more than the instance and the actor at this moment.
    pub fn at(now: Timestamp) -> LoadOptions<'static> {
        LoadOptions {
            key: None,
            now,
            signal: None,
            definition: None,
        }
    }
}

/// The result of a load. The instance is first JSON of the database, because parsing it may take long.
#[derive(Debug)]
pub struct Loaded<I = Stored> {
    pub actor: Arc<Actor>,
    pub reply: Option<StoredReply>,
    pub found: Option<I>,
    /// The definition of a start, if it exists.
    pub definition: Option<Startable>,
    /// The [`VersionRow::content`] of the instance's version, or of the one for a start.
    ///
    /// [`VersionRow::content`]: super::definitions::VersionRow::content
    pub content: Option<Vec<u8>>,
    /// An id that changes with every change of the tenant's directory, roles and stopped versions. It is random, so it never
    /// repeats, even if a restored database is changed differently.
    pub access_mark: Uuid,
    /// Whether the actor is valid until the access mark changes, because no absence that concerns the actor begins or ends.
    pub lasting: bool,
    /// The signal that was asked about, if the instance has counted it.
    pub signalled: Option<Counted>,
    /// The tenant's stopped versions, valid until the access mark changes.
    pub stopped: Vec<VersionRef>,
}

/// A definition of which instances may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Startable {
    /// None if no version is active.
    pub active_version: Option<u32>,
}

/// An instance with all its parts, as JSON of the query.
#[derive(Debug)]
pub struct Written {
    instance: String,
    state_instances: String,
    tasks: String,
    attributes: String,
}

impl Written {
    /// Its size in bytes.
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
    /// Parses the instance.
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

/// A signal that an instance has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// SHA-256 over its input; none if an earlier release counted it.
    pub content: Option<Vec<u8>>,
    /// The audit entry by which the instance received it.
    pub entry: Option<Uuid>,
    pub at: Timestamp,
}

/// One load of a statement.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub who: Caller,
    pub instance: InstanceId,
    /// As in [`LoadOptions`].
    pub key: Option<String>,
    pub now: Timestamp,
    pub signal: Option<SignalKey>,
    pub definition: Option<String>,
}

impl Wanted {
    /// Everything that is asked.
    pub fn asking(who: Caller, instance: InstanceId, options: LoadOptions<'_>) -> Wanted {
        Wanted {
            key: options.key.map(str::to_owned),
            signal: options.signal.cloned(),
            definition: options.definition.map(str::to_owned),
            ..Wanted::of(who, instance, options.now)
        }
    }

    /// Nothing more than the instance and the actor at this moment.
    pub fn of(who: Caller, instance: InstanceId, now: Timestamp) -> Wanted {
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

/// The parameters of the statement: arrays with one element for each load.
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

/// Loads for one command. Finds only instances of the caller's tenant.
pub async fn load(store: &Store, wanted: &Wanted) -> Result<Loaded<Written>, StoreError> {
    let mut loaded = load_together(store, &[wanted]).await?;
    loaded.pop().ok_or(StoreError::Lost)
}

/// Loads for several commands in one statement, at most [`LOAD_MAX`]. The results are in the order of `wanted`.
pub async fn load_together(
    store: &Store,
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
    .fetch_all(&store.writer)
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
            actor: Arc::new(Actor {
                id: wanted.who.subject.clone(),
                groups: row.groups,
                permissions: row.permissions,
                on_behalf_of: None,
                stands_in_for: row.stands_in_for.0,
            }),
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
            stopped: stopped(row.stopped),
        }
    });
    Ok(loaded.collect())
}

/// Parses the stopped versions as the database lists them: the key, a space and the number.
fn stopped(versions: Vec<String>) -> Vec<VersionRef> {
    let version = |text: String| {
        let (key, version) = text.rsplit_once(' ')?;
        Some(VersionRef {
            key: key.to_owned(),
            version: version.parse().ok()?,
        })
    };
    versions.into_iter().filter_map(version).collect()
}

/// The text form of an array. PostgreSQL has no arrays of arrays of different lengths.
pub(super) fn array(items: &[impl ToString]) -> String {
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
