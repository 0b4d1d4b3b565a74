//! Many voters on one instance: all vote at the same time, over HTTP, one instance after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::load::{Connection, milliseconds};
use super::usage::processor_time;

#[derive(clap::Args)]
pub(crate) struct Votes {
    #[arg(long)]
    address: String,
    /// Bearer token of the person who starts the votes.
    #[arg(long, env = "BENCH_AUTHOR", hide_env_values = true)]
    author: String,
    /// A file with a voter per line: their id, a space, their bearer token.
    #[arg(long)]
    voters: PathBuf,
    /// Number of votes.
    #[arg(long, default_value_t = 20)]
    count: usize,
    /// The host's process id, to measure its processor time.
    #[arg(long)]
    host: u32,
    /// The process id of the database server's first process, to measure its processor time.
    #[arg(long)]
    database: u32,
}

struct Voter {
    id: String,
    token: String,
    connection: Connection,
}

impl Votes {
    /// Prints one line: voters, votes per second, latencies, and the cost of each.
    pub(crate) async fn run(self) -> anyhow::Result<String> {
        let mut voters = Vec::new();
        for line in std::fs::read_to_string(&self.voters)?.lines() {
            let (id, token) = line.split_once(' ').context("no token in a line")?;
            voters.push(Voter {
                id: id.to_owned(),
                token: token.to_owned(),
                connection: Connection::open(&self.address).await?,
            });
        }
        ensure!(!voters.is_empty(), "nobody votes");
        let (mut latencies, mut elapsed) = (Vec::new(), Duration::ZERO);
        let (mut host, mut database) = (Duration::ZERO, Duration::ZERO);
        for number in 0..self.count {
            let tasks = self.start(&mut voters, number).await?;
            let before = (processor_time(self.host)?, processor_time(self.database)?);
            let begun = Instant::now();
            latencies.extend(all_at_once(&mut voters, tasks).await?);
            elapsed += begun.elapsed();
            host += processor_time(self.host)?.saturating_sub(before.0);
            database += processor_time(self.database)?.saturating_sub(before.1);
        }
        latencies.sort_unstable();
        let at = |quantile: usize| milliseconds(latencies[(latencies.len() - 1) * quantile / 100]);
        let cast = u32::try_from(latencies.len())?;
        Ok(format!(
            "votes   {:>3} voters  {:>6.0}/s  p50 {:>7} ms  p95 {:>7} ms  p99 {:>7} ms  host {:>4} us  postgres {:>4} us",
            voters.len(),
            f64::from(cast) / elapsed.as_secs_f64(),
            at(50),
            at(95),
            at(99),
            (host / cast).as_micros(),
            (database / cast).as_micros(),
        ))
    }

    /// Starts a vote that needs every vote. The tasks are in the order of the voters.
    async fn start(&self, voters: &mut [Voter], number: usize) -> anyhow::Result<Vec<String>> {
        let owned = |voter: &Voter| json!({ "owner": voter.id });
        let offers: Vec<Value> = voters.iter().map(owned).collect();
        let body = json!({
            "definitionKey": "committee", "entityType": "votes", "entityId": format!("{}-{number}", std::process::id()),
            "data": { "assign": { "needed": offers.len(), "offers": offers } },
        });
        let first = &mut voters[0].connection;
        let instance = first.post(&self.author, "/v1/instances", body).await?;
        let tasks = instance["instance"]["states"][0]["tasks"]
            .as_array()
            .context("no tasks")?;
        ensure!(
            tasks.len() == voters.len(),
            "not everybody may vote: {instance}"
        );
        let id = |task: &Value| task["id"].as_str().map(str::to_owned).context("no id");
        tasks.iter().map(id).collect()
    }
}

async fn all_at_once(voters: &mut Vec<Voter>, tasks: Vec<String>) -> anyhow::Result<Vec<Duration>> {
    let start = Arc::new(Barrier::new(voters.len()));
    let mut voting = JoinSet::new();
    for (number, (mut voter, task)) in voters.drain(..).zip(tasks).enumerate() {
        let start = start.clone();
        voting.spawn(async move {
            start.wait().await;
            let begun = Instant::now();
            let path = format!("/v1/tasks/{task}/decide");
            let body = json!({ "outcome": "YES" });
            voter.connection.post(&voter.token, &path, body).await?;
            anyhow::Ok((number, voter, begun.elapsed()))
        });
    }
    let mut back = Vec::new();
    while let Some(voted) = voting.join_next().await {
        back.push(voted??);
    }
    back.sort_by_key(|(number, ..)| *number);
    let mut latencies = Vec::new();
    for (_, voter, latency) in back {
        voters.push(voter);
        latencies.push(latency);
    }
    Ok(latencies)
}
