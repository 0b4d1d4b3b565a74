//! Verifies the seals of stored replies.

use super::{Finding, Problem, Verifier};
use crate::record::{Record, Replies as _};
use crate::seal::SealVerdict;
use crate::seal::reply::{self, Sealed};
use wrkflw_core::ids::TenantId;

/// Replies that are read at once.
const REPLIES_MAX: i64 = 200;
/// The stream of findings about replies. Their id is that of the command.
const REPLY: &str = "reply";

/// Verifies each stored reply of the tenant, if there are keys.
pub(super) async fn verify<R: Record, F: FnMut(Finding)>(
    verifier: &mut Verifier<'_, R, F>,
    tenant: TenantId,
    name: &str,
) -> Result<(), R::Error> {
    let Some(seals) = verifier.seals else {
        return Ok(());
    };
    let mut after = (String::new(), String::new());
    loop {
        let mut snapshot = verifier.record.snapshot(tenant).await?;
        let page = snapshot.replies((&after.0, &after.1), REPLIES_MAX).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = (last.principal.clone(), last.key.clone());
        for row in &page {
            let owner = (name, row.principal.as_str(), row.key.as_str());
            let covered = Sealed {
                fingerprint: &row.fingerprint,
                status: row.status,
                body: &row.body,
                headers: &row.headers,
            };
            let why = match reply::verdict(seals, owner, covered) {
                Some(SealVerdict::Valid) => continue,
                Some(SealVerdict::Invalid) => "it is not as it was sealed",
                Some(SealVerdict::UnknownKey | SealVerdict::UnknownVersion) => {
                    "there is no key with the name in its seal"
                }
                None => "it has no seal",
            };
            let (principal, key) = (&row.principal, &row.key);
            let detail = format!("idempotency_key (principal {principal:?}, key {key:?}): {why}");
            verifier.finding(
                name,
                REPLY,
                row.command,
                Problem::new(None, "reply", detail),
            );
        }
    }
}
