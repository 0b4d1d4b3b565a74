//! Finds the operation of a request in the OpenAPI document, and checks every response of the tests against it: its status, and the
//! code of a problem.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;
use wrkflw_server::http::document;

/// One operation: its id, its method, the segments of its path, and its responses.
struct Operation {
    id: String,
    method: String,
    segments: Vec<String>,
    responses: Vec<(u16, BTreeSet<String>)>,
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(document()).expect("JSON");
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, described) in item.as_object().expect("operations") {
            let answers = described["responses"].as_object().expect("responses");
            let responses = answers.iter().map(|(status, response)| {
                let description = response["description"].as_str().unwrap_or_default();
                let codes = description.split('`').skip(1).step_by(2);
                (
                    status.parse().expect("a status"),
                    codes.map(str::to_owned).collect(),
                )
            });
            let id = described["operationId"].as_str().expect("an id");
            operations.push(Operation {
                id: id.to_owned(),
                method: method.to_ascii_uppercase(),
                segments: path.split('/').map(str::to_owned).collect(),
                responses: responses.collect(),
            });
        }
    }
    operations
});

impl Operation {
    /// The number of path segments that equal the operation's literally. None if it is another path.
    fn matches(&self, method: &str, path: &[&str]) -> Option<usize> {
        let is_hole = |segment: &str| segment.starts_with('{');
        let fits = |(own, given): (&String, &&str)| is_hole(own) || own == given;
        let is_own = self.method == method
            && self.segments.len() == path.len()
            && self.segments.iter().zip(path).all(fits);
        let literal = self.segments.iter().filter(|segment| !is_hole(segment));
        is_own.then(|| literal.count())
    }
}

/// The operation of a request: the matching one with the most literal segments.
fn operation(method: &str, path: &str) -> Option<&'static Operation> {
    let segments: Vec<_> = path.split('/').collect();
    let found = OPERATIONS
        .iter()
        .filter_map(|one| Some((one.matches(method, &segments)?, one)));
    found
        .max_by_key(|(literal, _)| *literal)
        .map(|(_, operation)| operation)
}

/// The id of the operation of a request.
pub(crate) fn id(method: &str, path: &str) -> &'static str {
    let found = operation(method, path).unwrap_or_else(|| panic!("no operation {method} {path}"));
    &found.id
}

/// Fails if the operation does not document this response.
pub(super) fn check(method: &str, path: &str, status: u16, body: &Value) {
    let Some(operation) = operation(method, path) else {
        return;
    };
    let documented = operation
        .responses
        .iter()
        .find(|(known, _)| *known == status);
    let Some((_, codes)) = documented else {
        panic!("{method} {path} answers with {status}, which is not documented: {body}");
    };
    if let Some(code) = body["code"].as_str().filter(|_| status >= 400) {
        assert!(
            codes.contains(code),
            "{method} {path} answers with {code} ({status}), which is not documented for it: {body}"
        );
    }
}
