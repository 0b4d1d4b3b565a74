//! Escapes text from guests, for logs, terminals and answers.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out_and_length_is_bounded() {
        assert_eq!(tame("ok\u{1b}[31m\n", 99), "ok\\u{1b}[31m\\u{a}");
        assert_eq!(tame("a\u{202e}é b", 99), "a\\u{202e}é b");
        assert_eq!(tame("abcdef", 3), "abc…");
    }
}
