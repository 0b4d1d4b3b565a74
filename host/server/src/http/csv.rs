//! Writes comma-separated values (RFC 4180) that are safe to open in a spreadsheet.
//!
//! A cell that a spreadsheet would take for a formula gets a leading apostrophe, which spreadsheets read as "this is text". A
//! spreadsheet that expects semicolons or tabs as separators splits cells at these and at ends of lines, in spite of quotes.
//! So the parts behind these characters get apostrophes, too. Other cells do not change.

/// The characters with which a formula begins, also in full width.
const FORMULA: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];
/// A spreadsheet drops these at the beginning of a cell. Elsewhere it may take them for the end of a cell or a line.
const BLANKS: [char; 3] = ['\t', '\r', '\n'];

/// One record with its end of line.
pub(super) fn record<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        push(&mut line, cell);
    }
    line + "\r\n"
}

fn push(line: &mut String, cell: &str) {
    let is_quoted = cell.contains(['"', ',', ';', '\r', '\n']);
    line.extend(is_quoted.then_some('"'));
    if cell.starts_with(BLANKS) {
        line.push('\'');
    }
    // Whether a spreadsheet may take the next character for the first one of a cell.
    let mut begins = true;
    for character in cell.chars() {
        if begins && FORMULA.contains(&character) {
            line.push('\'');
        }
        line.push(character);
        line.extend((character == '"').then_some('"'));
        let separates = character == ';' || BLANKS.contains(&character);
        begins = separates || begins && character == '"';
    }
    line.extend(is_quoted.then_some('"'));
}

#[cfg(test)]
mod tests {
    use super::record;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let cells = [
            "plain",
            "a,b",
            "say \"no\"",
            "two\nlines",
            "",
            "ünïcode; ok",
        ];
        let expected = "plain,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",,\"ünïcode; ok\"\r\n";
        assert_eq!(record(cells), expected);
    }

    #[test]
    fn formulas_become_text() {
        for cell in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"] {
            assert_eq!(record([cell]), format!("'{cell}\r\n"));
        }
        assert_eq!(record(["\u{ff1d}1"]), "'\u{ff1d}1\r\n");
        let cell = "=HYPERLINK(\"x\",1)";
        let expected = "\"'=HYPERLINK(\"\"x\"\",1)\"\r\n";
        assert_eq!(record([cell]), expected);
        for cell in ["1-1", "a=b", "'=1", " =1"] {
            assert_eq!(record([cell]), format!("{cell}\r\n"));
        }
    }

    /// A spreadsheet with semicolons or tabs as separators splits there, and at ends of lines, because the quote is not at the beginning
    /// of a cell.
    #[test]
    fn formulas_behind_other_separators_become_text() {
        for (cell, expected) in [
            ("a;=1", "\"a;'=1\""),
            ("a;\"=1", "\"a;\"\"'=1\""),
            ("a\t+1", "a\t'+1"),
            ("a\n@x", "\"a\n'@x\""),
            ("\r=1", "\"'\r'=1\""),
            ("\n=1", "\"'\n'=1\""),
            ("a\n\nb; c", "\"a\n\nb; c\""),
            ("a,=1", "\"a,=1\""),
        ] {
            assert_eq!(record([cell]), format!("{expected}\r\n"));
        }
    }
}
