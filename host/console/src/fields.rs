//! The fields of a form for a JSON Schema, and the JSON of a filled form. A member of a type without its own kind of field gets a
//! field for JSON. The API checks every value: a text that is not a number is sent unchanged, and the refusal names it.

use std::collections::BTreeMap;

use serde_json::Value;

use wrkflw_core::json::{Json, Node, escaped};

use crate::api::{FieldTrouble, Trouble};
use crate::language::Words;
use crate::posted::Fields;

/// The prefix of the names of fields.
const PREFIX: &str = "input.";
/// The name of the only field if the schema lists no members.
const WHOLE: &str = "input";
/// A text that may be longer gets a field of several lines.
const LINE_CHARS_MAX: u64 = 200;
/// The separator of several errors of one field.
const BETWEEN: &str = " · ";

/// One field of a form.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) help: String,
    pub(crate) required: bool,
    pub(crate) value: String,
    pub(crate) error: String,
    /// `text`, `long`, `number`, `choice`, `several`, `flag`, `json`, `person`, or a type of HTML's inputs. Of `several`, `value` has one
    /// line for each chosen option.
    pub(crate) kind: &'static str,
    pub(crate) choices: Vec<String>,
    /// The pointer of the member in the body.
    pub(crate) pointer: String,
}

impl Field {
    /// A required field for the body's member `name`, in a form that no schema describes.
    pub(crate) fn named(name: &str, label: String, kind: &'static str, filled: &Fields) -> Field {
        Field {
            name: name.to_owned(),
            label,
            help: String::new(),
            required: true,
            value: filled.all(name).collect::<Vec<_>>().join("\n"),
            error: String::new(),
            kind,
            choices: Vec::new(),
            pointer: format!("/{name}"),
        }
    }

    pub(crate) fn has(&self, choice: &str) -> bool {
        self.value.lines().any(|one| one == choice)
    }
}

/// The fields for the input of a schema, with their earlier values.
pub(crate) fn of(schema: &Value, filled: &Fields, pointer: &str) -> Vec<Field> {
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<_> = required.filter_map(Value::as_str).collect();
    let Some(members) = schema["properties"]
        .as_object()
        .filter(|members| !members.is_empty())
    else {
        return vec![whole(schema, filled, pointer)];
    };
    let field = |(name, member): (&String, &Value)| {
        let field = format!("{PREFIX}{name}");
        let text = |key: &str| member[key].as_str().unwrap_or_default().to_owned();
        Field {
            label: Some(text("title"))
                .filter(|title| !title.is_empty())
                .unwrap_or_else(|| name.clone()),
            help: text("description"),
            required: required.contains(&name.as_str()),
            value: filled.get(&field).to_owned(),
            error: String::new(),
            kind: kind(member),
            choices: choices(member),
            pointer: format!("{pointer}/{}", escaped(name)),
            name: field,
        }
    };
    members.iter().map(field).collect()
}

