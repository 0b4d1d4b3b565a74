//! A cache in memory of limited weight. When it is full, it removes the entries that were used longest ago.
//!
//! A look-up costs a hash, a lock and a change of a list. The caches on the path of every command use it. If concurrent misses
//! must share one load, use a `moka` cache instead.

use std::borrow::Borrow;
use std::hash::{Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashlink::LinkedHashMap;

/// Values are cloned by each look-up, so large ones are behind an [`Arc`](std::sync::Arc).
#[derive(Debug)]
pub struct Lru<K, V> {
    entries: Mutex<Entries<K, V>>,
    weigh: fn(&K, &V) -> usize,
    weight_max: usize,
    lifetime: Option<Duration>,
}

#[derive(Debug)]
struct Entries<K, V> {
    /// From the one that was used longest ago.
    by_key: LinkedHashMap<K, Entry<V>, RandomState>,
    weight: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: usize,
    until: Option<Instant>,
}

impl<K: Eq + Hash, V: Clone> Lru<K, V> {
    /// Keeps at most `entries_max` entries.
    pub fn new(entries_max: usize) -> Lru<K, V> {
        Lru::weighted(entries_max, |_, _| 1)
    }

    /// Keeps entries that weigh at most `weight_max` together, each of them at least 1. An entry that weighs more by itself is not
    /// kept.
    pub fn weighted(weight_max: usize, weigh: fn(&K, &V) -> usize) -> Lru<K, V> {
        let entries = Entries {
            by_key: LinkedHashMap::with_hasher(RandomState::new()),
            weight: 0,
        };
        Lru {
            entries: Mutex::new(entries),
            weigh,
            weight_max,
            lifetime: None,
        }
    }

    /// Keeps each entry for `lifetime` after its insertion.
    #[must_use]
    pub fn expiring(mut self, lifetime: Duration) -> Lru<K, V> {
        self.lifetime = Some(lifetime);
        self
    }

    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut entries = self.lock();
        let entry = entries.by_key.to_back(key)?;
        if entry.until.is_some_and(|until| Instant::now() >= until) {
            let _expired = entries.remove(key);
            return None;
        }
        Some(entry.value.clone())
    }

    pub fn insert(&self, key: K, value: V) {
        let weight = (self.weigh)(&key, &value).max(1);
        let entry = Entry {
            value,
            weight,
            until: self.lifetime.map(|lifetime| Instant::now() + lifetime),
        };
        let mut entries = self.lock();
        // Values are dropped after the lock is released, because that may take long.
        let mut removed = Vec::new();
        if weight > self.weight_max {
            removed.extend(entries.remove(&key));
            drop(entries);
            return;
        }
        entries.weight += weight;
        if let Some(replaced) = entries.by_key.insert(key, entry) {
            entries.weight -= replaced.weight;
            removed.push(replaced);
        }
        while entries.weight > self.weight_max
            && let Some((_, oldest)) = entries.by_key.pop_front()
        {
            entries.weight -= oldest.weight;
            removed.push(oldest);
        }
        drop(entries);
    }

    pub fn remove<Q: Eq + Hash + ?Sized>(&self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let mut entries = self.lock();
        let removed = entries.remove(key);
        drop(entries);
        drop(removed);
    }

    /// The weight of all entries.
    pub fn weight(&self) -> usize {
        self.lock().weight
    }

    fn lock(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> Entries<K, V> {
    fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<Entry<V>>
    where
        K: Borrow<Q>,
    {
        let entry = self.by_key.remove(key)?;
        self.weight -= entry.weight;
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
