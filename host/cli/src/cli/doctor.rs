//! `wrkflw doctor`: checks the needs of a host, a client and a plugin author on this machine, and says how to fix problems. It
//! installs nothing. Its only change is that of a host's connections: on another server or timeline, they begin a history.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::connection::DevChoiceArgs;
use super::failure::{Exit, Failure};
use super::output::{Column, Format, Output, counted};
use super::plugin;
use super::running::{Note, SEVERAL};
use super::serve::GRANTS;
use super::{Environment, block_on, dev_settings};
use crate::config::{Role, Settings};
use wrkflw_relay::outbox::probe::brokers;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::pools::Readiness;
use wrkflw_store::server::{self, OLDEST};
use wrkflw_store::{PoolSizes, Store};

/// How long the database may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// A larger difference of clocks gets a warning, because deadlines follow the clocks of hosts.
const SKEW_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// The same as `--output json`
    #[arg(long)]
    json: bool,
    /// File with settings. Default: wrkflw.toml, if there is one
    #[arg(
        long = "config",
        id = "settings_file",
        env = "WRKFLW_CONFIG",
        value_name = "FILE"
    )]
    _file: Option<PathBuf>,
    #[command(flatten)]
    choice: DevChoiceArgs,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckStatus {
    Ok,
    Warn,
    Fail,
}

/// One line of the result.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: CheckStatus,
    detail: String,
    /// What to do.
    next: Option<&'static str>,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding {
            check,
            verdict: CheckStatus::Ok,
            detail: detail.into(),
            next: None,
        }
    }

    fn warn(check: &'static str, detail: impl Into<String>, next: &'static str) -> Finding {
        Finding {
            verdict: CheckStatus::Warn,
            next: Some(next),
            ..Finding::ok(check, detail)
        }
    }

    fn fail(check: &'static str, detail: impl Into<String>, next: &'static str) -> Finding {
        Finding {
            verdict: CheckStatus::Fail,
            ..Finding::warn(check, detail, next)
        }
    }
}

/// The check of the server that commands would talk to.
const DEV: &str = "dev";
const FINDINGS: &[Column] = &[
    ("CHECK", "/check"),
    ("RESULT", "/verdict"),
    ("DETAIL", "/detail"),
    ("NEXT", "/next"),
];

pub(super) fn run(mut args: DoctorArgs, output: Output, environment: &Environment) -> Result<()> {
    let format = if args.json {
        Format::Json
    } else {
        output.format
    };
    let output = Output { format, ..output };
    let settings = &mut args.settings;
    let is_of_host = settings.database.database_url.is_some() && args.choice.dev.is_none();
    let dev = match args.choice.choose(environment) {
        // A host does not need one.
        Err(_) if is_of_host => Finding::warn(DEV, SEVERAL, "name one with --dev NAME"),
        chosen => of_server(chosen?.map(|choice| choice.note).as_ref()),
    };
    let keys = (&mut settings.seal, &mut settings.checkpoint);
    let with = (
        Output {
            quiet: true,
            ..output
        },
        environment,
    );
    dev_settings::database(&args.choice, &mut settings.database, Some(keys), with)?;

    let mut findings = vec![dev];
    findings.extend(block_on(async { Ok(of_database(settings).await) })?);
    findings.push(of_seal_keys(settings, is_of_host));
    findings.push(of_checkpoint_keys(settings));
    findings.extend(of_host(settings, is_of_host));
    findings.extend(of_kafka(settings, is_of_host));
    if is_of_host {
        refuse(settings, &mut findings);
    }
    findings.push(of_toolchain());
    output.list(&json!({ "data": findings }), FINDINGS)?;
    let failed = findings
        .iter()
        .filter(|finding| finding.verdict == CheckStatus::Fail)
        .count();
    match failed {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Failed, "1 check fails").into()),
        many => Err(Failure::new(Exit::Failed, format!("{many} checks fail")).into()),
    }
}

/// The `wrkflw dev` that commands would talk to.
fn of_server(note: Option<&Note>) -> Finding {
    let Some(note) = note else {
        let next = "run `wrkflw dev`, or name a server with --server or WRKFLW_SERVER";
        return Finding::warn(DEV, "no `wrkflw dev` runs on this machine", next);
    };
    let place = format!("{} in {} at {}", note.name, note.folder.display(), note.url);
    let host = note.url.strip_prefix("http://").unwrap_or(&note.url);
    match std::net::TcpStream::connect(host) {
        Ok(_) => Finding::ok(DEV, place),
        Err(error) => {
            let next = "start `wrkflw dev` again";
            Finding::fail(DEV, format!("{place} does not answer: {error}"), next)
        }
    }
}

