//! Values of a request that no state of the database makes good: ids, names, reasons, documents. Use cases and handlers ask
//! the same functions, so a value is refused in the same words wherever it comes from.

use std::collections::BTreeMap;

use super::error::Error;
use wrkflw_core::actor::is_reserved;
use wrkflw_core::check::STATES_MAX;
use wrkflw_core::ids;
use wrkflw_core::json::Json;
use wrkflw_core::shown::DATA_BYTES_MAX;

/// The longest name and id.
const NAME_CHARS_MAX: usize = 200;
/// The longest reason.
const REASON_CHARS_MAX: usize = 2_000;

/// An id that people chose: of a person, a group, an entity. One that could be spelt otherwise is refused.
pub fn check_id(pointer: &str, id: &str) -> Result<(), Error> {
    ids::check_id(id, NAME_CHARS_MAX).map_err(|detail| Error::malformed(pointer, detail))
}

/// An id of a person: none that the host acts under.
pub fn check_person(pointer: &str, id: &str) -> Result<(), Error> {
    check_id(pointer, id)?;
    if is_reserved(id) {
        let detail = "names that begin with wrkflw: are the host's own";
        return Err(Error::malformed(pointer, detail));
    }
    Ok(())
}

/// A name that people read, and spell as they like.
pub fn check_name(pointer: &str, name: &str) -> Result<(), Error> {
    ids::check_name(name, NAME_CHARS_MAX).map_err(|detail| Error::malformed(pointer, detail))
}

/// Refuses a document that is no object, or larger than flow logic can be shown.
pub fn check_document(pointer: &str, document: &Json) -> Result<(), Error> {
    if !document.is_object() {
        return Err(Error::malformed(pointer, "a JSON object"));
    }
    if document.as_str().len() > DATA_BYTES_MAX {
        let detail = format!("at most {DATA_BYTES_MAX} bytes of JSON");
        return Err(Error::invalid(pointer, "too_long", detail));
    }
    Ok(())
}

/// Why somebody does something, in their own words.
pub fn check_reason(reason: &str) -> Result<(), Error> {
    let (code, detail) = if reason.trim().is_empty() {
        ("required", "say why".to_owned())
    } else if reason.chars().count() > REASON_CHARS_MAX {
        ("too_long", format!("at most {REASON_CHARS_MAX} characters"))
    } else if reason.contains('\0') {
        ("malformed", "without the character NUL".to_owned())
    } else {
        return Ok(());
    };
    Err(Error::invalid("/reason", code, detail))
}

/// The new names that a migration gives to states. A version has no more states than these.
pub fn check_states(states: &BTreeMap<String, String>) -> Result<(), Error> {
    if states.len() <= STATES_MAX {
        return Ok(());
    }
    let detail = format!("at most {STATES_MAX} states");
    Err(Error::invalid_as_a_whole(detail, "/states", "too_long"))
}
