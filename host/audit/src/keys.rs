//! The Ed25519 keys of checkpoints by name. The first secret key signs, and all keys verify. A verifier needs only public
//! keys.

use std::collections::BTreeMap;

use ed25519_dalek::{Signature, Signer as _, SigningKey as Pair, VerifyingKey};

use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::hex;

/// The known keys.
#[derive(Clone, Default)]
pub struct CheckpointKeys {
    signing: Option<SigningKey>,
    known: BTreeMap<String, VerifyingKey>,
}

/// The key that new checkpoints are signed with.
#[derive(Clone)]
pub struct SigningKey {
    name: String,
    pair: Pair,
}

/// The result of the check of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureVerdict {
    Valid,
    /// The signature is not one of this checkpoint.
    Invalid,
    /// There is no key of this name.
    UnknownKey,
}

impl CheckpointKeys {
    /// `secret` has seeds, of which the first signs. `public` has keys that only verify.
    pub fn new(
        secret: &[(String, [u8; 32])],
        public: &[(String, [u8; 32])],
    ) -> Result<CheckpointKeys, String> {
        let mut keys = CheckpointKeys::default();
        for (name, seed) in secret {
            let pair = Pair::from_bytes(seed);
            keys.know(name, pair.verifying_key())?;
            keys.signing.get_or_insert_with(|| SigningKey {
                name: name.clone(),
                pair,
            });
        }
        for (name, bytes) in public {
            let key = VerifyingKey::from_bytes(bytes)
                .map_err(|_| format!("the checkpoint key {name} is not an Ed25519 public key"))?;
            keys.know(name, key)?;
        }
        Ok(keys)
    }

    fn know(&mut self, name: &str, key: VerifyingKey) -> Result<(), String> {
        // A weak key verifies forged signatures.
        if key.is_weak() {
            return Err(format!("the checkpoint key {name} is weak"));
        }
        match self.known.insert(name.to_owned(), key) {
            Some(other) if other != key => Err(format!("two checkpoint keys are called {name}")),
            _ => Ok(()),
        }
    }

    /// The key that signs, if there is one.
    pub fn signing(&self) -> Option<SigningKey> {
        self.signing.clone()
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The public keys by their names, in hexadecimal digits.
    pub fn public(&self) -> impl Iterator<Item = (&str, String)> {
        self.known
            .iter()
            .map(|(name, key)| (name.as_str(), hex(key.as_bytes())))
    }

    /// Checks a checkpoint's signature with the key that it names.
    pub fn verdict(&self, checkpoint: &Checkpoint) -> SignatureVerdict {
        let Some(key) = self.known.get(&checkpoint.key_id) else {
            return SignatureVerdict::UnknownKey;
        };
        let valid = Signature::from_slice(&checkpoint.signature)
            .is_ok_and(|signature| key.verify_strict(&checkpoint.signed(), &signature).is_ok());
        if valid {
            SignatureVerdict::Valid
        } else {
            SignatureVerdict::Invalid
        }
    }
}

impl SigningKey {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The signature over these bytes.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).to_vec()
    }
}

impl std::fmt::Debug for CheckpointKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let signing = self.signing.as_ref().map(SigningKey::name);
        write!(
            f,
            "CheckpointKeys {{ signing: {signing:?}, {} known }}",
            self.known.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrkflw_core::merkle;

    fn checkpoint(keys: &CheckpointKeys) -> Checkpoint {
        let key = keys.signing().expect("a key");
        let mut checkpoint = Checkpoint {
            tenant: "acme".into(),
            number: 1,
            size: 0,
            root: merkle::empty().to_vec(),
            previous_root: merkle::empty().to_vec(),
            signed_at: jiff::Timestamp::UNIX_EPOCH,
            key_id: key.name().into(),
            signature: vec![],
        };
        checkpoint.signature = key.sign(&checkpoint.signed());
        checkpoint
    }

    fn named(name: &str, byte: u8) -> (String, [u8; 32]) {
        (name.to_owned(), [byte; 32])
    }

    #[test]
    fn the_first_signs_and_all_verify_even_with_public_keys_alone() {
        let old = CheckpointKeys::new(&[named("old", 1)], &[]).expect("keys");
        let both = CheckpointKeys::new(&[named("new", 2), named("old", 1)], &[]).expect("keys");
        let public: Vec<_> = both
            .public()
            .map(|(name, digits)| {
                let bytes = wrkflw_core::ids::unhex(&digits).expect("digits");
                (name.to_owned(), bytes.try_into().expect("32 bytes"))
            })
            .collect();
        let reader = CheckpointKeys::new(&[], &public).expect("public keys");
        assert!(reader.signing().is_none() && !reader.is_empty());
        for signer in [&old, &both] {
            let mut signed = checkpoint(signer);
            assert_eq!(reader.verdict(&signed), SignatureVerdict::Valid);
            signed.size += 1;
            assert_eq!(reader.verdict(&signed), SignatureVerdict::Invalid);
        }
        assert_eq!(checkpoint(&both).key_id, "new");
        assert_eq!(
            old.verdict(&checkpoint(&both)),
            SignatureVerdict::UnknownKey
        );
    }

    #[test]
    fn what_proves_nothing_is_refused() {
        let twice = CheckpointKeys::new(&[named("k", 1), named("k", 2)], &[]);
        assert_eq!(
            twice.expect_err("one name"),
            "two checkpoint keys are called k"
        );
        let mut identity = named("k", 0);
        identity.1[0] = 1;
        let weak = CheckpointKeys::new(&[], &[identity]);
        assert_eq!(weak.expect_err("no order"), "the checkpoint key k is weak");
        assert!(
            CheckpointKeys::new(&[], &[named("k", 2)]).is_err(),
            "no point of the curve"
        );
    }
}
