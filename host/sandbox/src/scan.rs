//! The scan: checks a component before it is compiled.
//!
//! Compiling hostile bytes can take minutes and gigabytes, so a linear pass first limits the amount to compile ([`counts`]).
//! Then the bytes are validated and compared with the contract: a component may import only types, and must export the logic
//! interface. All problems are reported together.

mod counts;
mod nesting;

use wasmparser::Validator;
use wasmparser::component_types::{ComponentAnyTypeId, ComponentEntityType};
use wasmparser::types::TypesRef;

use super::engine;
use super::error::of_component;
use super::v0_1;
use counts::ComponentCounts;
use wrkflw_core::check::Problem;
use wrkflw_core::text::tame;

/// Limits of an import's name and of a parser's message in a problem.
const NAME_CHARS_MAX: usize = 160;
const MESSAGE_CHARS_MAX: usize = 400;
/// Limit of the problems that are reported for one component.
const PROBLEMS_MAX: usize = 50;

/// The declarations of a component about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// SDK and version that built it, if recorded.
    pub sdk: Option<String>,
}

/// Scans `bytes` without running or compiling them.
pub fn scan(bytes: &[u8], bytes_max: usize) -> Result<Scanned, Vec<Problem>> {
    let one = |problem| vec![problem];
    if bytes.len() > bytes_max {
        let message = format!(
            "the component takes {} bytes, at most {bytes_max} are accepted",
            bytes.len()
        );
        return Err(one(of_component("component_too_large", message)));
    }
    kind(bytes).map_err(one)?;
    let tally = ComponentCounts::of(bytes).map_err(one)?;
    let types = Validator::new_with_features(engine::features())
        .validate_all(bytes)
        .map_err(|error| one(invalid(&error)))?;
    let mut problems = Vec::new();
    for name in &tally.imports {
        let entity = types
            .as_ref()
            .component_item_for_import(name)
            .map(|item| item.ty);
        refuse_import(types.as_ref(), name, entity, &mut problems);
    }
    problems.extend(missing_logic(&tally.exports));
    problems.truncate(PROBLEMS_MAX);
    if problems.is_empty() {
        Ok(Scanned { sdk: tally.sdk })
    } else {
        Err(problems)
    }
}

fn invalid(error: &wasmparser::BinaryReaderError) -> Problem {
    // Tools for other languages build asynchronous components unless they are told otherwise.
    let hint = if error.message().contains("async feature") {
        "; flow logic is synchronous: `wrkflw plugin build` passes `--sync --stub-wasi` to componentize-qjs"
    } else {
        ""
    };
    of_component(
        "component_invalid",
        format!(
            "the component is not valid: {}{hint}",
            tame(&error.to_string(), MESSAGE_CHARS_MAX)
        ),
    )
}

/// Refuses other formats that are often mistaken for a component.
fn kind(bytes: &[u8]) -> Result<(), Problem> {
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    let what = if bytes.starts_with(COMPONENT) {
        return Ok(());
    } else if bytes.is_empty() {
        "no bytes at all"
    } else if bytes.starts_with(MODULE) {
        "a core WebAssembly module: make it a component first (`wrkflw plugin build` does)"
    } else if bytes.starts_with(b"\0asm") {
        "WebAssembly of a version that this host does not know"
    } else if bytes.starts_with(b"\x7fELF") {
        "precompiled machine code, which is never accepted: upload the component it was made from"
    } else if bytes.trim_ascii_start().starts_with(b"(") {
        "WebAssembly text: upload the binary form"
    } else {
        "no WebAssembly"
    };
    let message = format!("this is {what}");
    Err(of_component("not_a_component", message))
}

/// Types may be imported, because they carry no authority. Anything that could be called or linked may not.
fn refuse_import(
    types: TypesRef<'_>,
    name: &str,
    entity: Option<ComponentEntityType>,
    problems: &mut Vec<Problem>,
) {
    let what = match entity {
        Some(ComponentEntityType::Instance(id)) => {
            for (item, entity) in &types[id].exports {
                refuse_import(types, &format!("{name}#{item}"), Some(entity.ty), problems);
            }
            return;
        }
        Some(ComponentEntityType::Type { created, .. }) => match created {
            ComponentAnyTypeId::Resource(_) => "resource",
            ComponentAnyTypeId::Defined(_)
            | ComponentAnyTypeId::Func(_)
            | ComponentAnyTypeId::Instance(_)
            | ComponentAnyTypeId::Component(_) => return,
        },
        Some(ComponentEntityType::Func(_)) => "function",
        Some(ComponentEntityType::Module(_)) => "module",
        Some(ComponentEntityType::Component(_)) => "component",
        Some(ComponentEntityType::Value(_)) => "value",
        None => "item",
    };
    let hint = if name.starts_with("wasi:") {
        "; build it without WASI (target wasm32-unknown-unknown, or `--stub-wasi` of componentize-qjs and componentize-py)"
    } else {
        ""
    };
    let message = format!(
        "it imports the {what} `{}`, but flow logic imports nothing{hint}",
        tame(name, NAME_CHARS_MAX)
    );
    if problems.len() < PROBLEMS_MAX {
        problems.push(of_component("component_imports", message));
    }
}

fn missing_logic(exports: &[String]) -> Option<Problem> {
    if exports.iter().any(|name| name == v0_1::LOGIC) {
        return None;
    }
    let other = exports
        .iter()
        .find_map(|name| name.strip_prefix("wrkflw:flow/logic@"));
    let message = match other {
        Some(version) => format!(
            "it was built for wrkflw:flow@{}, this host speaks {}",
            tame(version, NAME_CHARS_MAX),
            v0_1::PACKAGE
        ),
        None => format!(
            "it does not export `{}`; in Rust, write `wrkflw_guest::export!(TheFlow);`",
            v0_1::LOGIC
        ),
    };
    Some(of_component("component_exports", message))
}

#[cfg(test)]
mod tests;
