//! A full disk of PostgreSQL. If this account may mount file systems, a table space on a small one in memory. Otherwise a limit
//! of the sessions' file size, which the kernel enforces in the same place and way: the write that would extend the table's file
//! is cut short.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::Folder;
use super::*;

const SIZE: &str = "size=6m";
/// Limit of the instances that fit beside the ballast.
const STARTS_MAX: usize = 500;
/// Half a page beyond the last whole one, so that the next write is cut short, as on a full disk.
const HALF_A_PAGE: i64 = 4096;
/// Rows of the ballast in one statement.
const BALLAST: &str =
    "insert into ballast select n, repeat('x', 1000) from generate_series(1, 500) n";

/// A mounted file system, unmounted when this is dropped.
struct Small(PathBuf);

impl Small {
    /// None if this account may not mount file systems.
    fn mount(folder: &Path) -> Option<Small> {
        fs::create_dir(folder).expect("our own folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(folder);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Small(folder.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

/// Limits the file size of every session of this database, of the host and of the test.
async fn limit_files(app: &TestApp, limit: &str) {
    let sessions: Vec<i32> =
        sqlx::query_scalar("select pid from pg_stat_activity where datname = current_database()")
            .fetch_all(app.database.admin_pool())
            .await
            .expect("sessions");
    for pid in sessions {
        // A session may have ended meanwhile.
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Ok(owner) = fs::metadata(&process) else {
            continue;
        };
        let mut command = Command::new("prlimit");
        command.args(["--pid", &pid.to_string(), &format!("--fsize={limit}:")]);
        // On some systems not even root may limit the files of another account's process.
        command.uid(owner.uid()).gid(owner.gid());
        let output = command.output().expect("prlimit, of util-linux, runs");
        let is_gone = !process.exists();
        assert!(
            output.status.success() || is_gone,
            "this account may neither mount a file system nor limit PostgreSQL's files: run it as the owner of the \
             server's processes, or as root: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Starts instances until one is refused. Calls `squeeze` before each.
async fn until_refused(app: &TestApp, squeeze: impl AsyncFn()) {
    let host = app.host();
    for number in 0..STARTS_MAX {
        squeeze().await;
        let before = traces(app).await;
        let body = Some(start_of(&format!("doc-{number}")));
        let answer = host
            .send("author", "POST", "/v1/instances", &[], body)
            .await;
        if answer.status == 201 {
            continue;
        }
        assert_eq!(traces(app).await, before, "nothing half-written");
        unavailable(answer, "unavailable", "is full, or fails");
        assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 503);
        assert_eq!(host.send("", "GET", "/livez", &[], None).await.status, 200);
        app.get("author", "/v1/instances").await.expect(200);
        // A request that succeeds without a write does not prove that there is space again.
        let dry = ("/v1/instances?dryRun=true", start_of("dry"));
        for (path, body) in [("/v1/names", json!({})), dry] {
            app.post("author", path, body).await.expect(200);
        }
        assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 503);
        return;
    }
    panic!("{STARTS_MAX} instances fit: the disk was never full");
}

async fn goes_on(app: &TestApp) {
    app.started("afterwards").await;
    let ready = app.host().send("", "GET", "/readyz", &[], None).await;
    assert_eq!(ready.status, 200);
}

#[tokio::test]
async fn a_file_system_without_room_stops_writes_and_nothing_else() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    match Small::mount(&folder.0.join("small")) {
        Some(small) => on_a_small_disk(&app, &small).await,
        None => with_files_that_cannot_grow(&app).await,
    }
}

/// Also run where a file system can be mounted, so that both ways are tested.
#[tokio::test]
async fn a_file_that_cannot_grow_stops_writes_and_nothing_else() {
    let app = TestApp::start().await;
    with_files_that_cannot_grow(&app).await;
}

async fn on_a_small_disk(app: &TestApp, small: &Small) {
    let data: String = sqlx::query_scalar("show data_directory")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("the superuser may know");
    let server = fs::metadata(data).expect("a server of this machine").uid();
    chown(&small.0, Some(server), None).expect("root may");
    let space = format!("space_{}", app.database.name());
    let prepare = format!(
        "create tablespace {space} location '{}';
         alter table audit_entry set tablespace {space};
         create table ballast (n int, text text) tablespace {space}",
        small.0.display()
    );
    for statement in prepare.split(';') {
        sql(app, statement).await;
    }
    while sqlx::raw_sql(BALLAST)
        .execute(app.database.admin_pool())
        .await
        .is_ok()
    {}
    until_refused(app, async || {}).await;
    sql(app, "drop table ballast").await;
    goes_on(app).await;
    sql(app, "alter table audit_entry set tablespace pg_default").await;
    sql(app, &format!("drop tablespace {space}")).await;
}

async fn with_files_that_cannot_grow(app: &TestApp) {
    // The files of the write-ahead log have this size from the beginning, so none of them may exceed the limit.
    let size = async |of: &str| -> i64 {
        let found = sqlx::query_scalar(AssertSqlSafe(format!("select {of}")));
        let found = found.fetch_one(app.database.admin_pool()).await;
        found.expect("a size")
    };
    let log = size("pg_size_bytes(current_setting('wal_segment_size'))").await;
    let fill = format!(
        "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload,
             salt, occurred_at, hash)
         select 1, 'operation', gen_random_uuid(), n, gen_random_uuid(), 'BALLAST', 1, gen_random_uuid(), 'nobody',
             repeat('x', 1400), '', now(), ''
         from generate_series(1, {log} / 8192 * 6) n"
    );
    sql(app, &fill).await;
    let table = size("pg_relation_size('audit_entry')").await;
    assert!(
        table > log,
        "{table} bytes of ballast: the log would be hit as well"
    );
    let limit = (table + HALF_A_PAGE).to_string();
    until_refused(app, async || limit_files(app, &limit).await).await;
    limit_files(app, "unlimited").await;
    goes_on(app).await;
}
