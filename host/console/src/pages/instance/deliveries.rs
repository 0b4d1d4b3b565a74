//! The deliveries of the events of an instance: whether Kafka has them, and their deliveries to webhooks.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::api::with_query;
use crate::language::Words;
use crate::list::PageInfo;
use crate::moment::Moment;
use crate::session::Visitor;

/// The address of the pages of dead letters and deliveries.
const OPERATIONS: &str = "/console/operations";

/// Pages of an instance's events that are searched for one.
const PAGES_MAX: usize = 5;

/// The deliveries of each event, by its id.
pub(super) type Deliveries = BTreeMap<Uuid, Delivery>;

/// A page of events.
#[derive(Deserialize)]
struct EventPage {
    data: Vec<IgnoredAny>,
    page: PageInfo,
    #[serde(default)]
    deliveries: Deliveries,
}

#[derive(Deserialize)]
pub(super) struct Delivery {
    kafka: Kafka,
    webhooks: Vec<Webhook>,
}

#[derive(Deserialize)]
struct Kafka {
    state: String,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    subscription_id: Uuid,
    url: String,
    state: String,
    last_status: Option<i16>,
    last_error: Option<String>,
    due_at: Timestamp,
}

/// The status of an event at Kafka or at one receiver.
#[derive(Default)]
pub(in crate::pages) struct DeliveryStatus {
    /// To whom: Kafka, or the address of a receiver.
    pub(in crate::pages) name: String,
    /// The page of the dead letter or the delivery; empty if there is none.
    pub(in crate::pages) address: String,
    pub(in crate::pages) state: String,
    /// The class of a badge.
    pub(in crate::pages) class: &'static str,
    /// Why it failed last; empty if it has not failed.
    pub(in crate::pages) error: String,
    /// When it was delivered, or is tried again.
    pub(in crate::pages) at: Option<Moment>,
}

impl Delivery {
    /// The statuses of an event of this instance, Kafka first.
    pub(super) fn statuses(&self, instance: Uuid, event: Uuid, w: Words) -> Vec<DeliveryStatus> {
        let webhooks = self.webhooks.iter().map(|one| one.status(event, w));
        let kafka = self.kafka.status(instance, w);
        std::iter::once(kafka).chain(webhooks).collect()
    }
}

/// The status of an event of an instance at Kafka. None if it is not among the instance's first events, or the visitor may not
/// read deliveries.
pub(in crate::pages) async fn of_kafka(
    visitor: &Visitor,
    instance: Uuid,
    event: Uuid,
) -> Option<DeliveryStatus> {
    let id = instance.to_string();
    let mut after = String::new();
    for _ in 0..PAGES_MAX {
        let parameters = [
            ("instanceId", id.as_str()),
            ("include", "deliveries"),
            ("limit", "100"),
            ("after", &after),
        ];
        let path = with_query("/v1/events", &parameters);
        let found: EventPage = visitor.api.get(&path).await.ok()?;
        if let Some(delivery) = found.deliveries.get(&event) {
            return Some(delivery.kafka.status(instance, visitor.w));
        }
        after = found.page.next.filter(|_| !found.data.is_empty())?;
    }
    None
}

impl Kafka {
    fn status(&self, instance: Uuid, w: Words) -> DeliveryStatus {
        let (class, address) = match self.state.as_str() {
            "published" => ("good", String::new()),
            "parked" => ("bad", format!("{OPERATIONS}/dead-letters/{instance}")),
            "waiting" => ("waiting", String::new()),
            _ => ("", String::new()),
        };
        DeliveryStatus {
            name: "Kafka".to_owned(),
            address,
            state: known("kafka", &self.state, w),
            class,
            error: self.error.clone().unwrap_or_default(),
            at: None,
        }
    }
}

impl Webhook {
    fn status(&self, event: Uuid, w: Words) -> DeliveryStatus {
        let class = match self.state.as_str() {
            "delivered" => "good",
            "dead" => "bad",
            "pending" => "waiting",
            _ => "",
        };
        let status = self.last_status.map(|status| status.to_string());
        let parts = [status, self.last_error.clone()].into_iter().flatten();
        let failed = self.last_error.is_some();
        DeliveryStatus {
            name: self.url.clone(),
            address: format!("{OPERATIONS}/webhooks/{}/{event}", self.subscription_id),
            state: known("delivery", &self.state, w),
            class,
            error: if failed {
                parts.collect::<Vec<_>>().join(" · ")
            } else {
                String::new()
            },
            at: Some(Moment::of(self.due_at, w)),
        }
    }
}

/// The text of a state; the state itself if the console does not know it.
fn known(of: &str, state: &str, w: Words) -> String {
    w.known(&format!("{of}-{state}"))
        .map_or_else(|| state.to_owned(), std::borrow::Cow::into_owned)
}
