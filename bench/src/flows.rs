//! The same flow on wrkflw and on other engines, from one closed loop: callers never pause between calls or flows.

mod engine;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use self::engine::{Caller, Engine, Tokens};
use crate::load::{Connection, milliseconds};

/// The times of the calls of each step.
type Steps = BTreeMap<&'static str, Vec<Duration>>;

const WHOLE: &str = "flow";
const COLUMNS: [&str; 6] = [WHOLE, "start", "look up", "claim", "decide", "wait"];
/// Callers during the warm-up.
const WARMING: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Flows {
    #[arg(long)]
    engine: Engine,
    #[arg(long)]
    address: String,
    #[command(flatten)]
    tokens: Tokens,
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32])]
    callers: Vec<usize>,
    /// How long a run lasts.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Number of runs. The one with the median throughput is shown in full, the others only by their throughput.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Length of the warm-up. Virtual machines with a JIT compiler need minutes
    #[arg(long, default_value_t = 20)]
    warm_up: u64,
}

struct Run {
    flows_per_second: f64,
    steps: Steps,
}

impl Flows {
    /// Rows of a Markdown table.
    pub(crate) async fn run(self) -> anyhow::Result<String> {
        if self.warm_up > 0 {
            self.measure(WARMING, Duration::from_secs(self.warm_up))
                .await?;
        }
        let mut rows = Vec::new();
        for callers in &self.callers {
            let mut runs = Vec::with_capacity(self.runs);
            for _ in 0..self.runs.max(1) {
                runs.push(
                    self.measure(*callers, Duration::from_secs(self.seconds))
                        .await?,
                );
            }
            let each: Vec<String> = runs
                .iter()
                .map(|run| format!("{:.0}", run.flows_per_second))
                .collect();
            runs.sort_by(|one, other| one.flows_per_second.total_cmp(&other.flows_per_second));
            let median = runs.swap_remove(runs.len() / 2);
            let name = format!("{:?}", self.engine).to_lowercase();
            let Run {
                flows_per_second,
                mut steps,
            } = median;
            let each = each.join(", ");
            let mut row = vec![format!(
                "| {name} | {callers} | {flows_per_second:.0} ({each}) |"
            )];
            for column in COLUMNS {
                row.push(format!(" {} |", quantiles(steps.remove(column))));
            }
            rows.push(row.concat());
        }
        Ok(rows.join("\n"))
    }

    async fn measure(&self, callers: usize, duration: Duration) -> anyhow::Result<Run> {
        let begun = Instant::now();
        let mut running = JoinSet::new();
        let unique = format!("{}-{}", std::process::id(), unique_now());
        for number in 0..callers {
            let mut caller = Caller {
                connection: Connection::open(&self.address).await?,
                tokens: self.tokens.clone(),
                steps: Steps::new(),
            };
            let (engine, unique) = (self.engine, unique.clone());
            running.spawn(async move {
                let mut count = 0;
                while begun.elapsed() < duration {
                    let since = Instant::now();
                    caller
                        .flow(engine, &format!("{unique}-{number}-{count}"), count == 0)
                        .await?;
                    caller.steps.entry(WHOLE).or_default().push(since.elapsed());
                    count += 1;
                }
                anyhow::Ok(caller.steps)
            });
        }
        let mut steps = Steps::new();
        while let Some(caller) = running.join_next().await {
            for (name, mut times) in caller?? {
                steps.entry(name).or_default().append(&mut times);
            }
        }
        let flows = steps.get(WHOLE).map_or(0, Vec::len);
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 flows")]
        let flows_per_second = flows as f64 / begun.elapsed().as_secs_f64();
        Ok(Run {
            flows_per_second,
            steps,
        })
    }
}

/// Makes this run's keys differ from those of earlier runs.
#[expect(
    clippy::disallowed_methods,
    reason = "a load generator has no clock to be passed"
)]
fn unique_now() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}

/// The median and the 95th percentile, in milliseconds.
fn quantiles(times: Option<Vec<Duration>>) -> String {
    let Some(mut times) = times.filter(|times| !times.is_empty()) else {
        return "-".into();
    };
    times.sort_unstable();
    let at = |quantile: usize| milliseconds(times[(times.len() - 1) * quantile / 100]);
    format!("{} / {}", at(50), at(95))
}
