//! The next step after a refusal: commands that show or fix its cause.

use serde_json::Value;
use url::form_urlencoded;

/// The next step to try. Names from the problem replace `ID`, `TASK`, `KEY`, `VERSION`, `PERSON` and `GROUP`.
pub(super) fn next_step(code: &str, problem: &Value) -> Option<String> {
    // Only a problem about an instance has actions to list.
    let path = problem["instance"].as_str().unwrap_or_default();
    let detail = problem["detail"].as_str().unwrap_or_default();
    let is_about_one = path.starts_with("/v1/instances/") || path.starts_with("/v1/tasks/");
    if code == "not_found" {
        return listing(detail, path);
    }
    let running = problem.pointer("/conflict/instanceId");
    if let ("already_running", Some(id)) = (code, running.and_then(Value::as_str)) {
        return Some(format!(
            "`wrkflw instance show {id}` shows it; cancel it, wait for its end, or start one for another entity"
        ));
    }
    let usual = match code {
        "forbidden" if problem["reason"] == "not_an_initiator" => return Some(members(detail)),
        "forbidden" if !is_about_one => return None,
        "stale_revision" if path.starts_with("/v1/tasks/") => {
            "look at it again with `wrkflw task show TASK`, then repeat with the new revision"
        }
        "forbidden" if path.starts_with("/v1/tasks/") => {
            "`wrkflw task show TASK` shows its owner, its candidates and its instance"
        }
        "forbidden" => {
            "`wrkflw instance actions ID --as USER` lists what that person may do, and why not the rest"
        }
        "logic_fault" if detail.contains("there is no calendar") => {
            "an operator must add the calendar; nothing was written"
        }
        code => usual(code)?,
    };
    let names = [names_in_detail(detail), names_in_path(path)].concat();
    Some(filled(usual, &names))
}

