//! `wrkflw completions` and `wrkflw man`: the program's commands, for shells and for manuals.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;

use super::command;
use super::output::Output;

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder. Default: print the page of the program
    #[arg(long, short = 'o', value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs, output: Output) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "wrkflw", &mut script);
    output.text("script", &String::from_utf8(script)?)
}

pub(super) fn man(args: &ManArgs, output: Output) -> Result<()> {
    let mut program = command();
    // Names of commands are whole then: `wrkflw instance show`.
    program.build();
    let Some(folder) = &args.out else {
        return output.text("page", &String::from_utf8(page(program)?)?);
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let pages = write(&program, "wrkflw", folder)?;
    output.record(
        &json!({ "path": folder, "pages": pages }),
        &[("path", "/path"), ("pages", "/pages")],
    )
}

/// Writes the pages of a command and of those below it. Returns their number.
fn write(command: &clap::Command, name: &str, folder: &Path) -> Result<usize> {
    let path = folder.join(format!("{name}.1"));
    let text = page(command.clone())?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let mut pages = 1;
    for below in command.get_subcommands() {
        if below.get_name() != "help" {
            pages += write(below, &format!("{name}-{}", below.get_name()), folder)?;
        }
    }
    Ok(pages)
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    Ok(text)
}
