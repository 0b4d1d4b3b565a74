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
struct Count {
    statements: Arc<AtomicUsize>,
    /// The words of the statements that count. If they are empty, all count.
    words: &'static str,
}

impl<S: Subscriber> Layer<S> for Count {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            let mut statement = Statement {
                words: self.words,
                counts: false,
            };
            event.record(&mut statement);
            self.statements
                .fetch_add(usize::from(statement.counts), Ordering::Relaxed);
        }
    }
}

struct Statement {
    words: &'static str,
    /// Whether it has these words, is the store's own, and no part of opening a connection.
    counts: bool,
}

/// The prefixes of a new connection's statements: those of the pools, and those of sqlx, which looks up types and columns.
const OPENING: [&str; 5] = [
    "wrkflw.session",
    "set role",
    "begin_history()",
    "pg_type",
    "attrelid table_oid",
];

impl Visit for Statement {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "summary" {
            let text = format!("{value:?}");
            let opens = OPENING.iter().any(|one| text.contains(one));
            self.counts = !opens && text.contains(self.words);
        }
    }
}

impl Statements {
    pub(crate) fn count() -> Statements {
        Statements::count_with("")
    }

    /// Counts only the statements that have these words among their first four.
    pub(crate) fn count_with(words: &'static str) -> Statements {
        let count = Count {
            words,
            ..Count::default()
        };
        let subscriber = tracing_subscriber::registry().with(count.clone());
        let another = tracing_subscriber::registry().with(Count::default());
        Statements {
            _another: Dispatch::new(another),
            _counting: tracing::subscriber::set_default(subscriber),
            count,
        }
    }

    pub(crate) fn since_last(&self) -> usize {
        self.count.statements.swap(0, Ordering::Relaxed)
    }
}
