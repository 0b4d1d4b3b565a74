//! W3C trace context: every request belongs to a trace, its caller's or a new one.
//!
//! The host records no spans of its own. It passes the context on, so that log lines, events and their consumers can be
//! correlated with their cause.

use crate::clock;

/// `00-<trace id>-<parent id>-<flags>`
const LENGTH: usize = 55;
const TRACE_BYTES: usize = 16;
const SPAN_BYTES: usize = 8;
/// The flag that the caller records this trace. The other flags are not passed on.
const SAMPLED: u8 = 1;

/// The `traceparent` to use: a child of the caller's, or a new one if the header is missing or malformed.
pub fn traceparent(header: Option<&str>) -> String {
    continued(header, clock::random(), clock::random())
}

fn continued(
    header: Option<&str>,
    fresh_trace: [u8; TRACE_BYTES],
    fresh_span: [u8; SPAN_BYTES],
) -> String {
    let span = hex(&not_zero(fresh_span));
    match header.and_then(parse) {
        Some((trace, flags)) => format!("00-{trace}-{span}-{:02x}", flags & SAMPLED),
        None => format!("00-{}-{span}-{SAMPLED:02x}", hex(&not_zero(fresh_trace))),
    }
}

/// The trace id and flags of a well-formed header.
fn parse(header: &str) -> Option<(&str, u8)> {
    let hexadecimal = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let named = |part: &str, bytes: usize| {
        hexadecimal(part, 2 * bytes) && part.bytes().any(|byte| byte != b'0')
    };
    if header.len() != LENGTH {
        return None;
    }
    let mut parts = header.splitn(4, '-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let good = version == "00"
        && named(trace, TRACE_BYTES)
        && named(span, SPAN_BYTES)
        && hexadecimal(flags, 2);
    if !good {
        return None;
    }
    Some((trace, u8::from_str_radix(flags, 16).ok()?))
}

/// All zeros are no valid id, so the last byte becomes 1.
fn not_zero<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if bytes == [0; N] {
        bytes[N - 1] = 1;
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let digit =
        |value: u8| char::from_digit(u32::from(value), 16).expect("four bits are one digit");
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)])
        .collect()
}

#[cfg(test)]
mod tests {
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
            let made = traceparent(Some(&header));
            prop_assert!(parse(&made).is_some(), "{made}");
            if let Some((trace, _)) = parse(&header) {
                prop_assert_eq!(&made[3..35], trace);
                prop_assert_ne!(&made[36..52], &header[36..52]);
            } else {
                prop_assert_ne!(made, header);
            }
        }
    }
}
