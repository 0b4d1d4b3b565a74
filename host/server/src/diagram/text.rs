//! Text in a diagram: its width, its line breaks, and its escaping.
//!
//! The server has no fonts, and the reader's fonts are unknown. So widths are generous estimates.

/// Maximum length of a label. An ellipsis replaces the rest.
const LABEL_CHARS_MAX: usize = 30;

/// The estimated width of `text` in units of its font size.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(advance).sum()
}

fn advance(character: char) -> f64 {
    match character {
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '→' => 0.95,
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' | '·' => 0.36,
        'A'..='Z' | '_' | '#' | '&' => 0.74,
        // Marks and joiners that combine with their neighbours.
        '\u{300}'..='\u{36f}'
        | '\u{e31}'
        | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{fe00}'..='\u{fe0f}' => 0.0,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' => 1.05,
        '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{1f000}'..='\u{3ffff}' => 1.35,
        _ => 0.64,
    }
}

/// `text` in at most `lines_max` lines, each at most `width_max` wide. The rest is cut.
pub(super) fn wrapped(text: &str, width_max: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let gap = if line.is_empty() { "" } else { " " };
        if width(&line) + width(gap) + width(word) <= width_max {
            line.push_str(gap);
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            // A mark without width stays with its letter.
            if advance(character) > 0.0 && width(&line) + advance(character) > width_max {
                lines.push(std::mem::take(&mut line));
            }
            line.push(character);
        }
        if lines.len() > lines_max {
            break;
        }
    }
    lines.push(line);
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            while width(last) + width("…") > width_max && last.pop().is_some() {}
            last.push('…');
        }
    }
    lines
}

/// `text`, cut to the length of a label.
pub(super) fn label(text: &str) -> String {
    match text.char_indices().nth(LABEL_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// `text` as XML character data or a quoted attribute. Characters that XML does not allow are replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(' '),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            control if control.is_control() => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_breaks_between_words_and_is_cut() {
        for (text, lines) in [
            ("", &[""][..]),
            ("Review", &["Review"]),
            ("Review by two people", &["Review by", "two", "people"]),
            ("Donaudampfschiff", &["Donaudam", "pfschiff"]),
            (
                "one two three four five six seven eight",
                &["one two", "three", "four five…"],
            ),
        ] {
            assert_eq!(wrapped(text, 6.0, 3), lines, "{text}");
        }
        let thai = "\u{e01}\u{e33}\u{e25}\u{e31}\u{e07}\u{e15}\u{e23}\u{e27}\u{e08}".repeat(2);
        let lines = wrapped(&thai, 3.0, 9);
        assert_eq!(lines.concat(), thai);
        assert!(lines.iter().all(|line| !line.starts_with('\u{e31}')));
    }

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(
            escaped("<a b=\"c\" d='e'>&\n\u{1b}\u{0}]]>\u{ffff}"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp; \u{fffd}\u{fffd}]]&gt;\u{fffd}"
        );
    }
}
