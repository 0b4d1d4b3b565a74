//! Runs every command once, and compares the output with `docs/cli.md`. The commands come from the program's own description, so
//! a command without an example fails here. With `UPDATE=1` the test writes the page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::Command;
use uuid::Uuid;
use wrkflw::sample::DOCUMENT_APPROVAL;

use crate::blurred::{blurred, without_numbers};
use crate::program::{Ran, TestFolder, ran};
use crate::usage::leaves;

const WEBHOOKS: &str = include_str!("webhooks.rs");
/// Commands that other tests run, because they do not end or need a toolchain: the file of the test, and the words that run the
/// command there.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("demo", include_str!("dev.rs"), "demo"),
    ("serve", include_str!("dev.rs"), "serve --listen"),
    ("plugin build", include_str!("plugin.rs"), "plugin build"),
    ("plugin test", include_str!("plugin.rs"), "plugin test"),
    ("plugin watch", include_str!("scenarios.rs"), "plugin watch"),
    ("subscription listen", WEBHOOKS, "subscription listen"),
    ("subscription test", WEBHOOKS, "subscription test"),
    ("subscription attempts", WEBHOOKS, "subscription attempts"),
    ("subscription discard", WEBHOOKS, "subscription discard"),
];
/// The maximum length of an example.
const LINES_MAX: usize = 14;

/// The examples in order, each with its command. `$TASK` is the open task of the instance, `$LAST` the first id in the output of
/// the last example.
const EXAMPLES: &[&str] = &[
    "dev --list",
    "me --as author",
    "person list",
    "person list re",
    "person set mara --name Mara",
    "person manager author mara",
    "person show author",
    "group set finance --name Finance",
    "group add finance mara",
    "group show finance",
    "person list --group finance",
    "group remove finance mara --dry-run",
    "group list",
    "person names mara author --group finance",
    "role list",
    "role set auditor audit:read instance:read --dry-run",
    "role set auditor audit:read instance:read",
    "role show auditor",
    r#"calendar set office {"timeZone":"UTC","hours":{"monday":[{"from":"09:00","until":"17:00"}]}}"#,
    "calendar list",
    "calendar show office",
    "calendar delete office",
    "absence add reviewer --substitute reviewer2 --from 2100-01-01T00:00:00Z --until 2100-01-08T00:00:00Z",
    "absence end reviewer $LAST",
    "absence list reviewer",
    r#"instance start document-approval --entity document/9 --data {"title":"Budget"} --as author"#,
    "instance list",
    "instance show document/9",
    "instance actions document/9 --as reviewer",
    "instance eligibility document/9",
    "instance changes document/9",
    "task list --view available --as reviewer",
    "task show $TASK",
    "task draft $TASK --comment Almost. --as reviewer",
    "task claim $TASK --as reviewer --dry-run",
    "task claim $TASK --as reviewer",
    "task suspend $TASK --reason question --as reviewer",
    "task resume $TASK --as reviewer",
    "task delegate $TASK --to approver --reason away --as reviewer",
    "task resolve $TASK --as approver",
    "task release $TASK --as reviewer",
    "task reassign $TASK --to reviewer2 --reason late --as admin",
    "task reset $TASK --reason ill --as admin",
    "task bulk claim --view available --as reviewer",
    "task decide $TASK APPROVE --as reviewer",
    "instance comment document/9 Agreed. --mention approver --as reviewer",
    "instance comments document/9",
    "instance history document/9",
    "instance audit document/9 --type DECISION_RECORDED",
    "instance custody document/9",
    "instance export document/9 --scenario --out approval.yaml",
    "instance verify document/9",
    "entity history document/9",
    "entity custody document/9",
    "embed-token reviewer --entity document/9 --origin https://documents.example --decide --as product",
    "instance suspend document/9 --reason audit",
    "instance resume document/9",
    "definition publish document-approval.wasm --key document-approval --config config.json",
    "definition list",
    "definition list --q approv --versions active",
    "definition show document-approval",
    "instance migrate document/9 --to 2 --dry-run",
    "operation migrate document-approval 1 --to 2",
    "operation show $LAST",
    "operation list",
    "operation items $LAST",
    "operation stop $LAST",
    "operation cancel document-approval 1 --reason cleanup --dry-run",
    "definition activate document-approval 2 --dry-run",
    "definition activate document-approval 2",
    "definition retire document-approval 1",
    "definition reinstate document-approval 1",
    "definition stop document-approval 1 --reason harm",
    "definition resume document-approval 1",
    "definition diagram document-approval --out flow.svg",
    "instance diagram document/9 --out path.svg",
    "instance signal document/9 PAID",
    "signal list document/9",
    "instance cancel document/9 --reason late",
    "instance restart document/9 --as author",
    "signal send PAID --correlation 7 --id payment-1 --as author",
    "signal show 01a20416-5f62-7350-986a-13b0f0477285 --as author",
    "notification mute MENTION --as outsider",
    "notification muted --as outsider",
    "notification list --as outsider",
    "notification read 01a20416-5f62-7350-986a-13b0f0477285 --as outsider",
    "saved-view save Urgent view=available&minPriority=100 --as reviewer",
    "saved-view list --as reviewer",
    "saved-view delete $LAST --as reviewer",
    "session list --as reviewer",
    "session end 01a20416-5f62-7350-986a-13b0f0477285 --as reviewer",
    "subscription create http://127.0.0.1:9/hook --type task.created",
    "subscription show $LAST",
    "subscription deliveries $LAST",
    "subscription retry $LAST",
    "subscription list",
    "subscription delete $LAST",
    "events tail --limit 1",
    "events replay --after earliest --reason repaired",
    "job list --state due",
    "host list",
    "series list --from 2030-01-31T08:00:00Z --until 2030-01-31T09:00:00Z",
    "series show decisions --from 2030-01-31T08:00:00Z --until 2030-01-31T09:00:00Z",
    "refusal list",
    "dead-letter list",
    "dead-letter retry --all --reason repaired",
    "dead-letter discard 01a20416-5f62-7350-986a-13b0f0477285 --entry 1 --reason broken",
    "audit list --type ROLE_PUT",
    "audit checkpoints --limit 1",
    "audit self-approvals",
    "audit verify --all",
    "audit export --all --out audit.jsonl",
    "audit keys",
    "token author",
    "plugin new my-flow",
    "plugin check document-approval.wasm",
    "plugin schema",
    "migrate",
    "doctor",
    "completions bash",
    "man --out man",
    "config template",
    "config show",
];

