//! Why columns are not proven. The documentation repeats each reason.

pub(super) const ALLOCATED: &str =
    "when somebody was last given a task; it was recorded with each choice that rests on it";
pub(super) const CURSOR: &str = "the position of signing; skipped entries are found as entries without a leaf, repeated ones as entries with two";
pub(super) const DELIVERED: &str = "deliveries to receivers; the events themselves are proven";
pub(super) const ENDURED: &str = "results of deliveries, which nobody decided";
pub(super) const HISTORY: &str = "on which server entries were written; used only in cursors";
pub(super) const FIGURES: &str =
    "figures for operators, kept for a week; what they count is proven";
pub(super) const HOSTS: &str = "which hosts run now";
pub(super) const PART: &str = "who has a part in an instance, so that it is listed for them; derived from events, which are proven";
pub(super) const PROGRESS: &str =
    "progress of an operation; what was done to each instance is an entry of that instance";
pub(super) const READ: &str = "how far the notifier has read";
pub(super) const REPLIES: &str =
    "when a reply was stored, and by which command; replies are deleted after a day";
pub(super) const SENT: &str = "events that Kafka has not acknowledged yet; the events themselves are proven, and a deleted row is found by its number";
pub(super) const SIGNALS: &str = "signals that wait for an instance, or were taken by one; the entry of each taken signal is proven";
pub(super) const SINCE: &str =
    "the commit after which a subscription begins; its creation and time are proven";
pub(super) const PREFERRED: &str = "how a person wants pages to be, which concerns nobody else";
pub(super) const MUTED: &str = "what a person wants to be notified of, which concerns nobody else";
pub(super) const OWN: &str =
    "what a person keeps for themselves, which is not part of what happened";
pub(super) const SIGNED_IN: &str = "sessions of browsers are not part of what happened";
pub(super) const TOLD: &str = "who was notified of what; derived from events, which are proven";
pub(super) const WORK: &str = "pending work; the entries that it leads to are proven";
