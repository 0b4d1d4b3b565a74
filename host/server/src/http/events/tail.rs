//! The newest events of a tenant, rendered once for all its streams. A stream that fell behind reads the database itself until it
//! reaches these events. A stream that begins at an earlier position does the same, up to the end of the feed at its beginning.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use uuid::Uuid;

use wrkflw_core::event_filter::{EventFacts, EventFilter};
use wrkflw_core::participant::Circle;
use wrkflw_store::feed::FeedCursor;
use wrkflw_store::viewer::Viewer;

/// Maximum size of a tail, in bytes and in events.
const BYTES_MAX: usize = 256 * 1024;
const EVENTS_MAX: usize = 1_000;
/// Maximum number of events that a stream takes at once.
const TAKEN_MAX: usize = 100;

/// An event as it is sent, and its position.
#[derive(Debug, Clone)]
pub(super) struct RenderedEvent {
    pub(super) cursor: FeedCursor,
    pub(super) facts: EventFacts,
    pub(super) text: Bytes,
    /// Who sees its instance; none: everybody of the tenant.
    pub(super) circle: Option<Arc<Circle>>,
}

impl RenderedEvent {
    /// Whether the viewer sees the instance of the event.
    pub(super) fn is_for(&self, viewer: &Viewer) -> bool {
        viewer.is_in(self.circle.as_deref(), self.facts.definition_key())
    }
}

/// All events after `from`, up to `end`.
#[derive(Debug)]
pub(super) struct Tail {
    from: FeedCursor,
    end: FeedCursor,
    events: VecDeque<RenderedEvent>,
    bytes: usize,
    /// The access mark of the last read.
    access_mark: Option<Uuid>,
}

/// The events after a position.
#[derive(Debug)]
pub(super) enum TailRead {
    /// The next events, and the position after them. Empty if there are none yet.
    Next(VecDeque<RenderedEvent>, FeedCursor),
    /// The next events are not in the tail any more.
    Behind,
}

impl Tail {
    /// An empty tail for the events after `end`.
    pub(super) fn begin(end: FeedCursor, access_mark: Option<Uuid>) -> Tail {
        Tail {
            from: end,
            end,
            events: VecDeque::new(),
            bytes: 0,
            access_mark,
        }
    }

    pub(super) fn end(&self) -> FeedCursor {
        self.end
    }

    pub(super) fn access_mark(&self) -> Option<Uuid> {
        self.access_mark
    }

    /// Adds the events from [`Tail::end`] up to `end`. Returns whether streams wait for this change.
    pub(super) fn add(
        &mut self,
        events: Vec<RenderedEvent>,
        end: FeedCursor,
        access_mark: Option<Uuid>,
    ) -> bool {
        let news = !events.is_empty() || access_mark != self.access_mark;
        (self.end, self.access_mark) = (end, access_mark);
        self.bytes += events.iter().map(|one| one.text.len()).sum::<usize>();
        self.events.extend(events);
        while self.bytes > BYTES_MAX || self.events.len() > EVENTS_MAX {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
            self.from = oldest.cursor;
        }
        news
    }

