//! The chain of custody of decisions and delegations: the content of each audit entry, and whether the seal is valid for it. The
//! seal reveals a change of the parts of the entry that it covers, and of the row with the seal. It does not cover the state's
//! name. The audit chain reveals a change of all of these, and of every other part of an entry.

use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use wrkflw_audit::seal::delegation::{self, Delegation};
use wrkflw_audit::seal::{SealKeys, SealVerdict};
use wrkflw_core::audit::{Head, Stream, StreamKind, sha256};
use wrkflw_core::event::Event;
use wrkflw_core::ids::{InstanceId, TaskId, TenantId, hex};
use wrkflw_core::instance::{Decision, Entity};
use wrkflw_store::custody::{
    self, CustodyCursor, CustodyPage, CustodyQuestion, CustodyRow, LinkRow, SealRow,
};

/// One decision, delegation or return, as its audit entry records it.
#[derive(Debug, Clone)]
pub struct CustodyRecord {
    pub instance_id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    pub entity_type: String,
    pub entity_id: String,
    pub initiator: String,
    pub requesters: Vec<String>,
    pub task_id: Option<Uuid>,
    pub action: CustodyAction,
    pub state: Option<String>,
    pub outcome: Option<String>,
    pub actor: Option<String>,
    pub on_behalf_of: Option<String>,
    pub comment: Option<String>,
    pub previous_owner: Option<String>,
    pub owner: Option<String>,
    pub reason: Option<String>,
    pub occurred_at: Timestamp,
    pub signature: Option<Signature>,
    pub entry: ChainLink,
}

/// The kind of a record of the chain of custody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustodyAction {
    Decide,
    Delegate,
    /// A delegate gave the task back.
    Resolve,
}

/// The HMAC-SHA256 of a decision or delegation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub key_id: String,
    pub mac_version: i16,
    pub mac: String,
    pub status: SealStatus,
}

/// The result of computing the signature again on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealStatus {
    Valid,
    Invalid,
    UnknownKey,
    UnknownVersion,
}

/// An audit entry with everything that its hash covers. Of the evidence, only the digest.
#[derive(Debug, Clone)]
pub struct ChainLink {
    pub seq: u64,
    pub id: Uuid,
    pub r#type: String,
    pub revision: u32,
    pub command_id: Uuid,
    pub actor: Option<String>,
    pub task_id: Option<Uuid>,
    pub occurred_at: Timestamp,
    pub event_seq: Option<u64>,
    pub payload: String,
    pub salt: String,
    pub evidence_digest: Option<String>,
    pub previous_hash: Option<String>,
    pub hash: String,
}

/// The version that produced the evidence.
#[derive(Deserialize)]
struct Evidence {
    definition: String,
    version: u32,
}

/// What auditors ask about instances: the chain of custody, and whether the audit of an instance is intact.
#[derive(Clone, Copy)]
pub struct Audit<'a> {
    pub(super) engine: &'a Engine,
}

impl Audit<'_> {
    /// Reads a page of decisions and delegations, oldest first. Returns what `render` makes of the page and the cursor of the next page.
    /// Checks no permission.
    pub async fn custody<T: Send + 'static>(
        self,
        who: &Identity,
        question: &CustodyQuestion,
        render: impl FnOnce(Vec<CustodyRecord>, Option<CustodyCursor>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let CustodyPage { rows, more } =
            custody::list(&self.engine.0.store, who.tenant, question).await?;
        let (engine, who, entity) = (self.engine.clone(), who.clone(), question.entity.clone());
        // Each row has evidence, which may be as large as the facts that flow logic gets.
        let tenant = who.tenant;
        let rendered = move || {
            let next = rows.last().filter(|_| more).map(CustodyRow::cursor);
            let records = rows
                .into_iter()
                .map(|row| record(engine.seals(), &who, &entity, row));
            render(records.collect(), next)
        };
        self.engine.offload().run(tenant, rendered).await
    }
}

/// Makes the seal again for the content of the entry, and compares it.
fn seal_status(
    seals: &SealKeys,
    tenant: &str,
    instance: InstanceId,
    seal: &SealRow,
    fact: Option<&CustodyFact>,
) -> SealStatus {
    let stored = (seal.key_id.as_str(), seal.version, seal.mac.as_slice());
    let verdict = match fact {
        Some(CustodyFact::Decision(task, decision, _)) => {
            seals.verdict(stored, tenant, (instance, *task), decision)
        }
        Some(CustodyFact::Delegation(delegation)) => {
            delegation::verdict(seals, stored, tenant, instance, delegation)
        }
        None => return SealStatus::Invalid,
    };
    SealStatus::of(verdict)
}

