//! Tables of who may act, and random directories against a second implementation of the rules.

use uuid::Uuid;

use super::directory::{Change, Substitution};
use super::*;
use crate::instance::Delegation;

fn judge(work: &Work, directory: &Directory) -> Eligibility {
    Judge::of(directory).judge(work)
}

/// Work of one group and one person in a world of a few people.
fn work() -> Work {
    Work {
        definition: "loan".into(),
        candidates: vec![Candidate::Group("g".into()), Candidate::User("una".into())],
        owner: None,
        exclude: vec![],
        requesters: vec!["ira".into()],
        initiator: "ira".into(),
        own_work: false,
        decided: vec![],
    }
}

fn stands_in(person: &str, substitute: &str, definition: Option<&str>) -> Substitution {
    Substitution {
        absence: Uuid::from_u128(u128::from_be_bytes(*b"absence of some1")),
        person: person.into(),
        substitute: substitute.into(),
        definition: definition.map(str::to_owned),
    }
}

fn directory(members: &[&str], substitutions: &[Substitution]) -> Directory {
    let mut by_person: BTreeMap<String, Vec<Substitution>> = BTreeMap::new();
    for one in substitutions {
        by_person
            .entry(one.person.clone())
            .or_default()
            .push(one.clone());
    }
    Directory {
        members: BTreeMap::from([(
            "g".to_owned(),
            members.iter().map(ToString::to_string).collect(),
        )]),
        substitutions: by_person,
        ..Directory::default()
    }
}

/// `person: ways` of eligible people, `person! exclusions` of excluded people.
fn summary(work: &Work, directory: &Directory) -> Vec<String> {
    let eligibility = judge(work, directory);
    let listed = |person: &str, sign: char, words: Vec<String>| {
        format!("{person}{sign} {}", words.join(", "))
    };
    let eligible = eligibility.eligible.iter();
    let eligible =
        eligible.map(|(person, ways)| listed(person, ':', ways.iter().map(way).collect()));
    let excluded = eligibility.excluded.iter();
    let excluded = excluded.map(|(person, exclusions)| {
        listed(person, '!', exclusions.iter().map(exclusion).collect())
    });
    eligible.chain(excluded).collect()
}

fn way(way: &Way) -> String {
    match way {
        Way::Candidate => "candidate".to_owned(),
        Way::Group { group } => format!("group {group}"),
        Way::Owner => "owner".to_owned(),
        Way::Substitute { of, via } if via.is_empty() => format!("for {of}"),
        Way::Substitute { of, via } => format!("for {of} via {}", via.join(" ")),
    }
}

/// As callers are told, with the person whom it is about.
fn exclusion(exclusion: &Exclusion) -> String {
    let json = serde_json::to_value(exclusion).expect("JSON");
    let why = json["why"].as_str().expect("a word");
    match json["of"].as_str().or(json["by"].as_str()) {
        Some(whom) => format!("{why} {whom}"),
        None => why.to_owned(),
    }
}

#[test]
fn candidates_act_and_requesters_do_not() {
    let world = directory(&["gus", "ira"], &[]);
    assert_eq!(
        summary(&work(), &world),
        ["gus: group g", "una: candidate", "ira! requester"]
    );
    let excluded = Work {
        exclude: vec!["gus".into(), "una".into()],
        ..work()
    };
    let expected = ["gus! excluded", "ira! requester", "una! excluded"];
    assert_eq!(summary(&excluded, &world), expected);
    assert!(judge(&excluded, &world).is_nobody());
    assert_eq!(
        judge(&excluded, &world).why_nobody(),
        "gus is excluded; ira requested the instance; una is excluded"
    );
    let empty = Work {
        candidates: vec![Candidate::Group("nobody".into())],
        ..work()
    };
    assert_eq!(
        judge(&empty, &world).why_nobody(),
        "nobody is among its candidates"
    );
}

#[test]
fn substitutes_act_beside_the_absent() {
    let chain = [
        stands_in("una", "b", None),
        stands_in("b", "c", None),
        stands_in("c", "d", None),
        stands_in("d", "e", None),
    ];
    assert_eq!(
        summary(&work(), &directory(&[], &chain)),
        [
            "b: for una",
            "c: for una via b",
            "d: for una via b c",
            "una: candidate"
        ]
    );
    let other = [stands_in("una", "b", Some("leave"))];
    assert_eq!(
        summary(&work(), &directory(&[], &other)),
        ["una: candidate"]
    );
    let this = [stands_in("una", "b", Some("loan"))];
    assert_eq!(
        summary(&work(), &directory(&[], &this)),
        ["b: for una", "una: candidate"]
    );
}

