//! The people and the flow that `wrkflw dev` comes with.

use anyhow::{Context as _, Result};

use super::connection::DEV_TENANT;
use crate::domain::ids::{TenantId, VersionRef};
use crate::domain::json::Json;
use crate::engine::{Engine, Identity};
use crate::roles;
use crate::sample::DOCUMENT_APPROVAL;
use crate::store::directory::{Membership, Run};

/// The key of the sample flow.
pub(super) const FLOW: &str = "document-approval";
/// The groups.
const GROUPS: [(&str, &str); 3] = [
    ("authors", "Authors"),
    ("reviewers", "Reviewers"),
    ("approvers", "Approvers"),
];
/// The people, each with their group.
pub(super) const PEOPLE: [(&str, &str, Option<&str>); 6] = [
    ("author", "Ada Author", Some("authors")),
    ("reviewer", "Rob Reviewer", Some("reviewers")),
    ("reviewer2", "Rita Reviewer", Some("reviewers")),
    ("approver", "Amy Approver", Some("approvers")),
    ("outsider", "Otto Outsider", None),
    ("admin", "Alex Admin", None),
];

/// Adds what is missing. What people have changed since stays as it is.
pub(super) async fn prepare(engine: &Engine) -> Result<()> {
    let tenant = engine
        .store()
        .tenant(DEV_TENANT)
        .await?
        .context("the tenant was made at the start")?;
    directory(engine, tenant).await?;
    let who = Identity {
        tenant,
        tenant_name: DEV_TENANT.to_owned(),
        subject: "admin".to_owned(),
        roles: vec![roles::ADMIN.to_owned()],
    };
    let published = engine
        .publish(&who, FLOW, DOCUMENT_APPROVAL, &Json::empty())
        .await
        .context("the sample flow cannot be published")?;
    let versions = engine
        .store()
        .versions(tenant, Some(FLOW), None, i64::from(u16::MAX))
        .await?;
    if published.created || !versions.iter().any(|version| version.active) {
        let reference = VersionRef {
            key: published.key,
            version: published.version,
        };
        engine
            .activate(&who, &reference)
            .await
            .context("the sample flow cannot be activated")?;
    }
    Ok(())
}

async fn directory(engine: &Engine, tenant: TenantId) -> Result<()> {
    let store = engine.store();
    for (id, name) in GROUPS {
        if store.group(tenant, id).await?.is_none() {
            store
                .put_group(tenant, id, name, &engine.note("admin"))
                .await?;
        }
    }
    for (id, name, group) in PEOPLE {
        if store.person(tenant, id).await?.is_some() {
            continue;
        }
        store
            .put_person(tenant, id, name, &engine.note("admin"))
            .await?;
        if let Some(group) = group {
            store
                .put_membership(
                    tenant,
                    (group, id),
                    Membership::Begins,
                    Run::Real,
                    &engine.note("admin"),
                )
                .await?;
        }
    }
    Ok(())
}
