//! The use cases. Every change of an instance goes through one write path, [`pipeline`]. Reads do not: handlers use the
//! [`Reader`](wrkflw_store::Reader).
//!
//! It uses `wrkflw-core` for the rules, `wrkflw-store` for the database, `wrkflw-sandbox` for calls of flow logic,
//! `wrkflw-audit` for seals, signatures and evidence, `wrkflw-runtime` for the time, and `wrkflw-fault` for faults in tests. It
//! knows neither Kafka nor connections, and of HTTP only the calls of [`services`].
//!
//! Start reading at [`Engine::execute`], which runs commands. The other use cases are in groups. [`Engine`] has a method for each
//! group, such as [`Engine::definitions`], which returns a small type with what the functions of the group need. A function that
//! writes checks the permission, validates its values with [`validation`], and writes. A group changes instances only by commands.
//! [`jobs`] runs due jobs. The verification of the audit is in `wrkflw-audit`.

mod actions;
pub mod budgets;
pub mod bulk;
mod calendars;
pub mod checkpoint;
mod checkpoint_list;
mod children;
mod custody;
mod data_changes;
mod dead_letters;
mod definitions;
mod directory;
mod drafts;
mod eligibility;
mod embedding;
mod engine;
pub mod error;
pub mod host_counts;
mod inbox;
pub mod job_handlers;
pub mod jobs;
pub mod migration;
mod names;
mod notifications;
mod observe;
pub mod offload;
mod past;
mod permission;
pub mod pipeline;
pub mod presence;
mod reassessments;
pub mod replay;
mod request;
mod restart;
mod saved_views;
pub mod services;
mod sessions;
mod signals;
mod subscriptions;
pub mod validation;
mod verification;
mod versions;
mod visibility;

pub use actions::{Action, Actions, Refusal};
pub use bulk::Bulk;
pub use calendars::Calendars;
pub use checkpoint_list::{CheckpointStatus, Checkpoints, ListedCheckpoint};
pub use custody::{Audit, ChainLink, CustodyAction, CustodyRecord, SealStatus, Signature};
pub use data_changes::{DataChanges, DataStepAt, data_changes};
pub use dead_letters::DeadLetters;
pub use definitions::{
    Activation, ActivationEffects, Definitions, Published, Retirement, Stopping, check_component,
};
pub use directory::absences::Absences;
pub use directory::me::Me;
pub use directory::roles::{PERMISSIONS, Roles};
pub use directory::{Changed, Directory};
pub use drafts::Drafts;
pub use eligibility::{
    AblePerson, EligibilityAt, EligibilityQueries, ExcludedPerson, Orphan, Preview, TaskEligibility,
};
pub use embedding::{
    EMBED_ISSUE, EMBEDDING_MAX, EmbedTarget, Embedding, Embeddings, NewEmbedding,
    Scope as EmbeddingScope,
};
pub use engine::{Engine, TRUSTED};
pub use error::Error;
pub use inbox::OpenTask;
pub use names::UnknownName;
pub use notifications::Notifications;
pub use pipeline::keep_key;
pub use request::{CALLER_ROLES_MAX, Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
pub use restart::successor;
pub use saved_views::SavedViews;
pub use sessions::{ProviderSession, SESSION_IDLE_MAX, SESSION_MAX, Session, Sessions};
pub use signals::{Correlated, Rendering, SentSignal, SignalStatus, Signals};
pub use subscriptions::{Subscribed, Subscribing, Subscriptions};
pub use verification::Verification;
pub use versions::Versions;
pub use wrkflw_audit::verify::Finding;
pub use wrkflw_store::drafts::Draft;
pub use wrkflw_store::saved_views::SavedView;
pub use wrkflw_store::sessions::{Preference, SessionRow};
