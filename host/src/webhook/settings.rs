//! Where webhooks may lead, and how often a receiver is tried.

use std::path::PathBuf;
use std::time::Duration;

use crate::domain::subscription::Reach;

/// The pauses between attempts: eight attempts within a day, so that a receiver may be down overnight.
const PAUSES: [Duration; 7] = [
    Duration::from_secs(10),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
    Duration::from_hours(15),
];
/// How long one attempt may take, from the look-up of the name to the status.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What operators and tests set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub reach: Reach,
    /// Certificates to trust besides the public ones, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The pause after each attempt but the last. A little is added or taken away by chance.
    pub pauses: Vec<Duration>,
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            reach: Reach::Public,
            ca_file: None,
            pauses: PAUSES.to_vec(),
            timeout: TIMEOUT,
        }
    }
}

/// A setting that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("webhook_ca_file {}: {detail}", path.display())]
    Certificates { path: PathBuf, detail: String },
    #[error("TLS for webhooks cannot be set up: {0}")]
    Tls(String),
}
