//! The methods of a type are in one or two files. Otherwise a type collects all that can be done with it, and nothing says what a
//! function needs. Functions with their inputs in the signature, and small types, do.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{File, Finding, Tree};
use super::{assert_tidy, fake, rules};

const SOURCES: &str = "host/";
/// Maximum number of files with methods of a type.
const FILES_MAX: usize = 2;

/// The crate of a source file of the host; none for tests, whose models are split as it suits them.
fn crate_of(file: &File) -> Option<&str> {
    let (of, path) = file.path.split_once("/src/")?;
    let is_test = path
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs");
    (!is_test).then_some(of)
}

/// The name that begins a text.
fn name(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The type whose own methods the line begins, not those of a trait.
fn own_methods(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generics) => generics.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    (line.ends_with('{') && !line.contains(" for ")).then(|| name(rest))
}

/// The type that the line declares.
fn declared(line: &str) -> Option<&str> {
    let at = line.find("struct ").or_else(|| line.find("enum "))?;
    let is_item = ["", "pub ", "pub(super) ", "pub(crate) "].contains(&&line[..at]);
    is_item.then(|| name(line[at..].split_once(' ').map_or("", |(_, rest)| rest)))
}

/// Types with one declaration in their crate are checked. Equal names of several types cannot be told apart.
fn scattered(tree: &Tree) -> Vec<Finding> {
    let mut declarations: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut methods: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let files: Vec<_> = tree.files(SOURCES, ".rs").collect();
    for file in &files {
        let Some(of) = crate_of(file) else { continue };
        for (_, line) in file.code() {
            if let Some(name) = declared(line) {
                *declarations.entry((of, name)).or_default() += 1;
            }
            if let Some(name) = own_methods(line) {
                methods.entry((of, name)).or_default().insert(&file.path);
            }
        }
    }
    methods.retain(|key, paths| {
        paths.len() > FILES_MAX && declarations.get(key).is_none_or(|count| *count == 1)
    });
    let found = files.into_iter().flat_map(|file| {
        let of = methods
            .iter()
            .filter(|(_, paths)| paths.last() == Some(&file.path.as_str()));
        of.map(|((_, name), paths)| {
            let what = format!(
                "`{name}` has methods in {} files, more than {FILES_MAX}",
                paths.len()
            );
            file.finding("methods", what)
        })
    });
    found.collect()
}

#[test]
fn the_methods_of_a_type_are_in_one_or_two_files() {
    assert_tidy(&scattered(&Tree::read()));
    let broken = fake(&[
        (
            "host/a/src/lib.rs",
            "pub struct Engine;\nstruct Row<'a>;\nimpl<'a> Row<'a> {\n}\nimpl Engine {\n}\n",
        ),
        ("host/a/src/b.rs", "impl Engine {\n}\nimpl Row<'_> {\n}\n"),
        (
            "host/a/src/c.rs",
            "struct Row;\nimpl Engine {\n}\nimpl Row {\n}\n",
        ),
        (
            "host/a/src/d.rs",
            "impl Clone for Engine {\n}\nimpl Row {\n}\n",
        ),
        ("host/a/src/e/tests.rs", "impl Engine {\n}\n"),
        ("host/z/src/c.rs", "impl Engine {\n}\n"),
    ]);
    assert_eq!(rules(&scattered(&broken)), ["host/a/src/lib.rs: methods"]);
}
