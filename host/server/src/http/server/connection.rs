//! Runs one connection: answers its requests, and closes it if the client is idle, does not complete the head of a request,
//! or does not read a response.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};
use tower::ServiceExt as _;

use super::activity::{Activity, Overdue, Watched};
use super::{Shared, Timeouts, farewell};

/// Maximum number of bytes that are buffered for reading and for writing.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// A larger head is refused before it is complete. The router has a smaller limit, and a better response.
const HEAD_BYTES_MAX: usize = 48 * 1024;
/// Maximum number of headers of a request. The HTTP parser refuses more.
const HEADERS_MAX: usize = 100;
/// A connection that was used more recently keeps its place, even if all places are taken.
const CROWDED_IDLE_MIN: Duration = Duration::from_secs(1);
/// The system's timeout for a client that acknowledges nothing, as a multiple of the host's. The host should close the
/// connection first, because the host records the reason.
const SYSTEM_TIMEOUT_FACTOR: u32 = 2;
/// The shortest system timeout. The host's timeout begins later: when the system's buffer is full.
const SYSTEM_TIMEOUT_MIN: Duration = Duration::from_mins(1);

/// How a connection ended.
enum End {
    /// By the client, by an error, or after the last response of a stopping host.
    Closed,
    Overdue(Overdue),
}

/// Counts the open connections.
struct Open;

impl Open {
    fn new() -> Open {
        metrics::gauge!("wrkflw_http_connections").increment(1.0);
        Open
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!("wrkflw_http_connections").decrement(1.0);
    }
}

/// Answers the requests of one connection.
pub(super) async fn run(socket: TcpStream, shared: Shared) {
    let _open = Open::new();
    tune(&socket, &shared.timeouts);
    let activity = Arc::new(Activity::new(Instant::now()));
    let io = Watched {
        socket,
        activity: Arc::clone(&activity),
    };
    let answer = service_fn({
        let (router, activity) = (shared.router.clone(), Arc::clone(&activity));
        move |request| Box::pin(answer(router.clone(), Arc::clone(&activity), request))
    });
    let mut connection = http1::Builder::new()
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(io), answer);

    let mut timeout = Timeout::new(&activity, &shared);
    let mut stop = pin!(shared.cancel.cancelled());
    let mut stopping = false;
    let end = poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.poll_without_shutdown(context) {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke off");
                }
                return Poll::Ready(End::Closed);
            }
            if !stopping && stop.as_mut().poll(context).is_ready() {
                stopping = true;
                Pin::new(&mut connection).graceful_shutdown();
                continue;
            }
            return timeout.poll(context).map(End::Overdue);
        }
    })
    .await;
    let parts = connection.into_parts();
    finish(
        parts.io.into_inner().socket,
        end,
        !parts.read_buf.is_empty(),
    );
}

/// Sets options of the socket. Without them, the host is only slower.
fn tune(socket: &TcpStream, timeouts: &Timeouts) {
    // Send a response as soon as it is ready.
    socket.set_nodelay(true).ok();
    // A client that vanished acknowledges nothing. By default, the system retries for a quarter of an hour. If the response
    // fits into the system's buffer, the host does not notice it either.
    let timeout = (timeouts.unread_max * SYSTEM_TIMEOUT_FACTOR).max(SYSTEM_TIMEOUT_MIN);
    let options = SockRef::from(socket);
    options.set_tcp_user_timeout(Some(timeout)).ok();
}

/// Sends a last response, if there is one. An idle connection gets none, because its client might take it for the
/// response to its next request.
fn finish(socket: TcpStream, end: End, has_begun: bool) {
    let reason = match end {
        End::Closed => return,
        End::Overdue(Overdue::Idle) => "idle",
        End::Overdue(Overdue::Head) => {
            if has_begun {
                farewell::say(
                    &socket,
                    "request_timeout",
                    "the head of the request did not arrive in time",
                );
            }
            "slow_head"
        }
        End::Overdue(Overdue::Unread) => {
            // Discard the unread bytes now. The system would keep them for minutes.
            socket.set_zero_linger().ok();
            "unread"
        }
    };
    metrics::counter!("wrkflw_http_connections_ended_total", "reason" => reason).increment(1);
}

/// Waits until a connection is overdue, or idle while other connections need its place.
struct Timeout<'a> {
    activity: &'a Activity,
    timeouts: Timeouts,
    alarm: Pin<Box<tokio::time::Sleep>>,
    crowded: Pin<Box<tokio::sync::futures::Notified<'a>>>,
    shared: &'a Shared,
}

impl<'a> Timeout<'a> {
    fn new(activity: &'a Activity, shared: &'a Shared) -> Timeout<'a> {
        Timeout {
            activity,
            timeouts: shared.timeouts,
            alarm: Box::pin(sleep_until(Instant::now() + shared.timeouts.head_max)),
            crowded: Box::pin(shared.crowded.notified()),
            shared,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Overdue> {
        while self.crowded.as_mut().poll(context).is_ready() {
            if self.activity.is_idle_for(CROWDED_IDLE_MIN, Instant::now()) {
                return Poll::Ready(Overdue::Idle);
            }
            self.crowded.set(self.shared.crowded.notified());
        }
        loop {
            let Some((due, why)) = self.activity.due(&self.timeouts) else {
                return Poll::Pending;
            };
            // To set the alarm again for each request would cost more than one needless wake-up.
            if due < self.alarm.deadline() || self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(due);
            }
            ready!(self.alarm.as_mut().poll(context));
            if Instant::now() >= due {
                return Poll::Ready(why);
            }
        }
    }
}

async fn answer(
    router: Router,
    activity: Arc<Activity>,
    request: Request<Incoming>,
) -> Result<Response<Answered>, Infallible> {
    activity.begin(Instant::now());
    let response = router.oneshot(request.map(Body::new)).await?;
    Ok(response.map(|body| Answered { body, activity }))
}

/// The body of a response. When it is dropped, the connection is idle.
struct Answered {
    body: Body,
    activity: Arc<Activity>,
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.activity.end(Instant::now());
    }
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
