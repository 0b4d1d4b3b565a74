//! The limit up to which a partition's floor may rise.
//!
//! A transaction draws its position before it commits, so a smaller position may become visible after a larger one was published.
//! If the floor followed the last position sent, the relay would skip such an event, and send it out of order once a later event
//! of its instance came. So a position becomes the horizon only when every transaction that could have drawn it or a smaller one
//! has finished. To find that out, the relay notes the position, then takes a transaction number, and waits until no unfinished
//! transaction is older than that number. (`pg_snapshot_xmax` would be wrong here: it is the number after the last *finished*
//! transaction, and an unfinished one may be beyond it.)

use std::time::{Duration, Instant};

use wrkflw_store::outbox::FenceMark;

/// How often a busy relay takes a mark: a position and a transaction number.
const MARK_EVERY: Duration = Duration::from_millis(250);

/// The facts about unfinished transactions that a relay worker knows. It is reset after a failure of the database.
#[derive(Debug, Default)]
pub(super) struct Fence {
    waiting: Option<(i64, i64)>,
    horizon: i64,
    marked_at: Option<Instant>,
}

impl Fence {
    /// Whether it is time to take another mark.
    pub(super) fn is_due(&self) -> bool {
        self.marked_at.is_none_or(|at| at.elapsed() >= MARK_EVERY)
    }

    /// Takes a mark. Its position waits until all older transactions have finished, unless another position waits already.
    pub(super) fn note(&mut self, mark: FenceMark) {
        self.marked_at = Some(Instant::now());
        if let Some((pos, _)) = self.waiting.take_if(|(_, xid)| mark.oldest >= *xid) {
            self.horizon = pos;
        }
        self.waiting.get_or_insert((mark.drawn, mark.xid));
    }

    /// All transactions with positions up to this one have finished.
    pub(super) fn horizon(&self) -> i64 {
        self.horizon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_once_all_older_writers_have_finished() {
        let mut fence = Fence::default();
        fence.note(FenceMark {
            drawn: 10,
            xid: 100,
            oldest: 95,
        });
        assert_eq!(fence.horizon(), 0);
        fence.note(FenceMark {
            drawn: 20,
            xid: 110,
            oldest: 99,
        });
        assert_eq!(
            fence.horizon(),
            0,
            "transaction 99 may still hold a position up to 10"
        );
        fence.note(FenceMark {
            drawn: 30,
            xid: 120,
            oldest: 100,
        });
        assert_eq!(fence.horizon(), 10);
        fence.note(FenceMark {
            drawn: 40,
            xid: 130,
            oldest: 119,
        });
        assert_eq!(
            fence.horizon(),
            10,
            "the next mark is that of transaction 120"
        );
        fence.note(FenceMark {
            drawn: 50,
            xid: 140,
            oldest: 130,
        });
        assert_eq!(fence.horizon(), 30);
    }
}
