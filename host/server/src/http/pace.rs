//! The minimum rate of request bodies. Without it, a client that sends a byte now and then could occupy a place and memory
//! for any time. A request whose body is too slow gets 408.
//!
//! The routes that read a body limit its size.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::problem::Problem;

/// The minimum rate of a body after its initial time, and the minimum rate of the reader of an answer.
pub(super) const BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

/// How long bodies may take.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The time to receive a body, from the admission of its request to its last byte. Each 16 KiB received add a second.
    pub body_max: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            body_max: Duration::from_secs(20),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the body came too slowly")]
struct TooSlow;

/// Makes the body of a request fail with [`TooSlow`] if it is slower than the pace.
pub(super) fn keep(pace: Pace, request: Request) -> Request {
    // A complete body cannot be late.
    if request.body().is_end_stream() {
        return request;
    }
    request.map(|body| Body::new(Paced::new(body, pace)))
}

/// The problem for a failed read of a body, if [`TooSlow`] is the cause.
pub(super) fn problem(error: &(dyn Error + 'static)) -> Option<Problem> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            let kib = BYTES_PER_SECOND_MIN / 1024;
            let detail = format!("the body came too slowly: send {kib} KiB a second at least");
            return Some(Problem::new("request_timeout", detail));
        }
        cause = error.source();
    }
    None
}

struct Paced {
    body: Body,
    pace: Pace,
    begun: Instant,
    received: u64,
    /// Created when the reader first waits for bytes. Most readers never do.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn new(body: Body, pace: Pace) -> Paced {
        Paced {
            body,
            pace,
            begun: Instant::now(),
            received: 0,
            alarm: None,
        }
    }

    fn due(&self) -> Instant {
        let earned = Duration::from_secs(self.received / BYTES_PER_SECOND_MIN);
        self.begun + self.pace.body_max + earned
    }

    /// Whether the time is over. If not, wakes the reader when it is.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let due = self.due();
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        alarm.as_mut().poll(context).is_ready()
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.received += frame.data_ref().map_or(0, |data| data.len() as u64);
                polled
            }
            Poll::Ready(_) => polled,
            Poll::Pending if self.is_over(context) => {
                Poll::Ready(Some(Err(axum::Error::new(TooSlow))))
            }
            Poll::Pending => Poll::Pending,
        }
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
