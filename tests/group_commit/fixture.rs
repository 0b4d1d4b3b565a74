//! Changes for the commit statement, made by real executions with the flow logic of this file.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sqlx::AssertSqlSafe;
use wrkflw_audit::seal::Seal;
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::{
    Assignment, Attribute, AttributeValue, Next, Offer, Plan, Principal, Target, Work,
};
use wrkflw_core::audit::{Draft, Entry, Head, Stream, StreamKind};
use wrkflw_core::command::Command;
use wrkflw_core::event::Event;
use wrkflw_core::execution::{Ask, Context, Execution, Outcome};
use wrkflw_core::graph::{
    AttributeDeclaration, AttributeType, FiredBy, Graph, Join, State, StateKind, Transition,
};
use wrkflw_core::ids::{CommandId, Digest, InstanceId, TaskId, TenantId, VersionRef};
use wrkflw_core::instance::{Entity, Instance};
use wrkflw_core::json::Json;
use wrkflw_core::lookup::Findings;
use wrkflw_core::question::{Answer, Occurrence, Question};
use wrkflw_core::template::Templates;
use wrkflw_core::version::Version;
use wrkflw_runtime::clock;
use wrkflw_store::commit::{self, Change, CommitResult, KeyedReply};
use wrkflw_store::load::{self, Caller, Loaded, Stored, StoredReply, Wanted};
use wrkflw_store::{PoolSizes, Store};

use crate::support::postgres::{TestDatabase, database};

pub(super) const TENANT: TenantId = TenantId(7);

/// Every table that a commit writes, with the condition for the rows of an instance.
const TABLES: [(&str, &str); 9] = [
    ("instance", "t.id = $1"),
    ("state_instance", "t.instance_id = $1"),
    ("task", "t.instance_id = $1"),
    (
        "task_candidate",
        "exists (select from task k where k.tenant_id = t.tenant_id and k.id = t.task_id and k.instance_id = $1)",
    ),
    ("decision", "t.instance_id = $1"),
    ("attribute", "t.instance_id = $1"),
    ("audit_entry", "t.stream_id = $1"),
    ("outbox_event", "t.instance_id = $1"),
    (
        "idempotency_key",
        "exists (select from audit_entry a where a.stream_id = $1 and a.command_id = t.command_id)",
    ),
];

/// A store and a flow: `Work` goes on GO through two routers back to `Work`, on FORK to `Work` and `Side`, on SPLIT to `Work` and,
/// over a router, `Done` at once, on END to `Done`.
pub(super) struct Fixture {
    pub(super) database: TestDatabase,
    pub(super) store: Store,
    version: Version,
}

impl Fixture {
    pub(super) async fn new() -> Fixture {
        let database = database(async |url: &str| Store::migrate(url).await).await;
        // Plans as for large tables: small tables would be scanned in the order of their pages, whatever the batch's order.
        for method in ["seqscan", "hashjoin", "mergejoin"] {
            let sql = format!(
                "alter database {} set enable_{method} = off",
                database.name()
            );
            sqlx::raw_sql(AssertSqlSafe(sql))
                .execute(database.admin_pool())
                .await
                .expect("a setting");
        }
        let sizes = PoolSizes {
            writer: 8,
            reader: 1,
            relay: 1,
        };
        let store = Store::connect(database.url(), sizes).expect("a URL");
        let reference = VersionRef {
            key: "subflows".into(),
            version: 1,
        };
        let version = Version {
            reference,
            component: Digest([1; 32]),
            config: Json::empty().into(),
            graph: graph(),
            schema: None,
            templates: Templates::default(),
        };
        Fixture {
            database,
            store,
            version,
        }
    }

