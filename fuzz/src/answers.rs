//! Answers of flow logic on their way in: refused with the place, or text that can be stored and a graph that can be
//! checked and drawn.

mod draw;

use arbitrary::{Result, Unstructured};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wrkflw_core::answer::{AttributeValue, Plan};
use wrkflw_core::check;
use wrkflw_core::json::Json;
use wrkflw_sandbox::fuzzing::{self, types};
use wrkflw_server::diagram;

/// Problems of one graph.
const PROBLEMS_MAX: usize = check::PROBLEMS_MAX + 1;
type Lifted<T> = std::result::Result<T, String>;

pub(crate) fn run(data: &[u8]) {
    // Bytes that run out are read as zeros, so every input makes an answer.
    let _ = answer(&mut Unstructured::new(data));
}

fn answer(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=3)? {
        0 => check_plan(&fuzzing::plan(draw::plan(u)?)),
        1 => keeps(&fuzzing::refusal(draw::refusal(u)?)),
        2 => keeps(&fuzzing::work(draw::work(u)?)),
        _ => check_graph(draw::definition(u)?),
    }
    Ok(())
}

/// What is taken can be stored: no NUL in it, and the same when it is read back.
fn keeps<T: Serialize + DeserializeOwned + PartialEq>(taken: &Lifted<T>) {
    match taken {
        Ok(taken) => {
            let text = serde_json::to_string(taken).expect("answers serialise");
            assert!(!nul(&serde_json::from_str(&text).expect("it is JSON")));
            let again: T = serde_json::from_str(&text).expect("what is stored is read");
            assert!(again == *taken, "{text}");
        }
        Err(detail) => assert!(!detail.is_empty() && !detail.contains('\0')),
    }
}

fn nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(nul),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('\0') || nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn check_plan(taken: &Lifted<Plan>) {
    keeps(taken);
    let attributes = taken.iter().flat_map(|plan| &plan.attributes);
    for value in attributes.filter_map(|attribute| attribute.value.as_ref()) {
        match value {
            AttributeValue::Float(number) => assert!(number.is_finite()),
            AttributeValue::Decimal(digits) => {
                let number: f64 = digits.parse().expect("a decimal is a number");
                assert!(number.is_finite() && digits.len() <= 100, "{digits}");
            }
            AttributeValue::Text(_)
            | AttributeValue::Boolean(_)
            | AttributeValue::Timestamp(_)
            | AttributeValue::Bytes(_) => {}
        }
    }
}

/// A graph that comes through is checked, and drawn if it is sound.
fn check_graph(definition: types::Definition) {
    let Ok(graph) = fuzzing::graph(definition) else {
        return;
    };
    let problems = check::check(&graph);
    assert!(problems.len() <= PROBLEMS_MAX);
    let stored = Json::of(&graph);
    let again = serde_json::from_str(stored.as_str());
    assert!(graph == again.expect("what is stored is read"), "{stored}");
    if problems.is_empty() {
        let drawing = diagram::svg(&graph, None);
        assert!(drawing.starts_with("<svg") && drawing.trim_end().ends_with("</svg>"));
    }
}
