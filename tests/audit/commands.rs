//! Random commands by all people, including refused ones, and all properties of the audit that must hold afterwards.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use uuid::Uuid;
use wrkflw_core::audit::Entry;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_engine::Identity;
use wrkflw_engine::job_handlers::look_again;
use wrkflw_store::load::Stored;

use super::replay::replay;
use super::stream::{broken_at, commands, entries, event, fold};
use crate::support::app::{Answer, TestApp};
use wrkflw_store::directory::tenants;

const USERS: [&str; 6] = [
    "author",
    "reviewer",
    "reviewer2",
    "approver",
    "outsider",
    "admin",
];
const OUTCOMES: [&str; 5] = ["APPROVE", "REJECT", "SUBMIT", "ABANDON", "NONSENSE"];
const CASES: u32 = 60;
const STEPS_MAX: usize = 30;

/// A step that somebody tries.
#[derive(Debug, Clone)]
struct Step {
    user: usize,
    action: Action,
    /// A person who may do it, if there is one. Otherwise `user`, who usually may not.
    fitting: bool,
    dry: bool,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Claim,
    Release,
    Decide {
        outcome: usize,
        comment: bool,
    },
    Delegate {
        to: usize,
    },
    Resolve,
    Reassign {
        to: usize,
    },
    Reset,
    SuspendTask {
        until: bool,
    },
    ResumeTask,
    Suspend,
    Resume,
    Cancel,
    Start,
    /// Somebody joins or leaves a group. Then the host reassesses the eligible people.
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        6 => Just(Action::Claim),
        1 => Just(Action::Release),
        8 => (0..OUTCOMES.len(), any::<bool>()).prop_map(|(outcome, comment)| Action::Decide { outcome, comment }),
        1 => Just(Action::Start),
        4 => Just(Action::Move),
        2 => (0..USERS.len()).prop_map(|to| Action::Delegate { to }),
        1 => Just(Action::Resolve),
        1 => (0..USERS.len()).prop_map(|to| Action::Reassign { to }),
        1 => Just(Action::Reset),
        1 => any::<bool>().prop_map(|until| Action::SuspendTask { until }),
        2 => Just(Action::ResumeTask),
    ];
    let rest = prop_oneof![1 => Just(Action::Suspend), 3 => Just(Action::Resume), 1 => Just(Action::Cancel)];
    let action = prop_oneof![30 => action, 3 => rest];
    (
        0..USERS.len(),
        action,
        prop::bool::weighted(0.7),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(user, action, fitting, dry)| Step {
            user,
            action,
            fitting,
            dry,
        })
}

/// Numbers whose text matters: `1e2` must not become 100.
fn start_body(entity: &str) -> String {
    format!(
        r#"{{"definitionKey":"document-approval","entityType":"document","entityId":"{entity}",
            "data":{{"title":"A \"plan\" – ✓","amount":1e2,"digits":12345678901234567890.10,"nested":[{{"b":-0,"a":null}}]}}}}"#
    )
}

async fn post(app: &TestApp, user: &str, path: &str, body: String) -> Answer {
    let request = app
        .host()
        .request(user, "POST", path)
        .header("content-type", "application/json");
    app.host()
        .answer(request.body(body.into()).expect("a request"))
        .await
}

/// The person who may do it now. None if there is nobody.
fn fitting(instance: &Value, action: Action) -> Option<&'static str> {
    let (state, task) = (&instance["states"][0], &instance["states"][0]["tasks"][0]);
    let worker = match state["name"].as_str()? {
        "Submitted" => "reviewer",
        "FinalReview" => "approver",
        _ => "author",
    };
    match (action, task["owner"].as_str()) {
        (Action::Claim, None) => Some(worker),
        (
            Action::Release
            | Action::Decide { .. }
            | Action::Delegate { .. }
            | Action::Resolve
            | Action::SuspendTask { .. }
            | Action::ResumeTask,
            Some(owner),
        ) => USERS.into_iter().find(|user| *user == owner),
        (
            Action::Cancel
            | Action::Suspend
            | Action::Resume
            | Action::Reassign { .. }
            | Action::SuspendTask { .. }
            | Action::ResumeTask
            | Action::Reset,
            _,
        ) => Some("admin"),
        (
            Action::Start
            | Action::Claim
            | Action::Release
            | Action::Decide { .. }
            | Action::Delegate { .. }
            | Action::Resolve
            | Action::Move,
            _,
        ) => None,
    }
}

