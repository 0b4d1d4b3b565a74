//! Canonical text, refusals with their place, merge patches, and random documents against `serde_json`.

use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    Json::parse(text).expect("parses").to_string()
}

#[test]
fn members_are_sorted_and_numbers_keep_their_text() {
    assert_eq!(
        canonical(r#" { "b" : 1e2 , "a" : [ 1.0 , -0 ] } "#),
        r#"{"a":[1.0,-0],"b":1e2}"#
    );
    assert_eq!(
        canonical("123456789012345678901234567890.10"),
        "123456789012345678901234567890.10"
    );
}

#[test]
fn a_tree_is_serialised_with_the_text_of_its_numbers() {
    let text = r#"{"a":50000.000000000000000001,"b":[1.50,1e3,-0],"c":null,"d":[true,"\n"]}"#;
    let tree = Node::parse(text).expect("parses");
    assert_eq!(serde_json::to_string(&tree).expect("serialises"), text);
    assert_eq!(Json::of(&tree).as_str(), text);
    let member = Node::parse(r#"{"a":[1.50]}"#).expect("parses");
    let pretty = serde_json::to_string_pretty(&member).expect("serialises");
    assert_eq!(pretty, "{\n  \"a\": [\n    1.50\n  ]\n}");
}

#[test]
fn strings_have_one_spelling() {
    assert_eq!(
        canonical(r#""\u0041\/\u00e9\n\ud83d\ude00\u001f""#),
        "\"A/é\\n😀\\u001f\""
    );
}

#[test]
fn refusals_name_the_place() {
    for (text, pointer, detail) in [
        (r#"{"a":{"b":"\u0000"}}"#, "/a/b", "the character NUL"),
        (r#"["\ud800"]"#, "/0", "a lone surrogate"),
        (r#"{"a/b":1,"a/b":2}"#, "/a~1b", "a member named twice"),
        (
            r#"{"b":[{"z":1,"c":2,"z":3}]}"#,
            "/b/0/z",
            "a member named twice",
        ),
        (
            r#"{"b":[{"$serde_json::private::RawValue":"[1"}]}"#,
            "/b/0/$serde_json::private::RawValue",
            "a name that other readers take for a type of their own",
        ),
        (
            r#"{"\u0024serde_json::private::Number":"1"}"#,
            "/$serde_json::private::Number",
            "a name that other readers take for a type of their own",
        ),
        (r#"{"a":01}"#, "/a", "a malformed number"),
        ("[1e999]", "/0", "a number too large to be read by others"),
        ("-2e308", "", "a number too large to be read by others"),
        ("[1,]", "/1", "an unexpected character"),
        ("{\"a\":1} x", "", "text after the value"),
        ("", "", "the text ends too early"),
    ] {
        let error = Json::parse(text).expect_err(text);
        assert_eq!(
            (error.pointer.as_str(), error.detail.as_str()),
            (pointer, detail),
            "{text}"
        );
    }
    let deep = "[".repeat(DEPTH_MAX + 1);
    assert_eq!(
        Json::parse(&deep).expect_err("too deep").detail,
        "nesting deeper than 64"
    );
}

#[test]
fn refusals_name_line_and_column() {
    for (text, located) in [
        ("", "the text ends too early (line 1, column 1)"),
        ("{\"a\":1,}", "an unexpected character (line 1, column 8)"),
        (
            "{\n  \"ä\": 1\n  \"b\": 2\n}",
            "an unexpected character (line 3, column 3)",
        ),
        (
            "{\"äö\": tru}",
            "an unexpected character (line 1, column 8)",
        ),
        ("[\n01]", "a malformed number (line 2, column 1)"),
        ("{\"a\":1}\nx", "text after the value (line 2, column 1)"),
        (
            "{\"a\":1,\n\"b\":[",
            "the text ends too early (line 2, column 6)",
        ),
        ("{\"a\":1,\"a\":2}", "a member named twice at /a"),
    ] {
        assert_eq!(
            Json::parse(text).expect_err(text).located(),
            located,
            "{text}"
        );
    }
}

#[test]
fn every_number_taken_can_be_read_by_others() {
    for text in ["1e308", "1e-999", "-0", "0.1e309"] {
        assert!(Json::parse(text).expect(text).value().is_number(), "{text}");
    }
    let long = "9".repeat(308);
    assert!(Json::parse(&long).expect("long").value().is_number());
}

#[test]
fn the_deepest_document_can_be_put_into_the_hosts_own() {
    let deepest = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    let deepest = Json::parse(&deepest).expect("within the limit");
    let around = Json::of(&serde_json::json!({ "facts": [{ "data": deepest }] }));
    assert_eq!(Json::stored(around.as_str()).as_ref(), Ok(&around));
    assert_eq!(Json::from(&around.node()), around);
    assert!(around.value().is_object());
    assert!(Json::parse(around.as_str()).is_err());
}

#[test]
fn merge_patch_replaces_adds_and_removes() {
    let merged = |target: &str, patch: &str| {
        Json::parse(target)
            .expect("target")
            .merged(&Json::parse(patch).expect("patch"))
            .to_string()
    };
    assert_eq!(
        merged(
            r#"{"a":1,"b":{"c":2,"d":3}}"#,
            r#"{"b":{"c":null},"e":[null]}"#
        ),
        r#"{"a":1,"b":{"d":3},"e":[null]}"#
    );
    assert_eq!(merged(r#"{"a":1}"#, "[1]"), "[1]");
    assert_eq!(merged("[1]", r#"{"a":{"b":null}}"#), r#"{"a":{}}"#);
}

pub(crate) fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[^\u{0}]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("[^\u{0}]{0,8}", inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_text_means_the_same_and_is_stable(value in any_json()) {
        let json = Json::parse(&value.to_string()).expect("parses");
        prop_assert_eq!(json.value(), value);
        prop_assert_eq!(Json::parse(json.as_str()).expect("parses"), json);
    }

    #[test]
    fn text_and_tree_are_read_alike(value in any_json(), cut in 0..200_usize, noise in "[\\[\\]{},:\"0a\\\\ ]{0,3}") {
        let mut text = serde_json::to_string_pretty(&value).expect("serialises");
        let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
        text.insert_str(cut, &noise);
        let tree = Node::parse(&text).map(|node| Json::from(&node));
        match (Json::parse(&text), tree) {
            (Ok(json), Ok(tree)) => prop_assert_eq!(json, tree),
            // Of several reasons the two may name different ones.
            (Err(_), Err(_)) => {}
            (json, tree) => prop_assert!(false, "{json:?} {tree:?} of {text}"),
        }
    }

    #[test]
    fn members_make_the_object_again(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).expect("serialises")
        } else {
            Json::of(&value).to_string()
        };
        let members = members(&text).expect("an object or another value");
        let again = Json::of_members(members.iter().map(|(name, value)| (&**name, &**value)));
        let object = if value.is_object() { Json::of(&value) } else { Json::empty() };
        prop_assert_eq!(again, object);
    }

    #[test]
    fn members_are_refused_where_the_text_is(text in "[\\{}\\[\\]a\":,1 ]{0,12}") {
        prop_assert_eq!(members(&text).is_ok(), Json::parse(&text).is_ok());
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
        let _ = Json::parse(&text);
    }
}
