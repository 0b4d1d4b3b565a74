//! What people write for an id: the id itself, its beginning, or the entity that an instance is about. Each look-up is one bounded
//! call of the API.

use anyhow::Result;
use serde_json::Value;
use uuid::Uuid;

use super::client::{Client, segment};
use super::failure::{Exit, Failure};

/// The shortest beginning of an id that the server takes.
const DIGITS_MIN: usize = 4;
/// The digits of an id.
const DIGITS: usize = 32;
/// How many instances about an entity are looked at.
const LOOKED_AT: u32 = 10;

/// Parses a whole id, of what has no other name.
pub(super) fn id(text: &str) -> Result<Uuid, Failure> {
    Uuid::try_parse(text).map_err(|_| {
        let form = format!("an id has {DIGITS} hexadecimal digits, as the program prints it");
        Failure::new(Exit::Usage, form)
    })
}

/// The id of an instance: by the whole or the beginning of it, or by TYPE/ID of its entity.
pub(super) fn instance_id(client: &Client, text: &str) -> Result<String> {
    match text.split_once('/') {
        Some((kind, id)) => about(client, kind, id),
        None => complete(client, text, "instance"),
    }
}

/// The path of an instance, named likewise.
pub(super) fn instance(client: &Client, text: &str) -> Result<String> {
    Ok(format!("/v1/instances/{}", instance_id(client, text)?))
}

/// The path of a task: by its id, or by the beginning of its id.
pub(super) fn task(client: &Client, text: &str) -> Result<String> {
    Ok(format!("/v1/tasks/{}", complete(client, text, "task")?))
}

/// The id of a subscription: the whole, or the beginning of that of one only. A tenant has few.
pub(super) fn subscription(client: &Client, text: &str) -> Result<String> {
    const KIND: &str = "subscription";
    if let Ok(id) = Uuid::try_parse(text) {
        return Ok(id.to_string());
    }
    if !is_beginning(text) {
        return Err(no_id(text, KIND).into());
    }
    let page = client.get("/v1/subscriptions", &[])?;
    let digits = |text: &str| text.replace('-', "").to_ascii_lowercase();
    let begins = |one: &&Value| {
        let id = one["id"].as_str().unwrap_or_default();
        digits(id).starts_with(&digits(text))
    };
    let all = page["data"].as_array().into_iter().flatten();
    let fitting: Vec<&Value> = all.filter(begins).collect();
    only(text, KIND, &fitting)
}

/// The id of the only one that fits.
fn only(text: &str, kind: &str, fitting: &[&Value]) -> Result<String> {
    match fitting {
        [one] => Ok(one["id"].as_str().unwrap_or_default().to_owned()),
        [] => {
            let message = format!("{text} is the beginning of no id of {}", article(kind));
            Err(Failure::new(Exit::NotFound, message).into())
        }
        _ => Err(ambiguous(
            text,
            &format!("{kind}s begin with {text}"),
            fitting.to_vec(),
        )
        .into()),
    }
}

/// The id of an `instance` or `task` that begins with this text.
fn complete(client: &Client, text: &str, kind: &str) -> Result<String> {
    if let Ok(id) = Uuid::try_parse(text) {
        return Ok(id.to_string());
    }
    if !is_beginning(text) {
        return Err(no_id(text, kind).into());
    }
    let found = client.get(&format!("/v1/ids/{}", segment(text)), &[])?;
    let all: Vec<&Value> = found["data"].as_array().into_iter().flatten().collect();
    let fitting: Vec<&Value> = all
        .iter()
        .copied()
        .filter(|one| one["kind"] == kind)
        .collect();
    only(text, kind, &fitting).map_err(|error| match error.downcast::<Failure>() {
        // Another kind of thing may have been meant.
        Ok(failure) if fitting.is_empty() => failure.details(all.into_iter().map(described)).into(),
        Ok(failure) => failure.into(),
        Err(error) => error,
    })
}

/// The id of the instance about an entity: the one that has not ended, or the only one.
fn about(client: &Client, kind: &str, id: &str) -> Result<String> {
    let query = [
        ("entityType", Some(kind.to_owned())),
        ("entityId", Some(id.to_owned())),
        ("limit", Some(LOOKED_AT.to_string())),
    ];
    let page = client.get("/v1/instances", &query)?;
    let all: Vec<&Value> = page["data"].as_array().into_iter().flatten().collect();
    let runs = |one: &&Value| one["status"] == "RUNNING" || one["status"] == "SUSPENDED";
    let open: Vec<&Value> = all.iter().copied().filter(runs).collect();
    match (&open[..], &all[..]) {
        ([one], _) | ([], [one]) => Ok(one["id"].as_str().unwrap_or_default().to_owned()),
        ([], []) => {
            let message = format!("there is no instance about {kind}/{id}");
            let next = "list what there is with `wrkflw instance list`";
            Err(Failure::new(Exit::NotFound, message).next(next).into())
        }
        _ => {
            let text = format!("{kind}/{id}");
            let what = format!("instances are about {text}");
            Err(ambiguous(&text, &what, all).into())
        }
    }
}

fn is_beginning(text: &str) -> bool {
    let digits = text.bytes().filter(|byte| *byte != b'-').count();
    (DIGITS_MIN..=DIGITS).contains(&digits)
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn article(kind: &str) -> String {
    let article = if kind == "instance" { "an" } else { "a" };
    format!("{article} {kind}")
}

fn no_id(text: &str, kind: &str) -> Failure {
    let also = if kind == "instance" {
        "; or name what it is about as TYPE/ID, such as document/9"
    } else {
        ""
    };
    let message = format!(
        "{text} is no id of {}: an id has {DIGITS} hexadecimal digits, and its first {DIGITS_MIN} or more are enough if no other \
         begins so{also}",
        article(kind)
    );
    let next = match kind {
        "task" => "`wrkflw task list --view all` shows the ids".to_owned(),
        kind => format!("`wrkflw {kind} list` shows the ids"),
    };
    Failure::new(Exit::Usage, message).next(next)
}

fn ambiguous(text: &str, what: &str, found: Vec<&Value>) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("{text} is ambiguous: several {what}"));
    let failure = failure.details(found.into_iter().map(described));
    failure.next("name one of these by more digits of its id")
}

/// One candidate in a line.
fn described(one: &Value) -> String {
    let text = |name: &str| one[name].as_str().unwrap_or_default();
    if one["url"].is_string() {
        return format!("{}  {}", text("id"), text("url"));
    }
    let line = format!(
        "{}  {}  {} {}/{}  {}",
        text("id"),
        text("status"),
        text("definitionKey"),
        text("entityType"),
        text("entityId"),
        text("title")
    );
    let shown = line.trim_end().chars();
    shown
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_beginning;

    #[test]
    fn a_beginning_has_at_least_four_digits() {
        for text in ["01a2", "01A2-", "01a20416-5f62-7350"] {
            assert!(is_beginning(text), "{text}");
        }
        for text in ["", "01a", "abc", "01ag", "document", &"0".repeat(33)] {
            assert!(!is_beginning(text), "{text}");
        }
    }
}
