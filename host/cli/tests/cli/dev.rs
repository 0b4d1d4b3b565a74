//! `wrkflw dev`, and the commands that its banner suggests.

use std::fs;

use serde_json::Value;

use crate::program::{TestFolder, key_of_dev};

fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .unwrap_or_else(|| panic!("no {pointer} in {value}"))
        .to_owned()
}

fn start_line(entity: &str) -> String {
    format!(
        r#"instance start document-approval --entity {entity} --data {{"title":"Budget"}} --as author"#
    )
}

/// Each filter of a list, with a value that matches the only row and one that does not.
#[test]
fn lists_support_the_filters_of_the_api() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let (id, task) = start(&place, "document/1");
    let count = |line: &str| {
        let data = place.data(line)["data"].clone();
        data.as_array().expect("data").len()
    };
    let both = |list: &str, fits: &str, other: &str| {
        assert_eq!(count(&format!("{list} {fits}")), 1, "{list} {fits}");
        assert_eq!(count(&format!("{list} {other}")), 0, "{list} {other}");
    };
    let open = "task list --view all --as admin";
    for (fits, other) in [
        ("--entity document/1", "--entity document/2"),
        ("--q budget", "--q nonsense"),
        ("--min-priority -1", "--min-priority 9"),
        ("--sort createdAt", "--due-before 2020-01-01T00:00:00Z"),
        ("--definition document-approval", "--label other"),
    ] {
        both(open, fits, other);
    }
    both("task list --as reviewer", "--view groups", "--view mine");
    place.data(&format!("task claim {task} --as reviewer"));
    both(open, "--owner reviewer", "--owner approver");
    let all = "instance list --as admin";
    for (fits, other) in [
        ("--q budget", "--q nonsense"),
        ("--owner reviewer", "--owner approver"),
        ("--ever-owner reviewer", "--ever-owner approver"),
        (
            "--updated-before 2099-01-01T00:00:00Z",
            "--updated-before 2020-01-01T00:00:00Z",
        ),
        ("--status RUNNING", "--due-before 2020-01-01T00:00:00Z"),
    ] {
        both(all, fits, other);
    }
    let approve = format!("task decide {task} APPROVE --as reviewer");
    assert_eq!(text(&place.data(&approve), "/instance/id"), id);
    let ended =
        "task list --view all --owner reviewer --status COMPLETED --sort -endedAt --as admin";
    both(ended, "--outcome APPROVE", "--outcome REJECT");
}

/// Starts an instance. Returns its id and that of its first task.
fn start(place: &TestFolder, entity: &str) -> (String, String) {
    let started = place.data(&start_line(entity));
    (
        text(&started, "/instance/id"),
        text(&started, "/instance/states/0/tasks/0/id"),
    )
}

