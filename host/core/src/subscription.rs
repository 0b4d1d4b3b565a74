//! The rules for webhook subscriptions: event types and target URLs.
//!
//! A URL comes from outside, and the host calls it from inside the operator's network. So the text of a URL is checked when
//! a subscription is made. The addresses of its host name are checked at each call. The calls themselves are elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::event_schema::{EventType, public_types};
use super::notification::KINDS;

/// How many subscriptions a tenant may have.
pub const SUBSCRIPTIONS_MAX: usize = 100;
/// How many patterns a subscription may have.
pub(crate) const TYPES_MAX: usize = 32;
/// The longest URL, in bytes.
pub(crate) const URL_BYTES_MAX: usize = 2_000;
/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 200;

/// Which addresses webhooks may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllowedAddresses {
    /// Public addresses over TLS.
    #[default]
    Public,
    /// Private addresses too, with or without TLS.
    Private,
}

/// Parses a URL that may be called. The error says what is wrong with it.
pub fn target(text: &str, reach: AllowedAddresses) -> Result<Url, &'static str> {
    if text.len() > URL_BYTES_MAX {
        return Err("a URL has at most 2000 bytes");
    }
    let url = Url::parse(text).map_err(|_| "is no URL; https://example.org/hook is one")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("names a user or a password: receivers verify the signature instead");
    }
    if url.fragment().is_some() {
        return Err("has a fragment, which is never sent");
    }
    match (url.scheme(), reach) {
        ("https", _) | ("http", AllowedAddresses::Private) => {}
        _ => return Err("is not https"),
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) => None,
        None => return Err("names no host"),
    };
    match address {
        Some(address) if !may_connect(address, url.scheme(), reach) => {
            Err("leads to an address that webhooks must not call")
        }
        Some(_) | None => Ok(url),
    }
}

/// Whether a connection to this address is allowed. Public addresses need TLS.
pub fn may_connect(address: IpAddr, scheme: &str, reach: AllowedAddresses) -> bool {
    match reach {
        AllowedAddresses::Public => scheme == "https" && is_public(address),
        AllowedAddresses::Private => scheme == "https" || !is_public(address),
    }
}

/// Whether an address is public, by IANA's registries of special-purpose addresses.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || first == 0
        || first >= 240
        // Carrier-grade NAT, protocol assignments, the former 6to4 relay, benchmarks.
        || (first == 100 && (64..128).contains(&second))
        || (first, second, third) == (192, 0, 0)
        || (first, second, third) == (192, 88, 99)
        || (first == 198 && (second == 18 || second == 19));
    !is_special
}

/// Only global unicast, without addresses that embed other addresses or are not assigned.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(address) = address.to_ipv4_mapped() {
        return is_public_v4(address);
    }
    let segments = address.segments();
    let is_unicast = segments[0] & 0xe000 == 0x2000;
    let is_special = (segments[0] == 0x2001 && (segments[1] < 0x200 || segments[1] == 0xdb8))
        || segments[0] == 0x2002
        || (segments[0] == 0x3fff && segments[1] < 0x1000);
    is_unicast && !is_special
}

/// The patterns of event types of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns(Vec<String>);

impl Patterns {
    /// Refuses patterns that no event could match. The error has the index of the pattern.
    pub fn new(patterns: Vec<String>) -> Result<Patterns, (usize, String)> {
        if patterns.is_empty() || patterns.len() > TYPES_MAX {
            return Err((
                0,
                format!("1 to {TYPES_MAX} event types, such as \"task.*\""),
            ));
        }
        let unknown = patterns.iter().position(|pattern| !can_match(pattern));
        match unknown {
            Some(number) => {
                let shown: String = patterns[number].chars().take(PATTERN_BYTES_MAX).collect();
                let detail = format!(
                    "no event type is called {shown:?}; take one such as \"task.created\", \"task.*\" or \"*\""
                );
                Err((number, detail))
            }
            None => Ok(Patterns(patterns)),
        }
    }

    /// Patterns that were checked when they were stored. A pattern of an event type that no longer exists matches nothing.
    pub fn stored(patterns: Vec<String>) -> Patterns {
        Patterns(patterns)
    }

