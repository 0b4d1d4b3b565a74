//! The correlation keys under which state instances subscribe to signals, as rows, and the jobs that match earlier signals.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Of, Rows, SubscriptionRow};
use crate::commit::Change;
use crate::time::Time;
use wrkflw_core::ids::StateId;
use wrkflw_core::instance::Instance;

/// A state instance, when it was entered, a trigger and a correlation key.
type Known<'a> = (StateId, Timestamp, &'a str, &'a str);

impl<'a> Rows<'a> {
    /// Adds and removes the rows of subscriptions. A state instance with new ones gets a job that matches the signals that were
    /// sent before. The job has the id of the state instance and ends with its last subscription.
    pub(super) fn subscriptions(&mut self, of: Of, change: &'a Change) {
        let before = change.before.as_ref().map(|stored| &stored.instance);
        let (old, new) = (before.map(known).unwrap_or_default(), known(&change.after));
        let state_of = |one: &Known<'_>| one.0;
        let current: BTreeSet<StateId> = new.iter().map(state_of).collect();
        let earlier: BTreeSet<StateId> = old.iter().map(state_of).collect();
        let begun: BTreeSet<StateId> = new.difference(&old).map(state_of).collect();
        let rows = |these: Vec<&Known<'a>>| -> Vec<SubscriptionRow<'a>> {
            these
                .into_iter()
                .map(|one| SubscriptionRow::of(of, *one))
                .collect()
        };
        self.subscribed.extend(rows(new.difference(&old).collect()));
        self.unsubscribed
            .extend(rows(old.difference(&new).collect()));
        for state in earlier.difference(&current) {
            self.finish(of, state.0);
        }
        let (instance, now) = (change.after.id, change.after.updated_at);
        for state in begun {
            self.job(
                of,
                state.0,
                "match_signals",
                instance,
                now,
                &serde_json::json!({}),
            );
        }
    }
}

fn known(instance: &Instance) -> BTreeSet<Known<'_>> {
    let active = instance.active.iter();
    let all = active.flat_map(|state_instance| {
        let correlated = state_instance.correlated();
        correlated.map(|(one, key)| {
            (
                state_instance.id,
                state_instance.entered_at,
                one.trigger.as_str(),
                key,
            )
        })
    });
    all.collect()
}

impl<'a> SubscriptionRow<'a> {
    fn of(of: Of, (state, entered_at, trigger, correlation): Known<'a>) -> SubscriptionRow<'a> {
        SubscriptionRow {
            member: of.member,
            tenant_id: of.tenant,
            correlation,
            trigger,
            entered_at: Time(entered_at),
            state_id: state.0,
            instance_id: of.instance,
        }
    }
}
