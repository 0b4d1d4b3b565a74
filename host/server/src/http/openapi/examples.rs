//! The examples in the OpenAPI document: requests and responses that the test `api::examples` recorded.

use serde_json::Value;

const RECORDED: &str = include_str!("examples.json");

/// Adds to each operation its recorded request and response.
pub(super) fn add(document: &mut Value) {
    let mut recorded: Value = serde_json::from_str(RECORDED).expect("examples.json is valid JSON");
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.flat_map(|(_, item)| item.as_object_mut().into_iter().flatten());
    for (_, operation) in operations {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let Some(example) = recorded.get_mut(id).map(Value::take) else {
            continue;
        };
        let status = example["status"].as_str().unwrap_or_default();
        let answer = operation.pointer_mut(&format!("/responses/{status}"));
        show(answer, &example["response"]);
        show(operation.get_mut("requestBody"), &example["request"]);
    }
}

/// Sets the example of a request or response whose body is JSON.
fn show(described: Option<&mut Value>, example: &Value) {
    let content = described.and_then(|body| body.pointer_mut("/content/application~1json"));
    let members = content.and_then(Value::as_object_mut);
    if let Some(members) = members.filter(|_| !example.is_null()) {
        members.insert("example".to_owned(), example.clone());
    }
}
