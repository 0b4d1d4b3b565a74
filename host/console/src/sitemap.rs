//! The pages of the navigation, and the pages that the search finds by their names.

use crate::language::Words;
use crate::shell::Reader;

/// A page, or a part of one.
pub(crate) struct SitemapEntry {
    pub(crate) address: &'static str,
    /// The id of its name.
    pub(crate) text: &'static str,
    /// The id of the name of the page that it belongs to; empty for a page of the navigation.
    within: &'static str,
    /// One of these permissions opens it. Empty: everybody may open it.
    any_of: &'static [&'static str],
}

const OPERATION: &[&str] = &["dead-letter:read"];
const PEOPLE: &[&str] = &["directory:write", "role:read"];
const AUDIT: &[&str] = &["audit:read"];

/// The pages of the navigation. The frame marks the page of its section.
const MAIN: [SitemapEntry; 7] = [
    SitemapEntry::new("/console", "inbox", "", &[]),
    SitemapEntry::new("/console/start", "start", "", &[]),
    SitemapEntry::new("/console/notifications", "notifications", "", &[]),
    SitemapEntry::new(
        "/console/definitions",
        "definitions",
        "",
        &["definition:publish", "definition:activate"],
    ),
    SitemapEntry::new("/console/operations", "operations", "", OPERATION),
    SitemapEntry::new("/console/people", "people", "", PEOPLE),
    SitemapEntry::new("/console/audit", "audit", "", AUDIT),
];

/// Further pages and parts of pages.
const FURTHER: [SitemapEntry; 26] = [
    SitemapEntry::new("/console?view=mine", "inbox-view-mine", "inbox", &[]),
    SitemapEntry::new(
        "/console?view=available",
        "inbox-view-available",
        "inbox",
        &[],
    ),
    SitemapEntry::new("/console?view=groups", "inbox-view-groups", "inbox", &[]),
    SitemapEntry::new("/console?view=all", "inbox-view-all", "inbox", &[]),
    SitemapEntry::new("/console/me", "me", "me", &[]),
    SitemapEntry::new("/console/me#absences", "me-absences", "me", &[]),
    SitemapEntry::new("/console/me#notified", "me-notified", "me", &[]),
    SitemapEntry::new("/console/me#preferences", "preferences", "me", &[]),
    SitemapEntry::new("/console/me#tokens", "me-tokens", "me", &[]),
    SitemapEntry::new("/console/me#sessions", "me-sessions", "me", &[]),
    SitemapEntry::new(
        "/console/upload",
        "upload",
        "definitions",
        &["definition:publish"],
    ),
    SitemapEntry::new(
        "/console/operations/instances/unassignable",
        "panel-unassignable",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations/instances/overdue",
        "panel-overdue",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations/instances/stale",
        "panel-stale",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations/dead-letters",
        "panel-dead-letters",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations/webhooks",
        "panel-webhooks",
        "operations",
        &["subscription:read"],
    ),
    SitemapEntry::new(
        "/console/operations/jobs",
        "panel-jobs",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations/hosts",
        "panel-hosts",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations/refusals",
        "refusals",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations/bulk",
        "bulk-operations",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new(
        "/console/operations#figures",
        "figures",
        "operations",
        OPERATION,
    ),
    SitemapEntry::new("/console/groups", "groups", "people", PEOPLE),
    SitemapEntry::new("/console/roles", "roles", "people", &["role:read"]),
    SitemapEntry::new("/console/audit/checkpoints", "checkpoints", "audit", AUDIT),
    SitemapEntry::new(
        "/console/audit/self-approvals",
        "compliance",
        "audit",
        AUDIT,
    ),
    SitemapEntry::new("/docs", "api-docs", "", &[]),
];

impl SitemapEntry {
    const fn new(
        address: &'static str,
        text: &'static str,
        within: &'static str,
        any_of: &'static [&'static str],
    ) -> SitemapEntry {
        SitemapEntry {
            address,
            text,
            within,
            any_of,
        }
    }

    fn is_open_to(&self, reader: &Reader) -> bool {
        self.any_of.is_empty() || self.any_of.iter().any(|one| reader.may(one))
    }

    /// The name of the page that it belongs to; empty if it is one by itself.
    pub(crate) fn within(&self, w: Words) -> String {
        if self.within.is_empty() || self.within == self.text {
            String::new()
        } else {
            w.t(self.within).into_owned()
        }
    }
}

/// The pages of the navigation that this reader may open.
pub(crate) fn navigation(reader: &Reader) -> impl Iterator<Item = &'static SitemapEntry> {
    MAIN.iter().filter(|entry| entry.is_open_to(reader))
}

/// The pages that this reader may open and whose names have all of these words.
pub(crate) fn matching(words: &str, reader: &Reader, w: Words) -> Vec<&'static SitemapEntry> {
    let all = MAIN.iter().chain(&FURTHER);
    let open = all.filter(|entry| entry.is_open_to(reader));
    open.filter(|entry| has(&format!("{} {}", entry.within(w), w.t(entry.text)), words))
        .collect()
}

/// Whether a name has words that begin with all of these, in any order. Case does not count.
pub(crate) fn has(name: &str, words: &str) -> bool {
    let name = name.to_lowercase();
    let words = words.to_lowercase();
    let mut words = words.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(permissions: &[&str]) -> Reader {
        Reader {
            name: String::new(),
            token: String::new(),
            unread: String::new(),
            permissions: permissions.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    fn found(words: &str, permissions: &[&str], language: &str) -> Vec<&'static str> {
        let w = Words::named(language).expect("a language");
        let found = matching(words, &reader(permissions), w);
        found.into_iter().map(|entry| entry.address).collect()
    }

    #[test]
    fn a_page_is_found_by_words_of_its_name_in_the_language_of_the_reader() {
        assert_eq!(found("absen", &[], "en"), ["/console/me#absences"]);
        assert_eq!(found("ABWESEN", &[], "de"), ["/console/me#absences"]);
        assert_eq!(found("mine inbox", &[], "en"), ["/console?view=mine"]);
        assert!(found("absences", &[], "de").is_empty());
        assert!(found(" ", &[], "en").is_empty());
    }

    #[test]
    fn only_pages_that_the_reader_may_open_are_found() {
        assert!(found("webhooks", &["dead-letter:read"], "en").is_empty());
        let webhooks = ["/console/operations/webhooks"];
        assert_eq!(found("webhooks", &["subscription:read"], "en"), webhooks);
        let all: Vec<_> = navigation(&reader(&[])).map(|entry| entry.text).collect();
        assert_eq!(all, ["inbox", "start", "notifications"]);
    }
}