/// Names, each with the word of a hint that it replaces.
type Names = Vec<(&'static str, String)>;

/// The names in a detail: `instance ID was ...`, `version VERSION of KEY is ...`, `no version of KEY is ...`.
fn names_in_detail(detail: &str) -> Names {
    let words: Vec<&str> = detail.split([' ', ':']).collect();
    match words[..] {
        ["instance", id, ..] => vec![("ID", quoted(id))],
        ["version", version, "of", key, ..] => {
            vec![("KEY", quoted(key)), ("VERSION", quoted(version))]
        }
        ["no", "version", "of", key, ..] => vec![("KEY", quoted(key))],
        _ => Names::new(),
    }
}

/// The hint with these names; of two names for the same word, the first one. A name may contain a word of the hint, so inserted
/// names are not searched again.
fn filled(hint: &str, names: &[(&'static str, String)]) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let (mut text, mut rest) = (String::new(), hint);
    while !rest.is_empty() {
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let name = names.iter().find(|(replaced, _)| *replaced == word);
        text += name.map_or(word, |(_, name)| name.as_str());
        let next = after.find(is_part).unwrap_or(after.len());
        text += &after[..next];
        rest = &after[next..];
    }
    text
}

fn usual(code: &str) -> Option<&'static str> {
    Some(match code {
        "token_missing" | "token_malformed" | "token_untrusted" => {
            "pass --as USER against `wrkflw dev`, or a token with --token or WRKFLW_TOKEN"
        }
        "token_expired" => "make a new token with `wrkflw token USER`",
        "permission_missing" => {
            "act as somebody whose role has the permission, such as `--as admin` against `wrkflw dev`"
        }
        "task_taken" => "`wrkflw task list --view available` shows what is still open",
        "instance_suspended" => {
            "`wrkflw instance show ID` shows by whom and why; `wrkflw instance resume ID` lets it go on"
        }
        "task_suspended" => "`wrkflw task resume TASK` lets it go on",
        "instance_running" => "cancel it first, or wait for its end",
        "not_claimed" => "`wrkflw task claim TASK` takes it",
        "not_delegated" => "`wrkflw task release TASK` gives it back to its candidates",
        "delegations_exhausted" => "decide it, or hand it back with `wrkflw task resolve TASK`",
        "instance_ended" => "`wrkflw instance history ID` shows how it ended",
        "already_running" => {
            "find it with `wrkflw instance list --status RUNNING`, or start one for another entity"
        }
        "no_active_version" => {
            "`wrkflw definition list KEY` shows the versions; `wrkflw definition activate KEY VERSION` activates one"
        }
        "unknown_names" => "add them, or activate it with --force",
        "calendar_used" => "replace it with `wrkflw calendar set NAME`, or delete it with --force",
        "version_stopped" => {
            "`wrkflw definition resume KEY VERSION` lets it run again, once its error is fixed"
        }
        "too_many_operations" => {
            "`wrkflw operation list` shows them; `wrkflw operation stop OPERATION` ends one"
        }
        "version_retired" => "`wrkflw definition reinstate KEY VERSION` makes it usable again",
        "stale_revision" => {
            "look at it again with `wrkflw instance show ID`, then repeat with the new revision"
        }
        "unpublishable" => "fix these, build again, and try with `wrkflw plugin check` first",
        "invalid_input" | "invalid_request" | "malformed_json" => "fix these and repeat",
        "busy" | "overloaded" | "request_timeout" | "unavailable" => "try again in a moment",
        "logic_budget_exceeded" | "logic_fault" | "logic_output_too_large" => {
            "the flow's author must fix its logic; nothing was written"
        }
        _ => return None,
    })
}

/// The kinds of missing things, by their names in the API, and the commands that list them. The longest matching name counts.
const LISTS: &[(&str, &str)] = &[
    (
        "absence",
        "`wrkflw absence list PERSON` shows those of a person",
    ),
    ("calendar", "`wrkflw calendar list` shows what there is"),
    ("definition", "`wrkflw definition list` shows what there is"),
    (
        "definition version",
        "`wrkflw definition list` shows what there is",
    ),
    (
        "delivery",
        "`wrkflw subscription deliveries ID` shows those of a subscription",
    ),
    ("group", "`wrkflw group list` shows what there is"),
    (
        "instance",
        "`wrkflw instance list` shows those that you see",
    ),
    (
        "instance about",
        "`wrkflw instance list` shows those that you see",
    ),
    (
        "instance or task whose id begins with",
        "`wrkflw instance list` and `wrkflw task list --view all` show the ids",
    ),
    (
        "instance that had begun by then:",
        "`wrkflw instance list` shows when each began",
    ),
    (
        "notification of yours",
        "`wrkflw notification list` shows yours",
    ),
    ("open task", "`wrkflw task list --view mine` shows yours"),
    ("operation", "`wrkflw operation list` shows what there is"),
    (
        "parked event of instance",
        "`wrkflw dead-letter list` shows what waits",
    ),
    ("person", "`wrkflw person list` shows who there is"),
    ("role", "`wrkflw role list` shows what there is"),
    (
        "saved view of yours",
        "`wrkflw saved-view list` shows yours",
    ),
    ("session of yours", "`wrkflw session list` shows yours"),
    (
        "signal of yours",
        "a sender sees what they sent themselves: act as the one who sent it",
    ),
    (
        "subscription",
        "`wrkflw subscription list` shows what there is",
    ),
    ("task", "`wrkflw task list --view all` shows what is open"),
];

/// The command that lists things of the kind that was not found, for a request with this path.
pub(in crate::cli) fn listing(detail: &str, path: &str) -> Option<String> {
    let missing = detail.strip_prefix("there is no ")?;
    let names = |what: &str| {
        missing
            .strip_prefix(what)
            .is_some_and(|rest| rest.starts_with(' '))
    };
    let fitting = LISTS.iter().filter(|(what, _)| names(what));
    fitting
        .max_by_key(|(what, _)| what.len())
        .map(|(_, next)| filled(next, &names_in_path(path)))
}

/// The command that shows who may start, for `only members of the group G may start K; ...` or `of the groups G, H may start K; ...`.
fn members(detail: &str) -> String {
    let who = detail.split_once(" may start ").map_or("", |(who, _)| who);
    let single = who.strip_prefix("only members of the group ");
    let several = who.strip_prefix("only members of the groups ");
    let groups: Vec<&str> = match (single, several) {
        (Some(group), _) => vec![group],
        (None, Some(groups)) => groups.split(", ").collect(),
        (None, None) => vec!["GROUP"],
    };
    let shows = groups
        .iter()
        .map(|group| format!("`wrkflw group show {}`", quoted(group)));
    let shows = shows.collect::<Vec<_>>().join(", ");
    match &groups[..] {
        [_] => format!("{shows} shows who is in the group"),
        _ => format!("{shows} show who is in each group"),
    }
}

/// The names that the path of a request has.
fn names_in_path(path: &str) -> Names {
    let mut segments = path.split('/').skip(2);
    let (noun, id) = (segments.next().unwrap_or_default(), segments.next());
    let version = segments
        .next()
        .filter(|word| *word == "versions")
        .and(segments.next());
    let replaced = match noun {
        "instances" | "subscriptions" => [Some("ID"), None],
        "people" => [Some("PERSON"), None],
        "tasks" => [Some("TASK"), None],
        "definitions" => [Some("KEY"), Some("VERSION")],
        _ => [None, None],
    };
    let pairs = replaced.into_iter().zip([id, version]);
    pairs
        .filter_map(|(word, name)| Some((word?, name.filter(|name| !name.is_empty())?)))
        .map(|(word, name)| (word, quoted(&decoded(name))))
        .collect()
}

/// A segment of a path as it was before it was encoded.
fn decoded(segment: &str) -> String {
    let pairs = form_urlencoded::parse(segment.as_bytes());
    pairs.map(|(text, _)| text).collect()
}

/// A word as a shell takes it.
pub(in crate::cli) fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./:".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrkflw_server::http::problem::CODES;

    /// A code, the path of the request, a reason, a detail, and the expected hint.
    const TOLD: &[(&str, &str, &str, &str, Option<&str>)] = &[
        (
            "forbidden",
            "/v1/instances",
            "not_an_initiator",
            "only members of the group it's may start my-flow; GET /v1/groups/it's shows them",
            Some("`wrkflw group show 'it'\\''s'` shows who is in the group"),
        ),
        (
            "forbidden",
            "/v1/instances",
            "not_an_initiator",
            "only members of the groups a, b may start my-flow; GET /v1/groups/{id} shows those of each",
            Some("`wrkflw group show a`, `wrkflw group show b` show who is in each group"),
        ),
        ("forbidden", "/v1/instances", "own_rule", "", None),
        (
            "forbidden",
            "/v1/instances/7/cancel",
            "own_rule",
            "",
            Some(
                "`wrkflw instance actions 7 --as USER` lists what that person may do, and why not the rest",
            ),
        ),
        (
            "forbidden",
            "/v1/tasks/8/claim",
            "not_a_candidate",
            "",
            Some("`wrkflw task show 8` shows its owner, its candidates and its instance"),
        ),
        (
            "stale_revision",
            "/v1/tasks/8/claim",
            "",
            "the revision is 8, not 1",
            Some("look at it again with `wrkflw task show 8`, then repeat with the new revision"),
        ),
        (
            "instance_suspended",
            "/v1/tasks/8/decide",
            "",
            "instance 7 was suspended by admin at 2026-11-26T18:21:27.555Z: x",
            Some(
                "`wrkflw instance show 7` shows by whom and why; `wrkflw instance resume 7` lets it go on",
            ),
        ),
        (
            "instance_ended",
            "/v1/tasks/8/decide",
            "",
            "instance 7 has ended: CANCELLED",
            Some("`wrkflw instance history 7` shows how it ended"),
        ),
        (
            "version_stopped",
            "/v1/tasks/8/decide",
            "",
            "version 3 of my-flow is stopped; until it is resumed, ...",
            Some("`wrkflw definition resume my-flow 3` lets it run again, once its error is fixed"),
        ),
        (
            "version_stopped",
            "/v1/instances/7/cancel",
            "",
            "version 3 of ID_CHECK is stopped; until it is resumed, ...",
            Some(
                "`wrkflw definition resume ID_CHECK 3` lets it run again, once its error is fixed",
            ),
        ),
        (
            "version_stopped",
            "/v1/definitions/VERSION/versions/3/activate",
            "",
            "",
            Some("`wrkflw definition resume VERSION 3` lets it run again, once its error is fixed"),
        ),
        (
            "instance_suspended",
            "/v1/tasks/8/decide",
            "",
            "instance TASK was suspended by admin: x",
            Some(
                "`wrkflw instance show TASK` shows by whom and why; `wrkflw instance resume TASK` lets it go on",
            ),
        ),
        (
            "no_active_version",
            "/v1/instances",
            "",
            "no version of my-flow is active",
            Some(
                "`wrkflw definition list my-flow` shows the versions; `wrkflw definition activate my-flow VERSION` activates one",
            ),
        ),
        (
            "not_found",
            "/v1/subscriptions/7/deliveries/9/retry",
            "",
            "there is no delivery 9",
            Some("`wrkflw subscription deliveries 7` shows those of a subscription"),
        ),
        (
            "not_found",
            "/v1/people/a%40b/absences/9",
            "",
            "there is no absence 9",
            Some("`wrkflw absence list 'a@b'` shows those of a person"),
        ),
        (
            "logic_fault",
            "/v1/instances",
            "",
            "enter: there is no calendar \"office\"; an operator adds it",
            Some("an operator must add the calendar; nothing was written"),
        ),
        (
            "not_claimed",
            "/v1/tasks/8/release",
            "",
            "",
            Some("`wrkflw task claim 8` takes it"),
        ),
        (
            "version_stopped",
            "/v1/definitions/my-flow/versions/3/activate",
            "",
            "",
            Some("`wrkflw definition resume my-flow 3` lets it run again, once its error is fixed"),
        ),
        (
            "not_found",
            "/v1/instances",
            "",
            "/id: an id has 32 hexadecimal digits",
            None,
        ),
    ];

    #[test]
    fn the_next_step_of_a_refusal_exists() {
        let of = |code: &str, instance: &str, reason: &str, detail: &str| {
            let problem = serde_json::json!({
                "code": code, "reason": reason, "instance": instance, "detail": detail,
            });
            next_step(code, &problem)
        };
        for (code, path, reason, detail, next) in TOLD.iter().copied() {
            assert_eq!(
                of(code, path, reason, detail).as_deref(),
                next,
                "{code} {path}"
            );
        }
    }

    #[test]
    fn whoever_starts_a_second_instance_is_told_how_to_see_the_first() {
        let problem = serde_json::json!({
            "code": "already_running", "instance": "/v1/instances", "conflict": { "instanceId": "7" },
        });
        let next = next_step("already_running", &problem).expect("a next step");
        assert!(
            next.starts_with("`wrkflw instance show 7` shows it"),
            "{next}"
        );
    }

    /// The nouns stand in the sources of the engine and the server.
    #[test]
    fn whatever_is_missing_the_next_step_lists_its_kind() {
        let mut found = std::collections::BTreeSet::new();
        let mut folders = vec![
            concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/src").into(),
            concat!(env!("CARGO_MANIFEST_DIR"), "/../server/src").into(),
        ];
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir::<std::path::PathBuf>(folder).expect("a folder");
            for path in entries.map(|entry| entry.expect("an entry").path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(&path).expect("a source");
                for mark in ["what: \"", "what = \"", "missing(\"", "(what, id) = (\""] {
                    let named = source.split(mark).skip(1);
                    found.extend(named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
                }
            }
        }
        assert!(found.len() > 15, "{found:?}");
        for what in found {
            assert!(
                LISTS.iter().any(|(known, _)| *known == what),
                "{what} has no list"
            );
            let suggested = listing(&format!("there is no {what} 7"), "");
            let (_, next) = LISTS.iter().find(|(known, _)| *known == what).expect("it");
            assert_eq!(suggested.as_deref(), Some(*next), "{what}");
        }
    }

    /// A command in a hint can be run.
    #[test]
    fn every_command_that_a_hint_names_exists() {
        let codes = CODES.iter().filter_map(|(code, ..)| usual(code));
        let hints = codes.chain(LISTS.iter().map(|(_, next)| *next));
        let mut tried = 0;
        for hint in hints {
            let quoted = hint.split('`').skip(1).step_by(2);
            for line in quoted.filter(|line| line.starts_with("wrkflw ")) {
                let words = line
                    .replace("VERSION", "1")
                    .replace("OPERATION", "01a20416-5f62-7350-986a-13b0f0477285");
                let parsed = crate::cli::command().try_get_matches_from(words.split(' '));
                let kind = parsed.err().map(|error| error.kind());
                let is_unfinished = kind == Some(clap::error::ErrorKind::MissingRequiredArgument);
                assert!(kind.is_none() || is_unfinished, "{line}: {kind:?}");
                tried += 1;
            }
        }
        assert!(tried > 30, "{tried}");
    }
}
