//! Many concurrent actors, and a journal of their answers. A command whose answer was lost is sent again with its key, to
//! whichever host is up, until it is answered.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::actors::Actor;
use super::client::{Client, Order, Reply};
use super::fixture::{Fixture, TIMEOUT};
use super::random::Random;

/// The pause of a caller who got no answer, or was told to retry later.
pub(super) const PAUSE: Duration = Duration::from_millis(25);
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
    accepted: watch::Sender<u64>,
    phase: AtomicU8,
    number: AtomicU64,
}

/// The running actors.
pub(super) struct Load {
    shared: Arc<Shared>,
    actors: JoinSet<()>,
    random: Random,
}

impl Shared {
    pub(super) fn new(fixture: &Fixture) -> Arc<Shared> {
        Arc::new(Shared {
            client: fixture.client(),
            hosts: fixture.hosts(),
            journal: Mutex::default(),
            accepted: watch::Sender::new(0),
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
            let said = self.client.post(random.below(self.hosts), &order);
            match said {
                // After a response that the service is unavailable, the caller knows as little as without a response.
                Ok(ref reply) if reply.status != 503 => {
                    let is_accepted = reply.is_accepted();
                    let settled = Settled {
                        order,
                        doubts,
                        reply: reply.clone(),
                    };
                    self.journal.lock().expect("a lock").push(settled);
                    if is_accepted {
                        self.accepted.send_modify(|count| *count += 1);
                    }
                    return reply.clone();
                }
                // The host was down, so nothing was sent.
                Err(ref error) if error == super::client::DOWN => {}
                _ => doubts += 1,
            }
            assert!(
                Instant::now() < deadline,
                "{} {} was never answered: {said:?}",
                order.path,
                order.key
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// Repeats a request until a host answers.
    pub(super) fn persist(&self, ask: impl Fn(&Client) -> Result<Reply, String>) -> Reply {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let said = ask(&self.client);
            match said {
                Ok(reply) if reply.status != 503 => return reply,
                _ => assert!(Instant::now() < deadline, "never answered: {said:?}"),
            }
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) fn journal(&self) -> Vec<Settled> {
        self.journal.lock().expect("a lock").clone()
    }
}

impl Load {
    /// Starts so many actors.
    pub(super) fn begin(fixture: &Fixture, actors: usize) -> Load {
        let seed = Random::seed();
        eprintln!("seed {seed}");
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
        let count = least + self.random.below(most - least);
        self.accepted(u64::try_from(count).expect("a few")).await;
        let within = self.random.below(MOMENT_MILLIS);
        tokio::time::sleep(Duration::from_millis(within as u64)).await;
    }

    /// Waits until so many more commands are accepted.
    async fn accepted(&mut self, more: u64) {
        let mut accepted = self.shared.accepted.subscribe();
        let goal = *accepted.borrow() + more;
        // The guard that it returns holds a lock. If it were kept, an actor and the read of the count below would deadlock.
        let enough = async { drop(accepted.wait_for(|count| *count >= goal).await) };
        let waiting = tokio::time::timeout(TIMEOUT, enough);
        tokio::select! {
            waited = waiting => {
                let count = *self.shared.accepted.borrow();
                assert!(waited.is_ok(), "nothing goes on: {count} commands were accepted, not {goal}");
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
