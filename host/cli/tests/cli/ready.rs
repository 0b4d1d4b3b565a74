//! `/readyz` of `wrkflw dev`: once the host is ready, its people and its flow exist, and it accepts tokens.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use crate::program::{Running, TestFolder, until};

/// The first response to a probe, however long the host takes to respond. It prints its address only when it is ready. This probe
/// comes as soon as it listens, before its database is there.
fn first_answer(port: u16) -> String {
    let connect = || TcpStream::connect(("127.0.0.1", port));
    let mut stream = until("the host listens", connect);
    let probe = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(probe).expect("a probe is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_ready_host_has_its_people_and_its_flow() {
    let place = TestFolder::new();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut command = place.command(&format!("dev --ephemeral --port {port}"));
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut host = spawned.expect("the program starts");
    let answer = first_answer(port);
    let started = place.run(
        r#"instance start document-approval --entity document/1 --data {"title":"Budget"} --as author"#,
    );
    Running::interrupt(&mut host);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(started.code, 0, "{}", started.stderr);
}
