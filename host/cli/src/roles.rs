//! The default roles of a new tenant. Tokens carry roles; the tenant's table has the permissions of each.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use wrkflw_engine::{EMBED_ISSUE, PERMISSIONS};

/// Acts in flows.
pub const USER: &str = "user";
/// May do all that the host permits to people.
pub const ADMIN: &str = "admin";
/// A server of a product, which shows instances in its pages to people with the role [`USER`].
pub const PRODUCT: &str = "product";

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

static ADMIN_PERMISSIONS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    // An issuer of embed tokens acts for other people, and the separation of duties does not see that.
    let all = PERMISSIONS.iter().copied();
    all.filter(|one| *one != EMBED_ISSUE).collect()
});

static PRODUCT_PERMISSIONS: LazyLock<Vec<&str>> =
    LazyLock::new(|| [USER_PERMISSIONS, &[EMBED_ISSUE]].concat());

/// The permissions of each role in a new tenant. Later, only the tenant's table counts.
pub fn defaults() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        (USER, USER_PERMISSIONS),
        (ADMIN, ADMIN_PERMISSIONS.as_slice()),
        (PRODUCT, PRODUCT_PERMISSIONS.as_slice()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_may_do_all_that_a_user_may() {
        assert!(
            USER_PERMISSIONS
                .iter()
                .all(|permission| ADMIN_PERMISSIONS.contains(permission))
        );
    }

    #[test]
    fn only_a_product_issues_embed_tokens() {
        let issues = |(_, permissions): &(_, &[&str])| permissions.contains(&EMBED_ISSUE);
        let roles: Vec<_> = defaults().into_iter().filter(issues).collect();
        assert_eq!(roles, [(PRODUCT, PRODUCT_PERMISSIONS.as_slice())]);
    }
}
