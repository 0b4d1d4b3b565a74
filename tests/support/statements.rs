//! Counts the statements that a test's own thread sends to the database.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// Counts until it is dropped. For a test on one thread that sends all statements.
pub(crate) struct Statements {
    count: Count,
    _counting: DefaultGuard,
    /// With a single dispatcher, other threads could disable its callsites for all threads.
    _another: Dispatch,
}

#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl<S: Subscriber> Layer<S> for Count {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            let mut statement = Ours(false);
            event.record(&mut statement);
            self.0
                .fetch_add(usize::from(statement.0), Ordering::Relaxed);
        }
    }
}

/// Whether a statement is the store's own, and not part of opening a connection.
struct Ours(bool);

/// The prefixes of a new connection's statements: those of the pools, and those of sqlx, which looks up types and columns.
const OPENING: [&str; 5] = [
    "wrkflw.session",
    "set role",
    "begin_history()",
    "pg_type",
    "attrelid table_oid",
];

impl Visit for Ours {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "summary" {
            let text = format!("{value:?}");
            self.0 = !OPENING.iter().any(|one| text.contains(one));
        }
    }
}

impl Statements {
    pub(crate) fn count() -> Statements {
        let count = Count::default();
        let subscriber = tracing_subscriber::registry().with(count.clone());
        let another = tracing_subscriber::registry().with(Count::default());
        Statements {
            _another: Dispatch::new(another),
            _counting: tracing::subscriber::set_default(subscriber),
            count,
        }
    }

    pub(crate) fn since_last(&self) -> usize {
        self.count.0.swap(0, Ordering::Relaxed)
    }
}
