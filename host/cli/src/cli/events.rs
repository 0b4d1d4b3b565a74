//! `wrkflw events tail`: prints events, one per line, and the cursor to continue from.

use std::io::{BufRead as _, BufReader};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Environment;
use super::client::Client;
use super::connection::ConnectionArgs;
use super::digits;
use super::failure::{Exit, Failure};
use super::instance::entity;
use super::output::{Column, Output};
use super::pick;

/// Reconnections without a new event before an error ends the command.
const RECONNECTS_MAX: u32 = 60;
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that a server is granted.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Subcommand)]
pub(super) enum EventsCommand {
    /// Print events, oldest first, one per line; with `--output json`, as they are
    Tail(TailArgs),
    /// Send published events to Kafka again
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The cursor before the first event; `earliest` for the first event ever
    #[arg(long, value_name = "CURSOR")]
    after: String,
    /// The cursor of the last event; all that there are now, by default
    #[arg(long, value_name = "CURSOR")]
    until: Option<String>,
    /// Only events of this instance: its id or the beginning of it, or TYPE/ID of its entity
    #[arg(long, value_name = "INSTANCE")]
    instance: Option<String>,
    /// Why; the audit keeps it
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Limit of the requests of one replay. Each sends up to a thousand events.
const CALLS_MAX: usize = 10_000;
const REPLAYED: &[Column] = &[("replayed", "/replayed"), ("next", "/next")];

#[derive(Debug, Args)]
pub(super) struct TailArgs {
    /// Wait for further events, from now on or after the given cursor
    #[arg(long, short)]
    follow: bool,
    /// Continue after this cursor of an earlier run; `earliest` begins with the first event
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Stop after this number of events; of the oldest, without --after or --follow
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

type Query = Vec<(&'static str, Option<String>)>;

/// Which events: those for which all of these hold.
#[derive(Debug, Args)]
struct FilterArgs {
    /// Only of this type, such as `task.claimed`, or of a family such as `task.*`
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
    /// Only of instances of this definition
    #[arg(long, value_name = "KEY")]
    definition: Option<String>,
    /// Only of instances about this entity, as TYPE/ID, or of this type
    #[arg(long, value_name = "TYPE/ID")]
    entity: Option<String>,
    /// Only of this instance: its id or the beginning of it, or TYPE/ID of its entity
    #[arg(long, value_name = "INSTANCE")]
    instance: Option<String>,
    /// Only what this person did
    #[arg(long, value_name = "PERSON")]
    actor: Option<String>,
}

impl FilterArgs {
    /// The parameters of the API.
    fn query(self, client: &Client) -> Result<Query> {
        let (kind, id) = match self.entity {
            Some(text) if text.contains('/') => {
                let (kind, id) = entity(&text)?;
                (Some(kind), Some(id))
            }
            kind => (kind, None),
        };
        Ok(vec![
            ("type", self.r#type),
            ("definitionKey", self.definition),
            ("entityType", kind),
            ("entityId", id),
            ("instanceId", instance_id(client, self.instance.as_deref())?),
            ("actor", self.actor),
        ])
    }
}

fn instance_id(client: &Client, named: Option<&str>) -> Result<Option<String>> {
    named
        .map(|text| pick::instance_id(client, text))
        .transpose()
}

const EVENT: &[Column] = &[
    ("", "/time"),
    ("", "/type"),
    ("", "/subject"),
    ("", "/data"),
];

/// How a stream ended.
enum Ended {
    /// The server ended it, or all events that were asked for have come.
    InOrder,
    /// It broke, or could not be opened yet. Has the pause before the next attempt.
    Broken(anyhow::Error, Duration),
}

impl Ended {
    /// A stream that cannot be opened now. Fails if the refusal is final: every refusal is, unless the server says that it is temporary.
    fn unopened(error: anyhow::Error) -> Result<Ended> {
        let pause = match error.downcast_ref::<Failure>() {
            Some(failure) if failure.exit != Exit::Unreachable => failure.passes,
            _ => Some(RECONNECT_PAUSE),
        };
        match pause {
            Some(pause) => Ok(Ended::Broken(
                error,
                pause.clamp(RECONNECT_PAUSE, RECONNECT_PAUSE_MAX),
            )),
            None => Err(error),
        }
    }

    fn broken(error: impl Into<anyhow::Error>) -> Ended {
        Ended::Broken(error.into().context("the stream broke"), RECONNECT_PAUSE)
    }
}

/// The position of the reader.
struct Tail<'a> {
    client: &'a Client,
    output: Output,
    filter: Query,
    cursor: Option<String>,
    left: u64,
}

pub(super) fn run(command: EventsCommand, output: Output, environment: &Environment) -> Result<()> {
    let args = match command {
        EventsCommand::Tail(args) => args,
        EventsCommand::Replay(args) => return replay(args, output, environment),
    };
    let client = args.connection.open(environment)?;
    let mut tail = Tail {
        client: &client,
        output,
        filter: args.filter.query(&client)?,
        cursor: args.after,
        left: args.limit.unwrap_or(u64::MAX),
    };
    if args.follow {
        tail.follow()?;
    } else {
        tail.read_all()?;
    }
    if let Some(cursor) = tail.cursor {
        output.hint(&format!("next: wrkflw events tail --after {cursor}"));
    }
    Ok(())
}

fn replay(args: ReplayArgs, output: Output, environment: &Environment) -> Result<()> {
    let client = args.connection.open(environment)?;
    let instance = instance_id(&client, args.instance.as_deref())?;
    let send = |after: &str| {
        let body = json!({
            "after": after, "until": args.until, "instanceId": instance, "reason": args.reason,
        });
        client.post("/v1/events/replay", &body)
    };
    let replayed = until_no_more(args.after.clone(), CALLS_MAX, send)?;
    output.record(&replayed, REPLAYED)
}

/// Repeats the request until the range ends. Fails if it has not ended after [`CALLS_MAX`] calls.
fn until_no_more(
    mut after: String,
    calls_max: usize,
    send: impl Fn(&str) -> Result<Value>,
) -> Result<Value> {
    let mut replayed = 0;
    for _ in 0..calls_max {
        let answer = send(&after).with_context(|| {
            format!("{replayed} were sent again; the rest is behind `--after {after}`")
        })?;
        replayed += answer["replayed"].as_u64().unwrap_or_default();
        if let Some(next) = answer["next"].as_str() {
            next.clone_into(&mut after);
        }
        if answer["more"] != true {
            return Ok(json!({ "replayed": replayed, "next": after }));
        }
    }
    let message = format!("{replayed} were sent again, and more wait behind `--after {after}`");
    Err(Failure::new(Exit::Failed, message)
        .next("run the command again with that cursor")
        .into())
}

impl Tail<'_> {
    /// Reads page by page to the current end.
    fn read_all(&mut self) -> Result<()> {
        while self.left > 0 {
            let limit = self.left.min(100).to_string();
            let mut query = self.filter.clone();
            query.extend([("after", self.cursor.clone()), ("limit", Some(limit))]);
            let page = self.client.get("/v1/events", &query)?;
            let next = page["page"]["next"].as_str().map(str::to_owned);
            let ended = next.is_none() || next == self.cursor;
            for event in page["data"].as_array().into_iter().flatten() {
                self.output.line(event, EVENT)?;
                self.left -= 1;
            }
            self.cursor = next.or_else(|| self.cursor.take());
            if ended {
                break;
            }
        }
        Ok(())
    }

    /// Reads the stream, and reconnects after the last event whenever it ends. Fails if a new connection cannot help.
    fn follow(&mut self) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let mut breaks = 0;
        loop {
            let before = self.cursor.clone();
            let ended = self.read_stream()?;
            if self.left == 0 {
                return Ok(());
            }
            let pause = match ended {
                Ended::InOrder => {
                    breaks = 0;
                    self.output.hint("the stream ended; reconnecting");
                    RECONNECT_PAUSE
                }
                Ended::Broken(error, pause) => {
                    breaks = if before == self.cursor { breaks + 1 } else { 0 };
                    if breaks > RECONNECTS_MAX {
                        return Err(error);
                    }
                    self.output.hint(&format!("reconnecting: {error:#}"));
                    pause
                }
            };
            sleep(pause);
        }
    }

