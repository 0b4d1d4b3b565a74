//! Compares the entries of an instance with its rows: the fold with the instance and its tasks, each decision with its row and
//! its seal, and each delegation with its seal.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::Problem;
use crate::record::rows::{DecisionRow, DelegationSealRow, EntryRow, InstanceRow, TaskRow};
use crate::seal::delegation::{self, Delegation};
use crate::seal::{SealKeys, SealVerdict};
use wrkflw_core::apply::{Stamp, apply};
use wrkflw_core::audit::Entry;
use wrkflw_core::event::Event;
use wrkflw_core::ids::{CommandId, InstanceId, StateId, TaskId};
use wrkflw_core::instance::{Decision, Instance, Status};
use wrkflw_core::json::Json;

/// The instance and the decisions that entries record.
#[derive(Default)]
pub(super) struct Recorded {
    instance: Option<Instance>,
    /// An entry could not be folded. The fold ends there.
    stopped: bool,
    /// Each decision with the number of its entry.
    decisions: BTreeMap<TaskId, (u64, Decision)>,
    /// Each delegation or return by the number of its entry.
    delegations: BTreeMap<u64, Delegation>,
    order: Order,
}

/// The ordinal of each state instance within its instance. Within one command, it follows the order in which they were
/// entered.
#[derive(Default)]
struct Order {
    ordinals: BTreeMap<StateId, usize>,
    command: Option<CommandId>,
    /// The state instances that the current command has entered.
    entered: Vec<(Timestamp, StateId)>,
}

impl Order {
    fn take(&mut self, command: CommandId, event: &Event) {
        if self.command != Some(command) {
            self.settle();
            self.command = Some(command);
        }
        let (Event::StateEntered { state, .. } | Event::BranchArrived { state }) = event else {
            return;
        };
        if !self.ordinals.contains_key(&state.id) {
            self.entered.retain(|(_, id)| *id != state.id);
            self.entered.push((state.entered_at, state.id));
        }
    }

    fn settle(&mut self) {
        self.entered.sort_unstable();
        for (_, id) in self.entered.drain(..) {
            let ordinal = self.ordinals.len();
            self.ordinals.insert(id, ordinal);
        }
    }
}

/// The number of decisions or delegations, and of those with a valid seal.
#[derive(Default)]
pub(super) struct Sealed {
    pub(super) count: u64,
    pub(super) valid: u64,
}

impl Recorded {
    /// The instance so far.
    pub(super) fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    /// Whether an entry could not be folded.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The ordinal of this state instance within its instance, from 0. Known after [`Self::end`].
    pub(super) fn ordinal(&self, state_instance: StateId) -> Option<usize> {
        self.order.ordinals.get(&state_instance).copied()
    }

    /// Ends the fold, after the last entry.
    pub(super) fn end(&mut self) {
        self.order.settle();
    }

    /// Folds the next entry.
    pub(super) fn take(&mut self, row: &EntryRow, problems: &mut Vec<Problem>) {
        let Ok(entry) = &row.entry else {
            self.stopped = true;
            return;
        };
        let event = match read(entry) {
            Ok(event) => event,
            Err(detail) => {
                problems.push(Problem::new(Some(entry.seq), "payload", detail));
                self.stopped = true;
                return;
            }
        };
        if let Some((task, decision)) = decision(entry, &event) {
            self.decisions.insert(task, (entry.seq, decision));
        }
        let draft = &entry.draft;
        if let Some(delegation) = Delegation::of(&event, draft.actor.as_deref(), draft.at) {
            self.delegations.insert(entry.seq, delegation);
        }
        if self.stopped {
            return;
        }
        let stamp = Stamp {
            instance: InstanceId(entry.stream.id),
            revision: entry.draft.revision,
            at: entry.draft.at,
            actor: entry.draft.actor.as_deref(),
        };
        self.order.take(entry.draft.command, &event);
        match apply(self.instance.take(), &event, stamp) {
            Ok(instance) => self.instance = Some(instance),
            Err(error) => {
                problems.push(Problem::new(Some(entry.seq), "fold", error.to_string()));
                self.stopped = true;
            }
        }
    }

