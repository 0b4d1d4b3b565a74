//! The largest calendar, and as many deadlines in its working time as one assignment may have, as far in the future as possible.

use super::*;

/// The most holidays of a calendar.
const HOLIDAYS: i64 = 1_000;
/// As many exceptional days as fit beside them.
const DAYS: i64 = 950;
/// In one assignment.
const DEADLINES: usize = 400;
/// Of one task.
const PER_TASK: usize = 16;

/// Short working intervals, and as many exceptional days as fit: no two weeks are alike.
fn largest() -> Value {
    let first = jiff::civil::date(2026, 1, 1);
    let day = |number: i64| {
        first
            .saturating_add(jiff::Span::new().days(number))
            .to_string()
    };
    let hours: Vec<_> = (0..24)
        .map(|hour| json!({ "from": format!("{hour:02}:00"), "until": format!("{hour:02}:01") }))
        .collect();
    let week: serde_json::Map<_, _> = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ]
    .map(|day| (day.to_owned(), json!(hours)))
    .into_iter()
    .collect();
    let holidays: Vec<_> = (0..HOLIDAYS).map(|number| day(number * 7)).collect();
    let exceptions: serde_json::Map<_, _> = (0..DAYS)
        .map(|number| {
            (
                day(number * 7 + 3),
                json!([{ "from": "00:00", "until": "00:01" }]),
            )
        })
        .collect();
    json!({ "timeZone": "Europe/Berlin", "hours": week, "holidays": holidays, "exceptions": exceptions })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_calendar_and_the_farthest_deadlines_delay_nobody() {
    let fixture = Fixture::open().await;
    let path = "/v1/calendars/largest";
    let put = CostlyRequest::send("a calendar", "admin", ("PUT", path), &largest());
    fixture.delays_nobody(put).await;
    fixture
        .delays_nobody(CostlyRequest::get(
            "a calendar, read",
            "admin",
            path.to_owned(),
        ))
        .await;
    fixture.with_committee().await;
    // Nearly all the working time in twenty years: about two hours a week.
    let deadline = json!({ "after": 7_000_000, "working": "largest", "do": "remind" });
    let offer = json!({ "groups": ["reviewers"], "deadlines": vec![deadline; PER_TASK] });
    let offers = vec![offer; DEADLINES / PER_TASK];
    let start = json!({
        "definitionKey": "committee", "entityType": "thing", "entityId": "far",
        "data": { "assign": { "offers": offers, "needed": 1 } },
    });
    let start = CostlyRequest::send(
        "deadlines",
        "author",
        ("POST", "/v1/instances?dryRun=true"),
        &start,
    );
    fixture.delays_nobody(start).await;
}