/// Tries the step. Returns whether it had an effect.
async fn attempt(app: &TestApp, step: &Step, instance: &mut Value, task: &mut String) -> bool {
    if let Some(open) = instance["states"][0]["tasks"][0]["id"].as_str() {
        open.clone_into(task);
    }
    let named = USERS[step.user];
    let user = if step.fitting {
        fitting(instance, step.action).unwrap_or(named)
    } else {
        named
    };
    let id = instance["id"].as_str().expect("an id").to_owned();
    let own_work = instance["states"][0]["name"] == "ReworkRequested";
    let reason = json!({ "reason": "no longer" }).to_string();
    let hand = |to: usize| json!({ "to": USERS[to], "reason": "away" }).to_string();
    let (path, body) = match step.action {
        Action::Claim => (format!("/v1/tasks/{task}/claim"), "{}".to_owned()),
        Action::Release => (format!("/v1/tasks/{task}/release"), "{}".to_owned()),
        Action::Decide { outcome, comment } => {
            let outcome = if step.fitting {
                outcome % 2 + 2 * usize::from(own_work)
            } else {
                outcome
            };
            let comment = comment.then_some("since it is so");
            let body = json!({ "outcome": OUTCOMES[outcome], "comment": comment, "input": { "pages": 1.50 } });
            (format!("/v1/tasks/{task}/decide"), body.to_string())
        }
        Action::Delegate { to } => (format!("/v1/tasks/{task}/delegate"), hand(to)),
        Action::Resolve => (format!("/v1/tasks/{task}/resolve"), "{}".to_owned()),
        Action::Reassign { to } => (format!("/v1/tasks/{task}/reassign"), hand(to)),
        Action::Reset => (format!("/v1/tasks/{task}/reset"), reason.clone()),
        Action::SuspendTask { until } => {
            let until = until.then_some("2100-01-01T00:00:00Z");
            let body = json!({ "reason": "a question", "until": until });
            (format!("/v1/tasks/{task}/suspend"), body.to_string())
        }
        Action::ResumeTask => (format!("/v1/tasks/{task}/resume"), "{}".to_owned()),
        Action::Suspend => (format!("/v1/instances/{id}/suspend"), reason.clone()),
        Action::Resume => (format!("/v1/instances/{id}/resume"), "{}".to_owned()),
        Action::Cancel => (format!("/v1/instances/{id}/cancel"), reason.clone()),
        Action::Move => return moved(app, step, instance).await,
        Action::Start => (
            "/v1/instances".to_owned(),
            start_body(instance["entityId"].as_str().expect("an entity")),
        ),
    };
    // A start is tried only while it must be refused. Another instance would be another case.
    let dry =
        step.dry || (matches!(step.action, Action::Start) && instance["endedAt"] != Value::Null);
    let answer = post(
        app,
        user,
        &if dry {
            format!("{path}?dryRun=true")
        } else {
            path
        },
        body,
    )
    .await;
    assert!(answer.status < 500, "{step:?} by {user}: {}", answer.text);
    let effective = answer.status < 300 && !dry && answer.body["result"] != "unchanged";
    *instance = app
        .get("admin", &format!("/v1/instances/{id}"))
        .await
        .expect(200);
    effective
}

