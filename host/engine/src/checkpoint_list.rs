//! The checkpoints of a tenant's audit: what each covers, and whether it is valid and continues the one before.

use std::time::Duration;

use super::error::Error;
use super::offload::Offload;
use super::permission::permit;
use super::request::Identity;
use wrkflw_audit::keys::{CheckpointKeys, SignatureVerdict};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::merkle;
use wrkflw_store::{Store, checkpoints};

/// How long the verification of a signature may take.
const SIGNATURE: Duration = Duration::from_micros(100);

/// A checkpoint, and the result of its check.
#[derive(Debug, Clone)]
pub struct ListedCheckpoint {
    pub checkpoint: Checkpoint,
    /// The number of leaves that the checkpoint before covers. Those from this number on are new.
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

/// The checkpoints of a tenant's audit.
#[derive(Clone, Copy)]
pub struct Checkpoints<'a> {
    pub(super) store: &'a Store,
    pub(super) offload: &'a Offload,
    pub(super) keys: &'a CheckpointKeys,
}

impl Checkpoints<'_> {
    /// The checkpoints before the number `before`, newest first, at most `limit`, and whether there are more.
    pub async fn list(
        self,
        who: &Identity,
        before: Option<u32>,
        limit: u32,
    ) -> Result<(Vec<ListedCheckpoint>, bool), Error> {
        permit(self.store, who, "audit:read").await?;
        let most = i64::from(limit) + 1;
        // One more than the page has, to check whether the last one of the page continues it.
        let found = checkpoints::list(self.store, who.tenant, before, most).await?;
        let list = || {
            let page = found.iter().take(limit as usize).enumerate();
            let page = page.map(|(place, one)| listed(self.keys, one, found.get(place + 1)));
            page.collect::<Vec<_>>()
        };
        let effort = SIGNATURE * u32::try_from(found.len()).unwrap_or(u32::MAX);
        let page = self.offload.in_place(who.tenant, effort, list).await?;
        Ok((page, found.len() > limit as usize))
    }
}

fn listed(
    keys: &CheckpointKeys,
    checkpoint: &Checkpoint,
    before: Option<&Checkpoint>,
) -> ListedCheckpoint {
    let status = match keys.verdict(checkpoint) {
        SignatureVerdict::UnknownKey => CheckpointStatus::UnknownKey,
        SignatureVerdict::Invalid => CheckpointStatus::Invalid,
        SignatureVerdict::Valid if continues(checkpoint, before) => CheckpointStatus::Valid,
        SignatureVerdict::Valid => CheckpointStatus::OutOfOrder,
    };
    ListedCheckpoint {
        checkpoint: checkpoint.clone(),
        first_leaf: before.map_or(0, |before| before.size),
        status,
    }
}

/// Whether a checkpoint continues the one before, or is the first.
fn continues(checkpoint: &Checkpoint, before: Option<&Checkpoint>) -> bool {
    match before {
        Some(before) => {
            checkpoint.number == before.number + 1
                && checkpoint.size > before.size
                && checkpoint.previous_root == before.root
        }
        None => checkpoint.number == 1 && checkpoint.previous_root == merkle::empty(),
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
