//! The status of events that were sent again.

use uuid::Uuid;

use super::ParkedEvent;
use super::many::Key;
use crate::list::Paged;
use crate::pages::instance::deliveries::{self, DeliveryStatus};
use crate::pages::operations::ROOT;
use crate::pages::operations::choices::{FOLLOWED_MAX, Sent};
use crate::session::Visitor;

/// The present status of the events with these keys. `address` has the page on which a script asks again.
pub(super) async fn of(visitor: &Visitor, keys: &[String], address: String) -> Option<Sent> {
    let keys = keys.iter().take(FOLLOWED_MAX);
    let mut statuses = Vec::new();
    for key in keys.filter_map(|key| Key::parse(key)) {
        statuses.push(status(visitor, key.instance, key.event).await);
    }
    Sent::of(address, statuses)
}

/// The status of the event of an instance: refused again, or as in the instance's events.
pub(super) async fn status(
    visitor: &Visitor,
    instance: Uuid,
    event: Option<Uuid>,
) -> DeliveryStatus {
    let w = visitor.w;
    let path = format!("/v1/dead-letters/{instance}?limit=1");
    let parked = visitor.api.get::<Paged<ParkedEvent>>(&path).await;
    let parked = parked.ok().and_then(|found| found.data.into_iter().next());
    let named = DeliveryStatus {
        name: instance.to_string(),
        address: format!("{ROOT}/dead-letters/{instance}"),
        ..DeliveryStatus::default()
    };
    if let Some(parked) = parked.filter(|parked| event.is_none() || parked.event_id == event) {
        return DeliveryStatus {
            state: w.t("sent-refused").into_owned(),
            class: "bad",
            error: parked.error,
            ..named
        };
    }
    let found = match event {
        Some(event) => deliveries::of_kafka(visitor, instance, event).await,
        None => None,
    };
    match found {
        Some(found) => DeliveryStatus {
            name: named.name,
            address: named.address,
            ..found
        },
        // It is not refused, and the visitor may not read more.
        None => DeliveryStatus {
            state: w.t("sent-unknown").into_owned(),
            ..named
        },
    }
}