/// The database: whether it answers, its version, its migrations and its clock.
async fn of_database(settings: &Settings) -> Vec<Finding> {
    const CHECK: &str = "database";
    let Some(url) = settings.database.database_url.as_ref() else {
        let next = "set database_url (WRKFLW_DATABASE_URL), or run `wrkflw dev`";
        return vec![Finding::warn(CHECK, "no database is set", next)];
    };
    let before = Clock::System.now();
    let facts = match timeout(ANSWER_MAX, server::facts(url.reveal())).await {
        Ok(Ok(facts)) => facts,
        Ok(Err(error)) => {
            let next = "check database_url, and that PostgreSQL runs and takes connections";
            return vec![Finding::fail(CHECK, error.to_string(), next)];
        }
        Err(_) => {
            let detail = format!("no answer within {} s", ANSWER_MAX.as_secs());
            let next = "check database_url, and the network between here and the database";
            return vec![Finding::fail(CHECK, detail, next)];
        }
    };
    let skew = skew(before, facts.at, Clock::System.now());
    let version = format!("PostgreSQL {}", facts.version);
    let database = if facts.major >= OLDEST {
        Finding::ok(CHECK, version)
    } else {
        Finding::fail(CHECK, version, "PostgreSQL 15 or later is needed")
    };
    let migrations = of_migrations(url.reveal(), settings.has(Role::Relay)).await;
    vec![database, migrations, of_clock(skew)]
}

/// The migrations, or the role that the login lacks.
async fn of_migrations(url: &str, relays: bool) -> Finding {
    const CHECK: &str = "migrations";
    const NEXT: &str = "run `wrkflw migrate` as a login that may create roles";
    let ready = async {
        let store = Store::connect(url, PoolSizes::default())?;
        let ready = store.ready_to_start(relays).await;
        store.close().await;
        ready
    };
    match ready.await {
        Ok(Readiness::Ready) => Finding::ok(CHECK, "all are applied"),
        Ok(Readiness::ReadOnly) => {
            let next = "use the primary, or wait until the fail-over ends";
            Finding::fail(CHECK, "the database takes no writes", next)
        }
        Ok(Readiness::NotMigrated) => Finding::fail(CHECK, "some are missing", NEXT),
        Err(error) if error.lacks_role() => Finding::fail("roles", error.to_string(), GRANTS),
        Err(error) => Finding::fail(CHECK, error.to_string(), NEXT),
    }
}

/// The minimum difference between the database's clock and this machine's. It is a minimum because the query took some time.
fn skew(before: Timestamp, database: Timestamp, after: Timestamp) -> Duration {
    let ahead = database.duration_since(after);
    let behind = before.duration_since(database);
    let most = ahead.max(behind);
    Duration::try_from(most).unwrap_or_default()
}

fn of_clock(skew: Duration) -> Finding {
    const CHECK: &str = "clock";
    let detail = format!("{} ms from the database's", skew.as_millis());
    if skew <= SKEW_MAX {
        Finding::ok(CHECK, detail)
    } else {
        let next =
            "synchronise the clocks, for example by NTP: deadlines follow the clocks of hosts";
        Finding::warn(CHECK, detail, next)
    }
}

/// Fails each check for which `wrkflw serve` would refuse these settings.
fn refuse(settings: &Settings, findings: &mut Vec<Finding>) {
    const NEXT: &str = "mend this setting: `wrkflw serve` refuses it";
    for (check, checked) in settings.checks() {
        let Err(error) = checked else { continue };
        let known = findings.iter_mut().find(|finding| finding.check == check);
        match known {
            Some(known) if known.verdict == CheckStatus::Fail => {}
            Some(known) => {
                let next = known.next.unwrap_or(NEXT);
                *known = Finding::fail(check, error.to_string(), next);
            }
            None => findings.push(Finding::fail(check, error.to_string(), NEXT)),
        }
    }
}

