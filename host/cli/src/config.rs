//! The settings of a host: one struct, whose doc comments are the help, the settings template and the reference.
//!
//! A setting comes from its flag, else from its variable `WRKFLW_...`, else from the file. `layers` makes clap read all three, so
//! each value is parsed and refused in one place. This module converts single values to the typed settings of the modules that
//! use them. It starts nothing and makes no connection.

mod auth;
mod budgets;
mod checkpoint;
mod connections;
mod database;
pub mod layers;
mod nearest;
mod sandbox;
mod seal;
pub(crate) mod secrets;
mod services;
pub mod template;
mod texts;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::builder::{RangedU64ValueParser, Resettable};
use clap::{Args, FromArgMatches as _, ValueEnum};

pub use auth::AuthArgs;
pub use budgets::BudgetArgs;
pub use checkpoint::CheckpointArgs;
pub use connections::ConnectionArgs;
pub use database::DatabaseArgs;
pub use sandbox::SandboxArgs;
pub use seal::SealArgs;
pub use secrets::Hidden;
pub use services::ServiceArgs;
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::seal::SealKeys;
use wrkflw_core::checkpoint::topic_beside;
use wrkflw_core::cloudevent::Naming;
use wrkflw_core::subscription::AllowedAddresses;
use wrkflw_engine::services::Services;
use wrkflw_relay::outbox::settings::{KafkaSettings, Mode};
use wrkflw_relay::webhook;
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::http_client::HttpClient;
use wrkflw_runtime::telemetry::LogSettings;
use wrkflw_server::http::admission::IN_FLIGHT_MAX;
use wrkflw_server::http::auth::Authenticator;
use wrkflw_store::PoolSizes;

/// A role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Serves the HTTP API.
    Api,
    /// Sends events from the outbox to Kafka.
    Relay,
    /// Runs background jobs: deadlines and other work of instances.
    Timers,
    /// Makes notifications and calls webhooks.
    Notifier,
}

impl Role {
    /// As settings and the list of hosts name it.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// How an event becomes a Kafka record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KafkaMode {
    /// Attributes as headers, data as value.
    Binary,
    /// One JSON document as value.
    Structured,
}

/// All settings of operators.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Settings {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Address and port of the HTTP API, or of the probes and metrics of a host without it. By default only this machine can connect
    #[arg(long, env = "WRKFLW_LISTEN", value_name = "ADDRESS", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))]
    pub listen: SocketAddr,
    /// The roles of this process, separated by commas
    #[arg(
        long,
        env = "WRKFLW_ROLES",
        value_enum,
        value_delimiter = ',',
        default_value = "api,relay,timers,notifier"
    )]
    pub roles: Vec<Role>,
    /// URL under which other systems reach the API; events link to their schemas below it
    #[arg(
        long,
        env = "WRKFLW_PUBLIC_URL",
        value_name = "URL",
        default_value = "http://localhost:8080",
        value_parser = texts::web_url
    )]
    pub public_url: String,

    #[command(flatten)]
    pub auth: AuthArgs,
    #[command(flatten)]
    pub seal: SealArgs,
    #[command(flatten)]
    pub checkpoint: CheckpointArgs,

    /// Kafka brokers, `host:port` and separated by commas
    #[arg(long, env = "WRKFLW_KAFKA_BROKERS", value_name = "HOSTS", value_parser = texts::present)]
    pub kafka_brokers: Option<String>,
    /// The topic of all events
    #[arg(long, env = "WRKFLW_KAFKA_TOPIC", default_value = "wrkflw.events", value_parser = texts::topic)]
    pub kafka_topic: String,
    /// The topic of audit checkpoints. Default: that of events with `.checkpoints` behind
    #[arg(long, env = "WRKFLW_KAFKA_CHECKPOINT_TOPIC", value_name = "KAFKA_CHECKPOINT_TOPIC", value_parser = texts::topic)]
    pub kafka_checkpoint_topic: Option<String>,
    /// How an event becomes a record
    #[arg(long, env = "WRKFLW_KAFKA_MODE", value_enum, default_value_t = KafkaMode::Binary)]
    pub kafka_mode: KafkaMode,
    /// Further librdkafka properties, `name=value` and separated by commas. A secret: may hold a password
    #[arg(
        long,
        env = "WRKFLW_KAFKA_PROPERTIES",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub kafka_properties: Vec<Hidden>,
    /// Prefix of every event type
    #[arg(long, env = "WRKFLW_EVENT_PREFIX", default_value = "dev.wrkflw", value_parser = texts::prefix)]
    pub event_prefix: String,

    /// Allow webhooks to private networks, there also without TLS. Everybody who may subscribe can then reach every address that this host can reach
    #[arg(long, env = "WRKFLW_WEBHOOK_ALLOW_PRIVATE", value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = false)]
    pub webhook_allow_private: bool,
    /// File with certificates (PEM) that webhooks and calls of services trust besides the public ones
    #[arg(long, env = "WRKFLW_WEBHOOK_CA_FILE", value_name = "FILE")]
    pub webhook_ca_file: Option<PathBuf>,

    #[command(flatten)]
    pub services: ServiceArgs,

    #[command(flatten)]
    pub connections: ConnectionArgs,

    /// Timeout of a request, in seconds. A shutdown waits twice as long for requests in flight
    #[arg(long, env = "WRKFLW_REQUEST_SECONDS_MAX", default_value_t = 10, value_parser = between::<u64>(1, SECONDS_MAX))]
    pub request_seconds_max: u64,
    /// Maximum number of requests in flight. Four times as many may wait; further ones are refused at once, with 503 and Retry-After. For each 16, the host opens a database connection: 5 at least, 64 at most
    #[arg(long, env = "WRKFLW_REQUESTS_IN_FLIGHT_MAX", default_value_t = IN_FLIGHT_MAX, value_parser = between::<usize>(1, 100_000))]
    pub requests_in_flight_max: usize,
    /// For how many seconds a stopping host still serves requests while /readyz reports that it is not ready. A load balancer needs this time to notice
    #[arg(long, env = "WRKFLW_DRAIN_NOTICE_SECONDS", default_value_t = 0, value_parser = between::<u64>(0, SECONDS_MAX))]
    pub drain_notice_seconds: u64,

    /// Which log lines are written: a level, or directives such as `wrkflw=debug,sqlx=warn`
    #[arg(long, env = "WRKFLW_LOG", default_value = "info")]
    pub log: String,
    /// How log lines are written
    #[arg(long, env = "WRKFLW_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    #[command(flatten)]
    pub sandbox: SandboxArgs,

    #[command(flatten)]
    pub budgets: BudgetArgs,
}

