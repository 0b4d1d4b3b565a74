//! Searches by attributes over HTTP: the same question again and again, page by page, one caller.

use std::time::Instant;

use clap::Args;

use crate::load::{Connection, milliseconds};

/// What is asked, and what for. The fill script says what there is to be found.
const QUESTIONS: [(&str, &str); 9] = [
    ("selective eq", "attribute.reference=REF-000500000"),
    ("broad range", "attribute.amount=gt:1000"),
    (
        "narrow range",
        "attribute.amount=gte:5000&attribute.amount=lt:5010",
    ),
    ("exact decimal", "attribute.amount=eq:1234.560"),
    ("in", "attribute.region=in:EU,APAC"),
    ("prefix", "attribute.reference=prefix:REF-0005"),
    (
        "with definition",
        "definition=bench-returns&attribute.amount=gt:9000&attribute.region=EU",
    ),
    ("only old ones", "attribute.region=OLD&include=attributes"),
    (
        "flag and range",
        "attribute.urgent=true&attribute.amount=lt:500",
    ),
];
/// How many pages of an answer are read in a row.
const PAGES_MAX: usize = 5;

#[derive(Args)]
pub(crate) struct Search {
    /// Where the host listens.
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: String,
    /// Bearer token of somebody who may read instances.
    #[arg(long, env = "BENCH_AUTHOR")]
    author: String,
    /// How many requests to measure for each question.
    #[arg(long, default_value_t = 200)]
    count: usize,
}

impl Search {
    /// A line for each question: latencies, and how many lines the first page had.
    pub(crate) async fn run(self) -> anyhow::Result<String> {
        let mut connection = Connection::open(&self.address).await?;
        let mut report = Vec::new();
        for (name, question) in QUESTIONS {
            let path = format!("/v1/instances?{question}");
            let mut latencies = Vec::with_capacity(self.count);
            let (mut found, mut cursor, mut pages) = (0, None, 0);
            while latencies.len() < self.count {
                let page = match &cursor {
                    Some(cursor) => format!("{path}&after={cursor}"),
                    None => path.clone(),
                };
                let begun = Instant::now();
                let answer = connection.get(&self.author, &page).await?;
                latencies.push(begun.elapsed());
                if cursor.is_none() {
                    found = answer["data"].as_array().map_or(0, Vec::len);
                }
                pages += 1;
                let next = answer["page"]["next"].as_str().map(str::to_owned);
                cursor = next.filter(|_| pages % PAGES_MAX != 0);
            }
            latencies.sort_unstable();
            let at =
                |quantile: usize| milliseconds(latencies[(latencies.len() - 1) * quantile / 100]);
            report.push(format!(
                "search  {name:<16} {found:>3} lines  p50 {:>7} ms  p95 {:>7} ms",
                at(50),
                at(95)
            ));
        }
        Ok(report.join("\n"))
    }
}

/// The statements that fill a database with this many instances.
pub(crate) fn fill(instances: u32) -> String {
    include_str!("fill_search.sql").replace("INSTANCES", &instances.to_string())
}
