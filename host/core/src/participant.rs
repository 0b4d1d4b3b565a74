//! Who sees a restricted instance: its participants, their managers, and observers.
//!
//! The database has a row for each participant, and answers the same question for lists (`migrations/0012_grant_roles.sql`).

use std::collections::BTreeSet;

use super::actor::Actor;
use super::event::Event;
use super::instance::{Instance, Task, TaskStatus};

/// The permission to see every instance.
pub const READ_ALL: &str = "instance:read-all";

/// The kind of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A person: a requester, a candidate, an owner, or somebody who decided, was acted for, or was mentioned.
    User,
    /// A group to which a task was offered. Its members see the instance while they are members.
    Group,
    /// An observer group of the version. `Instance::observers` decides whether it sees the instance; the row only speeds up lists.
    Observer,
}

impl Kind {
    /// The kind as stored.
    pub fn name(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Group => "group",
            Kind::Observer => "observer",
        }
    }
}

/// A person or group that takes part in an instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Participant {
    pub kind: Kind,
    pub id: String,
}

/// Who sees one instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Circle {
    /// None: everybody of the tenant.
    pub observers: Option<Vec<String>>,
    pub users: Vec<String>,
    pub groups: Vec<String>,
    /// The managers of `users`, where they were looked up.
    pub managers: Vec<String>,
}

impl Circle {
    /// The circle from the instance alone. It lacks managers, people who gave a task back, and people who were only mentioned. The
    /// database has these.
    pub fn of(instance: &Instance) -> Circle {
        let mut circle = Circle {
            observers: instance.observers.clone(),
            ..Circle::default()
        };
        for Participant { kind, id } in named(instance) {
            match kind {
                Kind::User => circle.users.push(id),
                Kind::Group => circle.groups.push(id),
                Kind::Observer => {}
            }
        }
        circle
    }

    /// Whether the actor sees the instance, which is of this definition. A substitute sees what the absent person sees as a
    /// participant.
    pub fn includes(&self, actor: &Actor, definition: &str) -> bool {
        let Some(observers) = &self.observers else {
            return true;
        };
        let takes_part = |person: &str, groups: &[String]| {
            self.users.iter().any(|user| user == person)
                || self.groups.iter().any(|group| groups.contains(group))
        };
        observers.iter().any(|group| actor.is_in(group))
            || takes_part(&actor.id, &actor.groups)
            || self.managers.contains(&actor.id)
            || actor
                .absent(definition)
                .any(|absent| takes_part(&absent.person, &absent.groups))
    }
}

/// The participants that a change of a restricted instance with these events by this person adds: the people and groups that the instance
/// names, and the people whom a comment mentions. Nobody ceases to be a participant: a person who has given a task back still sees the
/// instance. Nobody becomes a participant by their own mention: otherwise a person who sees the instance for a time, as a member of a
/// group, could see it for good.
pub fn joining(
    before: Option<&Instance>,
    after: &Instance,
    events: &[Event],
    by: &str,
) -> Vec<Participant> {
    let known = before.map(named).unwrap_or_default();
    let mentioned = events.iter().flat_map(|event| match event {
        Event::FlowCommented { mentions, .. } => &mentions[..],
        _ => &[],
    });
    let others = mentioned.filter(|person| *person != by);
    let mentioned = others.map(|person| Participant {
        kind: Kind::User,
        id: person.clone(),
    });
    let now = named(after).into_iter().chain(mentioned);
    now.filter(|one| !known.contains(one)).collect()
}

/// Everybody whom the instance names; nobody if everybody of the tenant sees it.
fn named(instance: &Instance) -> BTreeSet<Participant> {
    let Some(observers) = &instance.observers else {
        return BTreeSet::new();
    };
    let of = |kind| {
        move |id: &str| Participant {
            kind,
            id: id.to_owned(),
        }
    };
    let mut named: BTreeSet<_> = observers.iter().map(|id| of(Kind::Observer)(id)).collect();
    named.extend(instance.requesters.iter().map(|id| of(Kind::User)(id)));
    for task in instance.state_instances().flat_map(|state| &state.tasks) {
        for candidate in &task.candidates {
            let kind = match candidate.principal_kind() {
                "group" => Kind::Group,
                _ => Kind::User,
            };
            named.insert(of(kind)(candidate.id()));
        }
        named.extend(people(task).into_iter().flatten().map(of(Kind::User)));
    }
    named
}

/// The owner of a task, the decider, and the person for whom they decided.
fn people(task: &Task) -> [Option<&str>; 3] {
    match &task.status {
        TaskStatus::Pending => [None; 3],
        TaskStatus::Claimed {
            owner, ownership, ..
        } => [Some(owner), ownership.represented().next(), None],
        TaskStatus::Completed {
            owner, decision, ..
        } => [
            Some(owner),
            Some(&decision.actor),
            decision.on_behalf_of.as_deref(),
        ],
        TaskStatus::Cancelled { owner, .. } => [owner.as_deref(), None, None],
    }
}

#[cfg(test)]
mod tests;
