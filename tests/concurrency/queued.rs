//! Commands that queue for one instance while another one is being committed. They are executed one after the other, committed
//! together, and answered as if each had been alone.

use std::collections::BTreeMap;
use std::ops::Range;

use tokio::task::AbortHandle;
use wrkflw_core::ids::InstanceId;
use wrkflw_engine::Engine;
use wrkflw_engine::pipeline::WriterBounds;

use super::*;
use crate::audit::commands::prove_all;
use crate::group_commit::wire::Wire;
use crate::support::guests::subflows;
use crate::support::plug::{Plug, count, within};
use wrkflw_store::directory::tenants;

const VOTERS: usize = 20;
/// How many commands of an instance share a commit. The next one has a commit of its own.
const COMMANDS_MAX: usize = 32;

/// A vote whose first commit is blocked in the database.
struct Fixture {
    app: TestApp,
    host: Host,
    engine: Engine,
    instance: Value,
}

/// One request with its own key.
struct Ask {
    bearer: String,
    key: String,
    if_match: Option<String>,
    path: String,
    body: Value,
}

impl Ask {
    async fn send(self, host: &Host) -> Answer {
        let mut headers = vec![
            ("authorization", self.bearer.as_str()),
            ("idempotency-key", self.key.as_str()),
        ];
        headers.extend(self.if_match.as_deref().map(|tag| ("if-match", tag)));
        host.send("", "POST", &self.path, &headers, Some(self.body))
            .await
    }
}

/// Requests in flight, each with its number in the queue.
type Answers = JoinSet<(usize, Answer)>;

impl Fixture {
    async fn vote(needed: usize) -> Fixture {
        Fixture::among(VOTERS, needed).await
    }

    /// The same with so many voters.
    async fn among(voters: usize, needed: usize) -> Fixture {
        let app = TestApp::start().await;
        let url = app.database.url().to_owned();
        Fixture::of(app, &url, (voters, needed)).await
    }

    /// The same, through this database URL.
    async fn of(app: TestApp, url: &str, (voters, needed): (usize, usize)) -> Fixture {
        vote_on(&app, &[json!({})]).await;
        let bounds = WriterBounds::default();
        let (host, engine) = app.beside_bounded(url, bounds).await;
        let offers: Vec<_> = (0..voters)
            .map(|number| json!({ "owner": format!("voter-{number}") }))
            .collect();
        let data = json!({ "assign": { "offers": offers, "needed": needed } });
        let instance = vote(&app, "plug", data).await;
        Fixture {
            app,
            host,
            engine,
            instance,
        }
    }

    /// A wait for so many payments.
    async fn payments(count: usize) -> Fixture {
        let app = TestApp::empty().await;
        let published = app.publish("subflows", subflows(), &json!({})).await;
        published.expect(201);
        let path = "/v1/definitions/subflows/versions/1/activate";
        app.post("admin", path, json!({})).await.expect(200);
        let url = app.database.url().to_owned();
        let (host, engine) = app.beside_bounded(&url, WriterBounds::default()).await;
        let body = json!({
            "definitionKey": "subflows", "entityType": "errand", "entityId": "plug", "data": { "payments": count },
        });
        let instance = app.post("author", "/v1/instances", body).await.started();
        Fixture {
            app,
            host,
            engine,
            instance,
        }
    }

    /// A request with the signal of this id.
    fn paid(&self, signal: &str, key: &str) -> Ask {
        Ask {
            bearer: format!("Bearer {}", self.host.token("author")),
            key: key.into(),
            if_match: None,
            path: format!("/v1/instances/{}/signals/PAID", id(&self.instance)),
            body: json!({ "id": signal, "input": { "amount": 1 } }),
        }
    }

    fn id(&self) -> InstanceId {
        InstanceId(id(&self.instance).parse().expect("a UUID"))
    }

    /// This person's vote.
    fn yes(&self, voter: usize) -> Ask {
        let task = &self.instance["states"][0]["tasks"][voter];
        Ask {
            bearer: format!("Bearer {}", self.host.token(&format!("voter-{voter}"))),
            key: format!("vote-{voter}"),
            if_match: None,
            path: format!("/v1/tasks/{}/decide", id(task)),
            body: json!({ "outcome": "YES" }),
        }
    }

