//! Creates, tests and deletes webhook subscriptions, and retries or discards their deliveries.

use uuid::Uuid;

use super::error::Error;
use super::permission::{note, permit};
use super::request::Identity;
use super::validation::{check_key, check_reason};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::subscription::{AllowedAddresses, Patterns, SUBSCRIPTIONS_MAX, target};
use wrkflw_runtime::clock::{self, Clock};
use wrkflw_store::Store;
use wrkflw_store::deliveries::{self, Retried, TESTS_MAX};
use wrkflw_store::subscriptions::{self, NewSubscription, Subscription};

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

/// Webhooks: their subscriptions and deliveries.
#[derive(Clone, Copy)]
pub struct Subscriptions<'a> {
    pub(super) store: &'a Store,
    pub(super) clock: &'a Clock,
}

impl Subscriptions<'_> {
    /// Subscribes a URL to events from now on, if webhooks may reach it.
    pub async fn subscribe(
        self,
        who: &Identity,
        subscribing: Subscribing,
        reach: AllowedAddresses,
    ) -> Result<Subscribed, Error> {
        permit(self.store, who, WRITE).await?;
        let url =
            target(&subscribing.url, reach).map_err(|reason| Error::malformed("/url", reason))?;
        let types = Patterns::new(subscribing.types)
            .map_err(|(number, detail)| Error::malformed(&format!("/types/{number}"), detail))?;
        if let Some(definition) = &subscribing.definition {
            check_key("/definitionKey", definition)?;
        }
        let new = NewSubscription {
            id: clock::new_id(),
            url: url.into(),
            types,
            definition: subscribing.definition,
            secret: clock::random(),
        };
        let note = note(self.clock, &who.subject);
        if !subscriptions::subscribe(self.store, who.tenant, &new, &note).await? {
            let detail =
                format!("a tenant has at most {SUBSCRIPTIONS_MAX} subscriptions: delete one");
            return Err(Rejection::not_now("limit_reached", detail).into());
        }
        Ok(Subscribed {
            subscription: self.get(who, new.id).await?,
            secret: new.secret,
        })
    }

    /// Deletes a subscription and its pending and dead deliveries.
    pub async fn unsubscribe(self, who: &Identity, id: Uuid) -> Result<(), Error> {
        permit(self.store, who, WRITE).await?;
        let note = note(self.clock, &who.subject);
        if subscriptions::unsubscribe(self.store, who.tenant, id, &note).await? {
            Ok(())
        } else {
            Err(missing(id))
        }
    }

    /// Makes dead deliveries of a subscription due again, the oldest first, and enables it.
    pub async fn retry_deliveries(self, who: &Identity, id: Uuid) -> Result<Retried, Error> {
        permit(self.store, who, WRITE).await?;
        let now = self.clock.now();
        let retried = deliveries::retry(self.store, who.tenant, id, now).await?;
        retried.ok_or_else(|| missing(id))
    }

    /// Queues a test delivery. Returns the id of its message.
    pub async fn test(self, who: &Identity, id: Uuid) -> Result<Uuid, Error> {
        permit(self.store, who, WRITE).await?;
        self.get(who, id).await?;
        let (message, now) = (clock::new_id(), self.clock.now());
        if deliveries::test(self.store, who.tenant, id, message, now).await? {
            return Ok(message);
        }
        // It may have been deleted meanwhile.
        self.get(who, id).await?;
        let detail = format!("{TESTS_MAX} tests of this subscription wait to be sent");
        Err(Rejection::not_now("limit_reached", detail).into())
    }

    /// Retries one delivery, whatever its status, and enables its subscription.
    pub async fn retry_delivery(
        self,
        who: &Identity,
        id: Uuid,
        delivery: Uuid,
    ) -> Result<(), Error> {
        permit(self.store, who, WRITE).await?;
        self.get(who, id).await?;
        let now = self.clock.now();
        let found = deliveries::retry_delivery(self.store, who.tenant, id, delivery, now).await?;
        known(found, delivery)
    }

    /// Gives up one delivery that the receiver has not accepted.
    pub async fn discard_delivery(
        self,
        who: &Identity,
        (id, delivery): (Uuid, Uuid),
        reason: &str,
    ) -> Result<(), Error> {
        permit(self.store, who, WRITE).await?;
        check_reason(reason)?;
        self.get(who, id).await?;
        let (which, note) = ((id, delivery), note(self.clock, &who.subject));
        if deliveries::discard_delivery(self.store, who.tenant, which, reason, &note).await? {
            return Ok(());
        }
        let attempts = deliveries::attempts(self.store, who.tenant, id, delivery).await?;
        known(attempts.is_some(), delivery)?;
        Err(Error::DeliveryEnded(delivery))
    }

    /// A subscription. Checks no permission.
    pub async fn get(self, who: &Identity, id: Uuid) -> Result<Subscription, Error> {
        let found = subscriptions::list(self.store, who.tenant, Some(id)).await?;
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
