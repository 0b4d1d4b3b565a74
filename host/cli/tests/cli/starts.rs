//! How `wrkflw dev` starts and ends: with another database, after an interrupted start, and by a signal.

use std::net::TcpListener;
use std::process::Stdio;
use std::{fs, io};

use serde_json::Value;

use crate::program::{Running, TestFolder, until};

#[test]
fn commands_read_the_database_of_the_named_server() {
    let place = TestFolder::new();
    let mut one = place.start("dev --empty --port 0 --name one");
    place.data(r#"instance start document-approval --entity document/1 --data {"title":"Budget"} --as author"#);
    place.sql("create database other");
    let socket = place.folder.join(".wrkflw/postgres/socket");
    let other = format!(
        "dev --empty --port 0 --name other --database-url postgres://postgres@localhost/other?host={}",
        socket.display()
    );
    let mut other = place.start(&other);
    let instances = |name: &str| {
        let verified = place.data(&format!("audit verify --all --dev {name}"));
        verified["verified"]["instances"].as_u64().expect("a count")
    };
    assert_eq!((instances("one"), instances("other")), (1, 0));
    assert_eq!((other.stop(), one.stop()), (Some(0), Some(0)));
}

/// The version of the sample flow that new instances use, and the number of its versions.
fn sample(place: &TestFolder) -> (Value, usize) {
    let versions = place.data("definition list document-approval --as admin")["data"].take();
    let versions = versions.as_array().expect("a list").clone();
    let active = versions.iter().find(|version| version["active"] == true);
    (
        active.expect("an active version")["version"].clone(),
        versions.len(),
    )
}

/// With another digest, the version counts as the sample of another release.
#[test]
fn a_new_sample_replaces_the_old_one_but_no_version_of_the_user() {
    let place = TestFolder::new();
    let mut dev = place.start("dev --empty --port 0");
    place.sql("update definition_version set config_digest = sha256('1')");
    assert_eq!(dev.stop(), Some(0));
    let mut dev = place.start("dev --empty --port 0");
    assert_eq!(sample(&place), (Value::from(2), 2));
    place.sql(
        "update definition_version set note = null, config_digest = sha256('2') where version = 2",
    );
    assert_eq!(dev.stop(), Some(0));
    let mut dev = place.start("dev --empty --port 0");
    assert_eq!(sample(&place), (Value::from(2), 3));
    assert_eq!(dev.stop(), Some(0));
}

#[test]
fn an_interrupted_start_between_a_person_and_a_membership_is_continued() {
    let place = TestFolder::new();
    let mut dev = place.start("dev --empty --port 0");
    place.sql("delete from membership; delete from person where id <> 'author'");
    assert_eq!(dev.stop(), Some(0));
    let mut dev = place.start("dev --empty --port 0");
    let count = |line: &str| place.data(line)["data"].as_array().map(Vec::len);
    assert_eq!(count("person list --group authors"), Some(1));
    assert_eq!(count("person list --group reviewers"), Some(2));
    // A membership that a user ended does not begin again.
    place.sql("update membership set valid_to = now() where group_id = 'authors'");
    assert_eq!(dev.stop(), Some(0));
    let mut dev = place.start("dev --empty --port 0");
    assert_eq!(count("person list --group authors"), Some(0));
    assert_eq!(dev.stop(), Some(0));
}

#[test]
fn a_database_of_another_release_is_reported_with_its_folder() {
    let place = TestFolder::new();
    let mut dev = place.start("dev --empty --port 0");
    place.sql("update _sqlx_migrations set checksum = '' where version = 1");
    assert_eq!(dev.stop(), Some(0));
    let refused = place.run("dev --empty --port 0");
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let folder = place.folder.join(".wrkflw/postgres");
    let advice = format!("remove {}", folder.display());
    assert!(refused.stderr.contains(&advice), "{}", refused.stderr);
    fs::remove_dir_all(folder).expect("the server has stopped");
    assert_eq!(place.start("dev --empty --port 0").stop(), Some(0));
}

#[test]
fn a_signal_ends_a_start_whose_database_does_not_respond() {
    let place = TestFolder::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    silent.set_nonblocking(true).expect("our own listener");
    let address = silent.local_addr().expect("an address");
    let line =
        format!("dev --empty --port 0 --database-url postgres://postgres@{address}/postgres");
    let mut command = place.command(&line);
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.expect("the program starts");
    let _connection = until("it connects to its database", || match silent.accept() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let ended = child.try_wait().expect("our own child");
            assert_eq!(ended, None, "it ended before it connected to its database");
            Err(error)
        }
        accepted => Ok(accepted.expect("a connection")),
    });
    Running::interrupt(&mut child);
    let printed = io::read_to_string(child.stderr.take().expect("a pipe")).expect("text");
    assert!(printed.contains("stopped before it was ready"), "{printed}");
}

/// Temporary folders of `wrkflw dev --ephemeral` in `temporary`.
fn leftovers(temporary: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(temporary).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let mut names: Vec<_> = names
        .map(|name| name.expect("text"))
        .filter(|name| name.starts_with("wrkflw-"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_next_start_removes_the_folders_of_a_killed_server() {
    let place = TestFolder::new();
    // A short path, because it contains sockets. The account of the database may read it.
    let temporary = std::env::temp_dir().join(format!("wk-{}", std::process::id()));
    fs::create_dir(&temporary).expect("a fresh folder");
    let start = || {
        let mut command = place.command("dev --empty --port 0 --ephemeral --output json");
        command.env("TMPDIR", &temporary);
        place.start_command(command)
    };
    let mut killed = start();
    killed.kill();
    let left = leftovers(&temporary);
    assert_eq!(left.len(), 2, "its data and its secrets: {left:?}");
    let mut next = start();
    let now = leftovers(&temporary);
    assert!(
        left.iter().all(|name| !now.contains(name)),
        "{left:?} {now:?}"
    );
    assert_eq!(now.len(), 2, "its own: {now:?}");
    // A third start does not touch the folders of running servers.
    let mut third = start();
    assert_eq!(leftovers(&temporary).len(), 4);
    assert_eq!((third.stop(), next.stop()), (Some(0), Some(0)));
    assert_eq!(leftovers(&temporary), [""; 0]);
    fs::remove_dir(&temporary).expect("empty");
}
