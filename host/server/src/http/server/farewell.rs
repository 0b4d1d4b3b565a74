//! The response to a client whose request does not reach the router: a problem like those of the API. Then the connection
//! is closed.
//!
//! It is written only if the socket's buffer takes it at once. If the HTTP parser refuses a request, the parser responds
//! itself, with the status only.

use tokio::net::TcpStream;

use crate::http::problem::Problem;
use wrkflw_runtime::clock;

/// Sends the problem, if the socket's buffer takes it at once.
pub(super) fn say(socket: &TcpStream, code: &str, detail: &str) {
    socket.try_write(&farewell(code, detail)).ok();
}

fn farewell(code: &str, detail: &str) -> Vec<u8> {
    let problem = Problem {
        request_id: clock::new_id().to_string(),
        ..Problem::new(code, detail)
    };
    let reason = match problem.status {
        408 => "Request Timeout",
        _ => "Service Unavailable",
    };
    let retry = problem
        .retry_after
        .map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
    let body = serde_json::to_vec(&problem).expect("a problem is JSON");
    let mut text = format!(
        "HTTP/1.1 {} {reason}\r\nconnection: close\r\n{retry}content-type: application/problem+json\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\ncontent-length: {}\r\n\r\n",
        problem.status,
        body.len()
    )
    .into_bytes();
    text.extend(body);
    text
}
