//! What a test of crashes stands on: hosts as child processes, a PostgreSQL that keeps what it acknowledged, a broker,
//! and between them a network of the test's own.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, thread};

use tokio::time::Instant;
use wrkflw::store::Store;

use super::client::{Client, SECRET, Urls};
use crate::support::kafka::{OwnBroker, create_topic, shared_address};
use crate::support::own_postgres::OwnPostgres;
use crate::support::program::{self, Running, last_words};
use crate::support::proxy::{Proxy, Server};

/// Longer than anything takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);
/// The pause before a host is started again that did not come up.
const RESTART_PAUSE: Duration = Duration::from_millis(200);
/// Seals decisions here.
const SEAL_KEY: &str = "test:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const ARTIFACT_KEY: &str = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
pub(super) const PARTITIONS: i32 = 3;

/// Whose broker takes the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kafka {
    /// That of the test command, which nobody may stop, by no way of ours.
    Shared,
    /// One of the field's own, behind its network.
    Own,
}

/// What became of a host that was told to die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// It died before it listened, by this signal: work that was left over led it there.
    Already(i32),
    ToCome,
}

/// Hosts, servers and what lies between them.
pub(super) struct Field {
    pub(super) postgres: OwnPostgres,
    pub(super) broker: Option<OwnBroker>,
    pub(super) to_postgres: Proxy,
    pub(super) to_kafka: Proxy,
    pub(super) brokers: String,
    pub(super) topic: String,
    folder: PathBuf,
    hosts: Vec<Mutex<Option<Running>>>,
    urls: Urls,
}

impl Field {
    /// A field on which so many hosts run.
    pub(super) async fn open(hosts: usize, kafka: Kafka) -> Field {
        let name = format!("wchaos-{}", wrkflw::clock::new_id().simple());
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
        let field = Field {
            postgres,
            broker,
            to_postgres,
            to_kafka,
            brokers,
            topic: name,
            folder,
            hosts: (0..hosts).map(|_| Mutex::new(None)).collect(),
            urls: Urls::new(hosts),
        };
        for host in 0..hosts {
            field.start(host).await;
        }
        field
    }

    pub(super) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// A caller of these hosts.
    pub(super) fn client(&self) -> Arc<Client> {
        Arc::new(Client::new(self.urls.clone()))
    }

    /// Starts a host as often as it takes until it is up, as whatever runs it does.
    pub(super) async fn start(&self, host: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.try_start(host, None).await.is_err() {
            let log = last_words(&self.log(host));
            assert!(
                Instant::now() < deadline,
                "host {host} does not start:\n{log}"
            );
            tokio::time::sleep(RESTART_PAUSE).await;
        }
    }

    /// Starts a host that will die at a point.
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

    /// Waits until a host has died by itself; tells by which signal. None when it has not in time.
    pub(super) async fn death(&self, host: usize, patience: Duration) -> Option<i32> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended(host) {
                self.urls.set(host, None);
                return Some(status.signal().unwrap_or_default());
            }
            if Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How a host ended by itself, if it has; its place is free then.
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
            // Crashes are tried here, not how fast flow logic is on a busy machine.
            ("WRKFLW_GUEST_DEADLINE_MS", "2000"),
            ("WRKFLW_WEBHOOK_ALLOW_PRIVATE", "true"),
        ] {
            command.env(name, value);
        }
        command.env("WRKFLW_ARTIFACT_DIR", self.folder.join("artifacts"));
        if let Some(point) = fault {
            command.env(wrkflw::fault::VARIABLE, point);
        }
        command
    }

    /// Runs `wrkflw audit verify --all` past the network; tells what it counted, once it found nothing.
    pub(super) async fn verified(&self) -> String {
        let mut command = program::command(&["audit", "verify", "--all"]);
        command
            .env("WRKFLW_DATABASE_URL", self.postgres.url())
            .env("WRKFLW_SEAL_KEYS", SEAL_KEY);
        let running = tokio::task::spawn_blocking(move || command.output());
        let output = running.await.expect("no panic").expect("the program runs");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (told, complaint) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "audit: {told}\n{complaint}");
        told
    }

    /// Lets the leases of dead hosts be over, and the time in which a dead host might have delivered a signal: as if
    /// some minutes had passed.
    pub(super) async fn forget_leases(&self) {
        for sql in [
            "update job set lease_until = now() where lease_until > now()",
            "update job set due_at = now() where kind = 'match_signals' and due_at > now()",
            "update recheck set lease_until = now() where lease_until > now() and attempts > 0",
            "update webhook_delivery set lease_until = now() where lease_until > now()",
            "update bulk_item set lease_until = now() where lease_until > now()",
        ] {
            let done = sqlx::raw_sql(sql).execute(self.postgres.pool()).await;
            done.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
}

impl Drop for Field {
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
