//! Writes comma-separated values (RFC 4180) that are safe to open in a spreadsheet.
//!
//! A cell that a spreadsheet would take for a formula gets a leading apostrophe, which spreadsheets read as "this is
//! text". Otherwise cells are not changed.

/// The characters with which a formula, or an attempt to smuggle one in, begins.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

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
    let guard = if cell.starts_with(FORMULA) { "'" } else { "" };
    if cell.contains(['"', ',', '\r', '\n']) {
        line.extend(["\"", guard, &cell.replace('"', "\"\""), "\""]);
    } else {
        line.extend([guard, cell]);
    }
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
        let expected = "plain,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",,ünïcode; ok\r\n";
        assert_eq!(record(cells), expected);
    }

    #[test]
    fn formulas_become_text() {
        for cell in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert_eq!(record([cell]), format!("'{cell}\r\n"));
        }
        for cell in ["\r=1", "\n=1", "=HYPERLINK(\"x\",1)"] {
            let quoted = cell.replace('"', "\"\"");
            assert_eq!(record([cell]), format!("\"'{quoted}\"\r\n"));
        }
        for cell in ["1-1", "a=b", "'=1", " =1"] {
            assert_eq!(record([cell]), format!("{cell}\r\n"));
        }
    }
}
