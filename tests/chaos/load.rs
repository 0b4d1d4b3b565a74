//! Many actors at once, and a journal of what each was told. A command whose answer was lost is sent again with its
//! key, to whichever host is there, until it is answered.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::actors::Actor;
use super::client::{Client, Order, Reply};
use super::dice::Dice;
use super::field::{Field, PATIENCE};

/// The pause of a caller who got no answer, or was asked to come later.
pub(super) const PAUSE: Duration = Duration::from_millis(25);
/// Before the key of every command that the journal keeps.
pub(super) const KEY_PREFIX: &str = "k-";
/// Between two crashes, so many commands at the least and at the most are accepted.
const MOMENT: (usize, usize) = (5, 40);
/// And then somewhere within a command.
const MOMENT_MILLIS: usize = 30;

/// What became of a command.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) order: Order,
    /// How often nothing was known of it, or it was said to be uncertain.
    pub(super) doubts: u32,
    pub(super) reply: Reply,
}

/// What the actors want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Begin and carry on.
    Busy,
    /// Bring everything to its end, then leave.
    Closing,
}

/// What actors share.
pub(super) struct Shared {
    pub(super) client: Arc<Client>,
    pub(super) hosts: usize,
    journal: Mutex<Vec<Settled>>,
    accepted: watch::Sender<u64>,
    phase: AtomicU8,
    number: AtomicU64,
}

/// Actors at work.
pub(super) struct Load {
    shared: Arc<Shared>,
    actors: JoinSet<()>,
    dice: Dice,
}

impl Shared {
    pub(super) fn new(field: &Field) -> Arc<Shared> {
        Arc::new(Shared {
            client: field.client(),
            hosts: field.hosts(),
            journal: Mutex::default(),
            accepted: watch::Sender::new(0),
            phase: AtomicU8::new(Phase::Busy as u8),
            number: AtomicU64::new(0),
        })
    }

    pub(super) fn is_closing(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == Phase::Closing as u8
    }

    /// What no other command is called.
    pub(super) fn key(&self) -> String {
        format!("{KEY_PREFIX}{}", self.number.fetch_add(1, Ordering::SeqCst))
    }

    /// Sends a command until it is answered, and writes down what was said.
    pub(super) fn settle(&self, dice: &mut Dice, order: Order) -> Reply {
        let deadline = Instant::now() + PATIENCE;
        let mut doubts = 0;
        loop {
            let said = self.client.post(dice.below(self.hosts), &order);
            match said {
                // Who is told that the service is not available knows as little as who is told nothing.
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
                // Nothing was sent to a host that is down.
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

    /// Asks until a host answers.
    pub(super) fn persist(&self, ask: impl Fn(&Client) -> Result<Reply, String>) -> Reply {
        let deadline = Instant::now() + PATIENCE;
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
    /// Lets so many actors begin.
    pub(super) fn begin(field: &Field, actors: usize) -> Load {
        let seed = Dice::seed();
        eprintln!("seed {seed}");
        let shared = Shared::new(field);
        let mut working = JoinSet::new();
        for number in 0..actors {
            let actor = Actor::new(shared.clone(), number, seed);
            working.spawn_blocking(move || actor.work());
        }
        Load {
            shared,
            actors: working,
            dice: Dice::new(seed),
        }
    }

    /// Waits for a moment by chance: while commands are accepted, and so only if they are.
    pub(super) async fn moment(&mut self) {
        let (least, most) = MOMENT;
        let count = least + self.dice.below(most - least);
        self.accepted(u64::try_from(count).expect("a few")).await;
        let within = self.dice.below(MOMENT_MILLIS);
        tokio::time::sleep(Duration::from_millis(within as u64)).await;
    }

    /// Waits until so many more commands are accepted.
    async fn accepted(&mut self, more: u64) {
        let mut accepted = self.shared.accepted.subscribe();
        let goal = *accepted.borrow() + more;
        // What it gives holds a lock: kept, an actor and the look at the count below would wait for each other.
        let enough = async { drop(accepted.wait_for(|count| *count >= goal).await) };
        let waiting = tokio::time::timeout(PATIENCE, enough);
        tokio::select! {
            waited = waiting => {
                let count = *self.shared.accepted.borrow();
                assert!(waited.is_ok(), "nothing goes on: {count} commands were accepted, not {goal}");
            }
            Some(Err(error)) = self.actors.join_next() => panic!("an actor gave up: {error}"),
        }
    }

    /// Lets the actors bring everything to its end. Gives their journal.
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
