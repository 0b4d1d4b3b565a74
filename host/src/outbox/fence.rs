//! How far a lane's floor may rise.
//!
//! Positions are drawn before their transactions commit, so a smaller one may appear after a larger one was
//! published. A floor that followed the last position sent would hide it, and reorder its instance once a later
//! event of it came. So a position becomes the horizon only when everybody who could have drawn it or a smaller one has
//! finished: it was noted, then a transaction number was taken, and now no unfinished transaction is older than
//! that number. (`pg_snapshot_xmax` would not do for the number: it stands for the last *finished* transaction, and the
//! stalled one may be beyond it.)

use std::time::{Duration, Instant};

use crate::store::outbox::Mark;

/// How often a busy relay notes where things stand.
const MARK_EVERY: Duration = Duration::from_millis(250);

/// One relay worker's knowledge of unfinished writers. It forgets everything when the database fails it.
#[derive(Debug, Default)]
pub(super) struct Fence {
    waiting: Option<(i64, i64)>,
    horizon: i64,
    marked_at: Option<Instant>,
}

impl Fence {
    pub(super) fn is_due(&self) -> bool {
        self.marked_at.is_none_or(|at| at.elapsed() >= MARK_EVERY)
    }

    pub(super) fn note(&mut self, mark: Mark) {
        self.marked_at = Some(Instant::now());
        if let Some((pos, _)) = self.waiting.take_if(|(_, xid)| mark.oldest >= *xid) {
            self.horizon = pos;
        }
        self.waiting.get_or_insert((mark.drawn, mark.xid));
    }

    /// Every position up to here has been committed or given up.
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
        fence.note(Mark {
            drawn: 10,
            xid: 100,
            oldest: 95,
        });
        assert_eq!(fence.horizon(), 0);
        fence.note(Mark {
            drawn: 20,
            xid: 110,
            oldest: 99,
        });
        assert_eq!(
            fence.horizon(),
            0,
            "transaction 99 may still hold a position up to 10"
        );
        fence.note(Mark {
            drawn: 30,
            xid: 120,
            oldest: 100,
        });
        assert_eq!(fence.horizon(), 10);
        fence.note(Mark {
            drawn: 40,
            xid: 130,
            oldest: 119,
        });
        assert_eq!(
            fence.horizon(),
            10,
            "the next mark is that of transaction 120"
        );
        fence.note(Mark {
            drawn: 50,
            xid: 140,
            oldest: 130,
        });
        assert_eq!(fence.horizon(), 30);
    }
}
