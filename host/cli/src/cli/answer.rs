//! What a command answers, and how it is shown: the only place that knows where an answer has the instance.

use anyhow::Result;
use serde_json::Value;

use super::output::{Column, Format, Output};

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

/// Shows what a command changed: `of` is the part of an answer that the fields are of. Of a dry run, it shows both sides: `before`
/// as it was read before the command, unless the answer has it.
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
        if answer["result"] == "unchanged" {
            output.hint("it was so before; nothing was recorded");
        }
        return Ok(());
    }
    let (before, after) = match (&answer["before"], &answer["after"]) {
        (Value::Null, Value::Null) => (before, answer),
        (of_answer, after) => (Some(of_answer), after),
    };
    output.compare(before.map(of), of(after), fields)
}

/// The whole answer.
pub(super) fn whole(answer: &Value) -> &Value {
    answer
}

/// Tells which tasks of an instance are open, and which nobody can do.
pub(super) fn hint_at_open_tasks(answer: &Value, output: Output) {
    if is_dry_run(answer) {
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let states = instance(answer)["states"].as_array();
    for state in states.into_iter().flatten() {
        let tasks = state["tasks"].as_array().into_iter().flatten();
        let open = tasks.filter(|task| OPEN.iter().any(|status| task["status"] == *status));
        let is_stuck = state["unassignableSince"].is_string();
        for task in open {
            let (id, label) = (text(&task["id"]), text(&task["label"]));
            let stuck = if is_stuck { ": nobody can do this" } else { "" };
            output.hint(&format!("open task: {id} ({label}){stuck}"));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_instance_of_an_answer_is_found_in_either_shape() {
        let bare = json!({ "id": "i", "states": [] });
        assert_eq!(instance(&bare)["id"], "i");
        assert_eq!(instance(&json!({ "instance": bare }))["id"], "i");
    }
}
