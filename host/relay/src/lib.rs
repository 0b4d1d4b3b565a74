//! What the host sends by itself: events to Kafka, notifications to people, and webhooks to subscribers.
//!
//! It uses `wrkflw-core` for the content, `wrkflw-store` for the list of unsent events and deliveries, `wrkflw-runtime` for
//! the time, and `wrkflw-fault` for faults in tests. It is the only crate of the host that uses `rdkafka`. It shares nothing with the
//! engine and the API but the database.
//!
//! The two modules are independent. [`outbox`] sends every public event and the checkpoints to Kafka, in order per instance. [`webhook`]
//! stores notifications, and posts events and notifications to webhooks, without an order. Both deliver at least once, and no command waits
//! for them.
//!
//! Begin with [`outbox::Relay`] or [`webhook::Notifier`].

pub mod outbox;
pub mod webhook;
