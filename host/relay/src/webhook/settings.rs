//! Where webhooks may be sent, and how often a delivery is attempted.

use std::path::PathBuf;
use std::time::Duration;

use wrkflw_core::subscription::AllowedAddresses;
use wrkflw_runtime::http_client::CertificateError;

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
/// How long one attempt may take, from the name resolution to the status.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub reach: AllowedAddresses,
    /// Certificates to trust besides the public ones, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The pause after each attempt but the last. Each is changed a little at random.
    pub pauses: Vec<Duration>,
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            reach: AllowedAddresses::Public,
            ca_file: None,
            pauses: PAUSES.to_vec(),
            timeout: TIMEOUT,
        }
    }
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("webhook_ca_file {0}")]
    Certificates(#[from] CertificateError),
}
