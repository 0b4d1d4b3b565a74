//! A disk of PostgreSQL that is really full: a table space on a small file system in memory.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::Folder;
use super::*;

const SIZE: &str = "size=6m";
/// Instances that may fit beside what fills the disk.
const STARTS_MAX: usize = 500;

/// A file system that goes with this value.
struct Small(PathBuf);

impl Small {
    /// None where this account may not mount anything.
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

#[tokio::test]
#[expect(
    clippy::print_stdout,
    reason = "it is said aloud that this was not run"
)]
async fn a_file_system_without_room_stops_writes_and_nothing_else() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let Some(small) = Small::mount(&folder.0.join("small")) else {
        println!("not run: this account may mount no file system");
        return;
    };
    let data: String = sqlx::query_scalar("show data_directory")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("the superuser may know");
    let server = fs::metadata(data).expect("a server of this machine").uid();
    chown(&small.0, Some(server), None).expect("root may");
    let space = format!("space_{}", app.database.name());
    let place = small.0.display();
    sql(
        &app,
        &format!("create tablespace {space} location '{place}'"),
    )
    .await;
    sql(
        &app,
        &format!("alter table audit_entry set tablespace {space}"),
    )
    .await;
    sql(
        &app,
        &format!("create table ballast (n int, text text) tablespace {space}"),
    )
    .await;
    let fill = "insert into ballast select n, repeat('x', 1000) from generate_series(1, 500) n";
    while sqlx::raw_sql(fill)
        .execute(app.database.admin_pool())
        .await
        .is_ok()
    {}

    let host = app.host();
    let mut refused = None;
    for number in 0..STARTS_MAX {
        let before = traces(&app).await;
        let body = Some(start_of(&format!("doc-{number}")));
        let answer = host
            .send("author", "POST", "/v1/instances", &[], body)
            .await;
        if answer.status != 201 {
            assert_eq!(traces(&app).await, before, "nothing half-written");
            refused = Some(answer);
            break;
        }
    }
    unavailable(
        refused.expect("the disk is full"),
        "unavailable",
        "no room left",
    );
    assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 503);
    assert_eq!(host.send("", "GET", "/livez", &[], None).await.status, 200);
    app.get("author", "/v1/instances").await.expect(200);

    sql(&app, "drop table ballast").await;
    app.started("afterwards").await;
    assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 200);
    sql(&app, "alter table audit_entry set tablespace pg_default").await;
    sql(&app, &format!("drop tablespace {space}")).await;
}
