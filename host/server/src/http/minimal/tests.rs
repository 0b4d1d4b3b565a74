//! The header `Prefer`, also with unknown preferences.

use axum::http::HeaderValue;

use super::*;

#[test]
fn the_first_known_preference_counts() {
    let minimal = Some(Preference::Minimal);
    let whole = Some(Preference::Representation);
    let cases: [(&[&'static str], _); 9] = [
        (&[], None),
        (&["return=minimal"], minimal),
        (&["Return = \"representation\""], whole),
        (&["respond-async, return=minimal; x=1"], minimal),
        (&["wait=10", "return=representation"], whole),
        (&["return=representation, return=minimal"], whole),
        (&["return=nothing"], None),
        (&["returns=minimal"], None),
        (&["return"], None),
    ];
    for (values, wanted) in cases {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("prefer", HeaderValue::from_static(value));
        }
        assert_eq!(Preference::of(&headers), wanted, "{values:?}");
    }
}
