//! The statement itself, and how its verdicts are read.

use super::rows::Rows;
use super::{BATCH_MAX, Change, Verdict};
use crate::store::{Store, StoreError};

impl Store {
    /// Applies each change that still fits its instance; the verdicts are in the order of the changes. At most
    /// [`BATCH_MAX`] changes, of different instances.
    ///
    /// When one member's values are refused by the database, or somebody holds the row of one, the whole statement
    /// fails; the members are then applied one by one, each with a result of its own, so that the others do not pay
    /// for it. The outer error says that nothing is known of any member.
    pub async fn commit(
        &self,
        changes: &[&Change],
    ) -> Result<Vec<Result<Verdict, StoreError>>, StoreError> {
        debug_assert!(changes.len() <= BATCH_MAX);
        let error = match self.commit_together(changes).await {
            Ok(verdicts) => return Ok(verdicts.into_iter().map(Ok).collect()),
            Err(error)
                if changes.len() == 1 || (error.is_passing() && !error.is_lock_timeout()) =>
            {
                return Err(error);
            }
            Err(error) => error,
        };
        metrics::counter!("wrkflw_commit_batches_split_total").increment(1);
        tracing::warn!(%error, members = changes.len(), "a batch failed; its members are applied one by one");
        let mut results = Vec::with_capacity(changes.len());
        for change in changes {
            let result = self.commit_together(&[change]).await;
            results
                .push(result.map(|verdicts| verdicts.first().copied().unwrap_or(Verdict::Stale)));
        }
        Ok(results)
    }

