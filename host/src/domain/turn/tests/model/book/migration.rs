//! Going over to another version: what must fit, written once more, and who could have done the work that was left to
//! nobody.

use std::collections::BTreeMap;

use super::super::ability::suffices;
use super::super::world::{PEOPLE, World};
use super::{Book, Checked, Life, Moment, Place, Stay, ensure};
use crate::domain::answer::{Assignment, OverdueAction, Principal};
use crate::domain::command::Command;
use crate::domain::event::Event;
use crate::domain::graph::FiredBy;
use crate::domain::instance::Instance;

impl Book {
    /// Whether each stay has its like in the other version, under its own name or the one that is given.
    pub(in super::super) fn may_go_over(
        &self,
        instance: &Instance,
        version: usize,
        states: &BTreeMap<String, String>,
    ) -> Checked {
        ensure(self.life != Life::Ended, || "it has ended".into())?;
        ensure(version != self.version, || "it is there already".into())?;
        let here: Vec<_> = self.here().collect();
        let known = |name: &String| here.iter().any(|stay| stay.name == *name);
        ensure(states.keys().all(known), || "it is not there".into())?;
        let (before, after) = (self.graph(), &self.graphs[version]);
        for stay in here {
            let name = states.get(&stay.name).unwrap_or(&stay.name);
            let was = before.state(&stay.name).expect("a declared state");
            let is = after.state(name).ok_or_else(|| format!("no {name}"))?;
            let alike = (&was.kind, was.join, was.own_work) == (&is.kind, is.join, is.own_work);
            ensure(alike, || format!("{name} is another thing"))?;
        }
        for stay in instance.active.iter().filter(|stay| stay.tasks.is_empty()) {
            let name = states.get(&stay.name).unwrap_or(&stay.name);
            let leads = |trigger: &str, by| {
                let way = after.transition(name, trigger);
                way.is_some_and(|way| way.by.contains(&by))
            };
            let due = stay.deadlines.iter().all(|deadline| {
                !matches!(&deadline.action, OverdueAction::Fire(to) if !leads(to, FiredBy::Deadline))
            });
            let mut running = stay.children.iter().filter(|child| child.outcome.is_none());
            let ends = running.all(|child| {
                let mut on_end = child.on_end.iter();
                on_end.all(|trigger| leads(trigger, FiredBy::Child))
            });
            ensure(due && ends, || format!("{name} would wait in vain"))?;
        }
        Ok(())
    }

    fn here(&self) -> impl Iterator<Item = &Stay> {
        let stays = self.stays.values();
        stays.filter(|stay| stay.place != Place::Left)
    }

    pub(super) fn go_over(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        let (
            Event::FlowMigrated {
                previous,
                definition,
                states,
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
        let stays = self.stays.values_mut();
        for stay in stays.filter(|stay| stay.place != Place::Left) {
            if let Some(name) = wanted.get(&stay.name) {
                stay.name.clone_from(name);
            }
        }
        Ok(())
    }

    /// Whether these states were left to nobody: some stay in each, on which people could act before, was offered as it
    /// is told, and that is not enough.
    pub(in super::super) fn nobody_left(
        &self,
        world: &World,
        (renamed, offered): (&BTreeMap<String, String>, &[(String, Assignment)]),
        states: &[String],
    ) -> Checked {
        for name in states {
            let of = |stay: &Stay| renamed.get(&stay.name).unwrap_or(&stay.name) == name;
            let meant = self
                .stays
                .iter()
                .filter(|(_, stay)| stay.place == Place::Active && !stay.marked && of(stay));
            let mut told = offered.iter().filter(|(state, _)| state == name);
            let lacks = meant.into_iter().any(|(id, stay)| {
                let own = self.is_own_work(*id);
                told.any(|(_, assignment)| !self.enough(world, stay, own, assignment))
            });
            ensure(lacks, || format!("somebody is left for {name}"))?;
        }
        Ok(())
    }

    /// Whether those whom the work is offered to, the ladder's people among them, suffice.
    fn enough(&self, world: &World, stay: &Stay, own: bool, assignment: &Assignment) -> bool {
        let barred = |person: &str| {
            (!own && self.requesters.iter().any(|id| id == person))
                || assignment.exclude.iter().any(|id| id == person)
                || stay.spent.contains(person)
        };
        let mut ladder: Vec<_> = assignment
            .fallback
            .iter()
            .cloned()
            .map(Principal::Group)
            .collect();
        let manager = world.manager(&self.initiator);
        ladder.extend(manager.map(|id| Principal::User(id.to_owned())));
        if own {
            ladder.clear();
        }
        let mut able: Vec<Vec<&str>> = Vec::new();
        for offer in &assignment.offers {
            let mut to = ladder.clone();
            to.extend(
                offer
                    .candidates
                    .iter()
                    .filter_map(|candidate| match candidate {
                        Principal::ManagerOf(of) => {
                            world.manager(of).map(|id| Principal::User(id.into()))
                        }
                        other => Some(other.clone()),
                    }),
            );
            to.extend(offer.owner.clone().map(Principal::User));
            if own {
                to.push(Principal::User(self.initiator.clone()));
            }
            let people = PEOPLE.iter().copied();
            let people = people.filter(|person| !barred(person) && world.is_offered(&to, person));
            able.push(people.collect());
        }
        if able.is_empty() {
            let to = if own {
                vec![Principal::User(self.initiator.clone())]
            } else {
                ladder
            };
            let people = PEOPLE.iter().copied();
            let people = people.filter(|person| !barred(person) && world.is_offered(&to, person));
            able.push(people.collect());
        }
        let after = Stay {
            needed: assignment.needed as usize,
            ..stay.clone()
        };
        suffices(&able, &after)
    }
}
