//! The output of a program without the differences between runs.

use std::fmt::Write as _;

use uuid::Uuid;

/// The maximum length of a line.
const COLUMNS_MAX: usize = 160;

fn is_hex(word: &str) -> bool {
    word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The name of a key of `wrkflw dev`, which depends on a secret.
fn is_key(word: &str) -> bool {
    let digits = word.strip_prefix("dev-").unwrap_or_default();
    digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An id, a time, a digest or another word that differs between runs, in the form of the page.
fn shown(word: &str, ids: &[(String, &str)]) -> Option<String> {
    if let Ok(id) = Uuid::try_parse(word) {
        let known = ids.iter().find(|(known, _)| *known == id.to_string());
        return Some(known.map_or("ID", |(_, name)| name).to_owned());
    }
    if let Some((name, _)) = word.rsplit_once(':').filter(|(_, end)| is_hex(end)) {
        return Some(match name.split_once(':') {
            Some((key, kind)) if is_key(key) => format!("dev-KEY:{kind}:HEX"),
            _ => format!("{name}:HEX"),
        });
    }
    let is_time = word.len() >= 20 && word.starts_with("20") && word.ends_with('Z');
    let names = [
        (is_hex(word), "HEX"),
        (is_key(word), "dev-KEY"),
        (is_time, "TIME"),
        (word.starts_with("eyJ"), "TOKEN"),
        (word.starts_with("whsec_"), "SECRET"),
    ];
    names
        .iter()
        .find(|(is, _)| *is)
        .map(|(_, name)| (*name).to_owned())
}

/// Whether a unit of size follows a number. The sizes of components differ between toolchains.
fn after_word_is_a_size(text: &str, end: usize) -> bool {
    text[..end].bytes().all(|byte| byte.is_ascii_digit()) && text[end..].starts_with(" KiB")
}

/// The text without the differences between runs. Columns are two blanks apart.
pub(crate) fn blurred(text: &str, ids: &[(String, &str)], replaced: &[(String, &str)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in replaced {
        text = text.replace(from, to);
    }
    let mut blurred = String::new();
    for line in text.lines() {
        let is_part = |char: char| char.is_ascii_alphanumeric() || "-_.:".contains(char);
        let mut words = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let is_size = after_word_is_a_size(rest, end);
            let shown = shown(word, ids).or_else(|| is_size.then(|| "N".to_owned()));
            words += &shown.unwrap_or_else(|| word.to_owned());
            // The rest of a secret in base64.
            let after = if word.starts_with("whsec_") {
                after.trim_start_matches(|char: char| is_part(char) || "+/=".contains(char))
            } else {
                after
            };
            let end = after.find(is_part).unwrap_or(after.len());
            words += &after[..end];
            rest = &after[end..];
        }
        let columns = words
            .trim_end()
            .split("  ")
            .filter(|column| !column.is_empty());
        let columns: Vec<&str> = columns.map(str::trim).collect();
        let line = if words.starts_with(' ') {
            format!("  {}", columns.join("  "))
        } else {
            columns.join("  ")
        };
        let cut: String = line.chars().take(COLUMNS_MAX).collect();
        let dots = if cut.len() < line.len() { "..." } else { "" };
        writeln!(blurred, "{cut}{dots}").expect("a String takes every write");
    }
    blurred
}

/// Replaces every number, for output whose counts depend on time.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut without = String::new();
    for char in text.chars() {
        match char {
            '0'..='9' if without.ends_with('N') => {}
            '0'..='9' => without.push('N'),
            other => without.push(other),
        }
    }
    without
}
