//! Random searches by attributes, compared with a filter that checks every instance; and searches on a slow database.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::attributes::{all, filled, give};
use super::*;

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }
}

/// The values of each attribute in ascending order. Equal values have the same index.
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
/// Whether an order of two values satisfies a condition.
type Meets = fn(Ordering) -> bool;
const COMPARISONS: [(&str, Meets); 6] = [
    ("eq", Ordering::is_eq),
    ("ne", Ordering::is_ne),
    ("gt", Ordering::is_gt),
    ("gte", Ordering::is_ge),
    ("lt", Ordering::is_lt),
    ("lte", Ordering::is_le),
];

/// A condition of a request, and the indexes of the attribute's values that satisfy it. None stands for an instance without the
/// attribute.
fn condition(random: &mut Random) -> (usize, String, BTreeSet<Option<usize>>) {
    let attribute = random.roll(VALUES.len());
    let (name, kind, values) = VALUES[attribute];
    let pick = |random: &mut Random| {
        let place = random.roll(values.len());
        (place, values[place][random.roll(values[place].len())])
    };
    let (query, met): (String, BTreeSet<_>) = match random.roll(10) {
        0 => (
            "exists:true".to_owned(),
            (0..values.len()).map(Some).collect(),
        ),
        1 => ("exists:false".to_owned(), BTreeSet::from([None])),
        2 => {
            let (one, other) = (pick(random), pick(random));
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
            let (operator, holds) = COMPARISONS[random.roll(COMPARISONS.len())];
            let (place, written) = pick(random);
            let meets = (0..values.len()).filter(|other| holds(other.cmp(&place)));
            (format!("{operator}:{written}"), meets.map(Some).collect())
        }
    };
    (attribute, format!("attribute.{name}={query}"), met)
}

#[tokio::test]
async fn a_search_finds_what_a_full_scan_finds() {
    const INSTANCES: i64 = 200;
    const SEARCHES: usize = 120;
    let app = filled(INSTANCES).await;
    let mut random = Random(2026);
    let mut held = vec![[None; VALUES.len()]; usize::try_from(INSTANCES).expect("few")];
    for (attribute, (name, kind, values)) in VALUES.into_iter().enumerate() {
        let mut given = Vec::new();
        for (number, held) in (1..).zip(&mut held) {
            let place = random.roll(values.len() + 1);
            held[attribute] = (place < values.len()).then_some(place);
            let written =
                held[attribute].map(|place| values[place][random.roll(values[place].len())]);
            given.extend(written.map(|written| (number, written.replace("%2B", "+"))));
        }
        give(&app, name, kind, &given).await;
    }
    for _ in 0..SEARCHES {
        let conditions: Vec<_> = (0..=random.roll(4))
            .map(|_| condition(&mut random))
            .collect();
        let running = random.roll(3) == 0;
        let mut query: Vec<_> = conditions
            .iter()
            .map(|(_, query, _)| query.clone())
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
            all(&app, &query, 1 + random.roll(60)).await,
            expected,
            "{query}"
        );
    }
}

/// Delays readers by this time for each row of a table.
async fn slow(app: &TestApp, table: &str, milliseconds: u32) {
    let policy = format!(
        "create policy slow_{milliseconds} on {table} as restrictive for select to wrkflw_reader
         using (pg_sleep({milliseconds}::float8 / 1000)::text is not null)"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(policy))
        .execute(app.database.admin_pool())
        .await
        .expect("a policy");
}

/// The items of a list, and the number of its pages.
async fn paged(app: &TestApp, path: &str) -> (Vec<Value>, usize) {
    let (mut items, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = app.get("author", &format!("{path}{after}")).await;
        let page = page.expect(200);
        items.extend(page["data"].as_array().expect("items").clone());
        pages += 1;
        match page["page"]["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return (items, pages),
        }
    }
}

#[tokio::test]
async fn a_slow_search_returns_a_cursor_to_continue() {
    const INSTANCES: i64 = 1_500;
    let app = filled(INSTANCES).await;
    let european: Vec<_> = (2..=INSTANCES)
        .map(|number| (number, "EU".to_owned()))
        .collect();
    give(&app, "region", "text", &european).await;
    slow(&app, "instance", 3).await;
    for (path, wanted) in [
        // A search in the order of the instances, whose only match comes last, and a search by an index.
        ("/v1/instances?attribute.region=exists:false&limit=5", 1),
        ("/v1/instances?attribute.region=EU&state=Nowhere&limit=5", 0),
    ] {
        let (found, pages) = paged(&app, path).await;
        assert_eq!(found.len(), wanted, "{path}");
        assert!(pages > 1, "{path}: {pages} pages");
    }
}

#[tokio::test]
async fn a_slow_list_of_tasks_returns_a_cursor_to_continue() {
    let app = TestApp::start().await;
    app.started("first").await;
    let more = "insert into task
        select (jsonb_populate_record(t, jsonb_build_object(
            'id', 'ffffffff' || lpad(to_hex(n), 24, '0'), 'label', case n when 1500 then 'rare' else t.label end
        ))).*
        from task t, generate_series(1, 1500) n";
    sqlx::raw_sql(more)
        .execute(app.database.admin_pool())
        .await
        .expect("tasks");
    // Two steps of the list, 640 tasks, take longer than the time limit of a list.
    slow(&app, "task", 4).await;
    let (found, pages) = paged(&app, "/v1/tasks?view=all&label=rare&limit=5").await;
    assert!(found.len() == 1 && pages > 1, "{found:?} on {pages} pages");
}

#[tokio::test]
async fn the_database_ends_a_statement_that_takes_too_long() {
    let app = filled(300).await;
    slow(&app, "instance", 100).await;
    let begun = Instant::now();
    let answer = app.get("author", "/v1/instances?state=Nowhere").await;
    answer.problem(503, "unavailable");
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    let going_on = "select count(*) from pg_stat_activity
        where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
    let going_on: i64 = sqlx::query_scalar(going_on)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(going_on, 0);
}
