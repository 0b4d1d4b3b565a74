//! Who is posted to at once. Places are shared by tenant, and within a tenant by subscription, so that receivers that
//! hang hold up nobody but their like.
//!
//! Whoever holds some may take one more while they hold fewer than are free: alone, a tenant comes to half of them; two
//! come to a third each; and for one that comes later there is always one left, until there are about as many tenants as
//! places. So it is within a tenant. Whoever holds least is given the next place.

use std::collections::BTreeMap;

use crate::domain::ids::TenantId;
use crate::store::deliveries::Line;

/// Posts at once, of one process.
pub(super) const POSTS_MAX: usize = 64;
/// Posts at once to one subscription.
pub(super) const SUBSCRIPTION_MAX: usize = 4;

/// The posts under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    taken: usize,
    tenants: BTreeMap<TenantId, usize>,
    lines: BTreeMap<Line, usize>,
}

impl Places {
    pub(super) fn are_free(&self) -> bool {
        self.taken < POSTS_MAX
    }

    pub(super) fn take(&mut self, line: Line, count: usize) {
        self.taken += count;
        *self.tenants.entry(line.tenant).or_default() += count;
        *self.lines.entry(line).or_default() += count;
    }

    pub(super) fn free(&mut self, line: Line) {
        self.taken = self.taken.saturating_sub(1);
        let (tenant, line) = (
            self.tenants.get_mut(&line.tenant),
            self.lines.get_mut(&line),
        );
        for count in [tenant, line].into_iter().flatten() {
            *count = count.saturating_sub(1);
        }
        self.tenants.retain(|_, count| *count > 0);
        self.lines.retain(|_, count| *count > 0);
    }

    fn of_tenant(&self, tenant: TenantId) -> usize {
        self.tenants.get(&tenant).copied().unwrap_or(0)
    }

    fn of_line(&self, line: &Line) -> usize {
        self.lines.get(line).copied().unwrap_or(0)
    }

    /// Whether this subscription may take one more.
    fn has_room(&self, line: &Line) -> bool {
        let (tenant, own) = (self.of_tenant(line.tenant), self.of_line(line));
        let free = POSTS_MAX.saturating_sub(self.taken);
        tenant < free && own < SUBSCRIPTION_MAX && own < free - tenant
    }

    /// How the free places are shared among lines with so many deliveries that are due.
    pub(super) fn share(&self, due: &[(Line, usize)]) -> Vec<(Line, usize)> {
        let mut held = self.clone();
        let mut shares: BTreeMap<Line, usize> = BTreeMap::new();
        while held.are_free() {
            let waits = |(line, due): &&(Line, usize)| {
                shares.get(line).copied().unwrap_or(0) < *due && held.has_room(line)
            };
            let least =
                |(line, _): &&(Line, usize)| (held.of_tenant(line.tenant), held.of_line(line));
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

    fn line(tenant: i32, number: u128) -> Line {
        Line {
            tenant: TenantId(tenant),
            subscription: Uuid::from_u128(number),
        }
    }

    /// So many subscriptions of each tenant, with more than enough to do, that never give a place back.
    fn hanging(subscriptions: &[u128]) -> Places {
        let mut places = Places::default();
        let lines: Vec<_> = (1..)
            .zip(subscriptions)
            .flat_map(|(tenant, count)| (0..*count).map(move |number| (line(tenant, number), 9)))
            .collect();
        for (line, count) in places.share(&lines) {
            places.take(line, count);
        }
        assert_eq!(places.share(&lines), [], "they have what they may have");
        places
    }

    fn granted(places: &Places, due: &[(Line, usize)]) -> usize {
        places.share(due).iter().map(|(_, count)| count).sum()
    }

    #[test]
    fn one_tenant_leaves_half_to_others() {
        for subscriptions in [8, 20, 100] {
            let places = hanging(&[subscriptions]);
            assert!(places.taken <= POSTS_MAX / 2, "{}", places.taken);
            let other = [(line(2, 1), 9)];
            assert_eq!(granted(&places, &other), SUBSCRIPTION_MAX);
        }
        // And its own receivers that answer have places beside eight that do not.
        assert!(granted(&hanging(&[8]), &[(line(1, 99), 9)]) >= 1);
    }

    #[test]
    fn many_tenants_have_equal_parts_and_leave_one() {
        let places = hanging(&[100; 20]);
        let (least, most) = (
            places.tenants.values().min().expect("tenants"),
            places.tenants.values().max().expect("tenants"),
        );
        assert!(most - least <= 1 && *least >= 2, "{least} to {most}");
        assert!(granted(&places, &[(line(99, 1), 9)]) >= 1);
    }

    #[test]
    fn one_receiver_takes_few_places() {
        let places = hanging(&[1]);
        assert_eq!(places.taken, SUBSCRIPTION_MAX);
        let mut shares = Places::default().share(&[(line(1, 1), 2), (line(1, 2), 0)]);
        assert_eq!(shares.pop(), Some((line(1, 1), 2)), "no more than is due");
        assert_eq!(shares, []);
    }

    #[test]
    fn places_are_given_back() {
        let mut places = Places::default();
        places.take(line(1, 1), 2);
        places.free(line(1, 1));
        assert_eq!((places.taken, places.of_line(&line(1, 1))), (1, 1));
        places.free(line(1, 1));
        places.free(line(1, 1));
        assert!(places.taken == 0 && places.tenants.is_empty() && places.lines.is_empty());
    }
}
