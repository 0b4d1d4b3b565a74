//! The keys of checkpoints, for hosts that sign and for those who verify.

use clap::Args;

use super::{SettingsError, secrets};
use crate::engine::checkpoint::keys::CheckpointKeys;

/// The keys by their names.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct CheckpointArgs {
    /// Keys (Ed25519) that sign checkpoints of the audit, as `name:hex` and separated by commas; the first signs. Without one, none are signed
    #[arg(
        long,
        env = "WRKFLW_CHECKPOINT_KEYS",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub checkpoint_keys: Vec<String>,
    /// Public keys of checkpoints that others signed, or that were signed before, as `name:hex`: they only verify
    #[arg(long, env = "WRKFLW_CHECKPOINT_PUBLIC_KEYS", value_delimiter = ',')]
    pub checkpoint_public_keys: Vec<String>,
}

impl CheckpointArgs {
    /// The keys; there may be none.
    pub fn keys(&self) -> Result<CheckpointKeys, SettingsError> {
        let read = |setting: &str, texts: &[String]| {
            texts
                .iter()
                .map(|text| secrets::named_key(setting, text))
                .collect::<Result<Vec<_>, _>>()
                .map_err(SettingsError)
        };
        let secret = read("checkpoint_keys", &self.checkpoint_keys)?;
        let public = read("checkpoint_public_keys", &self.checkpoint_public_keys)?;
        CheckpointKeys::new(&secret, &public).map_err(SettingsError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_and_of_32_bytes() {
        let keys = |secret: &[&str]| {
            let args = CheckpointArgs {
                checkpoint_keys: secret.iter().map(ToString::to_string).collect(),
                checkpoint_public_keys: Vec::new(),
            };
            args.keys().map_err(|error| error.0)
        };
        let digits = "07".repeat(32);
        let one = format!("{:?}", keys(&[&format!("k1:{digits}")]).expect("a key"));
        assert_eq!(one, "CheckpointKeys { signing: Some(\"k1\"), 1 known }");
        assert!(keys(&[]).expect("none is fine").is_empty());
        for text in ["k1", "k1:0707", &format!("k1:{digits}07")] {
            let error = keys(&[text]).expect_err(text);
            assert!(error.starts_with("checkpoint_keys:"), "{error}");
        }
    }
}
