//! A flow in C: clang compiles it with the SDK and its bindings of the contract, and this program makes a component of the module.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use wrkflw_sandbox::componentize::{STACK, componentize};

use super::super::super::failure::{Exit, Failure};
use super::{Tools, read};

const CLANG: &str =
    "install clang with the target wasm32, and lld (Debian: apt-get install clang lld)";

impl Tools<'_> {
    /// The component of a flow in C.
    pub(in super::super) fn clang(&self) -> Result<Vec<u8>> {
        let folder = &self.project.folder;
        let bindings = folder.join("sdk/bindings");
        let module = self.project.target.join("module.wasm");
        let mut clang = self.command("clang");
        clang.args([
            "--target=wasm32-unknown-unknown",
            "-std=c17",
            "-O2",
            "-mbulk-memory",
            "-nostdlib",
        ]);
        clang.args(["-Wall", "-Wextra", "-Werror=implicit-function-declaration"]);
        clang.args(["-isystem", "sdk/include", "-Isdk", "-Isdk/bindings"]);
        clang.args([
            "-Wl,--no-entry",
            "-Wl,--export-dynamic",
            "-Wl,--gc-sections",
        ]);
        clang.args([&format!("-Wl,{STACK}"), "-Wl,--stack-first"]);
        clang.arg("-o").arg(&module);
        clang.args(sources(&folder.join("src"))?);
        clang.args(sources(&folder.join("sdk"))?);
        clang.args(sources(&bindings)?);
        // This object file tells the component maker which contract the module has.
        clang.arg(bindings.join("flow_component_type.o"));
        self.run(clang, CLANG, "clang does not accept the flow")?;
        let component = componentize(&read(&module)?).map_err(|error| {
            Failure::new(Exit::Invalid, error)
                .next("use no function that needs an operating system")
        })?;
        Ok(component)
    }
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
