//! How many tasks can be done when each person does one at most: a maximum matching by augmenting paths (Kuhn).
//!
//! Its size is bounded by the caller: [`super::able`] gives each task no more people than there are tasks.

/// For each task the person who does it, if one is left for it. `able` names, for each task, those able to do it, by
/// numbers below `people`. A task that comes earlier is matched before one that comes later.
pub(super) fn matching(able: &[Vec<usize>], people: usize) -> Vec<Option<usize>> {
    let mut doing = vec![None; people];
    for task in 0..able.len() {
        augment(able, task, &mut doing, &mut vec![false; people]);
    }
    let mut done_by = vec![None; able.len()];
    for (person, task) in doing.into_iter().enumerate() {
        if let Some(task) = task {
            done_by[task] = Some(person);
        }
    }
    done_by
}

/// Finds somebody for the task, if need be by giving others' tasks to others. Recurses once a task at most.
fn augment(
    able: &[Vec<usize>],
    task: usize,
    doing: &mut [Option<usize>],
    asked: &mut [bool],
) -> bool {
    for &person in &able[task] {
        if std::mem::replace(&mut asked[person], true) {
            continue;
        }
        let is_free = match doing[person] {
            None => true,
            Some(other) => augment(able, other, doing, asked),
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

    /// Tries everything.
    fn best(able: &[Vec<usize>], taken: u32) -> usize {
        let Some((first, rest)) = able.split_first() else {
            return 0;
        };
        let without = best(rest, taken);
        let with = first.iter().filter(|person| taken & (1 << **person) == 0);
        let with = with.map(|person| 1 + best(rest, taken | (1 << person)));
        with.max().unwrap_or(0).max(without)
    }

    #[test]
    fn a_person_is_moved_to_make_room() {
        let able = [vec![0, 1], vec![0], vec![0]];
        assert_eq!(matching(&able, 2), [Some(1), Some(0), None]);
        assert_eq!(matching(&[vec![], vec![0]], 1), [None, Some(0)]);
    }

    proptest! {
        #[test]
        fn it_is_as_large_as_can_be(able in prop::collection::vec(prop::collection::vec(0..5_usize, 0..4), 0..6)) {
            let done_by = matching(&able, 5);
            let mut people: Vec<_> = done_by.iter().flatten().copied().collect();
            prop_assert_eq!(people.len(), best(&able, 0));
            for (task, person) in done_by.iter().enumerate() {
                prop_assert!(person.is_none_or(|person| able[task].contains(&person)));
            }
            people.sort_unstable();
            people.dedup();
            prop_assert_eq!(people.len(), done_by.iter().flatten().count());
        }
    }
}
