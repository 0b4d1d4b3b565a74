//! The deliveries of the events of a page, for `include=deliveries`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::App;
use crate::http::problem::Problem;
use crate::http::subscriptions::DeliveryState;
use crate::http::view::{each, view};
use wrkflw_core::ids::TenantId;
use wrkflw_engine::Identity;
use wrkflw_store::event_deliveries::{self, KafkaState};
use wrkflw_store::feed::FeedEntry;

/// Only operators may see deliveries.
const PERMISSIONS: [&str; 2] = ["dead-letter:read", "subscription:read"];

/// A further member of each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) enum EventPart {
    Deliveries,
}

/// Where an event stands on its way to Kafka.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) enum EventState {
    /// The broker has not acknowledged it.
    Waiting,
    /// It is a dead letter.
    Parked,
    /// An operator discarded it. Shown for the newest 1000 discards of a tenant.
    Discarded,
    /// The broker acknowledged it, or it was discarded before the newest 1000 discards.
    Published,
}

/// Where an event stands on its way to Kafka, and since when it is parked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct KafkaView {
    state: EventState,
    /// Why it is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How often it was sent on its own before it was parked. 0 if it only waits behind another event.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    parked_at: Option<Timestamp>,
}

impl From<KafkaState> for KafkaView {
    fn from(state: KafkaState) -> KafkaView {
        let only = |state| KafkaView {
            state,
            error: None,
            attempts: None,
            parked_at: None,
        };
        match state {
            KafkaState::Waiting => only(EventState::Waiting),
            KafkaState::Discarded => only(EventState::Discarded),
            KafkaState::Published => only(EventState::Published),
            KafkaState::Parked {
                error,
                attempts,
                at,
            } => KafkaView {
                state: EventState::Parked,
                error: Some(error),
                attempts: Some(attempts),
                parked_at: Some(at),
            },
        }
    }
}

view! {
    of wrkflw_store::event_deliveries::WebhookState;
    /// The delivery of an event to one subscription.
    pub(in crate::http) struct WebhookView {
        pub subscription_id: Uuid,
        pub url: String,
        #[schema(value_type = DeliveryState)]
        pub state: String,
        pub attempts: i32,
        /// The receiver's last status.
        pub last_status: Option<i16>,
        pub last_error: Option<String>,
        /// When it is tried again, or when it ended.
        #[schema(value_type = String, format = DateTime)]
        pub due_at: Timestamp,
    }
}

view! {
    of wrkflw_store::event_deliveries::EventDelivery;
    /// What became of an event.
    pub(in crate::http) struct EventDeliveries {
        pub kafka: KafkaView => KafkaView::from,
        /// Its deliveries to webhooks of the last 30 days. The id of each is that of the event.
        pub webhooks: Vec<WebhookView> => each,
    }
}

/// Fails if the caller may not see deliveries.
pub(super) async fn permit(app: &App, who: &Identity) -> Result<(), Problem> {
    for permission in PERMISSIONS {
        app.engine.permit(who, permission).await?;
    }
    Ok(())
}

/// The deliveries of these events, by the ids of the events.
pub(super) async fn of(
    app: &App,
    tenant: TenantId,
    events: &[FeedEntry],
) -> Result<BTreeMap<Uuid, EventDeliveries>, Problem> {
    let reader = app.engine.reader();
    let found = event_deliveries::list(reader, tenant, events).await?;
    let found = found.into_iter();
    Ok(found.map(|(id, delivery)| (id, delivery.into())).collect())
}