#[test]
fn the_demo_prints_an_approval_command_by_command() {
    let place = TestFolder::new();
    let nothing = place.run("demo");
    assert!(
        nothing.code == 7 && nothing.stderr.contains("wrkflw dev"),
        "{}",
        nothing.stderr
    );
    let _dev = place.start("dev --empty --ephemeral --port 0");
    for _ in 0..2 {
        let shown = place.run("demo");
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        for words in ["$ wrkflw task decide", "author requested this instance"] {
            assert!(shown.stderr.contains(words), "{words}: {}", shown.stderr);
        }
        assert!(shown.stdout.contains("APPROVED"), "{}", shown.stdout);
    }
    let ended = place.data("instance list --status COMPLETED");
    assert_eq!(ended["data"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_document_is_approved_from_the_command_line() {
    let place = TestFolder::new();
    let mut dev = place.start("dev --empty --ephemeral --port 0");
    assert!(text(&dev.facts, "/url").starts_with("http://127.0.0.1:"));

    assert_eq!(
        place.data(&format!("{} --dry-run", start_line("document/1")))["dryRun"],
        true
    );
    let (id, first) = start(&place, "document/1");
    let available = place.data("task list --view available --as reviewer");
    assert_eq!(text(&available, "/data/0/id"), first);
    place.data(&format!("task claim {first} --as reviewer2"));
    let again = place.run(&format!("task claim {first} --as reviewer2"));
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(
        again.stderr.contains("it was so before"),
        "{}",
        again.stderr
    );
    let released = place.data(&format!("task release {first} --as reviewer2"));
    assert_eq!(released["task"]["status"], "PENDING");
    place.data(&format!("task claim {first} --as reviewer"));
    let decided = place.data(&format!("task decide {first} APPROVE --as reviewer"));
    let last = text(&decided, "/instance/states/0/tasks/0/id");
    place.data(&format!("task claim {last} --as approver"));
    let ended = place.data(&format!(
        "task decide {last} APPROVE --comment Fine. --as approver"
    ));
    assert_eq!(text(&ended, "/instance/outcome"), "APPROVED");

    // No flow here takes signals.
    let unknown = place
        .run("signal send PAID --correlation 7 --id payment-1 --as author")
        .stderr;
    assert!(unknown.contains("take no signals"), "{unknown}");
    let nobody = place
        .run("signal show 01a20416-5f62-7350-986a-13b0f0477285 --as author")
        .stderr;
    assert!(nobody.contains("signal of yours"), "{nobody}");

    let history = place.data(&format!("instance history {id}"));
    assert_eq!(history["data"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        place.data(&format!("instance show {id}"))["status"],
        "COMPLETED"
    );
    assert_eq!(
        place.data("instance list --status COMPLETED")["data"][0]["id"],
        *id
    );
    assert_eq!(dev.stop(), Some(0));
    assert_eq!(
        place.run("instance list").code,
        7,
        "a stopped server is not found any more"
    );
}

#[test]
fn work_is_delegated_suspended_reassigned_and_reset_by_commands() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let (id, task) = start(&place, "document/1");
    place.data(&format!("task claim {task} --as reviewer"));
    let owner = |line: String| text(&place.data(&line), "/task/owner");
    let delegate = format!("task delegate {task} --to approver --reason away --as reviewer");
    assert_eq!(owner(delegate), "approver");
    assert_eq!(
        owner(format!("task resolve {task} --as approver")),
        "reviewer"
    );
    let suspend = format!("task suspend {task} --reason question --as reviewer");
    let suspended = place.data(&suspend);
    assert_eq!(text(&suspended, "/task/suspended/by"), "reviewer");
    let decide = place.run(&format!("task decide {task} APPROVE --as reviewer"));
    assert!(
        decide.stderr.contains("[task_suspended]"),
        "{}",
        decide.stderr
    );
    let listed =
        |filter: &str| place.data(&format!("task list {filter} --as reviewer"))["data"].clone();
    assert_eq!(listed("--suspended")[0]["id"], *task);
    assert_eq!(listed("--suspended false"), serde_json::json!([]));
    let resume = format!("task resume {task} --as reviewer");
    assert_eq!(owner(resume), "reviewer");
    let reassign = format!("task reassign {task} --to reviewer2 --reason late --as admin");
    assert_eq!(owner(reassign), "reviewer2");
    let reset = place.data(&format!("task reset {task} --reason ill --as admin"));
    assert_eq!(reset["task"]["status"], "PENDING");

    let status = |line: String| text(&place.data(&line), "/instance/status");
    let suspend = format!("instance suspend {id} --reason audit --as admin");
    assert_eq!(status(suspend), "SUSPENDED");
    let claim = place.run(&format!("task claim {task} --as reviewer"));
    assert_eq!(claim.code, 5, "{}", claim.stderr);
    assert!(claim.stderr.contains("[instance_suspended]"));
    assert_eq!(
        status(format!("instance resume {id} --as admin")),
        "RUNNING"
    );
    let cancel = format!("instance cancel {id} --reason late --as admin");
    assert_eq!(status(cancel), "CANCELLED");
    let restart = format!(r#"instance restart {id} --data {{"title":"Again"}} --as author"#);
    let restarted = place.data(&restart);
    assert_eq!(
        (
            &restarted["instance"]["predecessorId"],
            &restarted["instance"]["data"]["title"]
        ),
        (&Value::String(id.clone()), &Value::String("Again".into()))
    );
    let entity = text(&restarted, "/instance/entityId");
    let history = place.run(&format!("entity history document/{entity} --as admin"));
    assert_eq!(
        history.stdout.matches(&id).count(),
        2,
        "as an instance and as what the other one restarts: {}",
        history.stdout
    );
}

/// The host returns the short response to them, and refuses the state before.
#[test]
fn a_caller_without_the_permission_to_read_tries_commands() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let (id, task) = start(&place, "document/1");
    let tried = || {
        let claim = format!("task claim {task} --dry-run --as reviewer");
        let cancel = format!("instance cancel {id} --reason late --dry-run --as author");
        [claim, cancel].map(|line| {
            let tried = place.run(&format!("{line} --output table"));
            assert_eq!(tried.code, 0, "{line}: {}", tried.stderr);
            let sides = ["BEFORE", "AFTER"].map(|side| tried.stdout.contains(side));
            (sides, tried.stdout.contains("dry run"))
        })
    };
    let permit = |further: &str| {
        let some = "task:act task:read instance:cancel";
        place.data(&format!("role set user {some} {further} --as admin"));
    };
    permit("instance:read");
    assert_eq!(tried(), [([true, true], true); 2]);
    permit("");
    let shown = place.run(&format!("task show {task} --as reviewer"));
    assert_eq!(shown.code, 3, "{}", shown.stderr);
    assert_eq!(tried(), [([false, true], true); 2]);
}

#[test]
fn each_refusal_has_its_exit_code_and_suggests_a_next_step() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let (id, task) = start(&place, "document/1");
    let unknown = "00000000-0000-7000-8000-000000000000";
    let claimed = place.data(&format!("task claim {task} --as reviewer"));
    assert_eq!(claimed["task"]["owner"], "reviewer");
    let cases = [
        (
            3,
            "permission_missing",
            "instance cancel ID --reason late --as author".replace("ID", &id),
        ),
        (
            3,
            "forbidden",
            format!("task decide {task} APPROVE --as approver"),
        ),
        (
            3,
            "token_malformed",
            "task list --token nonsense".to_owned(),
        ),
        (4, "not_found", format!("task show {unknown}")),
        (5, "task_taken", format!("task claim {task} --as reviewer2")),
        (5, "already_running", start_line("document/1")),
        (
            5,
            "stale_revision",
            format!("task decide {task} APPROVE --if-match 1 --as reviewer"),
        ),
        (
            6,
            "invalid_input",
            format!("task decide {task} REJECT --as reviewer"),
        ),
    ];
    for (code, problem, line) in cases {
        let ran = place.run(&line);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (code, ""),
            "{line}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains(&format!("[{problem}]")),
            "{line}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains("\nnext: "), "{line}: {}", ran.stderr);
    }
    let rejected = place.run(&format!(
        "task decide {task} REJECT --as reviewer --output json"
    ));
    let problem: Value =
        serde_json::from_str(&rejected.stderr).expect("the problem as the server sent it");
    assert_eq!(text(&problem, "/errors/0/pointer"), "/comment");
    assert_eq!(place.run("instance start x --entity y/1 --data {").code, 6);
}

#[test]
fn a_quiet_host_logs_nothing_without_problems() {
    let place = TestFolder::new();
    for (line, is_quiet) in [
        ("dev --empty --ephemeral --port 0 -q", true),
        ("dev --empty --ephemeral --port 0 -q --log info", false),
    ] {
        assert_eq!(place.start(line).stop(), Some(0), "{line}");
        let log = fs::read_to_string(place.folder.join("host.log")).expect("its log");
        assert_eq!(log.is_empty(), is_quiet, "{line}: {log}");
    }
}

#[test]
fn events_are_read_in_order_and_from_a_cursor() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let types = |stdout: &str| -> Vec<String> {
        let events = stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("an event a line"));
        events.map(|event: Value| text(&event, "/type")).collect()
    };
    start(&place, "document/1");
    let first = place.run("events tail --output json");
    let begun = [
        "dev.wrkflw.flow.started",
        "dev.wrkflw.state.entered",
        "dev.wrkflw.task.created",
    ];
    assert_eq!(types(&first.stdout), begun);
    let cursor = first
        .stderr
        .trim()
        .rsplit(' ')
        .next()
        .expect("the hint has the cursor")
        .to_owned();
    assert_eq!(
        place.run(&format!("events tail --after {cursor}")).stdout,
        ""
    );

    let (second, _) = start(&place, "document/2");
    events_are_filtered(&place, &second, &types);
    let followed = place.run(&format!(
        "events tail --follow --limit 3 --after {cursor} --output json --quiet"
    ));
    assert_eq!((followed.code, followed.stderr.as_str()), (0, ""));
    assert_eq!(types(&followed.stdout), begun);
    assert!(
        followed.stdout.lines().all(|line| line.contains(&second)),
        "{}",
        followed.stdout
    );
}

