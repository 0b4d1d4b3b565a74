//! `wrkflw doctor`: each check with a finding, and the suggested remedy.

use std::net::TcpListener;

use serde_json::Value;
use sqlx::Connection as _;

use crate::program::{TestFolder, ran};

const CHECKS: [&str; 8] = [
    "dev",
    "database",
    "migrations",
    "clock",
    "seal keys",
    "checkpoint keys",
    "kafka",
    "wasm target",
];
/// A database URL without a server.
const NOWHERE: &str = "postgres://127.0.0.1:1/nothing";
/// 32 bytes as hex digits.
const KEY: &str = "0001020304050607080910111213141516171819202122232425262728293031";

/// Runs `wrkflw doctor` with these options and variables. Returns the exit code and the findings.
fn doctor(place: &TestFolder, options: &str, variables: &[(&str, &str)]) -> (i32, Vec<Value>) {
    let mut command = place.command(&format!("doctor --json {options}"));
    command.envs(variables.iter().copied());
    let ran = ran(command);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let findings = report["data"].as_array().expect("findings").clone();
    for finding in &findings {
        let is_ok = finding["verdict"] == "ok";
        let next = finding["next"].as_str().unwrap_or_default();
        assert_eq!(is_ok, next.is_empty(), "{finding}");
    }
    let fails = findings.iter().any(|one| one["verdict"] == "fail");
    assert_eq!(ran.code, i32::from(fails), "{report}");
    (ran.code, findings)
}

/// A check, its verdict, and words of its finding and of its remedy.
type Expected<'a> = (&'a str, &'a str, &'a str, &'a str);

