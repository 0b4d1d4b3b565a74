//! Real servers, started and stopped, under the account that runs the tests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::folders::{DATA, FRESH};
use super::leftover::process;
use super::settings::quoted;
use super::{
    Account, Managed, Programs, ServerFolders, end, percent_encoded, programs, start,
    start_ephemeral, start_in,
};

/// A folder that is removed after its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("wrkflw-managed-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn query(server: &Managed, sql: &str) -> String {
    let output = Command::new("psql")
        .args([&server.url(), "-XAtqc", sql])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn postmaster_pid(server: &Managed) -> String {
    let text = fs::read_to_string(server.place.data().join("postmaster.pid")).unwrap();
    text.lines().next().unwrap().to_owned()
}

/// The state after the process that started the server is killed: the server runs, and nothing is locked.
fn abandon(mut server: Managed) {
    server.running = false;
}

/// The time between two looks at what a test waits for, and longer than it takes on a busy machine.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_secs(30);

/// Waits until it is so.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !so().await {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let waited = tokio::time::timeout(LOOK_MAX, waiting).await;
    assert!(waited.is_ok(), "it never came true: {what}");
}

#[tokio::test]
async fn keeps_its_data_and_leaves_no_server_behind() {
    let folder = Folder::new();
    let server = start(&folder.0.join("postgres")).await.unwrap();
    query(&server, "create table kept as select 42 as answer");
    let socket = server.place.socket();
    assert!(socket.exists());
    server.stop().await.unwrap();
    assert!(!socket.exists());

    let server = start(&folder.0.join("postgres")).await.unwrap();
    assert_eq!(query(&server, "select answer from kept"), "42");
    drop(server);
    assert!(!socket.exists(), "dropping it stops it too");
}

