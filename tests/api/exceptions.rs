//! Operations that differ from the general rules are listed in `docs/api.md` with a reason.

use std::collections::BTreeSet;

use super::openapi::document;
use super::*;

const PAGE: &str = include_str!("../../docs/api.md");

/// The paths in backticks between these two texts of the page.
fn listed(from: &str, until: &str) -> BTreeSet<&'static str> {
    let (_, list) = PAGE.split_once(from).expect("the list");
    let (list, _) = list.split_once(until).expect("its end");
    let quoted = list.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.starts_with('/')).collect()
}

/// The schema of a successful response.
fn answer<'a>(document: &'a Value, response: &Value) -> Option<&'a Value> {
    let schema = &response["content"]["application/json"]["schema"]["$ref"];
    document.pointer(&schema.as_str()?[1..])
}

/// Whether the schema, or a part of it, has the member.
fn has(document: &Value, schema: &Value, member: &str) -> bool {
    let mut parts = schema["allOf"].as_array().into_iter().flatten();
    !schema["properties"][member].is_null()
        || parts.any(|part| {
            let pointer = part["$ref"].as_str().unwrap_or("#/");
            let whole = document.pointer(&pointer[1..]);
            has(document, whole.unwrap_or(part), member)
        })
}

/// Every read has an `ETag`, is paged, or is listed with a reason.
#[tokio::test]
async fn a_read_is_conditional_or_listed_with_a_reason() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let (mut without, mut of_pages) = (BTreeSet::new(), 0);
    for (path, item) in document["paths"].as_object().expect("paths") {
        let Some(read) = item.get("get") else {
            continue;
        };
        let mut parameters = read["parameters"].as_array().into_iter().flatten();
        if parameters.any(|one| one["name"] == "If-None-Match") {
            continue;
        }
        let answer = answer(&document, &read["responses"]["200"]);
        if answer.is_some_and(|schema| !schema["properties"]["page"].is_null()) {
            of_pages += 1;
        } else {
            without.insert(path.as_str());
        }
    }
    assert!(of_pages > 10, "{of_pages}");
    assert_eq!(listed("These have no tag:", "```"), without);
}

/// Every change responds with `result` and `dryRun`, or is listed with a reason.
#[tokio::test]
async fn a_change_has_the_common_result_or_is_listed_with_a_reason() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let mut others = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let changes = item.as_object().expect("operations").iter();
        for (_, change) in changes.filter(|(method, _)| *method != "get") {
            let responses = change["responses"].as_object().expect("responses");
            for (_, response) in responses
                .iter()
                .filter(|(status, _)| status.starts_with('2'))
            {
                let of_result = |schema: &Value| {
                    has(&document, schema, "result") && has(&document, schema, "dryRun")
                };
                if answer(&document, response).is_none_or(|schema| !of_result(schema)) {
                    others.insert(path.as_str());
                }
            }
        }
    }
    assert_eq!(listed("These answer otherwise:", "`Prefer` counts"), others);
}
