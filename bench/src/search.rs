//! Searches and lists over HTTP: the same request repeatedly, page by page, from one caller.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use self::Person::{Admin, Author, Reviewer, SecondReviewer};
use crate::load::{Connection, milliseconds};

/// Name, caller and path of a request. The fill scripts describe the rows.
type Question = (&'static str, Person, &'static str);

/// The caller.
#[derive(Clone, Copy)]
enum Person {
    Admin,
    Author,
    Reviewer,
    SecondReviewer,
}

const SEARCHES: [Question; 9] = [
    (
        "selective eq",
        Author,
        "/v1/instances?attribute.reference=REF-000500000",
    ),
    (
        "broad range",
        Author,
        "/v1/instances?attribute.amount=gt:1000",
    ),
    (
        "narrow range",
        Author,
        "/v1/instances?attribute.amount=gte:5000&attribute.amount=lt:5010",
    ),
    (
        "exact decimal",
        Author,
        "/v1/instances?attribute.amount=eq:1234.560",
    ),
    ("in", Author, "/v1/instances?attribute.region=in:EU,APAC"),
    (
        "prefix",
        Author,
        "/v1/instances?attribute.reference=prefix:REF-0005",
    ),
    (
        "with definition",
        Author,
        "/v1/instances?definitionKey=bench-returns&attribute.amount=gt:9000&attribute.region=EU",
    ),
    (
        "only old ones",
        Author,
        "/v1/instances?attribute.region=OLD&include=attributes",
    ),
    (
        "flag and range",
        Author,
        "/v1/instances?attribute.urgent=true&attribute.amount=lt:500",
    ),
];

const LISTS: [Question; 21] = [
    ("all open tasks", Author, "/v1/tasks?view=all"),
    ("offered to many", Reviewer, "/v1/tasks?view=available"),
    ("offered to one", SecondReviewer, "/v1/tasks?view=available"),
    ("mine", Reviewer, "/v1/tasks?view=mine"),
    (
        "high priority",
        Reviewer,
        "/v1/tasks?view=available&minPriority=4",
    ),
    (
        "of a definition",
        Reviewer,
        "/v1/tasks?view=available&definitionKey=bench-returns",
    ),
    (
        "of a rare state",
        Reviewer,
        "/v1/tasks?view=available&state=FinalReview",
    ),
    ("instances", Author, "/v1/instances"),
    ("running instances", Author, "/v1/instances?status=RUNNING"),
    (
        "of an entity",
        Author,
        "/v1/instances?entityType=bench-lists&entityId=1001",
    ),
    (
        "with all parts",
        Reviewer,
        "/v1/tasks?view=available&include=outcomes,actions,people",
    ),
    ("of groups", Reviewer, "/v1/tasks?view=groups"),
    (
        "tasks of an entity",
        Author,
        "/v1/tasks?view=all&entityType=bench-lists&entityId=1001",
    ),
    (
        "late tasks",
        Author,
        "/v1/tasks?view=all&dueBefore=2025-01-01T00:00:00Z",
    ),
    ("by deadline", Author, "/v1/tasks?view=all&sort=dueAt"),
    (
        "ended by somebody",
        Author,
        "/v1/tasks?view=all&owner=reviewer&status=COMPLETED",
    ),
    (
        "suspended instances",
        Author,
        "/v1/instances?status=SUSPENDED",
    ),
    (
        "late instances",
        Author,
        "/v1/instances?dueBefore=2025-01-01T00:00:00Z",
    ),
    (
        "stale instances",
        Author,
        "/v1/instances?status=RUNNING&updatedBefore=2024-02-01T00:00:00Z",
    ),
    ("by a rare word", Author, "/v1/instances?q=customer-500001"),
    ("by a common word", Author, "/v1/instances?q=order"),
];

/// Pages of the console, which are read with the lists. The first page each, again and again.
const PAGES: [Question; 3] = [
    ("page: inbox", Reviewer, "/console"),
    ("page: all tasks", Author, "/console?view=all"),
    (
        "page: priority",
        Reviewer,
        "/console?view=available&minPriority=4",
    ),
];

/// The path of the first instance of the fill script.
macro_rules! long {
    ($rest:literal) => {
        concat!("/v1/instances/018f0000-0001-7000-8000-000000000001", $rest)
    };
}

const HISTORY: [Question; 7] = [
    ("of an instance", Admin, long!("/audit")),
    ("of a person in it", Admin, long!("/audit?actor=rare")),
    (
        "of an entity",
        Admin,
        "/v1/entities/bench-history/1001/history",
    ),
    ("of all", Admin, "/v1/audit"),
    ("of a type", Admin, "/v1/audit?type=SECOND"),
    ("of a person", Admin, "/v1/audit?actor=rare"),
    ("of nobody", Admin, "/v1/audit?actor=nobody"),
];

