//! Measures decisions over HTTP, and prints the same work as a `pgbench` script for comparison. Also measures searches, the
//! relay, the sandbox and the audit.
//!
//! `bench/run.sh` runs both in turn on one machine. Absolute figures of one run mean little; compare ratios within it.

mod flows;
mod guests;
mod load;
mod relay;
mod search;
mod statement;
mod usage;
mod verify;
mod votes;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Load for wrkflw")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts and claims tasks, then decides them from several clients at once.
    Decide(load::Decide),
    /// Prints the SQL that fills a database for the script.
    Fill { instances: u32 },
    /// Runs the two-review approval on wrkflw or another engine, repeatedly.
    Flows(flows::Flows),
    /// Prints the SQL that inserts a backlog of events.
    FillRelay { instances: u32, each: u32 },
    /// Measures the relay by its metrics.
    Relay(relay::Relay),
    /// Calls of flow logic in fresh instances, and cold loads.
    Guests(guests::Guests),
    /// Sends searches or lists, page by page.
    Search(search::Search),
    /// Prints the SQL that fills a database for a set of them.
    FillFor { set: search::Set, instances: u32 },
    /// Verifies the chain of entries in memory, on one core.
    Verify(verify::Verify),
    /// Lets all voters vote on one instance concurrently.
    Votes(votes::Votes),
    /// Prints the script: the read and the commit statement of a decision.
    Statement {
        instances: u32,
        /// Decisions in one statement.
        #[arg(long, default_value_t = 1)]
        batch: u32,
    },
    /// Prints the processor time of a process and its children so far, in microseconds.
    Usage { pid: u32 },
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Decide(decide) => println(&decide.run().await?),
        Command::Fill { instances } => println(&statement::fill(instances)),
        Command::Flows(flows) => println(&flows.run().await?),
        Command::FillRelay { instances, each } => println(&relay::fill(instances, each)),
        Command::Relay(relay) => println(&relay.run().await?),
        Command::Guests(guests) => println(&guests.run().await?),
        Command::Search(search) => println(&search.run().await?),
        Command::FillFor { set, instances } => println(&set.fill(instances)),
        Command::Statement { instances, batch } => {
            anyhow::ensure!(
                (1..=instances).contains(&batch),
                "--batch is 1 to {instances}, the number of instances"
            );
            println(&statement::script(instances, batch));
        }
        Command::Usage { pid } => {
            println(&usage::processor_time(pid)?.as_micros().to_string());
        }
        Command::Verify(verify) => println(&verify.run()),
        Command::Votes(votes) => println(&votes.run().await?),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the output of this program")]
fn println(text: &str) {
    println!("{text}");
}
