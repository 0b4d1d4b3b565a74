//! Measures decisions over HTTP, and prints the same work as a `pgbench` script to hold them against. Beside it, searches.
//!
//! `bench/run.sh` runs both in turn on one machine; absolute figures of one run mean little, ratios within it
//! are what counts.

mod guests;
mod load;
mod search;
mod statement;

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
    /// Calls of flow logic in fresh instances, and cold loads.
    Guests(guests::Guests),
    /// Searches instances by their attributes.
    Search(search::Search),
    /// Prints the SQL that fills a database for searches.
    FillSearch { instances: u32 },
    /// Prints the script: the read and the commit statement of a decision.
    Statement { instances: u32 },
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Decide(decide) => println(&decide.run().await?),
        Command::Fill { instances } => println(&statement::fill(instances)),
        Command::Guests(guests) => println(&guests.run().await?),
        Command::Search(search) => println(&search.run().await?),
        Command::FillSearch { instances } => println(&search::fill(instances)),
        Command::Statement { instances } => println(&statement::script(instances)),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the output of this program")]
fn println(text: &str) {
    println!("{text}");
}