/// A setting that is missing or invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

/// Settings that no process list and no error message may show. Each can also be read from a file. The variable with the suffix
/// `_FILE`, or the key with the suffix `_file`, names that file.
pub const SECRETS: [&str; 9] = [
    "database_url",
    "jwt_secret",
    "oidc_client_secret",
    "seal_keys",
    "checkpoint_keys",
    "artifact_key",
    "kafka_properties",
    "service_tokens",
    "service_keys",
];

/// The longest timeout in seconds. A larger number is probably in another unit.
const SECONDS_MAX: u64 = 3_600;

/// A number from `least` to `most`. Every number has both limits: a number that is too small is useless, and one that is too
/// large would exhaust the machine later.
fn between<T: TryFrom<u64>>(least: u64, most: u64) -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(least..=most)
}

/// The error for a missing setting. It says how to set it.
fn missing(name: &str, why: &str) -> SettingsError {
    let (flag, variable) = (name.replace('_', "-"), name.to_uppercase());
    SettingsError(format!(
        "{name} is not set: {why}. Set it with --{flag}, WRKFLW_{variable} or `{name}` in the file"
    ))
}

/// The error for missing brokers. A process without the relay keeps all other roles.
fn no_brokers() -> SettingsError {
    let roles = Settings::defaults().roles.into_iter();
    let others: Vec<String> = roles
        .filter(|role| *role != Role::Relay)
        .map(Role::name)
        .collect();
    let why = format!(
        "the relay needs Kafka; a process without it runs with `--roles {}`",
        others.join(",")
    );
    missing("kafka_brokers", &why)
}

impl Settings {
    /// The defaults. Ignores environment variables.
    pub fn defaults() -> Settings {
        let command = Settings::augment_args(clap::Command::new("defaults"))
            .mut_args(|arg| arg.env(Resettable::Reset));
        let matches = command.get_matches_from(["defaults"]);
        Settings::from_arg_matches(&matches).expect("the defaults are valid")
    }

    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Whether a role of this process executes commands.
    pub fn executes(&self) -> bool {
        self.has(Role::Api) || self.has(Role::Timers)
    }

    /// The checks of the settings that the roles need, each by its name. They make no connection.
    pub fn checks(&self) -> Vec<(&'static str, Result<(), SettingsError>)> {
        let log = LogSettings {
            filter: self.log.clone(),
            ..LogSettings::default()
        };
        let mut checks = vec![
            ("log", log.check().map_err(SettingsError)),
            ("database", self.database.url().map(drop)),
            ("sign-in", self.auth.provider(&self.public_url).map(drop)),
        ];
        if self.executes() {
            // The path of the program is known later, and is no setting.
            let sandbox = self.sandbox(PathBuf::new());
            let sandbox = sandbox.and_then(|sandbox| sandbox.check().map_err(SettingsError));
            checks.extend([
                ("seal keys", self.seals().map(drop)),
                ("checkpoint keys", self.checkpoints().map(drop)),
                ("services", self.services().map(drop)),
                ("sandbox", sandbox),
            ]);
        } else if self.has(Role::Notifier) {
            // Services have the same client.
            checks.push(("webhooks", self.client().map(drop)));
        }
        if self.has(Role::Api) {
            let tokens = Authenticator::new(self.auth.settings(), Clock::System);
            checks.push(("tokens", tokens.map(drop).map_err(SettingsError)));
        }
        if self.has(Role::Relay) {
            let checked = |kafka: KafkaSettings| {
                kafka
                    .checked()
                    .map_err(|error| SettingsError(error.to_string()))
            };
            checks.push(("kafka", self.kafka().and_then(checked)));
        }
        checks
    }

