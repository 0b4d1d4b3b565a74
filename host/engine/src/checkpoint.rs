//! The checkpointer: appends new audit entries to each tenant's Merkle tree and signs its root. Any number of hosts may run one;
//! the database lets one of them sign at a time.
//!
//! No command waits for it. It continues only from a checkpoint with a valid signature of a known key, so it never signs a tree
//! that somebody tampered with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Engine;
use wrkflw_audit::keys::{CheckpointKeys, SignatureVerdict, SigningKey};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::TenantId;
use wrkflw_core::merkle::{self, Range};
use wrkflw_runtime::clock::Clock;
use wrkflw_store::checkpoints::{Last, NewLeaf, Signer, Turn};
use wrkflw_store::{Store, StoreError};

/// The pause between looks for new entries. An entry is in a checkpoint after two looks, unless an earlier transaction is still
/// unfinished.
const EVERY: Duration = Duration::from_secs(2);

/// One host's checkpointer.
pub struct Checkpointer {
    store: Store,
    clock: Clock,
    keys: Arc<CheckpointKeys>,
    key: SigningKey,
    wake: Arc<Notify>,
}

/// The result of a look for new entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// There are no new entries.
    Idle,
    /// Another host is signing.
    Elsewhere,
    /// The number of signed checkpoints, which is 0 while all new entries wait for unfinished transactions. `is_cut`: there are
    /// more entries than one look reads.
    Signed { checkpoints: u32, is_cut: bool },
}

/// Why nothing could be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "checkpoint {number} of tenant {tenant} {detail}; no checkpoint of any tenant is signed until this is resolved: see `wrkflw audit verify --tenant {tenant}`"
    )]
    Meddled {
        tenant: String,
        number: u64,
        detail: &'static str,
    },
}

impl Checkpointer {
    /// The checkpointer of this engine's host. None if the keys can only verify.
    pub fn new(engine: &Engine, keys: Arc<CheckpointKeys>) -> Option<Checkpointer> {
        Some(Checkpointer {
            store: engine.0.store.clone(),
            clock: engine.clock().clone(),
            key: keys.signing()?,
            keys,
            wake: engine.wake(),
        })
    }

    /// Looks for new entries until it is cancelled.
    pub async fn run(self, cancel: CancellationToken) {
        loop {
            let pause = match self.look().await {
                Ok(Look::Signed { is_cut: true, .. }) => Duration::ZERO,
                Ok(_) => EVERY,
                Err(error) => {
                    metrics::counter!("wrkflw_checkpoint_failures_total").increment(1);
                    match error {
                        SignError::Store(error) => {
                            tracing::warn!(%error, "no checkpoint could be signed; the next look tries again");
                        }
                        SignError::Meddled { .. } => tracing::error!("{error}"),
                    }
                    EVERY
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Signs one checkpoint for each tenant with new entries, up to a bounded number of entries.
    pub async fn look(&self) -> Result<Look, SignError> {
        let mut signer = match self.store.turn_to_sign().await? {
            Turn::Idle => return Ok(Look::Idle),
            Turn::Theirs => return Ok(Look::Elsewhere),
            Turn::Ours(signer) => signer,
        };
        let mut leaves: BTreeMap<TenantId, Vec<NewLeaf>> = BTreeMap::new();
        for leaf in signer.unread().await? {
            leaves.entry(leaf.tenant).or_default().push(leaf);
        }
        let (checkpoints, is_cut) = (leaves.len(), signer.is_cut);
        let mut taken = 0;
        for (tenant, leaves) in leaves {
            taken += leaves.len() as u64;
            self.sign(&mut signer, tenant, &leaves).await?;
        }
        signer.commit().await?;
        if checkpoints > 0 {
            self.wake.notify_one();
            metrics::counter!("wrkflw_checkpoints_total").increment(checkpoints as u64);
            metrics::counter!("wrkflw_checkpoint_leaves_total").increment(taken);
        }
        Ok(Look::Signed {
            checkpoints: u32::try_from(checkpoints).unwrap_or(u32::MAX),
            is_cut,
        })
    }

    async fn sign(
        &self,
        signer: &mut Signer,
        tenant: TenantId,
        leaves: &[NewLeaf],
    ) -> Result<(), SignError> {
        let last = signer.last(tenant).await?;
        let mut tree = self.tree(&last)?;
        let first = tree.size();
        for leaf in leaves {
            tree.push(merkle::leaf(&leaf.digest));
        }
        let before = last.checkpoint.as_ref().map(|(checkpoint, _)| checkpoint);
        let mut checkpoint = Checkpoint {
            tenant: last.name.clone(),
            number: before.map_or(0, |before| before.number) + 1,
            size: tree.size(),
            root: tree.root().to_vec(),
            previous_root: before
                .map_or_else(|| merkle::empty().to_vec(), |before| before.root.clone()),
            signed_at: self.clock.now(),
            key_id: self.key.name().to_owned(),
            signature: Vec::new(),
        };
        checkpoint.signature = self.key.sign(&checkpoint.signed());
        signer
            .keep(tenant, (first, leaves), (&checkpoint, &tree.bytes()))
            .await?;
        Ok(())
    }

    /// The tree of the last checkpoint, after a check that it is the one that was signed.
    fn tree(&self, last: &Last) -> Result<Range, SignError> {
        let Some((checkpoint, frontier)) = &last.checkpoint else {
            return Ok(Range::default());
        };
        let meddled = |detail| SignError::Meddled {
            tenant: last.name.clone(),
            number: checkpoint.number,
            detail,
        };
        match self.keys.verdict(checkpoint) {
            SignatureVerdict::Valid => {}
            SignatureVerdict::Invalid => return Err(meddled("does not match its signature")),
            SignatureVerdict::UnknownKey => {
                return Err(meddled(
                    "was signed with a key that this host does not know (keep it in checkpoint_keys, as name:hex or name:public:hex)",
                ));
            }
        }
        let tree = Range::from_bytes(checkpoint.size, frontier);
        tree.filter(|tree| tree.root().as_slice() == checkpoint.root)
            .ok_or_else(|| meddled("has a frontier that does not match its root"))
    }
}
