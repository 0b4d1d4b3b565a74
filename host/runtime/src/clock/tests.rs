//! Ids are in order and never repeated, and random bytes are given away once.

use std::collections::BTreeSet;

use super::*;

#[test]
fn ids_are_later_than_those_before_them_and_none_comes_twice() {
    let ids: Vec<Uuid> = (0..10_000).map(|_| new_id()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next));
    assert!(ids.iter().all(|id| id.get_version_num() == 7));
    let threads: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(|| (0..1_000).map(|_| new_id()).collect::<Vec<_>>()))
        .collect();
    let all = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap());
    let mut seen: BTreeSet<Uuid> = ids.into_iter().collect();
    let before = seen.len();
    seen.extend(all);
    assert_eq!(seen.len(), before + 4_000);
}

#[test]
fn random_bytes_are_given_away_once() {
    let drawn: BTreeSet<[u8; 16]> = (0..1_000).map(|_| random()).collect();
    assert_eq!(drawn.len(), 1_000);
    let mut pool = Pool {
        bytes: [0; POOL_BYTES],
        used: POOL_BYTES,
    };
    let first: [u8; 16] = pool.draw();
    assert_eq!(pool.used, 16);
    assert_ne!(first, [0; 16]);
    assert_eq!(pool.bytes[..16], [0; 16]);
    pool.used = POOL_BYTES - 15;
    let next: [u8; 16] = pool.draw();
    assert_eq!(pool.used, 16, "{next:?}");
}
