//! One connection, from its first byte to its end: its requests, and the end that the host makes of it when the client
//! says nothing, does not finish what it began, or does not read what it asked for.

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

use super::activity::{Activity, Overdue};
use super::stream::Watched;
use super::{Shared, Timeouts, farewell};

/// What is read ahead of a connection, and written ahead to it.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// A head larger than this is refused before it is complete; the router has a smaller bound, and a better answer.
const HEAD_BYTES_MAX: usize = 48 * 1024;
/// Headers of a request. More are refused before anybody looks at them.
const HEADERS_MAX: usize = 100;
/// A connection that was used this long ago keeps its place even where there is no other.
const CROWDED_IDLE_MIN: Duration = Duration::from_secs(1);
/// The system's timeout for a client that acknowledges nothing, as a multiple of this host's: the host, which knows more, ends the
/// connection first.
const SYSTEM_TIMEOUT_FACTOR: u32 = 2;
/// The shortest system timeout: this host's begins later, when the system's buffer is full.
const SYSTEM_TIMEOUT_MIN: Duration = Duration::from_mins(1);

/// How a connection ended.
enum End {
    /// By the client, by an error, or after the last answer of a host that stops.
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

/// Where the system cannot do these, all is slower and right all the same.
fn tune(socket: &TcpStream, timeouts: &Timeouts) {
    // An answer goes out when it is ready.
    socket.set_nodelay(true).ok();
    // A peer that vanished without a word confirms nothing of what is sent. By itself the system tries for a quarter
    // of an hour, and a small answer fits its buffer, so that the host would not notice either.
    let timeout = (timeouts.unread_max * SYSTEM_TIMEOUT_FACTOR).max(SYSTEM_TIMEOUT_MIN);
    let options = SockRef::from(socket);
    options.set_tcp_user_timeout(Some(timeout)).ok();
}

/// What is to be said at the end. An idle connection is closed in silence: its client might take an answer for that to
/// the next request.
fn finish(socket: TcpStream, end: End, has_begun: bool) {
    let reason = match end {
        End::Closed => return,
        End::Overdue(Overdue::Idle) => "idle",
        End::Overdue(Overdue::Head) => {
            if has_begun {
                farewell::say(
                    &socket,
                    "request_timeout",
                    "the head of the request did not come in time",
                );
            }
            "slow_head"
        }
        End::Overdue(Overdue::Unread) => {
            // What the client did not read is thrown away now; the system would keep it for minutes.
            socket.set_zero_linger().ok();
            "unread"
        }
    };
    metrics::counter!("wrkflw_http_connections_ended_total", "reason" => reason).increment(1);
}

/// Waits until a connection is overdue, or idle while others want its place.
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
            // To set the alarm anew with each request would cost more than to be woken once in vain.
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

/// The body of an answer; when it goes, the connection waits for the next request.
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
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_peer_that_confirms_nothing_is_given_up_by_the_system() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).await.expect("a connection");
        let (socket, _) = listener.accept().await.expect("a connection");
        let timeouts = Timeouts::default();
        tune(&socket, &timeouts);
        let timeout = SockRef::from(&socket).tcp_user_timeout();
        assert_eq!(timeout.expect("an option"), Some(timeouts.unread_max * 2));
        assert!(socket.nodelay().expect("an option"));
        drop(client);
    }
}