/// A reviewer or an approver joins their group, or leaves it.
async fn moved(app: &TestApp, step: &Step, instance: &mut Value) -> bool {
    let moving = [
        ("reviewers", "reviewer"),
        ("reviewers", "reviewer2"),
        ("approvers", "approver"),
    ];
    // If one of them owns the task, that one leaves.
    let owner = &instance["states"][0]["tasks"][0]["owner"];
    let in_flight = moving
        .into_iter()
        .find(|(_, person)| !step.fitting && owner == *person);
    let (group, person) = in_flight.unwrap_or(moving[step.user % 3]);
    let method = if step.fitting { "PUT" } else { "DELETE" };
    let path = format!("/v1/groups/{group}/members/{person}");
    let body = step.fitting.then(|| json!({}));
    let answer = app.host().send("admin", method, &path, &[], body).await;
    assert!(answer.status < 300, "{}", answer.text);
    let tenant = tenants::find(app.store(), "default").await;
    let tenant = tenant.expect("a query").expect("a tenant");
    let id = instance["id"].as_str().expect("an id").to_owned();
    let looked = InstanceId(id.parse().expect("an id"));
    look_again(&app.engine, tenant, looked)
        .await
        .expect("a look");
    let before = instance["revision"].clone();
    *instance = app
        .get("admin", &format!("/v1/instances/{id}"))
        .await
        .expect(200);
    instance["revision"] != before
}

async fn run(app: &TestApp, tenant: TenantId, entity: &str, steps: &[Step]) {
    let mut instance = post(app, "author", "/v1/instances", start_body(entity))
        .await
        .started();
    let (mut task, mut effects) = (String::new(), 1);
    for step in steps {
        effects += usize::from(attempt(app, step, &mut instance, &mut task).await);
    }
    let id = InstanceId(
        instance["id"]
            .as_str()
            .and_then(|id| id.parse::<Uuid>().ok())
            .expect("an id"),
    );
    prove(app, tenant, id, effects).await;
}

/// The same for an instance with any history.
pub(crate) async fn proven(app: &TestApp, id: InstanceId) {
    let tenant = tenants::find(app.store(), "default").await;
    let tenant = tenant.expect("a query").expect("a tenant");
    let entries = entries(app.database.admin_pool(), id).await;
    prove(app, tenant, id, commands(&entries).count()).await;
}

/// The same for every instance of a test. Also, no other row of the database differs from the entries.
pub(crate) async fn prove_all(app: &TestApp) {
    prove_each(app).await;
    let (_, findings) = super::verify::everything(app).await;
    assert_eq!(findings, []);
}

/// The first half of [`prove_all`].
async fn prove_each(app: &TestApp) {
    let tenant = tenants::find(app.store(), "default").await;
    let tenant = tenant.expect("a query").expect("a tenant");
    let all = sqlx::query_as::<_, (Uuid, i32)>("select id, revision from instance order by id");
    let all = all.fetch_all(app.database.admin_pool()).await;
    for (id, revision) in all.expect("instances") {
        let effects = usize::try_from(revision).expect("a count");
        prove(app, tenant, InstanceId(id), effects).await;
    }
}

/// Checks all properties of the audit of one instance.
pub(super) async fn prove(app: &TestApp, tenant: TenantId, id: InstanceId, effects: usize) {
    let pool = app.database.admin_pool();
    let entries = entries(pool, id).await;
    assert_eq!(
        commands(&entries).count(),
        effects,
        "a command has entries if and only if it had an effect"
    );

    let who = Identity {
        tenant,
        tenant_name: "default".into(),
        subject: "admin".into(),
        roles: vec!["admin".into()],
        embedded_by: None,
    };
    let stored = app.engine.read(&who, id).await.expect("an instance");
    assert_eq!(
        fold(None, &entries).as_ref(),
        Some(&stored.instance),
        "the fold is the stored instance"
    );
    assert_eq!(
        stored.instance.state_instances().count(),
        stored.state_instances as usize
    );

    prove_order(app, &stored, &entries).await;

    let mut before = None;
    for command in commands(&entries) {
        assert!(
            command[1..]
                .iter()
                .all(|entry| entry.draft.evidence.is_none()),
            "evidence on the first entry only"
        );
        let after = replay(&app.engine, tenant, before, command).await;
        let after =
            after.unwrap_or_else(|difference| panic!("{}: {difference}", command[0].draft.kind));
        before = Some(after);
    }
    assert_eq!(
        before.as_ref(),
        Some(&stored.instance),
        "the replay is the stored instance"
    );
}

