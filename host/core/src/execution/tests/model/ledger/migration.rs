//! Migration in the model: a second implementation of which instances fit, and of who could have done work that was left to
//! nobody.

use std::collections::{BTreeMap, BTreeSet};

use super::super::staffing::suffices;
use super::super::world::{PEOPLE, World};
use super::waits::is_movable_in;
use super::{Checked, Ledger, Life, Moment, StateVisit, VisitPhase, ensure};
use crate::answer::{Assignment, OverdueAction, Principal};
use crate::command::Command;
use crate::event::Event;
use crate::graph::{FiredBy, State};
use crate::instance::{Candidate, Instance};

impl Ledger {
    /// Whether each state instance has its like in the other version, under its own name or the one that is given.
    pub(in super::super) fn may_go_over(
        &self,
        instance: &Instance,
        version: usize,
        states: &BTreeMap<String, String>,
    ) -> Checked {
        ensure(self.life != Life::Ended, || "it has ended".into())?;
        ensure(version != self.version, || "it is there already".into())?;
        let here: Vec<_> = self.here().collect();
        let known = |name: &String| {
            here.iter()
                .any(|state_instance| state_instance.name == *name)
        };
        ensure(states.keys().all(known), || "it is not there".into())?;
        let (before, after) = (self.graph(), &self.graphs[version]);
        for state_instance in here {
            let name = states
                .get(&state_instance.name)
                .unwrap_or(&state_instance.name);
            let was = before
                .state(&state_instance.name)
                .expect("a declared state");
            let is = after.state(name).ok_or_else(|| format!("no {name}"))?;
            let is_join = |state: &State| state.join.is_join();
            let alike =
                (&was.kind, is_join(was), was.own_work) == (&is.kind, is_join(is), is.own_work);
            ensure(alike, || format!("{name} is another thing"))?;
        }
        let mut joins = BTreeSet::new();
        for branch in &instance.waiting {
            let name = states.get(&branch.name).unwrap_or(&branch.name);
            let is_new = joins.insert((name, &branch.forks));
            ensure(is_new, || format!("{name} would begin twice"))?;
        }
        for state_instance in instance
            .active
            .iter()
            .filter(|state_instance| state_instance.tasks.is_empty())
        {
            let name = states
                .get(&state_instance.name)
                .unwrap_or(&state_instance.name);
            let leads = |trigger: &str, by| {
                let way = after.transition(name, trigger);
                way.is_some_and(|way| way.by.contains(&by))
            };
            let due = state_instance.deadlines.iter().all(|deadline| {
                !matches!(&deadline.action, OverdueAction::Fire(to) if !leads(to, FiredBy::Deadline))
            });
            let mut running = state_instance
                .children
                .iter()
                .filter(|child| child.outcome.is_none());
            let ends = running.all(|child| {
                let mut on_end = child.on_end.iter();
                on_end.all(|trigger| leads(trigger, FiredBy::Child))
            });
            let mut subscriptions = state_instance.subscriptions.iter();
            let signals = subscriptions.all(|one| leads(&one.trigger, FiredBy::Signal));
            ensure(due && ends && signals, || {
                format!("{name} would wait in vain")
            })?;
            let is_lost = self.is_wait(&state_instance.name)
                && is_movable_in(before, &state_instance.name, state_instance)
                && !is_movable_in(after, name, state_instance);
            ensure(!is_lost, || format!("nothing would move {name}"))?;
        }
        Ok(())
    }

    fn here(&self) -> impl Iterator<Item = &StateVisit> {
        let state_instances = self.state_instances.values();
        state_instances.filter(|state_instance| state_instance.place != VisitPhase::Left)
    }