#[test]
fn what_bars_a_person_bars_their_substitutes() {
    let world = directory(
        &["ira", "gus"],
        &[
            stands_in("ira", "sub", None),
            stands_in("gus", "ira", None),
            stands_in("una", "gus", None),
        ],
    );
    assert_eq!(
        summary(&work(), &world),
        [
            "gus: group g, for una",
            "una: candidate",
            "ira! requester",
            "sub! for_requester ira"
        ]
    );
    let excluded = Work {
        exclude: vec!["una".into()],
        ..work()
    };
    let world = directory(
        &[],
        &[stands_in("una", "b", None), stands_in("b", "c", None)],
    );
    assert_eq!(
        summary(&excluded, &world),
        [
            "b! for_excluded una",
            "c! for_excluded una",
            "una! excluded"
        ]
    );
}

#[test]
fn each_decides_and_is_acted_for_once_in_a_state_instance() {
    let world = directory(
        &[],
        &[stands_in("una", "b", None), stands_in("b", "c", None)],
    );
    let decided = |people: &[&str]| Work {
        decided: people.iter().map(ToString::to_string).collect(),
        ..work()
    };
    // B acted for Una: neither of them again, nor anybody else for Una.
    assert_eq!(
        summary(&decided(&["b", "una"]), &world),
        [
            "b! already_decided",
            "c! for_decided una",
            "una! already_decided"
        ]
    );
    // B decided for themselves: Una's vote is open, also to C.
    assert_eq!(
        summary(&decided(&["b"]), &world),
        ["c: for una via b", "una: candidate", "b! already_decided"]
    );
}

#[test]
fn own_work_is_the_initiators() {
    let own = Work {
        candidates: vec![Candidate::User("ira".into())],
        own_work: true,
        ..work()
    };
    let world = directory(&[], &[stands_in("ira", "b", None)]);
    assert_eq!(
        summary(&own, &world),
        ["ira: candidate", "b! not_initiator"]
    );
}

#[test]
fn an_owner_acts_for_as_long_as_they_may() {
    let owned = |id: &str, assigned: bool, principal: Option<&str>| Work {
        owner: Some(Owner {
            id: id.into(),
            assigned,
            represented: principal.into_iter().map(str::to_owned).collect(),
        }),
        ..work()
    };
    let world = directory(&["gus"], &[stands_in("una", "b", None)]);
    assert_eq!(
        summary(&owned("gus", false, None), &world),
        ["gus: owner", "b! owned gus", "una! owned gus"]
    );
    // Came to it as a substitute; the absence is over in the second world.
    assert_eq!(
        summary(&owned("b", false, Some("una")), &world),
        ["b: owner", "gus! owned b", "una! owned b"]
    );
    let back = directory(&["gus"], &[]);
    let lost = owned("b", false, Some("una"));
    assert_eq!(
        summary(&lost, &back),
        ["b! lost_eligibility", "gus! owned b", "una! owned b"]
    );
    assert!(judge(&lost, &back).is_nobody());
    // To stand in for another candidate is no right to what was claimed for this one.
    let other = directory(&["gus"], &[stands_in("gus", "b", None)]);
    assert!(summary(&lost, &other).contains(&"b! lost_eligibility".to_owned()));
    // An owner who is a candidate, too, acts for themselves if the absent person is excluded.
    let joined = directory(&["b", "gus"], &[stands_in("una", "b", None)]);
    let without_una = Work {
        exclude: vec!["una".into()],
        ..lost.clone()
    };
    assert!(summary(&without_una, &joined).contains(&"b: owner".to_owned()));
    // Given to somebody who is no candidate, who is absent, or whose principal is excluded.
    let away = directory(&[], &[stands_in("ada", "b", None)]);
    assert_eq!(
        summary(&owned("ada", true, None), &away),
        ["ada: owner", "b: for ada", "una! owned ada"]
    );
    assert_eq!(
        summary(&owned("ira", true, None), &back),
        ["gus! owned ira", "ira! requester", "una! owned ira"]
    );
    assert_eq!(
        summary(&owned("ada", true, Some("ira")), &back),
        ["ada! for_requester ira", "gus! owned ada", "una! owned ada"]
    );
}

