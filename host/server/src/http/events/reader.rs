//! One event stream: what it sends next, and when it ends. It is asked only when its client can take something, so a
//! client that reads nothing costs nothing but its place.
//!
//! It ends when its token does, and soon after its caller lost the permission. What was committed after the permission
//! went is not sent: every read has a mark that changes with anybody's groups and permissions, and a change is looked into before
//! anything of that read is sent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::live::{Channel, is_full, told};
use super::places::Place;
use super::tail::Found;
use super::{PERMISSION, read};
use crate::http::App;
use crate::http::extract::Listener;
use wrkflw_store::feed::{FeedCursor, FeedPage};

/// A comment keeps intermediaries from closing a silent stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often a stream looks whether its token is still good, with nothing to send.
const LOOK: Duration = Duration::from_secs(1);
/// How long a permission is taken to hold without a change that was seen.
const JUDGED_FOR: Duration = Duration::from_secs(30);
/// What a stream takes of a page that it read by itself, in bytes.
const TAKEN_BYTES_MAX: usize = 128 * 1024;

pub(super) struct Reader {
    app: App,
    caller: Listener,
    place: Place,
    channel: Arc<Channel>,
    moved: watch::Receiver<u64>,
    position: FeedCursor,
    /// Read, and not sent yet.
    next: VecDeque<Bytes>,
    /// As of [`FeedPage`], when `next` was read.
    access_mark: Option<Uuid>,
    judged: Option<Judged>,
    /// When the token was last checked.
    checked: Instant,
    spoke: Instant,
}

/// When the permission was last found, and by what marks of the tenant and of this stream's own reading.
#[derive(Debug, Clone, Copy)]
struct Judged {
    access_mark: [Option<Uuid>; 2],
    at: Instant,
}

impl Reader {
    /// Goes on with a page that was read after `position`.
    pub(super) fn new(
        app: App,
        caller: Listener,
        place: Place,
        position: FeedCursor,
        page: &FeedPage,
    ) -> Reader {
        let channel = app.streams.join(&app, caller.who.tenant);
        let mut reader = Reader {
            moved: channel.moved(),
            channel,
            app,
            caller,
            place,
            position,
            next: VecDeque::new(),
            access_mark: page.access_mark,
            judged: None,
            checked: Instant::now(),
            spoke: Instant::now(),
        };
        reader.take(page);
        reader
    }

    /// What to send next; nothing when the stream ends.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.goes_on().await {
                return None;
            }
            if let Some(event) = self.next.pop_front() {
                self.spoke = Instant::now();
                return Some(event);
            }
            self.moved.borrow_and_update();
            match self.channel.after(self.position) {
                Some(Found::Behind) => {
                    if !self.catch_up().await {
                        return None;
                    }
                    continue;
                }
                Some(Found::Next(next, position)) => {
                    (self.next, self.position) = (next, position);
                    if !self.next.is_empty() {
                        continue;
                    }
                }
                None => {}
            }
            if self.spoke.elapsed() >= HEARTBEAT {
                self.spoke = Instant::now();
                return Some(Bytes::from_static(b":\n\n"));
            }
            tokio::select! {
                () = self.app.cancel.cancelled() => return None,
                () = self.place.ended.cancelled() => return None,
                _ = self.moved.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Whether the caller may be sent what comes next.
    async fn goes_on(&mut self) -> bool {
        if self.app.cancel.is_cancelled() || self.place.ended.is_cancelled() {
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
        let permitted = self.app.engine.permit(&self.caller.who, PERMISSION).await;
        self.judged = permitted.is_ok().then_some(Judged { access_mark, at });
        permitted.is_ok()
    }

    /// Reads the next page by itself. Whether that went well.
    async fn catch_up(&mut self) -> bool {
        let turn = self.channel.turn(&self.app.streams).await;
        let page = read(
            &self.app,
            self.caller.who.tenant,
            Some(self.position),
            super::live::BATCH,
        )
        .await;
        drop(turn);
        match page {
            Ok(page) => {
                self.take(&page);
                true
            }
            Err(problem) => {
                tracing::warn!(problem.detail, "an event stream ends");
                false
            }
        }
    }

    /// Takes as much of a page as is to be held for one client.
    fn take(&mut self, page: &FeedPage) {
        self.access_mark = page.access_mark;
        let mut bytes = 0;
        for entry in &page.entries {
            if bytes >= TAKEN_BYTES_MAX {
                return;
            }
            if let Some(told) = told(&self.app, entry) {
                bytes += told.text.len();
                self.next.push_back(told.text);
            }
            self.position = entry.0;
        }
        if !is_full(page) {
            self.position = page.horizon;
        }
    }
}
