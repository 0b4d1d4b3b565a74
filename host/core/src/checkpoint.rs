//! Checkpoints: the signed root of a tenant's Merkle tree at one size. Everybody who keeps a checkpoint can detect a later
//! change of the entries that it covers.
//!
//! A leaf is a digest of two parts: an entry's hash, which covers the content, and the columns that the hash does not cover:
//! transaction id, position in the feed and trace context. Signing and storage are elsewhere.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::ids::hex;
use super::json::Json;
use super::merkle::Hash;

/// The domain separator before the members that a signature covers. Change it whenever they change.
const DOMAIN: &str = "wrkflw checkpoint 1\n";
/// The name of the event's type below the operator's prefix.
pub const EVENT: &str = "audit.checkpoint";
/// The Kafka topic of checkpoints beside a topic of events, unless another one is set.
pub fn topic_beside(events: &str) -> String {
    format!("{events}.checkpoints")
}

/// The leaf kind of refused attempts, which belong to no stream.
pub const REFUSED: &str = "refused";

/// A root and its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checkpoint {
    /// The tenant's public name.
    pub tenant: String,
    /// Counts the tenant's checkpoints from 1, without gaps.
    pub number: u64,
    /// Leaves of the tree.
    pub size: u64,
    #[serde(with = "digits")]
    pub root: Vec<u8>,
    /// The root of the previous checkpoint; for the first one, the root of the empty tree.
    #[serde(with = "digits")]
    pub previous_root: Vec<u8>,
    pub signed_at: Timestamp,
    pub key_id: String,
    /// Ed25519.
    #[serde(with = "digits")]
    pub signature: Vec<u8>,
}

impl Checkpoint {
    /// The signed bytes: the domain separator, then the canonical JSON of every member but the signature.
    pub fn signed(&self) -> Vec<u8> {
        let members = json!({
            "tenant": self.tenant,
            "number": self.number,
            "size": self.size,
            "root": hex(&self.root),
            "previousRoot": hex(&self.previous_root),
            "signedAt": self.signed_at,
            "keyId": self.key_id,
        });
        format!("{DOMAIN}{}", Json::of(&members)).into_bytes()
    }
}

impl Checkpoint {
    /// The id of its event. It is derived from the signed bytes, so it need not be stored.
    pub fn event_id(&self) -> Uuid {
        let [id @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _]: Hash =
            Sha256::digest(self.signed()).into();
        uuid::Builder::from_random_bytes(id).into_uuid()
    }
}

/// The JSON Schema (2020-12) of the event's data.
pub fn schema() -> Value {
    let digest = |about: &str, pattern: &str| json!({"type": "string", "pattern": pattern, "description": about});
    let count = |about: &str| json!({"type": "integer", "minimum": 0, "description": about});
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": EVENT,
        "description": "A tenant's audit has a new root: keep it, and no entry up to it can be changed or removed unnoticed.",
        "type": "object",
        "required": ["tenant", "number", "size", "root", "previousRoot", "signedAt", "keyId", "signature"],
        "properties": {
            "tenant": text("The tenant."),
            "number": count("Counts the tenant's checkpoints from 1, without gaps."),
            "size": count("Audit entries that the root covers."),
            "root": digest("The root of the Merkle tree (RFC 6962, SHA-256).", "^[0-9a-f]{64}$"),
            "previousRoot": digest("The root of the checkpoint before.", "^[0-9a-f]{64}$"),
            "signedAt": {"type": "string", "format": "date-time", "description": "When it was signed."},
            "keyId": text("The name of the key."),
            "signature": digest("Ed25519 over the other members.", "^[0-9a-f]{128}$"),
        },
    })
}

/// The columns of an entry that its leaf covers.
#[derive(Debug, Clone, Copy)]
pub struct EntryColumns<'a> {
    pub hash: &'a [u8],
    pub xid: i64,
    pub pos: i64,
    pub traceparent: Option<&'a str>,
}

impl EntryColumns<'_> {
    /// The digest that is the content of the entry's leaf.
    pub fn digest(&self) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(b"wrkflw audit leaf 1");
        field(&mut hasher, Some(self.hash));
        hasher.update(self.xid.to_be_bytes());
        hasher.update(self.pos.to_be_bytes());
        field(&mut hasher, self.traceparent.map(str::as_bytes));
        hasher.finalize().into()
    }
}

/// The digest that is the content of a refused attempt's leaf. It covers all columns.
pub fn refused_digest(columns: &[Option<String>]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(b"wrkflw refused leaf 1");
    for column in columns {
        field(&mut hasher, column.as_deref().map(str::as_bytes));
    }
    hasher.finalize().into()
}

/// Hashes a field after its length, so that the boundary between two fields is part of the hash.
fn field(hasher: &mut Sha256, bytes: Option<&[u8]>) {
    hasher.update([u8::from(bytes.is_some())]);
    hasher.update((bytes.map_or(0, <[u8]>::len) as u64).to_be_bytes());
    hasher.update(bytes.unwrap_or_default());
}

/// Serialises bytes as hexadecimal digits.
pub mod digits {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::ids::{hex, unhex};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        unhex(&text).ok_or_else(|| D::Error::custom("these are no hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            tenant: "acme".into(),
            number: 2,
            size: 9,
            root: vec![1; 32],
            previous_root: vec![2; 32],
            signed_at: Timestamp::UNIX_EPOCH,
            key_id: "k1".into(),
            signature: vec![3; 64],
        }
    }

    #[test]
    fn every_member_is_signed() {
        let changes: [fn(&mut Checkpoint); 7] = [
            |it| it.tenant.push('x'),
            |it| it.number += 1,
            |it| it.size += 1,
            |it| it.root[0] += 1,
            |it| it.previous_root[0] += 1,
            |it| it.signed_at = Timestamp::from_millisecond(1).expect("a time"),
            |it| it.key_id.push('x'),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = checkpoint();
            change(&mut other);
            assert_ne!(other.signed(), checkpoint().signed(), "change {number}");
        }
    }

    #[test]
    fn the_event_is_what_its_schema_says_and_is_read_again() {
        let value = json!(checkpoint());
        assert!(jsonschema::is_valid(&schema(), &value), "{value}");
        let read: Checkpoint = serde_json::from_value(value).expect("a checkpoint");
        assert_eq!(read, checkpoint());
        let text = json!(checkpoint()).to_string().replace("0303", "03xx");
        assert!(serde_json::from_str::<Checkpoint>(&text).is_err());
    }

    #[test]
    fn every_column_is_in_a_leaf() {
        let entry = EntryColumns {
            hash: &[1; 32],
            xid: 2,
            pos: 3,
            traceparent: None,
        };
        let others = [
            EntryColumns {
                hash: &[2; 32],
                ..entry
            },
            EntryColumns { xid: 3, ..entry },
            EntryColumns { pos: 4, ..entry },
            EntryColumns {
                traceparent: Some(""),
                ..entry
            },
        ];
        assert!(others.iter().all(|other| other.digest() != entry.digest()));
        let refused = |columns: &[&str]| {
            refused_digest(
                &columns
                    .iter()
                    .map(|text| Some((*text).to_owned()))
                    .collect::<Vec<_>>(),
            )
        };
        assert_ne!(refused(&["ab", "c"]), refused(&["a", "bc"]));
        assert_ne!(refused_digest(&[None]), refused(&[""]));
    }
}