/// The words of the example that name its command.
fn command_of<'a>(line: &str, commands: &'a [String]) -> &'a str {
    let fits =
        |command: &&String| line == command.as_str() || line.starts_with(&format!("{command} "));
    let found = commands
        .iter()
        .filter(fits)
        .max_by_key(|command| command.len());
    found.unwrap_or_else(|| panic!("{line} is no command"))
}

/// The examples with a running `wrkflw dev`, each as a line.
struct Book {
    place: TestFolder,
    replaced: Vec<(String, &'static str)>,
    last: String,
}

impl Book {
    fn task(&self) -> Option<String> {
        let shown = self.place.run("instance show document/9 --output json");
        let instance: serde_json::Value = serde_json::from_str(&shown.stdout).ok()?;
        let task = instance.pointer("/states/0/tasks/0/id")?;
        Some(task.as_str()?.to_owned())
    }

    /// Runs an example, and returns it as the page shows it.
    fn example(&mut self, line: &str) -> String {
        let task = if line.contains("$TASK") {
            self.task()
        } else {
            None
        };
        let task = task.unwrap_or_default();
        if line.starts_with("operation show") {
            self.until_done();
        }
        if line.starts_with("audit list") {
            self.place.until_listed(line);
        }
        let real = line.replace("$TASK", &task).replace("$LAST", &self.last);
        let mut command = self.place.command(&real);
        if line == "migrate" {
            command.env("WRKFLW_DATABASE_URL_FILE", ".wrkflw/database.project.url");
        }
        let done = ran(command);
        let mut ids = vec![(self.last.clone(), "LAST")];
        if !task.is_empty() {
            ids.push((task, "TASK"));
        }
        let text = self.shown(line, &done, &ids);
        let first = done
            .stdout
            .split(|char: char| !char.is_ascii_hexdigit() && char != '-');
        if !line.contains("$LAST")
            && let Some(id) = first
                .into_iter()
                .find(|word| word.len() == 36 && Uuid::try_parse(word).is_ok())
        {
            id.clone_into(&mut self.last);
        }
        let quoted = line.split(' ').map(|word| {
            if word.starts_with('{') || word.contains('&') {
                format!("'{word}'")
            } else {
                word.to_owned()
            }
        });
        let words = quoted.collect::<Vec<_>>().join(" ").replace('$', "");
        let more = text.lines().count() > LINES_MAX;
        let lines: String = text
            .lines()
            .take(LINES_MAX)
            .flat_map(|line| [line, "\n"])
            .collect();
        let code = match done.code {
            0 => String::new(),
            code => format!("# exit code {code}\n"),
        };
        format!(
            "$ wrkflw {words}\n{lines}{}{code}",
            if more { "...\n" } else { "" }
        )
    }

