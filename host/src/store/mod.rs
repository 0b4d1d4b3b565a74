//! PostgreSQL, the only source of truth. Nothing outside this folder names `sqlx` or writes SQL.
//!
//! [`Store`] holds one pool per role of the database. Commands load with [`load`] and write with [`commit`],
//! which is the only place that changes instances; the other files hold the queries of their tables.

pub mod attempts;
pub mod attributes;
pub mod audit;
pub mod bulk;
pub mod calendars;
pub mod checkpoints;
pub mod commit;
pub mod compliance;
pub mod custody;
pub mod dead_letters;
pub mod definitions;
pub mod deliveries;
pub mod directory;
pub mod entities;
pub mod error;
pub mod feed;
pub mod instances;
pub mod jobs;
pub mod load;
mod lookups;
pub mod notifications;
pub mod notifier;
pub mod outbox;
pub mod past;
mod pool;
pub mod pools;
pub mod purge;
pub mod receipts;
pub mod rechecks;
mod renewal;
pub mod signals;
pub mod snapshot;
pub mod starts;
pub mod streams;
pub mod subscriptions;
pub mod tasks;
mod tenants;
pub mod time;
pub mod verify;
pub mod work;

pub use error::StoreError;
pub use pools::{PoolSizes, Store};
