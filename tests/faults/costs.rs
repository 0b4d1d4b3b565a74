//! Requests of one tenant that make the host compute much, each kind at its limit, and how they delay another tenant.
//!
//! The host is the program itself, with one thread for all async work: a calculation on it would block everybody. The tests run
//! an unoptimised build, which takes ten times as long as a release. Other load on the machine can slow a trial down, so one of a
//! few trials must pass.

mod actions;
mod bodies;
mod calendars;
mod eligibility;
mod replays;
mod searches;

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::program::{Folder, Program, ask, is_loading, serve};
use super::*;
use crate::support::app::neighbour::Neighbour;
use crate::support::guests;

/// Threads of the host that answer requests.
const THREADS: &str = "1";
/// Concurrent callers, each of which repeats its request.
const ATTACKERS: usize = 4;
/// Decisions of the neighbour in each measurement.
const DECIDED: usize = 12;
const TRIALS: usize = 3;
/// The interval of requests to `/livez`, and of decisions.
const PROBED: Duration = Duration::from_millis(10);
const PACE: Duration = Duration::from_millis(60);
/// How long a measurement waits for at least one response to each attacker.
const WATCHED_MAX: Duration = Duration::from_secs(20);
/// The longest time that `/livez` may take.
const LIVE_MAX: Duration = Duration::from_millis(500);
/// How many times as long as alone the neighbour may wait, at the median and at the maximum: the machine has two processors, and
/// the attackers, their answers and the database use them, too.
const RATIO_MAX: u32 = 4;
const MEDIAN_NOISE: Duration = Duration::from_millis(150);
const LONGEST_NOISE: Duration = Duration::from_secs(1);

/// A host with two tenants: one sends costly requests, the other one decides on its documents.
struct Fixture {
    app: TestApp,
    neighbour: Neighbour,
    host: Program,
    _folder: Folder,
}

/// A request that costs as much as its kind may.
#[derive(Clone)]
struct CostlyRequest {
    what: &'static str,
    user: &'static str,
    method: &'static str,
    path: String,
    content_type: String,
    body: Vec<u8>,
    /// The expected status. 503 is allowed, too: too many such requests at a time.
    status: u16,
}

/// Times, sorted.
struct Latencies {
    live: Vec<Duration>,
    decided: Vec<Duration>,
}

impl CostlyRequest {
    fn get(what: &'static str, user: &'static str, path: String) -> CostlyRequest {
        CostlyRequest {
            what,
            user,
            method: "GET",
            path,
            content_type: "application/json".to_owned(),
            body: Vec::new(),
            status: 200,
        }
    }

    fn send(
        what: &'static str,
        user: &'static str,
        (method, path): (&'static str, &str),
        body: &Value,
    ) -> CostlyRequest {
        CostlyRequest {
            method,
            body: body.to_string().into_bytes(),
            ..CostlyRequest::get(what, user, path.to_owned())
        }
    }

    fn answered(self, status: u16) -> CostlyRequest {
        CostlyRequest { status, ..self }
    }
}

impl Latencies {
    fn median(took: &[Duration]) -> Duration {
        took[took.len() / 2]
    }

    fn longest(took: &[Duration]) -> Duration {
        took[took.len() - 1]
    }
}

/// The status and the first bytes of the body. The rest is read and dropped.
async fn answer(
    address: &str,
    token: &str,
    request: &CostlyRequest,
    sent: impl FnOnce(),
) -> (u16, String) {
    const SHOWN: usize = 1_200;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "{} {} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: {}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        request.method,
        request.path,
        request.content_type,
        request.body.len()
    );
    // A host that refuses may answer before it has read the whole request.
    drop(stream.write_all(head.as_bytes()).await);
    drop(stream.write_all(&request.body).await);
    sent();
    let (mut shown, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let room = SHOWN.saturating_sub(shown.len()).min(read);
        shown.extend(&buffer[..room]);
    }
    let text = String::from_utf8_lossy(&shown).into_owned();
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.unwrap_or(0), text)
}

impl Fixture {
    async fn open() -> Fixture {
        let (folder, app) = (Folder::new(), TestApp::empty().await);
        let neighbour = Neighbour::of(&app).await;
        let mut command = serve(&folder, &app, "--roles api");
        command
            .env("TOKIO_WORKER_THREADS", THREADS)
            // This test is about limits of the host's own work, not about how fast flow logic is on a busy machine.
            .env("WRKFLW_GUEST_DEADLINE_MS", "2000")
            // Twelve connections to the database, four of them for queries.
            .env("WRKFLW_REQUESTS_IN_FLIGHT_MAX", "192");
        let host = Program::start(&folder, command).await;
        let token = neighbour.token("admin");
        host.started(&token, &start_of("loaded")).await;
        Fixture {
            app,
            neighbour,
            host,
            _folder: folder,
        }
    }

    /// Publishes, for the attacking tenant, the flow whose offers and deadlines are set by the data of an instance.
    async fn with_committee(&self) {
        let (app, config) = (&self.app, json!({ "calendars": ["largest"] }));
        let published = app.publish("committee", guests::committee(), &config).await;
        published.expect(201);
        let path = "/v1/definitions/committee/versions/1/activate";
        let forced = app.post("admin", path, json!({ "force": true })).await;
        forced.expect(200);
    }

