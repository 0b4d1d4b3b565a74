//! Places for uploads. An upload is in memory from its first byte until its component is published, and publishing may wait for the
//! compiler. So a host has few places, and no tenant gets all of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::admission::overloaded;
use super::problem::Problem;
use wrkflw_core::ids::TenantId;

/// Uploads of a host at a time: one that is compiled, and as many as may wait for the compiler.
const UPLOADS_MAX: usize = 9;
/// Those of one tenant.
const UPLOADS_OF_TENANT_MAX: usize = 6;
/// How long an upload may take to arrive.
pub const UPLOAD_TIME_MAX: Duration = Duration::from_mins(5);

/// The uploads of one host. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Uploads(Arc<Mutex<Vec<TenantId>>>);

/// The place of an upload. It is free again when its last clone is dropped. A request that this process makes itself may have a place as
/// its extension, such as a request of the console with a form that it has read. No request from a network has this extension.
#[derive(Debug, Clone)]
pub struct UploadPlace {
    _reservation: Arc<UploadReservation>,
}

#[derive(Debug)]
struct UploadReservation {
    uploads: Uploads,
    tenant: TenantId,
}

impl Uploads {
    /// A place for an upload of this tenant. Refused if none is free.
    pub fn place(&self, tenant: TenantId) -> Result<UploadPlace, Problem> {
        let mut tenants = self.tenants();
        let own = tenants.iter().filter(|one| **one == tenant).count();
        if tenants.len() >= UPLOADS_MAX || own >= UPLOADS_OF_TENANT_MAX {
            let detail = "this host reads too many uploads already";
            return Err(overloaded("uploads", detail));
        }
        tenants.push(tenant);
        let uploads = self.clone();
        Ok(UploadPlace {
            _reservation: Arc::new(UploadReservation { uploads, tenant }),
        })
    }

    fn tenants(&self) -> MutexGuard<'_, Vec<TenantId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UploadReservation {
    fn drop(&mut self) {
        let mut tenants = self.uploads.tenants();
        if let Some(at) = tenants.iter().position(|one| *one == self.tenant) {
            tenants.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_some_of_the_places_and_all_tenants_together_few() {
        let uploads = Uploads::default();
        let take = |tenant: i32| uploads.place(TenantId(tenant));
        let mut own: Vec<_> = (0..UPLOADS_OF_TENANT_MAX).map(|_| take(1)).collect();
        assert!(own.iter().all(Result::is_ok));
        let refused = take(1).expect_err("too many of this tenant");
        assert_eq!(
            (&*refused.code, refused.retry_after),
            ("overloaded", Some(1))
        );
        let left = UPLOADS_MAX - UPLOADS_OF_TENANT_MAX;
        let others: Vec<_> = (0..left).map(|_| take(2)).collect();
        assert!(others.iter().all(Result::is_ok));
        assert!(take(2).is_err() && take(3).is_err());
        // A clone keeps the place.
        let clone = own[0].clone();
        drop(own.remove(0));
        assert!(take(3).is_err());
        drop(clone);
        let other = take(3);
        assert!(other.is_ok() && take(1).is_err());
        drop(other);
        assert!(take(1).is_ok());
    }
}
