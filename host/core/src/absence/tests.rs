//! Tables of absences that are allowed or refused, and random ones against a small model.

use super::*;

fn day(day: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * day)
}

/// `A>B 1-5` or, for one definition, `A>B 1-5 key`.
fn absence(text: &str) -> Absence {
    let mut parts = text.split(' ');
    let (person, substitute) = parts.next().expect("people").split_once('>').expect("two");
    let (from, until) = parts
        .next()
        .expect("a period")
        .split_once('-')
        .expect("two");
    Absence {
        person: person.into(),
        substitute: substitute.into(),
        definition: parts.next().map(str::to_owned),
        from: day(from.parse().expect("a day")),
        until: day(until.parse().expect("a day")),
    }
}

fn fits(new: &str, held: &[&str]) -> &'static str {
    let held: Vec<_> = held.iter().map(|text| absence(text)).collect();
    match absence(new).fits(&held) {
        Ok(()) => "fits",
        Err(refusal) => refusal.code(),
    }
}

#[test]
fn an_absence_makes_sense_by_itself() {
    let check = |text: &str| absence(text).check(day(10)).map_err(|no| no.code());
    assert_eq!(check("A>B 11-12"), Ok(()));
    assert_eq!(check("A>B 1-11"), Ok(()));
    assert_eq!(check("A>A 11-12"), Err("oneself"));
    assert_eq!(check("A>B 12-12"), Err("backwards"));
    assert_eq!(check("A>B 13-12"), Err("backwards"));
    assert_eq!(check("A>B 9-10"), Err("over"));
    assert_eq!(check("A>B 11-377"), Ok(()));
    assert_eq!(check("A>B 11-378"), Err("too_long"));
}

#[test]
fn absences_fit_together_or_not() {
    for (new, held, expected) in [
        ("A>B 1-5", &[] as &[&str], "fits"),
        // Periods are half open.
        ("A>B 1-5", &["A>C 5-9"], "fits"),
        ("A>B 1-6", &["A>C 5-9"], "overlap"),
        ("A>B 1-9", &["A>B 3-4"], "overlap"),
        ("A>B 1-9 x", &["A>C 3-4"], "fits"),
        ("A>B 1-9 x", &["A>C 3-4 x"], "overlap"),
        ("A>B 1-9 x", &["A>C 3-4 y"], "fits"),
        ("A>B 1-5", &["B>A 4-9"], "circle"),
        ("A>B 1-5", &["B>A 5-9"], "fits"),
        ("A>B 1-9", &["B>C 1-9", "C>A 1-9"], "circle"),
        ("A>B 1-9", &["B>C 1-9", "C>D 1-9", "D>A 1-9"], "circle"),
        // Never all at one time, or never for the same work.
        ("A>B 1-9", &["B>C 1-4", "C>A 4-9"], "fits"),
        ("A>B 1-9 x", &["B>A 1-9 y"], "fits"),
        ("A>B 1-9 x", &["B>A 1-9"], "circle"),
        ("A>B 1-9", &["B>C 1-9 x", "C>A 1-9 y"], "fits"),
        ("A>B 1-9", &["B>C 1-9", "C>D 1-9"], "fits"),
        (
            "A>B 1-9",
            &["B>C 1-9", "C>D 1-9", "D>E 1-9"],
            "chain_too_long",
        ),
        (
            "C>D 1-9",
            &["A>B 1-9", "B>C 1-9", "D>E 1-9"],
            "chain_too_long",
        ),
        (
            "D>E 1-9",
            &["A>B 1-9", "B>C 1-9", "C>D 1-9"],
            "chain_too_long",
        ),
        ("D>E 1-5", &["A>B 1-9", "B>C 1-9", "C>D 5-9"], "fits"),
        // Many may have the same substitute.
        ("A>Z 1-9", &["B>Z 1-9", "C>Z 1-9"], "fits"),
    ] {
        assert_eq!(fits(new, held), expected, "{new} to {held:?}");
    }
}