    pub(super) fn go_over(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        let (
            Event::FlowMigrated {
                previous,
                definition,
                states,
                ..
            },
            Command::Migrate {
                version,
                states: wanted,
                ..
            },
        ) = (event, now.command)
        else {
            return Err(format!("{} migrates", now.command.action()));
        };
        let number = |version: u32| usize::try_from(version).expect("few") - 1;
        ensure(number(previous.version) == self.version, || {
            format!("it never ran under {previous}")
        })?;
        ensure(definition.version == *version, || {
            format!("to {definition}")
        })?;
        let is_same = wanted
            .iter()
            .all(|(old, new)| old == new || states.get(old) == Some(new));
        let is_asked = states.iter().all(|(old, new)| wanted.get(old) == Some(new));
        ensure(is_same && is_asked, || "other names".into())?;
        self.version = number(*version);
        let state_instances = self.state_instances.values_mut();
        for state_instance in
            state_instances.filter(|state_instance| state_instance.place != VisitPhase::Left)
        {
            if let Some(name) = wanted.get(&state_instance.name) {
                state_instance.name.clone_from(name);
            }
        }
        Ok(())
    }

    /// Whether these states were left to nobody: each has a state instance that people could work on before and whose new
    /// offers are not enough.
    pub(in super::super) fn nobody_left(
        &self,
        world: &World,
        (renamed, offered): (&BTreeMap<String, String>, &[(String, Assignment)]),
        states: &[String],
    ) -> Checked {
        for name in states {
            let of = |state_instance: &StateVisit| {
                renamed
                    .get(&state_instance.name)
                    .unwrap_or(&state_instance.name)
                    == name
            };
            let meant = self.state_instances.iter().filter(|(_, state_instance)| {
                state_instance.place == VisitPhase::Active
                    && !state_instance.marked
                    && of(state_instance)
            });
            let mut assignments = offered.iter().filter(|(state, _)| state == name);
            let lacks = meant.into_iter().any(|(id, state_instance)| {
                let own = self.is_own_work(*id);
                let other = &self.graphs[1 - self.version];
                let spent = |person: &str| {
                    state_instance.spent.contains(person)
                        || self.has_decided_elsewhere(other, renamed, name, person)
                };
                assignments.any(|(_, assignment)| {
                    !self.enough(world, state_instance, (own, &spent), assignment)
                })
            });
            ensure(lacks, || format!("somebody is left for {name}"))?;
        }
        Ok(())
    }

    /// Whether those whom the work is offered to, the fallbacks among them, are enough.
    fn enough(
        &self,
        world: &World,
        state_instance: &StateVisit,
        (own, spent): (bool, &dyn Fn(&str) -> bool),
        assignment: &Assignment,
    ) -> bool {
        let excluded_people = |person: &str| {
            (!own && self.requesters.iter().any(|id| id == person))
                || assignment.exclude.iter().any(|id| id == person)
                || spent(person)
        };
        let mut fallback: Vec<_> = assignment
            .fallback
            .iter()
            .cloned()
            .map(Candidate::Group)
            .collect();
        let manager = world.manager(&self.initiator);
        fallback.extend(manager.map(|id| Candidate::User(id.to_owned())));
        if own {
            fallback.clear();
        }
        let mut eligible: Vec<Vec<&str>> = Vec::new();
        for offer in &assignment.offers {
            let mut to = fallback.clone();
            to.extend(
                offer
                    .candidates
                    .iter()
                    .filter_map(|candidate| match candidate {
                        Principal::User(id) => Some(Candidate::User(id.clone())),
                        Principal::Group(id) => Some(Candidate::Group(id.clone())),
                        Principal::ManagerOf(of) => {
                            world.manager(of).map(|id| Candidate::User(id.into()))
                        }
                        Principal::Member { person, group } => Some(Candidate::Member {
                            person: person.clone(),
                            group: group.clone(),
                        }),
                    }),
            );
            to.extend(offer.owner.clone().map(Candidate::User));
            if own {
                to.push(Candidate::User(self.initiator.clone()));
            }
            let people = PEOPLE.iter().copied();
            let people =
                people.filter(|person| !excluded_people(person) && world.is_offered(&to, person));
            eligible.push(people.collect());
        }
        if eligible.is_empty() {
            let to = if own {
                vec![Candidate::User(self.initiator.clone())]
            } else {
                fallback
            };
            let people = PEOPLE.iter().copied();
            let people =
                people.filter(|person| !excluded_people(person) && world.is_offered(&to, person));
            eligible.push(people.collect());
        }
        let after = StateVisit {
            needed: assignment.needed as usize,
            ..state_instance.clone()
        };
        suffices(&eligible, &after)
    }
}
