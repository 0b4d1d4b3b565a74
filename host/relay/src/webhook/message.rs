//! The message to a receiver: a structured `CloudEvent`, signed as by Standard Webhooks.

use jiff::Timestamp;

use wrkflw_core::cloudevent::{CloudEvent, Naming};
use wrkflw_core::json::JsonError;
use wrkflw_runtime::signature::sign;
use wrkflw_store::deliveries::Claimed;

/// A body with the headers that authenticate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: String,
    /// The time of this attempt, in seconds of the Unix epoch. Receivers refuse old ones, so that none is replayed.
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) body: String,
}

impl Message {
    /// Fails only for a damaged entry.
    pub(super) fn of(
        claimed: &Claimed,
        naming: &Naming,
        now: Timestamp,
    ) -> Result<Message, JsonError> {
        let event = match (&claimed.entry, &claimed.notification) {
            (Some(entry), Some(notification)) => {
                CloudEvent::notification(notification, entry, naming)?
            }
            (Some(entry), None) => CloudEvent::of(entry, naming)?,
            (None, _) => {
                let (tenant, subscription) = (&claimed.tenant, claimed.queue.subscription);
                let at = claimed.created_at;
                CloudEvent::test(tenant, subscription, claimed.message, at, naming)
            }
        };
        let (id, timestamp) = (claimed.message.to_string(), now.as_second().to_string());
        let body = event.structured().as_str().to_owned();
        Ok(Message {
            signature: sign(&claimed.secret, &id, &timestamp, &body),
            id,
            timestamp,
            body,
        })
    }
}
