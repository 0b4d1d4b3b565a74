//! Resolves the forms in which people write an id: the id itself, its beginning, or the entity of an instance. The number of requests
//! is bounded.

use anyhow::Result;
use serde_json::Value;
use uuid::Uuid;

use super::client::{Client, segment};
use super::failure::{Exit, Failure, listing};

/// The shortest beginning of an id that the server takes.
const DIGITS_MIN: usize = 4;
/// The digits of an id.
const DIGITS: usize = 32;
/// How many instances about an entity are examined.
const LOOKED_AT: u32 = 10;
/// How many pages of a list are searched for the beginning of an id, and how many items a page has.
const PAGES_MAX: usize = 10;
const PAGE_ITEMS: u32 = 100;
/// The lists that have pages. The others are short, and refuse the parameters of a page.
const PAGED: [&str; 3] = ["delivery", "notification of yours", "operation"];
/// The members of each match that are shown, so that people can distinguish the matches.
const TELLING: [&str; 13] = [
    "/kind",
    "/url",
    "/name",
    "/client",
    "/action",
    "/status",
    "/state",
    "/settings/definitionKey",
    "/person",
    "/substitute",
    "/from",
    "/instanceTitle",
    "/createdAt",
];

/// Parses a whole id, in commands that ask no server.
pub(super) fn id(text: &str) -> Result<Uuid, Failure> {
    Uuid::try_parse(text).map_err(|_| {
        let message = format!(
            "{text} is no complete id: this command asks no server, so write all {DIGITS} hexadecimal digits"
        );
        Failure::new(Exit::Usage, message)
    })
}

/// The id of an instance: by the whole or the beginning of it, or by TYPE/ID of its entity.
pub(super) fn instance_id(client: &Client, text: &str) -> Result<String> {
    match text.split_once('/') {
        Some((kind, id)) => instance_about(client, kind, id),
        None => complete(client, text, "instance"),
    }
}

/// The path of an instance, which is named as for [`instance_id`].
pub(super) fn instance(client: &Client, text: &str) -> Result<String> {
    Ok(format!("/v1/instances/{}", instance_id(client, text)?))
}

/// The path of a task: by its id, or by the beginning of its id.
pub(super) fn task(client: &Client, text: &str) -> Result<String> {
    Ok(format!("/v1/tasks/{}", task_id(client, text)?))
}

/// The id of a task: by the whole or the beginning of it.
pub(super) fn task_id(client: &Client, text: &str) -> Result<String> {
    complete(client, text, "task")
}

/// The id of an item of this list of the API: by the whole id, or by a beginning that only one item has. `kind` is the noun of the
/// item in messages of the API.
pub(super) fn listed(client: &Client, text: &str, kind: &str, list: &str) -> Result<String> {
    if let Some(id) = canonical(text) {
        return Ok(id);
    }
    if !is_beginning(text) {
        return Err(no_id(text, kind, list).into());
    }
    let page = |after: Option<String>| {
        let limit = PAGED.contains(&kind).then(|| PAGE_ITEMS.to_string());
        client.get(list, &[("limit", limit), ("after", after)])
    };
    if let Some(fitting) = sought(text, page)? {
        return only(text, kind, list, &fitting.iter().collect::<Vec<_>>());
    }
    let message = format!(
        "{text} is not enough: only the newest {} are searched for the beginning of an id",
        PAGES_MAX * PAGE_ITEMS as usize
    );
    let failure = Failure::new(Exit::Usage, message);
    Err(failure.next("write the whole id").into())
}

