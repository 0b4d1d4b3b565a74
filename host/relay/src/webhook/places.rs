//! Limits concurrent posts. Each post takes a place. Places are shared by tenant, and within a tenant by subscription. So receivers
//! that hang delay only the posts of their own tenant or subscription.
//!
//! A tenant may take one more place while it has fewer than are free. So a single tenant gets half of the places, and two get
//! a third each. A later tenant always finds a free place, until there are about as many tenants as places. Within a tenant,
//! subscriptions share in the same way. The next place goes to the tenant, then to the subscription, that has the fewest.

use std::collections::BTreeMap;

use wrkflw_core::ids::TenantId;
use wrkflw_store::deliveries::DeliveryQueue;

/// Concurrent posts of one process.
pub(super) const POSTS_MAX: usize = 64;
/// Concurrent posts to one subscription.
pub(super) const SUBSCRIPTION_MAX: usize = 4;

/// The posts in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    taken: usize,
    tenants: BTreeMap<TenantId, usize>,
    queues: BTreeMap<DeliveryQueue, usize>,
}

impl Places {
    pub(super) fn are_free(&self) -> bool {
        self.taken < POSTS_MAX
    }

    pub(super) fn take(&mut self, queue: DeliveryQueue, count: usize) {
        self.taken += count;
        *self.tenants.entry(queue.tenant).or_default() += count;
        *self.queues.entry(queue).or_default() += count;
    }

    pub(super) fn free(&mut self, queue: DeliveryQueue) {
        self.taken = self.taken.saturating_sub(1);
        let (tenant, queue) = (
            self.tenants.get_mut(&queue.tenant),
            self.queues.get_mut(&queue),
        );
        for count in [tenant, queue].into_iter().flatten() {
            *count = count.saturating_sub(1);
        }
        self.tenants.retain(|_, count| *count > 0);
        self.queues.retain(|_, count| *count > 0);
    }

    fn of_tenant(&self, tenant: TenantId) -> usize {
        self.tenants.get(&tenant).copied().unwrap_or(0)
    }

    fn of_queue(&self, queue: &DeliveryQueue) -> usize {
        self.queues.get(queue).copied().unwrap_or(0)
    }

    /// Whether this subscription may take one more place.
    fn has_room(&self, queue: &DeliveryQueue) -> bool {
        let (tenant, own) = (self.of_tenant(queue.tenant), self.of_queue(queue));
        let free = POSTS_MAX.saturating_sub(self.taken);
        tenant < free && own < SUBSCRIPTION_MAX && own < free - tenant
    }

    /// Shares the free places among subscriptions, by the numbers of their due deliveries.
    pub(super) fn share(&self, due: &[(DeliveryQueue, usize)]) -> Vec<(DeliveryQueue, usize)> {
        let mut held = self.clone();
        let mut shares: BTreeMap<DeliveryQueue, usize> = BTreeMap::new();
        while held.are_free() {
            let waits = |(queue, due): &&(DeliveryQueue, usize)| {
                shares.get(queue).copied().unwrap_or(0) < *due && held.has_room(queue)
            };
            let least = |(queue, _): &&(DeliveryQueue, usize)| {
                (held.of_tenant(queue.tenant), held.of_queue(queue))
            };
            let Some((next, _)) = due.iter().filter(waits).min_by_key(least) else {
                break;
            };
            let next = *next;
            held.take(next, 1);
            *shares.entry(next).or_default() += 1;
        }
        shares.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn queue(tenant: i32, number: u128) -> DeliveryQueue {
        DeliveryQueue {
            tenant: TenantId(tenant),
            subscription: Uuid::from_u128(number),
        }
    }

    /// All places that the subscriptions of the tenants get when each has enough deliveries and no post ends.
    /// `subscriptions` has their number for each tenant.
    fn hanging(subscriptions: &[u128]) -> Places {
        let mut places = Places::default();
        let queues: Vec<_> = (1..)
            .zip(subscriptions)
            .flat_map(|(tenant, count)| (0..*count).map(move |number| (queue(tenant, number), 9)))
            .collect();
        for (queue, count) in places.share(&queues) {
            places.take(queue, count);
        }
        assert_eq!(places.share(&queues), [], "they have what they may have");
        places
    }

    fn granted(places: &Places, due: &[(DeliveryQueue, usize)]) -> usize {
        places.share(due).iter().map(|(_, count)| count).sum()
    }

    #[test]
    fn one_tenant_leaves_half_to_others() {
        for subscriptions in [8, 20, 100] {
            let places = hanging(&[subscriptions]);
            assert!(places.taken <= POSTS_MAX / 2, "{}", places.taken);
            let other = [(queue(2, 1), 9)];
            assert_eq!(granted(&places, &other), SUBSCRIPTION_MAX);
        }
        // The tenant's receivers that answer get places beside eight that do not.
        assert!(granted(&hanging(&[8]), &[(queue(1, 99), 9)]) >= 1);
    }

    #[test]
    fn many_tenants_have_equal_parts_and_leave_one() {
        let places = hanging(&[100; 20]);
        let (least, most) = (
            places.tenants.values().min().expect("tenants"),
            places.tenants.values().max().expect("tenants"),
        );
        assert!(most - least <= 1 && *least >= 2, "{least} to {most}");
        assert!(granted(&places, &[(queue(99, 1), 9)]) >= 1);
    }

    #[test]
    fn one_receiver_takes_few_places() {
        let places = hanging(&[1]);
        assert_eq!(places.taken, SUBSCRIPTION_MAX);
        let mut shares = Places::default().share(&[(queue(1, 1), 2), (queue(1, 2), 0)]);
        assert_eq!(shares.pop(), Some((queue(1, 1), 2)), "no more than is due");
        assert_eq!(shares, []);
    }

    #[test]
    fn places_are_given_back() {
        let mut places = Places::default();
        places.take(queue(1, 1), 2);
        places.free(queue(1, 1));
        assert_eq!((places.taken, places.of_queue(&queue(1, 1))), (1, 1));
        places.free(queue(1, 1));
        places.free(queue(1, 1));
        assert!(places.taken == 0 && places.tenants.is_empty() && places.queues.is_empty());
    }
}
