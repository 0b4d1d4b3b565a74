//! Checks the values of a request without the database: ids, names, reasons, documents. Use cases and handlers share these
//! functions, so an invalid value always gets the same message.

use std::collections::BTreeMap;

use super::error::Error;
use wrkflw_core::actor::is_reserved;
use wrkflw_core::check::STATES_MAX;
use wrkflw_core::check::names::{NAME_RULE, is_name};
use wrkflw_core::ids;
use wrkflw_core::json::Json;
use wrkflw_core::shown::{COMMENT_BYTES_MAX, DATA_BYTES_MAX};

/// The longest name and id.
const NAME_CHARS_MAX: usize = 200;
/// The longest reason.
const REASON_CHARS_MAX: usize = 2_000;
/// The longest note on a version.
const NOTE_CHARS_MAX: usize = 500;

/// Checks an id that people chose: of a person, a group, an entity. It must be in normal form, so that it has one spelling.
pub fn check_id(pointer: &str, id: &str) -> Result<(), Error> {
    ids::check_id(id, NAME_CHARS_MAX).map_err(|detail| Error::malformed(pointer, detail))
}

/// Checks the id of a person. Ids that are reserved for the host are refused.
pub fn check_person(pointer: &str, id: &str) -> Result<(), Error> {
    check_id(pointer, id)?;
    if is_reserved(id) {
        let detail = "names that begin with wrkflw: are the host's own";
        return Err(Error::malformed(pointer, detail));
    }
    Ok(())
}

/// Checks the key of a definition or the name of a trigger.
pub fn check_key(pointer: &str, key: &str) -> Result<(), Error> {
    if is_name(key) {
        return Ok(());
    }
    Err(Error::malformed(pointer, NAME_RULE))
}

/// Checks a name for people. It may have any spelling.
pub fn check_name(pointer: &str, name: &str) -> Result<(), Error> {
    ids::check_name(name, NAME_CHARS_MAX).map_err(|detail| Error::malformed(pointer, detail))
}

/// Refuses a document that is not an object, or that is too large for flow logic.
pub fn check_document(pointer: &str, document: &Json) -> Result<(), Error> {
    if !document.is_object() {
        return Err(Error::malformed(pointer, "this must be a JSON object"));
    }
    if document.as_str().len() > DATA_BYTES_MAX {
        let detail = format!("at most {DATA_BYTES_MAX} bytes of JSON");
        return Err(Error::invalid(pointer, "too_long", detail));
    }
    Ok(())
}

/// Checks the reason that a caller gives.
pub fn check_reason(reason: &str) -> Result<(), Error> {
    check_text("/reason", reason, REASON_CHARS_MAX)
}

/// Checks the note on a version: why it is published.
pub fn check_note(note: &str) -> Result<(), Error> {
    check_text("/note", note, NOTE_CHARS_MAX)
}

/// Refuses an empty text, and one with more than `most` characters.
fn check_text(pointer: &str, text: &str, most: usize) -> Result<(), Error> {
    let (code, detail) = if text.trim().is_empty() {
        ("required", "say why".to_owned())
    } else if text.chars().count() > most {
        ("too_long", format!("at most {most} characters"))
    } else if text.contains('\0') {
        ("malformed", "without the character NUL".to_owned())
    } else {
        return Ok(());
    };
    Err(Error::invalid(pointer, code, detail))
}

/// Checks the comment on a decision or an instance.
pub fn check_comment(comment: &str) -> Result<(), Error> {
    if comment.len() <= COMMENT_BYTES_MAX {
        return Ok(());
    }
    let detail = format!("a comment has at most {COMMENT_BYTES_MAX} bytes");
    Err(Error::invalid_as_a_whole(detail, "/comment", "too_long"))
}

/// Checks the number of states that a migration renames: no version has more than [`STATES_MAX`].
pub fn check_states(states: &BTreeMap<String, String>) -> Result<(), Error> {
    if states.len() <= STATES_MAX {
        return Ok(());
    }
    let detail = format!("at most {STATES_MAX} states");
    Err(Error::invalid_as_a_whole(detail, "/states", "too_long"))
}