#[tokio::test]
async fn has_no_port_and_no_way_in_for_others() {
    let folder = Folder::new();
    let server = start(&folder.0).await.unwrap();
    assert_eq!(query(&server, "show listen_addresses"), "");
    assert_eq!(query(&server, "show fsync"), "on");
    let mode = fs::metadata(server.place.sockets())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn refuses_a_folder_in_use() {
    let folder = Folder::new();
    let _first = start(&folder.0).await.unwrap();
    let refusal = start(&folder.0).await.unwrap_err().to_string();
    assert!(refusal.contains("another `wrkflw dev` uses"), "{refusal}");
}

#[tokio::test]
async fn takes_over_a_server_that_outlived_its_run() {
    let folder = Folder::new();
    let first = start(&folder.0).await.unwrap();
    let pid = postmaster_pid(&first);
    abandon(first);

    let second = start(&folder.0).await.unwrap();
    assert_eq!(postmaster_pid(&second), pid);
    let socket = second.place.socket();
    second.stop().await.unwrap();
    assert!(!socket.exists());
}

#[tokio::test]
async fn starts_again_after_the_server_was_killed() {
    let folder = Folder::new();
    let first = start(&folder.0).await.unwrap();
    query(&first, "create table kept as select 42 as answer");
    let killed = Command::new("kill")
        .args(["-9", &postmaster_pid(&first)])
        .status()
        .unwrap();
    assert!(killed.success());
    abandon(first);

    let second = start(&folder.0).await.unwrap();
    assert_eq!(query(&second, "select answer from kept"), "42");
}

/// After a crash of the machine, the recorded pid can belong to any process.
#[tokio::test]
async fn is_not_misled_by_the_pid_of_another_program() {
    let folder = Folder::new();
    start(&folder.0).await.unwrap().stop().await.unwrap();
    let data = folder.0.join("data");
    let pid_file = format!(
        "{}\n{}\n1700000000\n5432\n\n\n",
        std::process::id(),
        data.display()
    );
    fs::write(data.join("postmaster.pid"), pid_file).unwrap();
    let server = start(&folder.0).await.unwrap();
    assert_eq!(query(&server, "select 1"), "1");
}

/// It refuses new clients until its last one has gone.
#[tokio::test]
async fn a_server_that_stops_is_waited_for() {
    let folder = Folder::new();
    let first = start(&folder.0).await.unwrap();
    let pid = postmaster_pid(&first);
    let mut last = Command::new("psql")
        .args([&first.url(), "-XAtq"])
        .env("PGAPPNAME", "last")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // It goes when this is closed.
    let held = last.stdin.take().unwrap();
    let seen = "select count(*) from pg_stat_activity where application_name = 'last'";
    until("the last client is there", async || {
        query(&first, seen) == "1"
    })
    .await;
    query(&first, "alter system set log_connections = on");
    query(&first, "select pg_reload_conf()");
    let log = first.place.log();
    let connections = || {
        let text = fs::read_to_string(&log).unwrap();
        text.matches("connection received").count()
    };
    let are_logged = async || query(&first, "select 1") == "1" && connections() > 0;
    until("connections are logged", are_logged).await;
    let stopped = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(stopped.success());
    let pid_file = first.place.data().join("postmaster.pid");
    let stops = async || fs::read_to_string(&pid_file).is_ok_and(|text| text.contains("stopping"));
    until("the server stops", stops).await;
    abandon(first);

    // A start that waits looks at the server by a connection, which a server that stops logs, too.
    let before = connections();
    let goes = async {
        until("a start looks", async || connections() > before).await;
        drop(held);
    };
    let (second, ()) = tokio::join!(start(&folder.0), goes);
    let second = second.unwrap();
    assert_ne!(postmaster_pid(&second), pid);
    assert_eq!(query(&second, "select 1"), "1");
    last.wait().unwrap();
}

/// What is asked of the system needs no program beside this one.
#[tokio::test]
async fn a_process_is_told_by_its_state_and_its_words() {
    let mut child = Command::new("cat")
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    // The system may not have its words yet.
    let mut line = String::new();
    until("the words of the process are known", async || {
        line = process(&pid).await.expect("a process");
        line.trim_end().ends_with("cat -")
    })
    .await;
    assert!(!line.starts_with('Z'), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(process(&pid).await, None);
    assert_eq!(process("").await, None);
}

#[tokio::test]
async fn an_ephemeral_server_takes_its_folder_with_it() {
    let server = start_ephemeral().await.unwrap();
    let home = server.place.home().to_owned();
    assert_eq!(query(&server, "select 1"), "1");
    drop(server);
    assert!(!home.exists());
}

#[tokio::test]
async fn a_first_start_that_is_broken_off_takes_its_folder_with_it() {
    let account = Account::of_server(Path::new(DATA)).await.unwrap();
    let programs = Programs::find(None).await.unwrap();
    let place = ServerFolders::ephemeral(&account).unwrap();
    let (home, fresh) = (place.home().to_owned(), place.home().join(FRESH));
    tokio::select! {
        _ = start_in(place, account, programs) => panic!("it is not broken off"),
        () = until("the cluster is being made", async || fresh.exists()) => {}
    }
    assert!(!home.exists());
}

#[tokio::test]
async fn a_start_that_is_broken_off_leaves_no_server_behind() {
    let folder = Folder::new();
    start(&folder.0).await.unwrap().stop().await.unwrap();
    let data = folder.0.join(DATA);
    // A server writes it after its pid file.
    let begun = data.join("postmaster.opts");
    fs::remove_file(&begun).unwrap();
    let account = Account::of_server(&data).await.unwrap();
    let place = ServerFolders::persistent(&folder.0, &account)
        .await
        .unwrap();
    let programs = programs(&place).await.unwrap();
    // Polled once: its server has been told to start, and has no pid file yet.
    tokio::select! {
        biased;
        _ = start_in(place, account, programs) => panic!("it is not broken off"),
        () = std::future::ready(()) => {}
    }
    assert!(begun.exists(), "it was waited for");
    assert!(!data.join("postmaster.pid").exists(), "and stopped");
}

#[tokio::test]
async fn a_folder_that_a_removed_release_left_is_removed() {
    let account = Account::of_server(Path::new(DATA)).await.unwrap();
    let place = ServerFolders::ephemeral(&account).unwrap();
    let home = place.home().to_owned();
    fs::create_dir(place.data()).unwrap();
    fs::write(place.data().join("PG_VERSION"), "8\n").unwrap();
    end(place, account).await.unwrap();
    assert!(!home.exists());
}

#[tokio::test]
async fn a_deep_folder_gets_its_socket_elsewhere() {
    let folder = Folder::new();
    let server = start(&folder.0.join("deep".repeat(30))).await.unwrap();
    assert_eq!(query(&server, "select 1"), "1");
    let sockets = server.place.sockets().to_owned();
    assert!(!sockets.starts_with(&folder.0));
    server.stop().await.unwrap();
    assert!(!sockets.exists());
}

#[tokio::test]
async fn a_folder_may_have_any_name() {
    let folder = Folder::new();
    let server = start(&folder.0.join(r"it's 100% \ & ünusual?"))
        .await
        .unwrap();
    assert_eq!(query(&server, "select 1"), "1");
}

/// Root uses an account that cannot enter the folder; every other user can.
#[tokio::test]
async fn works_below_a_folder_that_is_closed_to_others() {
    let folder = Folder::new();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).unwrap();
    let dir = folder.0.join("project/.wrkflw");
    let server = start(&dir).await.unwrap();
    query(&server, "create table kept as select 42 as answer");
    let home = server.home().to_owned();
    assert!(home.join(DATA).is_dir(), "the folder to remove");
    server.stop().await.unwrap();

    let server = start(&dir).await.unwrap();
    assert_eq!(query(&server, "select answer from kept"), "42");
    server.stop().await.unwrap();
    if !home.starts_with(&folder.0) {
        let note = fs::read_to_string(dir.join("DATA-IS-ELSEWHERE")).unwrap();
        assert!(note.starts_with(home.to_str().unwrap()), "{note}");
        fs::remove_dir_all(home).unwrap();
    }
}

#[tokio::test]
async fn an_interrupted_first_start_does_no_harm() {
    let folder = Folder::new();
    let half = folder.0.join("data.new");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("PG_VERSION"), "15").unwrap();
    let server = start(&folder.0).await.unwrap();
    assert_eq!(query(&server, "select 1"), "1");
    assert!(!half.exists());
}