/// The sets of requests.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Set {
    Searches,
    Lists,
    /// The lists where only participants see an instance.
    Restricted,
    History,
}

impl Set {
    /// The statements that fill a database with this many instances.
    pub(crate) fn fill(self, instances: u32) -> String {
        let script = match self {
            Set::Searches => include_str!("fill_search.sql"),
            Set::Lists | Set::Restricted => include_str!("fill_lists.sql"),
            Set::History => include_str!("fill_history.sql"),
        };
        let restricted = matches!(self, Set::Restricted);
        script
            .replace("INSTANCES", &instances.to_string())
            .replace("RESTRICTED", &restricted.to_string())
    }
}

/// Limit of the pages that are read in a row.
const PAGES_MAX: usize = 5;

#[derive(Args)]
pub(crate) struct Search {
    /// Address of the host.
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: String,
    #[arg(long, value_enum, default_value_t = Set::Searches)]
    set: Set,
    /// Bearer tokens: all three may read instances and tasks, the administrator also the audit, and the reviewers the tasks that
    /// are offered to them.
    #[arg(long, env = "BENCH_AUTHOR")]
    author: String,
    #[arg(long, env = "BENCH_ADMIN", default_value = "")]
    admin: String,
    #[arg(long, env = "BENCH_REVIEWER", default_value = "")]
    reviewer: String,
    #[arg(long, env = "BENCH_REVIEWER2", default_value = "")]
    second_reviewer: String,
    /// How many requests to measure for each question.
    #[arg(long, default_value_t = 200)]
    count: usize,
}

impl Search {
    /// Prints a line for each request: latencies, and the number of lines of the first page.
    pub(crate) async fn run(self) -> anyhow::Result<String> {
        let mut connection = Connection::open(&self.address).await?;
        let mut report = Vec::new();
        let questions: &[Question] = match self.set {
            Set::Searches => &SEARCHES,
            Set::Lists | Set::Restricted => &LISTS,
            Set::History => &HISTORY,
        };
        for (name, person, path) in questions {
            let token = self.token(*person);
            let mut latencies = Vec::with_capacity(self.count);
            let (mut found, mut cursor, mut pages) = (0, None, 0);
            while latencies.len() < self.count {
                let page = match &cursor {
                    Some(cursor) if path.contains('?') => format!("{path}&after={cursor}"),
                    Some(cursor) => format!("{path}?after={cursor}"),
                    None => (*path).to_owned(),
                };
                let begun = Instant::now();
                let answer = connection.get(token, &page).await?;
                latencies.push(begun.elapsed());
                if cursor.is_none() {
                    found = answer["data"].as_array().map_or(0, Vec::len);
                }
                pages += 1;
                let next = answer["page"]["next"].as_str().map(str::to_owned);
                cursor = next.filter(|_| pages % PAGES_MAX != 0);
            }
            report.push(line(name, found, latencies));
        }
        if matches!(self.set, Set::Lists | Set::Restricted) {
            for question in PAGES {
                report.push(self.pages(&mut connection, question).await?);
            }
        }
        Ok(report.join("\n"))
    }

    fn token(&self, person: Person) -> &str {
        match person {
            Admin => &self.admin,
            Author => &self.author,
            Reviewer => &self.reviewer,
            SecondReviewer => &self.second_reviewer,
        }
    }

    async fn pages(
        &self,
        connection: &mut Connection,
        (name, person, path): Question,
    ) -> anyhow::Result<String> {
        let cookie = connection.sign_in(self.token(person)).await?;
        let mut latencies = Vec::with_capacity(self.count);
        let mut found = 0;
        while latencies.len() < self.count {
            let begun = Instant::now();
            let page = connection.page(&cookie, path).await?;
            latencies.push(begun.elapsed());
            let text = str::from_utf8(&page)?;
            found = text.matches("data-task=").count();
        }
        Ok(line(name, found, latencies))
    }
}

/// The line of a request: the number of lines of its first page, and latencies.
fn line(name: &str, found: usize, mut latencies: Vec<Duration>) -> String {
    latencies.sort_unstable();
    let at = |quantile: usize| milliseconds(latencies[(latencies.len() - 1) * quantile / 100]);
    format!(
        "{name:<18} {found:>3} lines  p50 {:>7} ms  p95 {:>7} ms",
        at(50),
        at(95)
    )
}
