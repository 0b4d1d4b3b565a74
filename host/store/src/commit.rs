//! The only write path of instances: one statement takes changes and returns a result for each.
//!
//! A change is conditional on the revision it was computed from. It is applied completely - instance, state instances, tasks,
//! decision, attributes, audit entries, outbox rows and the reply to its idempotency key - or not at all.

mod rows;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use self::rows::Rows;
use crate::load::{Stored, StoredReply};
use crate::{Store, StoreError};
use wrkflw_audit::seal::Seal;
use wrkflw_audit::seal::delegation::DelegationSeal;
use wrkflw_core::audit::{Entry, Head};
use wrkflw_core::command::SignalKey;
use wrkflw_core::ids::{CommandId, StateId, TenantId};
use wrkflw_core::instance::{ChildInstance, Instance};
use wrkflw_core::participant::Participant;

pub use rows::jobs::{cancelling, matching, reassessing, telling};
pub(crate) use rows::partition;
pub use rows::{PARTITIONS, row_types};

/// Limit of the changes in one statement. Larger batches are not faster.
pub const BATCH_MAX: usize = 32;

/// The effect of one command, or of several consecutive ones, on one instance.
#[derive(Debug)]
pub struct Change {
    pub tenant: TenantId,
    /// The first command.
    pub command: CommandId,
    /// The instance as loaded; none for a start.
    pub before: Option<Arc<Stored>>,
    /// The [`Loaded::access_mark`] of cached data by which the command was evaluated; none if the data was loaded for it.
    /// With a mark, the change is also stale if the mark or the end of the audit stream of `before` has changed.
    ///
    /// [`Loaded::access_mark`]: crate::load::Loaded::access_mark
    pub access_mark: Option<Uuid>,
    pub after: Instance,
    /// The new audit entries. They continue the stream of `before`.
    pub entries: Vec<Entry>,
    /// The seals of the decisions that `after` has and `before` has not.
    pub seals: Vec<Seal>,
    /// The seals of the delegations and returns among the new entries.
    pub delegation_seals: Vec<DelegationSeal>,
    /// The replies for repeated requests. Either all are stored or none: if only some of the keys are free, the statement fails.
    pub replies: Vec<KeyedReply>,
    /// The signals among the commands. Each counts once.
    pub signals: Vec<Signalled>,
    /// The people and groups that became participants by the commands.
    pub participants: Vec<Participant>,
    /// To whom the commands gave tasks.
    pub allocations: Vec<Allocated>,
    /// The jobs that the commands complete.
    pub done: Vec<Uuid>,
    /// The due time of jobs that are due at once, by the clock of this host. The time of the entries may be far ahead, because the
    /// clock of a host that wrote earlier entries was ahead.
    pub now: Timestamp,
}

impl Change {
    /// The instance as the database has it after this change.
    pub fn leaves(&self) -> Stored {
        stored(self.after.clone(), self.head(), self.state_instances())
    }

    /// The same, without copying.
    pub fn into_left(self) -> Stored {
        let (head, state_instances) = (self.head(), self.state_instances());
        stored(self.after, head, state_instances)
    }

    /// The number of state instances so far.
    fn state_instances(&self) -> u32 {
        let known = self.known();
        let entered = self
            .after
            .state_instances()
            .filter(|state_instance| !known.contains(&state_instance.id));
        let entered = u32::try_from(entered.count()).expect("far fewer than a u32 counts");
        let before = self.before.as_ref();
        before.map_or(0, |stored| stored.state_instances) + entered
    }

    /// The state instances from before this change.
    fn known(&self) -> BTreeSet<StateId> {
        let before = self.before.iter();
        before
            .flat_map(|stored| stored.instance.state_instances())
            .map(|state_instance| state_instance.id)
            .collect()
    }