    /// The output without the differences between runs.
    fn shown(&self, line: &str, done: &Ran, ids: &[(String, &str)]) -> String {
        let mut text = blurred(&done.stdout, ids, &self.replaced);
        text += &blurred(&done.stderr, ids, &self.replaced);
        if line.starts_with("events replay") {
            let sent = text.lines().next().unwrap_or_default();
            text = format!("{}\nnext  CURSOR\n", without_numbers(sent).trim_end());
        }
        // The number of leaves depends on the duration of the run.
        let counting = ["instance verify", "audit verify", "audit export"];
        if counting.iter().any(|words| line.starts_with(words)) {
            text = without_numbers(&text);
        }
        if line.starts_with("audit checkpoints") {
            // Whether there are more entries depends on the duration of the run.
            let listed: Vec<_> = text.lines().take(2).collect();
            text = without_numbers(&listed.join("\n"));
        }
        if let Some((before, _)) = text.split_once("--after ") {
            text = format!("{before}--after CURSOR\n");
        }
        if line.starts_with("operation migrate") {
            // The operation may have ended before it is shown.
            const STEADY: [&str; 7] = [
                "id",
                "action",
                "definition",
                "from",
                "version",
                "total",
                "next",
            ];
            let is_steady = |line: &&str| STEADY.iter().any(|name| line.starts_with(name));
            text = text
                .lines()
                .filter(is_steady)
                .flat_map(|line| [line, "\n"])
                .collect();
        }
        if line == "doctor" {
            // The documentation does not contain facts about this machine.
            let lines = text
                .lines()
                .map(|line| line.split("  ").take(2).collect::<Vec<_>>().join("  "));
            text = lines
                .filter(|line| !line.starts_with("wasm"))
                .map(|line| line + "\n")
                .collect();
        }
        text
    }

    fn until_done(&self) {
        for _ in 0..600 {
            let shown = self.place.data(&format!("operation show {}", self.last));
            if shown["status"] == "DONE" {
                return;
            }
        }
        panic!("the operation does not end");
    }
}

/// The arguments of a command in the page. Those of every command are explained once.
fn arguments(command: &Command) -> String {
    const EVERYWHERE: &str = "output quiet server token user dev settings_file help";
    let takes_settings = command
        .get_arguments()
        .any(|arg| arg.get_id() == "settings_file");
    let mut text = String::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let is_setting = takes_settings && arg.get_env().is_some();
        if EVERYWHERE.split(' ').any(|name| name == id) || is_setting {
            continue;
        }
        let names = arg.get_value_names().unwrap_or_default();
        let value = if arg.get_action().takes_values() {
            let name = names
                .first()
                .map_or_else(|| id.to_uppercase(), ToString::to_string);
            if arg.is_positional() {
                name
            } else {
                format!(" {name}")
            }
        } else {
            String::new()
        };
        let long = arg
            .get_long()
            .map(|long| format!("--{long}"))
            .unwrap_or_default();
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "- `{long}{value}`: {help}").expect("a String takes every write");
    }
    if takes_settings {
        text += "- Settings, as `wrkflw config template` explains them.\n";
    }
    text
}

fn found<'a>(program: &'a Command, path: &str) -> &'a Command {
    path.split(' ').fold(program, |command, name| {
        command.find_subcommand(name).expect("a command")
    })
}

const HEAD: &str = "\
# The command line

