//! What a command leaves: its audit entries, hashed onto the stream, and its reply.

use jiff::Timestamp;

use super::Engine;
use super::evidence::Circumstances;
use super::ground::Ground;
use super::request::{Done, Rendered, Request};
use super::turns::Turned;
use crate::clock;
use crate::domain::audit::{Draft, Entry, Head, Stream, StreamKind};
use crate::domain::event::Event;
use crate::domain::ids::CommandId;
use crate::domain::instance::Instance;
use crate::domain::json::Json;

impl Engine {
    pub(super) fn entries(
        &self,
        request: &Request<'_>,
        ground: &Ground,
        turned: &Turned,
        id: CommandId,
        now: Timestamp,
    ) -> Vec<Entry> {
        let after = &turned.outcome.instance;
        let stream = Stream {
            tenant: request.who.tenant,
            kind: StreamKind::Instance,
            id: after.id.0,
        };
        let mut head = ground
            .stored
            .as_ref()
            .map_or_else(|| Head::genesis(stream), |stored| stored.head.clone());
        let circumstances = Circumstances {
            id,
            command: &request.command,
            actor: &ground.actor,
            now,
            version: &ground.version,
            profile: self.0.sandbox.profile().digest.to_string(),
            request_id: request.trace.request_id.as_deref(),
            evaluations: &turned.evaluations,
            lookups: &turned.lookups,
            made: &turned.made,
        };
        let mut evidence = Some(circumstances.evidence());
        let draft = |event: &Event, evidence| Draft {
            id: clock::new_id(),
            kind: event.kind().to_owned(),
            revision: after.revision,
            command: id,
            actor: (!ground.actor.is_host()).then(|| ground.actor.id.clone()),
            task: event.task(),
            payload: Json::of(event),
            evidence,
            salt: clock::random(),
            at: now,
            public: event.is_public(),
            traceparent: request.trace.traceparent.clone(),
        };
        turned
            .outcome
            .events
            .iter()
            .map(|event| head.append(stream, draft(event, evidence.take())))
            .collect()
    }
}

/// The reply to a command that came to this.
pub(super) fn render(
    request: &Request<'_>,
    ground: &Ground,
    instance: &Instance,
    events: &[Event],
    entries: &[Entry],
) -> Rendered {
    (request.render)(&Done {
        command: &request.command,
        actor: &ground.actor,
        version: &ground.version,
        instance,
        events,
        entries,
        dry_run: request.dry_run,
    })
}
