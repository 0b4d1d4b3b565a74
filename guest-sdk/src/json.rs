//! Conversion between JSON and the author's types.
//!
//! A text that does not fit a type becomes violations with their JSON Pointers, never a panic. A flow must be able to report old
//! data that it cannot read.

use serde::de::DeserializeOwned;

use crate::Violation;

/// Reads a JSON text as a `T`, without rounding numbers.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Violation>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(unreadable)?;
    reader.end().map_err(|error| vec![syntax(&error)])?;
    Ok(value)
}

/// Reads the data of an instance. Pointers refer to the body of the start request.
pub(crate) fn data<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Violation>> {
    parse(text).map_err(|found| below("/data", found))
}

/// Prefixes the pointers of the violations with the pointer of this part.
pub(crate) fn below(part: &str, mut violations: Vec<Violation>) -> Vec<Violation> {
    for violation in &mut violations {
        violation.field.insert_str(0, part);
    }
    violations
}

fn unreadable(error: serde_path_to_error::Error<serde_json::Error>) -> Vec<Violation> {
    let inner = error.inner();
    if inner.is_syntax() || inner.is_eof() {
        return vec![syntax(inner)];
    }
    let place = format!(" at line {} column {}", inner.line(), inner.column());
    let message = inner.to_string().replace(&place, "");
    let mut field = pointer(error.path());
    let code = match message.split('`').collect::<Vec<_>>()[..] {
        ["missing field ", name, ..] => {
            field = format!("{field}/{}", escape(name));
            "required"
        }
        ["unknown field ", name, ..] => {
            if !field.ends_with(&format!("/{}", escape(name))) {
                field = format!("{field}/{}", escape(name));
            }
            "unknown"
        }
        _ => "type",
    };
    vec![Violation::new(&field, code, message)]
}

fn syntax(error: &serde_json::Error) -> Violation {
    Violation::new("", "syntax", format!("This is no JSON: {error}."))
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .fold(String::new(), |pointer, segment| match segment {
            Segment::Seq { index } => format!("{pointer}/{index}"),
            Segment::Map { key } => format!("{pointer}/{}", escape(key)),
            Segment::Enum { .. } | Segment::Unknown => pointer,
        })
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Order {
        lines: Vec<Line>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Line {
        amount: u32,
    }

    #[test]
    fn a_violation_names_the_place() {
        for (text, field, code) in [
            (
                r#"{"lines": [{"amount": 1}, {"amount": "two"}]}"#,
                "/lines/1/amount",
                "type",
            ),
            (r#"{"lines": [{}]}"#, "/lines/0/amount", "required"),
            (r#"{"lines": [], "a/b": 1}"#, "/a~1b", "unknown"),
            ("{", "", "syntax"),
            (r#"{"lines": []} more"#, "", "syntax"),
        ] {
            let violations = parse::<Order>(text).expect_err(text);
            assert_eq!(
                (violations[0].field.as_str(), violations[0].code.as_str()),
                (field, code),
                "{violations:?}"
            );
        }
    }
}
