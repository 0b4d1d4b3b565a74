//! Headers of callers, well-formed, malformed and random.

use proptest::prelude::*;

use super::*;

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_callers_trace_goes_on_under_a_new_span() {
    let child = continued(Some(CALLER), [9; 16], [2; 8]);
    assert_eq!(
        child,
        "00-0af7651916cd43dd8448eb211c80319c-0202020202020202-01"
    );
    let quiet = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe";
    assert!(continued(Some(quiet), [9; 16], [2; 8]).ends_with("-00"));
}

#[test]
fn what_is_malformed_begins_a_new_trace() {
    let cases = [
        "",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
        " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ];
    for case in cases {
        let found = continued(Some(case), [9; 16], [2; 8]);
        assert_eq!(
            found, "00-09090909090909090909090909090909-0202020202020202-01",
            "{case}"
        );
    }
    let drawn_zero = continued(None, [0; 16], [0; 8]);
    assert_eq!(
        drawn_zero,
        "00-00000000000000000000000000000001-0000000000000001-01"
    );
}

proptest! {
    #[test]
    fn the_result_is_always_well_formed(header in prop_oneof![
        any::<String>(),
        "[0-9a-f]{2}-[0-9a-fg]{32}-[0-9a-f]{16}-[0-9a-f]{2}",
        "00-[0-9a-f]{31,33}-[0-9a-f]{15,17}-[0-9a-f]{2}",
    ]) {
        let parent = traceparent(Some(&header));
        prop_assert!(parse(&parent).is_some(), "{parent}");
        if let Some((trace, _)) = parse(&header) {
            prop_assert_eq!(&parent[3..35], trace);
            prop_assert_ne!(&parent[36..52], &header[36..52]);
        } else {
            prop_assert_ne!(parent, header);
        }
    }
}
