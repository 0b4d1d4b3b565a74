//! The facts about a PostgreSQL server, before any migration.

use jiff::Timestamp;
use sqlx::{Connection as _, PgConnection};

use crate::StoreError;
use crate::pools::options;
use crate::time::Time;

/// The oldest supported version of PostgreSQL.
pub const OLDEST: i32 = 15;

/// A server that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    pub version: String,
    /// The major version.
    pub major: i32,
    /// Its clock.
    pub at: Timestamp,
}

/// Asks the server of this URL. Needs no migration.
pub async fn facts(url: &str) -> Result<ServerFacts, StoreError> {
    let mut connection = PgConnection::connect_with(&options(url)?).await?;
    let row = sqlx::query!(
        r#"select current_setting('server_version') as "version!",
            current_setting('server_version_num')::int / 10000 as "major!", clock_timestamp() as "at!: Time""#
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    Ok(ServerFacts {
        version: row.version,
        major: row.major,
        at: row.at.0,
    })
}
