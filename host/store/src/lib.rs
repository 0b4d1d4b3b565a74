//! PostgreSQL, the only source of truth. Nothing outside this crate names `sqlx` or writes SQL.
//!
//! It uses `wrkflw-core` for what is stored, `wrkflw-audit` for what auditors read of it, and `wrkflw-fault`. It reads no
//! clock: callers give the time, or the database does. It decides nothing about flows: it applies what
//! was decided, or refuses it whole.
//!
//! [`Reader`] holds one pool per role of the database, and asks. [`Store`] is a [`Reader`] that writes, too: whoever has
//! none cannot write. Commands load with [`load`] and write with [`commit`], which is the only place that changes
//! instances; the other files hold the queries of their tables.
//! Migrations stand in the folder `migrations` of the repository, and are part of this crate's code.
//!
//! Begin with [`Store`], then [`load`] and [`commit`] with their `.sql` files.

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
pub mod descendants;
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
pub mod reassessments;
pub mod receipts;
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
pub use pools::{PoolSizes, Reader, Store};
