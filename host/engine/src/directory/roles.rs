//! Roles and what they permit. Tokens say which roles a person has; the tenant's roles say what each permits.

use std::collections::BTreeSet;

use super::{run_of, settle};
use crate::embedding::EMBED_ISSUE;
use crate::error::Error;
use crate::permission::{note, permit};
use crate::request::Identity;
use crate::validation::check_id;
use wrkflw_core::participant::READ_ALL;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::Store;
use wrkflw_store::directory::roles::{self, ROLE_WRITE, Role};

/// The permissions that the host knows. Flow logic may ask for others.
pub const PERMISSIONS: &[&str] = &[
    "absence:self",
    "audit:read",
    "dead-letter:read",
    "dead-letter:write",
    "definition:activate",
    "definition:activate-own-work",
    "definition:publish",
    "definition:read",
    "definition:retire",
    "directory:read",
    "directory:write",
    EMBED_ISSUE,
    "event:read",
    "instance:cancel",
    "instance:migrate",
    "instance:read",
    READ_ALL,
    "instance:signal",
    "instance:start",
    "instance:suspend",
    "notification:read",
    "role:read",
    ROLE_WRITE,
    "subscription:read",
    "subscription:write",
    "task:act",
    "task:assign",
    "task:read",
];
/// Maximum permissions of a role.
const PERMISSIONS_MAX: usize = 200;
/// Maximum length of a permission.
const PERMISSION_BYTES_MAX: usize = 100;

/// Roles and what they permit.
#[derive(Clone, Copy)]
pub struct Roles<'a> {
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a Clock,
}

impl Roles<'_> {
    /// Gives a role exactly these permissions. A role without permissions is deleted. Returns the role before and after the
    /// change; a missing role has no permissions.
    pub async fn put(
        self,
        who: &Identity,
        role: &str,
        permissions: &[String],
        dry_run: bool,
    ) -> Result<(Role, Role), Error> {
        permit(self.store, who, ROLE_WRITE).await?;
        check_id("/id", role)?;
        if permissions.len() > PERMISSIONS_MAX {
            let detail = format!("at most {PERMISSIONS_MAX} permissions");
            return Err(Error::invalid("/permissions", "too_long", detail));
        }
        for (place, permission) in permissions.iter().enumerate() {
            check(&format!("/permissions/{place}"), permission)?;
        }
        let ordered: BTreeSet<String> = permissions.iter().cloned().collect();
        let permissions: Vec<String> = ordered.into_iter().collect();
        let before = roles::list(self.store, who.tenant, Some(role)).await?.pop();
        let (note, run) = (note(self.clock, &who.subject), run_of(dry_run));
        let put = roles::put(self.store, who.tenant, role, &permissions, run, &note);
        settle(put.await?, "role", role)?;
        let of = |permissions| Role {
            id: role.to_owned(),
            permissions,
        };
        Ok((before.unwrap_or_else(|| of(Vec::new())), of(permissions)))
    }

    /// The role with this id. Checks no permission.
    pub async fn get(self, who: &Identity, id: &str) -> Result<Role, Error> {
        let mut roles = roles::list(self.store, who.tenant, Some(id)).await?;
        roles.pop().ok_or_else(|| Error::missing("role", id))
    }
}

/// Checks one permission. A permission with a prefix of the host's must be one of the host's, so that misspellings are noticed.
fn check(pointer: &str, permission: &str) -> Result<(), Error> {
    let parts = permission.split_once(':');
    let is_word = |text: &str| {
        let mut bytes = text.bytes();
        !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let Some((what, _)) = parts.filter(|(what, rest)| is_word(what) && is_word(rest)) else {
        let detail =
            "two words of letters, digits, -, _ and . with a colon between them, such as task:act";
        return Err(Error::malformed(pointer, detail));
    };
    if permission.len() > PERMISSION_BYTES_MAX {
        let detail = format!("at most {PERMISSION_BYTES_MAX} characters");
        return Err(Error::invalid(pointer, "too_long", detail));
    }
    let mut alike = PERMISSIONS
        .iter()
        .filter(|known| known.split(':').next() == Some(what))
        .copied()
        .peekable();
    if alike.peek().is_some() && !PERMISSIONS.contains(&permission) {
        let alike: Vec<_> = alike.collect();
        let detail = format!(
            "no permission of the host; those of {what} are {}",
            alike.join(", ")
        );
        return Err(Error::invalid(pointer, "unknown_permission", detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_of_the_host_are_spelt_right_and_those_of_flows_are_free() {
        for permission in PERMISSIONS.iter().chain(&["expense:approve", "x:y.z-1"]) {
            assert!(check("/", permission).is_ok(), "{permission}");
        }
        let long = format!("expense:{}", "a".repeat(PERMISSION_BYTES_MAX));
        for wrong in [
            "task:acts",
            "role:admin",
            "task",
            "task:",
            ":act",
            "a b:c",
            "",
            &long,
        ] {
            assert!(check("/", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_permissions_are_in_order() {
        assert!(PERMISSIONS.is_sorted());
    }
}
