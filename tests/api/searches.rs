//! Random searches by attributes, held against a filter that looks at every instance.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::attributes::{all, filled, give};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }
}

/// What values there are of each attribute, from the lowest to the highest; the same place means equal values.
const VALUES: [(&str, &str, &[&[&str]]); 3] = [
    (
        "amount",
        "decimal",
        &[
            &["-1", "-1.0"],
            &["0", "0.00", "-0"],
            &["0.1", "0.10"],
            &["12.5"],
            &["100"],
        ],
    ),
    (
        "region",
        "text",
        &[&["APAC"], &["EU"], &["EU-east"], &["EU-west"], &["ü"]],
    ),
    (
        "ordered",
        "timestamp",
        &[
            &["2025-12-31T23:59:59Z"],
            &["2026-01-01T00:00:00Z", "2026-01-01T01:00:00%2B01:00"],
            &["2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.500Z"],
        ],
    ),
];
/// Whether an order of two values meets a condition.
type Meets = fn(Ordering) -> bool;
const COMPARISONS: [(&str, Meets); 6] = [
    ("eq", Ordering::is_eq),
    ("ne", Ordering::is_ne),
    ("gt", Ordering::is_gt),
    ("gte", Ordering::is_ge),
    ("lt", Ordering::is_lt),
    ("lte", Ordering::is_le),
];

/// A condition in the words of a request, and the places of the attribute's values that meet it; none stands for an
/// instance without the attribute.
fn condition(dice: &mut Dice) -> (usize, String, BTreeSet<Option<usize>>) {
    let attribute = dice.roll(VALUES.len());
    let (name, kind, values) = VALUES[attribute];
    let pick = |dice: &mut Dice| {
        let place = dice.roll(values.len());
        (place, values[place][dice.roll(values[place].len())])
    };
    let (asked, met): (String, BTreeSet<_>) = match dice.roll(10) {
        0 => (
            "exists:true".to_owned(),
            (0..values.len()).map(Some).collect(),
        ),
        1 => ("exists:false".to_owned(), BTreeSet::from([None])),
        2 => {
            let (one, other) = (pick(dice), pick(dice));
            (
                format!("in:{},{}", one.1, other.1),
                [Some(one.0), Some(other.0)].into(),
            )
        }
        3 if kind == "text" => (
            "prefix:EU".to_owned(),
            (0..values.len())
                .filter(|place| values[*place][0].starts_with("EU"))
                .map(Some)
                .collect(),
        ),
        _ => {
            let (operator, holds) = COMPARISONS[dice.roll(COMPARISONS.len())];
            let (place, written) = pick(dice);
            let meets = (0..values.len()).filter(|other| holds(other.cmp(&place)));
            (format!("{operator}:{written}"), meets.map(Some).collect())
        }
    };
    (attribute, format!("attribute.{name}={asked}"), met)
}

#[tokio::test]
async fn a_search_finds_what_a_naive_filter_finds() {
    const INSTANCES: i64 = 200;
    const SEARCHES: usize = 120;
    let app = filled(INSTANCES).await;
    let mut dice = Dice(2026);
    let mut held = vec![[None; VALUES.len()]; usize::try_from(INSTANCES).expect("few")];
    for (attribute, (name, kind, values)) in VALUES.into_iter().enumerate() {
        let mut given = Vec::new();
        for (number, held) in (1..).zip(&mut held) {
            let place = dice.roll(values.len() + 1);
            held[attribute] = (place < values.len()).then_some(place);
            let written =
                held[attribute].map(|place| values[place][dice.roll(values[place].len())]);
            given.extend(written.map(|written| (number, written.replace("%2B", "+"))));
        }
        give(&app, name, kind, &given).await;
    }
    for _ in 0..SEARCHES {
        let conditions: Vec<_> = (0..=dice.roll(4)).map(|_| condition(&mut dice)).collect();
        let running = dice.roll(3) == 0;
        let mut query: Vec<_> = conditions
            .iter()
            .map(|(_, asked, _)| asked.clone())
            .collect();
        if running {
            query.push("status=RUNNING".to_owned());
        }
        let query = query.join("&");
        let mut expected: Vec<i64> = (1..)
            .zip(&held)
            .filter(|(number, held)| {
                (!running || number % 2 == 0)
                    && conditions
                        .iter()
                        .all(|(attribute, _, met)| met.contains(&held[*attribute]))
            })
            .map(|(number, _)| number)
            .collect();
        expected.reverse();
        assert_eq!(
            all(&app, &query, 1 + dice.roll(60)).await,
            expected,
            "{query}"
        );
    }
}