/// The items of a list whose id begins with the text. None if there may be more in pages that are not read.
fn sought(
    text: &str,
    mut page: impl FnMut(Option<String>) -> Result<Value>,
) -> Result<Option<Vec<Value>>> {
    let mut fitting: Vec<Value> = Vec::new();
    let (lowest, mut after) = (lowest(text), None);
    for _ in 0..PAGES_MAX {
        let mut page = page(after)?;
        let items = match page["data"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        // The newest items come first, and an id begins with its time. Ids of several hosts may be a little out of order.
        let is_past = items.iter().all(|one| digits_of(one) < lowest);
        fitting.extend(items.into_iter().filter(|one| begins(one, text)));
        after = page["page"]["next"].as_str().map(str::to_owned);
        if is_past || after.is_none() {
            return Ok(Some(fitting));
        }
    }
    Ok(None)
}

/// The id of something that the API does not list: the whole of it.
pub(super) fn unlisted(text: &str, kind: &str) -> Result<String> {
    canonical(text).ok_or_else(|| {
        let message = format!(
            "{text} is no id of {}: all {DIGITS} hexadecimal digits of it are needed",
            article(kind)
        );
        Failure::new(Exit::Usage, message).into()
    })
}

/// The id in the form that the API writes.
fn canonical(text: &str) -> Option<String> {
    Uuid::try_parse(text).ok().map(|id| id.to_string())
}

fn digits(text: &str) -> String {
    text.replace('-', "").to_ascii_lowercase()
}

fn digits_of(one: &Value) -> String {
    digits(one["id"].as_str().unwrap_or_default())
}

fn begins(one: &Value, text: &str) -> bool {
    digits_of(one).starts_with(&digits(text))
}

/// The digits of the first id with this beginning.
fn lowest(text: &str) -> String {
    format!("{:0<DIGITS$}", digits(text))
}

/// The id of the only one that fits.
fn only(text: &str, kind: &str, list: &str, fitting: &[&Value]) -> Result<String> {
    match fitting {
        [one] => Ok(one["id"].as_str().unwrap_or_default().to_owned()),
        [] => {
            let message = format!("{text} is the beginning of no id of {}", article(kind));
            let failure = Failure::new(Exit::NotFound, message);
            Err(failure.next(shows(kind, list)).into())
        }
        _ => {
            let what = format!("ids of {} begin so", article(kind));
            Err(ambiguous(text, &what, fitting.to_vec()).into())
        }
    }
}

/// The command that lists the ids of a kind.
fn shows(kind: &str, list: &str) -> String {
    listing(&format!("there is no {kind} "), list).unwrap_or_default()
}

/// The id of an `instance` or `task` that begins with this text.
fn complete(client: &Client, text: &str, kind: &str) -> Result<String> {
    if let Some(id) = canonical(text) {
        return Ok(id);
    }
    if !is_beginning(text) {
        return Err(no_id(text, kind, "").into());
    }
    let answer = client.get(&format!("/v1/ids/{}", segment(text)), &[])?;
    let all: Vec<&Value> = answer["data"].as_array().into_iter().flatten().collect();
    let fitting: Vec<&Value> = all
        .iter()
        .copied()
        .filter(|one| one["kind"] == kind)
        .collect();
    if answer["more"] == true && fitting.len() < 2 {
        return Err(too_short(text, kind).into());
    }
    only(text, kind, "", &fitting).map_err(|error| match error.downcast::<Failure>() {
        // Another kind of thing may have been meant.
        Ok(failure) if fitting.is_empty() => failure.details(all.into_iter().map(described)).into(),
        Ok(failure) => failure.into(),
        Err(error) => error,
    })
}

/// The id of the instance about an entity: the one that has not ended, or the only one.
fn instance_about(client: &Client, kind: &str, id: &str) -> Result<String> {
    let listed = |status: Option<&str>| -> Result<Vec<Value>> {
        let query = [
            ("entityType", Some(kind.to_owned())),
            ("entityId", Some(id.to_owned())),
            ("status", status.map(str::to_owned)),
            ("limit", Some(LOOKED_AT.to_string())),
        ];
        let mut page = client.get("/v1/instances", &query)?;
        Ok(match page["data"].take() {
            Value::Array(instances) => instances,
            _ => Vec::new(),
        })
    };
    let mut instances = listed(Some("RUNNING"))?;
    instances.extend(listed(Some("SUSPENDED"))?);
    if instances.is_empty() {
        instances = listed(None)?;
    }
    match &instances[..] {
        [one] => Ok(one["id"].as_str().unwrap_or_default().to_owned()),
        [] => {
            let message = format!("there is no instance about {kind}/{id}");
            let next = "list what there is with `wrkflw instance list`";
            Err(Failure::new(Exit::NotFound, message).next(next).into())
        }
        _ => {
            let text = format!("{kind}/{id}");
            let what = format!("instances are about {text}");
            Err(ambiguous(&text, &what, instances.iter().collect()).into())
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
    let is_vowel = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if is_vowel { "an" } else { "a" })
}

fn no_id(text: &str, kind: &str, list: &str) -> Failure {
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
    Failure::new(Exit::Usage, message).next(shows(kind, list))
}

/// The server read as many ids as one request may read. Further ids may begin in this way.
fn too_short(text: &str, kind: &str) -> Failure {
    let message = format!(
        "{text} is not enough: too many ids begin with it to search them all for {} that you see",
        article(kind)
    );
    Failure::new(Exit::Usage, message).next("write more digits of the id")
}

fn ambiguous(text: &str, what: &str, found: Vec<&Value>) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("{text} is ambiguous: several {what}"));
    let failure = failure.details(found.into_iter().map(described));
    failure.next("name one of these by more digits of its id")
}

