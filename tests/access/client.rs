//! HTTP clients that write raw bytes, so that they can send what a well-behaved client would not.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::TIMEOUT;

/// A response.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// The headers, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) text: String,
}

impl Reply {
    /// The first response among these bytes. None if its head is incomplete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Reply> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Some(Reply {
            status,
            headers,
            text: body.to_owned(),
        })
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The code of the problem document.
    pub(super) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// A request as text. `line` is method and path.
pub(super) fn request(line: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").expect("a String takes every write");
    }
    if !body.is_empty() {
        let length = body.len();
        let about = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        text.push_str(&about);
    }
    text + "\r\n" + body
}

/// Sends a request on a connection of its own, and reads until the host closes it.
pub(super) async fn ask(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut headers = headers.to_vec();
    headers.push(("connection", "close"));
    let bytes = exchange(address, request(line, &headers, body).as_bytes()).await;
    Reply::parse(&bytes).unwrap_or_else(|| panic!("{line}: no answer in {bytes:?}"))
}

/// Sends these bytes, and reads until the host closes the connection.
pub(super) async fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The host may answer before it has read everything.
    drop(stream.write_all(bytes).await);
    rest(&mut stream).await
}

/// The bytes that the host sends until it closes or breaks off the connection.
pub(super) async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    let reading = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut received));
    drop(reading.await.expect("the host ends the connection"));
    received
}