    /// Whether one of them matches the type of this name without the operator's prefix.
    pub fn matches(&self, suffix: &str) -> bool {
        self.0
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => suffix.starts_with(start),
                None => pattern == suffix,
            })
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }
}

fn can_match(pattern: &str) -> bool {
    if pattern.len() > PATTERN_BYTES_MAX {
        return false;
    }
    if pattern == "*" {
        return true;
    }
    let Some(family) = pattern.strip_suffix(".*") else {
        let notifies = KINDS.iter().any(|kind| kind.suffix() == pattern);
        return notifies || EventType::by_suffix(pattern).is_some() && !pattern.contains('*');
    };
    let of_family = |suffix: &str| {
        suffix
            .split_once('.')
            .is_some_and(|(first, _)| first == family)
    };
    KINDS.iter().any(|kind| of_family(&kind.suffix()))
        || public_types().any(|event_type| of_family(&event_type.suffix()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, public: bool, private: bool) {
        assert_eq!(
            target(url, AllowedAddresses::Public).is_ok(),
            public,
            "{url} in public"
        );
        assert_eq!(
            target(url, AllowedAddresses::Private).is_ok(),
            private,
            "{url} in private"
        );
    }

    #[test]
    fn urls_are_judged_by_their_text() {
        check("https://example.org/hook?key=1", true, true);
        check("https://example.org:8443/", true, true);
        check("http://example.org/", false, true);
        check("http://127.0.0.1:8080/", false, true);
        check("https://10.0.0.1/", false, true);
        check("http://93.184.215.14/", false, false);
        for never in [
            "",
            "example.org",
            "ftp://example.org/",
            "file:///etc/passwd",
            "https://ada@example.org/",
            "https://ada:secret@example.org/",
            "https://example.org/#part",
            "https:///",
            &format!("https://example.org/{}", "x".repeat(URL_BYTES_MAX)),
        ] {
            check(never, false, false);
        }
    }

    #[test]
    fn no_spelling_hides_an_address() {
        for spelling in [
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[::ffff:a00:1]/",
            "https://169.254.169.254/latest/meta-data/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:a00:1::]/",
            "https://0.0.0.0/",
            "https://100.64.0.1/",
            "https://192.168.1.1/",
        ] {
            check(spelling, false, true);
        }
        for public in [
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
            "https://[::ffff:8.8.8.8]/",
        ] {
            check(public, true, true);
        }
    }

    #[test]
    fn what_is_sent_in_clear_stays_inside() {
        let (inside, outside) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([8, 8, 8, 8]));
        assert!(may_connect(inside, "http", AllowedAddresses::Private));
        assert!(!may_connect(outside, "http", AllowedAddresses::Private));
        assert!(!may_connect(inside, "https", AllowedAddresses::Public));
        assert!(may_connect(outside, "https", AllowedAddresses::Private));
    }

    #[test]
    fn patterns_stand_for_types_and_families() {
        let patterns = |all: &[&str]| Patterns::new(all.iter().map(ToString::to_string).collect());
        let some = patterns(&[
            "task.*",
            "notification.assignment_created",
            "custom.stamped",
        ])
        .expect("patterns");
        for (suffix, expected) in [
            ("task.created", true),
            ("taskforce.created", false),
            ("notification.assignment_created", true),
            ("notification.mention", false),
            ("custom.stamped", true),
            ("custom.other", false),
            ("flow.started", false),
        ] {
            assert_eq!(some.matches(suffix), expected, "{suffix}");
        }
        assert!(patterns(&["*"]).expect("a pattern").matches("flow.started"));
        let refused = |all: &[&str]| patterns(all).expect_err("nothing matches").0;
        assert_eq!(refused(&[]), 0);
        assert_eq!(refused(&["task.*", "task.craeted"]), 1);
        for wrong in [
            "",
            "task",
            "task.",
            "*.created",
            "t*",
            "nothing.*",
            "custom.*x",
            "Task.*",
        ] {
            assert_eq!(refused(&[wrong]), 0, "{wrong}");
        }
        assert!(patterns(&["custom.*"]).is_ok());
        assert_eq!(refused(&vec!["*"; TYPES_MAX + 1]), 0);
    }
}
