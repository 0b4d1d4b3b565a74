//! How bearer tokens are verified. Exactly one source of keys is set: a shared secret or the URL of a key set.

use clap::Args;

use super::secrets::Hidden;
use super::texts::{present, tenant};
use wrkflw_server::http::auth::{AuthSettings, KeyAges, Secret};

/// Which tokens are accepted.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct AuthArgs {
    /// Secret that bearer tokens are signed with (HS256), 32 bytes at least. Set this or `jwks_url`
    #[arg(long, env = "WRKFLW_JWT_SECRET", hide_env_values = true)]
    pub jwt_secret: Option<Hidden>,
    /// URL of the identity provider's key set
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
}