/// With two instances, of which `second` is about `document/2`.
fn events_are_filtered(place: &TestFolder, second: &str, types: &dyn Fn(&str) -> Vec<String>) {
    let started = "dev.wrkflw.flow.started";
    let of_second = [
        started,
        "dev.wrkflw.state.entered",
        "dev.wrkflw.task.created",
    ];
    let both = [started, started];
    for (filter, expected) in [
        ("--type flow.*", both.as_slice()),
        ("--type flow.started --entity document/2", &both[..1]),
        ("--entity document --type flow.started", &both),
        ("--entity document/2", of_second.as_slice()),
        ("--definition nothing", &[]),
        ("--definition document-approval --type flow.started", &both),
        ("--actor reviewer", &[]),
        ("--actor author --type flow.started", &both),
        (&format!("--instance {second}"), &of_second),
        ("--instance document/2", &of_second),
        (
            "--follow --after earliest --entity document/2 --limit 3",
            &of_second,
        ),
    ] {
        let ran = place.run(&format!("events tail {filter} --output json"));
        assert_eq!(ran.code, 0, "{filter}: {}", ran.stderr);
        assert_eq!(types(&ran.stdout), expected, "{filter}");
    }
    let unknown = place.run("events tail --type nothing.at.all");
    assert_eq!(unknown.code, 6, "{}", unknown.stderr);
    let short = place.run("events tail --instance abc");
    assert_eq!(short.code, 2, "{}", short.stderr);
    assert!(short.stderr.contains("TYPE/ID"), "{}", short.stderr);
}

