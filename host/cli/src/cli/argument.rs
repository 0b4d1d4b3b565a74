//! Arguments that are JSON, given directly or as `@FILE`.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::failure::{Exit, Failure};
use wrkflw_core::json::{Json, JsonError};

/// Parses the value of an argument. Messages use this name. Numbers keep their texts, because the host stores them as written.
pub(super) fn json(name: &str, text: &str) -> Result<Json> {
    let Some(path) = text.strip_prefix('@') else {
        return Json::parse(text).map_err(|error| refusal(name, text, "", &error).into());
    };
    let read = std::fs::read_to_string(path);
    let text = read.with_context(|| format!("{name}: cannot read {path}"))?;
    Json::parse(&text).map_err(|error| refusal(name, &text, path, &error).into())
}

/// Says why a text is refused. `file` is empty if the text is the argument itself.
fn refusal(name: &str, text: &str, file: &str, error: &JsonError) -> Failure {
    // This reader says what it expected. The other one says only what it found.
    let Err(syntax) = serde_json::from_str::<Value>(text) else {
        let file = if file.is_empty() {
            String::new()
        } else {
            format!("{file}: ")
        };
        let message = format!("{name} is refused: {file}{}", error.located());
        return Failure::new(Exit::Invalid, message).next("fix this and repeat");
    };
    let (line, column, what) = (syntax.line(), syntax.column(), expectation(&syntax));
    let place = format!("line {line}, column {column}: {what}");
    if file.is_empty() {
        Failure::new(Exit::Invalid, format!("{name} is no JSON: {place}"))
            .next("quote it for the shell, as '{\"title\": \"Budget\"}', or write @FILE")
    } else {
        // No shell has read the file.
        let message = format!("{name} is no JSON: {file}, {place}");
        Failure::new(Exit::Invalid, message).next("fix this and repeat")
    }
}

/// What the reader found and what it expected there.
fn expectation(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let part = message.strip_prefix("EOF while parsing ");
    let expected = match part.unwrap_or(message) {
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
        _ => return message.to_owned(),
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
    use crate::cli::home::Home;

    #[test]
    fn numbers_keep_their_texts_and_a_member_named_twice_is_refused() {
        let text = r#"{"sum": 1.10, "id": 12345678901234567890.10}"#;
        let parsed = json("--data", text).expect("JSON");
        assert_eq!(
            parsed.as_str(),
            r#"{"id":12345678901234567890.10,"sum":1.10}"#
        );
        let twice = json("--data", r#"{"a":1,"a":2}"#).expect_err("named twice");
        assert_eq!(
            twice.to_string(),
            "--data is refused: a member named twice at /a\nnext: fix this and repeat"
        );
    }

    #[test]
    fn quotes_for_the_shell_are_no_help_for_a_file() {
        let place = Home::ephemeral().expect("a folder");
        let path = place.folder().join("data.json");
        std::fs::write(&path, "{\n\"a\" 1}").expect("our own folder");
        let path = path.display();
        let refused = json("--data", &format!("@{path}")).expect_err("no JSON");
        assert_eq!(
            refused.to_string(),
            format!(
                "--data is no JSON: {path}, line 2, column 5: a colon is expected here\nnext: fix this and repeat"
            )
        );
        let given = json("--data", "{a:1}").expect_err("no JSON").to_string();
        assert!(given.contains("quote it for the shell"), "{given}");
    }

    #[test]
    fn what_is_no_json_is_told_with_the_option_the_place_and_what_is_expected() {
        let refusal = |text: &str| json("--data", text).expect_err(text).to_string();
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
            let message = refusal(text);
            assert!(message.starts_with("--data is no JSON: line "), "{message}");
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert!(refusal("@/no/such/file").starts_with("--data: cannot read /no/such/file"));
    }
}
