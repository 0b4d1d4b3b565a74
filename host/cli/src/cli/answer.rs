//! The answers of commands, and how they are shown. Only this module knows the place of the instance in an answer.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Column, Format, Output};

/// How many people are looked up at once.
const NAMES_MAX: usize = 200;
/// The statuses of open tasks.
const OPEN: [&str; 2] = ["PENDING", "CLAIMED"];

/// The instance of an answer. An answer may also be the instance itself.
pub(super) fn instance(answer: &Value) -> &Value {
    answer
        .get("instance")
        .filter(|instance| instance.is_object())
        .unwrap_or(answer)
}

/// Whether nothing was written.
pub(super) fn is_dry_run(answer: &Value) -> bool {
    answer["dryRun"] == true
}

/// Shows the changes of a command: `of` is the part of the answer that has the fields. For a dry run, it shows both sides:
/// `before` was read before the command, unless the answer has it.
pub(super) fn show(
    answer: &Value,
    before: Option<&Value>,
    of: fn(&Value) -> &Value,
    fields: &[Column],
    output: Output,
) -> Result<()> {
    if output.format == Format::Json {
        return output.record(answer, &[]);
    }
    if !is_dry_run(answer) {
        output.record(of(answer), fields)?;
        if let Some(hint) = answer["result"].as_str().and_then(without_effect) {
            output.hint(hint);
        }
        return Ok(());
    }
    let (before, after) = match (&answer["before"], &answer["after"]) {
        (Value::Null, Value::Null) => (before, answer),
        (of_answer, after) => (Some(of_answer), after),
    };
    output.compare(before.map(of), of(after), fields)
}

/// The message for a result that changed no state.
fn without_effect(result: &str) -> Option<&'static str> {
    match result {
        "unchanged" => Some("it was so before; nothing was recorded"),
        "accepted" => {
            Some("no state takes the signal now: it is buffered for a later state of the instance")
        }
        _ => None,
    }
}

/// The whole answer.
pub(super) fn whole(answer: &Value) -> &Value {
    answer
}

/// Shows which tasks of an instance are open, and for which too few people are eligible.
pub(super) fn hint_at_open_tasks(client: &Client, answer: &Value, output: Output) {
    if is_dry_run(answer) || output.quiet {
        return;
    }
    let unknown = unknown_people(client, instance(answer));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let states = instance(answer)["states"].as_array();
    for state in states.into_iter().flatten() {
        let tasks = state["tasks"].as_array().into_iter().flatten();
        let open = tasks.filter(|task| is_open(task));
        let is_stuck = state["unassignableSince"].is_string();
        for task in open {
            let (id, label) = (text(&task["id"]), text(&task["label"]));
            let stuck = if is_stuck {
                ": too few people may do this"
            } else {
                ""
            };
            output.hint(&format!("open task: {id} ({label}){stuck}"));
            for person in people(task).filter(|person| unknown.contains(person)) {
                Output::warn(&format!(
                    "{label} is for {person}, who is not in the directory: `wrkflw person list` shows who is"
                ));
            }
        }
        if is_stuck {
            output.hint(&format!(
                "next: too few people may work on {}; `wrkflw instance eligibility {}` says why",
                text(&state["name"]),
                text(&instance(answer)["id"])
            ));
        }
    }
}

fn is_open(task: &Value) -> bool {
    OPEN.iter().any(|status| task["status"] == *status)
}

/// The owner and the people among the candidates of a task.
fn people(task: &Value) -> impl Iterator<Item = String> {
    let candidates = task["candidates"].as_array().into_iter().flatten();
    let users = candidates.filter(|candidate| candidate["type"] == "user");
    let named = users.map(|candidate| &candidate["id"]);
    let named = named.chain([&task["owner"]]).filter_map(Value::as_str);
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    named.into_iter()
}

/// The people of the open tasks, as many as are looked up at once.
fn people_of_open_tasks(instance: &Value) -> BTreeSet<String> {
    let states = instance["states"].as_array().into_iter().flatten();
    let tasks = states.flat_map(|state| state["tasks"].as_array().into_iter().flatten());
    let open = tasks.filter(|task| is_open(task));
    open.flat_map(people).take(NAMES_MAX).collect()
}

/// The people of the open tasks whom the directory does not know. None if the directory cannot be asked, because the command
/// itself is done.
fn unknown_people(client: &Client, instance: &Value) -> BTreeSet<String> {
    let named = people_of_open_tasks(instance);
    if named.is_empty() {
        return named;
    }
    let body = json!({ "people": named });
    let Ok(known) = client.post("/v1/names", &body) else {
        return BTreeSet::new();
    };
    let is_unknown = |person: &String| known["people"].get(person).is_none();
    named.into_iter().filter(is_unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_people_of_a_task_are_its_owner_and_those_it_names() {
        let task = json!({
            "owner": "ben",
            "candidates": [
                { "type": "user", "id": "ann" },
                { "type": "group", "id": "authors" },
                { "type": "user", "id": "ben" },
                { "type": "member", "id": "cyd", "group": "authors" },
            ],
        });
        assert_eq!(people(&task).collect::<Vec<_>>(), ["ann", "ben"]);
        assert_eq!(people(&json!({ "owner": null })).count(), 0);
    }

    #[test]
    fn those_of_tasks_that_ended_are_not_looked_up() {
        let ended = json!({ "status": "COMPLETED", "owner": "ann" });
        let open = json!({ "status": "CLAIMED", "owner": "ben" });
        let pending =
            json!({ "status": "PENDING", "candidates": [{ "type": "user", "id": "cyd" }] });
        let mut tasks = vec![ended; NAMES_MAX];
        tasks.extend([open, pending]);
        let found = people_of_open_tasks(&json!({ "states": [{ "tasks": tasks }] }));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["ben", "cyd"]);
    }

    #[test]
    fn a_command_that_changed_no_state_says_so() {
        let hint = |result: &str| without_effect(result).unwrap_or_default();
        assert!(hint("unchanged").contains("nothing was recorded"));
        assert!(hint("accepted").contains("buffered for a later state"));
        assert_eq!(hint("changed"), "");
    }

    #[test]
    fn the_instance_of_an_answer_is_found_in_either_shape() {
        let bare = json!({ "id": "i", "states": [] });
        assert_eq!(instance(&bare)["id"], "i");
        assert_eq!(instance(&json!({ "instance": bare }))["id"], "i");
    }
}