#[test]
fn data_and_secrets_are_kept_and_a_production_host_can_share_the_database() {
    let place = TestFolder::new();
    let mut dev = place.start("dev --empty --port 0");
    let (id, _) = start(&place, "document/1");
    let token = text(&place.data("token reviewer"), "/token");
    assert_eq!(dev.stop(), Some(0));

    let mut dev = place.start("dev --empty --port 0");
    assert_eq!(
        place.data(&format!("instance show {id} --token {token}"))["status"],
        "RUNNING"
    );
    let versions = place.data("definition list document-approval");
    assert_eq!(
        versions["data"].as_array().map(Vec::len),
        Some(1),
        "the same component is the same version"
    );

    let home = place.folder.join(".wrkflw");
    let database = format!(
        "postgres://postgres@localhost/postgres?host={}/postgres/socket",
        home.display()
    );
    let seal = fs::read_to_string(home.join("seal.secret")).expect("dev made it");
    let settings = format!(
        "database_url = {database:?}\njwt_secret_file = {:?}\nseal_keys = [{:?}]\nroles = [\"api\"]\n",
        home.join("jwt.secret"),
        key_of_dev(&seal)
    );
    fs::write(place.folder.join("wrkflw.toml"), settings).expect("our own folder");
    assert_eq!(place.data("migrate")["migrated"], true);
    let mut serve = place.start("serve --listen 127.0.0.1:0");
    let show = format!(
        "instance show {id} --server http://{}",
        text(&serve.facts, "/listen")
    );
    assert_eq!(place.data(&format!("{show} --token {token}"))["id"], *id);
    assert_eq!(
        place.run(&show).code,
        3,
        "no token is made for another server"
    );
    assert_eq!(serve.stop(), Some(0));
    assert_eq!(dev.stop(), Some(0));
}
