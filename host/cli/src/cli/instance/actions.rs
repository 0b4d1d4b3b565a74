//! `wrkflw instance actions`: the actions of the caller on an instance. Actions that move it on come first.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::Environment;
use super::super::output::{Column, Format, Output};
use super::InstanceRefArgs;

/// The actions that move an instance on, or let it go on.
const STEPS: [&str; 6] = ["claim", "decide", "signal", "resolve", "resume", "restart"];
const ACTIONS: &[Column] = &[
    ("ACTION", "/action"),
    ("WHAT", "/what"),
    ("STATE", "/state"),
    ("TASK", "/taskId"),
    ("ALLOWED", "/allowed"),
    ("REQUIRED", "/required"),
    ("WHY NOT", "/refusal/message"),
];

pub(super) fn run(
    target: &InstanceRefArgs,
    all: bool,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    let mut answer = target.get("/actions", environment)?;
    if output.format == Format::Json {
        return output.record(&answer, &[]);
    }
    let untried = answer["omitted"]["actions"].as_u64().unwrap_or_default();
    let actions = answer["actions"].as_array_mut().into_iter().flatten();
    let mut data: Vec<Value> = actions
        .map(|action| {
            let named = ["outcome", "trigger"].map(|name| action[name].take());
            let [outcome, trigger] = named;
            action["what"] = if outcome.is_null() { trigger } else { outcome };
            action.take()
        })
        .collect();
    data.sort_by_key(|action| action["allowed"] != true);
    if all {
        output.list(&json!({ "data": data }), ACTIONS)?;
    } else {
        show_steps(data, output)?;
    }
    if untried > 0 {
        // The list is not complete then, of a very large instance.
        output.record(
            &json!({ "untried": untried }),
            &[("not tried:", "/untried")],
        )?;
    }
    if !all {
        output.hint("`--all` shows each action in full, and why not the rest");
    }
    Ok(())
}

/// Shows the actions that move the instance on, and names the other allowed actions.
fn show_steps(data: Vec<Value>, output: Output) -> Result<()> {
    let is_step = |action: &Value| {
        let name = action["action"].as_str().unwrap_or_default();
        STEPS.contains(&name)
    };
    let (steps, others): (Vec<Value>, Vec<Value>) = data.into_iter().partition(is_step);
    let mut also: Vec<Value> = Vec::new();
    for other in others.into_iter().filter(|other| other["allowed"] == true) {
        if !also.contains(&other["action"]) {
            also.push(other["action"].clone());
        }
    }
    if !steps.is_empty() || also.is_empty() {
        output.list(&json!({ "data": steps }), ACTIONS)?;
    }
    if !also.is_empty() {
        output.record(&json!({ "also": also }), &[("also:", "/also")])?;
    }
    Ok(())
}