fn record(seals: &SealKeys, who: &Identity, entity: &Entity, row: CustodyRow) -> CustodyRecord {
    let entry = &row.entry;
    let fact = fact(entry);
    let evidence = row
        .evidence
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let (key, version) = match evidence {
        Some(Evidence {
            definition,
            version,
        }) => (definition, version),
        None => (row.definition_key, row.definition_version),
    };
    let signature = row.seal.map(|seal| Signature {
        status: seal_status(seals, &who.tenant_name, row.instance, &seal, fact.as_ref()),
        key_id: seal.key_id,
        mac_version: seal.version,
        mac: hex(&seal.mac),
    });
    let (decision, state, delegation) = match fact {
        Some(CustodyFact::Decision(_, decision, state)) => (Some(decision), Some(state), None),
        Some(CustodyFact::Delegation(delegation)) => (None, None, Some(delegation)),
        None => (None, None, None),
    };
    let (previous_owner, owner, reason) = match delegation {
        Some(Delegation {
            from, to, reason, ..
        }) => (Some(from), Some(to), reason),
        None => (None, None, None),
    };
    CustodyRecord {
        instance_id: row.instance.0,
        definition_key: key,
        definition_version: version,
        entity_type: entity.kind.clone(),
        entity_id: entity.id.clone(),
        initiator: row.initiator,
        requesters: row.requesters,
        task_id: entry.task_id,
        action: CustodyAction::of(&entry.r#type),
        state,
        outcome: decision.as_ref().map(|decision| decision.outcome.clone()),
        actor: entry.actor.clone(),
        on_behalf_of: decision
            .as_ref()
            .and_then(|decision| decision.on_behalf_of.clone()),
        comment: decision.and_then(|decision| decision.comment),
        previous_owner,
        owner,
        reason,
        occurred_at: entry.occurred_at,
        signature,
        entry: ChainLink::of(row.entry, who.tenant, row.instance),
    }
}

/// The content of an entry, if it can be read.
enum CustodyFact {
    /// A decision on a task, in a state.
    Decision(TaskId, Decision, String),
    Delegation(Delegation),
}

impl CustodyAction {
    /// Its name in JSON: that of the command.
    pub fn name(self) -> &'static str {
        match self {
            CustodyAction::Decide => "decide",
            CustodyAction::Delegate => "delegate",
            CustodyAction::Resolve => "resolve",
        }
    }

    /// That of an entry of this type.
    fn of(kind: &str) -> CustodyAction {
        match kind {
            "TASK_DELEGATED" => CustodyAction::Delegate,
            "TASK_RESOLVED" => CustodyAction::Resolve,
            _ => CustodyAction::Decide,
        }
    }
}

impl SealStatus {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SealStatus::Valid => "VALID",
            SealStatus::Invalid => "INVALID",
            SealStatus::UnknownKey => "UNKNOWN_KEY",
            SealStatus::UnknownVersion => "UNKNOWN_VERSION",
        }
    }

    fn of(verdict: SealVerdict) -> SealStatus {
        match verdict {
            SealVerdict::Valid => SealStatus::Valid,
            SealVerdict::Invalid => SealStatus::Invalid,
            SealVerdict::UnknownKey => SealStatus::UnknownKey,
            SealVerdict::UnknownVersion => SealStatus::UnknownVersion,
        }
    }
}

impl ChainLink {
    fn of(row: LinkRow, tenant: TenantId, instance: InstanceId) -> ChainLink {
        let stream = Stream {
            tenant,
            kind: StreamKind::Instance,
            id: instance.0,
        };
        let before = match row.seq {
            1 => Some(Head::genesis(stream).hash.to_vec()),
            _ => row.previous_hash,
        };
        ChainLink {
            seq: row.seq,
            id: row.id,
            r#type: row.r#type,
            revision: row.revision,
            command_id: row.command_id,
            actor: row.actor,
            task_id: row.task_id,
            occurred_at: row.occurred_at,
            event_seq: row.event_seq,
            payload: row.payload,
            evidence_digest: row
                .evidence
                .map(|evidence| hex(&sha256(&[&row.salt, evidence.as_bytes()].concat()))),
            salt: hex(&row.salt),
            previous_hash: before.map(|hash| hex(&hash)),
            hash: hex(&row.hash),
        }
    }
}

/// The content of an entry. None if it cannot be read, or is not about the task that it names.
fn fact(entry: &LinkRow) -> Option<CustodyFact> {
    let fact = content(entry)?;
    let task = match &fact {
        CustodyFact::Decision(task, ..) => *task,
        CustodyFact::Delegation(delegation) => delegation.task,
    };
    (entry.task_id == Some(task.0)).then_some(fact)
}

fn content(entry: &LinkRow) -> Option<CustodyFact> {
    let event: Event = serde_json::from_str(&entry.payload).ok()?;
    let delegation = Delegation::of(&event, entry.actor.as_deref(), entry.occurred_at);
    if let Some(delegation) = delegation {
        return (delegation.kind == entry.r#type).then_some(CustodyFact::Delegation(delegation));
    }
    let Event::DecisionRecorded {
        task,
        state_name,
        outcome,
        on_behalf_of,
        comment,
        input,
        ..
    } = event
    else {
        return None;
    };
    let decision = Decision {
        outcome,
        actor: entry.actor.clone()?,
        on_behalf_of,
        comment,
        input,
        decided_at: entry.occurred_at,
    };
    Some(CustodyFact::Decision(task, decision, state_name))
}
