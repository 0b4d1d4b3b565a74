//! Schemas and documents, good and hostile.

use std::fmt::Write as _;

mod costs;

use proptest::prelude::*;
use serde_json::Value;

use super::bounds::SCHEMA_BYTES_MAX;
use super::pattern::PATTERNS_MAX;
use super::*;
use crate::json::Json;

fn json(text: &str) -> Json {
    Json::parse(text).expect(text)
}

fn violations(schema: &str, data: &str) -> Vec<(String, String)> {
    Schema::compile(&json(schema))
        .expect("compiles")
        .violations(&json(data))
        .into_iter()
        .map(|violation| (violation.field, violation.code))
        .collect()
}

fn refusal(schema: &str) -> SchemaError {
    Schema::admit(&json(schema)).expect_err(schema)
}

#[test]
fn violations_mark_the_field_that_a_form_would_mark() {
    let schema = r##"{
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/document",
        "type": "object",
        "required": ["title", "a/b"],
        "properties": {
            "title": {"$ref": "#/$defs/line"},
            "pages": {"type": "integer", "minimum": 1},
            "day": {"format": "date"},
            "$id": {"type": "string"},
            "a/b": true
        },
        "additionalProperties": false,
        "$defs": {"line": {"type": "string", "pattern": "^[^\\n]+$", "maxLength": 5}}
    }"##;
    for (data, expected) in [
        (r#"{"title":"x","a/b":1,"$id":"y"}"#, &[][..]),
        (r#"{"title":"x"}"#, &[("/a~1b", "required")]),
        (r#"{"title":1,"a/b":1}"#, &[("/title", "type")]),
        (
            r#"{"title":"too long","a/b":1}"#,
            &[("/title", "maxLength")],
        ),
        (
            r#"{"title":"x","a/b":1,"pages":0}"#,
            &[("/pages", "minimum")],
        ),
        (
            r#"{"title":"x","a/b":1,"day":"soon"}"#,
            &[("/day", "format")],
        ),
        (
            r#"{"title":"x","a/b":1,"m~n":0,"o":0}"#,
            &[
                ("/m~0n", "additionalProperties"),
                ("/o", "additionalProperties"),
            ],
        ),
        ("[]", &[("", "type")]),
    ] {
        let found = violations(schema, data);
        let found: Vec<_> = found
            .iter()
            .map(|(f, c)| (f.as_str(), c.as_str()))
            .collect();
        assert_eq!(found, expected, "{data}");
    }
}

/// The code of a violation, a schema, data that violates it, and what is expected, each as JSON.
const VIOLATED: [(&str, &str, &str, &str); 28] = [
    (
        "additionalProperties",
        r#"{"properties":{"b":true},"additionalProperties":false}"#,
        r#"{"a":1}"#,
        "false",
    ),
    (
        "anyOf",
        r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
        "1",
        "true",
    ),
    ("const", r#"{"const":{"a":1}}"#, "1", r#"{"a":1}"#),
    ("contains", r#"{"contains":{"type":"null"}}"#, "[1]", "true"),
    ("enum", r#"{"enum":["A",2]}"#, "1", r#"["A",2]"#),
    ("exclusiveMaximum", r#"{"exclusiveMaximum":2}"#, "2", "2"),
    (
        "exclusiveMinimum",
        r#"{"exclusiveMinimum":2.5}"#,
        "1",
        "2.5",
    ),
    (
        "falseSchema",
        r#"{"properties":{"a":false}}"#,
        r#"{"a":1}"#,
        "false",
    ),
    ("format", r#"{"format":"date"}"#, r#""soon""#, r#""date""#),
    ("maxItems", r#"{"maxItems":1}"#, "[1,2]", "1"),
    ("maxLength", r#"{"maxLength":1}"#, r#""ab""#, "1"),
    (
        "maxProperties",
        r#"{"maxProperties":1}"#,
        r#"{"a":1,"b":2}"#,
        "1",
    ),
    ("maximum", r#"{"maximum":-1}"#, "0", "-1"),
    ("minItems", r#"{"minItems":1}"#, "[]", "1"),
    ("minLength", r#"{"minLength":2}"#, r#""a""#, "2"),
    ("minProperties", r#"{"minProperties":1}"#, "{}", "1"),
    ("minimum", r#"{"minimum":1}"#, "0", "1"),
    ("multipleOf", r#"{"multipleOf":2}"#, "3", "2"),
    ("not", r#"{"not":{"type":"null"}}"#, "null", "true"),
    (
        "oneOf",
        r#"{"oneOf":[{"type":"null"},{"type":"string"}]}"#,
        "1",
        "true",
    ),
    ("pattern", r#"{"pattern":"^a"}"#, r#""b""#, r#""^a""#),
    (
        "propertyNames",
        r#"{"propertyNames":{"maxLength":1}}"#,
        r#"{"ab":1}"#,
        "true",
    ),
    ("required", r#"{"required":["a"]}"#, "{}", "true"),
    (
        "type",
        r#"{"type":["string","null"]}"#,
        "1",
        r#"["null","string"]"#,
    ),
    ("type", r#"{"type":"integer"}"#, "1.5", r#""integer""#),
    (
        "unevaluatedItems",
        r#"{"unevaluatedItems":false}"#,
        "[1]",
        "false",
    ),
    (
        "unevaluatedProperties",
        r#"{"unevaluatedProperties":false}"#,
        r#"{"a":1}"#,
        "false",
    ),
    ("uniqueItems", r#"{"uniqueItems":true}"#, "[1,1]", "true"),
];

#[test]
fn each_code_of_the_list_is_that_of_a_violation_and_says_what_is_expected() {
    let mut codes: std::collections::BTreeSet<String> =
        ["schema", "too_costly"].map(str::to_owned).into();
    for (code, schema, data, expected) in VIOLATED {
        let schema = Schema::compile(&json(schema)).expect(schema);
        let found = schema.violations(&json(data));
        let listed: Vec<_> = found
            .iter()
            .map(|one| (one.code.as_str(), one.expected.as_ref().map(Json::as_str)))
            .collect();
        assert_eq!(listed, [(code, Some(expected))]);
        codes.insert(code.to_owned());
    }
    assert_eq!(codes, CODES.map(str::to_owned).into());
    // What is too long is not told.
    let schema = json(&format!(
        r#"{{"const":"{}"}}"#,
        "a".repeat(EXPECTED_BYTES_MAX)
    ));
    let schema = Schema::compile(&schema).expect("compiles");
    assert_eq!(schema.violations(&json("1"))[0].expected, None);
}

#[test]
fn a_violation_does_not_repeat_the_value() {
    let schema =
        Schema::compile(&json(r#"{"properties":{"pin":{"maxLength":2}}}"#)).expect("compiles");
    let [violation] = &schema.violations(&json(r#"{"pin":"secret"}"#))[..] else {
        panic!("one violation");
    };
    assert_eq!(violation.message, "this is longer than 2 characters");
}

#[test]
fn a_violation_of_alternatives_says_what_is_against_each() {
    let message = |schema: &str, data: &str| {
        let schema = Schema::compile(&json(schema)).expect("compiles");
        let violations = schema.violations(&json(data));
        let [one] = &violations[..] else {
            panic!("one violation: {violations:?}");
        };
        format!("{}: {}", one.field, one.message)
    };
    for of in ["anyOf", "oneOf"] {
        let schema = format!(
            r#"{{"properties":{{"to":{{"{of}":[{{"type":"null"}},{{"required":["mail"]}},{{"properties":{{"fax":{{"type":"string"}}}},"required":["fax"]}}]}}}}}}"#
        );
        assert_eq!(
            message(&schema, r#"{"to":{"fax":7}}"#),
            "/to: this fits none of its 3 forms; form 1: this is not of type \"null\"; form 2: /mail: this is required; \
             form 3: /fax: this is not of type \"string\""
        );
    }
    assert_eq!(
        message(r#"{"oneOf":[{"type":"string"},{"maxLength":9}]}"#, r#""a""#),
        ": this fits more than one of its forms, and it must fit exactly one"
    );
}

/// Both parts are those of the dialect, so the validator says what a keyword may be.
#[test]
fn without_a_validator_a_keyword_may_be_what_it_may_be_with_one() {
    let right = [
        "true",
        "{}",
        r#"{"exclusiveMinimum":0,"multipleOf":0.5,"maxLength":2.0,"minItems":0,"uniqueItems":true}"#,
        r#"{"type":["string","null"],"required":["a","b"],"enum":[1,1],"const":7,"default":[],"x":"y"}"#,
        r#"{"properties":{"a":{"items":false}},"$defs":{"b":{"anyOf":[true]}},"dependentRequired":{"a":["b"]}}"#,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"title":"A","pattern":"^a","format":"date"}},"not":{"type":"null"}}"##,
    ];
    let wrong = [
        ("7", ""),
        (
            r#"{"properties":{"a/b":{"exclusiveMinimum":"zero"}}}"#,
            "/properties/a~1b/exclusiveMinimum",
        ),
        (r#"{"multipleOf":0}"#, "/multipleOf"),
        (r#"{"minLength":1.5}"#, "/minLength"),
        (r#"{"maxItems":-1}"#, "/maxItems"),
        (r#"{"type":"text"}"#, "/type"),
        (r#"{"type":[]}"#, "/type"),
        (r#"{"type":["null","null"]}"#, "/type"),
        (r#"{"required":"a"}"#, "/required"),
        (r#"{"required":["a","a"]}"#, "/required"),
        (r#"{"properties":[]}"#, "/properties"),
        (r#"{"properties":{"a":null}}"#, "/properties/a"),
        (r#"{"items":[{"type":"string"}]}"#, "/items"),
        (r#"{"anyOf":[]}"#, "/anyOf"),
        (r#"{"oneOf":[true,"b"]}"#, "/oneOf/1"),
        (r#"{"uniqueItems":1}"#, "/uniqueItems"),
        (r#"{"pattern":1}"#, "/pattern"),
        (r#"{"enum":"a"}"#, "/enum"),
        (r#"{"dependentRequired":{"a":"b"}}"#, "/dependentRequired"),
        (r#"{"title":1}"#, "/title"),
    ];
    for schema in right {
        Schema::admit(&json(schema)).expect(schema);
        forms::check(&json(schema)).expect(schema);
    }
    for (schema, pointer) in wrong {
        refusal(schema);
        let refused = forms::check(&json(schema)).expect_err(schema);
        assert_eq!(refused.pointer, pointer, "{schema}");
    }
}

#[test]
fn a_violation_of_an_enumeration_lists_all_values_up_to_a_bound() {
    let message = |values: &[String]| {
        let schema = json(&format!(r#"{{"enum":[{}]}}"#, values.join(",")));
        let schema = Schema::compile(&schema).expect("compiles");
        schema.violations(&json("null"))[0].message.clone()
    };
    let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    let four = ["DUPLICATE", "POLICY", "PRICE", "OTHER"].map(|word| format!("{word:?}"));
    assert_eq!(
        message(&four),
        r#"this is not one of "DUPLICATE", "POLICY", "PRICE", "OTHER""#
    );
    assert!(message(&numbers(OPTIONS_MAX)).ends_with("98, 99"));
    assert!(message(&numbers(OPTIONS_MAX + 2)).ends_with("98, 99 or 2 more"));
    let long: Vec<_> = (0..50).map(|n| format!("\"{n:0250}\"")).collect();
    let message = message(&long);
    assert!(
        message.len() < OPTIONS_BYTES_MAX + 100 && message.ends_with("or 34 more"),
        "{message}"
    );
}

#[test]
fn violations_are_bounded() {
    let data = format!("[{}]", vec!["1"; 1_000].join(","));
    assert_eq!(
        violations(r#"{"items":{"type":"string"}}"#, &data).len(),
        VIOLATIONS_MAX
    );
    let schema = json(&format!(r#"{{"const":"{}"}}"#, "x".repeat(1_000)));
    let schema = Schema::compile(&schema).expect("compiles");
    let message = &schema.violations(&json("1"))[0].message;
    assert_eq!(message.chars().count(), MESSAGE_CHARS_MAX + 1, "{message}");
}

#[test]
fn what_cannot_be_used_is_refused_at_its_place() {
    for (schema, pointer, says) in [
        (r#"{"type":"strin"}"#, "/type", "strin"),
        ("[]", "", ""),
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#,
            "/$schema",
            "dialect",
        ),
        (
            r#"{"$ref":"https://example.com/s"}"#,
            "/$ref",
            "nothing is fetched",
        ),
        (
            r#"{"items":{"$ref":"file:///etc/passwd"}}"#,
            "/items/$ref",
            "nothing is fetched",
        ),
        (
            r##"{"$ref":"#anchor","$defs":{"a":{"$anchor":"anchor"}}}"##,
            "/$ref",
            "anchors",
        ),
        (r##"{"$ref":"#/$defs/b"}"##, "/$ref", "leads to no place"),
        (
            r##"{"properties":{"a":{"$ref":"#"}}}"##,
            "",
            "refers back to itself",
        ),
        (r##"{"$ref":"#"}"##, "", "refers back to itself"),
        (
            r##"{"items":{"$dynamicRef":"#a"}}"##,
            "/items/$dynamicRef",
            "not supported",
        ),
        (
            r#"{"items":{"$id":"urn:x"}}"#,
            "/items/$id",
            "not supported",
        ),
        (r#"{"pattern":"(?=look)ahead"}"#, "/pattern", "look-around"),
        (
            r#"{"items":{"pattern":"(a)\\1"}}"#,
            "/items/pattern",
            "backreferences",
        ),
        (
            r#"{"patternProperties":{"(a/b":true}}"#,
            "/patternProperties/(a~1b",
            "no regular expression",
        ),
        (
            r#"{"pattern":"(\\w{100}){100}"}"#,
            "/pattern",
            "`maxLength`",
        ),
    ] {
        let error = refusal(schema);
        assert_eq!(error.pointer, pointer, "{schema}: {error}");
        assert!(error.detail.contains(says), "{schema}: {error}");
    }
}

#[test]
fn references_that_multiply_are_refused_before_they_cost() {
    let mut definitions = String::new();
    for step in 0..40 {
        let next = step + 1;
        write!(
            definitions,
            r##""d{step}":{{"allOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}},"##
        )
        .expect("a string takes it");
    }
    let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{definitions}"d40":true}}}}"##);
    assert!(
        refusal(&schema).detail.contains("written out"),
        "{}",
        refusal(&schema)
    );
}

/// A chain of `links` definitions, each referring to the next.
fn chain(links: usize) -> String {
    let mut definitions = String::new();
    for link in 0..links {
        let next = link + 1;
        write!(
            definitions,
            r##""d{link}":{{"items":{{"$ref":"#/$defs/d{next}"}}}},"##
        )
        .expect("a string takes it");
    }
    format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{definitions}"d{links}":true}}}}"##)
}

#[test]
fn nesting_through_references_is_bounded() {
    Schema::compile(&json(&chain(48))).expect("two subschemas a link fit");
    for links in [50, 1_000] {
        let error = refusal(&chain(links));
        assert!(error.detail.contains("within each other"), "{error}");
    }
}

#[test]
fn size_and_patterns_are_bounded() {
    let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX));
    assert!(refusal(&long).detail.contains("bytes"));
    let items = vec![r#"{"pattern":"a"}"#; PATTERNS_MAX + 1].join(",");
    assert!(
        refusal(&format!(r#"{{"allOf":[{items}]}}"#))
            .detail
            .contains("patterns")
    );
}

/// JSON that often is a schema.
fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Bool(true)),
        Just(serde_json::json!({"type": "string"})),
        Just(serde_json::json!({"$ref": "#/$defs/a"})),
        Just(serde_json::json!({"$ref": "#/properties/a/items"})),
        Just(serde_json::json!(3)),
        Just(serde_json::json!("[")),
    ];
    let keyword = prop::sample::select(vec![
        "properties",
        "items",
        "allOf",
        "$defs",
        "a",
        "pattern",
        "$ref",
        "type",
        "not",
        "enum",
        "minLength",
        "unevaluatedProperties",
        "$id",
        "$anchor",
        "dependentSchemas",
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keyword.clone(), inner, 0..4).prop_map(|members| {
                let members = members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                Value::Object(members.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_makes_the_host_panic(schema in schema_like(), data in schema_like()) {
        if let Ok(schema) = Schema::compile(&json(&schema.to_string())) {
            schema.violations(&json(&data.to_string()));
        }
    }
}
