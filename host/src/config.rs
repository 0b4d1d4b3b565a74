//! The settings of a host: one struct, whose doc comments are the help, the template and the reference.
//!
//! A setting comes from its flag, else from its variable `WRKFLW_...`, else from the file. `layers` makes
//! clap read all three, so each value is parsed and refused in one place. Here, single values become
//! the typed settings of the modules that use them; nothing is started or contacted.

mod admission;
mod auth;
mod budgets;
mod checkpoint;
mod connections;
mod database;
pub mod layers;
mod nearest;
mod sandbox;
mod seal;
mod secrets;
pub mod template;
mod texts;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::builder::{RangedU64ValueParser, Resettable};
use clap::{Args, FromArgMatches as _, ValueEnum};

use crate::domain::cloudevent::Naming;
use crate::domain::subscription::Reach;
use crate::engine::SealKeys;
use crate::engine::checkpoint::keys::CheckpointKeys;
use crate::outbox::settings::{KafkaSettings, Mode};
use crate::webhook;
pub use admission::AdmissionArgs;
pub use auth::AuthArgs;
pub use budgets::BudgetArgs;
pub use checkpoint::CheckpointArgs;
pub use connections::ConnectionArgs;
pub use database::DatabaseArgs;
pub use sandbox::SandboxArgs;
pub use seal::SealArgs;
pub use secrets::Hidden;

/// What one process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Serves the HTTP API.
    Api,
    /// Carries events from the outbox to Kafka.
    Relay,
    /// Does what is due: deadlines and other work that instances left for later.
    Timers,
    /// Writes notifications and calls webhooks.
    Notifier,
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

/// Everything that operators set.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Settings {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Address and port of the HTTP API, or of the probes and metrics of a host without it. Others than this machine reach it only if this says so
    #[arg(long, env = "WRKFLW_LISTEN", value_name = "ADDRESS", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))]
    pub listen: SocketAddr,
    /// What this process does, separated by commas
    #[arg(
        long,
        env = "WRKFLW_ROLES",
        value_enum,
        value_delimiter = ',',
        default_value = "api,relay,timers,notifier"
    )]
    pub roles: Vec<Role>,
    /// URL under which others reach the API; events name their schemas below it
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
    /// Partitions of the topic, if the relay has to create it
    #[arg(long, env = "WRKFLW_KAFKA_PARTITIONS", default_value_t = 3, value_parser = between::<u16>(1, 10_000))]
    pub kafka_partitions: u16,
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
    /// Before every event type
    #[arg(long, env = "WRKFLW_EVENT_PREFIX", default_value = "dev.wrkflw", value_parser = texts::prefix)]
    pub event_prefix: String,

    /// Whether webhooks may lead into the own network, and there without TLS: anybody who may subscribe reaches what this host reaches
    #[arg(long, env = "WRKFLW_WEBHOOK_ALLOW_PRIVATE", value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = false)]
    pub webhook_allow_private: bool,
    /// File with certificates (PEM) that webhooks trust besides the public ones
    #[arg(long, env = "WRKFLW_WEBHOOK_CA_FILE", value_name = "FILE")]
    pub webhook_ca_file: Option<PathBuf>,

    #[command(flatten)]
    pub connections: ConnectionArgs,

    /// How long a request may go on, in seconds
    #[arg(long, env = "WRKFLW_REQUEST_SECONDS_MAX", default_value_t = 10, value_parser = between::<u64>(1, SECONDS_MAX))]
    pub request_seconds_max: u64,
    #[command(flatten)]
    pub admission: AdmissionArgs,
    /// How long a host that is asked to stop works on and says at /readyz that it is not ready, in seconds: what a load balancer needs to notice
    #[arg(long, env = "WRKFLW_DRAIN_NOTICE_SECONDS", default_value_t = 0, value_parser = between::<u64>(0, SECONDS_MAX))]
    pub drain_notice_seconds: u64,
    /// How long a shutdown waits for requests under way, in seconds
    #[arg(long, env = "WRKFLW_DRAIN_SECONDS_MAX", default_value_t = 20, value_parser = between::<u64>(0, SECONDS_MAX))]
    pub drain_seconds_max: u64,

    /// Which log lines are written: a level, or directives as `wrkflw=debug,sqlx=warn`
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

/// A setting that is missing or cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

/// Settings that no process list and no error message may show. Each is also read from the file that
/// its variable with `_FILE` behind, or its key with `_file` behind, names.
pub const SECRETS: [&str; 6] = [
    "database_url",
    "jwt_secret",
    "seal_keys",
    "checkpoint_keys",
    "artifact_key",
    "kafka_properties",
];

/// A number of seconds that is still a wait, and no mistake for another unit.
const SECONDS_MAX: u64 = 3_600;
const DAY_SECONDS: u64 = 24 * 3_600;

/// A number from `least` to `most`. Every number has both: one that is too small serves nobody, and one that is too large
/// is bounded by the machine, at a worse moment.
fn between<T: TryFrom<u64>>(least: u64, most: u64) -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(least..=most)
}

/// Says how to set what is missing.
fn missing(name: &str, why: &str) -> SettingsError {
    let (flag, variable) = (name.replace('_', "-"), name.to_uppercase());
    SettingsError(format!(
        "{name} is not set: {why}. Set it with --{flag}, WRKFLW_{variable} or `{name}` in the file"
    ))
}

impl Settings {
    /// The defaults, whatever the variables of this process say.
    pub fn defaults() -> Settings {
        let command = Settings::augment_args(clap::Command::new("defaults"))
            .mut_args(|arg| arg.env(Resettable::Reset));
        let matches = command.get_matches_from(["defaults"]);
        Settings::from_arg_matches(&matches).expect("the defaults are valid")
    }

    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    pub fn seals(&self) -> Result<SealKeys, SettingsError> {
        self.seal.keys()
    }

    pub fn checkpoints(&self) -> Result<CheckpointKeys, SettingsError> {
        self.checkpoint.keys()
    }

    pub fn kafka(&self) -> Result<KafkaSettings, SettingsError> {
        let why = "the relay needs Kafka; a process without it runs with `--roles api,timers`";
        Ok(KafkaSettings {
            brokers: self
                .kafka_brokers
                .clone()
                .ok_or_else(|| missing("kafka_brokers", why))?,
            topic: self.kafka_topic.clone(),
            partitions: self.kafka_partitions,
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

    pub fn webhooks(&self) -> webhook::settings::Settings {
        webhook::settings::Settings {
            reach: if self.webhook_allow_private {
                Reach::Private
            } else {
                Reach::Public
            },
            ca_file: self.webhook_ca_file.clone(),
            ..webhook::settings::Settings::default()
        }
    }

    pub fn naming(&self) -> Naming {
        Naming {
            prefix: self.event_prefix.clone(),
            base: self.public_url.trim_end_matches('/').to_owned(),
        }
    }

    pub fn sandbox(&self, program: PathBuf) -> Result<crate::wasm::Settings, SettingsError> {
        self.sandbox.settings(program).map_err(SettingsError)
    }
}
