//! A flow in C: clang compiles it with the bindings that are made of the contract, and this program makes a component of the module.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;
use wrkflw_sandbox::componentize::componentize;

use super::super::super::failure::{Exit, Failure};
use super::{Tools, read};

const CLANG: &str =
    "install clang with the target wasm32, and lld (Debian: apt-get install clang lld)";
/// The stack, which is what bounds recursion.
const STACK_BYTES: &str = "262144";

impl Tools<'_> {
    /// The component of a flow in C.
    pub(in super::super) fn clang(&self) -> Result<Vec<u8>> {
        let folder = &self.project.folder;
        let bindings = self.project.target.join("bindings");
        let generated = generate(&folder.join("sdk/wit"), &bindings)?;
        let module = self.project.target.join("module.wasm");
        let mut clang = self.command("clang");
        clang.args([
            "--target=wasm32-unknown-unknown",
            "-std=c17",
            "-O2",
            "-nostdlib",
        ]);
        clang.args(["-Wall", "-Wextra", "-Werror=implicit-function-declaration"]);
        clang.args(["-isystem", "sdk/include", "-Isdk", "-I"]);
        clang.arg(&bindings);
        clang.args([
            "-Wl,--no-entry",
            "-Wl,--export-dynamic",
            "-Wl,--gc-sections",
        ]);
        clang.args([
            "-Wl,-z",
            &format!("-Wl,stack-size={STACK_BYTES}"),
            "-Wl,--stack-first",
        ]);
        clang.arg("-o").arg(&module);
        clang.args(sources(&folder.join("src"))?);
        clang.args(sources(&folder.join("sdk"))?);
        clang.args(generated);
        self.run(clang, CLANG, "clang does not accept the flow")?;
        let component = componentize(&read(&module)?).map_err(|error| {
            Failure::new(Exit::Invalid, error)
                .next("use no function that needs an operating system")
        })?;
        Ok(component)
    }
}

/// Writes the bindings for the contract in `wit`, and returns those files that are compiled and linked.
fn generate(wit: &Path, into: &Path) -> Result<Vec<PathBuf>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(wit)
        .context("sdk/wit is not the contract")?;
    let world = resolve
        .select_world(&[package], Some("flow"))
        .context("sdk/wit has no world flow")?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default()
        .build()
        .generate(&mut resolve, world, &mut files)
        .context("no bindings can be made of sdk/wit")?;
    fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
    let mut compiled = Vec::new();
    for (name, content) in files.iter() {
        let path = into.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        if path.extension().is_none_or(|extension| extension != "h") {
            compiled.push(path);
        }
    }
    Ok(compiled)
}

/// The C files in this folder, in order.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot read {}", folder.display()))?
            .path();
        if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
