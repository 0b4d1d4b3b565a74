//! Runs the commit statement and reads its results.

use std::sync::LazyLock;

use sqlx::AssertSqlSafe;

use super::rows::Rows;
use super::{BATCH_MAX, Change, CommitResult};
use crate::{Store, StoreError};

impl Store {
    /// Applies each change whose instance has not changed since it was loaded. The results are in the order of the changes.
    /// There are at most [`BATCH_MAX`] changes, of different instances.
    ///
    /// If the database refuses the values of one member, or another transaction locks the row of one, the whole statement
    /// fails and writes nothing. The same happens if a concurrent statement takes the idempotency key of a start; for a
    /// single start, the result is `Taken`. After a broken connection the result of every member is unknown.
    pub async fn commit(&self, changes: &[&Change]) -> Result<Vec<CommitResult>, StoreError> {
        assert!(changes.len() <= BATCH_MAX);
        let rows = Rows::of(changes);
        let verdicts = if rows.has_rare() {
            self.write_all(&rows).await
        } else {
            self.write_common(&rows).await
        };
        let verdicts = match verdicts.map_err(StoreError::from) {
            // A concurrent statement has taken the idempotency key of the start.
            Err(error) if is_start(changes) && error.violates("idempotency_key_pkey") => {
                return Ok(vec![CommitResult::Taken]);
            }
            verdicts => verdicts?,
        };
        Ok(verdicts.iter().map(Verdict::read).collect())
    }

    async fn write_all(&self, rows: &Rows<'_>) -> Result<Vec<Verdict>, sqlx::Error> {
        sqlx::query_file_as!(
            Verdict,
            "src/commit/commit.sql",
            &rows.members as _,
            &rows.replies as _,
            &rows.starts as _,
            &rows.entered as _,
            &rows.departed as _,
            &rows.changed_states as _,
            &rows.created as _,
            &rows.changed as _,
            &rows.offered as _,
            &rows.withdrawn as _,
            &rows.decided as _,
            &rows.attributes as _,
            &rows.entries as _,
            &rows.finished as _,
            &rows.jobs as _,
            &rows.signals as _,
            &rows.allocations as _,
            &rows.subscribed as _,
            &rows.unsubscribed as _,
            &rows.reoffered as _,
            &rows.delegation_seals as _,
            &rows.participants as _,
        )
        .fetch_all(&self.writer)
        .await
    }

    /// Writes rows without rare kinds, by [`COMMON`]. The parameters are those of `write_all` in the same order, without the rare ones.
    async fn write_common(&self, rows: &Rows<'_>) -> Result<Vec<Verdict>, sqlx::Error> {
        sqlx::query_as(AssertSqlSafe(COMMON.as_str()))
            .bind(&rows.members)
            .bind(&rows.replies)
            .bind(&rows.entered)
            .bind(&rows.departed)
            .bind(&rows.created)
            .bind(&rows.changed)
            .bind(&rows.offered)
            .bind(&rows.withdrawn)
            .bind(&rows.decided)
            .bind(&rows.entries)
            .fetch_all(&self.writer)
            .await
    }
}

/// The result of the statement for one member.
#[derive(sqlx::FromRow)]
struct Verdict {
    applied: bool,
    revision_ok: bool,
}

impl Verdict {
    fn read(&self) -> CommitResult {
        match (self.applied, self.revision_ok) {
            (true, _) => CommitResult::Applied,
            (false, false) => CommitResult::Stale,
            (false, true) => CommitResult::Taken,
        }
    }
}

/// The statement without its rare parts. It saves the database 0.13 of 1.0 ms for a single commit, and nothing in a batch of
/// 16.
static COMMON: LazyLock<String> = LazyLock::new(|| common(include_str!("commit.sql")));

/// Leaves out the rare parts of the statement, renumbers its parameters, and gives its columns plain names.
pub fn common(statement: &str) -> String {
    let mut is_rare = false;
    let kept = statement.lines().filter(|line| {
        let marker = line.trim_start();
        is_rare |= marker == "-- {rare";
        let keeps = !is_rare && !marker.starts_with("--");
        is_rare &= marker != "-- }rare";
        keeps
    });
    let kept = kept.collect::<Vec<_>>().join("\n");
    let mut parts = kept.split("unnest($");
    let mut common = vec![parts.next().unwrap_or_default().to_owned()];
    common.extend((1..).zip(parts).map(|(number, part)| {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        format!("unnest(${number}{rest}")
    }));
    let common = common.concat();
    common.replace("!\"", "\"")
}

/// Whether there is one change, and it is a start.
fn is_start(changes: &[&Change]) -> bool {
    matches!(changes, [change] if change.before.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_statement_has_no_rare_part_and_takes_its_parameters_in_order() {
        let numbers: Vec<_> = COMMON.split('$').skip(1).collect();
        assert_eq!(numbers.len(), 10, "as many as are bound");
        for (number, rest) in (1..).zip(numbers) {
            assert!(rest.starts_with(&format!("{number}::commit_")), "{rest}");
        }
        for table in [
            "into job",
            "from job",
            "into signal",
            "signal_subscription",
            "attribute",
            "descendant_place",
            "into allocation",
            "into delegation_seal",
            "reoffered",
            "into participant",
            "entity_is_free",
        ] {
            assert!(!COMMON.contains(table), "{table}");
        }
        for table in [
            "into decision",
            "into task",
            "into audit_entry",
            "into outbox_event",
        ] {
            assert!(COMMON.contains(table), "{table}");
        }
    }
}
