//! Limits how deep types of components are nested, without recursion.
//!
//! The parser reads nested types by recursion, and each level takes only three bytes. A small upload could overflow the stack of
//! the scanning thread, which ends the process. So this pass runs first. It tracks the levels in a vector, and uses the parser
//! only for types without nested types.

use wasmparser::{BinaryReader, BinaryReaderError, ComponentType, ComponentTypeDeclaration};

use super::counts::too_complex;
use super::invalid;
use wrkflw_core::check::Problem;

/// The types of real contracts have four levels. The validator's own limit is 100.
const LEVELS_MAX: usize = 100;
/// The first byte of a component type and of an instance type, the only ones that contain others.
const HOLDERS: [u8; 2] = [0x41, 0x42];
/// The first byte of a declaration of a nested type.
const TYPE_DECLARED: u8 = 0x01;

/// Checks the types of one section, given as its bytes.
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
        // The number of declarations still to read, for each open level.
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

/// Reads a whole type, or opens a level for it.
fn enter(reader: &mut BinaryReader<'_>, open: &mut Vec<u32>) -> Result<(), BinaryReaderError> {
    if HOLDERS.contains(&reader.clone().read_u8()?) {
        reader.read_u8()?;
        open.push(reader.read_var_u32()?);
    } else {
        reader.read::<ComponentType<'_>>()?;
    }
    Ok(())
}
