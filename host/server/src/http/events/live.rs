//! One task that reads events for all event streams of this host. It reads for the tenants with streams in turn, one read
//! at a time. So the load of the database does not grow with the number of streams, and tenants share the reads equally.
//! The task runs while there are streams.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use uuid::Uuid;

use super::stream_limits::StreamLimits;
use super::tail::{RenderedEvent, Tail, TailRead};
use crate::http::App;
use crate::http::page::encode;
use wrkflw_core::cloudevent::CloudEvent;
use wrkflw_core::event_filter::{EventFacts, EventFilter};
use wrkflw_core::ids::TenantId;
use wrkflw_store::StoreError;
use wrkflw_store::feed::{self, FeedCursor, FeedEntry};

/// How often it looks for commits of other hosts.
const POLL: Duration = Duration::from_millis(500);
/// Minimum time between two rounds. Commits in between are read together.
const GATHER: Duration = Duration::from_millis(25);
/// The pause after a failure of the database, or of the events of one tenant.
const BACK_OFF: Duration = Duration::from_secs(1);
/// Maximum number of events of one read.
pub(super) const BATCH: i64 = 100;
/// Maximum number of streams of this host that read the database themselves at a time, because they fell behind. The
/// limit of each tenant is one.
const CATCHING_UP_MAX: usize = 2;

/// The event streams of a host.
#[derive(Debug)]
pub(in crate::http) struct Streams {
    pub(super) limits: Arc<StreamLimits>,
    channels: Mutex<Channels>,
    /// Notified when a tenant has its first stream.
    joined: Notify,
    catching_up: Semaphore,
}

#[derive(Debug, Default)]
struct Channels {
    of: BTreeMap<TenantId, Weak<Channel>>,
    /// Whether the task runs.
    followed: bool,
}

/// The events that the streams of a tenant share.
#[derive(Debug)]
pub(super) struct Channel {
    /// None before the first read.
    tail: Mutex<Option<Tail>>,
    /// Counts the changes that streams wait for.
    moved: watch::Sender<u64>,
    catching_up: Semaphore,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            limits: Arc::default(),
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

    /// The events after `position` that match the filter. None before the first read.
    pub(super) fn after(&self, position: FeedCursor, filter: &EventFilter) -> Option<TailRead> {
        self.tail()
            .as_ref()
            .map(|tail| tail.after(position, filter))
    }

    /// The access mark of the last read.
    pub(super) fn access_mark(&self) -> Option<Uuid> {
        self.tail().as_ref().and_then(Tail::access_mark)
    }

    /// Waits until one stream may read the database: one at a time in a tenant, and [`CATCHING_UP_MAX`] on this host.
    pub(super) async fn turn<'a>(
        &'a self,
        streams: &'a Streams,
    ) -> (SemaphorePermit<'a>, SemaphorePermit<'a>) {
        let own = self.catching_up.acquire().await;
        let one = streams.catching_up.acquire().await;
        let open = "semaphores of streams are never closed";
        (own.expect(open), one.expect(open))
    }

    /// Reads the next events. Returns whether there may be more.
    async fn read(&self, app: &App, tenant: TenantId) -> Result<bool, StoreError> {
        let end = self.tail().as_ref().map(Tail::end);
        // Earlier events are not kept: streams that need them read them from the database.
        let limit = if end.is_some() { BATCH } else { 0 };
        let page = feed::page(
            app.engine.reader(),
            tenant,
            end,
            limit,
            &EventFilter::default(),
        )
        .await?;
        let mut news = Vec::new();
        for entry in &page.entries {
            // An entry may be large, so let other tasks run in between.
            tokio::task::yield_now().await;
            news.extend(render(app, entry));
        }
        let mut tail = self.tail();
        let (is_news, more) = match tail.as_mut() {
            Some(tail) if !page.is_astray => {
                let more = page.more;
                let end = if more { page.end } else { page.horizon };
                (tail.add(news, end, page.access_mark), more)
            }
            // The first read, or the database was restored.
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

/// An event in the format of server-sent events. None if its entry is damaged.
pub(super) fn render(
    app: &App,
    FeedEntry {
        cursor,
        entry,
        circle,
        ..
    }: &FeedEntry,
) -> Option<RenderedEvent> {
    let event = CloudEvent::of(entry, &app.naming).ok()?.structured();
    // Canonical JSON has no line breaks.
    let text = format!(
        "id: {}\ndata: {}\n\n",
        encode(&cursor.to_string()),
        event.as_str()
    );
    Some(RenderedEvent {
        cursor: *cursor,
        facts: EventFacts::of(entry),
        text: Bytes::from(text),
        circle: circle.clone(),
    })
}

impl Streams {
    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The channel of this tenant. Starts the task if it does not run.
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

    /// The tenants that have streams. None if there are no streams, so that the task ends.
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

/// Reads for all tenants while there are streams.
async fn follow(app: App) {
    let mut commits = app.engine.commits();
    let mut failed = BTreeMap::new();
    while !app.cancel.is_cancelled() {
        commits.borrow_and_update();
        let Some(channels) = app.streams.present() else {
            return;
        };
        let pause = match round(&app, channels, &mut failed).await {
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
                tracing::warn!(%error, "events could not be read; event streams wait");
                BACK_OFF
            }
        };
        tokio::select! {
            () = app.cancel.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Reads once for each tenant. Returns whether one of them may have more.
///
/// If the events of a tenant cannot be read, for example because only a later release can read their version, the task leaves this
/// tenant out for [`BACK_OFF`], so that it delays no other tenant. An outage of the database ends the round.
async fn round(
    app: &App,
    channels: Vec<(TenantId, Arc<Channel>)>,
    failed: &mut BTreeMap<TenantId, Instant>,
) -> Result<bool, StoreError> {
    failed.retain(|_, at| at.elapsed() < BACK_OFF);
    let mut more = false;
    for (tenant, channel) in channels {
        if failed.contains_key(&tenant) {
            continue;
        }
        match channel.read(app, tenant).await {
            Ok(found) => more |= found,
            Err(error) if error.outage().is_some() => return Err(error),
            Err(error) => {
                tracing::warn!(tenant.id = tenant.0, %error, "events of a tenant could not be read; its event streams wait");
                failed.insert(tenant, Instant::now());
            }
        }
    }
    Ok(more)
}
