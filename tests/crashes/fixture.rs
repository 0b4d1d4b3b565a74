//! The fixture of a test of crashes: hosts as child processes, a PostgreSQL that keeps what it acknowledged, a broker, and the
//! test's proxies between them.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, thread};

use wrkflw_store::Store;

use super::client::{Client, SECRET, Urls};
use crate::support::kafka::{OwnBroker, create_topic, shared_address};
use crate::support::own_postgres::OwnPostgres;
use crate::support::program::{self, Running, last_words};
use crate::support::proxy::{Proxy, Server};
use crate::support::{LOOK_MAX, until};

/// Longer than anything takes on a busy machine.
pub(super) const TIMEOUT: Duration = LOOK_MAX;
/// The key that seals decisions.
const SEAL_KEY: &str = "test:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const ARTIFACT_KEY: &str = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
pub(super) const PARTITIONS: i32 = 3;

/// Which broker receives the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kafka {
    /// The broker of the test command, which must not be stopped, without a proxy.
    Shared,
    /// The fixture's own, behind a proxy.
    Own,
}

/// The end of a host that should die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// The host died by this signal before it listened, because leftover work reached the point.
    Already(i32),
    ToCome,
}

/// Hosts, servers and the proxies between them.
pub(super) struct Fixture {
    pub(super) postgres: OwnPostgres,
    pub(super) broker: Option<OwnBroker>,
    pub(super) to_postgres: Proxy,
    pub(super) to_kafka: Proxy,
    pub(super) brokers: String,
    pub(super) topic: String,
    folder: PathBuf,
    hosts: Vec<Mutex<Option<Running>>>,
    urls: Urls,
    /// The setting `services` of hosts that are started from now on.
    services: Mutex<String>,
}

impl Fixture {
    /// A fixture with so many hosts.
    pub(super) async fn open(hosts: usize, kafka: Kafka) -> Fixture {
        let name = format!("wcrash-{}", wrkflw_runtime::clock::new_id().simple());
        let folder = env::temp_dir().join(&name);
        fs::create_dir(&folder).expect("a fresh folder");
        let (to_postgres, to_kafka) = (Proxy::open().await, Proxy::open().await);
        let (postgres, broker) = tokio::join!(OwnPostgres::start(), async {
            match kafka {
                Kafka::Shared => None,
                Kafka::Own => Some(OwnBroker::start_behind(Some(to_kafka.port())).await),
            }
        });
        to_postgres.lead_to(Server::Socket(postgres.socket()));
        let brokers = match &broker {
            Some(own) => {
                let address = own.address().parse().expect("an address");
                to_kafka.lead_to(Server::Address(address));
                format!("127.0.0.1:{}", to_kafka.port())
            }
            None => shared_address(),
        };
        create_topic(&brokers, &name, PARTITIONS, &[]).await;
        Store::migrate(postgres.url()).await.expect("migrations");
        let fixture = Fixture {
            postgres,
            broker,
            to_postgres,
            to_kafka,
            brokers,
            topic: name,
            folder,
            hosts: (0..hosts).map(|_| Mutex::new(None)).collect(),
            urls: Urls::new(hosts),
            services: Mutex::default(),
        };
        for host in 0..hosts {
            fixture.start(host).await;
        }
        fixture
    }

    pub(super) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// A client of these hosts.
    pub(super) fn client(&self) -> Arc<Client> {
        Arc::new(Client::new(self.urls.clone()))
    }

    /// Starts a host, and tries again until it is up, as a supervisor does.
    pub(super) async fn start(&self, host: usize) {
        let what = format!("host {host} is up");
        let look = async || self.try_start(host, None).await;
        let started = until(&what, look, Result::is_ok).await;
        started.expect("it is up");
    }

    /// Starts a host that will die at this point.
    pub(super) async fn start_doomed(&self, host: usize, point: &str) -> Death {
        match self.try_start(host, Some(point)).await {
            Ok(()) => Death::ToCome,
            Err(status) => Death::Already(status.signal().unwrap_or_default()),
        }
    }

    async fn try_start(&self, host: usize, fault: Option<&str>) -> Result<(), ExitStatus> {
        let (command, log) = (self.serve(fault), self.log(host));
        let starting = tokio::task::spawn_blocking(move || Running::start(command, &log));
        let running = starting.await.expect("no panic")?;
        self.urls.set(host, Some(running.url.clone()));
        *self.hosts[host].lock().expect("a lock") = Some(running);
        Ok(())
    }

