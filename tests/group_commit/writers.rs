//! The writer of a host: a change that fails or is slow does not affect the others of its batch, nor does a caller who goes away.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::command::Command;
use wrkflw_core::json::Json;
use wrkflw_engine::Engine;
use wrkflw_engine::pipeline::{PostCommit, Writer, WriterBounds};
use wrkflw_store::commit::{Change, CommitResult};
use wrkflw_store::{PoolSizes, Store, StoreError};

use super::fixture::{Fixture, task_of};
use super::wire::Wire;
use crate::support::app::{Host, TestApp, task_of as task_in};
use crate::support::plug::{LONG, Plug, count, within};

const ONE_WORKER: WriterBounds = WriterBounds {
    workers: 1,
    size_max: 32,
    waiting_max: 100,
};

/// Gives a change values that PostgreSQL refuses, although the host's checks pass.
type Spoil = fn(&mut Change);
type CommitOutcome = Result<CommitResult, StoreError>;

fn writer(store: &Store, bounds: WriterBounds) -> Writer {
    Writer::new(store, &PostCommit::default(), bounds, &TaskTracker::new())
}

/// Commits a change that a `Plug` blocks, queues the batch behind it, and removes the plug. Returns the results of the batch.
async fn together(fixture: &Fixture, writer: &Writer, batch: Vec<Change>) -> Vec<CommitOutcome> {
    let plugged = fixture
        .claimed(&format!("plug of {}", batch[0].after.entity.id))
        .await;
    let plug = Plug::put(&fixture.database).await;
    let first = writer.commit(fixture.decide(&plugged, "GO"), false);
    let rest = async {
        plug.is_met().await;
        let all = batch.into_iter().map(|change| writer.commit(change, false));
        let all = futures_util::future::join_all(all);
        let (outcomes, ()) = tokio::join!(all, plug.pull());
        outcomes
    };
    let (first, rest) = tokio::join!(first, rest);
    assert_eq!(
        first.expect("a place").expect("a commit result"),
        CommitResult::Applied
    );
    rest.into_iter()
        .map(|outcome| outcome.expect("a place"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_changes_are_committed_in_one_statement() {
    let fixture = Fixture::new().await;
    let writer = writer(&fixture.store, ONE_WORKER);
    let mut batch = Vec::new();
    for member in 0..8 {
        batch.push(fixture.decide(&fixture.claimed(&format!("entity-{member}")).await, "GO"));
    }
    let outcomes = together(&fixture, &writer, batch).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Ok(CommitResult::Applied))),
        "{outcomes:?}"
    );
    // Rows that one statement wrote have the same transaction id.
    let transactions = fixture
        .count("select count(distinct xmin::text) from instance where entity_id like 'entity-%'")
        .await;
    assert_eq!(transactions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_value_does_not_fail_other_members() {
    let spoils: [(&str, Spoil); 4] = [
        ("NUL", |change| {
            change.after.data = Json::from_canonical("{\"a\":\"\0\"}");
        }),
        ("no decimal", |change| {
            change
                .after
                .attributes
                .insert("miles".into(), AttributeValue::Decimal("far".into()));
        }),
        ("too many digits", |change| {
            change
                .after
                .attributes
                .insert("miles".into(), AttributeValue::Decimal("1e200000".into()));
        }),
        ("an entry twice", |change| {
            let entry = change.entries[0].clone();
            change.entries.push(entry);
        }),
    ];
    let fixture = Fixture::new().await;
    let writer = writer(&fixture.store, ONE_WORKER);
    for (what, spoil) in spoils {
        let mut before = Vec::new();
        for place in ["first", "second", "third"] {
            before.push(fixture.claimed(&format!("{what} {place}")).await);
        }
        let mut batch: Vec<_> = before
            .iter()
            .map(|before| fixture.decide(before, "GO"))
            .collect();
        spoil(&mut batch[1]);
        let untouched = fixture.rows(before[1].instance.id).await;
        let expected = [batch[0].after.clone(), batch[2].after.clone()];
        let outcomes = together(&fixture, &writer, batch).await;
        assert!(
            matches!(
                outcomes[..],
                [Ok(CommitResult::Applied), Err(_), Ok(CommitResult::Applied)]
            ),
            "{what}: {outcomes:?}"
        );
        assert_eq!(
            fixture.rows(before[1].instance.id).await,
            untouched,
            "{what}"
        );
        for after in expected {
            assert_eq!(fixture.load(after.id).await.instance, after, "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_only_delays_other_members() {
    let fixture = Fixture::new().await;
    let writer = writer(&fixture.store, ONE_WORKER);
    let held = fixture.claimed("held").await;
    let mut batch = vec![fixture.decide(&held, "GO")];
    for member in 0..4 {
        batch.push(fixture.decide(&fixture.claimed(&format!("entity-{member}")).await, "GO"));
    }
    let pool = fixture.database.admin_pool();
    let mut holder = pool.begin().await.expect("a transaction");
    sqlx::query("select from instance where id = $1 for update")
        .bind(held.instance.id.0)
        .execute(&mut *holder)
        .await
        .expect("a lock");
    let outcomes = together(&fixture, &writer, batch).await;
    let [Err(error), neighbours @ ..] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert!(error.is_contention(), "{error}");
    assert!(
        neighbours
            .iter()
            .all(|outcome| matches!(outcome, Ok(CommitResult::Applied))),
        "{outcomes:?}"
    );
    holder.rollback().await.expect("a rollback");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_with_the_same_instances_in_opposite_orders() {
    const MEMBERS: usize = 24;
    const ROUNDS: usize = 30;
    let fixture = Fixture::new().await;
    let sizes = PoolSizes {
        writer: 6,
        reader: 1,
        relay: 1,
    };
    let other = Store::connect(fixture.database.url(), sizes).expect("a URL");
    let writers = [
        writer(&fixture.store, WriterBounds::default()),
        writer(&other, WriterBounds::default()),
    ];
    let mut stored = Vec::new();
    for member in 0..MEMBERS {
        stored.push(fixture.claimed(&format!("entity-{member}")).await);
    }
    for round in 0..ROUNDS {
        let touch = |host: usize| {
            let command = |task| match round % 2 {
                0 => Command::Release { task },
                _ => Command::Claim { task },
            };
            let mut changes: Vec<_> = stored
                .iter()
                .map(|stored| {
                    let command = command(task_of(&stored.instance));
                    fixture.change(Some(stored.clone()), "rob", &command)
                })
                .collect();
            if host == 1 {
                changes.reverse();
            }
            let commits = changes
                .into_iter()
                .map(|change| writers[host].commit(change, false));
            futures_util::future::join_all(commits)
        };
        let (one, other) = tokio::join!(touch(0), touch(1));
        for (one, other) in one.into_iter().zip(other.into_iter().rev()) {
            let outcomes =
                [one, other].map(|outcome| outcome.expect("a place").expect("a commit result"));
            assert!(
                outcomes.contains(&CommitResult::Applied)
                    && outcomes.contains(&CommitResult::Stale),
                "{outcomes:?}"
            );
        }
        for stored in &mut stored {
            *stored = fixture.load(stored.instance.id).await;
        }
    }
    other.close().await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(fixture.count(deadlocks).await, 0);
}

/// The claims of these tasks, all at the same time.
fn claims(host: &Host, tasks: &[String]) -> JoinSet<(String, crate::support::app::Answer)> {
    let mut claims = JoinSet::new();
    for task in tasks.iter().cloned() {
        let host = host.clone();
        claims.spawn(async move {
            let path = format!("/v1/tasks/{task}/claim");
            let answer = host
                .send("reviewer", "POST", &path, &[], Some(json!({})))
                .await;
            (task, answer)
        });
    }
    claims
}

/// Returns once so many changes wait for the next batch.
async fn are_queued(engine: &Engine, changes: usize) {
    let queued = async {
        while engine.queued() != changes {
            crate::support::pause().await;
        }
    };
    within(queued).await;
}

fn id_of(instance: &Value) -> uuid::Uuid {
    let id = instance["id"].as_str().expect("an id");
    id.parse().expect("a UUID")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_database_refuses_fails_alone_over_http() {
    let app = TestApp::start().await;
    let (host, engine) = app.beside_bounded(app.database.url(), ONE_WORKER).await;
    // No check of the host refuses this before the database does.
    let trigger = "create function refuse_poison() returns trigger language plpgsql as
            $$ begin if new.entity_id = 'poison' then raise 'poison'; end if; return new; end $$;
        create trigger refuse_poison before update on instance for each row execute function refuse_poison()";
    let plugged = app.started("plug").await;
    let mut tasks = Vec::new();
    for entity in ["one", "two", "poison", "three", "four", "five"] {
        tasks.push(task_in(&app.started(entity).await));
    }
    let made = sqlx::raw_sql(trigger).execute(app.database.admin_pool());
    made.await.expect("a trigger");

    let plug = Plug::put(&app.database).await;
    let mut first = claims(&host, &[task_in(&plugged)]);
    plug.is_met().await;
    let mut rest = claims(&host, &tasks);
    are_queued(&engine, tasks.len()).await;
    plug.pull().await;
    while let Some(answer) = first.join_next().await {
        answer.expect("an answer").1.expect(200);
    }
    while let Some(answer) = rest.join_next().await {
        let (task, answer) = answer.expect("an answer");
        if task == tasks[2] {
            answer.problem(500, "internal");
        } else {
            answer.expect(200);
        }
    }
    let claimed = "select count(*) from audit_entry where type = 'TASK_CLAIMED'";
    assert_eq!(count(&app.database, claimed).await, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_complete_when_its_caller_goes_away() {
    let app = TestApp::start().await;
    let (host, engine) = app.beside_bounded(app.database.url(), ONE_WORKER).await;
    let instance = app.started("plug").await;
    let mut commits = engine.commits();
    let plug = Plug::put(&app.database).await;
    let mut claim = claims(&host, &[task_in(&instance)]);
    plug.is_met().await;
    claim.shutdown().await;
    assert!(!commits.has_changed().expect("an engine"));
    plug.pull().await;
    let waited = tokio::time::timeout(LONG, commits.changed()).await;
    waited
        .expect("the relay and the streams are notified")
        .expect("an engine");
    let path = format!("/v1/instances/{}", id_of(&instance));
    let shown = app.get("reviewer", &path).await.expect(200);
    assert_eq!(shown["states"][0]["tasks"][0]["owner"], "reviewer");
    engine.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once_and_says_when_to_come_back() {
    let bounds = WriterBounds {
        waiting_max: 1,
        ..ONE_WORKER
    };
    let app = TestApp::start().await;
    let (host, _engine) = app.beside_bounded(app.database.url(), bounds).await;
    let plugged = app.started("plug").await;
    let mut tasks = Vec::new();
    for entity in ["one", "two", "three"] {
        tasks.push(task_in(&app.started(entity).await));
    }
    let plug = Plug::put(&app.database).await;
    let mut first = claims(&host, &[task_in(&plugged)]);
    plug.is_met().await;
    let mut rest = claims(&host, &tasks);
    // One claim has the only place in the queue. The others are refused at once.
    for _ in 1..tasks.len() {
        let answer = rest.join_next().await.expect("a claim");
        let (_, answer) = answer.expect("an answer");
        assert_eq!(answer.headers["retry-after"], "1");
        answer.problem(503, "busy");
    }
    plug.pull().await;
    for claims in [&mut first, &mut rest] {
        let answer = claims.join_next().await.expect("a claim");
        answer.expect("an answer").1.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_a_batch_is_resolved_for_every_member() {
    let app = TestApp::start().await;
    let wire = Wire::to(app.database.url()).await;
    let (host, engine) = app.beside_bounded(wire.url(), ONE_WORKER).await;
    let plugged = app.started("plug").await;
    let mut tasks = Vec::new();
    for entity in ["one", "two", "three", "four"] {
        tasks.push(task_in(&app.started(entity).await));
    }
    let claimed = task_in(&plugged);
    let mut first = claims(&host, std::slice::from_ref(&claimed));
    let first = first.join_next().await.expect("a claim");
    first.expect("an answer").1.expect(200);
    let plug = Plug::put(&app.database).await;
    let release = async {
        let path = format!("/v1/tasks/{claimed}/release");
        let released = host.send("reviewer", "POST", &path, &[], Some(json!({})));
        released.await.expect(200);
    };
    let rest = async {
        plug.is_met().await;
        wire.lose_the_answer_to("TASK_CLAIMED", 0);
        let mut rest = claims(&host, &tasks);
        are_queued(&engine, tasks.len()).await;
        plug.pull().await;
        while let Some(answer) = rest.join_next().await {
            let body = answer.expect("an answer").1.expect(200);
            assert_eq!(body["task"]["owner"], "reviewer");
        }
    };
    within(async { tokio::join!(release, rest) }).await;
    assert!(wire.is_spent(), "the wire was not cut");
    let entries = "select count(*) from audit_entry where type = 'TASK_CLAIMED'";
    assert_eq!(count(&app.database, entries).await, 5);
}
