//! What the cache removes and keeps, also against a plain list.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

#[test]
fn it_removes_what_was_used_longest_ago() {
    let cache = Lru::new(2);
    cache.insert("a", 1);
    cache.insert("b", 2);
    assert_eq!(cache.get("a"), Some(1));
    cache.insert("c", 3);
    assert_eq!(
        (cache.get("a"), cache.get("b"), cache.get("c")),
        (Some(1), None, Some(3))
    );
    cache.remove("a");
    assert_eq!((cache.get("a"), cache.weight()), (None, 1));
}

#[test]
fn an_expired_entry_is_neither_returned_nor_kept() {
    let cache = Lru::new(2).expiring(Duration::ZERO);
    cache.insert("a", 1);
    assert_eq!((cache.get("a"), cache.weight()), (None, 0));
    let cache = Lru::new(2).expiring(Duration::from_hours(1));
    cache.insert("a", 1);
    assert_eq!(cache.get("a"), Some(1));
}

#[test]
fn an_entry_above_the_limit_is_not_kept_and_replaces_the_one_before() {
    let cache = Lru::weighted(10, |_, weight| *weight);
    cache.insert("a", 10);
    cache.insert("a", 11);
    assert_eq!((cache.get("a"), cache.weight()), (None, 0));
}

#[derive(Debug, Clone)]
enum CacheAction {
    Get(u8),
    Insert(u8, usize),
    Remove(u8),
}

fn step() -> impl Strategy<Value = CacheAction> {
    let key = || 0_u8..12;
    prop_oneof![
        key().prop_map(CacheAction::Get),
        (key(), 0_usize..14).prop_map(|(key, weight)| CacheAction::Insert(key, weight)),
        key().prop_map(CacheAction::Remove),
    ]
}

proptest! {
    /// Compares with a list that is searched from its front.
    #[test]
    fn it_keeps_what_a_plain_list_keeps(steps in prop::collection::vec(step(), 0..200)) {
        const WEIGHT_MAX: usize = 12;
        let cache = Lru::weighted(WEIGHT_MAX, |_, weight| *weight);
        let mut list = VecDeque::<(u8, usize)>::new();
        let take = |list: &mut VecDeque<(u8, usize)>, key| {
            let place = list.iter().position(|(other, _)| *other == key)?;
            list.remove(place)
        };
        for step in steps {
            match step {
                CacheAction::Get(key) => {
                    let found = take(&mut list, key);
                    list.extend(found);
                    prop_assert_eq!(cache.get(&key), found.map(|(_, weight)| weight));
                }
                CacheAction::Insert(key, weight) => {
                    let weight = weight.max(1);
                    take(&mut list, key);
                    if weight <= WEIGHT_MAX {
                        list.push_back((key, weight));
                    }
                    while list.iter().map(|(_, weight)| weight).sum::<usize>() > WEIGHT_MAX {
                        list.pop_front();
                    }
                    cache.insert(key, weight);
                }
                CacheAction::Remove(key) => {
                    take(&mut list, key);
                    cache.remove(&key);
                }
            }
            prop_assert_eq!(cache.weight(), list.iter().map(|(_, weight)| weight).sum::<usize>());
        }
    }
}
