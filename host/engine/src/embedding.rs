//! Embed tokens. A product's server requests a token for the person of its own session. With the token, the product's page shows
//! one instance to this person, and may let them decide in it.
//!
//! A token is sealed with the seal keys and stored nowhere, so every host of the installation takes it. Each request checks
//! permissions, groups and visibility again. The roles are those in the token, even if the issuer has lost its own since.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;
use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::permission::need;
use super::request::{CALLER_ROLES_MAX, Identity};
use super::validation::{check_id, check_person};
use wrkflw_audit::seal::token;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;
use wrkflw_runtime::clock;
use wrkflw_store::instances::{self, InstanceFilter};

/// The permission to issue embed tokens: for any person, with roles that permit no more than the issuer's own.
pub const EMBED_ISSUE: &str = "embed:issue";
/// How long an embed token is valid at most.
pub const EMBEDDING_MAX: Duration = Duration::from_hours(1);
/// The longest origin.
const ORIGIN_BYTES_MAX: usize = 300;
/// The longest embed token; longer ones are refused without a check.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Statements that look for the last instance about an entity. Each examines up to some thousand instances.
const LOOKS_MAX: usize = 20;

/// The actions that a page may take on the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Read,
    Decide,
}

/// The subject of a token: an instance, or the last instance about an entity that the person sees.
#[derive(Debug, Clone)]
pub enum EmbedTarget {
    Instance(InstanceId),
    Entity(Entity),
}

/// A requested embed token.
#[derive(Debug, Clone)]
pub struct NewEmbedding {
    /// The person of the product's session.
    pub subject: String,
    /// The roles of the person. They permit no more than the issuer's roles.
    pub roles: Vec<String>,
    pub target: EmbedTarget,
    /// The origin of the page, such as `https://documents.example`.
    pub origin: String,
    pub scope: Scope,
    pub valid: Duration,
}

/// The content of an embed token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Embedding {
    pub tenant: String,
    pub subject: String,
    pub roles: Vec<String>,
    pub instance: Uuid,
    pub origin: String,
    pub scope: Scope,
    /// Who issued it.
    pub issuer: String,
    /// The time of its expiry, in milliseconds of the Unix epoch.
    pub until: i64,
}

impl Embedding {
    /// The time of the token's expiry.
    pub fn until(&self) -> Timestamp {
        Timestamp::from_millisecond(self.until).unwrap_or(Timestamp::MIN)
    }
}

/// Issues embed tokens and reads them.
#[derive(Clone, Copy)]
pub struct Embeddings<'a> {
    pub(super) engine: &'a Engine,
}

