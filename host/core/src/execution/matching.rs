//! A maximum matching of tasks and people, where each person does at most one task, by augmenting paths (Kuhn).
//!
//! The caller bounds the size: [`super::staffing`] gives each task at most as many people as there are tasks.

/// Returns the person for each task; none for a task without a person. `eligible` has the people for each task, as numbers
/// below `people`. Earlier tasks are matched first.
pub(super) fn matching(eligible: &[Vec<usize>], people: usize) -> Vec<Option<usize>> {
    let mut doing = vec![None; people];
    for task in 0..eligible.len() {
        augment(eligible, task, &mut doing, &mut vec![false; people]);
    }
    let mut done_by = vec![None; eligible.len()];
    for (person, task) in doing.into_iter().enumerate() {
        if let Some(task) = task {
            done_by[task] = Some(person);
        }
    }
    done_by
}

/// Finds a person for the task, and moves other people to other tasks if necessary. Recurses at most once per task.
fn augment(
    eligible: &[Vec<usize>],
    task: usize,
    doing: &mut [Option<usize>],
    asked: &mut [bool],
) -> bool {
    for &person in &eligible[task] {
        if std::mem::replace(&mut asked[person], true) {
            continue;
        }
        let is_free = match doing[person] {
            None => true,
            Some(other) => augment(eligible, other, doing, asked),
        };
        if is_free {
            doing[person] = Some(task);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
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
}
