//! The keys of checkpoints, for hosts that sign and for people who verify.

use clap::Args;

use super::SettingsError;
use super::secrets::{self, CheckpointKey, Hidden};
use wrkflw_audit::keys::CheckpointKeys;

/// The keys with their names.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct CheckpointArgs {
    /// Keys (Ed25519) of checkpoints of the audit, separated by commas: `name:hex` signs, `name:public:hex` only verifies. The first key that can sign is used. Without one, no checkpoint is signed
    #[arg(
        long,
        env = "WRKFLW_CHECKPOINT_KEYS",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub checkpoint_keys: Vec<Hidden>,
}

impl CheckpointArgs {
    /// The keys. There may be none.
    pub fn keys(&self) -> Result<CheckpointKeys, SettingsError> {
        let (mut secret, mut public) = (Vec::new(), Vec::new());
        for key in &self.checkpoint_keys {
            match secrets::checkpoint_key(key.reveal()).map_err(SettingsError)? {
                CheckpointKey::Secret(name, seed) => secret.push((name, seed)),
                CheckpointKey::Public(name, key) => public.push((name, key)),
            }
        }
        CheckpointKeys::new(&secret, &public).map_err(SettingsError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::secrets::PUBLIC_PREFIX;

    #[test]
    fn keys_are_named_and_of_32_bytes() {
        let keys = |secret: &[&str]| {
            let args = CheckpointArgs {
                checkpoint_keys: secret
                    .iter()
                    .map(|key| Hidden::from((*key).to_owned()))
                    .collect(),
            };
            args.keys().map_err(|error| error.0)
        };
        let digits = "07".repeat(32);
        let one = format!("{:?}", keys(&[&format!("k1:{digits}")]).expect("a key"));
        assert_eq!(one, "CheckpointKeys { signing: Some(\"k1\"), 1 known }");
        assert!(keys(&[]).expect("none is fine").is_empty());
        // The public key of the seed 0707…, as `wrkflw audit keys` prints it.
        let known = format!(
            "old:{PUBLIC_PREFIX}ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
        );
        let both = keys(&[&known, &format!("k1:{digits}")]).expect("keys");
        let shown = format!("{both:?}");
        assert_eq!(shown, "CheckpointKeys { signing: Some(\"k1\"), 2 known }");
        let verifying = format!("{:?}", keys(&[&known]).expect("a key"));
        assert_eq!(verifying, "CheckpointKeys { signing: None, 1 known }");
        for text in ["k1", "k1:0707", "k1:public:0707", &format!("k1:{digits}07")] {
            let error = keys(&[text]).expect_err(text);
            assert!(error.starts_with("checkpoint_keys:"), "{error}");
        }
    }
}