impl Embeddings<'_> {
    /// Issues an embed token. Fails if the person does not see the instance, or if their roles permit more than the issuer's.
    pub async fn issue(
        self,
        issuer: &Identity,
        new: NewEmbedding,
    ) -> Result<(Embedding, String), Error> {
        let own = self.engine.actor(issuer).await?;
        need(&own, EMBED_ISSUE)?;
        check(&new)?;
        let subject = Identity {
            subject: new.subject.clone(),
            roles: new.roles.clone(),
            ..issuer.clone()
        };
        let lent = self.engine.actor(&subject).await?;
        if let Some(more) = lent.permissions.iter().find(|one| !own.may(one)) {
            let detail = format!("these roles permit {more}, which yours do not");
            return Err(Error::invalid("/roles", "not_permitted", detail));
        }
        if !lent.may("instance:read") {
            let detail = "these roles do not permit instance:read";
            return Err(Error::invalid("/roles", "not_permitted", detail));
        }
        let instance = match &new.target {
            EmbedTarget::Instance(id) => self.engine.read(&subject, *id).await?.instance.id.0,
            EmbedTarget::Entity(entity) => self.last_about(&subject, entity).await?,
        };
        let valid = new.valid.min(EMBEDDING_MAX);
        let until = clock::later(self.engine.0.clock.now(), valid);
        let embedding = Embedding {
            tenant: issuer.tenant_name.clone(),
            subject: new.subject,
            roles: new.roles,
            instance,
            origin: new.origin,
            scope: new.scope,
            issuer: issuer.subject.clone(),
            until: until.as_millisecond(),
        };
        let text = serde_json::to_string(&embedding).expect("texts and numbers are JSON");
        let token = token::seal(self.engine.seals(), &text);
        if token.len() > TOKEN_BYTES_MAX {
            let detail = "the token would be too long; name fewer or shorter roles";
            return Err(Error::invalid("/roles", "too_long", detail));
        }
        tracing::info!(
            issuer = embedding.issuer,
            subject = embedding.subject,
            %instance,
            origin = embedding.origin,
            "an embed token was issued"
        );
        Ok((embedding, token))
    }

    /// The content of an embed token. None if no host of this installation issued it, or if it has expired.
    pub fn verify(self, token: &str) -> Option<Embedding> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let text = token::open(self.engine.seals(), token)?;
        let embedding: Embedding = serde_json::from_str(&text).ok()?;
        (self.engine.0.clock.now() < embedding.until()).then_some(embedding)
    }

    /// The last instance about the entity that this person sees.
    async fn last_about(self, who: &Identity, entity: &Entity) -> Result<Uuid, Error> {
        let viewer = self.engine.viewing(who, "instance:read").await?;
        let mut filter = InstanceFilter {
            entity_type: Some(entity.kind.clone()),
            entity_id: Some(entity.id.clone()),
            limit: 1,
            ..InstanceFilter::default()
        };
        for _ in 0..LOOKS_MAX {
            let found = instances::list(self.engine.reader(), &viewer, &filter).await?;
            if let Some(last) = found.lines.first() {
                return Ok(last.id);
            }
            if found.next.is_none() {
                let id = format!("{}/{}", entity.kind, entity.id);
                return Err(Error::missing("instance about", id));
            }
            filter.after = found.next;
        }
        let detail = "too many instances about it are not shown to this person; name the instance";
        Err(Error::invalid("/entityId", "too_many", detail))
    }
}

fn check(new: &NewEmbedding) -> Result<(), Error> {
    check_person("/subject", &new.subject)?;
    if new.roles.len() > CALLER_ROLES_MAX {
        let detail = format!("at most {CALLER_ROLES_MAX} roles");
        return Err(Error::invalid("/roles", "too_many", detail));
    }
    for (place, role) in new.roles.iter().enumerate() {
        check_id(&format!("/roles/{place}"), role)?;
    }
    if let EmbedTarget::Entity(entity) = &new.target {
        check_id("/entityType", &entity.kind)?;
        check_id("/entityId", &entity.id)?;
    }
    if !is_origin(&new.origin) {
        let detail =
            "the origin of the page as browsers write it, such as https://documents.example";
        return Err(Error::malformed("/origin", detail));
    }
    Ok(())
}

/// Whether a text is an origin of a page, in the form in which browsers send it.
fn is_origin(text: &str) -> bool {
    if text.len() > ORIGIN_BYTES_MAX {
        return false;
    }
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for origin in [
            "https://documents.example",
            "http://127.0.0.1:3000",
            "https://documents.example:8443",
            "http://[::1]:3000",
        ] {
            assert!(is_origin(origin), "{origin}");
        }
        for other in [
            "",
            "*",
            "null",
            "documents.example",
            "https://documents.example/",
            "https://documents.example:443",
            "https://Documents.example",
            "https://user@documents.example",
            "https://documents.example/page",
            "ftp://documents.example",
            "javascript:alert(1)",
        ] {
            assert!(!is_origin(other), "{other}");
        }
        let long = format!("https://{}.example", "a".repeat(ORIGIN_BYTES_MAX));
        assert!(!is_origin(&long));
    }
}