    /// Tasks that the neighbour has claimed.
    async fn tasks(&self, name: &str) -> Vec<String> {
        let bearer = format!("Bearer {}", self.neighbour.token("reviewer"));
        let claimed = async |number| {
            let started = self.neighbour.start(&format!("{name}-{number}")).await;
            let task = task_of(&started["instance"]);
            let path = format!("/v1/tasks/{task}/claim");
            let headers = [("authorization", bearer.as_str())];
            let claim = self
                .neighbour
                .host
                .send("", "POST", &path, &headers, Some(json!({})));
            claim.await.expect(200);
            task
        };
        futures_util::future::join_all((0..DECIDED).map(claimed)).await
    }

    /// The neighbour decides these tasks one after the other, while `/livez` is requested repeatedly, until `until` completes.
    #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
    async fn measured(&self, tasks: Vec<String>, until: impl Future<Output = ()>) -> Latencies {
        let over = CancellationToken::new();
        let (address, ending) = (self.host.address.clone(), over.clone());
        let probing = tokio::spawn(async move {
            let (mut took, mut ticks) = (Vec::new(), interval(PROBED));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while !ending.is_cancelled() {
                ticks.tick().await;
                let begun = Instant::now();
                let response = ask(&address, "", "GET", "/livez", "").await;
                took.push(begun.elapsed());
                assert_eq!(response.expect("an answer").status, 200);
            }
            took
        });
        let (mut decided, token) = (Vec::new(), self.neighbour.token("reviewer"));
        let mut ticks = interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for task in tasks {
            ticks.tick().await;
            let begun = Instant::now();
            let path = format!("/v1/tasks/{task}/decide");
            let response = self
                .host
                .post(&token, &path, &json!({ "outcome": "APPROVE" }))
                .await;
            decided.push(begun.elapsed());
            let response = response.expect("an answer");
            assert_eq!(response.status, 200, "{}", response.body);
        }
        until.await;
        over.cancel();
        let mut live = probing.await.expect("every probe is answered");
        live.sort_unstable();
        decided.sort_unstable();
        Latencies { live, decided }
    }

    /// Sends the request once, when the flow that it is about is loaded. Returns the time that it took.
    async fn once(&self, request: &CostlyRequest) -> Duration {
        let token = self.app.host().token(request.user);
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let begun = Instant::now();
            let (status, text) = answer(&self.host.address, &token, request, || ()).await;
            if is_loading(status, &text) && begun < deadline {
                crate::support::pause().await;
                continue;
            }
            let log = || self.host.log();
            assert_eq!(
                status,
                request.status,
                "{}: {text}\n{}",
                request.what,
                log()
            );
            return begun.elapsed();
        }
    }

    /// Repeats the request from several callers, and measures the neighbour meanwhile.
    async fn beside(&self, request: &CostlyRequest, tasks: Vec<String>) -> (Latencies, usize) {
        let (begun, answered) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let mut attackers: JoinSet<()> = JoinSet::new();
        for _ in 0..ATTACKERS {
            let (address, token) = (
                self.host.address.clone(),
                self.app.host().token(request.user),
            );
            let (request, begun, answered) = (request.clone(), begun.clone(), answered.clone());
            attackers.spawn(async move {
                loop {
                    let sent = || begun.add_permits(1);
                    let (status, text) = answer(&address, &token, &request, sent).await;
                    assert!(
                        [request.status, 503].contains(&status),
                        "{}: {status}: {text}",
                        request.what
                    );
                    answered.add_permits(1);
                }
            });
        }
        let all = u32::try_from(ATTACKERS).expect("few");
        drop(begun.acquire_many(all).await.expect("never closed"));
        let each = async {
            let each = timeout(WATCHED_MAX, answered.acquire_many(all));
            drop(each.await);
        };
        let latencies = self.measured(tasks, each).await;
        while let Some(ended) = attackers.try_join_next() {
            ended.expect("every attack has an answer");
        }
        (latencies, answered.available_permits())
    }

    /// Another tenant decides about as fast as alone while this request is repeated.
    #[expect(clippy::print_stdout, reason = "the figures of a run")]
    async fn delays_nobody(&self, request: CostlyRequest) {
        let alone = self.once(&request).await;
        // The components of both are loaded before anything is measured.
        let tasks = self.tasks(&format!("{} warm", request.what)).await;
        self.measured(tasks, ready(())).await;
        let mut failed = Vec::new();
        for trial in 0..TRIALS {
            let name = format!("{} {trial}", request.what);
            let tasks = self.tasks(&format!("{name} quiet")).await;
            let quiet = self.measured(tasks, ready(())).await;
            let tasks = self.tasks(&format!("{name} beside")).await;
            let (beside, answered) = self.beside(&request, tasks).await;
            let [median, longest] = [Latencies::median, Latencies::longest]
                .map(|of| (of(&quiet.decided), of(&beside.decided)));
            let live = Latencies::longest(&beside.live);
            let figures = format!(
                "{}: {alone:?} alone, {answered} answers; /livez {live:?} at the longest; a decision {:?} instead of {:?} \
                 at the median, {:?} instead of {:?} at the longest",
                request.what, median.1, median.0, longest.1, longest.0
            );
            println!("{figures}");
            if live <= LIVE_MAX
                && median.1 <= median.0 * RATIO_MAX + MEDIAN_NOISE
                && longest.1 <= longest.0 * RATIO_MAX + LONGEST_NOISE
            {
                return;
            }
            failed.push(figures);
        }
        panic!(
            "{} held others up in each of {TRIALS} trials: {failed:#?}",
            request.what
        );
    }
}
