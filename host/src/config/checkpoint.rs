//! The keys of checkpoints, for hosts that sign and for those who verify.

use clap::Args;

use super::SettingsError;
use super::secrets::{self, Hidden};
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
    pub checkpoint_keys: Vec<Hidden>,
    /// Public keys of checkpoints that others signed, or that were signed before, as `name:hex`: they only verify
    #[arg(long, env = "WRKFLW_CHECKPOINT_PUBLIC_KEYS", value_delimiter = ',')]
    pub checkpoint_public_keys: Vec<String>,
}

impl CheckpointArgs {
    /// The keys; there may be none.
    pub fn keys(&self) -> Result<CheckpointKeys, SettingsError> {
        let secret = self.checkpoint_keys.iter().map(Hidden::reveal);
        let public = self.checkpoint_public_keys.iter().map(String::as_str);
        let secret = named("checkpoint_keys", secret)?;
        let public = named("checkpoint_public_keys", public)?;
        CheckpointKeys::new(&secret, &public).map_err(SettingsError)
    }
}

type Named = (String, [u8; 32]);

/// The keys of one setting.
fn named<'a>(
    setting: &str,
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<Named>, SettingsError> {
    let read = texts.map(|text| secrets::named_key(setting, text));
    read.collect::<Result<_, _>>().map_err(SettingsError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_and_of_32_bytes() {
        let keys = |secret: &[&str]| {
            let args = CheckpointArgs {
                checkpoint_keys: secret
                    .iter()
                    .map(|key| Hidden::from((*key).to_owned()))
                    .collect(),
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