    #[expect(clippy::too_many_lines, reason = "one statement, one parameter a line")]
    async fn commit_together(&self, changes: &[&Change]) -> Result<Vec<Verdict>, StoreError> {
        let rows = Rows::of(changes);
        let verdicts = sqlx::query_file!(
            "src/store/commit/commit.sql",
            &rows.members.tenant as _,
            &rows.members.id as _,
            &rows.members.command as _,
            &rows.members.revision_from as _,
            &rows.members.revision_to as _,
            &rows.members.lane as _,
            &rows.members.status as _,
            &rows.members.outcome as _,
            &rows.members.end_reason as _,
            &rows.members.ended_by as _,
            &rows.members.ended_at as _,
            &rows.members.data as _,
            &rows.members.updated_at as _,
            &rows.members.audit_seq as _,
            &rows.members.audit_head as _,
            &rows.members.event_seq as _,
            &rows.members.stays as _,
            &rows.members.suspended_at as _,
            &rows.members.suspended_by as _,
            &rows.members.suspend_reason as _,
            &rows.members.early_signals as _,
            &rows.members.definition_version as _,
            &rows.replies.tenant as _,
            &rows.replies.command as _,
            &rows.replies.principal as _,
            &rows.replies.key as _,
            &rows.replies.fingerprint as _,
            &rows.replies.status as _,
            &rows.replies.body as _,
            &rows.replies.headers as _,
            &rows.replies.created_at as _,
            &rows.starts.command as _,
            &rows.starts.definition_key as _,
            &rows.starts.definition_version as _,
            &rows.starts.entity_type as _,
            &rows.starts.entity_id as _,
            &rows.starts.initiator as _,
            &rows.starts.requesters as _,
            &rows.starts.predecessor as _,
            &rows.starts.parent as _,
            &rows.starts.started_at as _,
            &rows.entered.command as _,
            &rows.entered.id as _,
            &rows.entered.ordinal as _,
            &rows.entered.name as _,
            &rows.entered.entered_at as _,
            &rows.entered.due_at as _,
            &rows.entered.predecessors as _,
            &rows.entered.entered_by as _,
            &rows.entered.caller as _,
            &rows.entered.needed as _,
            &rows.entered.exclude as _,
            &rows.entered.fallback as _,
            &rows.entered.priority as _,
            &rows.entered.forks as _,
            &rows.entered.choices as _,
            &rows.entered.waiting as _,
            &rows.entered.deadlines as _,
            &rows.entered.correlation as _,
            &rows.entered.keep_early as _,
            &rows.entered.children as _,
            &rows.entered.unassignable_since as _,
            &rows.entered.left_at as _,
            &rows.entered.left_by as _,
            &rows.entered.left_actor as _,
            &rows.departed.command as _,
            &rows.departed.id as _,
            &rows.departed.left_at as _,
            &rows.departed.left_by as _,
            &rows.departed.left_actor as _,
            &rows.restayed.command as _,
            &rows.restayed.id as _,
            &rows.restayed.name as _,
            &rows.restayed.entered_at as _,
            &rows.restayed.due_at as _,
            &rows.restayed.predecessors as _,
            &rows.restayed.entered_by as _,
            &rows.restayed.caller as _,
            &rows.restayed.needed as _,
            &rows.restayed.exclude as _,
            &rows.restayed.fallback as _,
            &rows.restayed.priority as _,
            &rows.restayed.forks as _,
            &rows.restayed.choices as _,
            &rows.restayed.waiting as _,
            &rows.restayed.deadlines as _,
            &rows.restayed.correlation as _,
            &rows.restayed.keep_early as _,
            &rows.restayed.children as _,
            &rows.restayed.unassignable_since as _,
            &rows.restayed.left_at as _,
            &rows.restayed.left_by as _,
            &rows.restayed.left_actor as _,
            &rows.created.command as _,
            &rows.created.id as _,
            &rows.created.state as _,
            &rows.created.ordinal as _,
            &rows.created.label as _,
            &rows.created.status as _,
            &rows.created.owner as _,
            &rows.created.candidates as _,
            &rows.created.form as _,
            &rows.created.created_at as _,
            &rows.created.claimed_at as _,
            &rows.created.ended_at as _,
            &rows.created.due_at as _,
            &rows.created.deadlines as _,
            &rows.created.holding as _,
            &rows.changed.command as _,
            &rows.changed.id as _,
            &rows.changed.status as _,
            &rows.changed.owner as _,
            &rows.changed.candidates as _,
            &rows.changed.claimed_at as _,
            &rows.changed.ended_at as _,
            &rows.changed.due_at as _,
            &rows.changed.deadlines as _,
            &rows.changed.holding as _,
            &rows.changed.cancel_reason as _,
            &rows.offered.command as _,
            &rows.offered.task as _,
            &rows.offered.kind as _,
            &rows.offered.principal as _,
            &rows.withdrawn.command as _,
            &rows.withdrawn.task as _,
            &rows.decided.command as _,
            &rows.decided.task as _,
            &rows.decided.outcome as _,
            &rows.decided.actor as _,
            &rows.decided.on_behalf_of as _,
            &rows.decided.comment as _,
            &rows.decided.input as _,
            &rows.decided.decided_at as _,
            &rows.decided.key_id as _,
            &rows.decided.mac_version as _,
            &rows.decided.mac as _,
            &rows.attributed.command as _,
            &rows.attributed.name as _,
            &rows.attributed.kind as _,
            &rows.attributed.text as _,
            &rows.attributed.boolean as _,
            &rows.attributed.decimal as _,
            &rows.attributed.float as _,
            &rows.attributed.timestamp as _,
            &rows.attributed.bytes as _,
            &rows.unattributed.command as _,
            &rows.unattributed.name as _,
            &rows.audited.command as _,
            &rows.audited.seq as _,
            &rows.audited.id as _,
            &rows.audited.kind as _,
            &rows.audited.revision as _,
            &rows.audited.actor as _,
            &rows.audited.task as _,
            &rows.audited.payload as _,
            &rows.audited.evidence as _,
            &rows.audited.salt as _,
            &rows.audited.at as _,
            &rows.audited.hash as _,
            &rows.audited.event_seq as _,
            &rows.audited.traceparent as _,
            &rows.put.command as _,
            &rows.put.id as _,
            &rows.put.kind as _,
            &rows.put.instance as _,
            &rows.put.due_at as _,
            &rows.put.payload as _,
            &rows.finished.command as _,
            &rows.finished.id as _,
            &rows.signals.command as _,
            &rows.signals.signal as _,
            &rows.signals.at as _,
            &rows.created.cancel_reason as _,
        )
        .fetch_all(&self.writer)
        .await?;
        Ok(verdicts
            .into_iter()
            .map(|verdict| read(verdict.applied, verdict.revision_ok))
            .collect())
    }
}

fn read(applied: bool, revision_ok: bool) -> Verdict {
    match (applied, revision_ok) {
        (true, _) => Verdict::Applied,
        (false, false) => Verdict::Stale,
        (false, true) => Verdict::Taken,
    }
}
