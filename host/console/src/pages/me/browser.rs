//! The browser and its system, by its `User-Agent`.

/// The text in the header, and the name. A browser that derives from another one names that, too, so the first match of this list counts.
const BROWSERS: [(&str, &str); 7] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("HeadlessChrome/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
];
const SYSTEMS: [(&str, &str); 7] = [
    ("Windows", "Windows"),
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Android", "Android"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// Such as `Firefox 144 · Windows`; the header itself if it names no known browser.
pub(super) fn named(agent: &str) -> String {
    let found = BROWSERS.iter().find_map(|(mark, name)| {
        let (_, rest) = agent.split_once(mark)?;
        let version = rest.split(|one: char| !one.is_ascii_digit()).next()?;
        Some(format!("{name} {version}"))
    });
    let Some(browser) = found else {
        return agent.to_owned();
    };
    let system = SYSTEMS.iter().find(|(mark, _)| agent.contains(mark));
    match system {
        Some((_, system)) => format!("{browser} · {system}"),
        None => browser,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named() {
        for (agent, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
                "Firefox 144 · Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
                "Edge 142 · Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Safari/605.1.15",
                "Safari 18 · macOS",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Mobile/15E148 Safari/604.1",
                "Safari 18 · iOS",
            ),
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
                "Chrome 142 · Android",
            ),
            ("curl/8.5.0", "curl/8.5.0"),
            ("", ""),
        ] {
            assert_eq!(named(agent), name);
        }
    }
}
