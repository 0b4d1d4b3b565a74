//! The only module that prints. Standard output has only data, as a table or as the API's JSON. Hints and progress go to standard error.

use std::io::{self, IsTerminal as _, Write};

use anyhow::Result;
use clap::ValueEnum;
use serde_json::Value;

use super::digits::{Exact, plain};
use super::failure::Failure;
pub(super) use wrkflw_core::text::counted;

/// The format of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people; may change between releases.
    #[default]
    Table,
    /// For programs: the JSON of the API.
    Json,
}

/// A column or a line of a table: its name, and the JSON Pointer to its value.
pub(super) type Column = (&'static str, &'static str);

/// The characters that an object may take in a row.
const CELL_CHARS_MAX: usize = 120;
/// The beginning of the answer to a dry run.
const DRY_RUN: &str = "dry run: nothing was written\n";

/// The exit code if the reader closed standard output: the code of a program that SIGPIPE ends. It is not 0, because the command
/// might still have failed later.
const CLOSED: i32 = 128 + 13;

/// How to print results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    pub(super) format: Format,
    pub(super) quiet: bool,
    /// Whether headings are highlighted.
    pub(super) colour: bool,
}

impl Output {
    /// `no_colour`: the environment variable `NO_COLOR` is set.
    pub(super) fn new(format: Format, quiet: bool, no_colour: bool) -> Output {
        Output {
            format,
            quiet,
            colour: !no_colour && io::stdout().is_terminal(),
        }
    }

    /// Prints one object, a line per field. The answer to a dry run begins with a mark.
    pub(super) fn record(self, value: &Value, fields: &[Column]) -> Result<()> {
        if self.format == Format::Json {
            return json(value);
        }
        let width = fields
            .iter()
            .map(|(name, _)| name.len())
            .max()
            .unwrap_or_default();
        let shown = fields
            .iter()
            .map(|(name, pointer)| (name, cell(value, pointer)))
            .filter(|(_, text)| !text.is_empty());
        let mut lines: Vec<String> = shown
            .map(|(name, text)| format!("{}  {text}\n", self.heading(&format!("{name:width$}"))))
            .collect();
        if lines.is_empty() {
            self.hint("nothing found");
        }
        if value["dryRun"] == true {
            lines.insert(0, DRY_RUN.to_owned());
        }
        write(&lines.concat())
    }

    /// Prints both sides of a dry run: only fields that differ, and the first field, which names the object.
    pub(super) fn compare(
        self,
        before: Option<&Value>,
        after: &Value,
        fields: &[Column],
    ) -> Result<()> {
        let old = |pointer: &str| {
            before
                .map(|before| cell(before, pointer))
                .unwrap_or_default()
        };
        let rows: Vec<Value> = fields
            .iter()
            .map(|(name, pointer)| (*name, old(pointer), cell(after, pointer)))
            .enumerate()
            .filter(|(place, (_, old, new))| *place == 0 || old != new)
            .map(|(_, (name, old, new))| serde_json::json!({ "field": name, "before": old, "after": new }))
            .collect();
        let sides: &[Column] = match before {
            Some(_) => &[
                ("FIELD", "/field"),
                ("BEFORE", "/before"),
                ("AFTER", "/after"),
            ],
            None => &[("FIELD", "/field"), ("AFTER", "/after")],
        };
        write(&(DRY_RUN.to_owned() + &self.table(&rows, sides)))
    }