    /// The detached children of the state instances that this change both enters and leaves, each with its state instance. They
    /// start, although their state is active neither before nor after the change.
    pub(crate) fn children_of_passed_states(&self) -> Vec<(StateId, &ChildInstance)> {
        let past = self.after.past.iter().map(|past| &past.state);
        let mut found: Vec<_> = past
            .flat_map(|state_instance| {
                let children = state_instance.children.iter();
                let detached = children.filter(|child| child.detached && child.outcome.is_none());
                detached.map(move |child| (state_instance.id, child))
            })
            .collect();
        if !found.is_empty() {
            let known = self.known();
            found.retain(|(state, _)| !known.contains(state));
        }
        found
    }

    /// The head of the audit stream after this change.
    pub(super) fn head(&self) -> Head {
        let known = self.before.as_ref().map(|stored| &stored.head);
        let mut entries = self.entries.iter().rev();
        let event_seq = entries.find_map(|entry| entry.event_seq);
        let last = self.entries.last();
        Head {
            seq: last.map_or(0, |entry| entry.seq),
            hash: last.map_or([0; 32], |entry| entry.hash),
            event_seq: event_seq.unwrap_or_else(|| known.map_or(0, |head| head.event_seq)),
        }
    }

    /// Whether other people may see the instance by its definition than before, because it was migrated.
    pub(super) fn is_resighted(&self) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| {
            before.instance.observers.is_some() != self.after.observers.is_some()
        })
    }

    /// Joins this change and the next one, which was computed from its result.
    pub fn join(&mut self, next: Change) {
        assert_eq!(
            next.before.as_ref().map(|before| before.instance.revision),
            Some(self.after.revision)
        );
        self.after = next.after;
        self.entries.extend(next.entries);
        self.seals.extend(next.seals);
        self.delegation_seals.extend(next.delegation_seals);
        self.replies.extend(next.replies);
        self.signals.extend(next.signals);
        self.participants.extend(next.participants);
        self.allocations.extend(next.allocations);
        self.done.extend(next.done);
        self.now = next.now;
    }
}

/// Sorts the instance as a load does, and frees unused memory, because the instance may be cached for long.
fn stored(mut instance: Instance, head: Head, state_instances: u32) -> Stored {
    instance.sort();
    instance.shrink_to_fit();
    Stored {
        instance,
        head,
        state_instances,
    }
}

/// A reply under an idempotency key.
#[derive(Debug, Clone)]
pub struct KeyedReply {
    pub principal: String,
    pub key: String,
    pub reply: StoredReply,
}

/// A signal that the instance counts with this change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signalled {
    pub key: SignalKey,
    pub sender: String,
    /// SHA-256 over its input.
    pub content: [u8; 32],
    /// The audit entry by which the instance received it.
    pub entry: Option<Uuid>,
}

/// A task that the host gave to a person by choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocated {
    /// The key of its definition, and its state.
    pub definition: String,
    pub state: String,
    pub person: String,
    pub at: Timestamp,
}