    fn votes(&self, voters: Range<usize>) -> Vec<Ask> {
        voters.map(|voter| self.yes(voter)).collect()
    }

    /// Sends the first request and waits until its commit is blocked. Then sends the others, each after the one before is queued.
    async fn queue_up(&self, plug: &Plug<'_>, asks: Vec<Ask>) -> (Answers, Vec<AbortHandle>) {
        let (mut answers, mut callers) = (Answers::new(), Vec::new());
        for (number, ask) in asks.into_iter().enumerate() {
            let host = self.host.clone();
            let caller = async move { (number, ask.send(&host).await) };
            callers.push(answers.spawn(caller));
            match number {
                0 => plug.is_met().await,
                _ => within(self.waiting(number)).await,
            }
        }
        (answers, callers)
    }

    async fn waiting(&self, wanted: usize) {
        while self.engine.waiting(self.id()) != wanted {
            tokio::task::yield_now().await;
        }
    }

    /// All answers, in the order of the requests.
    async fn answers(&self, asks: Vec<Ask>) -> Vec<Answer> {
        let plug = Plug::put(&self.app.database).await;
        let (waiting, _) = self.queue_up(&plug, asks).await;
        plug.pull().await;
        let mut answers = within(waiting.join_all()).await;
        answers.sort_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Rows that one statement wrote have the same transaction id.
    async fn transactions(&self) -> i64 {
        let sql = "select count(distinct xmin::text) from decision";
        count(&self.app.database, sql).await
    }

    async fn recorded(&self, kind: &str) -> usize {
        recorded(&self.app, &self.instance, kind).await
    }
}

/// As many commands as share a commit, and one more, wait behind the first one.
#[tokio::test(flavor = "multi_thread")]
async fn queued_commands_are_committed_together_and_answered_in_order() {
    for (waiting, commits) in [(COMMANDS_MAX, 2), (COMMANDS_MAX + 1, 3)] {
        let voters = waiting + 1;
        let fixture = Fixture::among(voters, voters).await;
        let answers = fixture.answers(fixture.votes(0..voters)).await;
        let first = fixture.instance["revision"].as_u64().expect("a number");
        for (answer, revision) in answers.into_iter().zip(first + 1..) {
            assert_eq!(answer.expect(200)["instance"]["revision"], revision);
        }
        assert_eq!(fixture.transactions().await, commits, "{waiting} waited");
        assert_eq!(
            shown(&fixture.app, &fixture.instance).await["status"],
            "COMPLETED"
        );
        prove_all(&fixture.app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_depends_on_the_commits_before_it() {
    const NEEDED: usize = 12;
    let fixture = Fixture::vote(NEEDED).await;
    let mut answers = fixture.answers(fixture.votes(0..VOTERS)).await;
    let late = answers.split_off(NEEDED);
    let last = answers.pop().expect("an answer").expect(200);
    assert_eq!(last["instance"]["status"], "COMPLETED");
    for answer in answers {
        answer.expect(200);
    }
    for answer in late {
        let problem = answer.problem(409, "task_taken");
        let conflict = &problem["conflict"];
        assert_eq!(conflict["action"], "cancelled");
        assert_eq!(conflict["revision"], last["instance"]["revision"]);
    }
    assert_eq!(fixture.transactions().await, 2);
    assert_eq!(fixture.recorded("DECISION_RECORDED").await, 12);
    prove_all(&fixture.app).await;
}

/// A repeated signal counts once and gets the same answer, also if the first one is still uncommitted and ends the instance.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_signal_is_recognised_by_its_id() {
    let fixture = Fixture::payments(3).await;
    let asks = [
        ("p-1", "a"),
        ("p-2", "b"),
        ("p-3", "c"),
        ("p-3", "d"),
        ("p-2", "e"),
        ("p-4", "f"),
    ];
    let asks = asks.map(|(signal, key)| fixture.paid(signal, key));
    let mut answers = fixture.answers(asks.into()).await;
    let late = answers.pop().expect("an answer");
    late.problem(409, "instance_ended");
    for (number, answer) in answers.into_iter().enumerate() {
        let body = answer.expect(200);
        let paid = (number + 1).min(3);
        assert_eq!(body["instance"]["data"]["paid"], paid);
        assert_eq!(body["events"] == json!([]), number > 2, "{body}");
    }
    assert_eq!(fixture.recorded("SIGNAL_RECEIVED").await, 3);
    prove_all(&fixture.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_database_refuses_fails_alone() {
    const NEEDED: usize = 12;
    let fixture = Fixture::vote(NEEDED).await;
    // A refusal by the database that no check of the host prevents.
    let trigger = "create function refuse_poison() returns trigger language plpgsql as
            $$ begin if new.actor = 'voter-7' then raise 'poison'; end if; return new; end $$;
        create trigger refuse_poison before insert on decision for each row execute function refuse_poison()";
    let made = sqlx::raw_sql(trigger).execute(fixture.app.database.admin_pool());
    made.await.expect("a trigger");
    // Some are refused at first because of the failing one, and answered after all are executed again.
    let mut counted = 0;
    let answers = fixture.answers(fixture.votes(0..VOTERS)).await;
    for (voter, answer) in answers.into_iter().enumerate() {
        match answer.status {
            200 => counted += 1,
            500 => assert_eq!(voter, 7),
            _ => drop(answer.problem(409, "task_taken")),
        }
    }
    assert_eq!(counted, NEEDED);
    assert_eq!(fixture.recorded("DECISION_RECORDED").await, NEEDED);
    assert_eq!(
        shown(&fixture.app, &fixture.instance).await["status"],
        "COMPLETED"
    );
    prove_all(&fixture.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_resolved_for_all_commands_of_a_commit() {
    let app = TestApp::start().await;
    let wire = Wire::to(app.database.url()).await;
    let fixture = Fixture::of(app, wire.url(), (VOTERS, VOTERS)).await;
    let plug = Plug::put(&fixture.app.database).await;
    let (waiting, _) = fixture.queue_up(&plug, fixture.votes(0..VOTERS)).await;
    wire.lose_the_answer_to("DECISION_RECORDED", 0);
    plug.pull().await;
    for (_, answer) in within(waiting.join_all()).await {
        answer.expect(200);
    }
    assert!(wire.is_spent(), "the wire was not cut");
    assert_eq!(fixture.recorded("DECISION_RECORDED").await, VOTERS);
    assert_eq!(fixture.transactions().await, 2);
    prove_all(&fixture.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_first_reply() {
    let fixture = Fixture::vote(VOTERS).await;
    let twice = (0..6).flat_map(|voter| [fixture.yes(voter), fixture.yes(voter)]);
    let answers = fixture.answers(twice.collect()).await;
    for twins in answers.chunks(2) {
        assert_eq!((twins[0].status, twins[1].status), (200, 200));
        assert_eq!(twins[0].text, twins[1].text);
        assert!(twins[1].headers.contains_key("idempotency-replayed"));
    }
    assert_eq!(fixture.recorded("DECISION_RECORDED").await, 6);
    prove_all(&fixture.app).await;
}

/// The key of a queued repeat is looked up before its first request is committed. Behind another command, the repeat is executed
/// on a pending state that has the effect of the first request.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_behind_another_command_gets_the_first_reply() {
    for is_conditional in [false, true] {
        let fixture = Fixture::vote(VOTERS).await;
        let tag = format!("\"{}\"", fixture.instance["revision"]);
        let first = || Ask {
            if_match: is_conditional.then(|| tag.clone()),
            ..fixture.yes(0)
        };
        let mut asks = vec![first(), fixture.yes(1), first()];
        // While these come, the key of the repeat is looked up.
        asks.extend(fixture.votes(2..6));
        let answers = fixture.answers(asks).await;
        for answer in &answers {
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        assert_eq!(answers[2].text, answers[0].text);
        assert!(answers[2].headers.contains_key("idempotency-replayed"));
        assert_eq!(fixture.recorded("DECISION_RECORDED").await, 6);
        prove_all(&fixture.app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_go_away_leave_no_incomplete_commit() {
    let fixture = Fixture::vote(VOTERS).await;
    let plug = Plug::put(&fixture.app.database).await;
    let (mut answers, callers) = fixture.queue_up(&plug, fixture.votes(0..VOTERS)).await;
    // The first, whose commit is in flight, and every third of the queued ones.
    for caller in callers.iter().step_by(3) {
        caller.abort();
    }
    plug.pull().await;
    while let Some(answer) = within(answers.join_next()).await {
        match answer {
            Ok((_, answer)) => drop(answer.expect(200)),
            Err(gone) => assert!(gone.is_cancelled(), "{gone}"),
        }
    }
    // The callers who went away have voted already, or can vote now.
    for vote in fixture.votes(0..VOTERS) {
        vote.send(&fixture.host).await.expect(200);
    }
    assert_eq!(fixture.recorded("DECISION_RECORDED").await, 20);
    prove_all(&fixture.app).await;
    fixture.engine.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_commits_are_invisible_to_another_tenant() {
    let fixture = Fixture::vote(VOTERS).await;
    let roles = BTreeMap::from([("admin", &["instance:cancel"][..])]);
    let (store, now) = (fixture.app.store(), fixture.engine.clock().now());
    let tenant = tenants::ensure_tenant(store, "others", &roles, now).await;
    tenant.expect("a tenant");
    let mut asks = fixture.votes(0..6);
    asks.insert(
        3,
        Ask {
            bearer: format!(
                "Bearer {}",
                fixture.host.token_of("admin", "others", &["admin"])
            ),
            key: "not mine".into(),
            if_match: None,
            path: format!("/v1/instances/{}/cancel", id(&fixture.instance)),
            body: json!({ "reason": "not mine" }),
        },
    );
    let mut answers = fixture.answers(asks).await;
    let problem = answers.remove(3).problem(404, "not_found");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains(id(&fixture.instance)), "{detail}");
    for answer in answers {
        answer.expect(200);
    }
    prove_all(&fixture.app).await;
}

/// A pending state is no reason for a final refusal: another host may have changed the instance since.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_depends_on_the_stored_state() {
    let fixture = Fixture::vote(VOTERS).await;
    let admin = fixture.app.database.admin_pool();
    // Each commit waits until the test lets its revision through.
    let gate = "create sequence gate;
        create function wait_at_gate() returns trigger language plpgsql security definer as $$
            begin while (select last_value from public.gate) < new.revision loop perform pg_sleep(0.005); end loop; return new; end $$;
        create trigger wait_at_gate before update on instance for each row execute function wait_at_gate()";
    let run = async |sql: &'static str| {
        sqlx::raw_sql(sql).execute(admin).await.expect(sql);
    };
    let reached = async |revision: i64| {
        let sql = "select max(revision)::bigint from instance";
        within(async {
            while count(&fixture.app.database, sql).await < revision {
                crate::support::pause().await;
            }
        })
        .await;
    };
    run(gate).await;
    let mut answers = Answers::new();
    let mut send = |number: usize, ask: Ask| {
        let host = fixture.host.clone();
        answers.spawn(async move { (number, ask.send(&host).await) });
    };
    send(0, fixture.yes(0));
    let asleep = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    within(async {
        while count(&fixture.app.database, asleep).await == 0 {
            crate::support::pause().await;
        }
    })
    .await;
    send(1, fixture.yes(1));
    within(fixture.waiting(1)).await;
    send(2, fixture.yes(2));
    within(fixture.waiting(2)).await;
    run("select setval('gate', 2)").await;
    // The two queued commands are being committed when another request arrives, whose caller cannot be read yet.
    within(fixture.waiting(0)).await;
    reached(2).await;
    within(async {
        while count(&fixture.app.database, asleep).await == 0 {
            crate::support::pause().await;
        }
    })
    .await;
    let mut block = admin.begin().await.expect("a transaction");
    let lock = sqlx::raw_sql("lock table membership in access exclusive mode");
    lock.execute(&mut *block).await.expect("a lock");
    let mut stranger = fixture.yes(9);
    stranger.bearer = format!("Bearer {}", fixture.host.token("stranger"));
    send(3, stranger);
    within(fixture.waiting(1)).await;
    run("select setval('gate', 100)").await;
    reached(4).await;
    // Another host gives the task to that caller.
    run("update task set owner = 'stranger' where owner = 'voter-9'; update instance set revision = 5").await;
    block.commit().await.expect("an end");
    for (_, answer) in within(answers.join_all()).await {
        answer.expect(200);
    }
}