#[test]
fn what_was_handed_on_is_its_new_owners() {
    let handed = |from: &str, to: &str| Delegation {
        from: from.into(),
        to: to.into(),
        reason: "leave".into(),
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let plain = Owner::with("una", &Ownership::default());
    assert_eq!((plain.assigned, plain.represented), (false, Vec::new()));
    let delegated = Ownership {
        delegations: vec![handed("una", "bo"), handed("bo", "cy")],
        ..Ownership::default()
    };
    let owner = Owner::with("cy", &delegated);
    assert!(owner.assigned);
    assert_eq!(owner.represented, ["una", "bo"]);
    let work = Work {
        owner: Some(owner),
        exclude: vec!["una".into()],
        ..work()
    };
    let expected = ["cy! for_excluded una", "una! excluded"];
    assert_eq!(summary(&work, &directory(&[], &[])), expected);
    // Who handed it on may not decide for the same state instance twice, either.
    let work = Work {
        exclude: vec![],
        decided: vec!["bo".into()],
        ..work
    };
    assert!(summary(&work, &directory(&[], &[])).contains(&"cy! for_decided bo".to_owned()));
}

#[test]
fn a_change_is_seen_before_it_is_made() {
    let world = directory(&["gus"], &[stands_in("una", "b", None)]);
    let group = || "g".to_owned();
    let after = |change: &Change| summary(&work(), &world.after(change));
    let left = Change::Leaves {
        group: group(),
        person: "gus".into(),
    };
    assert_eq!(after(&left), ["b: for una", "una: candidate"]);
    let joined = Change::Joins {
        group: group(),
        person: "new".into(),
    };
    assert!(after(&joined).contains(&"new: group g".to_owned()));
    let back = Change::Back {
        absence: stands_in("una", "b", None).absence,
        person: "una".into(),
    };
    assert_eq!(after(&back), ["gus: group g", "una: candidate"]);
    let absent = Change::Absent(stands_in("gus", "d", None));
    assert!(after(&absent).contains(&"d: for gus".to_owned()));
    assert_eq!(
        summary(&work(), &world).len(),
        3,
        "the world stays as it is"
    );
}

#[test]
fn of_a_group_cut_off_nothing_is_certain() {
    let mut world = directory(&[], &[]);
    world.cut.insert("g".into());
    let excluded = Work {
        exclude: vec!["una".into()],
        ..work()
    };
    let eligibility = judge(&excluded, &world);
    assert!(eligibility.eligible.is_empty() && !eligibility.is_nobody());
}

/// Numbers from a seed, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (bound as u64)).expect("small")
    }

    fn some(&mut self, people: &[&str], out_of: usize) -> Vec<String> {
        let chosen = people.iter().filter(|_| self.below(out_of) == 0);
        chosen.map(ToString::to_string).collect()
    }
}

const PEOPLE: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

fn random(random: &mut Random) -> (Work, Directory) {
    let members = random.some(&PEOPLE, 3);
    let mut substitutions = Vec::new();
    for person in PEOPLE {
        let substitute = PEOPLE[random.below(PEOPLE.len())];
        if random.below(2) == 0 && substitute != person {
            let definition = [None, Some("loan"), Some("leave")][random.below(3)];
            substitutions.push(stands_in(person, substitute, definition));
        }
    }
    let owner = (random.below(3) == 0).then(|| Owner {
        id: PEOPLE[random.below(PEOPLE.len())].into(),
        assigned: random.below(2) == 0,
        represented: Vec::new(),
    });
    let work = Work {
        candidates: vec![
            Candidate::Group("g".into()),
            Candidate::User(PEOPLE[random.below(PEOPLE.len())].into()),
        ],
        owner,
        exclude: random.some(&PEOPLE, 6),
        requesters: random.some(&PEOPLE, 6),
        initiator: "a".into(),
        own_work: random.below(8) == 0,
        decided: random.some(&PEOPLE, 6),
        ..work()
    };
    let members: Vec<_> = members.iter().map(String::as_str).collect();
    (work, directory(&members, &substitutions))
}

