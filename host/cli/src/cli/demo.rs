//! The demo people and the sample flow of `wrkflw dev`, with its instances.

use anyhow::{Context as _, Result};

use super::connection::DEV_TENANT;
use super::failure::{Exit, Failure};
use super::samples;
use crate::roles;
use crate::sample::DOCUMENT_APPROVAL;
use wrkflw_console::{DemoPerson, Entrance};
use wrkflw_core::ids::VersionRef;
use wrkflw_core::json::Json;
use wrkflw_engine::{Engine, Error, Identity};
use wrkflw_store::definitions;
use wrkflw_store::definitions::list::{VersionChoice, VersionFilter, VersionSummary};
use wrkflw_store::directory::Membership;
use wrkflw_store::directory::people;
use wrkflw_store::directory::tenants;

/// The key of the sample flow.
pub(super) const FLOW: &str = "document-approval";
/// The note of its versions. It distinguishes versions of other releases from versions of the user.
const NOTE: &str = "The sample of wrkflw dev";
/// Ids and names.
const GROUPS: [(&str, &str); 3] = [
    ("authors", "Authors"),
    ("reviewers", "Reviewers"),
    ("approvers", "Approvers"),
];
/// Ids, names and groups.
pub(super) const PEOPLE: [(&str, &str, Option<&str>); 6] = [
    ("author", "Ada Author", Some("authors")),
    ("reviewer", "Rob Reviewer", Some("reviewers")),
    ("reviewer2", "Rita Reviewer", Some("reviewers")),
    ("approver", "Amy Approver", Some("approvers")),
    ("outsider", "Otto Outsider", None),
    ("admin", "Alex Admin", None),
];

/// The additions to the console of `wrkflw dev`: people as whom anybody may sign in and, unless `empty`, the documents of the sample
/// product.
pub(super) fn entrance(empty: bool) -> Entrance {
    Entrance {
        demo: signing_in(),
        samples: if empty { &[] } else { samples::PRODUCT },
        provider: None,
    }
}

fn signing_in() -> Vec<DemoPerson> {
    let person = |(id, name, group): (&str, &str, Option<&str>)| {
        let role = if id == "admin" {
            roles::ADMIN
        } else {
            roles::USER
        };
        let named = |group| GROUPS.iter().find(|(id, _)| Some(*id) == group);
        DemoPerson {
            id: id.to_owned(),
            name: name.to_owned(),
            group: named(group).map(|(_, name)| (*name).to_owned()),
            tenant: DEV_TENANT.to_owned(),
            roles: vec![role.to_owned()],
        }
    };
    PEOPLE.map(person).into()
}

/// Adds missing groups, people, the flow and, unless `empty`, the samples. Does not overwrite changes.
pub(super) async fn prepare(engine: &Engine, empty: bool) -> Result<()> {
    let tenant = tenants::find(engine.reader(), DEV_TENANT)
        .await?
        .context("the tenant was made at the start")?;
    let who = Identity {
        tenant,
        tenant_name: DEV_TENANT.to_owned(),
        subject: "admin".to_owned(),
        roles: vec![roles::ADMIN.to_owned()],
        embedded_by: None,
    };
    directory(engine, &who).await?;
    let filter = VersionFilter {
        key: Some(FLOW),
        choice: VersionChoice::Active,
        limit: 1,
        ..VersionFilter::default()
    };
    let active = definitions::versions(engine.reader(), tenant, filter)
        .await?
        .pop();
    let sample = (DOCUMENT_APPROVAL, &Json::empty());
    let published = engine
        .definitions()
        .publish(&who, FLOW, sample, Some(NOTE))
        .await
        .map_err(unpublished)?;
    let replaces =
        |active: VersionSummary| published.created && active.note.is_some_and(|note| note == NOTE);
    if active.is_none_or(replaces) {
        let reference = VersionRef {
            key: published.key,
            version: published.version,
        };
        engine
            .definitions()
            .activate(&who, &reference, false)
            .await
            .context("the sample flow cannot be activated")?;
    } else if published.created {
        let version = published.version;
        tracing::info!(
            version,
            "the sample flow has a new version, which is not active: the active one is not from `wrkflw dev`"
        );
    }
    if !empty {
        Box::pin(samples::prepare(engine, tenant)).await;
    }
    Ok(())
}

/// Names the problems, for example a compilation that needs more memory than the machine has.
fn unpublished(error: Error) -> anyhow::Error {
    const MESSAGE: &str = "the sample flow cannot be published";
    match error {
        Error::Unpublishable(problems) => Failure::new(Exit::Invalid, MESSAGE)
            .details(problems.iter().map(ToString::to_string))
            .into(),
        error => anyhow::Error::from(error).context(MESSAGE),
    }
}

async fn directory(engine: &Engine, who: &Identity) -> Result<()> {
    let reader = engine.reader();
    for (id, name) in GROUPS {
        if people::group(reader, who.tenant, id).await?.is_none() {
            engine.directory().put_group(who, id, name).await?;
        }
    }
    let following = &PEOPLE[1..];
    for (place, (id, name, group)) in PEOPLE.into_iter().enumerate() {
        let is_known = people::person(reader, who.tenant, id).await?.is_some();
        // The next person is added after the membership. If they are missing, an earlier start ended in between.
        let is_complete = match following.get(place) {
            Some((next, ..)) => people::person(reader, who.tenant, next).await?.is_some(),
            None => true,
        };
        if is_known && is_complete {
            continue;
        }
        if !is_known {
            engine.directory().put_person(who, id, name).await?;
        }
        if let Some(group) = group {
            let begins = Membership::Begins;
            engine
                .directory()
                .put_membership(who, (group, id), begins, false)
                .await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrkflw_core::check::Problem;

    #[test]
    fn a_sample_that_cannot_be_published_says_why() {
        let problem = Problem::new("component_invalid", "/", "it needs too much memory");
        let error = unpublished(Error::Unpublishable(vec![problem]));
        let failure = error.downcast_ref::<Failure>().expect("a failure");
        assert!(
            failure.to_string().contains("cannot be published"),
            "{failure}"
        );
        assert!(format!("{failure:?}").contains("it needs too much memory"));
    }
}
