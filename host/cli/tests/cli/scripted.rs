//! The requests of commands, sent to a server with prepared responses.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _, pipe};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::program::{TestFolder, ran};

/// An id, for commands that do not look it up.
const ID: &str = "00000000000070008000000000000001";

/// A server that answers each connection with its next response.
struct Scripted {
    /// The options for a command that calls this server.
    options: String,
    requests: Receiver<String>,
}

impl Scripted {
    fn answering(answers: Vec<String>) -> Scripted {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().expect("a connection");
                sender.send(request(&stream)).expect("the test waits");
                stream.write_all(answer.as_bytes()).expect("it is read");
            }
        });
        Scripted {
            options: format!("--server http://127.0.0.1:{port} --token t"),
            requests,
        }
    }

    /// The requests of the commands that have ended.
    fn requests(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

/// The head and the body of a request.
fn request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0_usize);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a request");
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().expect("a length");
        }
        request += &line;
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    request + &String::from_utf8(body).expect("text")
}

/// A response after which the connection ends.
fn answer(status: &str, kind: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}")
}

fn refusal(status: &str, code: &str) -> String {
    let body = format!(r#"{{"title":"no","code":"{code}"}}"#);
    answer(status, "application/problem+json", &body)
}

#[test]
fn numbers_are_printed_with_the_digits_of_the_server() {
    let place = TestFolder::new();
    let sum = "50000.000000000000000001";
    let body = format!(r#"{{"changes":[],"data":{{"rate":1.50,"sum":{sum}}},"revision":3}}"#);
    for (format, expected) in [
        ("--output json", format!("\"sum\": {sum}")),
        ("--output json", "\"rate\": 1.50".to_owned()),
        ("", format!("\"sum\":{sum}")),
    ] {
        let server = Scripted::answering(vec![answer("200 OK", "application/json", &body)]);
        let line = format!("instance show {ID} {format} {}", server.options);
        let shown = place.run(&line).stdout;
        assert!(shown.contains(&expected), "{format}: {shown}");
    }
}

#[test]
fn numbers_are_sent_with_the_digits_of_the_user() {
    let place = TestFolder::new();
    let data = r#"{"sum":1.10,"id":12345678901234567890.10}"#;
    for line in [
        "instance start flow --entity document/1 --data",
        &format!("instance restart {ID} --data"),
        &format!("instance signal {ID} paid --input"),
        "signal send paid --correlation 1 --id 1 --input",
        &format!("task decide {ID} APPROVE --input"),
        &format!("task bulk decide {ID} --outcome APPROVE --input"),
        "calendar set office",
    ] {
        let server = Scripted::answering(vec![refusal("422 Unprocessable", "invalid_input")]);
        let ran = place.run(&format!("{line} {data} {}", server.options));
        assert_eq!(ran.code, 6, "{line}: {}", ran.stderr);
        let sent = server.requests().concat();
        let numbers = r#"{"id":12345678901234567890.10,"sum":1.10}"#;
        assert!(sent.contains(numbers), "{line}: {sent}");
    }
}

#[test]
fn a_bulk_command_prints_its_results_and_fails_if_a_task_was_refused() {
    let place = TestFolder::new();
    for (done, refused, code) in [(1, 0, 0), (1, 1, 1), (0, 2, 1)] {
        for format in ["table", "json"] {
            let body = format!(
                r#"{{"results":[{{"taskId":"{ID}","status":403,"code":"not_owner"}}],"done":{done},"refused":{refused},"more":false}}"#
            );
            let server = Scripted::answering(vec![answer("200 OK", "application/json", &body)]);
            let ran = place.run(&format!(
                "task bulk claim {ID} --output {format} {}",
                server.options
            ));
            assert_eq!(ran.code, code, "{refused} {format}: {}", ran.stderr);
            assert!(ran.stdout.contains("not_owner"), "{}", ran.stdout);
            assert_eq!(ran.stderr.contains("refused"), code != 0, "{}", ran.stderr);
        }
    }
}

#[test]
fn a_repeatable_command_uses_the_id_of_its_instance() {
    let place = TestFolder::new();
    for line in ["restart", "cancel --reason late", "signal paid"] {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let changing = |id: &str, options: &str| {
            place.run(&format!(
                "instance {verb} {id} {rest} --idempotency-key k {options}"
            ))
        };
        let server = Scripted::answering(vec![refusal("403 Forbidden", "permission_missing")]);
        let refused = changing("document/1", &server.options);
        assert_eq!(refused.code, 2, "{line}: {}", refused.stderr);
        assert!(refused.stderr.contains("by its id"), "{}", refused.stderr);
        let sent = changing(ID, &server.options);
        assert_eq!(sent.code, 3, "{line}: {}", sent.stderr);
        assert_eq!(server.requests().len(), 1, "{line}");
    }
}

/// A stream that begins after `after` and has one event.
fn stream(after: &str, event: &str) -> String {
    let body = format!("id: {after}\n\n: comment\n\nid: {event}\ndata: {{\"id\":\"{event}\"}}\n\n");
    answer("200 OK", "text/event-stream", &body)
}

#[test]
fn a_stream_is_resumed_after_its_end_and_when_the_server_is_starting() {
    let place = TestFolder::new();
    let server = Scripted::answering(vec![
        stream("1", "2"),
        refusal("503 Service Unavailable", "unavailable"),
        answer("502 Bad Gateway", "text/html", "<p>a proxy</p>"),
        stream("2", "3"),
    ]);
    let tail = format!(
        "events tail --follow --limit 2 --output json {}",
        server.options
    );
    let ran = place.run(&tail);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout, "{\"id\":\"2\"}\n{\"id\":\"3\"}\n");
    let requests = server.requests();
    let begun = requests.iter().map(|one| one.to_lowercase());
    let begun: Vec<_> = begun
        .map(|one| one.contains("last-event-id: 2\r\n"))
        .collect();
    assert_eq!(begun, [false, true, true, true]);
    // A permanent refusal ends the command at once.
    let server = Scripted::answering(vec![refusal("403 Forbidden", "permission_missing")]);
    let ran = place.run(&format!("events tail --follow {}", server.options));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
}

#[test]
fn a_failed_write_of_events_ends_the_command() {
    let place = TestFolder::new();
    let server = Scripted::answering(vec![stream("1", "2")]);
    let mut command = place.command(&format!("events tail --follow {}", server.options));
    let full = fs::File::options().write(true).open("/dev/full");
    command.stdout(full.expect("a device that is full"));
    let ran = ran(command);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("reconnecting"), "{}", ran.stderr);
}

