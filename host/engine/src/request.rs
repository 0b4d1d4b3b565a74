//! The input and output of a command: the caller, the request with its options, and the reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use wrkflw_core::actor::{Actor, HOST};
use wrkflw_core::audit::Entry;
use wrkflw_core::command::Command;
use wrkflw_core::event::Event;
use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::Instance;
use wrkflw_core::version::Version;
use wrkflw_runtime::clock;
use wrkflw_store::load::Caller;

/// Limit of the roles of a caller, in any kind of token.
pub const CALLER_ROLES_MAX: usize = 64;

/// The caller.
#[derive(Debug, Clone)]
pub struct Identity {
    pub tenant: TenantId,
    pub tenant_name: String,
    pub subject: String,
    pub roles: Vec<String>,
    /// Who issued the embed token by which the caller acts. None for a caller with a token of their own.
    pub embedded_by: Option<String>,
}

impl Identity {
    /// The host itself, in this tenant.
    pub(super) fn host(tenant: TenantId, tenant_name: &str) -> Identity {
        Identity {
            tenant,
            tenant_name: tenant_name.to_owned(),
            subject: HOST.to_owned(),
            roles: Vec::new(),
            embedded_by: None,
        }
    }

    pub(super) fn is_host(&self) -> bool {
        self.subject == HOST
    }

    pub(super) fn caller(&self) -> Caller {
        Caller {
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

/// Identifies the request of a command in other logs and traces.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub request_id: Option<String>,
    /// W3C trace context, carried into the events.
    pub traceparent: Option<String>,
    /// Whether the log has a line of this request. All clones share it.
    logged: Arc<AtomicBool>,
}

impl Trace {
    pub fn new(request_id: String, traceparent: String) -> Trace {
        Trace {
            request_id: Some(request_id),
            traceparent: Some(traceparent),
            logged: Arc::default(),
        }
    }

    /// The id of the trace, without that of the span.
    pub fn id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.split('-').nth(1)
    }

    /// Notes that the log has a line of this request.
    pub fn tell(&self) {
        self.logged.store(true, Ordering::Relaxed);
    }

    pub fn is_told(&self) -> bool {
        self.logged.load(Ordering::Relaxed)
    }
}

/// A command with its caller and options.
pub struct Request<'a> {
    pub who: &'a Identity,
    pub command: Command,
    /// The revision that the caller expects the instance to have.
    pub if_match: Option<u32>,
    pub idempotency: Option<Idempotency>,
    /// Do everything but the commit.
    pub dry_run: bool,
    pub trace: Trace,
    /// The job that the command runs. The commit deletes its row.
    pub job: Option<Uuid>,
    /// Makes the reply, which is stored in the same commit as the effect.
    pub render: &'a (dyn Fn(&Done<'_>) -> Rendered + Send + Sync),
}

impl Request<'_> {
    /// The key under which the reply is stored. None on a dry run.
    pub(super) fn key(&self) -> Option<&Idempotency> {
        self.idempotency.as_ref().filter(|_| !self.dry_run)
    }
}

/// The result of a command, for its reply.
pub struct Done<'a> {
    pub command: &'a Command,
    pub actor: &'a Actor,
    pub version: &'a Version,
    pub instance: &'a Instance,
    pub events: &'a [Event],
    pub entries: &'a [Entry],
    /// Whether the actor sees the instance. If not, the command was a signal that found the instance by its correlation key.
    pub is_seen: bool,
    pub dry_run: bool,
}

/// A reply, ready to be sent and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub status: u16,
    pub body: String,
    /// Header lines, each `name: value`.
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

/// The id of a row that a caller adds. It is derived from the idempotency key, if there is one, so that a repeated request finds
/// the row of the first one.
pub(super) fn id_under(kind: &str, subject: &str, key: Option<&str>) -> Uuid {
    let Some(key) = key else {
        return clock::new_id();
    };
    let mut hasher = Sha256::new();
    for part in [kind, subject, key] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
