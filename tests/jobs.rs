//! Background jobs and reassessments, claimed by lease from a real PostgreSQL.
//!
//! `claims` and `reassessments` test the store alone; `worker` and `walks` run the worker with fake handlers that record their calls.

mod claims;
mod fair;
mod reassessments;
mod walks;
mod worker;

use jiff::{SignedDuration, Timestamp};
use sqlx::AssertSqlSafe;
use uuid::Uuid;
use wrkflw_runtime::clock;
use wrkflw_store::jobs::{self, Job, TenantSlots};
use wrkflw_store::{PoolSizes, Store};

use crate::support::postgres::{TestDatabase, database};

/// A store with its own database.
struct Fixture {
    database: TestDatabase,
    store: Store,
}

/// A moment to start from.
fn noon() -> Timestamp {
    "2026-10-05T12:00Z".parse().expect("a moment")
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

impl Fixture {
    async fn new() -> Fixture {
        let database = database(async |url: &str| Store::migrate(url).await).await;
        let sizes = PoolSizes {
            writer: 8,
            reader: 1,
            relay: 1,
        };
        let store = Store::connect(database.url(), sizes).expect("a URL");
        Fixture { database, store }
    }

    /// Inserts a deadline for an instance. Returns its id.
    async fn job(&self, instance: Uuid, due_at: Timestamp) -> Uuid {
        leave(&self.database, instance, due_at).await
    }

    async fn claim(&self, now: Timestamp, limit: i64) -> Vec<Job> {
        self.claim_by(&mut TenantSlots::new(i64::MAX), now, limit)
            .await
    }

    /// Claims as a host that tracks the turns of tenants.
    async fn claim_by(&self, slots: &mut TenantSlots, now: Timestamp, limit: i64) -> Vec<Job> {
        let lease = now + seconds(60);
        let claimed = jobs::claim(&self.store, now, lease, limit, slots).await;
        claimed.expect("a claim")
    }

    async fn run(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        let ran = sqlx::raw_sql(sql).execute(self.database.admin_pool()).await;
        ran.expect("a statement");
    }
}

/// Inserts a deadline for an instance of tenant 1. Returns its id.
async fn leave(database: &TestDatabase, instance: Uuid, due_at: Timestamp) -> Uuid {
    let id = clock::new_id();
    sqlx::query("insert into job (tenant_id, id, kind, instance_id, due_at, payload) values (1, $1, 'deadline', $2, $3::text::timestamptz, '{}')")
        .bind(id)
        .bind(instance)
        .bind(due_at.to_string())
        .execute(database.admin_pool())
        .await
        .expect("a job");
    id
}

fn ids(jobs: &[Job]) -> Vec<Uuid> {
    jobs.iter().map(|job| job.id).collect()
}
