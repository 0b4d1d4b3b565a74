//! The directory of a scenario answers as that of a host.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::Directory;
use crate::absence::Absence;
use crate::lookup::Lookup;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn absent(person: &str, substitute: &str, definition: Option<&str>, hours: i64) -> Absence {
    Absence {
        person: person.to_owned(),
        substitute: substitute.to_owned(),
        definition: definition.map(str::to_owned),
        from: NOW,
        until: NOW + SignedDuration::from_hours(hours),
    }
}

fn members(directory: &Directory, group: &str) -> Vec<String> {
    let lookup = Lookup {
        groups: BTreeSet::from([group.to_owned()]),
        members_max: 2,
        ..Lookup::default()
    };
    let found = directory.found(&lookup, NOW).members.remove(group);
    found.unwrap_or_default()
}

#[test]
fn a_group_that_nobody_set_has_members_whom_nobody_knows() {
    let mut directory = Directory::default();
    assert_eq!(members(&directory, "staff").len(), 2);
    directory.joins("bob", "staff");
    directory.joins("ann", "staff");
    directory.joins("cid", "staff");
    assert_eq!(members(&directory, "staff"), ["ann", "bob"]);
    for person in ["ann", "bob", "cid"] {
        directory.leaves(person, "staff");
    }
    assert_eq!(members(&directory, "staff"), [""; 0]);
    directory.knows("office");
    assert_eq!(members(&directory, "office"), [""; 0]);
}

#[test]
fn a_substitute_acts_for_the_absent_also_through_absent_substitutes() {
    let mut directory = Directory::default();
    directory.joins("ann", "staff");
    directory.absences = vec![
        absent("ann", "bob", Some("orders"), 2),
        absent("bob", "cid", None, 2),
        absent("cid", "dan", None, 2),
        absent("dan", "eve", None, 2),
        absent("bob", "fay", Some("bills"), 2),
        absent("ann", "gus", None, 1),
    ];
    let acts_for = |person: &str, hours: i64| {
        let now = NOW + SignedDuration::from_hours(hours);
        let actor = directory.actor(person, None, now);
        let stand_ins = actor.stands_in_for.into_iter();
        let stand_ins = stand_ins.map(|one| {
            (
                one.person,
                one.definition.unwrap_or_default(),
                one.via.len(),
            )
        });
        stand_ins.collect::<Vec<_>>()
    };
    let expected = |all: &[(&str, &str, usize)]| {
        let all = all.iter();
        all.map(|(person, only, via)| ((*person).to_owned(), (*only).to_owned(), *via))
            .collect::<Vec<_>>()
    };
    assert_eq!(acts_for("bob", 0), expected(&[("ann", "orders", 0)]));
    assert_eq!(
        acts_for("cid", 0),
        expected(&[("bob", "", 0), ("ann", "orders", 1)])
    );
    // Not for ann: three absences in a row are the most.
    let of_eve = [("dan", "", 0), ("cid", "", 1), ("bob", "", 2)];
    assert_eq!(acts_for("eve", 0), expected(&of_eve));
    // Not for ann: she is absent for other work.
    assert_eq!(acts_for("fay", 0), expected(&[("bob", "bills", 0)]));
    assert_eq!(acts_for("gus", 0), expected(&[("ann", "", 0)]));
    assert_eq!(acts_for("gus", 1), expected(&[]));
    let named = directory.actor("zoe", Some("ann"), NOW).stands_in_for;
    assert_eq!(
        (named.len(), &*named[0].groups),
        (1, &["staff".to_owned()][..])
    );
}
