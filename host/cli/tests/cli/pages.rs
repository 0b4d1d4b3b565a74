//! The shell blocks of the README and of the pages in `docs`, run like by a reader: all blocks of a page in order, in one shell,
//! against the `wrkflw dev` that the page requires. A command may be refused only if a comment announces it, such as `# 403: why`. A
//! block that no host can run has the line `<!-- not run: REASON -->` before it.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::TestFolder;

/// The time limit for the blocks of a page on a busy machine that compiles its flows for the first time.
const SECONDS_MAX: &str = "600";
/// Pages whose commands other tests run, and which.
const ELSEWHERE: [(&str, &str); 2] = [
    ("docs/cli.md", "reference.rs writes it of what it runs"),
    (
        "docs/languages.md",
        "languages.rs runs its commands in each language",
    ),
];
const NOT_RUN: &str = "<!-- not run: ";
const SAVED: &str = "Save this as `";
/// The minimum length of a reason for which a block is not run.
const REASON_MIN: usize = 20;

/// A test for each page, and the list of the pages.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test] fn $name() { run($path); })*
    };
}

pages! {
    readme: "README.md",
    api: "docs/api.md",
    audit: "docs/audit.md",
    deadlines: "docs/deadlines.md",
    flows: "docs/flows.md",
    lifecycle: "docs/lifecycle.md",
    operation: "docs/operation.md",
    scenarios: "docs/scenarios.md",
    search: "docs/search.md",
    services: "docs/services.md",
    webhooks: "docs/webhooks.md",
    work: "docs/work.md",
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("this crate is in its workspace").to_owned()
}

/// The contents of a page for its reader.
#[derive(Default)]
struct Page {
    /// The shell blocks, with as many lines as the page has, so that bash reports line numbers of the page.
    script: String,
    /// The line and the status of each announced refusal.
    refusals: Vec<(usize, u16)>,
    /// Path and content of each file that the reader must save.
    files: Vec<(String, String)>,
}

/// The status at the beginning of the comment at the end of a line.
fn announced(line: &str) -> Option<u16> {
    let (_, comment) = line.rsplit_once("# ")?;
    let status = comment.get(..3)?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

impl Page {
    fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut language = None;
        let (mut reason, mut saved) = (None, None::<String>);
        for (index, line) in text.lines().enumerate() {
            let mut command = "";
            if let Some(name) = line.strip_prefix("```") {
                language = language.is_none().then_some(name);
                if language.is_none() {
                    (reason, saved) = (None, None);
                }
            } else if let Some(language) = language {
                if let Some(path) = &saved {
                    page.save(path, line);
                } else if reason.is_none() {
                    command = match language {
                        "sh" => line,
                        "console" => line.strip_prefix("$ ").unwrap_or_default(),
                        _ => "",
                    };
                }
            } else if let Some((_, after)) = line.split_once(NOT_RUN) {
                let given = after.trim_end_matches("-->").trim();
                assert!(given.len() >= REASON_MIN, "line {}: why?", index + 1);
                reason = Some(given);
            } else if let Some((_, after)) = line.split_once(SAVED) {
                saved = after.split('`').next().map(str::to_owned);
            }
            page.refusals
                .extend(announced(command).map(|status| (index + 1, status)));
            writeln!(page.script, "{command}").expect("a String takes every write");
        }
        page
    }

    fn save(&mut self, path: &str, line: &str) {
        match self.files.last_mut().filter(|(known, _)| known == path) {
            Some((_, content)) => writeln!(content, "{line}").expect("a String takes every write"),
            None => self.files.push((path.to_owned(), format!("{line}\n"))),
        }
    }
}

/// The options of `wrkflw dev` that the page requires, as in `make dev ARGS="--empty"`.
fn options(text: &str) -> &str {
    let given = text.split_once("make dev ARGS=\"");
    let given = given.and_then(|(_, after)| Some(after.split_once('"')?.0));
    given.unwrap_or("--ephemeral")
}

/// Whether an observed status, or exit code of `wrkflw`, is this refusal.
fn is_refusal(seen: &str, status: u16) -> bool {
    let exit = match status {
        401 | 403 => "exit-3",
        404 => "exit-4",
        409 | 412 | 429 => "exit-5",
        400 | 422 => "exit-6",
        424 => "exit-8",
        _ => "",
    };
    seen == exit || seen == status.to_string()
}

