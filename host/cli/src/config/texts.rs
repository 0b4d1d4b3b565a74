//! Parsers of texts with a format. Without them, only the first command or consumer would find an invalid text.

use url::Url;

use wrkflw_core::ids::check_id;
use wrkflw_server::http::auth::TENANT_CHARS_MAX;

/// The longest topic name of Kafka.
const TOPIC_BYTES_MAX: usize = 249;
/// The longest prefix of event types.
const PREFIX_BYTES_MAX: usize = 100;

/// A text that is not empty.
pub(super) fn present(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// The name of a tenant.
pub(super) fn tenant(text: &str) -> Result<String, String> {
    let text = present(text)?;
    match check_id(&text, TENANT_CHARS_MAX) {
        Ok(()) => Ok(text),
        Err(rule) => Err(format!("the name of a tenant must be {rule}")),
    }
}

/// The URL under which other systems reach this host.
pub(super) fn web_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let is_web = matches!(url.scheme(), "http" | "https");
    if is_web && url.query().is_none() && url.fragment().is_none() {
        Ok(text.to_owned())
    } else {
        Err("write http:// or https://, a host and perhaps a path".to_owned())
    }
}

/// A topic of Kafka.
pub(super) fn topic(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = (1..=TOPIC_BYTES_MAX).contains(&text.len()) && !matches!(text, "." | "..");
    if fits && text.bytes().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a topic has 1 to {TOPIC_BYTES_MAX} letters, digits, dots, underscores and hyphens"
        ))
    }
}

/// The prefix of event types, such as `com.example`.
pub(super) fn prefix(text: &str) -> Result<String, String> {
    let is_word = |word: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        !word.is_empty() && word.bytes().all(is_plain)
    };
    if text.len() <= PREFIX_BYTES_MAX && text.split('.').all(is_word) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "write words of letters, digits, underscores and hyphens with dots between them, {PREFIX_BYTES_MAX} bytes at the most"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_forms() {
        for (good, bad) in [
            (present("aud"), present(" ")),
            (tenant("caf\u{e9}"), tenant("cafe\u{301}")),
            (tenant(&"x".repeat(64)), tenant(&"x".repeat(65))),
            (tenant("default"), tenant("")),
            (
                web_url("https://flows.example/wrkflw"),
                web_url("flows.example"),
            ),
            (
                web_url("http://localhost:8080"),
                web_url("ftp://flows.example"),
            ),
            (web_url("http://[::1]:8080"), web_url("http://x?y=1")),
            (topic("wrkflw.events"), topic("")),
            (topic("A_1-b"), topic("events/of ours")),
            (topic(&"x".repeat(249)), topic(&"x".repeat(250))),
            (prefix("dev.wrkflw"), prefix("")),
            (prefix("com.my-company"), prefix("dev..wrkflw")),
        ] {
            good.expect("a good one");
            bad.expect_err("a bad one");
        }
    }
}
