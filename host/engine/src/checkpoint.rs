//! The checkpointer: appends new audit entries to each tenant's Merkle tree and signs its root. Any number of hosts may run one;
//! the database lets one of them sign at a time.
//!
//! No command waits for it. It continues only from a checkpoint with a valid signature of a known key, so it never signs a tree
//! that somebody tampered with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Engine;
use wrkflw_audit::keys::{CheckpointKeys, SignatureVerdict, SigningKey};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::TenantId;
use wrkflw_core::merkle::{self, Range};
use wrkflw_runtime::clock::Clock;
use wrkflw_store::checkpoints::{self, Last, NewLeaf, POSITIONS_MAX, Signer, Turn};
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
    /// Whether a checkpoint was signed with a key that this host knows.
    has_known: AtomicBool,
}

/// The result of a look for new entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// There are no new entries.
    Idle,
    /// Another host is signing.
    Elsewhere,
    /// The number of signed checkpoints. It is 0 while all new entries wait for unfinished transactions. `is_cut`: there are more
    /// entries than one look reads. `held`: the tenants whose entries wait, because their last checkpoint is not the one that was
    /// signed, or was not until now, or because this host does not know its key.
    Signed {
        checkpoints: u32,
        held: usize,
        is_cut: bool,
    },
}

/// Why no checkpoint could be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This host has known the key of no checkpoint so far.
    #[error(transparent)]
    UnknownKey(UnknownKey),
}

/// Why this host does not continue the tree of a tenant. Another host may.
#[derive(Debug, thiserror::Error)]
#[error(
    "checkpoint {number} of tenant {tenant} names a key that this host does not know (keep it in checkpoint_keys, as name:hex or name:public:hex); this host signs no checkpoint of this tenant until then. If no host had the key, see `wrkflw audit verify --tenant {tenant}`"
)]
pub struct UnknownKey {
    tenant: String,
    number: u64,
}

/// Why the tree of a tenant is not continued: its last checkpoint is not the one that was signed.
#[derive(Debug, thiserror::Error)]
#[error(
    "checkpoint {number} of tenant {tenant} {detail}; no checkpoint of this tenant is signed until it is restored: see `wrkflw audit verify --tenant {tenant}`"
)]
struct Meddled {
    tenant: String,
    number: u64,
    detail: &'static str,
}

