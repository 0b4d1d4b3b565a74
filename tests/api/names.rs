//! Names and enumerations of the API follow the rules of docs/api.md.

use super::openapi::document;
use super::*;

/// Fields whose names another standard defines.
const FOREIGN: [&str; 1] = ["CloudEventShape.time"];
/// Fields whose values are chosen by a flow, the operator or a later version of the host.
const OPEN: [&str; 4] = [
    "RefusedAttempt.action",
    "RefusalView.action",
    "Page_RefusalView.data.action",
    "ParkedEvent.type",
];

/// A field of a body, a part of an answer, or a parameter of a query.
struct Field {
    /// The schema or the operation that it belongs to.
    place: String,
    name: String,
    schema: Value,
}

/// All fields and parameters, each with its own schema instead of a reference.
async fn fields(app: &TestApp) -> Vec<Field> {
    let document = document(app).await;
    let mut found = Vec::new();
    let schemas = document["components"]["schemas"].as_object();
    for (name, schema) in schemas.expect("schemas") {
        collect(&document, name, schema, &mut found);
    }
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let parameters = operation["parameters"].as_array();
            for parameter in parameters.into_iter().flatten() {
                if parameter["in"] == "query" {
                    found.push(Field {
                        place: format!("{method} {path}"),
                        name: parameter["name"].as_str().expect("a name").to_owned(),
                        schema: resolved(&document, &parameter["schema"]),
                    });
                }
            }
        }
    }
    assert!(found.len() > 400, "{} fields are read", found.len());
    found
}

fn collect(document: &Value, place: &str, schema: &Value, found: &mut Vec<Field>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let schema = resolved(document, field);
        collect(document, &format!("{place}.{name}"), &schema, found);
        found.push(Field {
            place: place.to_owned(),
            name: name.clone(),
            schema,
        });
    }
    for keyword in ["allOf", "oneOf"] {
        for part in schema[keyword].as_array().into_iter().flatten() {
            if part.get("$ref").is_none() {
                collect(document, place, part, found);
            }
        }
    }
    if schema["items"].is_object() && schema["items"].get("$ref").is_none() {
        collect(document, place, &schema["items"], found);
    }
}

/// The schema without references and without the null of an optional value: type and enumeration.
fn resolved(document: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let named = document.pointer(&reference[1..]).expect("a schema");
        // The fields of this schema are read once, under its own name.
        return json!({ "type": named["type"], "enum": named["enum"] });
    }
    if let Some(parts) = schema["oneOf"].as_array() {
        let is_null = |part: &&Value| part["type"] == "null";
        let others: Vec<_> = parts.iter().filter(|part| !is_null(part)).collect();
        if let [only] = others[..] {
            return resolved(document, only);
        }
    }
    let mut schema = schema.clone();
    if schema["items"].get("$ref").is_some() {
        schema["items"] = resolved(document, &schema["items"]);
    }
    schema
}

impl Field {
    fn full(&self) -> String {
        format!("{}.{}", self.place, self.name)
    }

    fn is(&self, kind: &str) -> bool {
        let types = &self.schema["type"];
        types == kind
            || types
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == kind))
    }

    fn format(&self) -> &str {
        let schema = if self.is("array") {
            &self.schema["items"]
        } else {
            &self.schema
        };
        schema["format"].as_str().unwrap_or_default()
    }

    /// The values of an enumeration, also inside of an array.
    fn values(&self) -> Vec<&str> {
        let schema = if self.is("array") {
            &self.schema["items"]
        } else {
            &self.schema
        };
        let values = schema["enum"].as_array();
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

#[tokio::test]
async fn a_reference_has_the_name_of_its_target() {
    let app = TestApp::empty().await;
    for field in fields(&app).await {
        let name = field.name.as_str();
        if field.format() == "uuid" {
            let is_id = name == "id" || name.ends_with("Id") || name.ends_with("Ids");
            assert!(is_id, "{}: the name of an id ends in Id", field.full());
        }
        let is_text = field.is("string");
        let vague = ["definition", "definitionId", "workflow", "flow"].contains(&name);
        assert!(
            !(is_text && vague),
            "{}: the name of the key of a definition is definitionKey",
            field.full()
        );
    }
}

#[tokio::test]
async fn a_time_has_the_name_of_its_event() {
    let app = TestApp::empty().await;
    for field in fields(&app).await {
        let name = field.name.as_str();
        if field.format() == "date-time" && !FOREIGN.contains(&&*field.full()) {
            let ends = ["At", "Before", "Since", "From", "Until"]
                .iter()
                .any(|end| name.ends_with(end));
            let is_known = ends || ["at", "from", "until"].contains(&name);
            assert!(
                is_known,
                "{}: the name of an instant ends in At, Before, Since, From or Until",
                field.full()
            );
        }
    }
}

#[tokio::test]
async fn statuses_are_upper_case_and_other_enumerations_lower_case() {
    let app = TestApp::empty().await;
    for field in fields(&app).await {
        let full = field.full();
        if field.name == "status" {
            let values = field.values();
            let is_upper =
                |value: &&str| value.bytes().all(|c| c.is_ascii_uppercase() || c == b'_');
            // In the result of a single task, it is a status number of HTTP.
            let is_sound = field.is("integer") || !values.is_empty() && values.iter().all(is_upper);
            assert!(is_sound, "{full}: {:?}", field.schema);
            continue;
        }
        // The kinds of notifications are upper case, as in other programs.
        if field.values().contains(&"MENTION") {
            continue;
        }
        // These values are names of fields.
        if field.name == "sort" {
            continue;
        }
        let is_lower = |value: &&str| value.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
        assert!(
            field.values().iter().all(is_lower),
            "{full}: {:?}",
            field.values()
        );
        let names = [
            "action",
            "deliver",
            "how",
            "include",
            "kind",
            "recipientType",
            "result",
            "view",
        ];
        let is_closed = (field.is("string") || field.is("array"))
            && !OPEN.contains(&&*full)
            && !full.starts_with("Problem.");
        if names.contains(&&*field.name) && is_closed {
            assert!(!field.values().is_empty(), "{full} has no values");
        }
    }
}
