//! One pass over a component that counts what compiling and instantiating it would cost.
//!
//! It follows nested components by index. So it counts the millions of instances of a kilobyte that doubles its instances
//! at every level. It trusts no number that it reads, and never allocates more than the size of the input.

use std::ops::Range;

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, Encoding,
    Instance, Parser, Payload,
};

use super::{invalid, nesting};
use crate::error::of_component;
use wrkflw_core::check::Problem;
use wrkflw_core::text::tame;

/// Instantiations, transitively. The largest toolchain tried makes 39.
const INSTANTIATIONS_MAX: u64 = 256;
const FUNCTIONS_MAX: u64 = 50_000;
/// The largest function seen in a real component has 427 KB.
const FUNCTION_BYTES_MAX: usize = 1 << 20;
const COMPONENT_IMPORTS_MAX: usize = 256;
const CORE_IMPORTS_MAX: u64 = 10_000;
const EXPORTS_MAX: usize = 1_000;
const CUSTOM_SECTION_BYTES_MAX: usize = 1 << 20;
const NESTING_MAX: usize = 32;
/// The custom section in which the SDK records its name and version.
const SDK_SECTION: &str = "wrkflw:sdk";
const SDK_CHARS_MAX: usize = 100;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct ComponentCounts {
    functions: u64,
    core_imports: u64,
    /// Of the outermost component.
    pub(super) imports: Vec<String>,
    /// Of the outermost component.
    pub(super) exports: Vec<String>,
    pub(super) sdk: Option<String>,
    levels: Vec<Level>,
}

/// A component or module whose content is being read.
#[derive(Debug)]
struct Level {
    is_component: bool,
    instantiations: u64,
    /// The instantiations that each component of the index space adds.
    components: Vec<u64>,
}