    /// Fails if the stream is refused for good, or if its events cannot be printed.
    fn read_stream(&mut self) -> Result<Ended> {
        let cursor = self.cursor.as_deref();
        let opened = self
            .client
            .stream("/v1/events/stream", &self.filter, cursor);
        let stream = match opened {
            Ok(stream) => stream,
            Err(error) => return Ended::unopened(error),
        };
        let (mut id, mut data) = (None, String::new());
        for line in BufReader::new(stream).lines() {
            let line = match line {
                Ok(line) => line,
                Err(error) => return Ok(Ended::broken(error)),
            };
            match line
                .split_once(':')
                .map(|(field, value)| (field, value.trim_start_matches(' ')))
            {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) => data.push_str(value),
                // Where the stream begins.
                None if line.is_empty() && data.is_empty() => {
                    self.cursor = id.take().or_else(|| self.cursor.take());
                }
                None if line.is_empty() => {
                    let event = match digits::parse(data.as_bytes()) {
                        Ok(event) => event,
                        Err(error) => return Ok(Ended::broken(error)),
                    };
                    self.output.line(&event, EVENT)?;
                    data.clear();
                    self.cursor = id.take().or_else(|| self.cursor.take());
                    self.left -= 1;
                    if self.left == 0 {
                        break;
                    }
                }
                Some(_) | None => {}
            }
        }
        Ok(Ended::InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_that_is_not_done_fails_with_the_cursor_to_go_on_with() {
        let send = |after: &str| -> Result<Value> {
            let next = after.parse::<u64>()? + 1;
            Ok(json!({ "replayed": 5, "next": next.to_string(), "more": next < 3 }))
        };
        let done = until_no_more("0".to_owned(), 3, send).expect("it ends");
        assert_eq!(done, json!({ "replayed": 15, "next": "3" }));
        let error = until_no_more("0".to_owned(), 2, send).expect_err("more wait");
        assert_eq!(
            error.to_string(),
            "10 were sent again, and more wait behind `--after 2`\nnext: run the command again with that cursor"
        );
    }
}