/// Whether the person may really act by this way, checked step by step.
fn way_is_true(work: &Work, directory: &Directory, person: &str, way: &Way) -> bool {
    let is_owner = |id: &str| work.owner.as_ref().is_some_and(|owner| owner.id == id);
    let named = |id: &str| work.candidates.contains(&Candidate::User(id.to_owned()));
    match way {
        Way::Candidate => named(person),
        Way::Group { group } => directory.members[group].contains(person),
        Way::Owner => is_owner(person),
        Way::Substitute { of, via } => {
            let line: Vec<_> = [of].into_iter().chain(via).map(String::as_str).collect();
            let next = line[1..].iter().copied().chain([person]);
            let linked = line.iter().zip(next).all(|(person, substitute)| {
                directory.substitutions.get(*person).is_some_and(|all| {
                    all.iter().any(|one| {
                        one.substitute == substitute && one.definition.as_deref() != Some("leave")
                    })
                })
            });
            let root = is_owner(of) || named(of) || directory.members["g"].contains(of);
            linked && root && line.len() <= LINKS_MAX
        }
    }
}

#[test]
fn in_no_world_a_rule_is_broken() {
    let (mut eligible, mut excluded) = (0, 0);
    for seed in 1..=3_000 {
        let (work, directory) = random(&mut Random(seed * 0x9e37_79b9));
        let eligibility = judge(&work, &directory);
        excluded += eligibility.excluded.len();
        for (person, ways) in &eligibility.eligible {
            eligible += 1;
            assert!(!ways.is_empty() && !eligibility.excluded.contains_key(person));
            assert!(!work.exclude.contains(person) && !work.decided.contains(person));
            if work.own_work {
                assert_eq!(*person, work.initiator);
            } else {
                assert!(!work.requesters.contains(person));
            }
            for way in ways {
                assert!(
                    way_is_true(&work, &directory, person, way),
                    "{person} {way:?}"
                );
                let Way::Substitute { of, via } = way else {
                    continue;
                };
                assert!(!work.own_work && !work.decided.contains(of));
                for id in [of].into_iter().chain(via) {
                    assert!(!work.exclude.contains(id) && !work.requesters.contains(id));
                }
            }
        }
        if let Some(owner) = &work.owner {
            let others = |way: &Way| !matches!(way, Way::Owner | Way::Substitute { .. });
            assert!(!eligibility.eligible.values().flatten().any(others));
            if !eligibility.eligible.is_empty() {
                assert!(eligibility.eligible.contains_key(&owner.id), "{owner:?}");
            }
        }
    }
    assert!(
        eligible > 1_000 && excluded > 1_000,
        "{eligible} {excluded}"
    );
}

/// So many people, all of whom are absent for some of the others.
fn crowd(people: usize) -> Directory {
    let names: Vec<_> = (0..people).map(|number| format!("p{number:05}")).collect();
    let absent: Vec<_> = (1..people)
        .map(|number| stands_in(&names[number], &names[number - 1], None))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    directory(&names, &absent)
}

#[test]
fn so_much_is_looked_at_and_the_answer_says_that_there_may_be_more() {
    let (few, many) = (crowd(100), crowd(EXAMINED_MAX));
    assert!(!judge(&work(), &few).cut);
    let lacking = Directory {
        lacks_absences: true,
        ..few
    };
    assert!(judge(&work(), &lacking).cut);
    let eligibility = judge(&work(), &many);
    assert!(eligibility.cut && !eligibility.eligible.is_empty());
    assert!(
        eligibility.eligible.len() < EXAMINED_MAX / 2,
        "{}",
        eligibility.eligible.len()
    );
    // The same work again costs nothing.
    let mut judge = Judge::of(&many);
    let rounds = EXAMINED_IN_ALL_MAX / EXAMINED_MAX;
    for _ in 0..=rounds {
        assert_eq!(judge.judge(&work()), eligibility);
    }
    for round in 0..rounds {
        let other = Work {
            decided: vec![format!("q{round}")],
            ..work()
        };
        let judged = judge.judge(&other);
        assert!(
            judged.cut && judged.eligible.is_empty() == (round + 1 == rounds),
            "{round}"
        );
    }
}