Every command with its arguments and an example. A test runs the examples on an empty `wrkflw dev` and compares what they print. The commands without
an example need a tool or do not end by themselves; other tests run them. `ID`, `TASK`, `LAST` (the id that an earlier example printed), `TIME`, `HEX` and
`N` stand for what differs in each run. Long output is cut.

Options of every command: `--output json` prints the API's JSON, `-q` prints data and errors only. Options of every command that asks a server,
also before the command: `--server URL` and `--token TOKEN`; against `wrkflw dev` they are not needed: `--as USER` acts as one of its people (default:
admin). Where several `wrkflw dev` run, a command takes the one of its folder or above it, or is refused; `--dev NAME` chooses one. An instance is named
by its id, the first digits of its id, or TYPE/ID of what it is about; a task or a subscription by its id or its first digits. Data goes to standard
output, hints and errors to standard error. `wrkflw help` lists the exit codes; `wrkflw completions` and `wrkflw man` are for shells and manuals.
";

/// The whole page.
fn page(program: &Command, commands: &[String], examples: &[(&str, String)]) -> String {
    let mut page = HEAD.to_owned();
    for command in commands {
        let described = found(program, command);
        let about = described
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        write!(page, "\n## `wrkflw {command}`\n\n{about}.\n").expect("a String takes every write");
        let arguments = arguments(described);
        if !arguments.is_empty() {
            page += "\n";
        }
        page += &arguments;
        let of_it: String = examples
            .iter()
            .filter(|(name, _)| name == command)
            .map(|(_, text)| text.as_str())
            .collect();
        if of_it.is_empty() {
            let elsewhere = ELSEWHERE.iter().find(|(name, ..)| name == command);
            let (_, test, words) = elsewhere.unwrap_or_else(|| panic!("{command} has no example"));
            assert!(test.contains(words), "no test runs {command}");
            continue;
        }
        write!(page, "\n```\n{of_it}```\n").expect("a String takes every write");
    }
    page
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a developer asks for the page by the environment"
)]
fn every_command_prints_the_output_in_the_page() {
    let program = wrkflw::cli::command();
    let commands: Vec<String> = leaves(&program)
        .iter()
        .map(|path| path[1..].join(" "))
        .collect();
    let place = TestFolder::new();
    fs::write(
        place.folder.join("document-approval.wasm"),
        DOCUMENT_APPROVAL,
    )
    .expect("our own folder");
    fs::write(
        place.folder.join("config.json"),
        r#"{"reviewers": "approvers"}"#,
    )
    .expect("our own folder");
    let mut dev = place.start("dev --empty --port 0 --name project");
    let url = dev.facts["url"].as_str().expect("an address").to_owned();
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (_, port) = url.rsplit_once(':').expect("a port");
    let host = format!("{}:{port}", machine.trim());
    let process = place.data("dev --list")["data"][0]["pid"].to_string();
    let folder = place
        .folder
        .canonicalize()
        .expect("our own folder")
        .display()
        .to_string();
    let mut book = Book {
        replaced: vec![
            (url, "http://127.0.0.1:8080"),
            (host, "server-1:8080"),
            (folder, "/home/you/project"),
            (place.folder.display().to_string(), "/home/you/project"),
            (process, "PROCESS"),
        ],
        place,
        last: String::new(),
    };
    let examples: Vec<(&str, String)> = EXAMPLES
        .iter()
        .map(|line| (command_of(line, &commands), book.example(line)))
        .collect();
    assert_eq!(dev.stop(), Some(0));

    let page = page(&program, &commands, &examples);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        fs::write(&path, &page).expect("the page");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    for (number, (kept, fresh)) in kept.lines().zip(page.lines()).enumerate() {
        assert_eq!(
            kept,
            fresh,
            "docs/cli.md:{}: UPDATE=1 writes it again",
            number + 1
        );
    }
    assert!(
        kept == page,
        "docs/cli.md is shorter or longer: UPDATE=1 writes it again"
    );
}

#[test]
fn every_argument_is_explained() {
    fn check(command: &Command) {
        for arg in command.get_arguments() {
            assert!(
                arg.get_help().is_some(),
                "{} of {} has no help",
                arg.get_id(),
                command.get_name()
            );
        }
        command.get_subcommands().for_each(check);
    }
    check(&wrkflw::cli::command());
}