fn whole(schema: &Value, filled: &Fields, pointer: &str) -> Field {
    Field {
        name: WHOLE.to_owned(),
        label: "JSON".to_owned(),
        help: schema["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        required: false,
        value: filled.get(WHOLE).to_owned(),
        error: String::new(),
        kind: "json",
        choices: Vec::new(),
        pointer: pointer.to_owned(),
    }
}

fn choices(member: &Value) -> Vec<String> {
    let values = member["enum"].as_array().into_iter().flatten();
    values
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The first type that is not null.
fn type_of(member: &Value) -> &str {
    match &member["type"] {
        Value::String(one) => one,
        Value::Array(several) => {
            let mut names = several.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or_default()
        }
        _ => "",
    }
}

fn kind(member: &Value) -> &'static str {
    if !choices(member).is_empty() {
        return "choice";
    }
    match (
        type_of(member),
        member["format"].as_str().unwrap_or_default(),
    ) {
        ("string", "date") => "date",
        ("string", "person") => "person",
        ("string", "email") => "email",
        ("string", "uri") => "url",
        ("string", _)
            if member["maxLength"]
                .as_u64()
                .is_some_and(|most| most > LINE_CHARS_MAX) =>
        {
            "long"
        }
        ("string", _) => "text",
        ("number" | "integer", _) => "number",
        ("boolean", _) => "flag",
        _ => "json",
    }
}

/// The JSON of a filled form. Empty fields are left out; a flag that is not set is false. A number that the reader's language reads as
/// another number, such as `1.500` in German, becomes a text, which the API refuses. All other numbers keep the typed digits.
pub(crate) fn input(schema: &Value, filled: &Fields, w: Words) -> Node {
    let mut members = BTreeMap::new();
    for field in of(schema, filled, "") {
        let text = field.value.as_str();
        if field.name == WHOLE {
            if text.trim().is_empty() {
                return Node::Object(BTreeMap::new());
            }
            return parsed(text);
        }
        let value = match field.kind {
            "flag" => Some(Node::Bool(!text.is_empty())),
            _ if text.is_empty() => None,
            "number" if w.has_thousands(text.trim()) => Some(Node::String(text.to_owned())),
            "number" | "json" => Some(parsed(text)),
            _ => Some(Node::String(text.to_owned())),
        };
        let name = field.name.strip_prefix(PREFIX).unwrap_or(&field.name);
        members.extend(value.map(|value| (name.to_owned(), value)));
    }
    Node::Object(members)
}

/// The typed JSON. A text that the API does not read as JSON, such as an object that names a member twice, becomes a JSON string.
fn parsed(text: &str) -> Node {
    Json::parse(text).map_or_else(|_| Node::String(text.to_owned()), |json| json.node())
}

/// Adds the API's errors about single members to their fields. Returns the other errors.
pub(crate) fn attach_errors<'a>(
    fields: &mut [Field],
    trouble: &'a Trouble,
) -> Vec<&'a FieldTrouble> {
    let mut rest = Vec::new();
    for error in &trouble.errors {
        let concerns = |field: &&mut Field| {
            let rest = error.pointer.strip_prefix(&field.pointer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match fields.iter_mut().find(concerns) {
            Some(field) => add(&mut field.error, &error.detail),
            None => rest.push(error),
        }
    }
    rest
}

/// Adds a message to those of a field, unless it is there already.
pub(crate) fn add(messages: &mut String, message: &str) {
    if messages.split(BETWEEN).any(|known| known == message) {
        return;
    }
    if !messages.is_empty() {
        messages.push_str(BETWEEN);
    }
    messages.push_str(message);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(schema: &Value, filled: &Fields, w: Words) -> Value {
        Json::from(&super::input(schema, filled, w)).value()
    }

    fn english() -> Words {
        Words::named("en").expect("English")
    }

    fn filled(pairs: &[(&str, &str)]) -> Fields {
        let pairs = pairs.iter();
        Fields(
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn each_type_has_its_field_and_its_json() {
        let schema = json!({
            "required": ["amount"],
            "properties": {
                "amount": { "type": "integer", "title": "Amount" },
                "urgent": { "type": "boolean" },
                "kind": { "enum": ["A", "B"] },
                "due": { "type": ["string", "null"], "format": "date" },
                "why": { "type": "string", "maxLength": 4000 },
                "lines": { "type": "array" },
            },
        });
        let form = filled(&[
            ("input.amount", "12"),
            ("input.kind", "B"),
            ("input.due", ""),
            ("input.why", "So\nit is"),
            ("input.lines", "[1]"),
        ]);
        let fields = of(&schema, &form, "/input");
        let kinds: Vec<_> = fields
            .iter()
            .map(|field| (field.label.as_str(), field.kind, field.required))
            .collect();
        let expected = [
            ("Amount", "number", true),
            ("due", "date", false),
            ("kind", "choice", false),
            ("lines", "json", false),
            ("urgent", "flag", false),
            ("why", "long", false),
        ];
        let mut sorted = kinds.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
        let expected =
            json!({ "amount": 12, "urgent": false, "kind": "B", "why": "So\nit is", "lines": [1] });
        assert_eq!(input(&schema, &form, english()), expected);
    }

    #[test]
    fn what_is_no_number_goes_to_the_api_as_it_is() {
        let schema = json!({ "properties": { "amount": { "type": "number" } } });
        let form = filled(&[("input.amount", "a lot")]);
        assert_eq!(
            input(&schema, &form, english()),
            json!({ "amount": "a lot" })
        );
        let form = filled(&[("input.amount", "1.500")]);
        let german = Words::named("de").expect("German");
        assert_eq!(input(&schema, &form, german), json!({ "amount": "1.500" }));
        assert_eq!(input(&schema, &form, english()), json!({ "amount": 1.5 }));
    }

    #[test]
    fn numbers_have_the_digits_that_were_typed() {
        let schema = json!({ "properties": { "amount": { "type": "number" }, "more": {} } });
        for number in [
            "1999.90",
            "50000.000000000000000001",
            "12345678901234567890123",
        ] {
            let form = filled(&[("input.amount", number), ("input.more", number)]);
            let sent = super::input(&schema, &form, english()).to_string();
            assert_eq!(sent, format!(r#"{{"amount":{number},"more":{number}}}"#));
        }
        let twice = r#"{"a":1,"a":2}"#;
        let form = filled(&[("input.more", twice)]);
        assert_eq!(input(&schema, &form, english()), json!({ "more": twice }));
    }

    #[test]
    fn a_member_may_have_the_name_of_a_field() {
        let schema = json!({ "properties": { "amount": {}, "input.amount": {} } });
        let form = filled(&[("input.amount", "1"), ("input.input.amount", "2")]);
        let expected = json!({ "amount": 1, "input.amount": 2 });
        assert_eq!(input(&schema, &form, english()), expected);
    }

    #[test]
    fn a_schema_without_members_is_one_field_for_json() {
        let schema = json!({ "type": "object" });
        let form = filled(&[("input", "{\"a\": 1}")]);
        assert_eq!(of(&schema, &form, "/input").len(), 1);
        assert_eq!(input(&schema, &form, english()), json!({ "a": 1 }));
    }

    #[test]
    fn json_that_does_not_parse_goes_to_the_api_as_it_is() {
        let schema = json!({ "type": "object" });
        let sent = |text: &str| input(&schema, &filled(&[("input", text)]), english());
        assert_eq!(sent("{\"a\": 1"), json!("{\"a\": 1"));
        for blank in ["", " \n"] {
            assert_eq!(sent(blank), json!({}));
        }
    }

    #[test]
    fn a_refusal_is_shown_at_its_field() {
        let schema = json!({ "properties": { "a/b": {}, "c": {} } });
        let mut fields = of(&schema, &filled(&[]), "/input");
        let error = |detail: &str| FieldTrouble {
            pointer: "/input/a~1b/0".to_owned(),
            code: String::new(),
            detail: detail.to_owned(),
            expected: None,
        };
        let trouble = Trouble {
            errors: vec![error("too small"), error("odd"), error("too small")],
            ..Trouble::default()
        };
        assert!(attach_errors(&mut fields, &trouble).is_empty());
        let errors: Vec<_> = fields.iter().map(|field| field.error.as_str()).collect();
        assert_eq!(errors, ["too small · odd", ""]);
    }
}