fn run(path: &str) {
    let text = fs::read_to_string(root().join(path)).expect("a page of this repository");
    // A free port, for the program that the page starts.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let free = listener.local_addr().expect("bound").port().to_string();
    drop(listener);
    let program = Path::new(env!("CARGO_BIN_EXE_wrkflw"));
    let programs = program.parent().expect("a folder");
    let mut place = TestFolder::new();
    // The folder for cargo's builds of this repository's flows, as in the pages.
    place.builds = programs.with_file_name("");
    let arguments = options(&text).replace("9000", &free);
    let dev = place.start(&format!("dev --port 0 {arguments}"));
    let url = dev.facts["url"].as_str().expect("its address");
    // The replacement of `/tmp` in the page.
    let folder = &place.folder;
    let programs = programs.display().to_string();
    let here = |text: &str| {
        text.replace("/tmp", &folder.display().to_string())
            .replace("http://127.0.0.1:8080", url)
            .replace("9000", &free)
            .replace("$PWD/target/debug", &programs)
    };
    let page = Page::read(&text);
    for (file, content) in &page.files {
        fs::write(here(file), here(content)).expect("our own folder");
    }
    let script = folder.join("page.sh");
    fs::write(&script, here(&page.script)).expect("our own folder");
    let watched = folder.join("watched");
    fs::write(&watched, "").expect("our own folder");
    let watching = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/pages.sh");
    let inherited = place.command("");
    let mut command = Command::new("timeout");
    for (name, value) in inherited.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .args([SECONDS_MAX, "bash"])
        .arg(&script)
        .env("BASH_ENV", watching)
        .env("WATCHED", &watched)
        .current_dir(root());
    let output = command.output().expect("coreutils have timeout");
    let seen = fs::read_to_string(&watched).expect("our own folder");
    let statuses: Vec<_> = seen.lines().map(|line| line.split(' ').nth(1)).collect();
    let fits = statuses.len() == page.refusals.len()
        && std::iter::zip(&statuses, &page.refusals)
            .all(|(seen, (_, status))| seen.is_some_and(|seen| is_refusal(seen, *status)));
    assert!(
        fits && output.status.code() != Some(124),
        "{path} says that these lines are refused: {:?}; seen were:\n{seen}\n{}{}",
        page.refusals,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_page_with_an_unmarked_shell_block_is_run() {
    let pages = fs::read_dir(root().join("docs")).expect("the pages");
    let names = pages.map(|page| page.expect("an entry").file_name());
    let mut paths: Vec<_> = names
        .map(|name| format!("docs/{}", name.display()))
        .filter(|path| Path::new(path).extension().is_some_and(|kind| kind == "md"))
        .filter(|path| ELSEWHERE.iter().all(|(other, _)| path != other))
        .collect();
    paths.push("README.md".to_owned());
    for path in paths {
        let text = fs::read_to_string(root().join(&path)).expect("a page");
        let runs = Page::read(&text)
            .script
            .lines()
            .any(|line| !line.is_empty());
        let is_listed = PAGES.contains(&path.as_str());
        assert_eq!(is_listed, runs, "{path}");
    }
}

#[test]
fn commands_files_and_refusals_of_a_page_are_found() {
    let page = Page::read(
        "Save this as `/tmp/x.py`.\n\n```python\na\nb\n```\n\n```sh\nls   # 403: no\n```\n<!-- not run: it would never come to an end -->\n\
         ```sh\nsleep inf\n```\n```console\n$ true\nsaid   # 404\n```\n",
    );
    let commands: Vec<_> = page
        .script
        .lines()
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(commands, ["ls   # 403: no", "true"]);
    assert_eq!(page.refusals, [(9, 403)]);
    assert_eq!(page.files, [("/tmp/x.py".to_owned(), "a\nb\n".to_owned())]);
    assert!(is_refusal("exit-3", 403) && is_refusal("403", 403));
    assert!(!is_refusal("exit-5", 403) && !is_refusal("failed-1", 403));
}