/// The results of the changes of one statement.
#[derive(Debug)]
pub struct Committed {
    /// One for each change, in their order.
    pub results: Vec<CommitResult>,
    /// Whether the statement added jobs that are due at once: all kinds but deadlines.
    pub leaves_work: bool,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitResult {
    Applied,
    /// The instance or the access mark has changed since it was loaded.
    Stale,
    /// The idempotency key belongs to another command. Or, for a start or a migration to a version that is sole per
    /// entity: another instance about the entity runs already.
    Taken,
}

/// Applies each change whose instance has not changed since it was loaded. The results are in the order of the changes.
/// There are at most [`BATCH_MAX`] changes, of different instances.
///
/// The whole statement fails and writes nothing if the database refuses the values of one member, or another
/// transaction locks the row of one. The same happens if a concurrent statement takes the idempotency key of a start.
/// For a single start, the result is then `Taken`. After a broken connection the result of every member is unknown.
pub async fn commit(store: &Store, changes: &[&Change]) -> Result<Committed, StoreError> {
    assert!(changes.len() <= BATCH_MAX);
    let rows = Rows::of(changes);
    let verdicts = if rows.has_rare() {
        write_all(store, &rows).await
    } else {
        write_common(store, &rows).await
    };
    let verdicts = match verdicts.map_err(StoreError::from) {
        // A concurrent statement has taken the idempotency key of the start.
        Err(error) if is_start(changes) && error.violates("idempotency_key_pkey") => {
            return Ok(Committed {
                results: vec![CommitResult::Taken],
                leaves_work: false,
            });
        }
        verdicts => verdicts?,
    };
    Ok(Committed {
        results: verdicts.iter().map(MemberResult::read).collect(),
        leaves_work: verdicts.iter().any(|verdict| verdict.leaves_work),
    })
}

async fn write_all(store: &Store, rows: &Rows<'_>) -> Result<Vec<MemberResult>, sqlx::Error> {
    sqlx::query_file_as!(
        MemberResult,
        "src/commit/commit.sql",
        &rows.members as _,
        &rows.replies as _,
        &rows.starts as _,
        &rows.entered as _,
        &rows.departed as _,
        &rows.changed_states as _,
        &rows.created as _,
        &rows.changed as _,
        &rows.offered as _,
        &rows.withdrawn as _,
        &rows.decided as _,
        &rows.attributes as _,
        &rows.entries as _,
        &rows.finished as _,
        &rows.jobs as _,
        &rows.signals as _,
        &rows.allocations as _,
        &rows.subscribed as _,
        &rows.unsubscribed as _,
        &rows.reoffered as _,
        &rows.delegation_seals as _,
        &rows.participants as _,
    )
    .fetch_all(&store.writer)
    .await
}

/// Writes rows without rare kinds, by [`COMMON`]. The parameters are those of `write_all` in the same order, without the rare ones.
async fn write_common(store: &Store, rows: &Rows<'_>) -> Result<Vec<MemberResult>, sqlx::Error> {
    sqlx::query_as(AssertSqlSafe(COMMON.as_str()))
        .bind(&rows.members)
        .bind(&rows.replies)
        .bind(&rows.entered)
        .bind(&rows.departed)
        .bind(&rows.created)
        .bind(&rows.changed)
        .bind(&rows.offered)
        .bind(&rows.withdrawn)
        .bind(&rows.decided)
        .bind(&rows.entries)
        .fetch_all(&store.writer)
        .await
}

/// The result of the statement for one member.
#[derive(sqlx::FromRow)]
struct MemberResult {
    /// Of the statement. The statement without its rare parts adds no jobs.
    #[sqlx(default)]
    leaves_work: bool,
    applied: bool,
    revision_ok: bool,
}

impl MemberResult {
    fn read(&self) -> CommitResult {
        match (self.applied, self.revision_ok) {
            (true, _) => CommitResult::Applied,
            (false, false) => CommitResult::Stale,
            (false, true) => CommitResult::Taken,
        }
    }
}

/// The statement without its rare parts. It saves the database 0.13 of 1.0 ms for a single commit, and nothing in a batch of
/// 16.
static COMMON: LazyLock<String> = LazyLock::new(|| common(include_str!("commit/commit.sql")));

/// Leaves out the rare parts of the statement, renumbers its parameters, and gives its columns plain names.
pub fn common(statement: &str) -> String {
    let mut is_rare = false;
    let kept = statement.lines().filter(|line| {
        let marker = line.trim_start();
        is_rare |= marker == "-- {rare";
        let keeps = !is_rare && !marker.starts_with("--");
        is_rare &= marker != "-- }rare";
        keeps
    });
    let kept = kept.collect::<Vec<_>>().join("\n");
    let mut parts = kept.split("unnest($");
    let mut common = vec![parts.next().unwrap_or_default().to_owned()];
    common.extend((1..).zip(parts).map(|(number, part)| {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        format!("unnest(${number}{rest}")
    }));
    let common = common.concat();
    common.replace("!\"", "\"")
}

/// Whether there is one change, and it is a start.
fn is_start(changes: &[&Change]) -> bool {
    matches!(changes, [change] if change.before.is_none())
}

#[cfg(test)]
mod tests;
