//! Task events in the model, checked against the rules.

use std::collections::{BTreeMap, BTreeSet};

use super::super::choices::ALLOCATED;
use super::super::world::{PEOPLE, World};
use super::super::{rules, staffing};
use super::{Checked, Hand, Ledger, Moment, VisitPhase, Work, ensure};
use crate::answer::OverdueAction;
use crate::command::Command;
use crate::event::Event;
use crate::event::reasons::{ESCALATED, LOST_ELIGIBILITY, NOBODY_ELIGIBLE};
use crate::ids::{StateId, TaskId};
use crate::instance::{Candidate, OpenDeadline, Task, TaskStatus};

impl Ledger {
    pub(super) fn create(&mut self, state: StateId, task: &Task, now: &Moment<'_>) -> Checked {
        self.active(state)?;
        let hand = match &task.status {
            TaskStatus::Claimed {
                owner, ownership, ..
            } => Some(Hand {
                owner: owner.clone(),
                absent: ownership.on_behalf_of.clone(),
                chain: ownership
                    .delegations
                    .iter()
                    .map(|link| link.from.clone())
                    .collect(),
                given: ownership.assigned,
            }),
            _ => None,
        };
        if let Some(hand) = &hand {
            // Only a migration, or a plan that asks for other offers, makes a task for somebody who had it before.
            let allocated = task.allocated_to().is_some() && !self.had(state, hand, now);
            if allocated {
                let owner = hand.owner.as_str();
                let has_another =
                    |work: &Work| work.hand.as_ref().is_some_and(|hand| hand.owner == owner);
                let is_able = self
                    .able(state, &task.candidates, now.world)
                    .contains(&owner);
                let mut here = self.open_tasks(state);
                let is_due = is_able && !here.any(|(_, work)| has_another(work));
                ensure(is_due && task.label == ALLOCATED, || {
                    format!("{owner} is given what is not for them")
                })?;
            }
            ensure(
                hand.given || allocated || self.had(state, hand, now),
                || format!("{} never had what is made theirs", hand.owner),
            )?;
            let place = &self.state_instances[&state];
            let requested = !self.is_own_work(state) && self.requesters.contains(&hand.owner);
            ensure(!requested && !place.exclude.contains(&hand.owner), || {
                format!("{} is given what they must not decide", hand.owner)
            })?;
        }
        if self.is_own_work(state) {
            let mine = Candidate::User(self.initiator.clone());
            let is_own = task.candidates.iter().all(|candidate| *candidate == mine)
                && hand.iter().all(|hand| hand.owner == self.initiator);
            ensure(is_own, || format!("own work of others: {task:?}"))?;
        }
        let is_new = self.state_instances[&state].since == task.created_at;
        let able = if hand.is_none() && task.label == ALLOCATED && is_new {
            self.able(state, &task.candidates, now.world)
        } else {
            Vec::new()
        };
        let work = Work {
            state_instance: state,
            offered: task.candidates.clone(),
            hand,
            able,
            open: true,
            decided: false,
            suspended: false,
        };
        let before = self.tasks.insert(task.id, work);
        ensure(before.is_none(), || format!("{} is made twice", task.id))
    }

    /// Requesters, outside of their own work; who is excluded; who has decided in a separate state.
    pub(in super::super) fn is_excluded_by_rule(
        &self,
        state_instance: StateId,
        person: &str,
    ) -> bool {
        let (own, place) = (
            self.is_own_work(state_instance),
            &self.state_instances[&state_instance],
        );
        let is = |id: &String| id == person;
        (!own && self.requesters.iter().any(is))
            || place.exclude.iter().any(is)
            || self.has_decided_elsewhere(self.graph(), &BTreeMap::new(), &place.name, person)
    }

