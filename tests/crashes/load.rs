//! Many concurrent actors, and a journal of their answers. A command whose answer was lost is sent again with its key, to
//! whichever host is up, until it is answered.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::actors::Actor;
use super::client::{Client, DOWN, Order, Reply};
use super::fixture::{Fixture, TIMEOUT};
use super::random::Random;
use crate::support::pause_thread;

/// The prefix of the key of every command in the journal.
pub(super) const KEY_PREFIX: &str = "k-";
/// Between two crashes, at least and at most so many commands are accepted.
const MOMENT: (usize, usize) = (5, 40);
/// Then a random time follows, so that the crash happens within a command.
const MOMENT_MILLIS: usize = 30;

/// A command and its answer.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) order: Order,
    /// How often nothing was known of it, or the host called it uncertain.
    pub(super) doubts: u32,
    pub(super) reply: Reply,
}

/// The mode of the actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Start instances and work on them.
    Busy,
    /// End all instances, then stop.
    Closing,
}

/// The state that actors share.
pub(super) struct Shared {
    pub(super) client: Arc<Client>,
    pub(super) hosts: usize,
    journal: Mutex<Vec<Settled>>,
    /// How many commands were accepted.
    accepted: watch::Sender<u64>,
    /// How often a command or a query got no answer, or was told to retry later.
    failed: watch::Sender<u64>,
    phase: AtomicU8,
    number: AtomicU64,
}

/// The running actors.
pub(super) struct Load {
    shared: Arc<Shared>,
    actors: JoinSet<()>,
    pub(super) random: Random,
}

impl Shared {
    pub(super) fn new(fixture: &Fixture) -> Arc<Shared> {
        Arc::new(Shared {
            client: fixture.client(),
            hosts: fixture.hosts(),
            journal: Mutex::default(),
            accepted: watch::Sender::new(0),
            failed: watch::Sender::new(0),
            phase: AtomicU8::new(Phase::Busy as u8),
            number: AtomicU64::new(0),
        })
    }

    pub(super) fn is_closing(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == Phase::Closing as u8
    }

    /// A unique key.
    pub(super) fn key(&self) -> String {
        format!("{KEY_PREFIX}{}", self.number.fetch_add(1, Ordering::SeqCst))
    }

    /// Sends a command until it is answered, and stores the answer in the journal.
    pub(super) fn settle(&self, random: &mut Random, order: Order) -> Reply {
        let deadline = Instant::now() + TIMEOUT;
        let mut doubts = 0;
        loop {
            let result = self.client.post(random.below(self.hosts), &order);
            // After a response that the service is unavailable, the caller knows as little as without a response.
            if let Ok(reply) = &result
                && reply.status != 503
            {
                let settled = Settled {
                    order,
                    doubts,
                    reply: reply.clone(),
                };
                self.journal.lock().expect("a lock").push(settled);
                if reply.is_accepted() {
                    self.accepted.send_modify(|count| *count += 1);
                }
                return reply.clone();
            }
            assert!(
                Instant::now() < deadline,
                "{} {} was never answered: {result:?}",
                order.path,
                order.key
            );
            doubts += u32::from(self.wait_to_repeat(&result));
        }
    }

    /// Repeats a request until a host answers.
    pub(super) fn persist(&self, send: impl Fn(&Client) -> Result<Reply, String>) -> Reply {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let result = send(&self.client);
            match result {
                Ok(reply) if reply.status != 503 => return reply,
                _ => assert!(Instant::now() < deadline, "never answered: {result:?}"),
            }
            self.wait_to_repeat(&result);
        }
    }

    /// Waits before a request without an answer is repeated. Returns whether it was sent; if not, it waits until a host is up.
    pub(super) fn wait_to_repeat(&self, result: &Result<Reply, String>) -> bool {
        let was_sent = result.as_ref().err().is_none_or(|error| error != DOWN);
        if was_sent {
            self.failed.send_modify(|count| *count += 1);
            pause_thread();
        } else {
            self.client.wait_for_a_host();
        }
        was_sent
    }

    pub(super) fn journal(&self) -> Vec<Settled> {
        self.journal.lock().expect("a lock").clone()
    }
}

impl Load {
    /// Starts so many actors.
    pub(super) fn begin(fixture: &Fixture, actors: usize) -> Load {
        let seed = Random::seed();
        let shared = Shared::new(fixture);
        let mut working = JoinSet::new();
        for number in 0..actors {
            let actor = Actor::new(shared.clone(), number, seed);
            working.spawn_blocking(move || actor.work());
        }
        Load {
            shared,
            actors: working,
            random: Random::new(seed),
        }
    }

    /// Waits for a random moment while commands are accepted. Fails if none are.
    pub(super) async fn moment(&mut self) {
        let (least, most) = MOMENT;
        let more = least + self.random.below(most - least);
        let goal = *self.shared.accepted.borrow() + u64::try_from(more).expect("a few");
        self.reach(|shared| &shared.accepted, goal, "accepted commands")
            .await;
        let within = self.random.below(MOMENT_MILLIS);
        // This chooses the moment, and waits for no condition.
        tokio::time::sleep(Duration::from_millis(within as u64)).await;
    }

    /// How many requests have failed.
    pub(super) fn failed(&self) -> u64 {
        *self.shared.failed.borrow()
    }

    /// Waits until more requests have failed than these.
    pub(super) async fn hit(&mut self, failed: u64) {
        self.reach(|shared| &shared.failed, failed + 1, "failed requests")
            .await;
    }

    /// Waits until a count has reached this number.
    async fn reach(&mut self, of: fn(&Shared) -> &watch::Sender<u64>, goal: u64, what: &str) {
        let mut counted = of(&self.shared).subscribe();
        // The guard that it returns holds a lock. If it were kept, an actor and the read of the count below would deadlock.
        let enough = async { drop(counted.wait_for(|count| *count >= goal).await) };
        let waiting = tokio::time::timeout(TIMEOUT, enough);
        tokio::select! {
            waited = waiting => {
                let count = *of(&self.shared).borrow();
                assert!(waited.is_ok(), "nothing goes on: {count} {what}, not {goal}");
            }
            Some(Err(error)) = self.actors.join_next() => panic!("an actor gave up: {error}"),
        }
    }

    /// Lets the actors end all instances. Returns their journal.
    pub(super) async fn close(mut self) -> (Arc<Client>, Vec<Settled>) {
        self.shared
            .phase
            .store(Phase::Closing as u8, Ordering::SeqCst);
        while let Some(left) = self.actors.join_next().await {
            left.expect("an actor works to the end");
        }
        (self.shared.client.clone(), self.shared.journal())
    }
}
