//! PostgreSQL, the only source of truth. Nothing outside this crate names `sqlx` or writes SQL.
//!
//! It uses the types of `wrkflw-core`, the record traits of `wrkflw-audit`, and the fault points of `wrkflw-fault`. It reads no wall
//! clock: the time comes from callers or from the database. It decides nothing about flows: it applies a change as a whole or refuses it.
//!
//! [`Reader`] has one connection pool for each role of the database. [`Store`] is a [`Reader`] that can also write. The functions are
//! in the module of their table: a query takes a [`Reader`]; a change, or a read that must be current, takes a [`Store`]. Commands load
//! with [`load`] and write with [`commit`], which is the only module that changes instances. The migrations in the folder `migrations`
//! of the repository are compiled into this crate.
//!
//! Begin with [`Store`], then [`load`] and [`commit`] with their `.sql` files.

pub mod attempts;
pub mod attributes;
pub mod audit;
pub mod broadcasts;
pub mod bulk;
pub mod calendars;
pub mod checkpoints;
pub mod comments;
pub mod commit;
pub mod compliance;
pub mod custody;
pub mod dead_letters;
pub mod definitions;
pub mod deliveries;
pub mod descendants;
mod described;
pub mod directory;
pub mod drafts;
pub mod entities;
pub mod error;
pub mod event_deliveries;
pub mod feed;
pub mod hosts;
pub mod instances;
pub mod jobs;
pub mod load;
pub mod lookups;
pub mod names;
pub mod notifications;
pub mod notifier;
pub mod open_work;
pub mod outbox;
pub mod past;
mod pool;
pub mod pools;
pub mod prefixes;
pub mod purge;
pub mod reassessments;
pub mod receipts;
pub mod replay;
pub mod saved_views;
pub mod series;
pub mod server;
pub mod sessions;
pub mod signals;
pub mod snapshot;
pub mod starts;
pub mod streams;
pub mod subscriptions;
pub mod tasks;
pub mod tenants;
pub mod time;
pub mod verify;
pub mod viewer;
pub mod work;

pub use error::StoreError;
pub use pools::{PoolSizes, Reader, Store};
