//! The settings that determine which bearer tokens are accepted.
//!
//! Exactly one source of keys is set: a shared secret (development, small installations) or the URL of an identity
//! provider's key set. With both, the weaker source would determine the security.

use std::fmt;
use std::time::Duration;

use axum::http::Uri;
use wrkflw_runtime::http_client::is_loopback;

/// Minimum length of a shared secret: that of the hash.
pub(crate) const SECRET_BYTES_MIN: usize = 32;
/// Maximum tolerated difference between the clocks of issuer and host.
pub(crate) const LEEWAY_MAX: Duration = Duration::from_mins(5);
/// The upper limit of [`KeyAges::kept_max`].
const KEPT_MAX: Duration = Duration::from_hours(7 * 24);
/// Claims whose meaning is defined by the token format (RFC 7519).
const REGISTERED_CLAIMS: [&str; 7] = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti"];

/// A secret that no log line may show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Secret {
        Secret(bytes.into())
    }

    pub(in crate::http) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Secret({} bytes)", self.0.len())
    }
}

/// How old the keys of an identity provider may be. Only tests change the defaults.
#[derive(Debug, Clone, Copy)]
pub struct KeyAges {
    /// Older keys are fetched again, in the background.
    pub fresh: Duration,
    /// Older keys are not used any more.
    pub kept_max: Duration,
    /// Minimum time between two fetches.
    pub interval_min: Duration,
}

impl Default for KeyAges {
    fn default() -> KeyAges {
        KeyAges {
            fresh: Duration::from_mins(5),
            kept_max: Duration::from_hours(24),
            interval_min: Duration::from_secs(10),
        }
    }
}

impl KeyAges {
    /// The error says what to change.
    fn check(&self) -> Result<(), String> {
        if self.interval_min.is_zero() {
            return Err(
                "the identity provider would be asked for each token: interval_min is 0".to_owned(),
            );
        }
        if self.fresh < self.interval_min || self.kept_max < self.fresh || self.kept_max > KEPT_MAX
        {
            return Err(format!(
                "the ages of keys do not fit together: interval_min <= fresh <= kept_max <= {} s",
                KEPT_MAX.as_secs()
            ));
        }
        Ok(())
    }
}

/// The settings of the checks of tokens, and the claims that name the caller.
#[derive(Debug, Clone)]
pub struct AuthSettings {
    /// Tokens are signed with this secret (HS256).
    pub hs256_secret: Option<Secret>,
    /// Tokens are signed with a key of the set at this URL: `https`, or `http` on this machine. It is fetched through
    /// the proxy that the environment names, if any. It needs issuer and audience.
    pub jwks_url: Option<String>,
    /// How old the keys of that set may be.
    pub key_ages: KeyAges,
    /// If set, the only accepted `iss`.
    pub issuer: Option<String>,
    /// If set, `aud` must be or contain it.
    pub audience: Option<String>,
    /// The claim that names the tenant.
    pub tenant_claim: String,
    /// The claim that lists the roles.
    pub roles_claim: String,
    /// The tenant of a token that names none. Without it, such a token is refused.
    pub default_tenant: Option<String>,
    /// Tolerance for `exp` and `nbf`, because clocks differ.
    pub leeway: Duration,
}

impl Default for AuthSettings {
    fn default() -> AuthSettings {
        AuthSettings {
            hs256_secret: None,
            jwks_url: None,
            key_ages: KeyAges::default(),
            issuer: None,
            audience: None,
            tenant_claim: "tenant".to_owned(),
            roles_claim: "roles".to_owned(),
            default_tenant: None,
            leeway: Duration::from_secs(30),
        }
    }
}

/// The one source of keys that the settings name.
pub(super) enum KeySource<'a> {
    Secret(&'a Secret),
    Url(&'a str),
}

impl AuthSettings {
    /// Returns the source of the keys. The error says what to change.
    pub(super) fn check(&self) -> Result<KeySource<'_>, String> {
        self.check_claims()?;
        self.key_ages.check()?;
        if self.leeway > LEEWAY_MAX {
            return Err(format!(
                "the leeway is {} s; at most {} s are permitted",
                self.leeway.as_secs(),
                LEEWAY_MAX.as_secs()
            ));
        }
        match (&self.hs256_secret, &self.jwks_url) {
            (Some(secret), None) => checked_secret(secret).map(KeySource::Secret),
            (None, Some(url)) => {
                check_url(url)?;
                self.check_place()?;
                Ok(KeySource::Url(url))
            }
            (Some(_), Some(_)) => {
                Err("both jwt_secret and jwks_url are set: remove one".to_owned())
            }
            (None, None) => {
                Err("tokens cannot be checked: set jwks_url to the key set of your identity provider, or jwt_secret".to_owned())
            }
        }
    }

    /// A provider signs tokens for other programs with the same keys. Some providers also sign tokens of other issuers with them.
    fn check_place(&self) -> Result<(), String> {
        let needed = [
            ("jwt_issuer", &self.issuer),
            ("jwt_audience", &self.audience),
        ];
        let missing: Vec<_> = needed
            .into_iter()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "jwks_url is set, and the provider signs tokens for other programs with the same keys: set {}",
            missing.join(" and ")
        ))
    }

    fn check_claims(&self) -> Result<(), String> {
        for name in [&self.tenant_claim, &self.roles_claim] {
            if name.is_empty() || REGISTERED_CLAIMS.contains(&name.as_str()) {
                return Err(format!(
                    "the claim \"{name}\" can name neither tenant nor roles: choose another name"
                ));
            }
        }
        if self
            .default_tenant
            .as_ref()
            .is_some_and(|tenant| tenant.trim().is_empty())
        {
            return Err(format!(
                "the default tenant has no name: name one, or leave it out and have every token carry the claim \"{}\"",
                self.tenant_claim
            ));
        }
        if self.tenant_claim == self.roles_claim {
            return Err(format!(
                "tenant and roles are both read from the claim \"{}\": choose two names",
                self.tenant_claim
            ));
        }
        Ok(())
    }
}

