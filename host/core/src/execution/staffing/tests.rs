//! Matchings against an exhaustive search.

use proptest::prelude::*;

use super::*;

/// The size of a maximum matching by exhaustive search.
fn best(eligible: &[Vec<usize>], taken: u32) -> usize {
    let Some((first, rest)) = eligible.split_first() else {
        return 0;
    };
    let without = best(rest, taken);
    let with = first.iter().filter(|person| taken & (1 << **person) == 0);
    let with = with.map(|person| 1 + best(rest, taken | (1 << person)));
    with.max().unwrap_or(0).max(without)
}

#[test]
fn a_person_is_moved_to_make_room() {
    let eligible = [vec![0, 1], vec![0], vec![0]];
    assert_eq!(matching(&eligible, 2), [Some(1), Some(0), None]);
    assert_eq!(matching(&[vec![], vec![0]], 1), [None, Some(0)]);
}

proptest! {
    #[test]
    fn it_is_as_large_as_can_be(eligible in prop::collection::vec(prop::collection::vec(0..5_usize, 0..4), 0..6)) {
        let done_by = matching(&eligible, 5);
        let mut people: Vec<_> = done_by.iter().flatten().copied().collect();
        prop_assert_eq!(people.len(), best(&eligible, 0));
        for (task, person) in done_by.iter().enumerate() {
            prop_assert!(person.is_none_or(|person| eligible[task].contains(&person)));
        }
        people.sort_unstable();
        people.dedup();
        prop_assert_eq!(people.len(), done_by.iter().flatten().count());
    }
}
