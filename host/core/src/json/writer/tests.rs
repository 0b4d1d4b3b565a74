//! The writer's text must equal, to the byte, the sorted text of `serde_json`, since such texts are stored and hashed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::super::tests::any_json;
use super::super::{COMPOSED_DEPTH_MAX, Json};
use super::{KEPT_BYTES_MAX, write};

fn read_again(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("serialises");
    Json::stored(&text).expect("well formed").to_string()
}

#[derive(Debug, Clone, Serialize)]
struct Unit;

#[derive(Debug, Clone, Serialize)]
struct Newtype(String);

#[derive(Debug, Clone, Serialize)]
struct Pair(i8, f32);

#[derive(Debug, Clone, Serialize)]
enum Outer {
    Unit,
    Newtype(Option<char>),
    Tuple(u8, String),
    Struct { z: bool, a: i128 },
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind")]
enum Inner {
    Plain,
    Full { zone: String, at: Timestamp },
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", content = "by", rename_all = "camelCase")]
enum Beside {
    One(Uuid),
    Both(u64, Json),
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct All {
    unit: Unit,
    newtype: Newtype,
    pair: Pair,
    outer: Vec<Outer>,
    #[serde(flatten)]
    inner: Inner,
    beside: Beside,
    #[serde(flatten)]
    rest: BTreeMap<String, Json>,
    numbered: BTreeMap<i16, f64>,
    answered: BTreeMap<bool, u16>,
    shown: Shown,
    document: Json,
}

/// Serialises as what it displays.
#[derive(Debug, Clone)]
struct Shown(String);

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[^\u{0}]{0,12}", "[\"\\\\\u{1}-\u{1f}a]{0,6}"]
}

fn any_document() -> impl Strategy<Value = Json> {
    any_json().prop_map(|value| Json::parse(&value.to_string()).expect("parses"))
}

fn any_outer() -> impl Strategy<Value = Outer> {
    let letter = any::<Option<char>>().prop_map(|letter| letter.filter(|letter| *letter != '\0'));
    prop_oneof![
        Just(Outer::Unit),
        letter.prop_map(Outer::Newtype),
        (any::<u8>(), text()).prop_map(|(number, text)| Outer::Tuple(number, text)),
        (any::<bool>(), any::<i64>()).prop_map(|(z, a)| Outer::Struct { z, a: a.into() }),
    ]
}

fn any_inner() -> impl Strategy<Value = Inner> {
    let at = |millis| Timestamp::from_millisecond(millis).expect("a moment");
    let full = (text(), 0..4_000_000_000_000_i64);
    prop_oneof![
        Just(Inner::Plain),
        full.prop_map(move |(zone, millis)| Inner::Full {
            zone,
            at: at(millis)
        }),
    ]
}

fn any_beside() -> impl Strategy<Value = Beside> {
    prop_oneof![
        any::<u128>().prop_map(|id| Beside::One(Uuid::from_u128(id))),
        (any::<u64>(), any_document()).prop_map(|(number, json)| Beside::Both(number, json)),
    ]
}

prop_compose! {
    fn any_all()(
        (newtype, shown) in (text(), text()),
        (number, float) in any::<(i8, f32)>(),
        outer in prop::collection::vec(any_outer(), 0..4),
        inner in any_inner(),
        beside in any_beside(),
        // Beside the names of the struct's own.
        rest in prop::collection::btree_map("_[^\u{0}]{0,8}", any_document(), 0..4),
        numbered in prop::collection::btree_map(any::<i16>(), any::<f64>(), 0..4),
        answered in prop::collection::btree_map(any::<bool>(), any::<u16>(), 0..3),
        document in any_document(),
    ) -> All {
        All {
            unit: Unit,
            newtype: Newtype(newtype),
            pair: Pair(number, float),
            outer,
            inner,
            beside,
            rest,
            numbered,
            answered,
            shown: Shown(shown),
            document,
        }
    }
}

proptest! {
    #[test]
    fn every_value_is_written_as_its_text_is_read(value in any_all()) {
        prop_assert_eq!(write(&value).expect("fits").into_string(), read_again(&value));
    }

    #[test]
    fn every_document_is_written_as_its_text_is_read(value in any_json()) {
        prop_assert_eq!(write(&value).expect("fits").into_string(), read_again(&value));
    }
}

#[test]
fn what_is_read_nowhere_is_not_written() {
    #[derive(Serialize)]
    struct Twice {
        one: u8,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }
    let twice = Twice {
        one: 1,
        rest: [("one".to_owned(), 2)].into(),
    };
    let keys: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
    let deep =
        (0..=COMPOSED_DEPTH_MAX).fold(serde_json::Value::Null, |inner, _| vec![inner].into());
    for (result, why) in [
        (write("\0"), "the character NUL"),
        (write(&[("a\0", 1)]), "the character NUL"),
        (write(&twice), "a member named twice, one"),
        (write(&keys), "a key that is no name"),
        (write(&deep), "nesting deeper than 96"),
    ] {
        assert_eq!(result.expect_err(why).to_string(), why);
    }
}

/// It writes a document of its own while it is written.
struct Nesting;

impl Serialize for Nesting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (Json::of(&[1, 2]), "x").serialize(serializer)
    }
}

#[test]
fn one_document_leaves_nothing_in_the_next() {
    let long = "x".repeat(KEPT_BYTES_MAX + 1);
    for _ in 0..2 {
        assert_eq!(&*write(&Nesting).expect("fits"), r#"[[1,2],"x"]"#);
        assert!(write(&("a", "\0")).is_err());
        assert_eq!(&*write(&1).expect("fits"), "1");
        let written = write(&long).expect("fits");
        assert_eq!(written.len(), long.len() + 2);
    }
}
