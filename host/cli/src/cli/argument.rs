//! Arguments that are JSON, given as they are or as `@FILE`.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::failure::{Exit, Failure};

/// Parses the value of an argument, which messages call by this name.
pub(super) fn json(name: &str, text: &str) -> Result<Value> {
    let (text, file) = match text.strip_prefix('@') {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            let text = read.with_context(|| format!("{name}: cannot read {path}"))?;
            (text, format!("{path}, "))
        }
        None => (text.to_owned(), String::new()),
    };
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let why = why(&error);
        let message = format!("{name} is no JSON: {file}line {line}, column {column}: {why}");
        Failure::new(Exit::Invalid, message)
            .next("quote it for the shell, as '{\"title\": \"Budget\"}', or write @FILE")
            .into()
    })
}

/// What the reader found and what it expected there.
fn why(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let told = told.split(" at line ").next().unwrap_or_default();
    let expected = match told.strip_prefix("EOF while parsing ").unwrap_or(told) {
        "a value" => "a value",
        "a string" => "a closing double quote",
        "expected value" | "expected ident" => {
            "a value: an object, a list, a text in double quotes, a number, true, false or null"
        }
        "key must be a string" => "a name in double quotes",
        "expected `:`" => "a colon",
        "an object" | "expected `,` or `}`" => "a comma or }",
        "a list" | "expected `,` or `]`" => "a comma or ]",
        "trailing comma" => "something after the comma, or no comma",
        "trailing characters" => "the end",
        _ => return told.to_owned(),
    };
    if error.is_eof() {
        format!("the text ends here, and {expected} is expected")
    } else {
        format!("{expected} is expected here")
    }
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn what_is_no_json_is_told_with_the_option_the_place_and_what_is_expected() {
        let told = |text: &str| json("--data", text).expect_err(text).to_string();
        for (text, expected) in [
            (
                "",
                "line 1, column 0: the text ends here, and a value is expected",
            ),
            (
                "{\"a\":",
                "line 1, column 5: the text ends here, and a value is expected",
            ),
            (
                "{\"a\":1",
                "line 1, column 6: the text ends here, and a comma or } is expected",
            ),
            (
                "[1",
                "line 1, column 2: the text ends here, and a comma or ] is expected",
            ),
            (
                "\"a",
                "line 1, column 2: the text ends here, and a closing double quote is expected",
            ),
            ("{\n\"a\" 1}", "line 2, column 5: a colon is expected here"),
            (
                "{a:1}",
                "line 1, column 2: a name in double quotes is expected here",
            ),
            (
                "{\"a\":1 \"b\":2}",
                "line 1, column 8: a comma or } is expected here",
            ),
            ("[1 2]", "line 1, column 4: a comma or ] is expected here"),
            (
                "[1,]",
                "line 1, column 4: something after the comma, or no comma is expected here",
            ),
            ("{} x", "line 1, column 4: the end is expected here"),
            (
                "title",
                "a value: an object, a list, a text in double quotes, a number, true, false or null is expected here",
            ),
            ("[01]", "line 1, column 3: invalid number"),
        ] {
            let message = told(text);
            assert!(message.starts_with("--data is no JSON: line "), "{message}");
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert!(told("@/no/such/file").starts_with("--data: cannot read /no/such/file"));
    }
}
