//! The database, and the tenants that are created in it.

use clap::Args;

use super::secrets::Hidden;
use super::texts::tenant;
use super::{SettingsError, missing};

/// The database and its tenants.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct DatabaseArgs {
    /// URL of the PostgreSQL database. A secret: can be read from the file that `WRKFLW_DATABASE_URL_FILE` names
    #[arg(
        long,
        env = "WRKFLW_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub database_url: Option<Hidden>,
    /// Tenants. Missing ones are created with the default roles
    #[arg(
        long,
        env = "WRKFLW_TENANTS",
        value_delimiter = ',',
        default_value = "default",
        value_parser = tenant
    )]
    pub tenants: Vec<String>,
}

impl DatabaseArgs {
    pub fn url(&self) -> Result<&str, SettingsError> {
        self.database_url
            .as_ref()
            .map(Hidden::reveal)
            .ok_or_else(|| missing("database_url", "the host keeps everything in PostgreSQL"))
    }
}
