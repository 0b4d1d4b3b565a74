//! Code and scripts have no texts of their own for people: those are in the catalogues.

use std::collections::BTreeSet;
use std::path::Path;

use super::folder;

/// Literals that are no texts of pages, although they look like it: why, and how each begins.
const NO_TEXTS: [(&str, &[&str]); 9] = [
    (
        "names are the same everywhere",
        &["English", "Deutsch", "ไทย", "Kafka"],
    ),
    (
        "names of browsers and systems, and what their headers have",
        &[
            "Edg",
            "Opera",
            "Samsung",
            "Firefox",
            "HeadlessChrome/",
            "Chrome",
            "Version/",
            "Safari",
            "Windows",
            "Android",
            "Mac OS X",
            "Linux",
        ],
    ),
    ("credentials of a request", &["Bearer ", "Basic "]),
    (
        "a problem of the API",
        &[
            "this host reads too many forms",
            "this host is shutting down",
        ],
    ),
    (
        "parts of headers and of a stream",
        &[
            "{name}={value}; Path=/",
            "origin, authorization",
            "data: changed",
        ],
    ),
    ("what a digest begins with", &["wrkflw form"]),
    (
        "names of classes, elements and keys",
        &["button quiet", "notice bad", "Enter", "input, textarea"],
    ),
    (
        "for operators, in the log and behind a text of a catalogue",
        &[
            "the provider sent no code",
            "the form with the logout token is too large",
            "the form has no logout_token",
            "the logout token was used before",
            "jwt_issuer is {}",
            "public_url is {}",
            "oidc_scopes lacks openid",
            "it calls itself {}",
            "its endpoint {open}",
            "it has no PKCE",
            "{url} answers {status}",
            "its answer has no ID token",
            "the token endpoint answers",
            "its answer cannot be read",
        ],
    ),
    (
        "for the author of the page that has the element",
        &[
            "wrkflw-instance needs the attribute",
            "the product gave no token",
            "the host answered ${answer.status}",
        ],
    ),
];
/// What takes words that no page shows: the log, reasons in the code, and errors of a start.
const FOR_OTHERS: [&str; 4] = ["tracing::", ".expect(", "reason = ", "#[error("];

/// A literal with the code of its statement before it.
struct Literal {
    text: String,
    before: String,
}

/// The literals of a file in Rust or of a script. Comments have none.
fn literals(code: &str, is_script: bool) -> Vec<Literal> {
    let mut found = Vec::new();
    let mut before = String::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, next)| next);
            continue;
        }
        // A character is no text, and may be a quotation mark. A lifetime has no second mark.
        if first == '\'' && !is_script {
            let length = after.chars().next().map_or(1, char::len_utf8);
            let closed = after.strip_prefix('\\').map_or(length, |_| 2);
            let is_character = after.get(closed..).is_some_and(|one| one.starts_with('\''));
            rest = if is_character {
                &after[closed + 1..]
            } else {
                after
            };
            continue;
        }
        let quotes = if is_script { "\"'`" } else { "\"" };
        if quotes.contains(first) {
            let (text, next) = until(after, first);
            found.push(Literal {
                text,
                before: before.clone(),
            });
            rest = next;
            continue;
        }
        before.push(first);
        if ";{}".contains(first) {
            before.clear();
        }
        rest = after;
    }
    found
}

/// The text until this mark, and what follows the mark.
fn until(rest: &str, mark: char) -> (String, &str) {
    let mut text = String::new();
    let mut characters = rest.char_indices();
    while let Some((place, one)) = characters.next() {
        if one == mark {
            return (text, &rest[place + one.len_utf8()..]);
        }
        if one == '\\' {
            // What an escape stands for is no letter.
            characters.next();
            text.push(' ');
        } else {
            text.push(one);
        }
    }
    (text, "")
}

/// Whether a text looks like one for people: two words, a capital at its beginning, or a letter of another language.
fn is_for_people(text: &str) -> bool {
    let is_word = |word: &str| word.len() > 1 && word.bytes().all(|one| one.is_ascii_alphabetic());
    // What is filled in is between the words of a text.
    let words = text.split(' ').filter(|word| !word.starts_with(['{', '$']));
    let words: Vec<_> = words
        .map(|word| word.trim_end_matches([',', ':', ';', '.', '!', '?']))
        .collect();
    let two = words
        .windows(2)
        .any(|pair| pair.iter().all(|word| is_word(word)));
    let mut letters = text.chars();
    let begins = letters.next().is_some_and(|one| one.is_ascii_uppercase());
    let goes_on = letters.take(2).filter(char::is_ascii_lowercase).count() == 2;
    let is_foreign = text
        .chars()
        .any(|one| !one.is_ascii() && one.is_alphabetic());
    two || (begins && goes_on) || is_foreign
}

/// The texts for people in a file.
fn texts(code: &str, is_script: bool) -> Vec<String> {
    // Tests of a module are at its end.
    let code = code.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    let literals = literals(code, is_script).into_iter();
    let texts = literals.filter(|one| {
        let is_for_others = FOR_OTHERS.iter().any(|call| one.before.contains(call));
        !is_for_others && is_for_people(&one.text)
    });
    texts.map(|one| one.text).collect()
}

#[test]
fn literals_are_told_from_characters_comments_and_messages_of_the_log() {
    let code = r#"
        // "Not this one"
        fn a<'a>(b: &'a str) { b.split('"'); let c = "Save it"; tracing::warn!(%error, "it failed here"); }
        let d = one.expect("a name that is there"); w.t("inbox"); f("a \" of it all"); g("Neu"); h("ใหม่");
    "#;
    assert_eq!(
        texts(code, false),
        ["Save it", "a   of it all", "Neu", "ใหม่"]
    );
    let script =
        "node.title = `Look again`; node.textContent = 'Gone'; // \"no text\"\nkey(\"j\");";
    assert_eq!(texts(script, true), ["Look again", "Gone"]);
}

fn is_script(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|kind| kind == "js")
}

#[test]
fn code_and_scripts_have_no_texts_of_their_own() {
    let mut files = folder("src");
    files.retain(|(path, _)| !path.contains("tests"));
    let scripts = folder("assets").into_iter();
    files.extend(scripts.filter(|(path, _)| is_script(path) && !path.contains("htmx")));
    let mut wrong = Vec::new();
    let mut known = BTreeSet::new();
    for (path, code) in files {
        for text in texts(&code, is_script(&path)) {
            let mut begins = NO_TEXTS.iter().flat_map(|(_, begins)| begins.iter());
            match begins.find(|begin| text.starts_with(**begin)) {
                Some(begin) => {
                    known.insert(*begin);
                }
                None => wrong.push(format!("{path}: {text}")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "texts for people belong into locales/: {wrong:#?}"
    );
    let listed = NO_TEXTS.iter().flat_map(|(_, begins)| begins.iter());
    let gone: Vec<_> = listed.filter(|begin| !known.contains(*begin)).collect();
    assert!(
        gone.is_empty(),
        "no literal begins like this any more: {gone:?}"
    );
}
