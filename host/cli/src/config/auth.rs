//! How bearer tokens are verified, and where people sign in. Exactly one source of keys is set: a shared secret or the URL of a
//! key set.

use clap::Args;

use super::secrets::Hidden;
use super::texts::{present, tenant};
use super::{SettingsError, missing};
use wrkflw_console::ProviderSettings;
use wrkflw_server::http::auth::{AuthSettings, KeyAges, Secret};

/// Which tokens are accepted.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct AuthArgs {
    /// Secret that bearer tokens are signed with (HS256), 32 bytes at least. Set this or `jwks_url`
    #[arg(long, env = "WRKFLW_JWT_SECRET", hide_env_values = true)]
    pub jwt_secret: Option<Hidden>,
    /// URL of the identity provider's key set. It needs `jwt_issuer` and `jwt_audience`
    #[arg(long, env = "WRKFLW_JWKS_URL", value_name = "URL")]
    pub jwks_url: Option<String>,
    /// When the key set is fetched again. Not a setting: tests of the program use shorter ages.
    #[arg(skip)]
    pub key_ages: KeyAges,
    /// The only issuer (`iss`) whose tokens are accepted
    #[arg(long, env = "WRKFLW_JWT_ISSUER", value_parser = present)]
    pub jwt_issuer: Option<String>,
    /// The audience: a token's `aud` must be or contain it
    #[arg(long, env = "WRKFLW_JWT_AUDIENCE", value_parser = present)]
    pub jwt_audience: Option<String>,
    /// The claim that names the tenant
    #[arg(long, env = "WRKFLW_JWT_TENANT_CLAIM", default_value = "tenant", value_parser = present)]
    pub jwt_tenant_claim: String,
    /// The claim that lists the roles
    #[arg(long, env = "WRKFLW_JWT_ROLES_CLAIM", default_value = "roles", value_parser = present)]
    pub jwt_roles_claim: String,
    /// The tenant of tokens that name none, if the host serves a single tenant. If it is not set, such tokens are refused
    #[arg(long, env = "WRKFLW_JWT_DEFAULT_TENANT", value_name = "NAME", value_parser = tenant)]
    pub jwt_default_tenant: Option<String>,
    /// The id of the console at the identity provider `jwt_issuer`. With it, people sign in there. Not the audience of bearer tokens
    #[arg(long, env = "WRKFLW_OIDC_CLIENT_ID", value_name = "ID", value_parser = present)]
    pub oidc_client_id: Option<String>,
    /// Secret of the console at the identity provider, if it has one
    #[arg(long, env = "WRKFLW_OIDC_CLIENT_SECRET", hide_env_values = true)]
    pub oidc_client_secret: Option<Hidden>,
    /// Scopes that a sign-in asks for, separated by spaces: those by which the ID token has tenant and roles
    #[arg(long, env = "WRKFLW_OIDC_SCOPES", default_value = "openid profile", value_parser = present)]
    pub oidc_scopes: String,
}

impl AuthArgs {
    pub fn settings(&self) -> AuthSettings {
        AuthSettings {
            hs256_secret: self
                .jwt_secret
                .as_ref()
                .map(|secret| Secret::new(secret.reveal().as_bytes())),
            jwks_url: self.jwks_url.clone(),
            key_ages: self.key_ages,
            issuer: self.jwt_issuer.clone(),
            audience: self.jwt_audience.clone(),
            tenant_claim: self.jwt_tenant_claim.clone(),
            roles_claim: self.jwt_roles_claim.clone(),
            default_tenant: self.jwt_default_tenant.clone(),
            ..AuthSettings::default()
        }
    }

    /// The identity provider at which people sign in, if there is one. `public_url` is the address of this host.
    pub fn provider(&self, public_url: &str) -> Result<Option<ProviderSettings>, SettingsError> {
        let Some(client_id) = self.oidc_client_id.clone() else {
            return Ok(None);
        };
        let why = "oidc_client_id is set, so people sign in at an identity provider";
        let issuer = self.jwt_issuer.clone();
        let issuer = issuer.ok_or_else(|| missing("jwt_issuer", why))?;
        if self.jwks_url.is_none() {
            return Err(missing("jwks_url", why));
        }
        // Otherwise an ID token, which browsers carry and the database stores, would give access to the API.
        match &self.jwt_audience {
            None => return Err(missing("jwt_audience", why)),
            Some(audience) if *audience == client_id => {
                return Err(SettingsError(format!(
                    "jwt_audience and oidc_client_id are both {client_id}: have the provider name the API by another audience"
                )));
            }
            Some(_) => {}
        }
        let settings = ProviderSettings {
            issuer,
            client_id,
            client_secret: self
                .oidc_client_secret
                .as_ref()
                .map(|secret| secret.reveal().to_owned()),
            scopes: self.oidc_scopes.clone(),
            public_url: public_url.to_owned(),
        };
        settings.check().map_err(SettingsError)?;
        Ok(Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn refusal(change: impl FnOnce(&mut AuthArgs)) -> String {
        let mut args = Settings::defaults().auth;
        args.oidc_client_id = Some("console".to_owned());
        args.jwt_issuer = Some("https://id.example".to_owned());
        args.jwks_url = Some("https://id.example/keys".to_owned());
        args.jwt_audience = Some("wrkflw".to_owned());
        change(&mut args);
        let provider = args.provider("https://flows.example");
        provider.err().map_or_else(String::new, |error| error.0)
    }

    #[test]
    fn a_sign_in_needs_a_provider_whose_id_tokens_do_not_open_the_api() {
        assert_eq!(refusal(|_| ()), "");
        assert!(refusal(|args| args.jwt_issuer = None).starts_with("jwt_issuer is not set"));
        assert!(refusal(|args| args.jwks_url = None).starts_with("jwks_url is not set"));
        assert!(refusal(|args| args.jwt_audience = None).starts_with("jwt_audience is not set"));
        let same = refusal(|args| args.jwt_audience = Some("console".to_owned()));
        assert!(
            same.starts_with("jwt_audience and oidc_client_id"),
            "{same}"
        );
        let open = refusal(|args| args.jwt_issuer = Some("http://id.example".to_owned()));
        assert!(open.starts_with("jwt_issuer is http://"), "{open}");
    }

    #[test]
    fn without_a_client_id_nobody_is_led_to_a_provider() {
        let args = Settings::defaults().auth;
        assert!(
            args.provider("http://flows.example")
                .is_ok_and(|none| none.is_none())
        );
    }
}
