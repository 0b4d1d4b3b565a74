//! The keys that seal decisions, for hosts and for verifiers.

use std::collections::BTreeMap;

use clap::Args;

use super::secrets::{self, Hidden};
use super::{SettingsError, missing};
use wrkflw_audit::seal::SealKeys;

/// The keys with their names.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct SealArgs {
    /// Keys that seal decisions, as `name:hex` and separated by commas. The first seals new decisions. Keep old keys: they verify old decisions
    #[arg(
        long,
        env = "WRKFLW_SEAL_KEYS",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub seal_keys: Vec<Hidden>,
}

impl SealArgs {
    pub fn keys(&self) -> Result<SealKeys, SettingsError> {
        let named: Vec<_> = self
            .seal_keys
            .iter()
            .map(|text| secrets::seal_key(text.reveal()))
            .collect::<Result<_, _>>()
            .map_err(SettingsError)?;
        let (newest, _) = named
            .first()
            .cloned()
            .ok_or_else(|| missing("seal_keys", "every decision is sealed"))?;
        let keys: BTreeMap<_, _> = named.into_iter().collect();
        if keys.len() < self.seal_keys.len() {
            return Err(SettingsError("seal_keys names a key twice".into()));
        }
        SealKeys::new(&newest, keys).map_err(SettingsError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(named: &[&str]) -> Result<SealKeys, String> {
        let seal_keys = named
            .iter()
            .map(|key| Hidden::from((*key).to_owned()))
            .collect();
        SealArgs { seal_keys }.keys().map_err(|error| error.0)
    }

    #[test]
    fn the_first_key_seals_and_all_verify() {
        let (old, new) = (
            "old:000102030405060708090a0b0c0d0e0f",
            "new:101112131415161718191a1b1c1d1e1f",
        );
        let both = format!("{:?}", keys(&[new, old]).expect("keys"));
        assert_eq!(both, "SealKeys { current: \"new\", 2 keys }");
        let twice = keys(&[new, "new:000102030405060708090a0b0c0d0e0f"]);
        assert_eq!(twice.expect_err("one name"), "seal_keys names a key twice");
        assert!(
            keys(&[])
                .expect_err("none")
                .contains("seal_keys is not set")
        );
    }
}
