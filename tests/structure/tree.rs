//! The files of the repository, read once, and the findings of rules in them.

use std::fmt;
use std::fs;
use std::path::Path;

/// Generated, or not ours.
const SKIPPED: [&str; 5] = ["target", "node_modules", ".git", ".sqlx", ".wrkflw"];
/// Deeper folders indicate a mistake, or a link to a parent folder.
const DEPTH_MAX: usize = 12;

pub(super) struct Tree(Vec<File>);

pub(super) struct File {
    /// The path from the root of the repository, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

/// A violation of a rule, and its position.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) rule: &'static str,
    pub(super) detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path, self.rule, self.detail)
    }
}

impl Tree {
    /// The files of the repository.
    pub(super) fn read() -> Tree {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the tests are in the workspace");
        let mut files = Vec::new();
        walk(root, root, 0, &mut files);
        assert!(files.len() > 100, "only {} files were found", files.len());
        Tree::of(files)
    }

    pub(super) fn of(files: impl IntoIterator<Item = (String, String)>) -> Tree {
        let mut files: Vec<_> = files
            .into_iter()
            .map(|(path, text)| File { path, text })
            .collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Tree(files)
    }

    /// Files below a folder whose names have this ending.
    pub(super) fn files<'a>(
        &'a self,
        below: &'a str,
        ending: &'a str,
    ) -> impl Iterator<Item = &'a File> {
        self.0
            .iter()
            .filter(move |file| file.path.starts_with(below) && file.path.ends_with(ending))
    }
}

fn walk(root: &Path, folder: &Path, depth: usize, files: &mut Vec<(String, String)>) {
    assert!(depth < DEPTH_MAX, "{} is too deep", folder.display());
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path
            .file_name()
            .is_some_and(|name| SKIPPED.iter().any(|skipped| name == *skipped))
        {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, depth + 1, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let shown = path
                .strip_prefix(root)
                .expect("below the root")
                .to_string_lossy()
                .replace('\\', "/");
            files.push((shown, text));
        }
    }
}

impl File {
    pub(super) fn finding(&self, rule: &'static str, detail: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            rule,
            detail: detail.into(),
        }
    }

    /// The lines of code with their numbers, without whole-line comments and the tests at the end.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self
            .text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line));
        lines
            .take(self.length())
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The number of lines before the tests at the end.
    pub(super) fn length(&self) -> usize {
        let lines: Vec<_> = self.text.lines().collect();
        let tests = lines.windows(2).position(|pair| {
            pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        });
        tests.unwrap_or(lines.len())
    }
}

/// The positions of `word` in `text` as a whole word.
pub(super) fn places<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> {
    let part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(place, _)| place)
        .filter(move |place| {
            !text[..*place].ends_with(part_of_a_name)
                && !text[place + word.len()..].starts_with(part_of_a_name)
        })
}