    /// Compares the folded instance with its row and its tasks.
    pub(super) fn compare(
        &self,
        row: &InstanceRow,
        tasks: &[&TaskRow],
        problems: &mut Vec<Problem>,
    ) {
        if self.stopped {
            let detail = "its entries cannot be folded, so its rows prove nothing";
            problems.push(Problem::new(None, "fold", detail));
            return;
        }
        let Some(instance) = &self.instance else {
            let detail = "the instance has no entries";
            problems.push(Problem::new(None, "fold", detail));
            return;
        };
        of_instance(row, instance, problems);
        of_tasks(tasks, instance, problems);
    }

    /// Compares each decision with its entry and its seal, and reports entries whose decision has no row.
    pub(super) fn decisions(
        &self,
        tasks: &[&TaskRow],
        (seals, tenant): (Option<&SealKeys>, &str),
        problems: &mut Vec<Problem>,
    ) -> Sealed {
        let mut sealed = Sealed::default();
        let mut unmet = self.decisions.clone();
        for task in tasks {
            let Some(stored) = &task.decision else {
                continue;
            };
            sealed.count += 1;
            let recorded = unmet.remove(&task.id);
            let seq = recorded.as_ref().map(|(seq, _)| *seq);
            if let Some((seq, recorded)) = &recorded {
                of_decision(task, *seq, stored, recorded, problems);
            } else {
                let (id, by) = (task.id, &stored.decision.actor);
                let detail =
                    format!("there is a decision of task {id} by {by}, but no entry records it");
                problems.push(Problem::new(None, "decision_unrecorded", detail));
            }
            if let Some(seals) = seals {
                match seal(seals, tenant, task, stored) {
                    Ok(()) => sealed.valid += 1,
                    Err((code, detail)) => problems.push(Problem::new(seq, code, detail)),
                }
            }
        }
        for (task, (seq, _)) in unmet {
            let detail = format!("the decision of task {task} has no row");
            problems.push(Problem::new(Some(seq), "decision_missing", detail));
        }
        sealed
    }

    /// Checks the seal of each delegation and return, and reports entries without a seal and seals without an entry.
    pub(super) fn delegations(
        &self,
        row: &InstanceRow,
        (seals, tenant): (Option<&SealKeys>, &str),
        problems: &mut Vec<Problem>,
    ) -> Sealed {
        let mut sealed = Sealed::default();
        let mut unmet = self.delegations.clone();
        for stored in &row.delegation_seals {
            sealed.count += 1;
            let Some(delegation) = unmet.remove(&stored.seq) else {
                let seq = stored.seq;
                let detail = format!("there is a seal of entry {seq}, which is no delegation");
                problems.push(Problem::new(Some(seq), "delegation_unrecorded", detail));
                continue;
            };
            let Some(seals) = seals else { continue };
            let DelegationSealRow {
                key_id,
                mac_version,
                mac,
                ..
            } = stored;
            let seal = (key_id.as_str(), *mac_version, mac.as_slice());
            let verdict = delegation::verdict(seals, seal, tenant, row.id, &delegation);
            let what = format!("delegation of task {}", delegation.task);
            match against(verdict, &what, (key_id, *mac_version)) {
                None => sealed.valid += 1,
                Some((code, detail)) => {
                    problems.push(Problem::new(Some(stored.seq), code, detail));
                }
            }
        }
        for (seq, delegation) in unmet {
            let detail = format!("the delegation of task {} has no seal", delegation.task);
            problems.push(Problem::new(Some(seq), "delegation_missing", detail));
        }
        sealed
    }
}

