//! The throughput and lag of the relay, by its own metrics: events acknowledged per second, and the time until acknowledgement.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const POLL: Duration = Duration::from_millis(20);
/// How long the relay may publish nothing before the measurement fails.
const SILENCE_MAX: Duration = Duration::from_mins(2);
const PUBLISHED: &str = "wrkflw_relay_published_total";
const LAG: &str = "wrkflw_relay_lag_seconds_bucket{le=\"";

#[derive(clap::Args)]
pub(crate) struct Relay {
    /// Address of the relay's host.
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: String,
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Waits until a relay that was started now has published so many events, and prints the rate per second.
    Drain { events: u64 },
    /// Prints quantiles of the lag of the events in the next seconds.
    Lag { seconds: u64 },
}

impl Relay {
    pub(crate) async fn run(self) -> anyhow::Result<String> {
        match self.what {
            What::Drain { events } => self.drain(events).await,
            What::Lag { seconds } => self.lag(Duration::from_secs(seconds)).await,
        }
    }

    async fn drain(&self, events: u64) -> anyhow::Result<String> {
        let first = self.published().await?;
        let (mut begun, mut seen, mut moved) = (Instant::now(), first, Instant::now());
        // The relay may have published some of them already.
        while seen < events {
            tokio::time::sleep(POLL).await;
            let now = self.published().await?;
            if now == first {
                begun = Instant::now();
            }
            if now != seen {
                (seen, moved) = (now, Instant::now());
            }
            if moved.elapsed() > SILENCE_MAX {
                bail!("only {seen} of {events} events were acknowledged");
            }
        }
        let (events, milliseconds) = (u128::from(seen - first), begun.elapsed().as_millis());
        Ok(format!("{}", events * 1000 / milliseconds.max(1)))
    }

    async fn lag(&self, time: Duration) -> anyhow::Result<String> {
        let before = self.buckets().await?;
        tokio::time::sleep(time).await;
        let after = self.buckets().await?;
        let counts: Vec<(String, u64)> = after
            .into_iter()
            .enumerate()
            .map(|(place, (bound, count))| {
                (
                    bound,
                    count - before.get(place).map_or(0, |(_, count)| *count),
                )
            })
            .collect();
        let all = counts.last().map_or(0, |(_, count)| *count);
        if all == 0 {
            bail!("no event was published during the measurement");
        }
        let within = |quantile: u64| {
            let found = counts
                .iter()
                .find(|(_, count)| *count * 100 >= all * quantile);
            found.map_or("?", |(bound, _)| bound)
        };
        Ok(format!(
            "{all} events; p50 within {} s, p95 within {} s, p99 within {} s",
            within(50),
            within(95),
            within(99)
        ))
    }

    async fn published(&self) -> anyhow::Result<u64> {
        let text = self.metrics().await?;
        let line = text.lines().find_map(|line| line.strip_prefix(PUBLISHED));
        Ok(line.map_or(Ok(0), |count| count.trim().parse())?)
    }

    /// The bounds of the histogram, and the number of events up to each.
    async fn buckets(&self) -> anyhow::Result<Vec<(String, u64)>> {
        let text = self.metrics().await?;
        let lines = text.lines().filter_map(|line| line.strip_prefix(LAG));
        lines
            .map(|line| {
                let (bound, count) = line
                    .split_once("\"} ")
                    .context("a bucket of the histogram has no bound")?;
                Ok((bound.to_owned(), count.parse()?))
            })
            .collect()
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(&self.address)
            .await
            .with_context(|| format!("no host at {}", self.address))?;
        let request = format!(
            "GET /metrics HTTP/1.0\r\nhost: {}\r\nconnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let status = text.lines().next().unwrap_or_default();
        if !status.contains(" 200 ") {
            bail!("{} answers {status:?} for its metrics", self.address);
        }
        Ok(text)
    }
}

/// A function that commits one public event of each of so many new instances, and a backlog of `instances` times `each`.
pub(crate) fn fill(instances: u32, each: u32) -> String {
    format!(
        "create or replace function bench_events(instances int, each int) returns void language sql as $$
with i as (
    insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id,
        initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
    select 1, gen_random_uuid(), 'document-approval', 1, each, 'RUNNING', 'bench', gen_random_uuid()::text, 'author',
        '{{author}}', '{{}}', now(), now(), each, '', each, 0
    from generate_series(1, instances)
    returning id),
a as (
    insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, salt,
        occurred_at, hash, event_seq)
    select 1, 'instance', i.id, seq, gen_random_uuid(), 'TASK_CLAIMED', seq, gen_random_uuid(), 'reviewer',
        format('{{\"owner\":\"reviewer\",\"state\":\"%s\",\"task\":\"%s\",\"type\":\"TASK_CLAIMED\"}}', gen_random_uuid(), gen_random_uuid()),
        '', now(), '', seq
    from generate_series(1, each) seq, i
    returning stream_id, seq, pos)
insert into outbox_event (partition, pos, tenant_id, instance_id, seq)
select get_byte(uuid_send(stream_id), 0) % 16, pos, 1, stream_id, seq from a $$;
select bench_events({instances}, {each});"
    )
}
