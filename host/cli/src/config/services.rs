//! The services that flows may call.

use std::collections::BTreeMap;

use clap::Args;

use super::secrets::{self, Hidden};
use super::{SettingsError, between};
use wrkflw_core::check::names::{NAME_RULE, is_name};
use wrkflw_engine::services::{Service, Services};
use wrkflw_runtime::http_client::HttpClient;

/// How many services a host may have.
const SERVICES_MAX: usize = 100;

/// Services by name.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct ServiceArgs {
    /// Services that flows may call, as `name=url` and separated by commas. Without TLS only in private networks. All hosts need the same
    #[arg(
        long,
        env = "WRKFLW_SERVICES",
        value_name = "NAME=URL",
        value_delimiter = ','
    )]
    pub services: Vec<String>,
    /// Bearer tokens that services ask for, as `name:token` and separated by commas
    #[arg(
        long,
        env = "WRKFLW_SERVICE_TOKENS",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub service_tokens: Vec<Hidden>,
    /// Keys that sign the requests to services as webhooks are signed, as `name:hex` and separated by commas
    #[arg(
        long,
        env = "WRKFLW_SERVICE_KEYS",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub service_keys: Vec<Hidden>,
    /// Maximum number of calls of one service in flight in a process. One tenant gets half of them
    #[arg(long, env = "WRKFLW_SERVICE_CALLS_MAX", default_value_t = Services::CALLS_MAX, value_parser = between::<usize>(1, 64))]
    pub service_calls_max: usize,
}

impl ServiceArgs {
    /// The services, called by this client.
    pub fn services(&self, client: HttpClient) -> Result<Services, SettingsError> {
        let refuse = |message: String| Err(SettingsError(message));
        let tokens = named("service_tokens", &self.service_tokens, secrets::token)?;
        let keys = named("service_keys", &self.service_keys, secrets::service_key)?;
        if self.services.len() > SERVICES_MAX {
            return refuse(format!("services has more than {SERVICES_MAX}"));
        }
        let mut by_name = BTreeMap::new();
        for text in &self.services {
            let Some((name, url)) = text.split_once('=') else {
                return refuse("services: write each service as name=url".to_owned());
            };
            let (name, url) = (name.trim(), url.trim());
            if !is_name(name) {
                return refuse(format!(
                    "services: {name} is no name of a service: {NAME_RULE}"
                ));
            }
            let (token, key) = (tokens.get(name).cloned(), keys.get(name).cloned());
            let service = Service::new(url, token, key)
                .map_err(|error| SettingsError(format!("services: the URL of {name} {error}")))?;
            if by_name.insert(name.to_owned(), service).is_some() {
                return refuse(format!("services names {name} twice"));
            }
        }
        let mut others = tokens.keys().chain(keys.keys());
        if let Some(other) = others.find(|name| !by_name.contains_key(*name)) {
            return refuse(format!(
                "{other} has a token or a key and is not in `services`"
            ));
        }
        Ok(Services::new(by_name, client, self.service_calls_max))
    }
}

/// Secrets by the name of their service.
fn named<T>(
    setting: &str,
    texts: &[Hidden],
    parse: fn(&str) -> Result<(String, T), String>,
) -> Result<BTreeMap<String, T>, SettingsError> {
    let mut all = BTreeMap::new();
    for text in texts {
        let (name, secret) = parse(text.reveal()).map_err(SettingsError)?;
        if all.contains_key(&name) {
            return Err(SettingsError(format!("{setting} names {name} twice")));
        }
        all.insert(name, secret);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(services: &[&str], tokens: &[&str], keys: &[&str]) -> Result<Services, String> {
        let hidden = |texts: &[&str]| {
            let texts = texts.iter();
            texts.map(|text| Hidden::from((*text).to_owned())).collect()
        };
        let settings = ServiceArgs {
            services: services.iter().map(ToString::to_string).collect(),
            service_tokens: hidden(tokens),
            service_keys: hidden(keys),
            service_calls_max: 8,
        };
        let read = settings.services(HttpClient::new());
        read.map_err(|error| error.0)
    }

    #[test]
    fn services_are_named_and_their_secrets_belong_to_them() {
        let scorer = "scorer=https://example.org/score?v=1";
        let key = "scorer:000102030405060708090a0b0c0d0e0f";
        let read_all = read(
            &[scorer, "ocr=http://127.0.0.1:9/"],
            &["scorer:s3:cret"],
            &[key],
        );
        let shown = format!("{:?}", read_all.expect("services"));
        assert!(!shown.contains("cret"), "{shown}");
        for (services, tokens, keys, words) in [
            (&["scorer"][..], &[][..], &[][..], "name=url"),
            (
                &["a b=https://example.org"],
                &[],
                &[],
                "no name of a service",
            ),
            (&["scorer=http://8.8.8.8/"], &[], &[], "the URL of scorer"),
            (&[scorer, scorer], &[], &[], "names scorer twice"),
            (&[scorer], &["ocr:t"], &[], "ocr has a token or a key"),
            (&[scorer], &["scorer"], &[], "name:token"),
            (
                &[scorer],
                &["scorer:a", "scorer:b"],
                &[],
                "names scorer twice",
            ),
            (&[scorer], &[], &["scorer:s3cret"], "hex digits"),
            (&[scorer], &[], &["scorer:00ff"], "2 bytes"),
        ] {
            let error = read(services, tokens, keys).expect_err(words);
            assert!(
                error.contains(words) && !error.contains("s3cret"),
                "{error}"
            );
        }
    }
}
