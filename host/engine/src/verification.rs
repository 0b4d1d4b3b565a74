//! Verifies the audit of one instance, like `wrkflw audit verify --instance` but without the replay of its commands. It runs on a thread
//! of low priority for a bounded time, one verification of a tenant at a time. It mostly waits for the database, so it takes no place of
//! other long work.

use tokio::runtime::Handle;
use uuid::Uuid;

use super::custody::Audit;
use super::error::Error;
use super::request::Identity;
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::verify::{Finding, How, VerifiedCounts, Verifier};
use wrkflw_core::ids::InstanceId;

/// Findings that are returned; all are counted.
const FINDINGS_MAX: usize = 100;

/// The numbers of verified parts of an instance, and the findings: contents that no host would have written.
#[derive(Debug, Clone)]
pub struct Verification {
    pub instance_id: Uuid,
    pub entries: u64,
    pub decisions: u64,
    pub delegations: u64,
    pub seals: u64,
    pub leaves: u64,
    /// How many findings there are. `findings` has the first [`FINDINGS_MAX`].
    pub count: u64,
    pub findings: Vec<Finding>,
}

impl Audit<'_> {
    /// Verifies the chain, the rows, the seals and the leaves of an instance.
    pub async fn verify(self, who: &Identity, instance: InstanceId) -> Result<Verification, Error> {
        self.engine.permit(who, "audit:read").await?;
        let (engine, who) = (self.engine.clone(), who.clone());
        let (tenant, runtime) = (who.tenant, Handle::current());
        let verify = move || runtime.block_on(engine.audit().verified(&who, instance));
        let (tally, findings) = self.engine.0.verifications.run(tenant, verify).await??;
        if tally.streams + tally.findings == 0 {
            return Err(Error::missing("instance", instance));
        }
        Ok(Verification {
            instance_id: instance.0,
            entries: tally.entries,
            decisions: tally.decisions,
            delegations: tally.delegations,
            seals: tally.seals,
            leaves: tally.leaves,
            count: tally.findings,
            findings,
        })
    }

    async fn verified(
        self,
        who: &Identity,
        instance: InstanceId,
    ) -> Result<(VerifiedCounts, Vec<Finding>), Error> {
        let mut findings = Vec::new();
        let how = How {
            seals: Some(self.engine.seals()),
            replayer: None,
            keys: &CheckpointKeys::default(),
            kept: &[],
        };
        let on_finding = |finding| {
            if findings.len() < FINDINGS_MAX {
                findings.push(finding);
            }
        };
        // The database ends a query that this timeout abandons.
        let reader = self
            .engine
            .reader()
            .limiting_snapshots(self.engine.timeout());
        let verifier = Verifier::new(&reader, how, on_finding);
        let run = verifier.instance((who.tenant, &who.tenant_name), instance);
        let Ok(tally) = tokio::time::timeout(self.engine.timeout(), run).await else {
            let detail = format!(
                "the verification did not end within {} s; run `wrkflw audit verify --instance {instance}`, which has no limit of time",
                self.engine.timeout().as_secs()
            );
            return Err(Error::invalid_as_a_whole(detail, "/id", "too_long"));
        };
        Ok((tally?, findings))
    }
}
