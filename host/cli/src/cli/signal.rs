//! `wrkflw signal`: sends a signal by correlation key, shows its status, and lists those that an instance has received.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use super::client::{AttemptArgs, segment};
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::instance::InstanceRefArgs;
use super::output::{Column, Output};
use super::{Environment, argument, pick};
use wrkflw_core::json::Json;

#[derive(Debug, Subcommand)]
pub(super) enum SignalCommand {
    /// Send a signal to the instance that waits for its correlation key, now or later
    Send(SendArgs),
    /// List the signals that an instance has received, newest first
    List {
        #[command(flatten)]
        target: InstanceRefArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show the status of a signal
    Show {
        /// The host's id of the signal, as `send` printed it
        signal: String,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// The trigger that it fires
    trigger: String,
    /// The correlation key for which an instance waits
    #[arg(long, value_name = "NAME")]
    correlation: String,
    /// Your id of the signal: a repeated signal with the same id has no further effect
    #[arg(long)]
    id: String,
    /// Only for instances of this definition
    #[arg(long, value_name = "KEY")]
    definition: Option<String>,
    /// To the state that has waited longest, now or later, or to every state that subscribes to it now
    #[arg(long, value_enum, default_value_t)]
    deliver: Deliver,
    /// Its input, JSON or @FILE
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,
    #[command(flatten)]
    attempt: AttemptArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Deliver {
    /// To the state that has waited longest, now or later
    #[default]
    One,
    /// To every state that subscribes to it now
    All,
}

const SENT: &[Column] = &[
    ("signal", "/signal/signalId"),
    ("correlation", "/signal/correlation"),
    ("kept as", "/signal/id"),
    ("taken by", "/instance/id"),
    ("definition", "/instance/definitionKey"),
    ("status", "/instance/status"),
    ("states", "/instance/states"),
];
const SIGNAL: &[Column] = &[
    ("signal", "/signalId"),
    ("trigger", "/trigger"),
    ("correlation", "/correlation"),
    ("id", "/id"),
    ("sender", "/sender"),
    ("received", "/receivedAt"),
    ("status", "/status"),
    ("deliver", "/deliver"),
    ("taken", "/taken"),
    ("refused", "/refused"),
    ("expires", "/expiresAt"),
    ("instance", "/instanceId"),
    ("event", "/eventId"),
    ("settled", "/settledAt"),
    ("refusal", "/refusal/message"),
];

const RECEIVED: &[Column] = &[
    ("WHEN", "/receivedAt"),
    ("TRIGGER", "/trigger"),
    ("ID", "/id"),
    ("SENDER", "/sender"),
    ("STATE INSTANCE", "/stateId"),
    ("EVENT", "/eventId"),
];

pub(super) fn run(command: SignalCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        SignalCommand::Send(args) => {
            let mut body = vec![
                ("correlation", Json::of(&args.correlation)),
                ("id", Json::of(&args.id)),
                ("input", argument::json("--input", &args.input)?),
            ];
            if matches!(args.deliver, Deliver::All) {
                body.push(("deliver", Json::of(&"all")));
            }
            if let Some(definition) = &args.definition {
                body.push(("definitionKey", Json::of(definition)));
            }
            let client = args.connection.open(environment)?;
            let path = format!("/v1/signals/{}", segment(&args.trigger));
            let sent = client.attempt(&path, &Json::object(body), &args.attempt)?;
            output.record(&sent, SENT)?;
            if let Some(hint) = hint_if_untaken(&sent, args.deliver) {
                output.hint(&hint);
            }
            Ok(())
        }
        SignalCommand::List { target, page } => {
            let (client, path) = target.open(environment)?;
            let query: Vec<_> = page.query().into_iter().collect();
            output.list(&client.get(&format!("{path}/signals"), &query)?, RECEIVED)
        }
        SignalCommand::Show { signal, connection } => {
            let client = connection.open(environment)?;
            let id = pick::unlisted(&signal, "signal")?;
            output.record(&client.get(&format!("/v1/signals/{id}"), &[])?, SIGNAL)
        }
    }
}

/// The outcome of a signal that no instance has taken, as far as the sender may know it.
fn hint_if_untaken(sent: &Value, deliver: Deliver) -> Option<String> {
    let signal = sent.get("signal")?;
    let (id, correlation) = (
        signal["signalId"].as_str()?,
        signal["correlation"].as_str()?,
    );
    let what = match deliver {
        Deliver::All => "the host delivers it now to every state that subscribes to it".to_owned(),
        Deliver::One => format!(
            "no instance that you see has taken it: the host keeps it for 30 days, for the next state that waits for {correlation}"
        ),
    };
    Some(format!(
        "{what}; `wrkflw signal show {id}` shows its status"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_sends_a_signal_that_is_kept_is_told_so() {
        let mut sent = json!({ "signal": { "signalId": "7", "correlation": "order-9" } });
        let one = hint_if_untaken(&sent, Deliver::One).expect("a hint");
        assert!(
            one.contains("waits for order-9; `wrkflw signal show 7`"),
            "{one}"
        );
        let all = hint_if_untaken(&sent, Deliver::All).expect("a hint");
        assert!(all.contains("every state that subscribes"), "{all}");
        // A dry run keeps none, and has no id.
        sent["signal"]["signalId"] = Value::Null;
        assert_eq!(hint_if_untaken(&sent, Deliver::One), None);
        let taken = json!({ "instance": { "id": "1" } });
        assert_eq!(hint_if_untaken(&taken, Deliver::One), None);
    }
}