/// Why a tenant is held back.
#[derive(Debug, thiserror::Error)]
enum HoldReason {
    #[error(transparent)]
    Meddled(#[from] Meddled),
    #[error(transparent)]
    UnknownKey(#[from] UnknownKey),
}

/// The end of a tenant's tree, which was checked.
struct End {
    last: Last,
    tree: Range,
}

/// The results of a look so far.
#[derive(Default)]
struct Done {
    checkpoints: u32,
    leaves: u64,
    /// Tenants whose entries of this look wait.
    held: BTreeSet<TenantId>,
    /// Whether one of the held tenants may go on right after this look.
    is_behind: bool,
    /// The first checkpoint of an unknown key.
    unknown: Option<UnknownKey>,
}

impl Done {
    /// Reports why a tenant is held back.
    fn hold(&mut self, tenant: TenantId, why: HoldReason) {
        metrics::counter!("wrkflw_checkpoint_failures_total").increment(1);
        tracing::error!("{why}");
        self.held.insert(tenant);
        if let HoldReason::UnknownKey(unknown) = why {
            self.unknown.get_or_insert(unknown);
        }
    }
}

impl Checkpointer {
    /// The checkpointer of a host, on the store of its engine. None if the keys can only verify.
    pub fn new(engine: &Engine, keys: Arc<CheckpointKeys>) -> Option<Checkpointer> {
        Some(Checkpointer {
            store: engine.0.store.clone(),
            clock: engine.clock().clone(),
            key: keys.signing()?,
            keys,
            wake: engine.wake(),
            has_known: AtomicBool::new(false),
        })
    }

    /// Looks for new entries until it is cancelled.
    pub async fn run(self, cancel: CancellationToken) {
        loop {
            let pause = match self.look().await {
                Ok(Look::Signed { is_cut: true, .. }) => Duration::ZERO,
                // The look has reported the unknown key.
                Ok(_) | Err(SignError::UnknownKey(_)) => EVERY,
                Err(SignError::Store(error)) => {
                    metrics::counter!("wrkflw_checkpoint_failures_total").increment(1);
                    tracing::warn!(%error, "no checkpoint could be signed; the next look tries again");
                    EVERY
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Signs one checkpoint for each tenant with new entries, up to a bounded number of entries. Fails if this host finds an unknown
    /// key and has known none so far: then all its keys may belong to another installation. It stores the other tenants' checkpoints
    /// first, so that no tenant waits for the key of another one.
    pub async fn look(&self) -> Result<Look, SignError> {
        let mut signer = match checkpoints::turn_to_sign(&self.store).await? {
            Turn::Idle => return Ok(Look::Idle),
            Turn::Theirs => return Ok(Look::Elsewhere),
            Turn::Ours(signer) => signer,
        };
        let mut done = Done::default();
        self.go_on(&mut signer, &mut done).await?;
        let mut leaves: BTreeMap<TenantId, Vec<NewLeaf>> = BTreeMap::new();
        let (from, to) = (signer.from, signer.to);
        for leaf in signer.entries(from, to).await? {
            if !done.held.contains(&leaf.tenant) {
                leaves.entry(leaf.tenant).or_default().push(leaf);
            }
        }
        for (tenant, leaves) in leaves {
            let result = match self.end(&mut signer, tenant).await? {
                Ok(end) => {
                    self.sign(&mut signer, (tenant, end), &leaves, &mut done)
                        .await?
                }
                Err(why) => Err(why),
            };
            if let Err(why) = result {
                signer.hold(tenant, Some(from)).await?;
                done.hold(tenant, why);
            }
        }
        let is_cut = signer.is_cut || done.is_behind;
        signer.commit().await?;
        let checkpoints = done.checkpoints;
        if checkpoints > 0 {
            self.wake.notify_one();
            metrics::counter!("wrkflw_checkpoints_total").increment(checkpoints.into());
            metrics::counter!("wrkflw_checkpoint_leaves_total").increment(done.leaves);
        }
        if let Some(unknown) = done.unknown
            && !self.has_known.load(Ordering::Relaxed)
        {
            return Err(SignError::UnknownKey(unknown));
        }
        Ok(Look::Signed {
            checkpoints,
            held: done.held.len(),
            is_cut,
        })
    }

    /// Signs for a tenant that was held back and whose last checkpoint is in order again. A look signs a part of the waiting
    /// entries of one tenant.
    async fn go_on(&self, signer: &mut Signer, done: &mut Done) -> Result<(), SignError> {
        let mut has_read = false;
        for (tenant, pos) in signer.held().await? {
            if has_read {
                done.held.insert(tenant);
                done.is_behind = true;
                continue;
            }
            let end = match self.end(signer, tenant).await? {
                Ok(end) => end,
                Err(why) => {
                    done.hold(tenant, why);
                    continue;
                }
            };
            has_read = true;
            let to = signer.from.min(pos + POSITIONS_MAX);
            let mut leaves = signer.entries(pos, to).await?;
            leaves.retain(|leaf| leaf.tenant == tenant);
            if !leaves.is_empty()
                && let Err(why) = self.sign(signer, (tenant, end), &leaves, done).await?
            {
                done.hold(tenant, why);
                continue;
            }
            if to == signer.from {
                signer.hold(tenant, None).await?;
                continue;
            }
            signer.hold(tenant, Some(to)).await?;
            done.held.insert(tenant);
            done.is_behind = true;
        }
        Ok(())
    }

    async fn sign(
        &self,
        signer: &mut Signer,
        (tenant, End { last, mut tree }): (TenantId, End),
        leaves: &[NewLeaf],
        done: &mut Done,
    ) -> Result<Result<(), HoldReason>, SignError> {
        let first = tree.size();
        for leaf in leaves {
            tree.push(merkle::leaf(&leaf.digest));
        }
        let before = last.checkpoint.as_ref().map(|(checkpoint, _)| checkpoint);
        let mut checkpoint = Checkpoint {
            tenant: last.name.clone(),
            number: before.map_or(0, |before| before.number).saturating_add(1),
            size: tree.size(),
            root: tree.root().to_vec(),
            previous_root: before
                .map_or_else(|| merkle::empty().to_vec(), |before| before.root.clone()),
            signed_at: self.clock.now(),
            key_id: self.key.name().to_owned(),
            signature: Vec::new(),
        };
        checkpoint.signature = self.key.sign(&checkpoint.signed());
        let bytes = tree.bytes();
        let end = (&checkpoint, bytes.as_slice());
        if !signer.keep(tenant, (first, leaves), end).await? {
            return Ok(Err(HoldReason::from(Meddled {
                tenant: last.name,
                number: checkpoint.number,
                detail: "would cover an entry that has a leaf already",
            })));
        }
        done.checkpoints += 1;
        done.leaves += leaves.len() as u64;
        Ok(Ok(()))
    }

    /// The end of a tenant's tree, after a check that the last checkpoint is the one that was signed.
    async fn end(
        &self,
        signer: &mut Signer,
        tenant: TenantId,
    ) -> Result<Result<End, HoldReason>, SignError> {
        let last = signer.last(tenant).await?;
        let of = last.checkpoint.as_ref();
        let number = of.map_or(0, |(checkpoint, _)| checkpoint.number);
        let meddled = |number, detail| {
            HoldReason::from(Meddled {
                tenant: last.name.clone(),
                number,
                detail,
            })
        };
        if last.has_leaves_behind {
            return Ok(Err(meddled(
                number.saturating_add(1),
                "is missing, but has leaves",
            )));
        }
        let Some((checkpoint, frontier)) = of else {
            let tree = Range::default();
            return Ok(Ok(End { last, tree }));
        };
        match self.keys.verdict(checkpoint) {
            SignatureVerdict::Valid => self.has_known.store(true, Ordering::Relaxed),
            SignatureVerdict::Invalid => {
                return Ok(Err(meddled(number, "does not match its signature")));
            }
            SignatureVerdict::UnknownKey => {
                let tenant = last.name;
                return Ok(Err(UnknownKey { tenant, number }.into()));
            }
        }
        let tree = Range::from_bytes(checkpoint.size, frontier);
        let tree = tree.filter(|tree| tree.root().as_slice() == checkpoint.root);
        let Some(tree) = tree else {
            let detail = "has a frontier that does not match its root";
            return Ok(Err(meddled(number, detail)));
        };
        Ok(Ok(End { last, tree }))
    }
}