impl ComponentCounts {
    pub(super) fn of(bytes: &[u8]) -> Result<ComponentCounts, Problem> {
        let mut tally = ComponentCounts::default();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| invalid(&error))?;
            if let Payload::ComponentTypeSection(section) = &payload {
                let range = section.range();
                nesting::bounded(&bytes[range.clone()], range.start)?;
            }
            if let Payload::ModuleSection {
                unchecked_range, ..
            }
            | Payload::ComponentSection {
                unchecked_range, ..
            } = &payload
            {
                complete(unchecked_range, bytes.len())?;
            }
            tally.take(payload)?;
        }
        Ok(tally)
    }

    fn take(&mut self, payload: Payload<'_>) -> Result<(), Problem> {
        match payload {
            Payload::Version { encoding, .. } => self.enter(encoding)?,
            Payload::End(_) => self.leave(),
            Payload::CodeSectionStart { count, .. } => {
                self.functions += u64::from(count);
                within("functions", self.functions, FUNCTIONS_MAX)?;
            }
            Payload::CodeSectionEntry(body) => {
                let bytes = body.range().len();
                within(
                    "bytes in one function",
                    bytes as u64,
                    FUNCTION_BYTES_MAX as u64,
                )?;
            }
            Payload::ImportSection(section) => {
                self.core_imports += u64::from(section.count());
                within(
                    "imports of its modules",
                    self.core_imports,
                    CORE_IMPORTS_MAX,
                )?;
            }
            Payload::CustomSection(section) => {
                let bytes = section.data().len() as u64;
                within(
                    "bytes in one custom section",
                    bytes,
                    CUSTOM_SECTION_BYTES_MAX as u64,
                )?;
                if section.name() == SDK_SECTION {
                    let text = String::from_utf8_lossy(section.data());
                    self.sdk = Some(tame(&text, SDK_CHARS_MAX));
                }
            }
            other => self.take_of_component(other)?,
        }
        Ok(())
    }

    fn take_of_component(&mut self, payload: Payload<'_>) -> Result<(), Problem> {
        match payload {
            Payload::InstanceSection(section) => {
                for instance in section {
                    if let Instance::Instantiate { .. } = instance.map_err(|e| invalid(&e))? {
                        self.add(1)?;
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    self.instance(&instance.map_err(|error| invalid(&error))?)?;
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    self.alias(&alias.map_err(|error| invalid(&error))?)?;
                }
            }
            Payload::ComponentImportSection(section) => {
                within(
                    "imports",
                    u64::from(section.count()),
                    COMPONENT_IMPORTS_MAX as u64,
                )?;
                for import in section {
                    let import = import.map_err(|error| invalid(&error))?;
                    self.import(import.name.name, import.ty.kind())?;
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export.map_err(|error| invalid(&error))?;
                    self.export(export.name.name, export.kind, export.index)?;
                }
            }
            // Other payloads cost no more than their bytes.
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self, encoding: Encoding) -> Result<(), Problem> {
        within(
            "levels of nesting",
            self.levels.len() as u64 + 1,
            NESTING_MAX as u64,
        )?;
        self.levels.push(Level {
            is_component: encoding == Encoding::Component,
            instantiations: 0,
            components: Vec::new(),
        });
        Ok(())
    }

    fn leave(&mut self) {
        let ended = self.levels.pop();
        if let (Some(level), Some(parent)) = (ended, self.levels.last_mut())
            && level.is_component
        {
            parent.components.push(level.instantiations);
        }
    }

    fn instance(&mut self, instance: &ComponentInstance<'_>) -> Result<(), Problem> {
        match instance {
            ComponentInstance::Instantiate {
                component_index, ..
            } => {
                let weight = self.weight(0, *component_index)?;
                self.add(weight.saturating_add(1))
            }
            ComponentInstance::FromExports(_) => Ok(()),
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), Problem> {
        match alias {
            ComponentAlias::Outer {
                kind: ComponentOuterAliasKind::Component,
                count,
                index,
            } => {
                let weight = self.weight(*count as usize, *index)?;
                self.define(weight)
            }
            ComponentAlias::InstanceExport {
                kind: ComponentExternalKind::Component,
                ..
            } => Err(unfollowable("takes a component out of an instance")),
            ComponentAlias::Outer { .. }
            | ComponentAlias::InstanceExport { .. }
            | ComponentAlias::CoreInstanceExport { .. } => Ok(()),
        }
    }

    fn import(&mut self, name: &str, kind: ComponentExternalKind) -> Result<(), Problem> {
        if kind == ComponentExternalKind::Component {
            return Err(unfollowable("imports a component"));
        }
        if self.levels.len() == 1 {
            within(
                "imports",
                self.imports.len() as u64 + 1,
                COMPONENT_IMPORTS_MAX as u64,
            )?;
            self.imports.push(name.to_owned());
        }
        Ok(())
    }

    fn export(
        &mut self,
        name: &str,
        kind: ComponentExternalKind,
        index: u32,
    ) -> Result<(), Problem> {
        if self.levels.len() == 1 {
            within("exports", self.exports.len() as u64 + 1, EXPORTS_MAX as u64)?;
            self.exports.push(name.to_owned());
        }
        // An export is a new item of the index space, too.
        if kind == ComponentExternalKind::Component {
            let weight = self.weight(0, index)?;
            return self.define(weight);
        }
        Ok(())
    }

    fn weight(&self, levels_out: usize, index: u32) -> Result<u64, Problem> {
        self.levels
            .iter()
            .rev()
            .nth(levels_out)
            .and_then(|level| level.components.get(index as usize))
            .copied()
            .ok_or_else(|| unfollowable("names a component that is not there"))
    }

    fn define(&mut self, weight: u64) -> Result<(), Problem> {
        let level = self.levels.last_mut();
        level
            .ok_or_else(|| unfollowable("defines a component outside of any"))?
            .components
            .push(weight);
        Ok(())
    }

    fn add(&mut self, instantiations: u64) -> Result<(), Problem> {
        let level = self.levels.last_mut();
        let level = level.ok_or_else(|| unfollowable("instantiates outside of any component"))?;
        level.instantiations = level.instantiations.saturating_add(instantiations);
        // Inner components count, too, even if they may never be instantiated.
        within("instantiations", level.instantiations, INSTANTIATIONS_MAX)
    }
}

/// The parser accepts a truncated inner module or component at the end of the input. The compiler does not.
fn complete(section: &Range<usize>, bytes: usize) -> Result<(), Problem> {
    if section.end <= bytes {
        return Ok(());
    }
    let message = format!(
        "the component is cut off: its part at offset {:#x} ends at {:#x}, the input at {bytes:#x}",
        section.start, section.end
    );
    Err(of_component("component_invalid", message))
}

fn within(what: &str, count: u64, max: u64) -> Result<(), Problem> {
    if count <= max {
        return Ok(());
    }
    let message = format!("it has {count} {what}, at most {max} are accepted");
    Err(too_complex(&message))
}

pub(super) fn too_complex(message: &str) -> Problem {
    of_component("component_too_complex", message)
}

fn unfollowable(what: &str) -> Problem {
    too_complex(&format!(
        "it {what}, so its instantiations cannot be counted"
    ))
}
