//! The last activity of a connection, and when its timeout ends.
//!
//! The socket and the requests of a connection write it. The connection's task reads it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::Timeouts;
use crate::http::pace::BYTES_PER_SECOND_MIN;

/// Why the host closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// The client sent no request.
    Idle,
    /// The head of a request did not arrive in time.
    Head,
    /// The client does not read the answer.
    Unread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between requests.
    Idle,
    /// A part of a request's head has arrived.
    Head,
    /// A request is being answered.
    Answering,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// When the socket stopped accepting bytes.
    blocked: Option<Instant>,
    /// How long it accepted no bytes before, less the time that it has earned since. Otherwise a client that reads a byte now and
    /// then could keep a large answer in memory for any time.
    waited: Duration,
}

/// The activity of one connection.
#[derive(Debug)]
pub(super) struct Activity(Mutex<State>);

impl Activity {
    pub(super) fn new(now: Instant) -> Activity {
        Activity(Mutex::new(State {
            phase: Phase::Idle,
            since: now,
            blocked: None,
            waited: Duration::ZERO,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that bytes arrived. While a request is answered, they belong to its body and change nothing.
    pub(super) fn read(&self, now: Instant) {
        let mut state = self.state();
        if state.phase == Phase::Idle {
            (state.phase, state.since) = (Phase::Head, now);
        }
    }

    /// The socket accepted so many bytes, or failed.
    pub(super) fn written(&self, bytes: usize, now: Instant) {
        let mut state = self.state();
        if let Some(since) = state.blocked.take() {
            state.waited += now.duration_since(since);
        }
        let earned = (bytes as u64).saturating_mul(1_000_000) / BYTES_PER_SECOND_MIN;
        state.waited = state.waited.saturating_sub(Duration::from_micros(earned));
    }

    /// The socket accepts no bytes at the moment.
    pub(super) fn blocked(&self, now: Instant) {
        self.state().blocked.get_or_insert(now);
    }

    /// The head of a request is complete.
    pub(super) fn begin(&self, now: Instant) {
        let mut state = self.state();
        (state.phase, state.since) = (Phase::Answering, now);
    }

    /// The body of the answer was sent or dropped.
    pub(super) fn end(&self, now: Instant) {
        let mut state = self.state();
        (state.phase, state.since) = (Phase::Idle, now);
    }

    /// Whether the connection has been idle for at least this long.
    pub(super) fn is_idle_for(&self, at_least: Duration, now: Instant) -> bool {
        let state = self.state();
        state.phase == Phase::Idle && now.duration_since(state.since) >= at_least
    }

    /// When and why the host closes the connection if nothing changes.
    pub(super) fn due(&self, timeouts: &Timeouts) -> Option<(Instant, Overdue)> {
        let state = self.state();
        let waiting = match state.phase {
            Phase::Idle => Some((state.since + timeouts.idle_max, Overdue::Idle)),
            Phase::Head => Some((state.since + timeouts.head_max, Overdue::Head)),
            Phase::Answering => None,
        };
        let left = timeouts.unread_max.saturating_sub(state.waited);
        let unread = state.blocked.map(|since| (since + left, Overdue::Unread));
        waiting.into_iter().chain(unread).min_by_key(|(at, _)| *at)
    }
}

/// The socket of one connection. It records when bytes arrive, and when it accepts no more.
pub(super) struct Watched {
    pub(super) socket: TcpStream,
    pub(super) activity: Arc<Activity>,
}

impl Watched {
    fn noted(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let now = Instant::now();
        match &polled {
            Poll::Pending => self.activity.blocked(now),
            Poll::Ready(written) => {
                let bytes = written.as_ref().map_or(0, |bytes| *bytes);
                self.activity.written(bytes, now);
            }
        }
        polled
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.read(Instant::now());
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.noted(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write_vectored(context, bytes);
        self.noted(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