fn expect(findings: &[Value], expected: &[Expected<'_>]) {
    for one in expected {
        expect_one(findings, *one);
    }
}

fn expect_one(findings: &[Value], (check, verdict, detail, next): Expected<'_>) {
    let found = findings.iter().find(|one| one["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no check {check}: {findings:?}"));
    let has = |member: &str, words: &str| {
        found[member]
            .as_str()
            .is_some_and(|all| all.contains(words))
    };
    let fits = found["verdict"] == verdict
        && has("detail", detail)
        && (next.is_empty() || has("next", next));
    assert!(fits, "{check}: {verdict}, {detail}, {next}: {found}");
}

#[test]
fn missing_requirements_of_a_host_are_reported() {
    let place = TestFolder::new();
    let of_host = [("WRKFLW_DATABASE_URL", NOWHERE)];
    let (_, found) = doctor(
        &place,
        "--seal-keys k1:00 --checkpoint-keys c1:00 --kafka-brokers 127.0.0.1:1 --kafka-properties socket.timeout.ms=1000",
        &of_host,
    );
    let failed: Vec<_> = found
        .iter()
        .filter(|one| one["verdict"] == "fail")
        .filter_map(|one| one["check"].as_str())
        .collect();
    let expected = [
        "database",
        "seal keys",
        "checkpoint keys",
        "tokens",
        "kafka",
    ];
    assert_eq!(failed, expected);
    expect(
        &found,
        &[
            ("database", "fail", "", "that PostgreSQL runs"),
            ("seal keys", "fail", "", "openssl rand -hex 32"),
            ("checkpoint keys", "fail", "", "openssl rand -hex 32"),
            ("tokens", "fail", "neither", "set jwks_url"),
            ("kafka", "fail", "", "that a broker runs"),
        ],
    );

    let (_, found) = doctor(
        &place,
        &format!("--seal-keys k1:{KEY} --jwt-secret {KEY}{KEY} --jwks-url https://keys.example/"),
        &of_host,
    );
    expect(
        &found,
        &[
            ("seal keys", "ok", "1 key", ""),
            ("tokens", "fail", "both", "keep one of them"),
            ("checkpoint keys", "warn", "none is set", "openssl rand"),
            (
                "kafka",
                "fail",
                "kafka_brokers is not set",
                "leave `relay` out",
            ),
        ],
    );
}

#[test]
fn what_serve_refuses_fails() {
    let place = TestFolder::new();
    let of_host = [("WRKFLW_DATABASE_URL", NOWHERE)];
    let serve = "mend this setting";
    let (_, found) = doctor(
        &place,
        "--roles api --jwt-secret short --oidc-client-id console --services scorer --artifact-dir artifacts --log wrkflw=loud",
        &of_host,
    );
    expect(
        &found,
        &[
            ("seal keys", "fail", "seal_keys is not set", "openssl rand"),
            ("tokens", "fail", "32", serve),
            ("sign-in", "fail", "jwt_issuer is not set", serve),
            ("services", "fail", "name=url", serve),
            ("sandbox", "fail", "needs artifact_key", serve),
            ("log", "fail", "the log filter", serve),
        ],
    );
    let relay = "--roles relay --kafka-brokers 127.0.0.1:1 --kafka-properties no.such.property=1";
    let (_, found) = doctor(&place, relay, &of_host);
    expect(
        &found,
        &[
            ("seal keys", "ok", "seal nothing", ""),
            ("kafka", "fail", "no.such.property", ""),
        ],
    );
    let keys = "--roles api --jwks-url https://keys.example/ --jwt-issuer https://keys.example";
    let (_, found) = doctor(&place, keys, &of_host);
    expect(&found, &[("tokens", "fail", "set jwt_audience", serve)]);
    let webhooks = "--roles notifier --webhook-ca-file /no/such.pem";
    let (_, found) = doctor(&place, webhooks, &of_host);
    expect(&found, &[("webhooks", "fail", "webhook_ca_file", serve)]);
}

#[test]
fn without_settings_and_servers_nothing_fails() {
    let place = TestFolder::new();
    let (code, found) = doctor(&place, "", &[]);
    assert_eq!(code, 0, "{found:?}");
    expect(
        &found,
        &[
            (
                "dev",
                "warn",
                "no `wrkflw dev` runs on this machine",
                "run `wrkflw dev`",
            ),
            (
                "database",
                "warn",
                "no database is set",
                "WRKFLW_DATABASE_URL",
            ),
            ("seal keys", "warn", "a host does not start", "openssl rand"),
        ],
    );
    let table = place.run("doctor");
    assert_eq!(table.code, 0, "{}{}", table.stdout, table.stderr);
    assert!(
        table
            .stdout
            .contains("no `wrkflw dev` runs on this machine"),
        "{}",
        table.stdout
    );
    // A folder without programs, so no toolchain is found.
    let (_, found) = doctor(&place, "", &[("PATH", "/nonexistent")]);
    let target = "rustup target add wasm32-unknown-unknown";
    expect(
        &found,
        &[("wasm target", "warn", "no Rust toolchain", target)],
    );
}

/// Databases beside that of a `wrkflw dev`: one without migrations, one without the newest migration, and one with another clock,
/// whose functions hide those of the system. And a login that lacks roles.
async fn databases(url: &str) {
    let mut connection = sqlx::PgConnection::connect(&format!("{url}&dbname=postgres"))
        .await
        .expect("it runs");
    for name in ["behind", "late"] {
        let create = format!("create database {name} template template0");
        sqlx::raw_sql(sqlx::AssertSqlSafe(create))
            .execute(&mut connection)
            .await
            .expect("a database");
    }
    sqlx::raw_sql("create role lacking login in role wrkflw_writer")
        .execute(&mut connection)
        .await
        .expect("a login");
    let behind = "create table _sqlx_migrations (version int8, checksum bytea, success bool);
        insert into _sqlx_migrations values (1, '', true)";
    let late = "create function public.clock_timestamp() returns timestamptz language sql
            return pg_catalog.clock_timestamp() - interval '1 hour';
        alter database late set search_path = public, pg_catalog";
    for (name, change) in [("behind", behind), ("late", late)] {
        let mut connection = sqlx::PgConnection::connect(&format!("{url}&dbname={name}"))
            .await
            .expect("it runs");
        sqlx::raw_sql(change)
            .execute(&mut connection)
            .await
            .expect("a change");
    }
}

#[test]
fn an_outdated_database_and_a_different_clock_are_reported() {
    let place = TestFolder::new();
    let dev = place.start("dev --empty --port 0");
    let (code, found) = doctor(&place, "", &[]);
    assert_eq!(code, 0, "{found:?}");
    let checks: Vec<_> = found
        .iter()
        .filter_map(|one| one["check"].as_str())
        .collect();
    let expected: Vec<_> = CHECKS.into_iter().filter(|one| *one != "kafka").collect();
    assert_eq!(checks, expected, "beside `wrkflw dev`");
    for check in [
        "dev",
        "database",
        "migrations",
        "clock",
        "seal keys",
        "checkpoint keys",
    ] {
        expect(&found, &[(check, "ok", "", "")]);
    }

    let socket = place.folder.join(".wrkflw/postgres/socket");
    let url = format!("postgres://postgres@localhost/?host={}", socket.display());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(databases(&url));
    let named = |database: &str| {
        format!(
            "postgres://postgres@localhost/{database}?host={}",
            socket.display()
        )
    };
    let next = "run `wrkflw migrate`";
    let missing = ("migrations", "fail", "some are missing", next);
    let (_, found) = doctor(&place, "", &[("WRKFLW_DATABASE_URL", &named("behind"))]);
    expect(&found, &[("database", "ok", "PostgreSQL", ""), missing]);
    let (_, found) = doctor(&place, "", &[("WRKFLW_DATABASE_URL", &named("late"))]);
    expect(
        &found,
        &[("clock", "warn", "ms from the database's", "NTP"), missing],
    );

    let lacking = named("postgres").replace("//postgres@", "//lacking@");
    let (_, found) = doctor(&place, "", &[("WRKFLW_DATABASE_URL", &lacking)]);
    let next = "grant wrkflw_writer and wrkflw_viewer";
    expect(
        &found,
        &[("roles", "fail", "grant wrkflw_viewer to \"lacking\"", next)],
    );

    // The port of a killed server belongs to another process, or to none.
    drop(dev);
    let (_, found) = doctor(&place, "", &[]);
    expect(
        &found,
        &[(
            "dev",
            "warn",
            "no `wrkflw dev` runs on this machine",
            "run `wrkflw dev`",
        )],
    );
}

#[test]
fn a_server_does_not_answer() {
    let place = TestFolder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    // The note of a server whose process lives (it is this process, because the note is locked), and whose port is closed.
    let note = serde_json::json!({
        "name": "silent", "url": format!("http://{address}"), "folder": place.folder, "home": place.folder,
        "pid": std::process::id(), "startedAt": 0,
    });
    let notes = place.folder.join("state/wrkflw/dev");
    std::fs::create_dir_all(&notes).expect("our own folder");
    let path = notes.join("silent.json");
    std::fs::write(&path, note.to_string()).expect("our own folder");
    let locked = std::fs::File::open(&path).expect("our own file");
    locked.lock().expect("nobody else locks it");
    let (_, found) = doctor(&place, "", &[("WRKFLW_DATABASE_URL", NOWHERE)]);
    expect(
        &found,
        &[("dev", "fail", "does not answer", "start `wrkflw dev` again")],
    );
    drop(locked);
    let (_, found) = doctor(&place, "", &[("WRKFLW_DATABASE_URL", NOWHERE)]);
    let next = "run `wrkflw dev`";
    expect(
        &found,
        &[("dev", "warn", "no `wrkflw dev` runs on this machine", next)],
    );
}
