//! Limits the open event streams by person, tenant and host. If the host is full, a new stream of a tenant with few streams
//! ends a stream of a tenant with many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use wrkflw_core::ids::TenantId;

/// Maximum number of streams of one person.
pub(super) const PERSON_MAX: usize = 20;
/// Maximum number of streams of one tenant.
pub(super) const TENANT_MAX: usize = 250;
/// Maximum number of streams of this host.
pub(super) const HOST_MAX: usize = 500;

/// The limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Person,
    Tenant,
    Host,
}

/// The limits of the open streams of this host.
#[derive(Debug, Default)]
pub(super) struct StreamLimits(Mutex<OpenStreams>);

/// The streams that have a permit.
#[derive(Debug, Default)]
struct OpenStreams {
    last: u64,
    /// In the order in which they were opened.
    streams: BTreeMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    tenant: TenantId,
    person: String,
    ended: CancellationToken,
}

/// The permit of one stream, released when this is dropped.
#[derive(Debug)]
pub(super) struct StreamPermit {
    number: u64,
    limits: Arc<StreamLimits>,
    /// Cancelled when another stream got the permit.
    pub(super) ended: CancellationToken,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.limits.open().streams.remove(&self.number);
    }
}

impl StreamLimits {
    fn open(&self) -> MutexGuard<'_, OpenStreams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit for one more stream of this person.
    pub(super) fn take(
        self: &Arc<Self>,
        tenant: TenantId,
        person: &str,
    ) -> Result<StreamPermit, Full> {
        let mut open = self.open();
        let own = |holder: &&Holder| holder.tenant == tenant;
        let of_tenant = open.streams.values().filter(own).count();
        let mut of_person = open.streams.values().filter(own);
        if of_person
            .by_ref()
            .filter(|one| one.person == person)
            .count()
            >= PERSON_MAX
        {
            return Err(Full::Person);
        }
        if of_tenant >= TENANT_MAX {
            return Err(Full::Tenant);
        }
        if open.streams.len() >= HOST_MAX {
            open.make_room(of_tenant)?;
        }
        open.last += 1;
        let (number, ended) = (open.last, CancellationToken::new());
        let holder = Holder {
            tenant,
            person: person.to_owned(),
            ended: ended.clone(),
        };
        open.streams.insert(number, holder);
        Ok(StreamPermit {
            number,
            limits: Arc::clone(self),
            ended,
        })
    }
}

impl OpenStreams {
    /// Ends the newest stream of the tenant with the most streams, if it has more than `own + 1`. `own` is the number of streams
    /// of the tenant that needs a permit.
    fn make_room(&mut self, own: usize) -> Result<(), Full> {
        let mut counts: BTreeMap<TenantId, usize> = BTreeMap::new();
        for holder in self.streams.values() {
            *counts.entry(holder.tenant).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let (tenant, _) = most
            .filter(|(_, count)| *count > own + 1)
            .ok_or(Full::Host)?;
        let mut newest = self.streams.iter().rev();
        let newest = newest.find(|(_, holder)| holder.tenant == tenant);
        let number = newest.map(|(number, _)| *number).ok_or(Full::Host)?;
        if let Some(holder) = self.streams.remove(&number) {
            holder.ended.cancel();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(limits: &Arc<StreamLimits>, tenant: i32, count: usize) -> Vec<StreamPermit> {
        let take = |number| {
            let person = format!("person-{}", number / PERSON_MAX);
            limits.take(TenantId(tenant), &person).expect("a permit")
        };
        (0..count).map(take).collect()
    }

    #[test]
    fn a_person_and_a_tenant_have_so_many_and_no_more() {
        let limits = Arc::new(StreamLimits::default());
        let mut open = taken(&limits, 1, TENANT_MAX - 1);
        let again = limits.take(TenantId(1), "person-0");
        assert_eq!(again.err(), Some(Full::Person));
        open.push(limits.take(TenantId(1), "another").expect("a permit"));
        let again = limits.take(TenantId(1), "yet another");
        assert_eq!(again.err(), Some(Full::Tenant));
        drop(limits.take(TenantId(2), "person-0").expect("a permit"));
        open.pop();
        limits.take(TenantId(1), "yet another").expect("a permit");
    }

    #[test]
    fn whoever_has_few_is_let_in_where_others_have_many() {
        let limits = Arc::new(StreamLimits::default());
        let first = taken(&limits, 1, TENANT_MAX);
        let second = taken(&limits, 2, HOST_MAX - TENANT_MAX);
        let third = taken(&limits, 3, HOST_MAX / 3);
        let ended =
            |open: &[StreamPermit]| open.iter().filter(|one| one.ended.is_cancelled()).count();
        assert_eq!(ended(&first) + ended(&second), third.len());
        assert!(ended(&first).abs_diff(ended(&second)) <= 1);
        assert_eq!(ended(&third), 0);
        assert!(!first[0].ended.is_cancelled(), "the newest ends first");
        // Now all have the same.
        let more = limits.take(TenantId(1), "more");
        assert_eq!(more.err(), Some(Full::Host));
        // A stream that was ended does not free the permit of another one.
        drop(first);
        let left = third.len() + second.len() - ended(&second);
        assert_eq!(limits.open().streams.len(), left);
    }
}
