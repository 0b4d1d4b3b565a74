//! The estimated size of a message against that of its JSON.

use std::collections::BTreeMap;

use super::*;

#[derive(Serialize)]
enum Kind {
    Plain,
    Of(String),
    Both(u32, bool),
    Named { at: Option<String>, also: () },
}

#[derive(Serialize)]
struct Message {
    text: String,
    list: Vec<Kind>,
    bytes: Vec<u8>,
    pairs: BTreeMap<String, u64>,
    pair: (f64, char),
}

fn message(length: usize) -> Message {
    Message {
        text: "t".repeat(length),
        list: vec![
            Kind::Plain,
            Kind::Of("o".repeat(length)),
            Kind::Both(1, true),
            Kind::Named {
                at: Some("a".repeat(length)),
                also: (),
            },
            Kind::Named { at: None, also: () },
        ],
        bytes: vec![255; length],
        pairs: [("p".repeat(length), 12_345_678)].into(),
        pair: (0.5, 'c'),
    }
}

#[test]
fn it_is_about_the_size_of_the_json() {
    for length in [0, 1, 30, 5_000] {
        let exact = serde_json::to_string(&message(length)).unwrap().len();
        let tallied = size(&message(length));
        assert!(
            tallied.abs_diff(exact) < 64,
            "{tallied} for {exact} bytes of JSON"
        );
    }
}