    /// Prints a page of a list: its items as rows, the cursor of the next page as a hint.
    pub(super) fn list(self, page: &Value, columns: &[Column]) -> Result<()> {
        if self.format == Format::Json {
            return json(page);
        }
        let items = page["data"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        write(&self.table(items, columns))?;
        if items.is_empty() {
            self.hint("nothing found");
        }
        if let Some(next) = page["page"]["next"].as_str() {
            self.hint(&format!("there is more: --after {next}"));
        }
        Ok(())
    }

    /// Prints one item of a sequence: a line of JSON, or the values of the columns.
    pub(super) fn line(self, value: &Value, columns: &[Column]) -> Result<()> {
        match self.format {
            Format::Json => write(&format!("{}\n", serde_json::to_string(&Exact(value))?)),
            Format::Table => {
                let cells: Vec<String> = columns
                    .iter()
                    .map(|(_, pointer)| in_words(value, pointer))
                    .collect();
                write(&format!("{}\n", cells.join("  ")))
            }
        }
    }

    /// Prints a text document. As JSON it is the value of `name`.
    pub(super) fn text(self, name: &str, text: &str) -> Result<()> {
        match self.format {
            Format::Json => json(&serde_json::json!({ name: text })),
            Format::Table if text.ends_with('\n') => write(text),
            Format::Table => write(&format!("{text}\n")),
        }
    }

    /// Prints a hint for people.
    pub(super) fn hint(self, text: &str) {
        if !self.quiet {
            // If standard error is closed, the hint is lost.
            drop(writeln!(io::stderr(), "{text}"));
        }
    }

    /// Prints a warning: the command goes on, but this may not be intended.
    pub(super) fn warn(text: &str) {
        drop(writeln!(io::stderr(), "warning: {text}"));
    }

    pub(super) fn failure(self, error: &anyhow::Error) {
        let problem = error
            .downcast_ref::<Failure>()
            .and_then(|failure| failure.problem.as_ref());
        let text = match (self.format, problem) {
            (Format::Json, Some(problem)) => problem.to_string(),
            _ => format!("error: {error:#}"),
        };
        drop(writeln!(io::stderr(), "{text}"));
    }

    fn heading(self, text: &str) -> String {
        if self.colour {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn table(self, items: &[Value], columns: &[Column]) -> String {
        if items.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<String>> = items
            .iter()
            .map(|item| {
                columns
                    .iter()
                    .map(|(_, pointer)| bounded(item, pointer))
                    .collect()
            })
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells
                .chain([columns[column].0.len()])
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let cells = cells
                .iter()
                .zip(&widths)
                .map(|(text, width)| padded(text, *width));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let head = self.heading(&line(columns.iter().map(|(name, _)| *name).collect()));
        let body = rows
            .iter()
            .map(|row| line(row.iter().map(String::as_str).collect()));
        [head]
            .into_iter()
            .chain(body)
            .map(|line| line + "\n")
            .collect()
    }
}

/// The text with blanks up to this width. The width of a format has 16 bits, and a text may be longer.
fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    text.to_owned() + &" ".repeat(missing)
}

/// The value at `pointer` for a row: an object in words, without its last members if the table would become too wide.
fn bounded(value: &Value, pointer: &str) -> String {
    let text = in_words(value, pointer);
    let is_object = value.pointer(pointer).is_some_and(Value::is_object);
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) if is_object => {
            let whole = text[..end].rfind(", ").map_or(end, |comma| comma + 2);
            format!("{}…", &text[..whole])
        }
        _ => text,
    }
}

/// The value at `pointer` as one line of text, an object in words.
pub(super) fn in_words(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        Some(object @ Value::Object(_)) => tame(&words(object)),
        _ => cell(value, pointer),
    }
}

/// The value at `pointer` as one line of text. An object is JSON, because somebody wrote it as JSON.
fn cell(value: &Value, pointer: &str) -> String {
    let text = match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => plain(text).to_owned(),
        Some(Value::Array(items)) => items.iter().map(short).collect::<Vec<_>>().join(", "),
        Some(other) => exact(other),
    };
    tame(&text)
}

