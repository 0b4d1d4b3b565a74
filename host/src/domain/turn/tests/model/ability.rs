//! Whether somebody is able to do the work of a stay, found by trying everything; and whether the ladder was climbed.

use super::book::{Book, Checked, Life, Place, Stay, ensure};
use super::world::{PEOPLE, World};
use crate::domain::answer::Principal;
use crate::domain::ids::{StateId, TaskId};

/// Who could do the task: who is offered it, or has it and nobody in whose name they have it is barred.
pub(super) fn able(book: &Book, world: &World, stay: StateId, task: TaskId) -> Vec<&'static str> {
    let work = &book.tasks[&task];
    let has = |person: &str| {
        work.hand.as_ref().is_some_and(|hand| {
            let mut behind = hand.chain.iter().chain(&hand.absent);
            hand.owner == person && !behind.any(|other| book.barred(stay, other))
        })
    };
    let is_able = |person: &&&str| {
        !book.barred(stay, person) && (has(person) || world.is_offered(&work.offered, person))
    };
    PEOPLE.iter().filter(is_able).copied().collect()
}

/// Whether the stay can still have the decisions that it needs.
pub(super) fn suffices(able: &[Vec<&str>], stay: &Stay) -> bool {
    let required = stay.needed.saturating_sub(stay.decisions).max(1);
    most(able, &mut Vec::new()) >= required.min(able.len())
}

/// How many of the tasks can be done when each person does one.
fn most<'a>(able: &[Vec<&'a str>], busy: &mut Vec<&'a str>) -> usize {
    let Some((first, rest)) = able.split_first() else {
        return 0;
    };
    let mut best = most(rest, busy);
    for &person in first {
        // No more than one for each task.
        if best == able.len() {
            break;
        }
        if !busy.contains(&person) {
            busy.push(person);
            best = best.max(1 + most(rest, busy));
            busy.pop();
        }
    }
    best
}

impl Book {
    /// Each of these stays is marked exactly when nobody is able, and then the ladder was of no help.
    pub(super) fn marks(&self, world: &World, of: impl Fn(StateId) -> bool) -> Checked {
        if self.life != Life::Running {
            return Ok(());
        }
        let stays = self.stays.iter();
        for (id, stay) in stays.filter(|(id, stay)| stay.place == Place::Active && of(**id)) {
            let tasks: Vec<_> = self.open_tasks(*id).collect();
            if tasks.is_empty() {
                continue;
            }
            let mut all: Vec<_> = tasks
                .iter()
                .map(|(task, _)| able(self, world, *id, **task))
                .collect();
            let is_able = suffices(&all, stay);
            ensure(is_able != stay.marked, || {
                format!("{} {id}: able {all:?}, marked {}", stay.name, stay.marked)
            })?;
            if is_able || self.is_own_work(*id) {
                continue;
            }
            let mut rungs: Vec<_> = stay
                .fallback
                .clone()
                .map(Principal::Group)
                .into_iter()
                .collect();
            let manager = world.manager(&self.initiator);
            rungs.extend(manager.map(|id| Principal::User(id.to_owned())));
            let others = PEOPLE.iter().filter(|person| !self.barred(*id, person));
            let others: Vec<_> = others
                .filter(|person| world.is_offered(&rungs, person))
                .collect();
            for people in &mut all {
                people.extend(others.iter().copied());
            }
            ensure(!suffices(&all, stay), || {
                format!("{others:?} were not asked to {}", stay.name)
            })?;
        }
        Ok(())
    }
}
