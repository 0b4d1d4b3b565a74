//! What goes into a command and comes out of it: who asks for what, under which conditions, and the reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uuid::Uuid;

use crate::domain::actor::{Actor, HOST};
use crate::domain::audit::Entry;
use crate::domain::command::Command;
use crate::domain::event::Event;
use crate::domain::ids::TenantId;
use crate::domain::instance::Instance;
use crate::domain::version::Version;
use crate::store::load::Principalship;

/// Who asks.
#[derive(Debug, Clone)]
pub struct Identity {
    pub tenant: TenantId,
    pub tenant_name: String,
    pub subject: String,
    pub roles: Vec<String>,
}

impl Identity {
    /// The host itself, in this tenant.
    pub(super) fn host(tenant: TenantId, tenant_name: &str) -> Identity {
        Identity {
            tenant,
            tenant_name: tenant_name.to_owned(),
            subject: HOST.to_owned(),
            roles: Vec::new(),
        }
    }

    pub(super) fn is_host(&self) -> bool {
        self.subject == HOST
    }

    pub(super) fn principalship(&self) -> Principalship {
        Principalship {
            tenant: self.tenant,
            subject: self.subject.clone(),
            roles: self.roles.clone(),
        }
    }
}

/// An idempotency key, with the fingerprint of the request it stands for.
#[derive(Debug, Clone)]
pub struct Idempotency {
    pub key: String,
    pub fingerprint: [u8; 32],
}

/// What ties a command to its request elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub request_id: Option<String>,
    /// W3C trace context, carried into the events.
    pub traceparent: Option<String>,
    /// Whether the log has had its line of this request; all clones know it.
    told: Arc<AtomicBool>,
}

impl Trace {
    pub fn new(request_id: String, traceparent: String) -> Trace {
        Trace {
            request_id: Some(request_id),
            traceparent: Some(traceparent),
            told: Arc::default(),
        }
    }

    /// The id of the trace, without that of the span.
    pub fn id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.split('-').nth(1)
    }

    /// The log has had its line.
    pub fn tell(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
}

/// A command with its circumstances.
pub struct Request<'a> {
    pub who: &'a Identity,
    pub command: Command,
    /// The revision that the caller believes the instance to have.
    pub if_match: Option<u32>,
    pub idempotency: Option<Idempotency>,
    /// Everything but the commit.
    pub dry_run: bool,
    pub trace: Trace,
    /// The job that the command carries out; its row goes with the commit.
    pub job: Option<Uuid>,
    /// Makes the reply, which is stored in the same commit as the effect.
    pub render: &'a (dyn Fn(&Done<'_>) -> Rendered + Send + Sync),
}

impl Request<'_> {
    /// The key under which its reply is kept.
    pub(super) fn key(&self) -> Option<&Idempotency> {
        self.idempotency.as_ref().filter(|_| !self.dry_run)
    }
}

/// What a command came to, as the reply shows it.
pub struct Done<'a> {
    pub command: &'a Command,
    pub actor: &'a Actor,
    pub version: &'a Version,
    pub instance: &'a Instance,
    pub events: &'a [Event],
    pub entries: &'a [Entry],
    pub dry_run: bool,
}

/// A reply, ready to be sent and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub status: u16,
    pub body: String,
    /// Header lines, `name: value`, one a line.
    pub headers: String,
}

/// A reply, fresh or repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub rendered: Rendered,
    pub replayed: bool,
}

impl Reply {
    pub(super) fn fresh(rendered: Rendered) -> Reply {
        Reply {
            rendered,
            replayed: false,
        }
    }
}
