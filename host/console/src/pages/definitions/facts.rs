//! Facts about a version in words: who starts and sees its instances, and which facts about people flow logic gets.

use serde_json::Value;

use super::Version;
use crate::language::Words;

/// The names and values. A fact that the graph does not declare is left out, except who sees instances and what the logic reads.
pub(super) fn of(w: Words, version: &Version, graph: &Value) -> Vec<(String, String)> {
    let starts = some(names(&graph["initiators"]));
    let seen = match graph.get("observers").filter(|list| list.is_array()) {
        None => w.t("seen-tenant").into_owned(),
        Some(groups) => match names(groups) {
            groups if groups.is_empty() => w.t("seen-participants").into_owned(),
            groups => w.with("seen-participants-and", "groups", &groups),
        },
    };
    let read = |what: &str| w.t_of("reads", what).into_owned();
    let reads = texts(&graph["reads"]).map(read).collect::<Vec<_>>();
    let reads = some(reads.join(", ")).unwrap_or_else(|| w.t("reads-nothing").into_owned());
    let separate = graph["separate"].as_array().into_iter().flatten();
    let separate = some(separate.map(names).collect::<Vec<_>>().join("; "));
    let sole = (graph["solePerEntity"] == true).then(|| w.t("sole-per-entity").into_owned());
    let facts = [
        ("fact-running", version.running.map(|count| w.number(count))),
        ("fact-starts", starts),
        ("fact-seen", Some(seen)),
        ("fact-reads", Some(reads)),
        ("fact-separate", separate),
        ("fact-sole", sole),
        ("fact-digest", Some(version.digest.clone())),
        ("fact-wit", Some(version.wit.clone())),
        ("fact-sdk", version.sdk.as_deref().map(sdk)),
    ];
    let lines = facts
        .into_iter()
        .filter_map(|(id, value)| Some((w.t(id).into_owned(), value?)));
    lines.collect()
}

/// The name and version of the SDK that a component was built with. A text that no SDK wrote is shown unchanged.
fn sdk(text: &str) -> String {
    let read: Value = serde_json::from_str(text).unwrap_or_default();
    match (read["sdk"].as_str(), read["version"].as_str()) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        _ => text.to_owned(),
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn names(list: &Value) -> String {
    texts(list).collect::<Vec<_>>().join(", ")
}
