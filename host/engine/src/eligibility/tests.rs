//! What a preview says of tasks that it could not examine.

use super::*;

fn work() -> OpenWork {
    OpenWork {
        task: Uuid::from_u128(1),
        instance: Uuid::from_u128(2),
        definition: VersionRef {
            key: "loan".into(),
            version: 1,
        },
        state: "Review".into(),
        label: "work".into(),
        work: Work {
            definition: "loan".into(),
            candidates: vec![Candidate::Group("crew".into())],
            owner: None,
            exclude: Vec::new(),
            requesters: Vec::new(),
            initiator: "ann".into(),
            own_work: false,
            decided: Vec::new(),
        },
    }
}

/// Whether an unread member can act is not known. So the task is no orphan, and there may be more orphans.
#[test]
fn a_task_that_could_not_be_examined_is_not_left_out_in_silence() {
    let leaves = Change::Leaves {
        group: "crew".into(),
        person: "bob".into(),
    };
    let mut directory = Directory::default();
    let crew = BTreeSet::from(["bob".to_owned()]);
    directory.members.insert("crew".into(), crew);
    let (orphans, cut) = orphaned(vec![work()], &directory, &leaves);
    assert_eq!((orphans.len(), cut), (1, false));
    directory.cut.insert("crew".into());
    let (orphans, cut) = orphaned(vec![work()], &directory, &leaves);
    assert_eq!((orphans.len(), cut), (0, true));
}
