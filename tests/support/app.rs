//! The whole service in this process: real PostgreSQL, real wasm, requests passed to the router without a network.

pub(crate) mod neighbour;
mod variants;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_audit::seal::SealKeys;
use wrkflw_core::cloudevent::Naming;
use wrkflw_core::subscription::AllowedAddresses;
use wrkflw_engine::Engine;
use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_engine::jobs::Jobs;
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::telemetry;
use wrkflw_sandbox::{Compiler, Sandbox, Settings};
use wrkflw_server::http::auth::{AuthSettings, Authenticator, Claims, Secret};
use wrkflw_server::http::{App, router, token};
use wrkflw_store::{PoolSizes, Store};

use super::documented;
use super::postgres::{TestDatabase, database};
use wrkflw_store::directory::tenants;

pub(crate) const SECRET: &[u8] = b"a secret for tests, long enough for HS256";
/// The timeout of a request. Longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Connections of each host.
const POOLS: PoolSizes = PoolSizes {
    writer: 4,
    reader: 3,
    relay: 2,
};
/// The permissions of the roles in the tests' tenant.
pub(crate) const USER: &[&str] = &[
    "instance:start",
    "instance:read",
    "task:act",
    "task:read",
    "definition:read",
    "event:read",
    "directory:read",
    "absence:self",
    "instance:signal",
    "notification:read",
];
pub(crate) const ADMIN: &[&str] = &[
    "instance:start",
    "instance:read",
    "instance:read-all",
    "instance:cancel",
    "instance:migrate",
    "instance:suspend",
    "instance:signal",
    "task:assign",
    "task:act",
    "task:read",
    "definition:read",
    "definition:publish",
    "definition:activate",
    "definition:activate-own-work",
    "definition:retire",
    "event:read",
    "audit:read",
    "directory:read",
    "directory:write",
    "embed:issue",
    "absence:self",
    "notification:read",
    "subscription:read",
    "subscription:write",
    "dead-letter:read",
    "dead-letter:write",
    "role:read",
    "role:write",
];

/// A host with its own database.
pub(crate) struct TestApp {
    pub(crate) database: TestDatabase,
    pub(crate) engine: Engine,
    store: Store,
    router: Router,
    auth: AuthSettings,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    /// The body, after a check of the status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }

    /// The instance that was started, after a check of the status.
    #[track_caller]
    pub(crate) fn started(self) -> Value {
        self.expect(201)["instance"].clone()
    }

    /// The problem, after a check of its status and code.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, self.body["code"].as_str()),
            (status, Some(code)),
            "{}",
            self.text
        );
        assert_eq!(self.headers["content-type"], "application/problem+json");
        self.body
    }
}

/// The sandbox of all tests, so that each guest is compiled once.
async fn sandbox() -> Sandbox {
    static SANDBOX: OnceCell<Sandbox> = OnceCell::const_new();
    let make = async || Sandbox::new(Settings::new(Compiler::InProcess)).expect("a sandbox");
    SANDBOX.get_or_init(make).await.clone()
}

impl TestApp {
    /// With demo people, and document approval published and active.
    pub(crate) async fn start() -> TestApp {
        let app = TestApp::empty().await;
        app.with_approval().await;
        app
    }

    /// Publishes document approval and activates it.
    pub(crate) async fn with_approval(&self) {
        self.publish("document-approval", DOCUMENT_APPROVAL, &json!({}))
            .await
            .expect(201);
        let path = "/v1/definitions/document-approval/versions/1/activate";
        self.post("admin", path, json!({})).await.expect(200);
    }

    /// With demo people only.
    pub(crate) async fn empty() -> TestApp {
        TestApp::empty_at(Clock::System).await
    }

    /// The same, with the test's own clock.
    pub(crate) async fn empty_at(clock: Clock) -> TestApp {
        let database = database(async |url: &str| Store::migrate(url).await).await;
        let app = TestApp::on(database, clock).await;
        app.populate().await;
        app
    }

    /// With demo people only, in the test's own sandbox.
    pub(crate) async fn empty_in(sandbox: Sandbox) -> TestApp {
        let database = database(async |url: &str| Store::migrate(url).await).await;
        let app = TestApp::within(sandbox, database, Clock::System).await;
        app.populate().await;
        app
    }

    async fn on(database: TestDatabase, clock: Clock) -> TestApp {
        TestApp::within(sandbox().await, database, clock).await
    }

