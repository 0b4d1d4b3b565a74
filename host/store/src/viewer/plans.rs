//! Which statements of lists are planned once for a connection.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::StoreError;
use crate::pool::Limited;

/// The pause between looks at the size of tables.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// How the database plans the statements of a connection of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plans {
    /// Each call is planned for its values. Lists have many filters, of which few are set, so the best index depends on the values.
    OfValues,
    /// A statement is planned once for a connection. For statements that find all rows by keys, and take as long to plan as to run. Not
    /// for a statement that searches for a value that may be rare or frequent, such as the name of a state.
    Once,
}

impl Plans {
    /// The values of `plan_cache_mode`, and of `enable_seqscan` and `enable_bitmapscan`: a kept plan finds rows by an index.
    pub(super) fn settings(self) -> (&'static str, &'static str) {
        match self {
            Plans::OfValues => ("force_custom_plan", "on"),
            Plans::Once => ("force_generic_plan", "off"),
        }
    }
}

/// Whether the tables of lists are large enough to plan statements once. A cached plan that was made for empty tables would read whole
/// indexes of a tenant when the tables grow. PostgreSQL makes the plan again whenever a table is analysed. Autovacuum analyses a table of
/// this size each time it has changed by a tenth.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables(Arc<Mutex<Option<(Instant, bool)>>>);

impl Tables {
    /// The size that the database knew within the last minute decides.
    pub(crate) async fn are_large(&self, connection: &mut Limited) -> Result<bool, StoreError> {
        let known = *self.0.lock().expect("nobody panics while holding it");
        if let Some((looked_at, are_large)) = known
            && looked_at.elapsed() < LOOK_EVERY
        {
            return Ok(are_large);
        }
        let look = sqlx::query_scalar!(
            r#"select reltuples >= 10000 as "are_large!" from pg_class where oid = 'task'::regclass"#
        );
        let are_large = look.fetch_one(connection).await?;
        *self.0.lock().expect("nobody panics while holding it") = Some((Instant::now(), are_large));
        Ok(are_large)
    }
}
