//! The default roles of a new tenant. Tokens carry roles; the tenant's table says what each may do.

use std::collections::BTreeMap;

use wrkflw_engine::PERMISSIONS;

/// Acts in flows.
pub const USER: &str = "user";
/// May do all that the host permits.
pub const ADMIN: &str = "admin";

const USER_PERMISSIONS: &[&str] = &[
    "instance:start",
    "instance:read",
    "task:act",
    "task:read",
    "definition:read",
    "event:read",
    "directory:read",
    "absence:self",
    "notification:read",
    "instance:signal",
];

/// What each role may do in a new tenant. Later, only the tenant's table counts.
pub fn defaults() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([(USER, USER_PERMISSIONS), (ADMIN, PERMISSIONS)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_may_do_all_that_a_user_may() {
        assert!(
            USER_PERMISSIONS
                .iter()
                .all(|permission| PERMISSIONS.contains(permission))
        );
    }
}