    /// `kill -9`.
    pub(super) fn kill(&self, host: usize) {
        self.urls.set(host, None);
        let running = self.hosts[host].lock().expect("a lock").take();
        running.expect("a host that runs").kill();
    }

    /// Waits until a host has died by itself at this place. Returns the signal.
    pub(super) async fn death(&self, host: usize, place: &str) -> i32 {
        let what = format!("a host has died at {place}");
        let ended = until(&what, async || self.ended(host), Option::is_some).await;
        self.urls.set(host, None);
        let status = ended.expect("it has died");
        status.signal().unwrap_or_default()
    }

    /// The exit status of a host that ended by itself. Its slot is free then.
    fn ended(&self, host: usize) -> Option<ExitStatus> {
        let mut slot = self.hosts[host].lock().expect("a lock");
        let ended = slot.as_mut().expect("a host").ended();
        if ended.is_some() {
            slot.take();
        }
        ended
    }

    fn log(&self, host: usize) -> PathBuf {
        self.folder.join(format!("host-{host}.log"))
    }

    /// Hosts that are started from now on know this service.
    pub(super) fn has_service(&self, name: &str, url: &str) {
        *self.services.lock().expect("a lock") = format!("{name}={url}");
    }

    fn serve(&self, fault: Option<&str>) -> Command {
        let url = format!(
            "postgres://postgres@127.0.0.1:{}/postgres",
            self.to_postgres.port()
        );
        let mut command = program::command(&["serve", "--output", "json"]);
        for (name, value) in [
            ("WRKFLW_LISTEN", "127.0.0.1:0"),
            ("WRKFLW_DATABASE_URL", &url),
            ("WRKFLW_KAFKA_BROKERS", &self.brokers),
            ("WRKFLW_KAFKA_TOPIC", &self.topic),
            ("WRKFLW_JWT_SECRET", SECRET),
            ("WRKFLW_SEAL_KEYS", SEAL_KEY),
            ("WRKFLW_ARTIFACT_KEY", ARTIFACT_KEY),
            ("WRKFLW_REQUEST_SECONDS_MAX", "5"),
            // This test is not about how fast flow logic is on a busy machine.
            ("WRKFLW_GUEST_DEADLINE_MS", "2000"),
            ("WRKFLW_WEBHOOK_ALLOW_PRIVATE", "true"),
        ] {
            command.env(name, value);
        }
        let services = self.services.lock().expect("a lock");
        if !services.is_empty() {
            command.env("WRKFLW_SERVICES", services.as_str());
        }
        command.env("WRKFLW_ARTIFACT_DIR", self.folder.join("artifacts"));
        if let Some(point) = fault {
            command.env(wrkflw_fault::VARIABLE, point);
        }
        command
    }

    /// Runs `wrkflw audit verify --all` without the proxy. Returns its counts, after a check that there are no findings.
    pub(super) async fn verified(&self) -> String {
        let mut command = program::command(&["audit", "verify", "--all"]);
        command
            .env("WRKFLW_DATABASE_URL", self.postgres.url())
            .env("WRKFLW_SEAL_KEYS", SEAL_KEY);
        let running = tokio::task::spawn_blocking(move || command.output());
        let output = running.await.expect("no panic").expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (printed, complaint) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "audit: {printed}\n{complaint}");
        printed
    }

    /// The result of a statement that counts.
    pub(super) async fn count(&self, sql: &'static str) -> i64 {
        let counted = sqlx::query_scalar(sql).fetch_one(self.postgres.pool());
        let counted = counted.await;
        counted.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Ends the leases of dead hosts, and the time in which a dead host might have delivered a signal, as if some minutes had
    /// passed.
    pub(super) async fn forget_leases(&self) {
        for sql in [
            "update job set lease_until = now() where lease_until > now()",
            "update job set due_at = now() where kind = 'deliver_signal' and due_at > now()",
            "update reassessment set lease_until = now() where lease_until > now() and attempts > 0",
            "update webhook_delivery set lease_until = now() where lease_until > now()",
            "update bulk_item set lease_until = now() where lease_until > now()",
        ] {
            let done = sqlx::raw_sql(sql).execute(self.postgres.pool()).await;
            done.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if thread::panicking() {
            for host in 0..self.hosts.len() {
                eprintln!("--- host {host}\n{}", last_words(&self.log(host)));
            }
            eprintln!("logs are in {}", self.folder.display());
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("{} is left over: {error}", self.folder.display());
        }
    }
}