    async fn within(sandbox: Sandbox, database: TestDatabase, clock: Clock) -> TestApp {
        let store = Store::connect(database.url(), POOLS).expect("a URL");
        let engine = Engine::new(store.clone(), sandbox, clock, seals(), TIMEOUT).await;
        let engine = engine.expect("an engine");
        let auth = AuthSettings {
            hs256_secret: Some(Secret::new(SECRET)),
            ..AuthSettings::default()
        };
        let router = service(engine.clone(), &auth);
        TestApp {
            database,
            engine,
            store,
            router,
            auth,
        }
    }

    async fn populate(&self) {
        let roles = BTreeMap::from([("user", USER), ("admin", ADMIN)]);
        let store = self.store();
        tenants::ensure_tenant(store, "default", &roles, self.engine.clock().now())
            .await
            .expect("a tenant");
        for (group, members) in [
            ("authors", vec!["author"]),
            ("reviewers", vec!["reviewer", "reviewer2", "author"]),
            ("approvers", vec!["approver"]),
        ] {
            self.put(
                "admin",
                &format!("/v1/groups/{group}"),
                json!({ "name": group }),
            )
            .await
            .expect(200);
            for member in members {
                self.put(
                    "admin",
                    &format!("/v1/people/{member}"),
                    json!({ "name": member }),
                )
                .await
                .expect(200);
                self.put(
                    "admin",
                    &format!("/v1/groups/{group}/members/{member}"),
                    json!({}),
                )
                .await
                .expect(200);
            }
        }
    }

    /// The store of the host. Tests write with it.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn host(&self) -> Host {
        Host {
            router: self.router.clone(),
            auth: self.auth.clone(),
        }
    }

    pub(crate) async fn get(&self, user: &str, path: &str) -> Answer {
        self.host().send(user, "GET", path, &[], None).await
    }

    pub(crate) async fn post(&self, user: &str, path: &str, body: Value) -> Answer {
        self.host().send(user, "POST", path, &[], Some(body)).await
    }

    pub(crate) async fn put(&self, user: &str, path: &str, body: Value) -> Answer {
        self.host().send(user, "PUT", path, &[], Some(body)).await
    }

    pub(crate) async fn publish(&self, key: &str, component: &[u8], config: &Value) -> Answer {
        const BOUNDARY: &str = "----boundary";
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"config\"\r\n\r\n{config}\r\n--{BOUNDARY}\r\n\
             Content-Disposition: form-data; name=\"component\"; filename=\"c.wasm\"\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(component);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let host = self.host();
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = host
            .request("admin", "POST", &format!("/v1/definitions/{key}/versions"))
            .header("content-type", kind)
            .body(Body::from(body));
        host.answer(request.expect("a request")).await
    }

    /// Starts document approval about an entity of this id. Returns the instance.
    pub(crate) async fn started(&self, entity: &str) -> Value {
        self.start_answer(entity).await["instance"].clone()
    }
    /// The same, with the whole response.
    pub(crate) async fn start_answer(&self, entity: &str) -> Value {
        let body = json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": entity, "data": { "title": "A plan" } });
        self.post("author", "/v1/instances", body).await.expect(201)
    }

    /// All events that are stored now, as the feed returns them. It waits for older transactions of all tests.
    pub(crate) async fn events(&self) -> Vec<Value> {
        let stored = "select count(*) from audit_entry where event_seq is not null";
        let stored: i64 = sqlx::query_scalar(stored)
            .fetch_one(self.database.admin_pool())
            .await
            .expect("a number");
        let stored = usize::try_from(stored).expect("a number of events");
        assert!(stored <= 100, "one page has them all");
        let reading = async {
            loop {
                let page = self.get("admin", "/v1/events?limit=100").await.expect(200);
                let events = page["data"].as_array().expect("events");
                if events.len() >= stored {
                    break events.clone();
                }
                crate::support::pause().await;
            }
        };
        tokio::time::timeout(TIMEOUT, reading)
            .await
            .expect("the feed tells what is stored")
    }

    /// Claims the only open task of an instance and decides it.
    pub(crate) async fn decided(&self, user: &str, instance: &Value, decision: Value) -> Value {
        let task = task_of(instance);
        self.post(user, &format!("/v1/tasks/{task}/claim"), json!({}))
            .await
            .expect(200);
        self.post(user, &format!("/v1/tasks/{task}/decide"), decision)
            .await
            .expect(200)["instance"]
            .clone()
    }
}

