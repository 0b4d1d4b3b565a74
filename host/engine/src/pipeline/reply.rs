//! Replies stored under an idempotency key: sealed when stored, checked when repeated.

use crate::Engine;
use crate::error::Error;
use crate::request::{Idempotency, Identity, Rendered, Reply};
use wrkflw_audit::seal::reply::{self, Sealed, unsealed};
use wrkflw_audit::seal::{SealKeys, SealVerdict};
use wrkflw_core::audit::sha256;
use wrkflw_store::commit::KeyedReply;
use wrkflw_store::load::StoredReply;
use wrkflw_store::{Store, StoreError, receipts};

/// Repeats a stored reply, if it belongs to the same request and its seal is valid.
pub(crate) fn repeat(
    seals: &SealKeys,
    who: &Identity,
    reply: StoredReply,
    key: &Idempotency,
) -> Result<Reply, Error> {
    if reply.fingerprint != key.fingerprint {
        return Err(Error::KeyReused);
    }
    let body = sha256(reply.body.as_bytes());
    let verdict = reply::verdict(seals, owner(who, key), covered(&reply, &body));
    // An unknown key may be one that another host already seals with. A reply without a seal was changed by hand.
    if matches!(verdict, None | Some(SealVerdict::Invalid)) {
        return Err(Error::Store(StoreError::Inconsistent {
            table: "idempotency_key",
            id: key.key.clone(),
            detail: "it does not match its seal".to_owned(),
        }));
    }
    let rendered = Rendered {
        headers: unsealed(&reply.headers).to_owned(),
        status: reply.status,
        body: reply.body,
    };
    Ok(Reply {
        rendered,
        replayed: true,
    })
}

/// Keeps the key of a request whose commands have keys of their own, before the first of them. Refuses it if it belongs to another
/// request. A repeated request runs its commands again, whose keys have the replies.
pub async fn keep_key(engine: &Engine, who: &Identity, key: &Idempotency) -> Result<(), Error> {
    let nothing = Rendered {
        status: 200,
        body: "{}".to_owned(),
        headers: String::new(),
    };
    let kept = keep(&engine.0.store, &engine.0.seals, who, key, nothing);
    kept.await.map(drop)
}

/// Stores the reply to a request that changed nothing. If a concurrent request has stored a reply under the key first, that
/// reply is repeated or this request is refused, as in [`repeat`].
pub(crate) async fn keep(
    store: &Store,
    seals: &SealKeys,
    who: &Identity,
    key: &Idempotency,
    rendered: Rendered,
) -> Result<Reply, Error> {
    let reply = keyed(seals, who, key, &rendered).reply;
    let known = receipts::keep_reply(store, who.tenant, &who.subject, &key.key, &reply).await?;
    match known {
        None => Ok(Reply::fresh(rendered)),
        Some(known) => repeat(seals, who, known, key),
    }
}

/// The reply to be stored under the key.
pub(crate) fn keyed(
    seals: &SealKeys,
    who: &Identity,
    key: &Idempotency,
    rendered: &Rendered,
) -> KeyedReply {
    let mut reply = StoredReply {
        fingerprint: key.fingerprint.to_vec(),
        status: rendered.status,
        body: rendered.body.clone(),
        headers: rendered.headers.clone(),
    };
    let body = sha256(reply.body.as_bytes());
    reply.headers = reply::seal(seals, owner(who, key), covered(&reply, &body));
    KeyedReply {
        principal: who.subject.clone(),
        key: key.key.clone(),
        reply,
    }
}

/// What a seal covers of a reply whose body has this digest.
fn covered<'a>(reply: &'a StoredReply, body: &'a [u8]) -> Sealed<'a> {
    Sealed {
        fingerprint: &reply.fingerprint,
        status: reply.status,
        body,
        headers: &reply.headers,
    }
}

/// The owner of the key, for its seal: tenant, subject and key.
fn owner<'a>(who: &'a Identity, key: &'a Idempotency) -> (&'a str, &'a str, &'a str) {
    (&who.tenant_name, &who.subject, &key.key)
}
