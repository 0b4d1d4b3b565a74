//! The chain of custody of an entity: its decisions, delegations and returns in the order of time, each with its audit entry and
//! its seal.
//!
//! The content comes from the entry, because the audit chain covers the entry. The row of the decision, or of the
//! delegation's seal, gives only the seal. The seal must fit the entry. The verifier reports rows without an entry.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::instance::Entity;
use wrkflw_core::moment;

/// The approximate size of a page in bytes, payloads and evidence together.
const PAGE_BYTES_MAX: i64 = 8 << 20;

/// Selects a page of decisions and delegations.
#[derive(Debug, Clone)]
pub struct CustodyQuestion {
    pub entity: Entity,
    /// Only those in this instance.
    pub instance: Option<InstanceId>,
    /// Only those in instances of this definition.
    pub definition: Option<String>,
    /// The last one of the page before.
    pub after: Option<CustodyCursor>,
    pub limit: u32,
}

/// The position of a decision or delegation in the chain of custody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustodyCursor {
    pub at: Timestamp,
    pub instance: Uuid,
    pub seq: u64,
}

impl fmt::Display for CustodyCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}.{}",
            self.at.as_microsecond(),
            self.seq,
            self.instance
        )
    }
}

impl FromStr for CustodyCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<CustodyCursor, ()> {
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or(());
        let at = next()?.parse().map_err(|_| ())?;
        let at = Timestamp::from_microsecond(at).map_err(|_| ())?;
        Ok(CustodyCursor {
            at: moment::accepted(at).ok_or(())?,
            seq: next()?
                .parse()
                .ok()
                .filter(|seq| i64::try_from(*seq).is_ok())
                .ok_or(())?,
            instance: next()?.parse().map_err(|_| ())?,
        })
    }
}

/// A decision or delegation as recorded. JSON is the stored text, and readers must not trust it.
#[derive(Debug, Clone)]
pub struct CustodyRow {
    pub instance: InstanceId,
    pub definition_key: String,
    /// The version that the instance has now.
    pub definition_version: u32,
    pub initiator: String,
    pub requesters: Vec<String>,
    pub entry: LinkRow,
    /// The evidence of the entry's command, which is stored with the first entry of the command.
    pub evidence: Option<String>,
    /// None if it has no row.
    pub seal: Option<SealRow>,
}

/// An entry as a link of the audit chain.
#[derive(Debug, Clone)]
pub struct LinkRow {
    pub id: Uuid,
    pub seq: u64,
    pub r#type: String,
    pub revision: u32,
    pub command_id: Uuid,
    pub actor: Option<String>,
    pub task_id: Option<Uuid>,
    pub payload: String,
    pub salt: Vec<u8>,
    pub occurred_at: Timestamp,
    pub event_seq: Option<u64>,
    /// The evidence in the row of the entry: only the first entry of a command has it.
    pub evidence: Option<String>,
    /// None for the first entry, or if the entry before is missing.
    pub previous_hash: Option<Vec<u8>>,
    pub hash: Vec<u8>,
}

/// The seal of a decision or delegation.
#[derive(Debug, Clone)]
pub struct SealRow {
    pub key_id: String,
    pub version: i16,
    pub mac: Vec<u8>,
}

/// A page of decisions and delegations.
#[derive(Debug)]
pub struct CustodyPage {
    pub rows: Vec<CustodyRow>,
    /// Whether more follow.
    pub more: bool,
}

impl CustodyRow {
    pub fn cursor(&self) -> CustodyCursor {
        CustodyCursor {
            at: self.entry.occurred_at,
            instance: self.instance.0,
            seq: self.entry.seq,
        }
    }
}

/// A page of decisions and delegations, oldest first. It may have fewer than the limit although more follow, because it has about
/// [`PAGE_BYTES_MAX`] at most.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    question: &CustodyQuestion,
) -> Result<CustodyPage, StoreError> {
    let after = question.after;
    let rows = sqlx::query_file!(
        "src/custody.sql",
        tenant.0,
        question.entity.kind,
        question.entity.id,
        question.instance.map(|id| id.0),
        question.definition,
        after.map(|after| Time(after.at)) as _,
        after.map(|after| after.instance),
        after.map(|after| after.seq.cast_signed()),
        i64::from(question.limit) + 1,
        PAGE_BYTES_MAX
    )
    .fetch_all(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    let (all, limit) = (
        rows.first().map_or(0, |row| row.all),
        question.limit as usize,
    );
    let rows: Vec<_> =
        rows.into_iter()
            .take(limit)
            .map(|row| CustodyRow {
                instance: InstanceId(row.instance),
                definition_key: row.definition_key,
                definition_version: row.definition_version.cast_unsigned(),
                initiator: row.initiator,
                requesters: row.requesters,
                evidence: row.evidence,
                seal: row.key_id.zip(row.mac_version).zip(row.mac).map(
                    |((key_id, version), mac)| SealRow {
                        key_id,
                        version,
                        mac,
                    },
                ),
                entry: LinkRow {
                    id: row.id,
                    seq: row.seq.cast_unsigned(),
                    r#type: row.r#type,
                    revision: row.revision.cast_unsigned(),
                    command_id: row.command_id,
                    actor: row.actor,
                    task_id: row.task_id,
                    payload: row.payload,
                    evidence: row.own_evidence,
                    salt: row.salt,
                    occurred_at: row.at.0,
                    event_seq: row.event_seq.map(i64::cast_unsigned),
                    previous_hash: row.previous_hash,
                    hash: row.hash,
                },
            })
            .collect();
    let more = usize::try_from(all).is_ok_and(|all| all > rows.len());
    Ok(CustodyPage { rows, more })
}