    /// Who may be given a task with these candidates.
    fn able(&self, state: StateId, to: &[Candidate], world: &World) -> Vec<&'static str> {
        let is_able = |person: &&str| {
            let may = !self.excluded_people(state, person) && !world.is_away(person);
            may && world.is_offered(to, person)
        };
        let people = PEOPLE.iter().copied().filter(is_able);
        people.filter(|_| !self.is_own_work(state)).collect()
    }

    /// A task that the host gives to somebody stays open only if everybody has a task who could have been given it.
    pub(in super::super) fn all_are_given(&mut self) -> Checked {
        let owned: BTreeSet<_> = self
            .tasks
            .values()
            .filter_map(|work| {
                let hand = work.hand.as_ref()?;
                Some((work.state_instance, hand.owner.clone()))
            })
            .collect();
        for (id, work) in &mut self.tasks {
            let able = std::mem::take(&mut work.able);
            let is_active = self.state_instances[&work.state_instance].place == VisitPhase::Active;
            let has_none =
                |person: &&&str| !owned.contains(&(work.state_instance, (**person).to_owned()));
            let idle: Vec<_> = able.iter().filter(has_none).collect();
            ensure(idle.is_empty() || !is_active, || {
                format!("{id} was given to none of {idle:?}")
            })?;
        }
        Ok(())
    }

    fn had(&self, state: StateId, hand: &Hand, now: &Moment<'_>) -> bool {
        let mut here = self
            .tasks
            .values()
            .filter(|work| work.state_instance == state);
        let by_plan = matches!(
            now.command,
            Command::Decide { .. }
                | Command::Signal { .. }
                | Command::Deadline { .. }
                | Command::ChildEnded { .. }
        );
        (by_plan || matches!(now.command, Command::Migrate { .. }))
            && here.any(|work| !work.open && work.hand.as_ref() == Some(hand))
    }

    pub(super) fn decide(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        let (
            Event::DecisionRecorded {
                task,
                state,
                outcome,
                on_behalf_of,
                ..
            },
            Command::Decide {
                task: wanted_task,
                outcome: wanted,
                ..
            },
        ) = (event, now.command)
        else {
            return Err(format!("{} decides", now.command.action()));
        };
        ensure(task == wanted_task && outcome == wanted, || {
            format!("{task} {outcome} was not asked")
        })?;
        let owner = self
            .open(*task)?
            .hand
            .as_ref()
            .map(|hand| hand.owner.clone());
        let owner = owner.ok_or("nobody's task is decided")?;
        let mut people = BTreeSet::from([now.actor.to_owned(), owner]);
        people.extend(on_behalf_of.clone());
        for person in &people {
            ensure(!self.excluded_people(*state, person), || {
                format!("{person} is excluded and decides")
            })?;
        }
        if self.is_own_work(*state) {
            ensure(now.actor == self.initiator, || {
                "own work is done for another".into()
            })?;
        }
        let work = self.open(*task)?;
        ensure(!work.suspended, || {
            format!("{task} is suspended and decided")
        })?;
        (work.open, work.decided) = (false, true);
        ensure(work.state_instance == *state, || "decided elsewhere".into())?;
        let state_instance = self.active(*state)?;
        state_instance.decisions += 1;
        state_instance.spent.extend(people);
        Ok(())
    }

    /// Whoever has just decided owns no other task of the state instance that goes on, nor does anybody own one on their behalf.
    pub(super) fn have_one_task(&self, state: StateId, now: &Moment<'_>) -> Checked {
        let Command::Decide { task, .. } = now.command else {
            return Ok(());
        };
        let decided = &self.tasks[task];
        if decided.state_instance != state {
            return Ok(());
        }
        let owner = decided.hand.as_ref().map(|hand| &hand.owner);
        let has_decided = |person: &String| person == now.actor || Some(person) == owner;
        for (id, work) in self.open_tasks(state) {
            let hand = work.hand.iter();
            let mut people =
                hand.flat_map(|hand| hand.chain.iter().chain([&hand.owner]).chain(&hand.absent));
            ensure(!people.any(has_decided), || {
                format!("{id} stays with who has decided")
            })?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each type of event")]
    pub(super) fn write_task(&mut self, event: &Event, now: &Moment<'_>) -> Checked {
        match event {
            Event::TaskClaimed {
                task,
                owner,
                on_behalf_of,
                ..
            } => {
                ensure(owner == now.actor, || {
                    format!("{} claims for {owner}", now.actor)
                })?;
                let work = self.open(*task)?;
                ensure(work.hand.is_none(), || format!("{task} is claimed twice"))?;
                let right = on_behalf_of.as_ref().unwrap_or(owner);
                ensure(now.world.is_offered(&work.offered, right), || {
                    format!("{task} was not offered to {right}")
                })?;
                work.hand = Some(Hand {
                    owner: owner.clone(),
                    absent: on_behalf_of.clone(),
                    ..Hand::default()
                });
                Ok(())
            }
            Event::TaskSuspended { task, .. } => self.rest(*task, true),
            Event::TaskResumed { task, .. } => self.rest(*task, false),
            Event::TaskReassigned { task, to, .. } => {
                self.open(*task)?.suspended = false;
                self.open(*task)?.hand = Some(Hand {
                    owner: to.clone(),
                    given: true,
                    ..Hand::default()
                });
                Ok(())
            }
            Event::TaskReleased { task, reason, .. } => self.release(*task, reason.as_deref(), now),
            Event::TaskReset { task, .. } => {
                self.open(*task)?.suspended = false;
                let hand = self.open(*task)?.hand.take();
                ensure(hand.is_some(), || "nobody's task is reset".into())
            }
            Event::TaskDelegated { .. } | Event::TaskResolved { .. } => self.hand_over(event),
            Event::TaskRerouted {
                task,
                step,
                candidates,
                previous,
                ..
            } => {
                let offered = &self.open(*task)?.offered;
                ensure(offered == previous, || {
                    format!("{task} was offered to others")
                })?;
                self.reroute(*task, step, candidates, now)
            }
            Event::TaskCancelled {
                task,
                reason,
                state,
            } => {
                if reason.as_deref() == Some(NOBODY_ELIGIBLE) {
                    let eligible = staffing::eligible(self, now.world, *state, *task);
                    ensure(eligible.is_empty(), || {
                        format!("{eligible:?} could have done {task}")
                    })?;
                }
                let migrates = matches!(now.command, Command::Migrate { .. });
                ensure(migrates || reason.as_deref() != Some("migrated"), || {
                    format!("{task} was migrated")
                })?;
                let work = self.open(*task)?;
                (work.open, work.suspended) = (false, false);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn rest(&mut self, task: TaskId, suspended: bool) -> Checked {
        let work = self.open(task)?;
        let before = std::mem::replace(&mut work.suspended, suspended);
        ensure(before != suspended, || {
            format!("{task} is suspended or resumed twice")
        })
    }

    fn release(&mut self, task: TaskId, reason: Option<&str>, now: &Moment<'_>) -> Checked {
        self.open(task)?.suspended = false;
        let hand = self.open(task)?.hand.take();
        let hand = hand.ok_or("nobody's task is released")?;
        let lost = reason == Some(LOST_ELIGIBILITY);
        let work = &self.tasks[&task];
        let is_excluded = |person: &String| self.excluded_people(work.state_instance, person);
        let mut concerned = hand.chain.iter().chain([&hand.owner]).chain(&hand.absent);
        let is_given = hand.given || !hand.chain.is_empty();
        let kept = !concerned.any(is_excluded)
            && (is_given || rules::is_entitled(self, now.world, work, &hand));
        ensure(!(lost && kept), || format!("{} lost nothing", hand.owner))
    }

    /// A chain goes on to somebody new, three times at most, and back the same way.
    fn hand_over(&mut self, event: &Event) -> Checked {
        match event {
            Event::TaskDelegated { task, from, to, .. } => {
                let hand = self
                    .open(*task)?
                    .hand
                    .as_mut()
                    .ok_or("nobody's is delegated")?;
                ensure(hand.owner == *from, || {
                    format!("{from} delegates another's task")
                })?;
                hand.chain
                    .push(std::mem::replace(&mut hand.owner, to.clone()));
                ensure(hand.chain.len() <= 3, || "delegated once too often".into())?;
                ensure(!hand.chain.contains(to), || {
                    format!("a circle back to {to}")
                })
            }
            Event::TaskResolved { task, from, to, .. } => {
                let hand = self
                    .open(*task)?
                    .hand
                    .as_mut()
                    .ok_or("nobody's is handed back")?;
                ensure(hand.owner == *from, || {
                    format!("{from} hands another's task back")
                })?;
                let back = hand.chain.pop();
                ensure(back.as_ref() == Some(to), || {
                    format!("back to {to}, not {back:?}")
                })?;
                hand.owner.clone_from(to);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The fallbacks are the initiator's manager and the fallback group, besides those who have it.
    fn reroute(&mut self, task: TaskId, step: &str, to: &[Candidate], now: &Moment<'_>) -> Checked {
        let work = self.open(task)?.clone();
        if step == "migrated" || step == "reoffered" {
            let migrates = matches!(now.command, Command::Migrate { .. });
            // After a migration, what nobody has is made anew. A plan may offer that to others, too.
            let is_meant = match step {
                "migrated" => migrates && work.hand.is_some(),
                _ => self.state_instances[&work.state_instance].place == VisitPhase::Active,
            };
            ensure(is_meant, || format!("{task} is offered to others"))?;
            let mine = Candidate::User(self.initiator.clone());
            let is_own = to.iter().all(|candidate| *candidate == mine);
            ensure(is_own || !self.is_own_work(work.state_instance), || {
                "own work is offered to others".into()
            })?;
            self.open(task)?.offered = to.to_vec();
            return Ok(());
        }
        ensure(!self.is_own_work(work.state_instance), || {
            "own work is for nobody else".into()
        })?;
        let fallback = match step {
            "manager" => {
                let manager = now.world.manager(&self.initiator);
                manager.map(|id| Candidate::User(id.to_owned()))
            }
            "fallback" => self.state_instances[&work.state_instance]
                .fallback
                .clone()
                .map(Candidate::Group),
            _ => None,
        };
        let mut wanted = work.offered;
        wanted.extend(fallback);
        ensure(wanted == to, || format!("{step}: {to:?}, not {wanted:?}"))?;
        self.open(task)?.offered = wanted;
        Ok(())
    }

    pub(super) fn same(&self, task: &Task, beside: &[Task]) -> Checked {
        let work = &self.tasks[&task.id];
        let owner = work.hand.as_ref().map(|hand| hand.owner.as_str());
        let is_same = work.open == task.status.is_open()
            && work.decided == task.decision().is_some()
            && owner == task.owner()
            && work.suspended == task.suspended.is_some()
            && work.offered == task.candidates;
        ensure(is_same, || format!("{task:?} is not {work:?}"))?;
        let mut deadlines = task.deadlines.iter();
        let counts = |one: &OpenDeadline| one.since_claim.is_some() && one.due_at.is_some();
        ensure(owner.is_some() || !deadlines.any(counts), || {
            format!("nobody owns {task:?}, and its deadline counts")
        })?;
        let at = task.created_at;
        let is_escalated = beside.iter().any(|one| {
            let reason = Some(ESCALATED);
            matches!(&one.status, TaskStatus::Cancelled { cancelled_at, reason: why, .. } if *cancelled_at == at && why.as_deref() == reason)
        });
        let mut deadlines = task.deadlines.iter();
        let at_once = deadlines.any(|one| {
            let due_at = one.due_at.filter(|_| one.action == OverdueAction::Escalate);
            due_at.is_some_and(|due_at| due_at.duration_since(at).as_secs() < 60)
        });
        ensure(!(is_escalated && at_once), || {
            format!("{task:?} is escalated again at once")
        })
    }
}
