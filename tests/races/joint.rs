//! Commands that wait for their turn at one instance while the one before them is being committed: they are judged one
//! after the other, committed together, and answered as if each had been alone.

use std::collections::BTreeMap;
use std::ops::Range;

use tokio::task::AbortHandle;
use wrkflw::domain::ids::InstanceId;
use wrkflw::engine::{Engine, WriterBounds};

use super::*;
use crate::audit::commands::prove_all;
use crate::hazards::wire::Wire;
use crate::support::guests::errands;
use crate::support::plug::{Plug, count, within};

const VOTERS: usize = 20;

/// A vote of so many, held up at the database by the first of them.
struct HeldUp {
    app: TestApp,
    host: Host,
    engine: Engine,
    instance: Value,
}

/// One request, with a key of its own.
struct Ask {
    bearer: String,
    key: String,
    path: String,
    body: Value,
}

impl Ask {
    async fn send(self, host: &Host) -> Answer {
        let headers = [
            ("authorization", self.bearer.as_str()),
            ("idempotency-key", self.key.as_str()),
        ];
        host.send("", "POST", &self.path, &headers, Some(self.body))
            .await
    }
}

/// Requests on their way, each with its number in the line.
type Answers = JoinSet<(usize, Answer)>;

impl HeldUp {
    async fn vote(needed: usize) -> HeldUp {
        let app = TestApp::start().await;
        let url = app.database.url().to_owned();
        HeldUp::of(app, &url, needed).await
    }

    /// The same, by way of this database.
    async fn of(app: TestApp, url: &str, needed: usize) -> HeldUp {
        vote_on(&app, &[json!({})]).await;
        let bounds = WriterBounds::default();
        let (host, engine) = app.beside_bounded(url, bounds).await;
        let offers: Vec<_> = (0..VOTERS)
            .map(|number| json!({ "owner": format!("voter-{number}") }))
            .collect();
        let data = json!({ "assign": { "offers": offers, "needed": needed } });
        let instance = vote(&app, "plug", data).await;
        HeldUp {
            app,
            host,
            engine,
            instance,
        }
    }

    /// A wait for so many payments.
    async fn payments(count: usize) -> HeldUp {
        let app = TestApp::empty().await;
        let published = app.publish("errands", errands(), &json!({})).await;
        published.expect(201);
        let path = "/v1/definitions/errands/versions/1/activate";
        app.post("admin", path, json!({})).await.expect(200);
        let url = app.database.url().to_owned();
        let (host, engine) = app.beside_bounded(&url, WriterBounds::default()).await;
        let body = json!({
            "definitionKey": "errands", "entityType": "errand", "entityId": "plug", "data": { "payments": count },
        });
        let instance = app.post("author", "/v1/instances", body).await.expect(201);
        HeldUp {
            app,
            host,
            engine,
            instance,
        }
    }

    /// The signal of this id, in a request of its own.
    fn paid(&self, signal: &str, key: &str) -> Ask {
        Ask {
            bearer: format!("Bearer {}", self.host.token("author")),
            key: key.into(),
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
            path: format!("/v1/tasks/{}/decide", id(task)),
            body: json!({ "outcome": "YES" }),
        }
    }

    fn votes(&self, voters: Range<usize>) -> Vec<Ask> {
        voters.map(|voter| self.yes(voter)).collect()
    }

