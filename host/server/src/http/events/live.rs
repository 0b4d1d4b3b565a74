//! One reader for all event streams of this host. It looks at the tenants that have streams in turn, one read at a time,
//! so that streams cost the database the same however many there are, and a tenant with many events takes no more of it
//! than another. It works for as long as there is a stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use uuid::Uuid;

use super::places::Places;
use super::tail::{Found, Tail, Told};
use crate::http::App;
use crate::http::page::encode;
use wrkflw_core::cloudevent::CloudEvent;
use wrkflw_core::ids::TenantId;
use wrkflw_store::StoreError;
use wrkflw_store::feed::{FeedCursor, FeedPage};

/// How often it looks for what other hosts committed.
const POLL: Duration = Duration::from_millis(500);
/// The least time between two looks: what is committed meanwhile is told together.
const GATHER: Duration = Duration::from_millis(25);
/// The pause after a failure of the database.
const BACK_OFF: Duration = Duration::from_secs(1);
/// Events read at once.
pub(super) const BATCH: i64 = 100;
/// Streams that read the database by themselves at a time, because they fell behind: so many of this host, and one of
/// each tenant.
const CATCHING_UP_MAX: usize = 2;

/// The event streams of a host.
#[derive(Debug)]
pub(in crate::http) struct Streams {
    pub(super) places: Arc<Places>,
    channels: Mutex<Channels>,
    /// Told when a tenant has its first stream.
    joined: Notify,
    catching_up: Semaphore,
}

#[derive(Debug, Default)]
struct Channels {
    of: BTreeMap<TenantId, Weak<Channel>>,
    /// Whether the reader works.
    followed: bool,
}

/// What the streams of a tenant share.
#[derive(Debug)]
pub(super) struct Channel {
    /// None until the reader has come round.
    tail: Mutex<Option<Tail>>,
    /// Counts what streams wait for.
    moved: watch::Sender<u64>,
    catching_up: Semaphore,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            places: Arc::default(),
            channels: Mutex::default(),
            joined: Notify::new(),
            catching_up: Semaphore::new(CATCHING_UP_MAX),
        }
    }
}

impl Channel {
    fn new() -> Channel {
        Channel {
            tail: Mutex::new(None),
            moved: watch::Sender::new(0),
            catching_up: Semaphore::new(1),
        }
    }

    fn tail(&self) -> MutexGuard<'_, Option<Tail>> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn moved(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// What is next; nothing until the reader has come round.
    pub(super) fn after(&self, position: FeedCursor) -> Option<Found> {
        self.tail().as_ref().map(|tail| tail.after(position))
    }

    /// As of [`FeedPage`], when the tail was read last.
    pub(super) fn access_mark(&self) -> Option<Uuid> {
        self.tail().as_ref().and_then(Tail::access_mark)
    }

    /// The right to read the database for one stream: one after the other in a tenant, and few of all.
    pub(super) async fn turn<'a>(
        &'a self,
        streams: &'a Streams,
    ) -> (SemaphorePermit<'a>, SemaphorePermit<'a>) {
        let own = self.catching_up.acquire().await;
        let one = streams.catching_up.acquire().await;
        let open = "semaphores of streams are never closed";
        (own.expect(open), one.expect(open))
    }

    /// Reads on; whether there may be more.
    async fn read(&self, app: &App, tenant: TenantId) -> Result<bool, StoreError> {
        let end = self.tail().as_ref().map(Tail::end);
        // Of what was before, nothing is kept: whoever wants it reads it.
        let limit = if end.is_some() { BATCH } else { 0 };
        let page = app.engine.reader().feed(tenant, end, limit).await?;
        let mut news = Vec::new();
        for entry in &page.entries {
            // An entry may be large: others have their turn between two.
            tokio::task::yield_now().await;
            news.extend(told(app, entry));
        }
        let mut tail = self.tail();
        let (is_news, more) = match tail.as_mut() {
            Some(tail) if !page.is_astray => {
                let more = is_full(&page);
                let end = if more { page.end } else { page.horizon };
                (tail.add(news, end, page.access_mark), more)
            }
            // The first look, or a database that was restored.
            _ => {
                *tail = Some(Tail::begin(page.horizon, page.access_mark));
                (true, false)
            }
        };
        drop(tail);
        if is_news {
            self.moved.send_modify(|count| *count += 1);
        }
        Ok(more)
    }
}

/// Whether more may stand behind the page.
pub(super) fn is_full(page: &FeedPage) -> bool {
    i64::try_from(page.entries.len()).is_ok_and(|read| read >= BATCH)
}

/// An event as server-sent events have it; none for a damaged entry.
pub(super) fn told(
    app: &App,
    (cursor, entry): &(FeedCursor, wrkflw_core::cloudevent::PublicEntry),
) -> Option<Told> {
    let event = CloudEvent::of(entry, &app.naming).ok()?.structured();
    // Canonical JSON has no line breaks.
    let text = format!(
        "id: {}\ndata: {}\n\n",
        encode(&cursor.to_string()),
        event.as_str()
    );
    Some(Told {
        cursor: *cursor,
        text: Bytes::from(text),
    })
}

impl Streams {
    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the streams of this tenant share. Begins to read, if nobody does.
    pub(super) fn join(&self, app: &App, tenant: TenantId) -> Arc<Channel> {
        let mut channels = self.channels();
        let known = channels.of.get(&tenant).and_then(Weak::upgrade);
        let channel = known.unwrap_or_else(|| {
            let channel = Arc::new(Channel::new());
            channels.of.insert(tenant, Arc::downgrade(&channel));
            self.joined.notify_one();
            channel
        });
        if !channels.followed {
            channels.followed = true;
            app.tracker.spawn(follow(app.clone()));
        }
        channel
    }

    /// The tenants that have streams; none when the reader is to end.
    fn present(&self) -> Option<Vec<(TenantId, Arc<Channel>)>> {
        let mut channels = self.channels();
        let mut present = Vec::new();
        channels.of.retain(|tenant, channel| {
            let channel = channel.upgrade();
            present.extend(channel.clone().map(|channel| (*tenant, channel)));
            channel.is_some()
        });
        channels.followed = !present.is_empty();
        channels.followed.then_some(present)
    }
}

/// Reads on for all tenants, for as long as there are streams.
async fn follow(app: App) {
    let mut commits = app.engine.commits();
    while !app.cancel.is_cancelled() {
        commits.borrow_and_update();
        let Some(channels) = app.streams.present() else {
            return;
        };
        let pause = match round(&app, channels).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => {
                tokio::select! {
                    () = app.cancel.cancelled() => return,
                    _ = commits.changed() => {}
                    () = app.streams.joined.notified() => {}
                    () = tokio::time::sleep(POLL) => {}
                }
                GATHER
            }
            Err(error) => {
                tracing::warn!(%error, "event streams wait");
                BACK_OFF
            }
        };
        tokio::select! {
            () = app.cancel.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One look at each tenant; whether one of them may have more.
async fn round(app: &App, channels: Vec<(TenantId, Arc<Channel>)>) -> Result<bool, StoreError> {
    let mut more = false;
    for (tenant, channel) in channels {
        more |= channel.read(app, tenant).await?;
    }
    Ok(more)
}