#[test]
fn a_person_has_few_absences_at_a_time() {
    let many = |count: usize, days: &str| -> Vec<String> {
        (0..count).map(|n| format!("A>B {days} d{n}")).collect()
    };
    let answer = |new: &str, held: &[String]| {
        let held: Vec<_> = held.iter().map(String::as_str).collect();
        fits(new, &held)
    };
    let full = many(AT_A_TIME_MAX, "2-9");
    for new in ["A>B 1-10 x", "A>B 8-20 x", "A>C 2-3 x", "A>C 2-9"] {
        assert_eq!(answer(new, &full), "too_many", "{new}");
    }
    // Before and after them, or of another person.
    for new in ["A>B 1-2 x", "A>B 9-20 x", "C>B 2-9 x"] {
        assert_eq!(answer(new, &full), "fits", "{new}");
    }
    let one_less = many(AT_A_TIME_MAX - 1, "2-9");
    assert_eq!(answer("A>B 1-10 x", &one_less), "fits");
    // Many may follow each other during a long one.
    let one_after_the_other: Vec<_> = (1..30).map(|n| format!("A>B {n}-{} d{n}", n + 1)).collect();
    assert_eq!(answer("A>B 1-30 x", &one_after_the_other), "fits");
    // What is held twice counts once.
    let twice = [many(AT_A_TIME_MAX - 1, "2-9"), one_less].concat();
    assert_eq!(answer("A>B 1-10 x", &twice), "fits");
}

#[test]
fn a_refusal_names_the_chain() {
    let held = ["A>B 1-9", "B>C 1-9", "D>E 1-9"].map(absence);
    let refusal = absence("C>D 2-3").fits(&held).expect_err("too long");
    assert_eq!(
        refusal.to_string(),
        "more than 3 absences in a row: A -> B -> C -> D -> E"
    );
    let refusal = absence("E>D 2-3").fits(&held).expect_err("a circle");
    assert_eq!(refusal.to_string(), "a circle of substitutes: D -> E -> D");
}

/// Numbers from a seed, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The length of the chain of substitutes from this person on a day for work of a definition. Panics on a cycle.
fn depth(held: &[Absence], at: Timestamp, definition: &str, person: &str, left: usize) -> usize {
    assert!(left > 0, "a circle at {at} through {person}");
    let next = held.iter().filter(|one| {
        one.person == person
            && (one.from..one.until).contains(&at)
            && one
                .definition
                .as_deref()
                .is_none_or(|key| key == definition)
    });
    next.map(|one| 1 + depth(held, at, definition, &one.substitute, left - 1))
        .max()
        .unwrap_or(0)
}

#[test]
fn whatever_fits_leaves_no_circle_and_no_long_chain() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 1..=150 {
        let mut random = Random(seed * 0x9e37_79b9);
        let mut held: Vec<Absence> = Vec::new();
        for _ in 0..40 {
            let letter = |number: u64| char::from(b'A' + u8::try_from(number).expect("small"));
            let (person, substitute) = (letter(random.below(7)), letter(random.below(7)));
            let from = random.below(12);
            let until = from + 1 + random.below(5);
            let key = ["", " x", " y"][usize::try_from(random.below(3)).expect("small")];
            let new = absence(&format!("{person}>{substitute} {from}-{until}{key}"));
            if person == substitute {
                continue;
            }
            match new.fits(&held) {
                Ok(()) => {
                    held.push(new);
                    accepted += 1;
                }
                Err(_) => refused += 1,
            }
        }
        for (at, definition) in (0..17).flat_map(|at| [(at, "x"), (at, "y"), (at, "z")]) {
            for person in ["A", "B", "C", "D", "E", "F", "G"] {
                let depth = depth(&held, day(at), definition, person, 20);
                assert!(depth <= LINKS_MAX, "{depth} links from {person} on {at}");
            }
        }
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} {refused}");
}

#[test]
fn nothing_is_refused_without_need() {
    for seed in 1..=150 {
        let mut random = Random(seed * 0x51_7cc1);
        let mut held: Vec<Absence> = Vec::new();
        for _ in 0..25 {
            let letter = |number: u64| char::from(b'A' + u8::try_from(number).expect("small"));
            let (person, substitute) = (letter(random.below(6)), letter(random.below(6)));
            let from = random.below(10);
            let until = from + 1 + random.below(4);
            if person == substitute {
                continue;
            }
            let new = absence(&format!("{person}>{substitute} {from}-{until}"));
            let refused = new.fits(&held).is_err();
            let double = held.iter().any(|one| {
                one.person == new.person && one.from < new.until && new.from < one.until
            });
            let mut with: Vec<_> = held.clone();
            with.push(new.clone());
            let broken = |at: i64| links_break(&with, day(at));
            let needed = double || (0..14).any(broken);
            assert_eq!(refused, needed, "{new:?} to {held:?}");
            if !refused {
                held.push(new);
            }
        }
    }
}

/// Whether a chain of substitutes on that day is too long or has a cycle.
fn links_break(held: &[Absence], at: Timestamp) -> bool {
    held.iter().any(|first| {
        let mut person = first.person.as_str();
        for _ in 0..=LINKS_MAX {
            let next = held
                .iter()
                .find(|one| one.person == person && (one.from..one.until).contains(&at));
            let Some(next) = next else {
                return false;
            };
            person = &next.substitute;
        }
        true
    })
}
