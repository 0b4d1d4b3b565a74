//! The answers of random flow logic: drawn from numbers, with the graph of the version that is called.

use super::world::{GROUPS, PEOPLE};
use crate::answer::{
    Allocation, Assignment, Child, Deadline, Due, Next, Offer, OverdueAction, Plan, Principal,
    PublishedEvent, Reason, Refusal, SignalSubscription, Since, Target, Waiting,
};
use crate::graph::{FiredBy, Graph, Transition};
use crate::instance::Instance;
use crate::question::{EntryCause, Occurrence};

/// The label of tasks that the host gives to one of their candidates.
pub(super) const ALLOCATED: &str = "allocated";

/// Where the answers of one command come from: numbers, and zeros when they are used up.
#[derive(Debug, Default)]
pub(super) struct Choices {
    pub(super) left: Vec<u8>,
    /// Of both versions.
    pub(super) graphs: Vec<Graph>,
    /// The index of the version that is called.
    pub(super) version: usize,
    /// What was assigned after a migration, by the state's name.
    pub(super) reassigned: Vec<(String, Assignment)>,
}

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.left.pop().unwrap_or(0)) % bound
    }

    pub(super) fn plan(
        &mut self,
        occurrence: &Occurrence,
        state: &str,
        instance: &Instance,
    ) -> Result<Plan, Refusal> {
        let mut active = instance.active.iter();
        let here = active.find(|one| one.id.to_string() == occurrence.state_instance);
        let state_instance = here.expect("an active state instance");
        let open = state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open())
            .count();
        let next = self.next(occurrence, state, open)?;
        // Sometimes itself, which is not allowed.
        let itself = self.below(16) == 15;
        let here = instance.active.iter().chain(&instance.waiting);
        let here: Vec<_> = here
            .filter(|other| itself || other.id != state_instance.id)
            .collect();
        let cancels = !here.is_empty() && self.below(8) == 7;
        let cancel = cancels.then(|| here[self.below(here.len())].id.to_string());
        let published = (self.below(6) == 5).then(|| PublishedEvent {
            name: "moved".into(),
            data: r#"{"on":1.50}"#.into(),
        });
        Ok(Plan {
            next,
            cancel: cancel.into_iter().collect(),
            data: (self.below(5) == 4).then(|| r#"{"title":"Another"}"#.to_owned()),
            publish: published.into_iter().collect(),
            ..Plan::default()
        })
    }

    /// What a plan says of the branches, while the state has so many open tasks.
    fn next(&mut self, occurrence: &Occurrence, state: &str, open: usize) -> Result<Next, Refusal> {
        let graph = self.graphs[self.version].clone();
        let declared = graph
            .transition(state, &occurrence.trigger)
            .expect("a declared way");
        let targets = &declared.targets;
        let one =
            |choices: &mut Choices| Target::new(targets[choices.below(targets.len())].as_str());
        let all = || targets.iter().map(Target::new).collect();
        let keyed = |target: Target, key: &str| Target {
            key: Some(key.to_owned()),
            data: Some(r#"{"line":1}"#.to_owned()),
            ..target
        };
        Ok(match self.below(24) {
            0..=10 if open > 1 => Next::Stay,
            0..=7 => Next::Enter(vec![one(self)]),
            8..=15 => Next::Enter(all()),
            20 => Next::Spawn(vec![one(self)]),
            21 => Next::Spawn(all()),
            22 => {
                let item = one(self);
                Next::Enter(vec![keyed(item.clone(), "a"), keyed(item, "b")])
            }
            23 => Next::Spawn(vec![keyed(one(self), "a")]),
            16 => Next::EndBranch,
            17 if self.below(3) > 0 => Next::Reoffer,
            17 => Next::Stay,
            18 => {
                let any = self.below(graph.states.len());
                Next::Enter(vec![Target::new(graph.states[any].name.as_str())])
            }
            _ if self.below(2) == 0 => {
                let twice = one(self);
                Next::Enter(vec![twice.clone(), twice])
            }
            _ => {
                return Err(Refusal::NotNow(Reason {
                    code: "unwilling".into(),
                    message: "not today".into(),
                }));
            }
        })
    }

    fn person(&mut self) -> String {
        PEOPLE[self.below(PEOPLE.len())].to_owned()
    }

    fn group(&mut self) -> String {
        GROUPS[self.below(GROUPS.len())].to_owned()
    }

    fn candidate(&mut self) -> Principal {
        match self.below(8) {
            0..=2 => Principal::Group(self.group()),
            3..=6 => Principal::User(self.person()),
            _ => Principal::ManagerOf(self.person()),
        }
    }

    pub(super) fn assigned(&mut self, state: &str, cause: &EntryCause) -> Assignment {
        let graph = self.graphs[self.version].clone();
        let assignment = self.assignment(&graph, state);
        if *cause == EntryCause::Migrated {
            self.reassigned.push((state.to_owned(), assignment.clone()));
        }
        assignment
    }

    /// Sometimes nothing that could ever move it, which is not allowed.
    pub(super) fn waiting(&mut self, state: &str) -> Waiting {
        let graph = self.graphs[self.version].clone();
        let by = |by: FiredBy| {
            let mut ways = graph.leaving(state).filter(move |way| way.by.contains(&by));
            ways.next().map(|way| way.trigger.clone())
        };
        let mut deadlines = self.deadlines(&graph, state, false);
        deadlines.retain(|one| one.action.moves());
        if let Some(trigger) = by(FiredBy::Deadline).filter(|_| self.below(4) != 3) {
            deadlines.push(Deadline {
                when: Due::After(60),
                since: Since::Created,
                repeat: None,
                action: OverdueAction::Fire(trigger),
            });
        }
        let children = (0..[1, 2, 0, 1][self.below(4)]).map(|number| {
            let twice = self.below(16) == 15;
            let on_end = match self.below(12) {
                9 => None,
                10 => Some("GO".to_owned()),
                _ => by(FiredBy::Child),
            };
            Child {
                key: "subflows".into(),
                entity_type: "errand".into(),
                entity_id: format!("child {}", if twice { 0 } else { number }),
                data: r#"{"title":"A part"}"#.into(),
                on_end,
                detached: self.below(3) == 0,
            }
        });
        Waiting {
            children: children.collect(),
            deadlines,
            subscriptions: self.subscriptions(&graph, state),
        }
    }

    fn assignment(&mut self, graph: &Graph, state: &str) -> Assignment {
        let own = graph.state(state).is_some_and(|declared| declared.own_work);
        let is_meek = own && self.below(6) != 5;
        let count = [1, 1, 2, 2, 3, 4, 0][self.below(7)];
        let offer = |choices: &mut Choices| {
            let count = [1, 1, 2, 3, 0][choices.below(5)];
            let owner = choices.below(6) == 5;
            let allocation = [
                Allocation::Offered,
                Allocation::Offered,
                Allocation::RoundRobin,
                Allocation::LeastLoaded,
            ][choices.below(4)];
            Offer {
                label: if allocation.is_offered() {
                    "work".into()
                } else {
                    ALLOCATED.into()
                },
                candidates: (0..if is_meek { 0 } else { count })
                    .map(|_| choices.candidate())
                    .collect(),
                owner: (owner && !is_meek).then(|| choices.person()),
                deadlines: choices.deadlines(graph, state, true),
                each_member: None,
                retain: false,
                allocation,
            }
        };
        let offers: Vec<_> = (0..count).map(|_| offer(self)).collect();
        let needed = 1 + self.below(offers.len().max(1));
        let excluded = [0, 0, 0, 1, 2][self.below(5)];
        Assignment {
            needed: u32::try_from(needed).expect("few"),
            share: None,
            offers,
            exclude: (0..excluded).map(|_| self.person()).collect(),
            fallback: (self.below(3) == 2).then(|| self.group()),
            priority: 0,
            deadlines: self.deadlines(graph, state, false),
            subscriptions: self.subscriptions(graph, state),
            blind: false,
        }
    }

    /// Sometimes to what the state does not take, or without an effect, which is not allowed.
    fn subscriptions(&mut self, graph: &Graph, state: &str) -> Vec<SignalSubscription> {
        let is_signal = |way: &&Transition| way.by.contains(&FiredBy::Signal);
        let ways = graph.leaving(state).filter(is_signal);
        let mut triggers: Vec<_> = ways.map(|way| way.trigger.as_str()).collect();
        if self.below(40) == 39 {
            triggers.push("GO");
        }
        let mut subscriptions = Vec::new();
        for trigger in triggers {
            let (by_key, buffered) = match self.below(32) {
                0..=9 => continue,
                10..=16 => (true, false),
                17..=23 => (false, true),
                24..=30 => (true, true),
                _ => (false, false),
            };
            subscriptions.push(SignalSubscription {
                trigger: trigger.to_owned(),
                correlation: by_key.then(|| "order 7".to_owned()),
                buffered,
            });
        }
        subscriptions
    }

    fn deadlines(&mut self, graph: &Graph, state: &str, of_task: bool) -> Vec<Deadline> {
        if self.below(3) != 2 {
            return Vec::new();
        }
        let mut ways = graph.leaving(state);
        let by_deadline = ways.find(|way| way.by.contains(&FiredBy::Deadline));
        let number = self.below(6);
        let action = match (number, by_deadline) {
            (0, _) => OverdueAction::Remind,
            (1, _) => OverdueAction::Release,
            (2 | 3, _) | (4, None) => OverdueAction::Escalate,
            (4, Some(way)) => OverdueAction::Fire(way.trigger.clone()),
            _ if self.below(8) == 7 => OverdueAction::Fire("GO".into()),
            _ if self.below(3) == 2 => OverdueAction::Cancel("too late".into()),
            _ => OverdueAction::Remind,
        };
        vec![Deadline {
            // Some work is to be escalated at once.
            when: Due::After(if number == 3 { 0 } else { 60 }),
            since: if of_task && self.below(2) == 1 {
                Since::Claimed
            } else {
                Since::Created
            },
            repeat: (self.below(3) == 2).then_some(60),
            action,
        }]
    }
}
