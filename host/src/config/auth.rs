//! How bearer tokens are checked. Exactly one source of keys is set: a shared secret or a key set's URL.

use std::time::Duration;

use clap::Args;

use super::secrets::Hidden;
use super::texts::present;
use super::{DAY_SECONDS, SECONDS_MAX, between};
use crate::http::auth::{AuthSettings, KeyAges, Secret};

/// What tokens must be like.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct AuthArgs {
    /// Secret that bearer tokens are signed with (HS256), 32 bytes at least. Set this or `jwks_url`
    #[arg(long, env = "WRKFLW_JWT_SECRET", hide_env_values = true)]
    pub jwt_secret: Option<Hidden>,
    /// URL of the identity provider's key set
    #[arg(long, env = "WRKFLW_JWKS_URL", value_name = "URL")]
    pub jwks_url: Option<String>,
    /// After how many seconds the key set is fetched anew
    #[arg(long, env = "WRKFLW_JWKS_FRESH_SECONDS", value_name = "SECONDS", default_value_t = KeyAges::default().fresh.as_secs(), value_parser = between::<u64>(1, DAY_SECONDS))]
    pub jwks_fresh_seconds: u64,
    /// For how many seconds keys serve while the provider cannot be asked; a withdrawn key lives no longer than that
    #[arg(long, env = "WRKFLW_JWKS_KEPT_SECONDS", value_name = "SECONDS", default_value_t = KeyAges::default().kept_max.as_secs(), value_parser = between::<u64>(0, 30 * DAY_SECONDS))]
    pub jwks_kept_seconds: u64,
    /// The fewest seconds between two questions to the provider, whatever keys tokens name
    #[arg(long, env = "WRKFLW_JWKS_INTERVAL_SECONDS", value_name = "SECONDS", default_value_t = KeyAges::default().interval_min.as_secs(), value_parser = between::<u64>(1, SECONDS_MAX))]
    pub jwks_interval_seconds: u64,
    /// The only issuer (`iss`) whose tokens are accepted
    #[arg(long, env = "WRKFLW_JWT_ISSUER", value_parser = present)]
    pub jwt_issuer: Option<String>,
    /// What a token's `aud` must be or contain
    #[arg(long, env = "WRKFLW_JWT_AUDIENCE", value_parser = present)]
    pub jwt_audience: Option<String>,
    /// The claim that names the tenant
    #[arg(long, env = "WRKFLW_JWT_TENANT_CLAIM", default_value = "tenant", value_parser = present)]
    pub jwt_tenant_claim: String,
    /// The claim that lists the roles
    #[arg(long, env = "WRKFLW_JWT_ROLES_CLAIM", default_value = "roles", value_parser = present)]
    pub jwt_roles_claim: String,
    /// The tenant of tokens that name none, where a host serves a single tenant. Unset, such tokens are refused
    #[arg(long, env = "WRKFLW_JWT_DEFAULT_TENANT", value_name = "NAME", value_parser = present)]
    pub jwt_default_tenant: Option<String>,
    /// By how many seconds the clocks of issuer and host may differ
    #[arg(long, env = "WRKFLW_JWT_LEEWAY_SECONDS", default_value_t = 30, value_parser = between::<u64>(0, SECONDS_MAX))]
    pub jwt_leeway_seconds: u64,
}

impl AuthArgs {
    pub fn settings(&self) -> AuthSettings {
        AuthSettings {
            hs256_secret: self
                .jwt_secret
                .as_ref()
                .map(|secret| Secret::new(secret.reveal().as_bytes())),
            jwks_url: self.jwks_url.clone(),
            key_ages: KeyAges {
                fresh: Duration::from_secs(self.jwks_fresh_seconds),
                kept_max: Duration::from_secs(self.jwks_kept_seconds),
                interval_min: Duration::from_secs(self.jwks_interval_seconds),
            },
            issuer: self.jwt_issuer.clone(),
            audience: self.jwt_audience.clone(),
            tenant_claim: self.jwt_tenant_claim.clone(),
            roles_claim: self.jwt_roles_claim.clone(),
            default_tenant: self.jwt_default_tenant.clone(),
            leeway: Duration::from_secs(self.jwt_leeway_seconds),
        }
    }
}