    /// Runs all checks. The error names every missing or invalid setting, so that operators can fix all at once.
    pub fn check(&self) -> Result<(), SettingsError> {
        let checks = self.checks().into_iter();
        let wrong: Vec<String> = checks
            .filter_map(|(_, checked)| Some(checked.err()?.0))
            .collect();
        match &wrong[..] {
            [] => Ok(()),
            [one] => Err(SettingsError(one.clone())),
            several => Err(SettingsError(format!(
                "{} settings are missing or wrong:\n- {}",
                several.len(),
                several.join("\n- ")
            ))),
        }
    }

    pub fn seals(&self) -> Result<SealKeys, SettingsError> {
        self.seal.keys()
    }

    pub fn checkpoints(&self) -> Result<CheckpointKeys, SettingsError> {
        self.checkpoint.keys()
    }

    pub fn kafka(&self) -> Result<KafkaSettings, SettingsError> {
        Ok(KafkaSettings {
            brokers: self.kafka_brokers.clone().ok_or_else(no_brokers)?,
            topic: self.kafka_topic.clone(),
            checkpoint_topic: self.checkpoint_topic(),
            mode: match self.kafka_mode {
                KafkaMode::Binary => Mode::Binary,
                KafkaMode::Structured => Mode::Structured,
            },
            properties: self
                .kafka_properties
                .iter()
                .map(|text| secrets::property(text.reveal()))
                .collect::<Result<_, _>>()
                .map_err(SettingsError)?,
        })
    }

    /// The topic of audit checkpoints.
    pub fn checkpoint_topic(&self) -> String {
        let own = self.kafka_checkpoint_topic.clone();
        own.unwrap_or_else(|| topic_beside(&self.kafka_topic))
    }

    pub fn webhooks(&self) -> webhook::settings::Settings {
        webhook::settings::Settings {
            reach: if self.webhook_allow_private {
                AllowedAddresses::Private
            } else {
                AllowedAddresses::Public
            },
            ca_file: self.webhook_ca_file.clone(),
            ..webhook::settings::Settings::default()
        }
    }

    /// The services that flows may call.
    pub fn services(&self) -> Result<Services, SettingsError> {
        self.services.services(self.client()?)
    }

    /// The client of services.
    fn client(&self) -> Result<HttpClient, SettingsError> {
        let Some(path) = &self.webhook_ca_file else {
            return Ok(HttpClient::new());
        };
        let client = HttpClient::trusting(path);
        client.map_err(|error| SettingsError(format!("webhook_ca_file {error}")))
    }

    pub fn naming(&self) -> Naming {
        Naming {
            prefix: self.event_prefix.clone(),
            base: self.public_url.trim_end_matches('/').to_owned(),
        }
    }

    /// The sizes of the pools of database connections.
    pub fn pools(&self) -> PoolSizes {
        PoolSizes::serving(self.requests_in_flight_max)
    }

    pub fn sandbox(&self, program: PathBuf) -> Result<wrkflw_sandbox::Settings, SettingsError> {
        self.sandbox.settings(program).map_err(SettingsError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors of these settings for a host with one role.
    fn wrong(role: Role, change: impl Fn(&mut Settings)) -> String {
        let mut settings = Settings::defaults();
        settings.roles = vec![role];
        change(&mut settings);
        settings.check().expect_err("it has no database").0
    }

    #[test]
    fn what_a_role_uses_is_checked_before_it_starts() {
        let keys = |settings: &mut Settings| {
            settings.checkpoint.checkpoint_keys = vec!["k1".to_owned().into()];
        };
        let folder = |settings: &mut Settings| settings.sandbox.artifact_dir = Some("/tmp".into());
        let file = |settings: &mut Settings| settings.webhook_ca_file = Some("/no/such.pem".into());
        for (role, executes, calls) in [
            (Role::Api, true, true),
            (Role::Timers, true, true),
            (Role::Notifier, false, true),
            (Role::Relay, false, false),
        ] {
            let message = wrong(role, keys);
            assert_eq!(message.contains("checkpoint_keys:"), executes, "{message}");
            let message = wrong(role, folder);
            assert_eq!(
                message.contains("needs artifact_key"),
                executes,
                "{message}"
            );
            let message = wrong(role, file);
            let count = message.matches("webhook_ca_file /no/such.pem").count();
            assert_eq!(count, usize::from(calls), "{message}");
        }
    }

    #[test]
    fn a_process_without_brokers_keeps_all_roles_but_the_relay() {
        let error = Settings::defaults().kafka().expect_err("none is set");
        let roles = "`--roles api,timers,notifier`";
        assert!(error.0.contains(roles), "{error}");
    }
}