    /// Sends the first and waits until its commit is held up; then the others, each once the one before stands in line.
    async fn line_up(&self, plug: &Plug<'_>, asks: Vec<Ask>) -> (Answers, Vec<AbortHandle>) {
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
        let (waiting, _) = self.line_up(&plug, asks).await;
        plug.pull().await;
        let mut answers = within(waiting.join_all()).await;
        answers.sort_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Rows that one statement wrote have the same transaction.
    async fn transactions(&self) -> i64 {
        let sql = "select count(distinct xmin::text) from decision";
        count(&self.app.database, sql).await
    }

    async fn recorded(&self, kind: &str) -> usize {
        recorded(&self.app, &self.instance, kind).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_wait_are_committed_together_and_answered_in_their_order() {
    let held = HeldUp::vote(VOTERS).await;
    let answers = held.answers(held.votes(0..VOTERS)).await;
    let first = held.instance["revision"].as_u64().expect("a number");
    for (answer, revision) in answers.into_iter().zip(first + 1..) {
        assert_eq!(answer.expect(200)["instance"]["revision"], revision);
    }
    assert_eq!(held.transactions().await, 2);
    assert_eq!(
        shown(&held.app, &held.instance).await["status"],
        "COMPLETED"
    );
    prove_all(&held.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_rests_on_what_is_committed_with_it() {
    const NEEDED: usize = 12;
    let held = HeldUp::vote(NEEDED).await;
    let mut answers = held.answers(held.votes(0..VOTERS)).await;
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
    assert_eq!(held.transactions().await, 2);
    assert_eq!(held.recorded("DECISION_RECORDED").await, 12);
    prove_all(&held.app).await;
}

/// It counts once, and is answered alike: also when the first of it waits to be committed and ends the instance.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_known_again_by_its_id() {
    let held = HeldUp::payments(3).await;
    let asks = [
        ("p-1", "a"),
        ("p-2", "b"),
        ("p-3", "c"),
        ("p-3", "d"),
        ("p-2", "e"),
        ("p-4", "f"),
    ];
    let asks = asks.map(|(signal, key)| held.paid(signal, key));
    let mut answers = held.answers(asks.into()).await;
    let late = answers.pop().expect("an answer");
    late.problem(409, "instance_ended");
    for (number, answer) in answers.into_iter().enumerate() {
        let body = answer.expect(200);
        let paid = (number + 1).min(3);
        assert_eq!(body["instance"]["data"]["paid"], paid);
        assert_eq!(body["events"] == json!([]), number > 2, "{body}");
    }
    assert_eq!(held.recorded("SIGNAL_RECEIVED").await, 3);
    prove_all(&held.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whom_the_database_refuses_fails_alone() {
    const NEEDED: usize = 12;
    let held = HeldUp::vote(NEEDED).await;
    // What no check of the host foresaw.
    let trigger = "create function refuse_poison() returns trigger language plpgsql as
            $$ begin if new.actor = 'voter-7' then raise 'poison'; end if; return new; end $$;
        create trigger refuse_poison before insert on decision for each row execute function refuse_poison()";
    let made = sqlx::raw_sql(trigger).execute(held.app.database.admin_pool());
    made.await.expect("a trigger");
    // Some are refused at first because of the one who fails, and answered when all have been judged again.
    let mut counted = 0;
    let answers = held.answers(held.votes(0..VOTERS)).await;
    for (voter, answer) in answers.into_iter().enumerate() {
        match answer.status {
            200 => counted += 1,
            500 => assert_eq!(voter, 7),
            _ => drop(answer.problem(409, "task_taken")),
        }
    }
    assert_eq!(counted, NEEDED);
    assert_eq!(held.recorded("DECISION_RECORDED").await, NEEDED);
    assert_eq!(
        shown(&held.app, &held.instance).await["status"],
        "COMPLETED"
    );
    prove_all(&held.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_cleared_up_for_all() {
    let app = TestApp::start().await;
    let wire = Wire::to(app.database.url()).await;
    let held = HeldUp::of(app, wire.url(), VOTERS).await;
    let plug = Plug::put(&held.app.database).await;
    let (waiting, _) = held.line_up(&plug, held.votes(0..VOTERS)).await;
    wire.lose_the_answer_to("DECISION_RECORDED", 0);
    plug.pull().await;
    for (_, answer) in within(waiting.join_all()).await {
        answer.expect(200);
    }
    assert!(wire.is_spent(), "the wire was not cut");
    assert_eq!(held.recorded("DECISION_RECORDED").await, VOTERS);
    assert_eq!(held.transactions().await, 2);
    prove_all(&held.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_the_reply_of_the_one_before_it() {
    let held = HeldUp::vote(VOTERS).await;
    let twice = (0..6).flat_map(|voter| [held.yes(voter), held.yes(voter)]);
    let answers = held.answers(twice.collect()).await;
    for twins in answers.chunks(2) {
        assert_eq!((twins[0].status, twins[1].status), (200, 200));
        assert_eq!(twins[0].text, twins[1].text);
        assert!(twins[1].headers.contains_key("idempotency-replayed"));
    }
    assert_eq!(held.recorded("DECISION_RECORDED").await, 6);
    prove_all(&held.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_go_away_leave_nothing_half_done() {
    let held = HeldUp::vote(VOTERS).await;
    let plug = Plug::put(&held.app.database).await;
    let (mut answers, callers) = held.line_up(&plug, held.votes(0..VOTERS)).await;
    // The first, whose commit is under way, and every third of those who wait.
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
    // Whoever went away has voted, or may do so now.
    for vote in held.votes(0..VOTERS) {
        vote.send(&held.host).await.expect(200);
    }
    assert_eq!(held.recorded("DECISION_RECORDED").await, 20);
    prove_all(&held.app).await;
    held.engine.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_finds_nothing_however_much_waits() {
    let held = HeldUp::vote(VOTERS).await;
    let roles = BTreeMap::from([("admin", &["instance:cancel"][..])]);
    let (store, now) = (held.engine.store(), held.engine.clock().now());
    let tenant = store.ensure_tenant("rivals", &roles, now).await;
    tenant.expect("a tenant");
    let mut asks = held.votes(0..6);
    asks.insert(
        3,
        Ask {
            bearer: format!(
                "Bearer {}",
                held.host.token_of("admin", "rivals", &["admin"])
            ),
            key: "not mine".into(),
            path: format!("/v1/instances/{}/cancel", id(&held.instance)),
            body: json!({ "reason": "not mine" }),
        },
    );
    let mut answers = held.answers(asks).await;
    let problem = answers.remove(3).problem(404, "not_found");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains(id(&held.instance)), "{detail}");
    for answer in answers {
        answer.expect(200);
    }
    prove_all(&held.app).await;
}

/// What the last commit left is no ground to refuse on: another host may have moved on since.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_rests_on_what_stands() {
    let held = HeldUp::vote(VOTERS).await;
    let admin = held.app.database.admin_pool();
    // Each commit waits until its revision is let through.
    let gate = "create sequence gate;
        create function wait_at_gate() returns trigger language plpgsql security definer as $$
            begin while (select last_value from public.gate) < new.revision loop perform pg_sleep(0.005); end loop; return new; end $$;
        create trigger wait_at_gate before update on instance for each row execute function wait_at_gate()";
    let run = async |sql: &'static str| {
        sqlx::raw_sql(sql).execute(admin).await.expect(sql);
    };
    let reached = async |revision: i64| {
        let sql = "select max(revision)::bigint from instance";
        within(async { while count(&held.app.database, sql).await < revision {} }).await;
    };
    run(gate).await;
    let mut answers = Answers::new();
    let mut send = |number: usize, ask: Ask| {
        let host = held.host.clone();
        answers.spawn(async move { (number, ask.send(&host).await) });
    };
    send(0, held.yes(0));
    let asleep = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    within(async { while count(&held.app.database, asleep).await == 0 {} }).await;
    send(1, held.yes(1));
    within(held.waiting(1)).await;
    send(2, held.yes(2));
    within(held.waiting(2)).await;
    run("select setval('gate', 2)").await;
    // The two who waited are being committed together, when one comes whose standing cannot be read yet.
    within(held.waiting(0)).await;
    reached(2).await;
    within(async { while count(&held.app.database, asleep).await == 0 {} }).await;
    let mut block = admin.begin().await.expect("a transaction");
    let lock = sqlx::raw_sql("lock table membership in access exclusive mode");
    lock.execute(&mut *block).await.expect("a lock");
    let mut stranger = held.yes(9);
    stranger.bearer = format!("Bearer {}", held.host.token("stranger"));
    send(3, stranger);
    within(held.waiting(1)).await;
    run("select setval('gate', 100)").await;
    reached(4).await;
    // Another host gives the work to the one who comes.
    run("update task set owner = 'stranger' where owner = 'voter-9'; update instance set revision = 5").await;
    block.commit().await.expect("an end");
    for (_, answer) in within(answers.join_all()).await {
        answer.expect(200);
    }
}
