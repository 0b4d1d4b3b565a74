//! How deep types of components are nested, told without calling oneself.
//!
//! The parser reads a type inside a type by recursion, and each level takes three bytes: a small upload would overflow
//! the stack of the thread that looks at it, which ends the process. So this pass comes first. It follows the levels in
//! a list of its own, and leaves to the parser only what has no levels.

use wasmparser::{BinaryReader, BinaryReaderError, ComponentType, ComponentTypeDeclaration};

use super::invalid;
use super::tally::too_complex;
use crate::domain::check::Problem;

/// Honest contracts have four. The validator's own bound is 100.
const LEVELS_MAX: usize = 100;
/// How a component type and an instance type begin, the only ones that hold others.
const HOLDERS: [u8; 2] = [0x41, 0x42];
/// How a declaration of a type inside of one begins.
const TYPE_DECLARED: u8 = 0x01;

/// Follows the types of one section, given as its bytes.
pub(super) fn bounded(section: &[u8], offset: usize) -> Result<(), Problem> {
    let mut reader = BinaryReader::new(section, offset);
    match levels(&mut reader) {
        Ok(Levels::Followed) => Ok(()),
        Ok(Levels::TooMany) => Err(too_complex(&format!(
            "types are nested more than {LEVELS_MAX} times"
        ))),
        Err(error) => Err(invalid(&error)),
    }
}

enum Levels {
    Followed,
    TooMany,
}

fn levels(reader: &mut BinaryReader<'_>) -> Result<Levels, BinaryReaderError> {
    for _ in 0..reader.read_var_u32()? {
        // How many declarations are still to come, on each level that is open.
        let mut open: Vec<u32> = Vec::new();
        enter(reader, &mut open)?;
        while let Some(left) = open.last_mut() {
            if *left == 0 {
                open.pop();
                continue;
            }
            *left -= 1;
            let mut ahead = reader.clone();
            if ahead.read_u8()? != TYPE_DECLARED || !HOLDERS.contains(&ahead.read_u8()?) {
                reader.read::<ComponentTypeDeclaration<'_>>()?;
                continue;
            }
            reader.read_u8()?;
            enter(reader, &mut open)?;
            if open.len() > LEVELS_MAX {
                return Ok(Levels::TooMany);
            }
        }
    }
    Ok(Levels::Followed)
}

/// Reads a type whole, or opens its level.
fn enter(reader: &mut BinaryReader<'_>, open: &mut Vec<u32>) -> Result<(), BinaryReaderError> {
    if HOLDERS.contains(&reader.clone().read_u8()?) {
        reader.read_u8()?;
        open.push(reader.read_var_u32()?);
    } else {
        reader.read::<ComponentType<'_>>()?;
    }
    Ok(())
}