#[tokio::test]
async fn data_of_another_major_version_is_refused_by_name() {
    let folder = Folder::new();
    fs::create_dir(folder.0.join("data")).unwrap();
    fs::write(folder.0.join("data/PG_VERSION"), "8\n").unwrap();
    let refusal = start(&folder.0).await.unwrap_err().to_string();
    assert!(refusal.contains("was made by PostgreSQL 8"), "{refusal}");
    assert!(refusal.contains("install postgresql-8"), "{refusal}");
    let remove = format!("remove {} to", folder.0.display());
    assert!(refusal.contains(&remove), "{refusal}");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let folder = Folder::new();
    start(&folder.0).await.unwrap().stop().await.unwrap();
    fs::write(folder.0.join("data/global/pg_control"), "broken").unwrap();
    let refusal = start(&folder.0).await.unwrap_err().to_string();
    assert!(refusal.contains("PostgreSQL did not start"), "{refusal}");
    assert!(refusal.contains("pg_control"), "{refusal}");
}

#[test]
fn paths_are_quoted_for_where_they_stand() {
    assert_eq!(quoted(Path::new(r"/it's\here")), r"/it''s\\here");
    assert_eq!(
        percent_encoded(Path::new("/a b/ü%?&")),
        "/a%20b/%C3%BC%25%3F%26"
    );
}