fn tame(text: &str) -> String {
    // Text from other people must not break the table or control the terminal.
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

/// An item of a list: its text, or the identifying field of an object.
fn short(item: &Value) -> String {
    let known_by = |name: &str| item.get(name).and_then(Value::as_str);
    if let (Some(pointer), Some(_)) = (known_by("pointer"), known_by("code")) {
        return pointer.to_owned();
    }
    match item {
        Value::String(text) => plain(text).to_owned(),
        Value::Object(members) if members.contains_key("required") => {
            // An outcome, with the pointers to what its decision must have.
            let required = item["required"].as_array().into_iter().flatten();
            let required: Vec<_> = required.filter_map(Value::as_str).collect();
            let outcome = known_by("outcome").unwrap_or_default();
            match required.as_slice() {
                [] => outcome.to_owned(),
                required => format!("{outcome} (needs {})", required.join(" ")),
            }
        }
        Value::Object(_) => match (
            known_by("type").or(known_by("kind")),
            known_by("id"),
            known_by("name"),
        ) {
            (_, _, Some(name)) => name.to_owned(),
            (Some(kind), Some(id), None) => format!("{kind}:{id}"),
            _ => words(item),
        },
        other => exact(other),
    }
}

/// A value without the marks of JSON. Members without a value are left out.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text).to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(short).collect();
            items.join(" ")
        }
        Value::Object(members) => {
            let parts = members.iter().filter(|(_, value)| !is_empty(value));
            let parts = parts.map(|(name, value)| match value {
                Value::Object(_) => format!("{name} ({})", words(value)),
                _ => format!("{name} {}", words(value)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        other => exact(other),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// The JSON of a value in one line.
fn exact(value: &Value) -> String {
    serde_json::to_string(&Exact(value)).expect("a value is JSON")
}

fn json(value: &Value) -> Result<()> {
    write(&format!(
        "{}\n",
        serde_json::to_string_pretty(&Exact(value))?
    ))
}

fn write(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        // The reader has closed the pipe, as `| head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(CLOSED),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_thing_is_singular() {
        let counted = [
            (0_u64, "entry"),
            (1, "entry"),
            (2, "entry"),
            (1, "line"),
            (3, "line"),
        ]
        .map(|(count, noun)| counted(count, noun));
        assert_eq!(
            counted,
            ["0 entries", "1 entry", "2 entries", "1 line", "3 lines"]
        );
    }

    #[test]
    fn an_object_in_a_row_is_words_and_ends_before_the_table_is_too_wide() {
        let row = json!({
            "payload": { "by": "ann", "to": ["ben", "cyd"], "task": { "id": "7", "owner": null }, "n": 2 },
            "delegations": [{ "from": "ann", "to": "ben" }],
            "comment": "c".repeat(CELL_CHARS_MAX + 1),
            "long": { "a": 1, "text": "l".repeat(CELL_CHARS_MAX) },
        });
        assert_eq!(
            bounded(&row, "/payload"),
            "by ann, n 2, task (id 7), to ben cyd"
        );
        assert_eq!(bounded(&row, "/delegations"), "from ann, to ben");
        assert_eq!(
            bounded(&row, "/comment").chars().count(),
            CELL_CHARS_MAX + 1
        );
        assert_eq!(bounded(&row, "/long"), "a 1, …");
        // A value that somebody wrote as JSON stays JSON in a record.
        assert_eq!(cell(&json!({ "data": { "a": 1 } }), "/data"), "{\"a\":1}");
    }

    #[test]
    fn a_cell_may_be_longer_than_the_width_of_a_format() {
        let output = Output {
            format: Format::Table,
            quiet: true,
            colour: false,
        };
        let long = "x".repeat(70_000);
        let items = [json!({ "id": long, "n": 1 }), json!({ "id": "é", "n": 2 })];
        let table = output.table(&items, &[("ID", "/id"), ("N", "/n")]);
        let ends: Vec<_> = table
            .lines()
            .map(|line| line.chars().count() - long.len())
            .collect();
        assert_eq!(ends, [3, 3, 3]);
    }

    #[test]
    fn a_table_lines_up_and_tames_what_others_wrote() {
        let output = Output {
            format: Format::Table,
            quiet: true,
            colour: false,
        };
        let items = [
            json!({ "id": "a", "candidates": [{ "type": "group", "id": "reviewers" }], "n": null }),
            json!({ "id": "lon\u{1b}ger", "candidates": ["x", "y"], "n": 3 }),
            json!({ "id": "b", "n": [{ "outcome": "GO", "required": [] }, { "outcome": "NO", "required": ["/comment", "/input/why"] }] }),
        ];
        let table = output.table(
            &items,
            &[("ID", "/id"), ("FOR", "/candidates"), ("N", "/n")],
        );
        assert_eq!(
            table,
            "ID       FOR              N\na        group:reviewers\nlon ger  x, y             3\n\
             b                         GO, NO (needs /comment /input/why)\n"
        );
    }
}
