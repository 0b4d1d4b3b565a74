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
mod tests;
