//! Seals of delegations, and of their return by the delegate. The content is in the audit entry; the row has only the seal.

use jiff::Timestamp;

use super::{MAC_VERSION, SealKeys, SealVerdict};
use wrkflw_core::audit::Entry;
use wrkflw_core::event::Event;
use wrkflw_core::ids::{InstanceId, TaskId};

/// A delegation, or its return, as its entry records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// The type of the entry.
    pub kind: &'static str,
    pub task: TaskId,
    pub actor: String,
    /// The former owner.
    pub from: String,
    /// The new owner.
    pub to: String,
    /// None for a return.
    pub reason: Option<String>,
    pub at: Timestamp,
}

/// The HMAC over a delegation or its return.
#[derive(Debug, Clone)]
pub struct DelegationSeal {
    /// The number of the entry in the stream of its instance.
    pub seq: u64,
    pub key_id: String,
    pub version: i16,
    pub mac: [u8; 32],
}

impl Delegation {
    /// The delegation or return that an entry records; none for any other event.
    pub fn of(event: &Event, actor: Option<&str>, at: Timestamp) -> Option<Delegation> {
        let (task, from, to, reason) = event.delegation()?;
        Some(Delegation {
            kind: event.kind(),
            task,
            actor: actor.unwrap_or_default().to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            reason: reason.map(str::to_owned),
            at,
        })
    }
}

/// Seals the delegations and returns among these events of an instance, each with its entry.
pub fn seal<'a>(
    keys: &SealKeys,
    tenant: &str,
    instance: InstanceId,
    recorded: impl Iterator<Item = (&'a Event, &'a Entry)>,
) -> Vec<DelegationSeal> {
    let seals = recorded.filter_map(|(event, entry)| {
        let draft = &entry.draft;
        let delegation = Delegation::of(event, draft.actor.as_deref(), draft.at)?;
        Some(DelegationSeal {
            seq: entry.seq,
            key_id: keys.current.clone(),
            version: MAC_VERSION,
            mac: mac(keys, &keys.current, tenant, instance, &delegation)?,
        })
    });
    seals.collect()
}

/// Checks the stored seal of a delegation or return: its key's name, its version and its MAC.
pub fn verdict(
    keys: &SealKeys,
    (key_id, version, stored): (&str, i16, &[u8]),
    tenant: &str,
    instance: InstanceId,
    delegation: &Delegation,
) -> SealVerdict {
    let mac = mac(keys, key_id, tenant, instance, delegation);
    SealVerdict::of(version, mac, stored)
}

/// The MAC of a delegation or return with the named key; none if there is no such key.
pub(crate) fn mac(
    keys: &SealKeys,
    key_id: &str,
    tenant: &str,
    instance: InstanceId,
    delegation: &Delegation,
) -> Option<[u8; 32]> {
    let at = delegation.at.as_millisecond().to_string();
    let fields = [
        Some("wrkflw delegation 1"),
        Some(tenant),
        Some(&instance.to_string()),
        Some(&delegation.task.to_string()),
        Some(delegation.kind),
        Some(&delegation.actor),
        Some(&delegation.from),
        Some(&delegation.to),
        delegation.reason.as_deref(),
        Some(&at),
    ];
    keys.mac_of(key_id, fields)
}
