//! Seals: the HMAC over a decision, with named keys. The current key seals new decisions, and all keys verify. Delegations and
//! stored replies are sealed with the same keys ([`delegation`], [`reply`]), and so are tokens of the host itself ([`token`]).

pub mod delegation;
pub mod reply;
pub mod token;

use std::collections::{BTreeMap, HashSet};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use wrkflw_core::ids::{InstanceId, TaskId};
use wrkflw_core::instance::{Decision, Instance};

/// The version of the MAC's content and its order.
pub(crate) const MAC_VERSION: i16 = 1;

/// The keys that seal decisions.
#[derive(Clone)]
pub struct SealKeys {
    current: String,
    keys: BTreeMap<String, Vec<u8>>,
}

/// The HMAC over a decision.
#[derive(Debug, Clone)]
pub struct Seal {
    pub task: TaskId,
    pub key_id: String,
    pub version: i16,
    pub mac: [u8; 32],
}

/// The result of the check of a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealVerdict {
    Valid,
    /// The seal is not one of this content.
    Invalid,
    /// There is no key of this name.
    UnknownKey,
    UnknownVersion,
}

impl SealVerdict {
    /// The verdict on a stored seal of this version. `mac` is the MAC with the key that the seal names, if this key is known.
    fn of(version: i16, mac: Option<[u8; 32]>, stored: &[u8]) -> SealVerdict {
        match mac {
            _ if version != MAC_VERSION => SealVerdict::UnknownVersion,
            None => SealVerdict::UnknownKey,
            Some(mac) if mac == stored => SealVerdict::Valid,
            Some(_) => SealVerdict::Invalid,
        }
    }
}

impl SealKeys {
    /// `current` names the key that new decisions are sealed with.
    pub fn new(current: &str, keys: BTreeMap<String, Vec<u8>>) -> Result<SealKeys, String> {
        match keys.get(current) {
            Some(key) if key.len() >= 16 => Ok(SealKeys {
                current: current.to_owned(),
                keys,
            }),
            Some(_) => Err(format!("the seal key {current} has fewer than 16 bytes")),
            None => Err(format!("there is no seal key {current}")),
        }
    }

    /// Seals every decision that `after` has and `before` has not.
    pub fn seal<'a>(
        &self,
        tenant: &str,
        before: Option<&'a Instance>,
        after: &'a Instance,
    ) -> Vec<Seal> {
        let decided = |instance: &'a Instance| {
            let tasks = instance
                .state_instances()
                .flat_map(|state_instance| &state_instance.tasks);
            tasks.filter(|task| task.decision().is_some())
        };
        let known: HashSet<_> = before
            .into_iter()
            .flat_map(decided)
            .map(|task| task.id)
            .collect();
        decided(after)
            .filter(|task| !known.contains(&task.id))
            .filter_map(|task| {
                let mac = self.mac(&self.current, tenant, after.id, task.id, task.decision()?)?;
                Some(Seal {
                    task: task.id,
                    key_id: self.current.clone(),
                    version: MAC_VERSION,
                    mac,
                })
            })
            .collect()
    }

    /// Checks the stored seal of this decision: its key's name, its version and its MAC.
    pub fn verdict(
        &self,
        (key_id, version, stored): (&str, i16, &[u8]),
        tenant: &str,
        (instance, task): (InstanceId, TaskId),
        decision: &Decision,
    ) -> SealVerdict {
        let mac = self.mac(key_id, tenant, instance, task, decision);
        SealVerdict::of(version, mac, stored)
    }

    /// The MAC of this decision with the named key; none if there is no such key.
    pub fn mac(
        &self,
        key_id: &str,
        tenant: &str,
        instance: InstanceId,
        task: TaskId,
        decision: &Decision,
    ) -> Option<[u8; 32]> {
        let decided_at = decision.decided_at.as_millisecond().to_string();
        let fields = [
            Some("wrkflw decision 1"),
            Some(tenant),
            Some(&instance.to_string()),
            Some(&task.to_string()),
            Some(&decision.outcome),
            Some(&decision.actor),
            decision.on_behalf_of.as_deref(),
            decision.comment.as_deref(),
            Some(decision.input.as_str()),
            Some(&decided_at),
        ];
        self.mac_of(key_id, fields)
    }

    fn mac_of<const N: usize>(&self, key_id: &str, fields: [Option<&str>; N]) -> Option<[u8; 32]> {
        let mac = self.keyed(key_id, fields)?;
        Some(mac.finalize().into_bytes().into())
    }

    /// The state of the MAC of these fields, to be finished or compared.
    fn keyed<const N: usize>(
        &self,
        key_id: &str,
        fields: [Option<&str>; N],
    ) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.keys.get(key_id)?).ok()?;
        for field in fields {
            mac.update(&[u8::from(field.is_some())]);
            mac.update(&(field.map_or(0, str::len) as u64).to_be_bytes());
            mac.update(field.unwrap_or_default().as_bytes());
        }
        Some(mac)
    }
}

impl std::fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "SealKeys {{ current: {:?}, {} keys }}",
            self.current,
            self.keys.len()
        )
    }
}
