//! One event stream: its next message, and its end. It is polled only when its client can receive, so a client that does
//! not read costs only its permit.
//!
//! It ends when its token expires, and soon after its caller loses the permission. It sends no events that were committed
//! after the loss: every read returns the access mark. If the mark has changed, the stream checks the permission again
//! before it sends an event of that read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::live::{Channel, render};
use super::stream_limits::StreamPermit;
use super::tail::{RenderedEvent, TailRead};
use super::{PERMISSION, read};
use crate::http::App;
use crate::http::extract::Listener;
use crate::http::page::encode;
use wrkflw_core::event_filter::EventFilter;
use wrkflw_store::feed::{FeedCursor, FeedPage};
use wrkflw_store::viewer::Viewer;

/// How often a silent stream sends its position, so that proxies do not close it, and clients that reconnect go on from there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often a stream checks its token.
const LOOK: Duration = Duration::from_secs(1);
/// The time after which the permission and the visibility are checked again, even if the access mark has not changed.
const JUDGED_FOR: Duration = Duration::from_secs(30);
/// Maximum number of bytes that a stream keeps of a page that it read itself.
const TAKEN_BYTES_MAX: usize = 128 * 1024;

pub(super) struct Reader {
    app: App,
    caller: Listener,
    permit: StreamPermit,
    channel: Arc<Channel>,
    moved: watch::Receiver<u64>,
    filter: EventFilter,
    position: FeedCursor,
    /// The end of the feed when the stream began.
    opened: FeedCursor,
    /// The first message, until it is sent.
    begins: Option<Bytes>,
    /// Events that were read and not sent yet.
    next: VecDeque<RenderedEvent>,
    /// The caller as of the last check.
    viewer: Viewer,
    /// The access mark of this stream's own last read.
    access_mark: Option<Uuid>,
    judged: Option<Judged>,
    /// When the token was last checked.
    checked: Instant,
    spoke: Instant,
}

/// The last successful check of the permission, and the access marks then: of the tenant's reads and of this stream's own.
#[derive(Debug, Clone, Copy)]
struct Judged {
    access_mark: [Option<Uuid>; 2],
    at: Instant,
}

impl Reader {
    /// Continues with a page that was read after `position`.
    pub(super) fn new(
        app: App,
        (caller, viewer): (Listener, Viewer),
        permit: StreamPermit,
        filter: EventFilter,
        (position, page): (FeedCursor, &FeedPage),
    ) -> Reader {
        let channel = app.streams.join(&app, caller.who.tenant);
        let mut reader = Reader {
            moved: channel.moved(),
            channel,
            app,
            caller,
            permit,
            filter,
            position,
            opened: page.horizon,
            begins: None,
            next: VecDeque::new(),
            viewer,
            access_mark: page.access_mark,
            judged: None,
            checked: Instant::now(),
            spoke: Instant::now(),
        };
        // A client that reconnects before the first event continues from here.
        reader.begins = Some(reader.place_in_feed());
        reader.take(page);
        reader
    }

    /// The next text to send. None when the stream ends.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.goes_on().await {
                return None;
            }
            if let Some(begins) = self.begins.take() {
                return Some(begins);
            }
            if let Some(event) = self.next.pop_front() {
                if !event.is_for(&self.viewer) {
                    continue;
                }
                self.spoke = Instant::now();
                return Some(event.text);
            }
            self.moved.borrow_and_update();
            match self.found() {
                Some(TailRead::Behind) => {
                    if !self.catch_up().await {
                        return None;
                    }
                    // A filter may pass over many pages before the next event.
                    if !self.next.is_empty() || self.spoke.elapsed() < HEARTBEAT {
                        continue;
                    }
                }
                Some(TailRead::Next(next, position)) => {
                    (self.next, self.position) = (next, position);
                    if !self.next.is_empty() {
                        continue;
                    }
                }
                None => {}
            }
            if self.spoke.elapsed() >= HEARTBEAT {
                self.spoke = Instant::now();
                return Some(self.place_in_feed());
            }
            tokio::select! {
                () = self.app.cancel.cancelled() => return None,
                () = self.permit.ended.cancelled() => return None,
                _ = self.moved.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// The next events. Events from before the stream began are read from the database: the tail has each event with the circle of
    /// the time when it came, and the circle of its instance may have changed since.
    fn found(&self) -> Option<TailRead> {
        if self.position < self.opened {
            return Some(TailRead::Behind);
        }
        self.channel.after(self.position, &self.filter)
    }

    /// The position as a message without an event. All events up to it were sent or are not for this stream.
    fn place_in_feed(&self) -> Bytes {
        Bytes::from(format!("id: {}\n\n", encode(&self.position.to_string())))
    }

    /// Whether the stream may send its next event.
    async fn goes_on(&mut self) -> bool {
        if self.app.cancel.is_cancelled() || self.permit.ended.is_cancelled() {
            return false;
        }
        if self.checked.elapsed() >= LOOK {
            if self.caller.is_still_known(&self.app).await.is_err() {
                return false;
            }
            self.checked = Instant::now();
        }
        !self.app.auth.is_over(self.caller.until) && self.is_permitted().await
    }

    async fn is_permitted(&mut self) -> bool {
        let access_mark = [self.channel.access_mark(), self.access_mark];
        let holds =
            |judged: Judged| judged.access_mark == access_mark && judged.at.elapsed() < JUDGED_FOR;
        if self.judged.is_some_and(holds) {
            return true;
        }
        let at = Instant::now();
        let _turn = self.channel.turn(&self.app.streams).await;
        let viewer = self.app.engine.watching(&self.caller.who, PERMISSION).await;
        self.judged = viewer.is_ok().then_some(Judged { access_mark, at });
        let permitted = viewer.is_ok();
        self.viewer = viewer.unwrap_or(Viewer::from(self.caller.who.tenant));
        permitted
    }

    /// Reads the next page. Returns whether it succeeded.
    async fn catch_up(&mut self) -> bool {
        let turn = self.channel.turn(&self.app.streams).await;
        let page = read(
            &self.app,
            self.caller.who.tenant,
            Some(self.position),
            super::live::BATCH,
            &self.filter,
        )
        .await;
        drop(turn);
        match page {
            Ok(page) => {
                self.take(&page);
                true
            }
            Err(problem) => {
                tracing::warn!(
                    problem.detail,
                    "an event stream ends, because it could not read events"
                );
                false
            }
        }
    }

    /// Takes events of a page, up to the limit in bytes.
    fn take(&mut self, page: &FeedPage) {
        self.access_mark = page.access_mark;
        let mut bytes = 0;
        for entry in &page.entries {
            if bytes >= TAKEN_BYTES_MAX {
                return;
            }
            if let Some(event) = render(&self.app, entry) {
                bytes += event.text.len();
                self.next.push_back(event);
            }
            self.position = entry.cursor;
        }
        self.position = if page.more { page.end } else { page.horizon };
    }
}
