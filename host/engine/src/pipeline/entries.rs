//! The audit entries of an executed command, hashed onto the stream, and its reply.

use jiff::Timestamp;

use super::executions::Executed;
use super::load::LoadedCommand;
use crate::Engine;
use crate::request::{Done, Rendered, Request};
use wrkflw_audit::evidence::Circumstances;
use wrkflw_core::audit::{Draft, Entry, Head, Stream, StreamKind};
use wrkflw_core::event::Event;
use wrkflw_core::ids::CommandId;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;
use wrkflw_runtime::clock;

impl Engine {
    pub(super) fn entries(
        &self,
        request: &Request<'_>,
        loaded: &LoadedCommand,
        executed: &Executed,
        id: CommandId,
        now: Timestamp,
    ) -> Vec<Entry> {
        let after = &executed.outcome.instance;
        let stream = Stream {
            tenant: request.who.tenant,
            kind: StreamKind::Instance,
            id: after.id.0,
        };
        let mut head = loaded
            .stored
            .as_ref()
            .map_or_else(|| Head::genesis(stream), |stored| stored.head.clone());
        let circumstances = Circumstances {
            id,
            command: &request.command,
            actor: &loaded.actor,
            now,
            version: &loaded.version,
            profile: self.0.sandbox.profile().digest.to_string(),
            request_id: request.trace.request_id.as_deref(),
            evaluations: &executed.evaluations,
            lookups: &executed.lookups,
            made: &executed.made,
        };
        let mut evidence = Some(circumstances.evidence());
        let draft = |event: &Event, evidence| Draft {
            id: clock::new_id(),
            kind: event.kind().to_owned(),
            revision: after.revision,
            command: id,
            actor: (!loaded.actor.is_host()).then(|| loaded.actor.id.clone()),
            task: event.task(),
            payload: Json::of(event),
            evidence,
            salt: clock::random(),
            at: now,
            public: event.is_public(),
            traceparent: request.trace.traceparent.clone(),
        };
        executed
            .outcome
            .events
            .iter()
            .map(|event| head.append(stream, draft(event, evidence.take())))
            .collect()
    }
}

/// The reply to an executed command.
pub(super) fn render(
    request: &Request<'_>,
    loaded: &LoadedCommand,
    instance: &Instance,
    events: &[Event],
    entries: &[Entry],
) -> Rendered {
    (request.render)(&Done {
        command: &request.command,
        actor: &loaded.actor,
        version: &loaded.version,
        instance,
        events,
        entries,
        is_seen: loaded.is_seen,
        dry_run: request.dry_run,
    })
}