/// The event of an entry. Fails if the entry's columns do not fit it.
fn read(entry: &Entry) -> Result<Event, String> {
    let draft = &entry.draft;
    let event: Event = serde_json::from_str(draft.payload.as_str())
        .map_err(|error| format!("its payload cannot be read: {error}"))?;
    if event.kind() != draft.kind {
        let kind = event.kind();
        return Err(format!(
            "its payload is a {kind}, and its type {}",
            draft.kind
        ));
    }
    if event.task() != draft.task {
        return Err("its payload and its column name different tasks".to_owned());
    }
    Ok(event)
}

/// The decision that an event records.
fn decision(entry: &Entry, event: &Event) -> Option<(TaskId, Decision)> {
    let Event::DecisionRecorded {
        task,
        outcome,
        on_behalf_of,
        comment,
        input,
        ..
    } = event
    else {
        return None;
    };
    let decision = Decision {
        outcome: outcome.clone(),
        actor: entry.draft.actor.clone().unwrap_or_default(),
        on_behalf_of: on_behalf_of.clone(),
        comment: comment.clone(),
        input: input.clone(),
        decided_at: entry.draft.at,
    };
    Some((*task, decision))
}

/// Reports where a row and the entries differ. `code` is that of the row.
fn differs<T: PartialEq + Serialize>(
    (code, name): (&'static str, &str),
    stored: &T,
    recorded: &T,
    problems: &mut Vec<Problem>,
) {
    if stored != recorded {
        let (stored, recorded) = (Json::of(stored), Json::of(recorded));
        let detail = format!("{name} is {stored}, but its audit entries say {recorded}");
        problems.push(Problem::new(None, code, detail));
    }
}

/// The same for texts of people. They may be confidential, so their values are not shown.
fn differs_hidden<T: PartialEq>(
    (code, name): (&'static str, &str),
    stored: &T,
    recorded: &T,
    problems: &mut Vec<Problem>,
) {
    if stored != recorded {
        let detail = format!("{name} is not what its audit entries say");
        problems.push(Problem::new(None, code, detail));
    }
}

fn of_instance(row: &InstanceRow, folded: &Instance, problems: &mut Vec<Problem>) {
    let (mut outcome, mut ended, mut suspended) = (None, (None, None), (None, None));
    match folded.status.clone() {
        Status::Running => {}
        Status::Suspended { reason, by, .. } => suspended = (Some(reason), Some(by)),
        Status::Completed { outcome: with, .. } => outcome = Some(with),
        Status::Cancelled { reason, by, .. } => ended = (Some(reason), Some(by)),
    }
    let status = folded.status.name().to_owned();
    let at = |name| ("instance", name);
    differs(at("status"), &row.status, &status, problems);
    differs(at("revision"), &row.revision, &folded.revision, problems);
    differs(at("outcome"), &row.outcome, &outcome, problems);
    differs_hidden(at("end_reason"), &row.end_reason, &ended.0, problems);
    differs(at("ended_by"), &row.ended_by, &ended.1, problems);
    differs_hidden(
        at("suspend_reason"),
        &row.suspend_reason,
        &suspended.0,
        problems,
    );
    differs(
        at("suspended_by"),
        &row.suspended_by,
        &suspended.1,
        problems,
    );
    differs(
        at("definition"),
        &row.definition,
        &folded.definition,
        problems,
    );
    differs(at("entity"), &row.entity, &folded.entity, problems);
    differs(at("initiator"), &row.initiator, &folded.initiator, problems);
    differs(
        at("requesters"),
        &row.requesters,
        &folded.requesters,
        problems,
    );
    differs(
        at("predecessor"),
        &row.predecessor,
        &folded.predecessor,
        problems,
    );
    differs(at("parent"), &row.parent, &folded.parent, problems);
    // The data may be confidential, so it is not shown.
    if row.data != folded.data.as_str() {
        let detail = "data is not what its audit entries say";
        problems.push(Problem::new(None, "instance", detail));
    }
}

fn of_tasks(rows: &[&TaskRow], folded: &Instance, problems: &mut Vec<Problem>) {
    let mut recorded: BTreeMap<_, _> = folded
        .state_instances()
        .flat_map(|state_instance| {
            state_instance
                .tasks
                .iter()
                .map(|task| (task.id, (state_instance.id, task)))
        })
        .collect();
    for row in rows {
        let Some((state_instance, task)) = recorded.remove(&row.id) else {
            let detail = format!("there is a task {}, but no entry records it", row.id);
            problems.push(Problem::new(None, "task", detail));
            continue;
        };
        let at = |what: &str| format!("{what} of task {}", row.id);
        let (status, owner) = (
            task.status.name().to_owned(),
            task.owner().map(str::to_owned),
        );
        differs(
            ("task", &at("state")),
            &row.state,
            &state_instance,
            problems,
        );
        differs(("task", &at("status")), &row.status, &status, problems);
        differs(("task", &at("owner")), &row.owner, &owner, problems);
    }
    for id in recorded.keys() {
        problems.push(Problem::new(None, "task", format!("task {id} has no row")));
    }
}

fn of_decision(
    task: &TaskRow,
    seq: u64,
    stored: &DecisionRow,
    recorded: &Decision,
    problems: &mut Vec<Problem>,
) {
    let Decision {
        outcome,
        actor,
        on_behalf_of,
        comment,
        input,
        decided_at,
    } = &stored.decision;
    let shown = |name: &str, stored: Json, recorded: Json| {
        (stored != recorded).then(|| format!("{name} is {stored}, and the entry says {recorded}"))
    };
    // Texts of people may be confidential, so they are not shown.
    let hidden =
        |name: &str, same: bool| (!same).then(|| format!("{name} is not what the entry says"));
    let differences = [
        shown("outcome", Json::of(outcome), Json::of(&recorded.outcome)),
        shown("actor", Json::of(actor), Json::of(&recorded.actor)),
        shown(
            "on_behalf_of",
            Json::of(on_behalf_of),
            Json::of(&recorded.on_behalf_of),
        ),
        shown(
            "decided_at",
            Json::of(decided_at),
            Json::of(&recorded.decided_at),
        ),
        shown(
            "instance_id",
            Json::of(&stored.instance),
            Json::of(&task.instance),
        ),
        hidden("comment", *comment == recorded.comment),
        hidden("input", *input == recorded.input),
    ];
    for difference in differences.into_iter().flatten() {
        let detail = format!("decision of task {}: {difference}", task.id);
        problems.push(Problem::new(Some(seq), "decision", detail));
    }
}

fn seal(
    seals: &SealKeys,
    tenant: &str,
    task: &TaskRow,
    stored: &DecisionRow,
) -> Result<(), (&'static str, String)> {
    let (id, key) = (task.id, &stored.key_id);
    let verdict = seals.verdict(
        (key, stored.mac_version, &stored.mac),
        tenant,
        (stored.instance, id),
        &stored.decision,
    );
    let what = format!("decision of task {id}");
    against(verdict, &what, (key, stored.mac_version)).map_or(Ok(()), Err)
}

/// The code and the detail of a finding about the seal of a decision or delegation, by the verdict.
fn against(
    verdict: SealVerdict,
    what: &str,
    (key, version): (&str, i16),
) -> Option<(&'static str, String)> {
    match verdict {
        SealVerdict::Valid => None,
        SealVerdict::Invalid => {
            let detail = format!("the {what} is not as it was sealed with key {key}");
            Some(("seal", detail))
        }
        SealVerdict::UnknownKey => {
            let detail = format!("no key named {key}, which sealed the {what}");
            Some(("seal_key", detail))
        }
        SealVerdict::UnknownVersion => {
            let detail = format!(
                "the {what} has a seal of version {version}, which this program does not know"
            );
            Some(("seal_version", detail))
        }
    }
}
