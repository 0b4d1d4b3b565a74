//! The cost of schemas: ordinary ones are admitted, and those whose worst document takes long are refused.

use std::time::Instant;

use serde_json::{Value, json};

use super::super::bounds::ENUM_VALUES_MAX;
use super::super::pattern::PATTERN_TEXT_MAX;
use super::*;

fn document(value: &Value) -> Json {
    Json::of(value)
}

/// The documents of sixty thousand bytes that cost the most.
fn ab() -> Json {
    // Neither letter comes at a fixed distance from another, so that no table of states is ever complete.
    let mut state = 12_345_u64;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state.is_multiple_of(2) { 'a' } else { 'b' }
    };
    document(&json!((0..60_000).map(|_| letter()).collect::<String>()))
}

fn attack() -> Value {
    let pattern = |length| json!({ "pattern": format!("a[ab]{{{length}}}c") });
    json!({ "allOf": (1_500..1_510).map(pattern).collect::<Vec<_>>() })
}

/// Applied to each item, as often as there are bytes for.
fn often(schema: &Value) -> Value {
    json!({ "items": schema })
}

fn copies(count: usize, schema: &Value) -> Vec<Value> {
    vec![schema.clone(); count]
}

/// The attack below keywords that apply a schema.
fn attacks_below_keywords() -> [(Value, &'static str); 7] {
    [
        (json!({ "contains": attack() }), "sought"),
        (json!({ "not": attack() }), "denied"),
        (json!({ "if": attack(), "then": true }), "asked"),
        (
            json!({ "dependentSchemas": { "a": attack() } }),
            "where another is",
        ),
        (
            json!({ "$ref": "#/$defs/a", "$defs": { "a": attack() } }),
            "referred to",
        ),
        (json!({ "prefixItems": [true, attack()] }), "at a place"),
        (
            json!({ "properties": { "a": { "additionalProperties": attack() } } }),
            "below",
        ),
    ]
}

#[test]
fn a_schema_that_could_take_long_is_refused() {
    let mut unevaluated = json!({ "properties": { "a": true } });
    for _ in 0..30 {
        unevaluated =
            json!({ "anyOf": [unevaluated], "unevaluatedProperties": { "type": "integer" } });
    }
    let names: Value = (0..60)
        .map(|number| (format!("^[a-z]{{{number}}}q"), json!({ "type": "integer" })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let objects: Vec<_> = (0..500).map(|number| json!({ "a": number })).collect();
    let dear = [
        (attack(), "automata that explode"),
        (json!({ "pattern": "a[ab]{300}c" }), "one of them"),
        (unevaluated, "marking again and again"),
        (
            often(&json!({ "allOf": copies(300, &json!({ "minimum": 0 })) })),
            "many judges",
        ),
        (
            often(&json!({ "anyOf": copies(300, &json!({ "type": "string" })) })),
            "many branches",
        ),
        (
            often(&json!({ "oneOf": copies(300, &json!({ "minLength": 3 })) })),
            "many alternatives",
        ),
        (
            often(&json!({ "enum": (0..2_000).collect::<Vec<_>>() })),
            "many values",
        ),
        (
            often(&json!({ "enum": objects })),
            "values that are compared deeply",
        ),
        (
            often(&json!({ "const": "x".repeat(60_000) })),
            "a long value",
        ),
        (
            often(&json!({ "allOf": copies(5, &json!({ "multipleOf": 0.01 })) })),
            "arithmetic",
        ),
        (
            json!({ "patternProperties": names }),
            "patterns on each name",
        ),
        (
            json!({ "propertyNames": { "pattern": "a[ab]{300}c" } }),
            "one on each name",
        ),
    ];
    for (schema, what) in dear.into_iter().chain(attacks_below_keywords()) {
        let begun = Instant::now();
        let error = refusal(&schema.to_string());
        assert!(error.detail.contains("could take"), "{what}: {error}");
        assert_eq!(error.pointer, "", "{what}");
        // Unoptimised, on a busy machine: what is meant is that nothing of it is tried out.
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}");
    }
}

/// Patterns, each a little different, whose tables are large but fit.
fn tabled(count: usize, length: usize) -> Vec<Value> {
    let pattern = |number| json!({ "pattern": format!("a[ab]{{{length}}}c{number}") });
    (0..count).map(pattern).collect()
}

#[test]
fn the_tables_of_patterns_are_bounded_in_time_and_size() {
    let on_one = json!({ "properties": { "t": { "anyOf": tabled(100, 12) } } });
    let error = refusal(&on_one.to_string());
    assert!(error.detail.contains("could take"), "{error}");
    // Each on another text, so one document does not take long.
    let on_each = |count| json!({ "prefixItems": tabled(count, 12) });
    let error = refusal(&on_each(10).to_string());
    assert!(error.detail.contains("tables of"), "{error}");
    let backwards = |number| json!({ "pattern": format!("{number}[ab]{{12}}a[ab]*$") });
    let backwards: Vec<_> = (0..10).map(backwards).collect();
    let error = refusal(&json!({ "prefixItems": backwards }).to_string());
    assert!(error.detail.contains("tables of"), "{error}");
    let schema = Schema::admit(&document(&on_each(4))).expect("these fit");
    assert!((1..=TABLES_BYTES_MAX).contains(&schema.tables()));
    // One of before is taken, and weighs what it may take.
    let old = Schema::compile(&document(&on_each(10))).expect("it was taken once");
    assert!(old.tables() > TABLES_BYTES_MAX);
}

#[test]
fn a_schema_weighs_its_nodes_also_without_patterns() {
    let kinds = |count: usize| {
        let property = |number| (format!("p{number}"), json!({ "type": "string" }));
        let properties: serde_json::Map<_, _> = (0..count).map(property).collect();
        let document = Json::of(&json!({ "properties": properties }));
        Schema::compile(&document).expect("compiles").weight()
    };
    assert!(kinds(1) < 4 * 1024);
    // A cache of inputs has 64 MiB, so it keeps a few dozen of these.
    assert!(kinds(2_000) > 1 << 20);
}

#[test]
fn equal_patterns_have_one_table() {
    let tables = |count| {
        let schema = json!({ "allOf": copies(count, &tabled(1, 11)[0]) });
        let schema = Schema::admit(&document(&schema)).expect("they cost little");
        schema.tables()
    };
    assert_eq!(tables(20), tables(1));
}

#[test]
fn enumerations_and_texts_of_patterns_are_bounded() {
    let long: Vec<_> = (0..=ENUM_VALUES_MAX).collect();
    let error = refusal(&json!({ "properties": { "a": { "enum": long } } }).to_string());
    assert_eq!(error.pointer, "/properties/a/enum");
    let long = json!({ "pattern": "x".repeat(PATTERN_TEXT_MAX / 3) });
    let error = refusal(&json!({ "prefixItems": copies(4, &long) }).to_string());
    assert!(error.detail.contains("shorten"), "{error}");
    let large: Vec<_> = (0..20)
        .map(|number| json!({ "pattern": format!("^.{{1,{}}}$", 200 + number) }))
        .collect();
    let error = refusal(&json!({ "prefixItems": large }).to_string());
    assert!(error.detail.contains("together"), "{error}");
}

/// What a careful author writes for people.
#[test]
fn ordinary_schemas_are_taken() {
    let codes: Vec<_> = (0..250).map(|number| format!("{number:03}")).collect();
    let line = json!({
        "type": "object",
        "required": ["article", "count", "price"],
        "additionalProperties": false,
        "properties": {
            "article": { "type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$" },
            "count": { "type": "integer", "minimum": 1, "maximum": 10_000 },
            "price": { "type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01 },
            "country": { "enum": codes },
            "currency": { "enum": codes[..180] },
            "note": { "type": "string", "maxLength": 2_000 },
        },
    });
    let contact = |field: &str| {
        json!({
            "type": "object", "properties": { "kind": { "const": field }, field: { "type": "string", "minLength": 1 } },
            "required": ["kind", field],
        })
    };
    let form = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "unevaluatedProperties": false,
        "allOf": [{ "$ref": "#/$defs/base" }],
        "properties": {
            "lines": { "type": "array", "items": { "$ref": "#/$defs/line" }, "minItems": 1, "maxItems": 200 },
            "tags": { "type": "array", "items": { "type": "string", "pattern": "^[a-z0-9-]{1,40}$" }, "uniqueItems": true },
            "countries": { "type": "array", "items": { "enum": codes }, "uniqueItems": true },
            "contacts": { "type": "array", "items": { "oneOf": [contact("mail"), contact("phone"), contact("post")] } },
            "approved": { "type": "boolean" },
        },
        "if": { "properties": { "approved": { "const": true } }, "required": ["approved"] },
        "then": { "required": ["lines"] },
        "$defs": {
            "line": line,
            "base": { "type": "object", "properties": {
                "mail": { "type": "string", "format": "email", "maxLength": 200 },
                "site": { "type": "string", "format": "uri" },
                "day": { "type": "string", "format": "date" },
                "iban": { "type": "string", "pattern": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$" },
                "phone": { "type": "string", "pattern": "^\\+?[0-9 ()/-]{5,25}$" },
                "name": { "type": "string", "pattern": "^.{1,200}$" },
                "text": { "type": "string", "pattern": "^[^<>]*$" },
                "slug": { "type": "string", "pattern": "^[\\w-]{1,64}$" },
                "address": { "type": "string", "pattern": "^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$" },
                "letters": { "type": "string", "pattern": "^\\p{L}+([ '-]\\p{L}+)*$" },
            } },
        },
    });
    let schema = Schema::admit(&document(&form)).expect("an ordinary form");
    let tables = schema.tables();
    assert!(tables < TABLES_BYTES_MAX / 2, "{tables}");
    // What people send is checked where it comes in.
    let line = json!({ "article": "AB-1234", "count": 1, "price": 1.5, "country": "007" });
    let data = document(&json!({ "lines": copies(8, &line), "name": "Mara" }));
    assert_eq!(schema.violations(&data), []);
    assert_eq!(schema.first_violation(&data), None);
    let effort = schema.effort(&data);
    assert!(effort < QUICK_MAX, "{effort:?}");
    let data =
        json!({ "lines": [{ "article": "AB-12345", "count": 0, "price": 1 }], "unknown": 1 });
    let violations = schema.violations(&document(&data));
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert!(
        fields.contains(&"/lines/0/article") && fields.contains(&"/lines/0/count"),
        "{fields:?}"
    );
}

/// A schema that was published under earlier bounds still works for documents of ordinary size.
#[test]
fn a_costly_schema_of_before_judges_small_documents_and_refuses_to_begin_with_large_ones() {
    let schema = Schema::compile(&document(&attack())).expect("it was taken once");
    let small = schema.violations(&document(&json!("abba")));
    assert_eq!(small.len(), 10);
    let begun = Instant::now();
    let large = schema.violations(&ab());
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "nothing is matched"
    );
    let [only] = &large[..] else {
        panic!("{large:?}");
    };
    assert_eq!(
        (only.code.as_str(), only.field.as_str()),
        ("too_costly", "")
    );
}

#[test]
fn violations_that_would_take_long_to_list_are_told_in_one_sentence() {
    let schema = json!({ "items": { "anyOf": copies(20, &json!({ "type": "string" })) } });
    let schema =
        Schema::admit(&document(&schema)).expect("it is quick to tell that something is wrong");
    assert_eq!(schema.violations(&document(&json!([0, "x", 1]))).len(), 2);
    let [only] = &schema.violations(&document(&json!(copies(30_000, &json!(0)))))[..] else {
        panic!("one sentence");
    };
    assert_eq!(only.code, "schema");
}

/// A schema of this size.
type Make = fn(usize) -> Value;

/// The largest that is admitted, of sizes that double.
fn dearest(make: Make) -> Schema {
    let mut count = 1;
    let mut found = None;
    while let Ok(schema) = Schema::admit(&document(&make(count))) {
        found = Some(schema);
        count *= 2;
    }
    found.expect("the smallest is admitted")
}

/// The most expensive admitted schemas, measured. What should take 100 ms on a common machine takes a multiple in an
/// unoptimised build on a busy machine; a wrong bound would take minutes.
#[test]
fn the_dearest_that_is_admitted_takes_as_long_as_was_said() {
    let zeros = document(&json!(copies(32_000, &json!(0))));
    let empties = document(&json!(copies(12_000, &json!({}))));
    let mut named = serde_json::Map::new();
    for number in 0..6_000 {
        named.insert(number.to_string(), json!(0));
    }
    let named = document(&named.into());
    let cases: [(&str, Make, &Json); 8] = [
        ("tables", |n| json!({ "anyOf": tabled(n, 11) }), &ab()),
        (
            "patterns",
            |n| json!({ "pattern": format!("a[ab]{{{n}}}c") }),
            &ab(),
        ),
        (
            "judges",
            |n| often(&json!({ "allOf": copies(n, &json!({ "minimum": 0 })) })),
            &zeros,
        ),
        (
            "branches",
            |n| {
                often(
                    &json!({ "anyOf": [{ "allOf": copies(n, &json!({ "minimum": 0 })) }, { "type": "string" }] }),
                )
            },
            &zeros,
        ),
        (
            "values",
            |n| often(&json!({ "not": { "enum": (1..=n).collect::<Vec<_>>() } })),
            &zeros,
        ),
        (
            "names",
            |n| json!({ "propertyNames": { "allOf": copies(n, &json!({ "pattern": "^[0-9]{1,9}$" })) } }),
            &named,
        ),
        (
            "required",
            |n| {
                often(
                    &json!({ "dependentRequired": { "a": (0..n).map(|n| n.to_string()).collect::<Vec<_>>() } }),
                )
            },
            &empties,
        ),
        (
            "marks",
            |n| {
                let mut schema = json!({ "properties": { "0": true } });
                for _ in 0..n {
                    schema = json!({ "anyOf": [schema], "unevaluatedProperties": { "type": "integer" } });
                }
                schema
            },
            &named,
        ),
    ];
    for (what, make, data) in cases {
        let schema = dearest(make);
        let begun = Instant::now();
        schema.violations(data);
        let took = begun.elapsed();
        assert!(took < 100 * JUDGING_MAX, "{what} took {took:?}");
    }
}