/// The chain is valid and complete, and the row of the instance has its end.
async fn prove_order(app: &TestApp, stored: &Stored, entries: &[Entry]) {
    assert_eq!(broken_at(entries), None);
    let last = entries.last().expect("entries");
    let public: Vec<_> = entries.iter().filter_map(|entry| entry.event_seq).collect();
    assert_eq!((stored.head.seq, stored.head.hash), (last.seq, last.hash));
    assert_eq!(Some(&stored.head.event_seq), public.last());
    assert!(
        entries.iter().zip(1..).all(|(entry, seq)| entry.seq == seq),
        "seq without gaps"
    );
    assert!(
        public
            .iter()
            .zip(1..)
            .all(|(number, expected)| *number == expected),
        "public numbers without gaps"
    );
    assert!(
        entries
            .iter()
            .all(|entry| event(entry).is_public() == entry.event_seq.is_some())
    );
    prove_outbox(
        app,
        stored.instance.id,
        &entries
            .iter()
            .filter(|entry| entry.event_seq.is_some())
            .map(|entry| entry.seq.cast_signed())
            .collect::<Vec<_>>(),
    )
    .await;
}

/// The outbox has the public entries of the instance, in their order, in one partition.
async fn prove_outbox(app: &TestApp, id: InstanceId, public: &[i64]) {
    let pool = app.database.admin_pool();
    let sql = "select o.seq from outbox_event o join audit_entry a on a.tenant_id = o.tenant_id
        and a.stream_kind = 'instance' and a.stream_id = o.instance_id and a.seq = o.seq and a.pos = o.pos
        where o.instance_id = $1 order by o.pos";
    let pointed: Vec<i64> = sqlx::query_scalar(sql)
        .bind(id.0)
        .fetch_all(pool)
        .await
        .expect("pointers");
    assert_eq!(pointed, public);
    let sql = "select count(*), count(distinct partition) from outbox_event where instance_id = $1";
    let counted: (i64, i64) = sqlx::query_as(sql)
        .bind(id.0)
        .fetch_one(pool)
        .await
        .expect("counts");
    assert_eq!(counted, (i64::try_from(public.len()).expect("few"), 1));
}

/// A person outside of the groups is a substitute of two people, one of whom is a substitute of the other.
async fn absences(app: &TestApp) {
    let absences = "insert into absence
            (tenant_id, id, person_id, substitute_id, active_from, active_until, created_at, created_by)
        select t.id, gen_random_uuid(), a.person, a.substitute, now() - interval '1 hour', now() + interval '1 day', now(), a.person
        from tenant t, (values ('approver', 'reviewer2'), ('reviewer2', 'outsider')) as a (person, substitute)
        where t.name = 'default'";
    sqlx::raw_sql(absences)
        .execute(app.database.admin_pool())
        .await
        .expect("absences");
}

#[test]
fn the_audit_of_any_commands_proves_what_it_promises() {
    let runtime = Runtime::new().expect("a runtime");
    let app = runtime.block_on(TestApp::start());
    runtime.block_on(absences(&app));
    let tenant = runtime
        .block_on(tenants::find(app.store(), "default"))
        .expect("a query")
        .expect("a tenant");
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    // Every run has the same commands, so the expected counts are known.
    let same = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, same);
    let case = std::cell::Cell::new(0);
    let steps = prop::collection::vec(step(), 0..STEPS_MAX);
    let result = runner.run(&steps, |steps| {
        case.set(case.get() + 1);
        runtime.block_on(run(&app, tenant, &format!("doc-{}", case.get()), &steps));
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    // A property that never applies would hold, too, so the counts are checked.
    let count = |sql| {
        runtime
            .block_on(sqlx::query_scalar::<_, i64>(sql).fetch_one(app.database.admin_pool()))
            .expect("a count")
    };
    assert!(count("select count(*) from decision") > 10);
    assert!(count("select count(*) from audit_entry where type = 'STATE_UNASSIGNABLE'") > 0);
    assert!(count("select count(*) from audit_entry where type = 'STATE_ASSIGNABLE'") > 0);
    assert!(
        count(
            "select count(*) from audit_entry where payload::jsonb->>'reason' = 'lost_eligibility'"
        ) > 0
    );
    assert!(count("select count(*) from decision where on_behalf_of is not null") > 0);
    assert!(count("select count(*) from instance where status = 'COMPLETED'") > 0);
    assert!(
        count("select count(distinct type) from audit_entry where stream_kind = 'instance'") > 12
    );
}
