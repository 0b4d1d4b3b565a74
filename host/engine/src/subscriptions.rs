//! Creates and deletes webhook subscriptions, and retries dead deliveries.

use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use super::validation::{check_key, check_reason};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::subscription::{AllowedAddresses, Patterns, SUBSCRIPTIONS_MAX, target};
use wrkflw_runtime::clock;
use wrkflw_store::deliveries::{Retried, TESTS_MAX};
use wrkflw_store::subscriptions::{NewSubscription, Subscription};

/// The permission that changes of subscriptions need.
const WRITE: &str = "subscription:write";

/// A subscription to create.
#[derive(Debug, Clone)]
pub struct Subscribing {
    pub url: String,
    /// Names of event types, or families of them.
    pub types: Vec<String>,
    pub definition: Option<String>,
}

/// A new subscription. The secret is never shown again.
#[derive(Debug, Clone)]
pub struct Subscribed {
    pub subscription: Subscription,
    pub secret: [u8; 32],
}

impl Engine {
    /// Subscribes a URL to events from now on, if webhooks may reach it.
    pub async fn subscribe(
        &self,
        who: &Identity,
        asked: Subscribing,
        reach: AllowedAddresses,
    ) -> Result<Subscribed, Error> {
        self.permit(who, WRITE).await?;
        let url = target(&asked.url, reach).map_err(|reason| Error::malformed("/url", reason))?;
        let types = Patterns::new(asked.types)
            .map_err(|(number, detail)| Error::malformed(&format!("/types/{number}"), detail))?;
        if let Some(definition) = &asked.definition {
            check_key("/definitionKey", definition)?;
        }
        let new = NewSubscription {
            id: clock::new_id(),
            url: url.into(),
            types,
            definition: asked.definition,
            secret: clock::random(),
        };
        let note = self.note(&who.subject);
        if !self.0.store.subscribe(who.tenant, &new, &note).await? {
            let detail =
                format!("a tenant has at most {SUBSCRIPTIONS_MAX} subscriptions: delete one");
            return Err(Rejection::not_now("limit_reached", detail).into());
        }
        Ok(Subscribed {
            subscription: self.subscription(who, new.id).await?,
            secret: new.secret,
        })
    }

    /// Deletes a subscription and its pending and dead deliveries.
    pub async fn unsubscribe(&self, who: &Identity, id: Uuid) -> Result<(), Error> {
        self.permit(who, WRITE).await?;
        let note = self.note(&who.subject);
        if self.0.store.unsubscribe(who.tenant, id, &note).await? {
            Ok(())
        } else {
            Err(missing(id))
        }
    }

    /// Makes dead deliveries of a subscription due again, the oldest first, and enables it.
    pub async fn retry_deliveries(&self, who: &Identity, id: Uuid) -> Result<Retried, Error> {
        self.permit(who, WRITE).await?;
        let now = self.0.clock.now();
        let retried = self.0.store.retry_deliveries(who.tenant, id, now).await?;
        retried.ok_or_else(|| missing(id))
    }

    /// Queues a test delivery. Returns the id of its message.
    pub async fn test_subscription(&self, who: &Identity, id: Uuid) -> Result<Uuid, Error> {
        self.permit(who, WRITE).await?;
        self.subscription(who, id).await?;
        let (message, now) = (clock::new_id(), self.0.clock.now());
        let store = &self.0.store;
        if store
            .test_subscription(who.tenant, id, message, now)
            .await?
        {
            return Ok(message);
        }
        // It may have been deleted meanwhile.
        self.subscription(who, id).await?;
        let detail = format!("{TESTS_MAX} tests of this subscription wait to be sent");
        Err(Rejection::not_now("limit_reached", detail).into())
    }

    /// Retries one delivery, whatever its status, and enables its subscription.
    pub async fn retry_delivery(
        &self,
        who: &Identity,
        id: Uuid,
        delivery: Uuid,
    ) -> Result<(), Error> {
        self.permit(who, WRITE).await?;
        self.subscription(who, id).await?;
        let now = self.0.clock.now();
        let store = &self.0.store;
        let found = store.retry_delivery(who.tenant, id, delivery, now).await?;
        known(found, delivery)
    }

    /// Gives up one delivery that the receiver has not accepted.
    pub async fn discard_delivery(
        &self,
        who: &Identity,
        (id, delivery): (Uuid, Uuid),
        reason: &str,
    ) -> Result<(), Error> {
        self.permit(who, WRITE).await?;
        check_reason(reason)?;
        self.subscription(who, id).await?;
        let (store, note) = (&self.0.store, self.note(&who.subject));
        let discarded = store.discard_delivery(who.tenant, (id, delivery), reason, &note);
        if discarded.await? {
            return Ok(());
        }
        let attempts = self.reader().delivery_attempts(who.tenant, id, delivery);
        known(attempts.await?.is_some(), delivery)?;
        Err(Error::DeliveryEnded(delivery))
    }

    /// A subscription. Checks no permission.
    pub async fn subscription(&self, who: &Identity, id: Uuid) -> Result<Subscription, Error> {
        let found = self.0.store.subscriptions(who.tenant, Some(id)).await?;
        found.into_iter().next().ok_or_else(|| missing(id))
    }
}

fn known(found: bool, delivery: Uuid) -> Result<(), Error> {
    if found {
        Ok(())
    } else {
        Err(Error::missing("delivery", delivery))
    }
}

fn missing(id: Uuid) -> Error {
    Error::missing("subscription", id)
}
