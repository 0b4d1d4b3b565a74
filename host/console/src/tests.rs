//! Rules for all pages: catalogues have the same texts, templates have no text of their own, and what comes from elsewhere is
//! what the list says.

mod literals;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fluent_bundle::FluentResource;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use wrkflw_core::ids::Digest;
use wrkflw_server::http::problem::{CODES, Problem};

use crate::api::{FieldTrouble, problem_text};
use crate::language::{SOURCES, Words};

fn folder(name: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut files = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).expect("a text");
                files.push((path.display().to_string(), text));
            }
        }
    }
    assert!(!files.is_empty(), "{name} is empty");
    files
}

/// The texts of a catalogue: each id with its variables.
fn texts(source: &str) -> BTreeSet<(String, BTreeSet<String>)> {
    let mut all = BTreeSet::new();
    let mut current: Option<(String, BTreeSet<String>)> = None;
    for line in source.lines() {
        let begins = line.starts_with(|first: char| first.is_ascii_lowercase());
        if let Some((id, _)) = line.split_once(" =").filter(|_| begins) {
            all.extend(current.take());
            current = Some((id.to_owned(), BTreeSet::new()));
        }
        if let Some((_, variables)) = &mut current {
            let named = line.split('$').skip(1);
            let name = |rest: &str| {
                let letters = rest.chars().take_while(char::is_ascii_alphanumeric);
                letters.collect::<String>()
            };
            variables.extend(named.map(name));
        }
    }
    all.extend(current);
    all
}

#[test]
fn catalogues_have_no_errors() {
    for (code, _, source) in SOURCES {
        let parsed = FluentResource::try_new(source.to_owned());
        let errors = parsed.err().map(|(_, errors)| errors);
        assert!(errors.is_none(), "{code}: {errors:?}");
    }
}

#[test]
fn every_language_has_every_text_with_the_same_variables() {
    let english = texts(SOURCES[0].2);
    assert!(english.len() > 50, "{}", english.len());
    for (code, _, source) in &SOURCES[1..] {
        let own = texts(source);
        let missing: Vec<_> = english.difference(&own).collect();
        let more: Vec<_> = own.difference(&english).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "{code} lacks {missing:?} and has {more:?} more"
        );
    }
}

/// The ids that templates and code name literally.
fn named() -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let files = folder("templates").into_iter().chain(folder("src"));
    for (path, text) in files.filter(|(path, _)| !path.ends_with("tests.rs")) {
        for call in ["w.t(\"", "w.n(\"", "w.with(\"", "w.say(\"", "w.known(\""] {
            let calls = text.split(call).skip(1);
            let ids = calls.filter_map(|rest| rest.split('"').next());
            named.extend(ids.map(str::to_owned));
        }
        assert!(!path.is_empty());
    }
    named
}

