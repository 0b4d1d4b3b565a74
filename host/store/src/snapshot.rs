//! The transactions that a snapshot saw, in the text form of PostgreSQL: `xmin:xmax:xid,xid`. It orders events if clocks are too inexact.

use std::str::FromStr;

use super::{Reader, StoreError};

/// A `pg_snapshot`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// All transactions before it had ended.
    min: i64,
    /// No transaction from this number on had begun.
    max: i64,
    /// The transactions in between that had not ended.
    under_way: Vec<i64>,
}

impl Snapshot {
    /// Whether this transaction had ended when the snapshot was taken.
    pub fn saw(&self, transaction: i64) -> bool {
        transaction < self.min || (transaction < self.max && !self.under_way.contains(&transaction))
    }

    /// The oldest transaction that had not ended, if a later one had. Readers of the feed wait for it, and so do checkpoints.
    pub fn held_by(&self) -> Option<i64> {
        (self.min < self.max).then_some(self.min)
    }
}

/// The transactions of the whole server now, also those of other databases.
pub async fn transactions(reader: &Reader) -> Result<Snapshot, StoreError> {
    let text = sqlx::query_scalar!(r#"select pg_current_snapshot()::text as "snapshot!""#)
        .fetch_one(&reader.writer)
        .await?;
    let snapshot = text.parse::<Snapshot>();
    snapshot.map_err(|()| sqlx::Error::Decode(format!("{text} is no snapshot").into()).into())
}

impl FromStr for Snapshot {
    type Err = ();

    fn from_str(text: &str) -> Result<Snapshot, ()> {
        let number = |text: &str| text.parse::<i64>().map_err(drop);
        let (min, rest) = text.split_once(':').ok_or(())?;
        let (max, under_way) = rest.split_once(':').ok_or(())?;
        let under_way = under_way.split(',').filter(|text| !text.is_empty());
        Ok(Snapshot {
            min: number(min)?,
            max: number(max)?,
            under_way: under_way.map(number).collect::<Result<_, ()>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_under_way_was_not_seen() {
        let snapshot: Snapshot = "10:20:12,15".parse().expect("a snapshot");
        let seen: Vec<_> = (8..22).filter(|number| snapshot.saw(*number)).collect();
        assert_eq!(seen, [8, 9, 10, 11, 13, 14, 16, 17, 18, 19]);
        let quiet: Snapshot = "7:7:".parse().expect("a snapshot");
        assert!(quiet.saw(6) && !quiet.saw(7));
        assert_eq!((snapshot.held_by(), quiet.held_by()), (Some(10), None));
        for damaged in ["", "1", "1:2", "a:2:", "1:2:x", "1:2:3,,x"] {
            assert!(damaged.parse::<Snapshot>().is_err(), "{damaged}");
        }
    }
}