fn of_seal_keys(settings: &Settings, is_of_host: bool) -> Finding {
    const CHECK: &str = "seal keys";
    const NEXT: &str = "set seal_keys to name:hex, such as k1:$(openssl rand -hex 32)";
    match settings.seals() {
        Err(_) if is_of_host && !settings.executes() && settings.seal.seal_keys.is_empty() => {
            Finding::ok(CHECK, "none is set: these roles seal nothing")
        }
        Ok(_) => Finding::ok(CHECK, counted(settings.seal.seal_keys.len(), "key")),
        Err(error) if settings.seal.seal_keys.is_empty() => {
            drop(error);
            Finding::warn(CHECK, "none is set: a host does not start", NEXT)
        }
        Err(error) => Finding::fail(CHECK, error.to_string(), NEXT),
    }
}

fn of_checkpoint_keys(settings: &Settings) -> Finding {
    const CHECK: &str = "checkpoint keys";
    const NEXT: &str = "set checkpoint_keys to name:hex, such as c1:$(openssl rand -hex 32)";
    match settings.checkpoints() {
        Ok(keys) if keys.is_empty() => {
            Finding::warn(CHECK, "none is set: no checkpoint is signed", NEXT)
        }
        Ok(_) => Finding::ok(
            CHECK,
            counted(settings.checkpoint.checkpoint_keys.len(), "key"),
        ),
        Err(error) => Finding::fail(CHECK, error.to_string(), NEXT),
    }
}

/// The checks that only a host with these settings needs.
fn of_host(settings: &Settings, is_of_host: bool) -> Option<Finding> {
    const CHECK: &str = "tokens";
    if !is_of_host || !settings.has(Role::Api) {
        return None;
    }
    let auth = &settings.auth;
    Some(match (&auth.jwt_secret, &auth.jwks_url) {
        (Some(_), None) => Finding::ok(CHECK, "signed with jwt_secret"),
        (None, Some(url)) => Finding::ok(CHECK, format!("signed with the keys of {url}")),
        (None, None) => {
            let next = "set jwks_url to the key set of your identity provider, or jwt_secret";
            Finding::fail(CHECK, "neither jwt_secret nor jwks_url is set", next)
        }
        (Some(_), Some(_)) => {
            let next = "keep one of them";
            Finding::fail(CHECK, "both jwt_secret and jwks_url are set", next)
        }
    })
}

fn of_kafka(settings: &Settings, is_of_host: bool) -> Option<Finding> {
    const CHECK: &str = "kafka";
    if settings.kafka_brokers.is_none() {
        let is_needed = is_of_host && settings.has(Role::Relay);
        let next = "set kafka_brokers, or leave `relay` out of roles";
        return is_needed.then(|| {
            Finding::fail(
                CHECK,
                "the relay is a role, and kafka_brokers is not set",
                next,
            )
        });
    }
    let next = "check kafka_brokers and kafka_properties, and that a broker runs";
    let kafka = match settings.kafka() {
        Ok(kafka) => kafka,
        Err(error) => return Some(Finding::fail(CHECK, error.to_string(), next)),
    };
    Some(match brokers(&kafka) {
        Ok(found) => {
            let topic = match found.partitions {
                Some(partitions) => format!(
                    "topic {} with {}",
                    kafka.topic,
                    counted(partitions, "partition")
                ),
                None => format!("no topic {} yet: the relay creates it", kafka.topic),
            };
            Finding::ok(
                CHECK,
                format!("{}; {topic}", counted(found.count, "broker")),
            )
        }
        Err(error) => Finding::fail(CHECK, error, next),
    })
}

/// The checks for authors of flows in Rust.
fn of_toolchain() -> Finding {
    const CHECK: &str = "wasm target";
    match plugin::toolchain::ready() {
        Some(name) => Finding::ok(CHECK, format!("Rust toolchain {name}")),
        None => Finding::warn(
            CHECK,
            "no Rust toolchain here compiles for WebAssembly: only authors of flows in Rust need one",
            "rustup target add wasm32-unknown-unknown; `wrkflw plugin build` tries so itself",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_differ_only_by_what_the_question_cannot_explain() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).expect("a time");
        for (database, expected) in [(1_005, 0), (1_010, 0), (4_010, 3_000), (0, 1_000)] {
            let found = skew(at(1_000), at(database), at(1_010));
            assert_eq!(found, Duration::from_millis(expected), "{database}");
        }
        assert_eq!(of_clock(Duration::from_secs(3)).verdict, CheckStatus::Warn);
    }
}