/// The secret, if it is long enough to sign with.
pub(in crate::http) fn checked_secret(secret: &Secret) -> Result<&Secret, String> {
    let length = secret.bytes().len();
    if length < SECRET_BYTES_MIN {
        return Err(format!(
            "the HS256 secret has {length} bytes; it needs at least {SECRET_BYTES_MIN} random ones"
        ));
    }
    Ok(secret)
}

/// The server at this URL decides who may act. So the connection to it must use TLS or stay on this machine.
fn check_url(text: &str) -> Result<(), String> {
    let refuse = |why: &str| {
        Err(format!(
            "the JWKS URL {why}: use https://, or http:// with a loopback address"
        ))
    };
    let Ok(url) = text.parse::<Uri>() else {
        return refuse("is not a URL");
    };
    if url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return refuse("carries credentials");
    }
    match (url.scheme_str(), url.host()) {
        (Some("https"), Some(_)) => Ok(()),
        (Some("http"), Some(host)) if is_loopback(host) => Ok(()),
        (Some("http"), Some(_)) => refuse("is not protected by TLS"),
        _ => refuse("has no scheme that is known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut AuthSettings)) -> String {
        let mut settings = AuthSettings {
            issuer: Some("https://id.example".to_owned()),
            audience: Some("wrkflw".to_owned()),
            ..AuthSettings::default()
        };
        change(&mut settings);
        settings.check().err().unwrap_or_default()
    }

    #[test]
    fn one_source_of_keys_is_needed() {
        assert!(refusal(|_| ()).contains("or jwt_secret"));
        let both = refusal(|settings| {
            settings.hs256_secret = Some(Secret::new([7; 32]));
            settings.jwks_url = Some("https://id.example/keys".to_owned());
        });
        assert!(both.contains("remove one"), "{both}");
    }

    #[test]
    fn a_short_secret_is_refused_and_never_shown() {
        let why = refusal(|settings| {
            settings.hs256_secret = Some(Secret::new(*b"0123456789012345678901234567890"));
        });
        assert_eq!(
            why,
            "the HS256 secret has 31 bytes; it needs at least 32 random ones"
        );
        assert_eq!(format!("{:?}", Secret::new(*b"hidden")), "Secret(6 bytes)");
    }

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        for good in [
            "https://id.example/keys",
            "http://127.0.0.1:8080/keys",
            "http://[::1]/keys",
            "http://localhost/keys",
        ] {
            assert_eq!(
                refusal(|settings| settings.jwks_url = Some(good.to_owned())),
                "",
                "{good}"
            );
        }
        for bad in [
            "http://id.example/keys",
            "http://127.0.0.1.id.example/keys",
            "http://localhost@id.example/keys",
            "https://user:word@id.example/keys",
            "file:///keys",
            "/keys",
            "not a url",
        ] {
            assert_ne!(
                refusal(|settings| settings.jwks_url = Some(bad.to_owned())),
                "",
                "{bad}"
            );
        }
    }

    #[test]
    fn keys_of_a_provider_need_an_issuer_and_an_audience() {
        let with = |change: fn(&mut AuthSettings)| {
            refusal(|settings| {
                settings.jwks_url = Some("https://id.example/keys".to_owned());
                change(settings);
            })
        };
        let no_issuer = with(|settings| settings.issuer = None);
        assert!(no_issuer.ends_with("set jwt_issuer"), "{no_issuer}");
        let no_audience = with(|settings| settings.audience = None);
        assert!(no_audience.ends_with("set jwt_audience"), "{no_audience}");
        let neither = with(|settings| (settings.issuer, settings.audience) = (None, None));
        assert!(
            neither.ends_with("set jwt_issuer and jwt_audience"),
            "{neither}"
        );
        // A secret signs only what its owners sign with it.
        let secret = refusal(|settings| {
            settings.hs256_secret = Some(Secret::new([7; 32]));
            (settings.issuer, settings.audience) = (None, None);
        });
        assert_eq!(secret, "");
    }

    #[test]
    fn ages_of_keys_fit_together() {
        let seconds = Duration::from_secs;
        let ages = |fresh, kept_max, interval_min| {
            refusal(|settings| {
                settings.jwks_url = Some("https://id.example/keys".to_owned());
                settings.key_ages = KeyAges {
                    fresh: seconds(fresh),
                    kept_max: seconds(kept_max),
                    interval_min: seconds(interval_min),
                };
            })
        };
        assert_eq!(ages(1, 1, 1), "");
        assert!(ages(1, 1, 0).contains("interval_min is 0"));
        for (fresh, kept_max, interval_min) in [(1, 2, 2), (3, 2, 1), (1, 8 * 24 * 3600, 1)] {
            let why = ages(fresh, kept_max, interval_min);
            assert!(why.contains("do not fit together"), "{why}");
        }
    }

    #[test]
    fn claims_with_a_meaning_of_their_own_are_refused() {
        assert!(refusal(|settings| settings.tenant_claim = "sub".to_owned()).contains("\"sub\""));
        assert!(
            refusal(|settings| settings.roles_claim = "tenant".to_owned())
                .contains("choose two names")
        );
        assert!(
            refusal(|settings| settings.leeway = Duration::from_secs(301))
                .contains("at most 300 s")
        );
        let nameless = refusal(|settings| settings.default_tenant = Some(" ".to_owned()));
        assert!(nameless.contains("the claim \"tenant\""), "{nameless}");
    }
}