/// The command could have failed later, as `audit verify` may.
#[test]
fn a_command_fails_if_its_reader_closes_the_output() {
    let place = TestFolder::new();
    let mut command = place.command("plugin schema");
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    command.stdout(writer);
    let ran = ran(command);
    assert_eq!((ran.code, ran.stderr.as_str()), (141, ""));
}

#[test]
fn a_component_is_published_with_the_config_of_its_build_folder() {
    let place = TestFolder::new();
    for folder in ["build", "elsewhere"] {
        fs::create_dir(place.folder.join(folder)).expect("our own folder");
    }
    let ours = r#"{"reviewers":"ours"}"#;
    for (path, text) in [
        ("flow.toml", "name = \"my-flow\"\nlanguage = \"ts\"\n"),
        ("config.json", ours),
        ("build/my-flow.wasm", "component"),
        ("elsewhere/other.wasm", "component"),
    ] {
        fs::write(place.folder.join(path), text).expect("our own folder");
    }
    for (line, key, config, named) in [
        ("build/my-flow.wasm", "my-flow", ours, "config.json"),
        (
            "elsewhere/../build/my-flow.wasm --key other",
            "other",
            ours,
            "config.json",
        ),
        ("elsewhere/other.wasm", "other", "{}", "the empty config"),
        (
            "elsewhere/other.wasm --key k --config config.json",
            "k",
            ours,
            "config.json",
        ),
    ] {
        let server = Scripted::answering(vec![refusal("422 Unprocessable", "unpublishable")]);
        let ran = place.run(&format!("definition publish {line} {}", server.options));
        assert_eq!(ran.code, 6, "{line}: {}", ran.stderr);
        let words = format!("as {key} with {named}");
        assert!(ran.stderr.contains(&words), "{line}: {}", ran.stderr);
        let sent = server.requests().concat();
        let part = format!("\r\n\r\n{config}\r\n--");
        assert!(sent.contains(&part), "{line}: {sent}");
    }
}

#[test]
fn actions_that_were_not_tried_are_counted() {
    let place = TestFolder::new();
    for option in ["", "--all"] {
        let body = r#"{"actions":[{"action":"claim","allowed":true}],"omitted":{"actions":3}}"#;
        let server = Scripted::answering(vec![answer("200 OK", "application/json", body)]);
        let ran = place.run(&format!(
            "instance actions {ID} {option} {}",
            server.options
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let shown = ran.stdout;
        assert!(
            shown.contains("claim") && shown.ends_with("not tried:  3\n"),
            "{shown}"
        );
    }
}
