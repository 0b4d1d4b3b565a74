//! Untrusted JSON: an accepted text has one canonical form of bounded size, which other parsers read alike.

use serde_json::Value;
use wrkflw_core::json::{DEPTH_MAX, Json};

/// How many times as long as the text its canonical form may be: `\b` becomes `\u0008`.
const GROWTH_MAX: usize = 3;

/// Merges the last document into the first. A single document is both.
pub(crate) fn run(data: &[u8]) {
    let Some(texts) = crate::parts(data) else {
        return;
    };
    let documents: Vec<Json> = texts.iter().filter_map(|text| parsed(text)).collect();
    let (Some(document), Some(patch)) = (documents.first(), documents.last()) else {
        return;
    };
    let once = document.merged(patch);
    assert_eq!(once.merged(patch), once, "a patch applies once");
    assert_eq!(Json::parse(once.as_str()).as_ref(), Ok(&once));
}

fn parsed(text: &str) -> Option<Json> {
    let peer: Result<Value, _> = serde_json::from_str(text);
    let Ok(json) = Json::parse(text) else {
        return None;
    };
    assert_eq!(
        json.value(),
        peer.expect("what is taken can be read by others")
    );
    assert!(json.as_str().len() <= GROWTH_MAX * text.len());
    assert!(depth(json.as_str()) <= DEPTH_MAX);
    assert_eq!(
        Json::parse(json.as_str()).as_ref(),
        Ok(&json),
        "one spelling"
    );
    assert_eq!(Json::from(&json.node()), json);
    let nested: Json = serde_json::from_str(text).expect("a field takes what a body does");
    assert_eq!(nested, json);
    Some(json)
}

/// The nesting depth of brackets outside strings.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
