//! The database, and what is made in it.

use clap::Args;

use super::secrets::Hidden;
use super::texts::present;
use super::{SettingsError, between, missing};
use crate::engine::WriterBounds;
use crate::store::PoolSizes;

/// Where the database is.
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
    /// Tenants that are made, with the default roles, when they are missing
    #[arg(
        long,
        env = "WRKFLW_TENANTS",
        value_delimiter = ',',
        default_value = "default",
        value_parser = present
    )]
    pub tenants: Vec<String>,
    /// Database connections for commands
    #[arg(long, env = "WRKFLW_WRITER_CONNECTIONS", default_value_t = PoolSizes::default().writer, value_parser = between::<u32>(1, 1_000))]
    pub writer_connections: u32,
    /// Batches of commits under way at a time. More of them are smaller and cost the database more
    #[arg(long, env = "WRKFLW_COMMIT_WORKERS", default_value_t = WriterBounds::default().workers, value_parser = between::<usize>(1, 1_000))]
    pub commit_workers: usize,
    /// Commands that may wait for a batch; the next is answered with 503
    #[arg(long, env = "WRKFLW_COMMITS_WAITING_MAX", default_value_t = WriterBounds::default().waiting, value_parser = between::<usize>(1, 1_000_000))]
    pub commits_waiting_max: usize,
    /// Database connections for queries
    #[arg(long, env = "WRKFLW_READER_CONNECTIONS", default_value_t = PoolSizes::default().reader, value_parser = between::<u32>(1, 1_000))]
    pub reader_connections: u32,
}

impl DatabaseArgs {
    pub fn url(&self) -> Result<&str, SettingsError> {
        self.database_url
            .as_ref()
            .map(Hidden::reveal)
            .ok_or_else(|| missing("database_url", "the host keeps everything in PostgreSQL"))
    }

    pub fn writer(&self) -> WriterBounds {
        WriterBounds {
            workers: self.commit_workers,
            waiting: self.commits_waiting_max,
            ..WriterBounds::default()
        }
    }

    pub fn pools(&self) -> PoolSizes {
        PoolSizes {
            writer: self.writer_connections,
            reader: self.reader_connections,
            ..PoolSizes::default()
        }
    }
}