#[test]
fn every_text_that_a_page_names_exists() {
    let english: BTreeSet<_> = texts(SOURCES[0].2).into_iter().map(|(id, _)| id).collect();
    let named = named();
    assert!(named.contains("inbox") && named.contains("sign-in-refused"));
    let missing: Vec<_> = named.difference(&english).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What templates may say in every language.
const SAME_EVERYWHERE: [&str; 2] = ["wrkflw", "·"];

/// The texts of a template outside of tags and expressions. Keys have the same names everywhere.
fn bare(template: &str) -> Vec<String> {
    let mut rest = template.to_owned();
    for (open, close) in [
        ("{#", "#}"),
        ("{%", "%}"),
        ("{{", "}}"),
        ("<kbd>", "</kbd>"),
        ("<", ">"),
    ] {
        let mut kept = String::new();
        let mut left = rest.as_str();
        while let Some((before, inside)) = left.split_once(open) {
            kept.push_str(before);
            kept.push('\n');
            left = inside.split_once(close).map_or("", |(_, after)| after);
        }
        kept.push_str(left);
        rest = kept;
    }
    let lines = rest.lines().map(str::trim);
    let lines = lines.map(|line| {
        let same = SAME_EVERYWHERE.iter();
        same.fold(line.to_owned(), |line, same| line.replace(same, ""))
    });
    lines
        .filter(|line| line.chars().any(char::is_alphabetic))
        .collect()
}

#[test]
fn templates_have_no_text_of_their_own() {
    assert_eq!(bare("<p>{{ w.t(\"a\") }} Save</p>"), ["Save"]);
    for (path, text) in folder("templates") {
        assert_eq!(bare(&text), Vec::<String>::new(), "{path}");
        for attribute in ["aria-label=\"", "title=\"", "placeholder=\"", "alt=\""] {
            for value in text.split(attribute).skip(1) {
                let is_text = value.starts_with("{{") || value.starts_with('"');
                assert!(
                    is_text,
                    "{path}: {attribute}{}",
                    &value[..value.len().min(30)]
                );
            }
        }
    }
}

#[test]
fn pages_have_nothing_that_the_policy_forbids() {
    for (path, text) in folder("templates") {
        for forbidden in [
            "style=",
            " onclick",
            " onload",
            "javascript:",
            "|safe",
            "<style",
        ] {
            assert!(!text.contains(forbidden), "{path}: {forbidden}");
        }
        let scripts = text.split("<script").skip(1);
        for script in scripts {
            assert!(
                script.trim_start().starts_with("src="),
                "{path}: a script of its own"
            );
        }
    }
}

#[test]
fn htmx_is_what_its_page_says() {
    let content = include_bytes!("../assets/htmx/htmx.min.js");
    let digest = Digest(Sha256::digest(content).into()).to_string();
    assert!(
        include_str!("../assets/htmx/README.md").contains(&digest),
        "{digest}"
    );
    assert!(include_str!("../assets/htmx/LICENSE").contains("Zero-Clause BSD"));
}

/// Problems that stay in the API's own words, and why.
const IN_THE_WORDS_OF_THE_API: [(&str, &str); 12] = [
    (
        "forbidden",
        "the reasons of the host have texts; those of a flow are its authors'",
    ),
    ("refused_now", "the flow says why, in its authors' words"),
    (
        "token_missing",
        "the console vouches for whoever is signed in",
    ),
    (
        "method_not_allowed",
        "the console knows the methods of its paths",
    ),
    (
        "request_timeout",
        "the console hands over bodies as a whole",
    ),
    ("signal_id_reused", "the console sends signals without ids"),
    (
        "stale_revision",
        "no page shows it: it only tells that a form was not sent before",
    ),
    (
        "unsupported_media_type",
        "the console says what its bodies are",
    ),
    ("unsupported_encoding", "the console encodes no bodies"),
    (
        "too_many_streams",
        "no page shows it: the script of a page tries again later",
    ),
    ("headers_too_large", "the console sets the headers itself"),
    ("calendar_used", "the console deletes no calendars"),
];

#[test]
fn every_problem_has_a_text_or_a_reason_to_have_none() {
    let english: BTreeSet<_> = texts(SOURCES[0].2).into_iter().map(|(id, _)| id).collect();
    let has_text =
        |code: &str| ["problem", "refusal"].map(|kind| english.contains(&format!("{kind}-{code}")));
    for (code, ..) in CODES {
        let has_text = has_text(code).contains(&true);
        let mut bare = IN_THE_WORDS_OF_THE_API.iter();
        let is_bare = bare.any(|(one, _)| one == code);
        assert!(has_text != is_bare, "{code}: a text, or a reason why not");
    }
    let is_code = |code: &str| CODES.iter().any(|(known, ..)| *known == code);
    let own = english.iter().filter_map(|id| id.strip_prefix("problem-"));
    let bare = IN_THE_WORDS_OF_THE_API.iter().map(|(code, _)| *code);
    let unknown: Vec<_> = own.chain(bare).filter(|code| !is_code(code)).collect();
    assert!(unknown.is_empty(), "the API has no {unknown:?}");
}

#[test]
fn each_violation_of_a_schema_is_said_in_every_language_with_what_is_expected() {
    let error = |code: &str, expected: serde_json::Value| {
        let error = json!({ "pointer": "/input/a", "code": code, "detail": "DETAIL", "expected": expected });
        serde_json::from_value::<FieldTrouble>(error).expect("an error")
    };
    let english: BTreeSet<_> = texts(SOURCES[0].2);
    for code in wrkflw_core::schema::CODES {
        let id = format!("violation-{code}");
        let text = english.iter().find(|(own, _)| *own == id);
        let (_, variables) = text.unwrap_or_else(|| panic!("{id} is missing"));
        let mut details = BTreeSet::new();
        for (language, ..) in SOURCES {
            let w = Words::named(language).expect("a language");
            let detail = error(code, json!(7)).in_words(w).detail;
            let has_value = detail.contains('7');
            assert_eq!(has_value, variables.contains("value"), "{id}: {detail}");
            assert!(
                detail != "DETAIL" && details.insert(detail),
                "{id} in {language}"
            );
        }
    }
    let known = english
        .iter()
        .filter_map(|(id, _)| id.strip_prefix("violation-"));
    let known: Vec<_> = known.collect();
    assert_eq!(known.len(), wrkflw_core::schema::CODES.len(), "{known:?}");
    // What flows say stays as it is, also with a code of a schema.
    let german = Words::named("de").expect("German");
    assert_eq!(
        error("minimum", json!(null)).in_words(german).detail,
        "DETAIL"
    );
    assert_eq!(
        error("unwanted", json!(1)).in_words(german).detail,
        "DETAIL"
    );
    for (code, expected, detail) in [
        ("maximum", json!(12000), "Das darf höchstens 12000 sein."),
        (
            "minimum",
            json!(-1234.5),
            "Das muss mindestens -1234.5 sein.",
        ),
        ("minimum", json!(1e300), "Das muss mindestens 1e+300 sein."),
        (
            "type",
            json!(["null", "integer"]),
            "Das muss sein: nichts, eine ganze Zahl (wie 1500)",
        ),
        (
            "enum",
            json!(["A", 2, { "b": 1 }]),
            "Das ist nichts davon: A, 2, {\"b\":1}",
        ),
        (
            "enum",
            json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            "Das ist nichts davon: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …",
        ),
        ("format", json!("date"), "Das hat nicht das Format date."),
    ] {
        assert_eq!(error(code, expected).in_words(german).detail, detail);
    }
}

#[test]
fn a_problem_is_said_in_the_language_of_the_reader_and_loses_no_detail() {
    let german = Words::named("de").expect("German");
    let problem = |code: &str, reason: Option<&str>| {
        let problem = Problem::new(code, "version 2 of leave is retired");
        let reason = reason.map(str::to_owned);
        problem_text(german, &Problem { reason, ..problem })
    };
    let retired =
        "Eine zurückgezogene Version wird nicht mehr verwendet: version 2 of leave is retired";
    assert_eq!(problem("version_retired", None), retired);
    let missing = "Dafür braucht es die Berechtigung instance:cancel.";
    assert_eq!(
        problem("permission_missing", Some("instance:cancel")),
        missing
    );
    let excluded = "Sie sind von dieser Arbeit ausgeschlossen.";
    assert_eq!(problem("forbidden", Some("excluded")), excluded);
    // A flow may use any code, also one that the host has for something else.
    let own = "version 2 of leave is retired";
    assert_eq!(problem("forbidden", Some("busy")), own);
    assert_eq!(problem("refused_now", Some("excluded")), own);
    assert_eq!(problem("forbidden", None), own);
}
