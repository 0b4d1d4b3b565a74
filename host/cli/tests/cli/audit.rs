//! `wrkflw audit verify` from an auditor's side: its output and its exit code.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::program::{self, TestFolder};

/// Runs a statement without triggers, as the owner of the machine could.
fn behind(url: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut connection = PgConnection::connect(url)
            .await
            .expect("the database of dev");
        let sql = format!("set session_replication_role = replica; {sql}");
        connection
            .execute(AssertSqlSafe(sql))
            .await
            .expect("a change");
    });
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"));
    lines.collect()
}

/// The id of an instance with one decision.
fn decided(place: &TestFolder) -> String {
    let start = "instance start document-approval --entity document/1 --data {\"title\":\"Budget\"} --as author";
    let instance = &place.data(start)["instance"];
    let id = instance["id"].as_str().expect("an id").to_owned();
    let task = instance["states"][0]["tasks"][0]["id"]
        .as_str()
        .expect("a task");
    place.data(&format!("task claim {task} --as reviewer"));
    place.data(&format!("task decide {task} APPROVE --as reviewer"));
    id
}

#[test]
fn a_change_is_named_and_the_verification_fails() {
    let place = TestFolder::new();
    let mut dev = place.start("dev --empty --port 0");
    let home = place.folder.join(".wrkflw");
    let url = format!(
        "postgres://postgres@localhost/postgres?host={}/postgres/socket",
        home.display()
    );
    let id = decided(&place);
    let seal = std::fs::read_to_string(home.join("seal.secret")).expect("dev made it");
    let key = program::key_of_dev(&seal);
    let keys = format!("--database-url {url} --seal-keys {key}");
    let verify = |what: &str| place.run(&format!("audit verify {what} {keys}"));
    let ran = verify("--all");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let closing = "1 decision, 1 of them with a valid seal; findings: 0\n";
    assert!(
        ran.stdout.ends_with(closing) && ran.stdout.contains("run again, 0 of them"),
        "{}",
        ran.stdout
    );

    exported(&place, &url);
    a_part_is_told(&place, &url);

    behind(&url, "update decision set actor = 'approver'");
    for what in [
        "--all",
        "--tenant default",
        "--entity document/1",
        &format!("--instance {id}"),
    ] {
        let ran = verify(what);
        assert_eq!(ran.code, 1, "{what}: {}", ran.stderr);
        let named = "actor is \"approver\", and the entry says \"reviewer\"";
        assert!(
            ran.stdout.contains(named) && ran.stdout.contains(&id),
            "{what}: {}",
            ran.stdout
        );
        assert!(
            ran.stderr.contains("there are 2 findings"),
            "{what}: {}",
            ran.stderr
        );
    }
    let ran = verify("--all --json");
    let rows = lines(&ran.stdout);
    assert_eq!((ran.code, rows.len()), (1, 3), "{}", ran.stdout);
    assert_eq!(
        (&rows[0]["code"], &rows[1]["code"]),
        (&"decision".into(), &"seal".into())
    );
    assert_eq!(rows[0]["id"], *id);
    assert_eq!(
        (&rows[2]["verified"]["findings"], &rows[2]["sealsVerified"]),
        (&2.into(), &true.into())
    );

    with_other_keys(&place, &url, seal.trim());
    for what in [
        "--entity document/2",
        "--tenant nobody",
        "--entity document",
    ] {
        let ran = verify(what);
        assert_eq!(ran.code, 2, "{what}: {}", ran.stdout);
    }
    assert_eq!(dev.stop(), Some(0));
    let ran = verify("--all");
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("check database_url"), "{}", ran.stderr);
}