/// A job worker that runs until it is dropped.
pub(crate) struct Timers {
    ends: DropGuard,
    tasks: JoinSet<()>,
}

impl TestApp {
    /// Starts a job worker on this host.
    pub(crate) fn timers(&self) -> Timers {
        self.timers_with(Arc::new(self.engine.clone()))
    }

    /// The same, with fake job handlers.
    pub(crate) fn timers_with(&self, handle_job: Arc<dyn JobHandlers>) -> Timers {
        Timers::start(&self.engine, handle_job)
    }
}

impl Timers {
    /// Starts a job worker on the host of this engine.
    pub(crate) fn start(engine: &Engine, handle_job: Arc<dyn JobHandlers>) -> Timers {
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(Jobs::new(engine, handle_job, cancel.clone()).run());
        Timers {
            ends: cancel.drop_guard(),
            tasks,
        }
    }

    /// Ends the worker as a killed host does: jobs in flight are dropped.
    pub(crate) async fn kill(mut self) {
        self.tasks.shutdown().await;
    }

    /// Stops the worker as a host that shuts down does: jobs in flight are finished first.
    pub(crate) async fn stop(self) {
        drop(self.ends);
        self.tasks.join_all().await;
    }
}

/// The id of the first open task in an instance's response.
#[track_caller]
pub(crate) fn task_of(instance: &Value) -> String {
    let task = &instance["states"][0]["tasks"][0]["id"];
    task.as_str()
        .unwrap_or_else(|| panic!("no open task in {instance}"))
        .to_owned()
}

/// A client of one host, which can be sent to other tasks.
#[derive(Clone)]
pub(crate) struct Host {
    router: Router,
    auth: AuthSettings,
}

impl Host {
    pub(crate) fn token(&self, user: &str) -> String {
        let role = if user == "admin" { "admin" } else { "user" };
        self.token_of(user, "default", &[role])
    }

    pub(crate) fn token_of(&self, subject: &str, tenant: &str, roles: &[&str]) -> String {
        let claims = Claims {
            subject: subject.to_owned(),
            tenant: tenant.to_owned(),
            roles: roles.iter().map(ToString::to_string).collect(),
        };
        let (lifetime, now) = (Duration::from_hours(1), Clock::System.now());
        token::mint(&self.auth, &claims, lifetime, now).expect("a token")
    }

    /// Commands are answered in full. `api::minimal` tests the default.
    pub(crate) fn request(
        &self,
        user: &str,
        method: &str,
        path: &str,
    ) -> axum::http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("prefer", "return=representation");
        if user.is_empty() {
            request
        } else {
            request.header("authorization", format!("Bearer {}", self.token(user)))
        }
    }

    pub(crate) async fn send(
        &self,
        user: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let mut request = self.request(user, method, path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        self.answer(request.expect("a request")).await
    }

    /// A response whose body is not read yet.
    pub(crate) async fn open(&self, request: Request<Body>) -> Response {
        let answering = self.router.clone().oneshot(request);
        answering.await.expect("the router answers")
    }

    pub(crate) async fn answer(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.open(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        documented::check(method.as_str(), &path, parts.status.as_u16(), &body);
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            text,
        }
    }
}

async fn engine(store: Store, timeout: Duration) -> Engine {
    sealing_engine(store, timeout, seals()).await
}

fn seals() -> SealKeys {
    SealKeys::new("test", BTreeMap::from([("test".to_owned(), vec![7; 32])])).expect("a key")
}

async fn sealing_engine(store: Store, timeout: Duration, seals: SealKeys) -> Engine {
    Engine::new(store, sandbox().await, Clock::System, seals, timeout)
        .await
        .expect("an engine")
}

fn service(engine: Engine, auth: &AuthSettings) -> Router {
    router(application(engine, auth))
}

fn application(engine: Engine, auth: &AuthSettings) -> App {
    let authenticator =
        Arc::new(Authenticator::new(auth.clone(), Clock::System).expect("sound settings"));
    let collected = telemetry::metrics().expect("metrics");
    let metrics = Arc::new(move || collected.render());
    let app = App::new(
        engine,
        authenticator,
        Naming::default(),
        "wrkflw.events".into(),
        metrics,
        CancellationToken::new(),
    );
    // Receivers of the tests are on this machine.
    app.reaching(AllowedAddresses::Private)
}