    /// The events after `position` that the filter lets pass.
    pub(super) fn after(&self, position: FeedCursor, filter: &EventFilter) -> TailRead {
        if position < self.from {
            return TailRead::Behind;
        }
        let begin = self.events.partition_point(|one| one.cursor <= position);
        let is_wanted = |one: &&RenderedEvent| filter.matches(&one.facts);
        let next = self.events.range(begin..).filter(is_wanted);
        let mut next: Vec<_> = next.take(TAKEN_MAX + 1).collect();
        let is_cut = next.len() > TAKEN_MAX;
        next.truncate(TAKEN_MAX);
        let reached = match next.last() {
            Some(last) if is_cut => last.cursor,
            // Entries that are not public may follow the last event.
            _ => self.end.max(position),
        };
        TailRead::Next(next.into_iter().cloned().collect(), reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrkflw_core::cloudevent::PublicEntry;
    use wrkflw_core::event::EventContext;
    use wrkflw_core::ids::{InstanceId, VersionRef};
    use wrkflw_core::instance::Entity;

    #[expect(clippy::unnecessary_wraps, reason = "as a page has it")]
    fn mark(number: u128) -> Option<Uuid> {
        Some(Uuid::from_u128(number))
    }

    fn at(pos: i64) -> FeedCursor {
        FeedCursor {
            pos,
            ..FeedCursor::before(1, 7)
        }
    }

    fn event(pos: i64, length: usize) -> RenderedEvent {
        let entry = PublicEntry {
            tenant: "acme".into(),
            instance: InstanceId(Uuid::nil()),
            id: Uuid::nil(),
            kind: "TASK_CLAIMED".into(),
            payload: "{}".into(),
            event_seq: 1,
            occurred_at: jiff::Timestamp::UNIX_EPOCH,
            actor: Some(if pos % 2 == 0 { "ada" } else { "bob" }.into()),
            definition: VersionRef {
                key: "approval".into(),
                version: 1,
            },
            entity: Entity {
                kind: "invoice".into(),
                id: "7".into(),
            },
            traceparent: None,
            revision: 1,
            context: EventContext::default(),
        };
        RenderedEvent {
            cursor: at(pos),
            facts: EventFacts::of(&entry),
            text: vec![b'x'; length].into(),
            circle: None,
        }
    }

    /// How many events are next, and the position after them. None if the stream fell behind.
    fn next(tail: &Tail, pos: i64) -> Option<(usize, i64)> {
        match tail.after(at(pos), &EventFilter::default()) {
            TailRead::Next(events, reached) => Some((events.len(), reached.pos)),
            TailRead::Behind => None,
        }
    }

    #[test]
    fn a_stream_goes_on_from_where_it_stands() {
        let mut tail = Tail::begin(at(10), mark(1));
        assert_eq!(next(&tail, 9), None, "what stands before is not here");
        assert_eq!(next(&tail, 10), Some((0, 10)));
        assert!(tail.add(vec![event(11, 1), event(13, 1)], at(20), mark(1)));
        assert_eq!(next(&tail, 10), Some((2, 20)));
        assert_eq!(next(&tail, 11), Some((1, 20)));
        assert_eq!(next(&tail, 12), Some((1, 20)));
        // The stream may have read further by itself.
        assert_eq!(next(&tail, 25), Some((0, 25)));
        assert!(!tail.add(Vec::new(), at(30), mark(1)), "nothing new");
        assert!(
            tail.add(Vec::new(), at(30), mark(2)),
            "somebody may do less"
        );
        assert_eq!(next(&tail, 20), Some((0, 30)));
    }

    #[test]
    fn a_filter_passes_over_what_is_not_asked_for() {
        let mut tail = Tail::begin(at(10), mark(1));
        tail.add(
            vec![event(11, 1), event(12, 1), event(13, 1)],
            at(20),
            mark(1),
        );
        let of = |actor: &str| EventFilter {
            actor: Some(actor.into()),
            ..EventFilter::default()
        };
        for (actor, count) in [("ada", 1), ("bob", 2), ("eve", 0)] {
            let TailRead::Next(events, reached) = tail.after(at(10), &of(actor)) else {
                panic!("it is here");
            };
            assert_eq!((events.len(), reached), (count, at(20)), "{actor}");
        }
    }

    #[test]
    fn what_is_taken_and_kept_is_bounded() {
        let mut tail = Tail::begin(at(0), mark(1));
        let half = i64::try_from(TAKEN_MAX).expect("a small number");
        let many = (1..=2 * half).map(|pos| event(pos, 1));
        tail.add(many.collect(), at(1_000), mark(1));
        assert_eq!(next(&tail, 0), Some((TAKEN_MAX, half)));
        assert_eq!(next(&tail, half), Some((TAKEN_MAX, 1_000)));
        tail.add(vec![event(1_001, BYTES_MAX)], at(1_001), mark(1));
        assert_eq!(next(&tail, half), None);
        assert_eq!(next(&tail, 1_000), Some((1, 1_001)));
        tail.add(vec![event(1_002, BYTES_MAX + 1)], at(1_002), mark(1));
        assert_eq!(next(&tail, 1_001), None, "too large to be kept");
        assert_eq!(next(&tail, 1_002), Some((0, 1_002)));
        let many = (2_000..).take(EVENTS_MAX + 1).map(|pos| event(pos, 1));
        tail.add(many.collect(), at(9_000), mark(1));
        assert_eq!(tail.events.len(), EVENTS_MAX);
    }
}
