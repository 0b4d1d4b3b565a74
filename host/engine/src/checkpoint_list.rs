//! The checkpoints of the tenant's audit: what each covers, and whether its signature holds.

use std::time::Duration;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use wrkflw_audit::keys::SignatureVerdict;
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::merkle;

/// How long the verification of a signature may take.
const SIGNATURE: Duration = Duration::from_micros(100);

/// A checkpoint, and the result of its check.
#[derive(Debug, Clone)]
pub struct ListedCheckpoint {
    pub checkpoint: Checkpoint,
    /// The number of leaves that the checkpoint before covers; those from here on are new.
    pub first_leaf: u64,
    pub status: CheckpointStatus,
}

/// The result of checking a checkpoint by itself and against the one before. The check does not compute the tree again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointStatus {
    /// The signature is valid, and it continues the checkpoint before.
    Valid,
    /// The signature does not match the checkpoint.
    Invalid,
    /// The host does not know the key.
    UnknownKey,
    /// It does not continue the checkpoint before.
    OutOfOrder,
}

impl Engine {
    /// The checkpoints before the number `before`, newest first, at most `limit`, and whether there are more.
    pub async fn checkpoints(
        &self,
        who: &Identity,
        before: Option<u32>,
        limit: u32,
    ) -> Result<(Vec<ListedCheckpoint>, bool), Error> {
        self.permit(who, "audit:read").await?;
        let most = i64::from(limit) + 1;
        // One more than asked for, to check whether the last one continues it.
        let found = self.reader().checkpoints(who.tenant, before, most).await?;
        let list = || {
            let listed = found.iter().take(limit as usize).enumerate();
            let listed = listed.map(|(place, one)| self.listed(one, found.get(place + 1)));
            listed.collect::<Vec<_>>()
        };
        let effort = SIGNATURE * u32::try_from(found.len()).unwrap_or(u32::MAX);
        let listed = self.offload().in_place(who.tenant, effort, list).await?;
        Ok((listed, found.len() > limit as usize))
    }

    fn listed(&self, one: &Checkpoint, before: Option<&Checkpoint>) -> ListedCheckpoint {
        let status = match self.0.checkpoint_keys.verdict(one) {
            SignatureVerdict::UnknownKey => CheckpointStatus::UnknownKey,
            SignatureVerdict::Invalid => CheckpointStatus::Invalid,
            SignatureVerdict::Valid if continues(one, before) => CheckpointStatus::Valid,
            SignatureVerdict::Valid => CheckpointStatus::OutOfOrder,
        };
        ListedCheckpoint {
            checkpoint: one.clone(),
            first_leaf: before.map_or(0, |before| before.size),
            status,
        }
    }
}

/// Whether a checkpoint continues the one before, or is the first.
fn continues(one: &Checkpoint, before: Option<&Checkpoint>) -> bool {
    match before {
        Some(before) => {
            one.number == before.number + 1
                && one.size > before.size
                && one.previous_root == before.root
        }
        None => one.number == 1 && one.previous_root == merkle::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(number: u64, size: u64, previous_root: &[u8], root: &[u8]) -> Checkpoint {
        Checkpoint {
            tenant: "acme".to_owned(),
            number,
            size,
            root: root.to_vec(),
            previous_root: previous_root.to_vec(),
            signed_at: jiff::Timestamp::UNIX_EPOCH,
            key_id: "k".to_owned(),
            signature: Vec::new(),
        }
    }

    #[test]
    fn a_checkpoint_continues_the_one_before_by_number_size_and_root() {
        let first = checkpoint(1, 3, &merkle::empty(), b"one");
        assert!(continues(&first, None));
        assert!(!continues(&checkpoint(1, 3, b"other", b"one"), None));
        assert!(!continues(
            &checkpoint(2, 3, &merkle::empty(), b"one"),
            None
        ));
        assert!(continues(&checkpoint(2, 5, b"one", b"two"), Some(&first)));
        for wrong in [
            checkpoint(3, 5, b"one", b"two"),
            checkpoint(2, 2, b"one", b"two"),
            checkpoint(2, 3, b"one", b"two"),
            checkpoint(2, 5, b"other", b"two"),
        ] {
            assert!(!continues(&wrong, Some(&first)), "{wrong:?}");
        }
    }
}