/// An export is verified in another folder, with only the file and public keys.
fn exported(place: &TestFolder, url: &str) {
    let secret = place.folder.join(".wrkflw/checkpoint.secret");
    let secret = std::fs::read_to_string(secret).expect("dev made it");
    let export =
        format!("audit export --all --out audit.jsonl --with-components --database-url {url}");
    let ran = place.run(&export);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let exported = std::fs::metadata(place.folder.join("audit.jsonl")).expect("the export");
    assert_eq!(exported.permissions().mode() & 0o777, 0o600);
    let key = program::key_of_dev(&secret);
    let ran = place.run(&format!("audit keys --checkpoint-keys {key}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let public = ran.stdout.trim().to_owned();
    let (name, _) = key.split_once(':').expect("a name");
    assert!(public.starts_with(&format!("{name}:public:")) && !public.contains(secret.trim()));
    let elsewhere = TestFolder::new();
    let file = place.folder.join("audit.jsonl");
    let none = elsewhere.run("audit keys");
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("there are no keys"), "{}", none.stderr);
    let verify = format!(
        "audit verify --file {} --checkpoint-keys {public}",
        file.display()
    );
    let ran = elsewhere.run(&verify);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for words in [
        "evaluations run again",
        "their seals not verified; findings: 0",
    ] {
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
    // The command ignores a database in the environment.
    let mut command = elsewhere.command(&verify);
    command.env("WRKFLW_DATABASE_URL", "postgres://127.0.0.1:1/none");
    let ran = program::ran(command);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let text = std::fs::read_to_string(&file).expect("the export");
    let other = text.replace("\"reviewer\"", "\"approver\"");
    assert_ne!(text, other);
    std::fs::write(&file, other).expect("a change");
    assert_eq!(elsewhere.run(&verify).code, 1, "somebody changed it");
    let half = &text[..text.len() / 2];
    std::fs::write(&file, half).expect("a change");
    let ran = elsewhere.run(&verify);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    nothing_is_exported(place, url);
}

/// A part of a tenant without findings is not reported as the whole tenant.
fn a_part_is_told(place: &TestFolder, url: &str) {
    let export = format!("audit export --entity document/1 --out part.jsonl --database-url {url}");
    let ran = place.run(&export);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let verify = "audit verify --file part.jsonl --without-seals --no-replay";
    let ran = place.run(verify);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let words = "1 tenant is in the file only in part: other instances are not shown";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    let ran = place.run(&format!("{verify} --tenant default"));
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let words = "the file has only a part of tenant default";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

/// A failed export leaves an older file unchanged, and no other file.
fn nothing_is_exported(place: &TestFolder, url: &str) {
    let file = place.folder.join("old.jsonl");
    std::fs::write(&file, "old").expect("our own folder");
    for what in [
        "--tenant nobody",
        "--entity document/2",
        "--instance 00000000000070008000000000000001",
    ] {
        let export = format!("audit export {what} --out old.jsonl --database-url {url}");
        let ran = place.run(&export);
        assert_eq!(ran.code, 4, "{what}: {}", ran.stderr);
        let words = "or it has no entries";
        assert!(ran.stderr.contains(words), "{what}: {}", ran.stderr);
        let kept = std::fs::read_to_string(&file).expect("the old file");
        assert_eq!(kept, "old", "{what}");
        let mut beside = std::fs::read_dir(&place.folder).expect("our own folder");
        let left = beside.find_map(|one| {
            let name = one.expect("an entry").file_name();
            let is_part = name.to_string_lossy().ends_with(".part");
            is_part.then_some(name)
        });
        assert_eq!(left, None, "{what}");
    }
    let mut command = place.command(&format!(
        "audit export --all --out /dev/stdout --database-url {url}"
    ));
    let piped = command.output().expect("the program starts").stdout;
    assert!(String::from_utf8_lossy(&piped).contains("{\"end\":{"));
}

#[test]
fn an_export_without_entries_is_not_verified() {
    let place = TestFolder::new();
    let file = place.folder.join("audit.jsonl");
    let header = r#"{"header":{"format":"wrkflw audit export","version":1,"exportedAt":"2030-01-01T00:00:00Z"}}"#;
    let text = format!("{header}\n{{\"end\":{{\"lines\":1}}}}\n");
    std::fs::write(&file, text).expect("our own folder");
    let ran = place.run("audit verify --file audit.jsonl");
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    let words = "the file has no entries";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);

    // A kept checkpoint shows that the file lacks the tenant.
    let kept = r#"{"tenant":"acme","number":4,"size":23,"root":"00","previousRoot":"00","signedAt":"2030-01-01T00:00:00Z","keyId":"k1","signature":"00"}"#;
    std::fs::write(place.folder.join("kept.json"), kept).expect("our own folder");
    let verify = "audit verify --file audit.jsonl --checkpoint kept.json";
    for (line, code) in [
        (verify.to_owned(), 1),
        (format!("{verify} --tenant acme"), 1),
        (format!("{verify} --tenant beta"), 2),
    ] {
        let ran = place.run(&line);
        assert_eq!(ran.code, code, "{line}: {}{}", ran.stdout, ran.stderr);
        let rewound = ran.stdout.contains("rewound");
        assert_eq!(rewound, code == 1, "{line}: {}", ran.stdout);
    }
}

/// The keys of a verifier affect only the findings about seals.
fn with_other_keys(place: &TestFolder, url: &str, seal: &str) {
    let other = format!("audit verify --all --database-url {url} --seal-keys k2:{seal}");
    let ran = place.run(&other);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("no key named dev-"), "{}", ran.stdout);
    let without = format!("audit verify --all --database-url {url} --without-seals");
    let ran = place.run(&without);
    assert_eq!(
        ran.code, 1,
        "the row still differs from the entry: {}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("their seals not verified; findings: 1"),
        "{}",
        ran.stdout
    );
}

#[test]
fn missing_settings_of_verify_are_named() {
    let place = TestFolder::new();
    let url = "--database-url postgres://127.0.0.1:1/none";
    for (line, words) in [
        ("audit verify --all", "seal_keys is not set"),
        (
            "audit verify --all --without-seals",
            "database_url is not set",
        ),
        ("audit verify", "--instance"),
        ("audit verify --entity document/", "TYPE/ID"),
        ("audit export --entity /1 --out audit.jsonl", "TYPE/ID"),
        ("audit verify --all --tenant default", "cannot be used with"),
        (
            "audit verify --entity document/1 --checkpoint kept.json",
            "a checkpoint covers a whole tenant",
        ),
        (
            "audit verify --instance 00000000000070008000000000000001 --tenant default --checkpoint kept.json",
            "a checkpoint covers a whole tenant",
        ),
        (
            "audit verify --all --without-seals --seal-keys k1:00",
            "cannot be used with",
        ),
    ] {
        let ran = place.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{line}: {}", ran.stderr);
    }
    let ran = place.run(&format!("audit verify --all --without-seals {url}"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}
