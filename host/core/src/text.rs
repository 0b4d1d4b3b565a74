//! Text for logs, terminals and answers: escaped text from guests, and numbers with their nouns.

/// Keeps letters, digits, ASCII punctuation and spaces, escapes the rest, and cuts after `chars_max` characters of `text`.
pub fn tame(text: &str, chars_max: usize) -> String {
    let mut tamed = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == chars_max {
            tamed.push('…');
            break;
        }
        if character.is_ascii_graphic() || character == ' ' || character.is_alphanumeric() {
            tamed.push(character);
        } else {
            tamed.extend(character.escape_unicode());
        }
    }
    tamed
}

/// A number of things, in the singular or the plural.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out_and_length_is_bounded() {
        assert_eq!(tame("ok\u{1b}[31m\n", 99), "ok\\u{1b}[31m\\u{a}");
        assert_eq!(tame("a\u{202e}é b", 99), "a\\u{202e}é b");
        assert_eq!(tame("abcdef", 3), "abc…");
    }

    #[test]
    fn one_is_singular_and_a_y_becomes_ies() {
        let texts = [0, 1, 2].map(|count| counted(count, "entry"));
        assert_eq!(texts, ["0 entries", "1 entry", "2 entries"]);
        assert_eq!(counted(1, "task"), "1 task");
        assert_eq!(counted(2, "task"), "2 tasks");
    }
}