/// One candidate in a line.
fn described(one: &Value) -> String {
    let text = |name: &str| one[name].as_str().unwrap_or_default();
    let line = if one["entityType"].is_string() {
        format!(
            "{}  {}  {} {}/{}  {}",
            text("id"),
            text("status"),
            text("definitionKey"),
            text("entityType"),
            text("entityId"),
            text("title")
        )
    } else {
        let telling = TELLING.iter().filter_map(|at| one.pointer(at)?.as_str());
        [text("id")]
            .into_iter()
            .chain(telling)
            .collect::<Vec<_>>()
            .join("  ")
    };
    let chars = line.trim_end().chars();
    chars
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Pages of one id each, the newest first.
    fn found(ids: &[&str], text: &str) -> (Option<Vec<Value>>, usize) {
        let mut read = 0;
        let found = sought(text, |after| {
            assert_eq!(after.is_some(), read > 0, "the cursor of the page before");
            let id = ids[read];
            read += 1;
            let next = (read < ids.len()).then_some("next");
            Ok(json!({ "data": [{ "id": id }], "page": { "next": next } }))
        });
        (found.expect("no page fails"), read)
    }

    #[test]
    fn pages_are_read_until_they_are_past_the_beginning() {
        let ids = [
            "01a3ffff-0000-7000-8000-000000000000",
            "01a2FFFF-0000-7000-8000-000000000000",
            "01a20000-0000-7000-8000-000000000000",
            "01a1ffff-0000-7000-8000-000000000000",
            "01a10000-0000-7000-8000-000000000000",
        ];
        let count = |text: &str| {
            let (found, read) = found(&ids, text);
            (found.expect("not cut off").len(), read)
        };
        assert_eq!(count("01a2"), (2, 4));
        assert_eq!(count("01A2-ffff"), (1, 3));
        assert_eq!(count("01a1"), (2, 5));
        assert_eq!(count("01a4"), (0, 1));
    }

    #[test]
    fn no_more_than_ten_pages_are_read() {
        let id = "01a2ffff-0000-7000-8000-000000000000";
        assert_eq!(found(&[id; PAGES_MAX], "01a2").1, PAGES_MAX);
        assert!(found(&[id; PAGES_MAX], "01a2").0.is_some());
        assert_eq!(found(&[id; PAGES_MAX + 1], "01a2"), (None, PAGES_MAX));
    }

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