    /// The effect of a command, not yet committed.
    pub(super) fn change(&self, before: Option<Stored>, actor: &str, command: &Command) -> Change {
        let actor = Actor {
            id: actor.into(),
            groups: vec!["crew".into()],
            permissions: vec![],
            on_behalf_of: None,
            stands_in_for: vec![],
        };
        let present = clock::Clock::System.now();
        let now = before
            .as_ref()
            .map_or(present, |stored| present.max(stored.instance.updated_at));
        let context = Context {
            version: &self.version,
            previous: None,
            tenant: "acme",
            actor: &actor,
            now,
        };
        let mut ids = clock::new_id;
        let instance = before.as_ref().map(|stored| stored.instance.clone());
        let mut execution = Execution::begin(context, instance, command, &mut ids)
            .expect("the command is in order");
        while let Some(ask) = execution.ask().expect("a sound flow") {
            let Ask::Logic(question) = ask else {
                execution
                    .found(&Findings::default())
                    .expect("a sound answer");
                continue;
            };
            let answer = answer(&question, &execution.instance());
            execution.answer(answer).expect("a sound answer");
        }
        let outcome = execution.finish();
        let command = CommandId(clock::new_id());
        let entries = entries(before.as_ref(), &outcome, command, &actor, now);
        let after = outcome.instance;
        let known = |task| {
            before
                .as_ref()
                .and_then(|stored| stored.instance.task(task)?.decision())
                .is_some()
        };
        let decided = after
            .state_instances()
            .flat_map(|state_instance| &state_instance.tasks)
            .filter(|task| task.decision().is_some() && !known(task.id));
        let seals = decided
            .map(|task| Seal {
                task: task.id,
                key_id: "k".into(),
                version: 1,
                mac: [0; 32],
            })
            .collect();
        Change {
            tenant: TENANT,
            command,
            before: before.map(Arc::new),
            access_mark: None,
            after,
            entries,
            seals,
            delegation_seals: vec![],
            replies: vec![],
            signals: vec![],
            participants: vec![],
            allocations: vec![],
            done: vec![],
            now: present,
        }
    }

    pub(super) fn start(&self, entity: &str) -> Change {
        self.change(None, "ann", &start(entity))
    }

    /// Commits changes that must all be applied.
    pub(super) async fn apply(&self, changes: &[&Change]) {
        assert_eq!(
            self.commit(changes).await,
            vec![CommitResult::Applied; changes.len()]
        );
    }

    pub(super) async fn commit(&self, changes: &[&Change]) -> Vec<CommitResult> {
        commit::commit(&self.store, changes)
            .await
            .expect("results")
            .results
    }

    pub(super) async fn load(&self, instance: InstanceId) -> Stored {
        let who = Caller {
            tenant: TENANT,
            subject: "rob".into(),
            roles: vec![],
        };
        let wanted = Wanted::of(who, instance, clock::Clock::System.now());
        load::load(&self.store, &wanted)
            .await
            .and_then(Loaded::read)
            .expect("a query")
            .found
            .expect("an instance")
    }

    /// The stored state after the change is applied.
    pub(super) fn applied(change: Change) -> Stored {
        change.leaves()
    }

    /// Starts an instance and lets `rob` claim its task.
    pub(super) async fn claimed(&self, entity: &str) -> Stored {
        let start = self.start(entity);
        self.apply(&[&start]).await;
        let task = task_of(&start.after);
        let claim = self.change(
            Some(Fixture::applied(start)),
            "rob",
            &Command::Claim { task },
        );
        self.apply(&[&claim]).await;
        let stored = self.load(claim.after.id).await;
        assert_eq!(stored, Fixture::applied(claim));
        stored
    }

    /// `rob` decides the claimed task of the first active state.
    pub(super) fn decide(&self, stored: &Stored, outcome: &str) -> Change {
        self.change(
            Some(stored.clone()),
            "rob",
            &decision(task_of(&stored.instance), outcome),
        )
    }

    /// All rows of an instance, table by table.
    pub(super) async fn rows(&self, instance: InstanceId) -> Vec<(&'static str, Value)> {
        let mut rows = Vec::new();
        for (table, tie) in TABLES {
            let sql = format!(
                "select coalesce(jsonb_agg(to_jsonb(t) order by to_jsonb(t)::text), '[]') from {table} t where {tie}"
            );
            let found = sqlx::query_scalar::<_, Value>(AssertSqlSafe(sql)).bind(instance.0);
            rows.push((
                table,
                found
                    .fetch_one(self.database.admin_pool())
                    .await
                    .expect(table),
            ));
        }
        rows
    }

    pub(super) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(self.database.admin_pool())
            .await
            .expect(sql)
    }
}

/// The number of rows of each table, in the given order.
pub(super) fn counts(rows: &[(&'static str, Value)]) -> Vec<(&'static str, usize)> {
    rows.iter()
        .map(|(table, rows)| (*table, rows.as_array().map_or(0, Vec::len)))
        .collect()
}

pub(super) fn task_of(instance: &Instance) -> TaskId {
    instance.active[0].tasks[0].id
}

pub(super) fn decision(task: TaskId, outcome: &str) -> Command {
    Command::Decide {
        task,
        outcome: outcome.into(),
        comment: Some("well".into()),
        input: Json::empty(),
    }
}

/// The audit entries of an execution's events, on the stream of the instance.
fn entries(
    before: Option<&Stored>,
    outcome: &Outcome,
    command: CommandId,
    actor: &Actor,
    at: Timestamp,
) -> Vec<Entry> {
    let after = &outcome.instance;
    let stream = Stream {
        tenant: TENANT,
        kind: StreamKind::Instance,
        id: after.id.0,
    };
    let mut head = before.map_or_else(|| Head::genesis(stream), |stored| stored.head.clone());
    let draft = |event: &Event| Draft {
        id: clock::new_id(),
        kind: event.kind().to_owned(),
        revision: after.revision,
        command,
        actor: Some(actor.id.clone()),
        task: event.task(),
        payload: Json::of(event),
        evidence: None,
        salt: [0; 16],
        at,
        public: event.is_public(),
        traceparent: None,
    };
    outcome
        .events
        .iter()
        .map(|event| head.append(stream, draft(event)))
        .collect()
}

fn start(entity: &str) -> Command {
    let entity = Entity {
        kind: "errand".into(),
        id: entity.into(),
    };
    Command::Start {
        definition: "subflows".into(),
        lineage: None,
        entity,
        data: Json::empty(),
    }
}

/// The change with an idempotency key of `rob`'s.
pub(super) fn keyed(mut change: Change, key: &str) -> Change {
    let reply = StoredReply {
        fingerprint: vec![1],
        status: 200,
        body: "{}".into(),
        headers: String::new(),
    };
    change.replies.push(KeyedReply {
        principal: "rob".into(),
        key: key.into(),
        reply,
    });
    change
}

fn answer(question: &Question, instance: &Instance) -> Answer {
    match question {
        Question::Start(_) => Answer::Start(Ok(())),
        Question::Transition(occurrence) => Answer::Transition(Ok(plan(occurrence, instance))),
        Question::Enter(entries) => {
            let candidates = vec![
                Principal::Group("crew".into()),
                Principal::User("rob".into()),
            ];
            let offer = Offer {
                label: "errand".into(),
                candidates,
                ..Offer::default()
            };
            let assignment = Assignment {
                offers: vec![offer],
                needed: 1,
                ..Assignment::default()
            };
            Answer::Enter(Ok(vec![Work::Task(assignment); entries.len()]))
        }
    }
}

fn plan(occurrence: &Occurrence, instance: &Instance) -> Plan {
    let state_instance = instance
        .active
        .iter()
        .find(|state_instance| state_instance.id.to_string() == occurrence.state_instance);
    let state = state_instance.expect("an active state").name.as_str();
    let to: &[&str] = match (state, occurrence.trigger.as_str()) {
        ("Work", "GO") => &["First"],
        ("Work", "FORK") => &["Work", "Side"],
        ("Work", "SPLIT") => &["Work", "Last"],
        ("First", _) => &["Second"],
        ("Second", _) => &["Work"],
        _ => &["Done"],
    };
    let miles = Attribute {
        name: "miles".into(),
        value: Some(AttributeValue::Decimal("12.50".into())),
    };
    Plan {
        next: Next::Enter(to.iter().map(|name| Target::new(*name)).collect()),
        data: Some(format!("{{\"last\":{:?}}}", occurrence.trigger)),
        attributes: vec![miles],
        ..Plan::default()
    }
}

fn graph() -> Graph {
    let state = |name: &str, kind| State {
        name: name.into(),
        title: name.into(),
        description: String::new(),
        kind,
        join: Join::None,
        own_work: false,
    };
    let way = |source: &str, trigger: &str, by, targets: &[&str]| Transition {
        source: source.into(),
        trigger: trigger.into(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        by: vec![by],
        ..Transition::default()
    };
    Graph {
        initial: "Work".into(),
        initiators: vec![],
        states: vec![
            state("Work", StateKind::Task),
            state("Side", StateKind::Task),
            state("First", StateKind::Router),
            state("Second", StateKind::Router),
            state("Last", StateKind::Router),
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            way("Work", "GO", FiredBy::Decision, &["First"]),
            way("Work", "FORK", FiredBy::Decision, &["Work", "Side"]),
            way("Work", "SPLIT", FiredBy::Decision, &["Work", "Last"]),
            way("Last", "ON", FiredBy::Entry, &["Done"]),
            way("Work", "END", FiredBy::Decision, &["Done"]),
            way("Side", "END", FiredBy::Decision, &["Done"]),
            way("First", "ON", FiredBy::Entry, &["Second"]),
            way("Second", "ON", FiredBy::Entry, &["Work"]),
        ],
        attributes: vec![AttributeDeclaration {
            name: "miles".into(),
            kind: AttributeType::Decimal,
        }],
        ..Graph::default()
    }
}
