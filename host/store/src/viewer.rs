//! The viewer of a query. In every query of the reader, the database leaves out the rows that the viewer does not see
//! (`migrations/0012_grant_roles.sql`).

pub(super) mod plans;
pub(super) mod visible;

use std::collections::HashSet;

use uuid::Uuid;

use self::plans::Plans;
use super::feed::FeedEntry;
use super::load::array;
use super::pool::Limited;
use super::{Reader, StoreError};
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::participant::{Circle, Kind, READ_ALL};

/// The database roles that read: one reads all rows of a tenant, the other, by its policies, only the rows that the viewer sees.
const READER: &str = "wrkflw_reader";
pub(super) const VIEWER: &str = "wrkflw_viewer";

/// Somebody who reads in a tenant. A viewer made from a [`TenantId`] alone is no person, and sees no restricted instance.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub tenant: TenantId,
    sees: Sees,
}

#[derive(Debug, Clone)]
enum Sees {
    Unrestricted,
    All,
    /// The instances that this person may see. The flag: whether the tenant has restricted instances.
    Own(Box<Actor>, bool),
}

impl From<TenantId> for Viewer {
    fn from(tenant: TenantId) -> Viewer {
        let sees = Sees::Unrestricted;
        Viewer { tenant, sees }
    }
}

impl From<&Viewer> for Viewer {
    fn from(viewer: &Viewer) -> Viewer {
        viewer.clone()
    }
}

impl Viewer {
    /// The host itself, and callers whose permission covers every instance.
    pub fn all(tenant: TenantId) -> Viewer {
        let sees = Sees::All;
        Viewer { tenant, sees }
    }

    /// A caller with their current groups, permissions and absences. `restricts` is whether the tenant has restricted instances.
    pub fn of(tenant: TenantId, actor: Actor, restricts: bool) -> Viewer {
        let sees = if restricts && (actor.is_host() || actor.may(READ_ALL)) {
            Sees::All
        } else {
            Sees::Own(Box::new(actor), restricts)
        };
        Viewer { tenant, sees }
    }

    /// Whether the viewer sees what this circle sees of an instance of the definition. None: everybody of the tenant sees it.
    pub fn is_in(&self, circle: Option<&Circle>, definition: &str) -> bool {
        circle.is_none_or(|circle| match &self.sees {
            Sees::All => true,
            Sees::Unrestricted => circle.observers.is_none(),
            Sees::Own(actor, _) => circle.includes(actor, definition),
        })
    }

    /// Whether the viewer sees the instance of an event.
    pub fn sees(&self, event: &FeedEntry) -> bool {
        self.is_in(event.circle.as_deref(), &event.entry.definition.key)
    }

    /// Whether there may be instances that the viewer does not see.
    pub fn is_restricted(&self) -> bool {
        self.restricted().is_some()
    }

    /// Whether there may be restricted instances that the viewer sees.
    pub(super) fn may_read_restricted(&self) -> bool {
        !matches!(&self.sees, Sees::Own(_, false))
    }

    /// The caller, if there may be instances that they do not see.
    pub(super) fn restricted(&self) -> Option<&Actor> {
        match &self.sees {
            Sees::Own(actor, true) => Some(actor),
            _ => None,
        }
    }

    /// Makes a connection of the reader see exactly the rows that the viewer sees.
    pub(super) async fn settle(
        &self,
        connection: &mut Limited,
        plans: Plans,
    ) -> Result<(), StoreError> {
        let none = || array(&[] as &[String]);
        let (role, viewer, groups, principals) = match &self.sees {
            Sees::Unrestricted => (VIEWER, "", none(), none()),
            Sees::All | Sees::Own(_, false) => (READER, "", none(), none()),
            Sees::Own(actor, true) => (
                VIEWER,
                actor.id.as_str(),
                array(&actor.groups),
                array(&principals(actor)),
            ),
        };
        let (cached, scans) = plans.settings();
        let setting = sqlx::query!(
            r#"select set_config('wrkflw.tenant', $1, false) as tenant, set_config('role', $2, false) as role,
                set_config('wrkflw.viewer', $3, false) as viewer, set_config('wrkflw.groups', $4, false) as groups,
                set_config('wrkflw.principals', $5, false) as principals, set_config('plan_cache_mode', $6, false) as plans,
                set_config('enable_seqscan', $7, false) as scans, set_config('enable_bitmapscan', $7, false) as bitmaps"#,
            self.tenant.to_string(),
            role,
            viewer,
            groups,
            principals,
            cached,
            scans
        );
        setting.fetch_one(connection).await?;
        Ok(())
    }
}

/// A connection of a viewer who may not see every instance. An index gives the order of a list. To read only the visible rows from
/// it, a page may have to pass a million other rows. So a list takes places from an index without a check of visibility, a bounded
/// number at a time. Then it reads as the viewer which of these places it may show.
pub(super) struct Looking<'v> {
    viewer: &'v Viewer,
    connection: Limited,
    may_plan_once: bool,
    /// Whether it is set to read without a check of visibility, and how it plans. None before its first use.
    settled: Option<(bool, Plans)>,
}

impl Looking<'_> {
    /// Reads as the viewer.
    pub(super) async fn seen(&mut self) -> Result<&mut Limited, StoreError> {
        self.settle(false, Plans::OfValues).await
    }

    /// Reads as the viewer, by statements that are planned once.
    pub(super) async fn seen_once_planned(&mut self) -> Result<&mut Limited, StoreError> {
        self.settle(false, Plans::Once).await
    }

    /// Reads places without a check of visibility. An answer may use them only for the cursor of its next page, or to say that there
    /// may be more.
    pub(super) async fn places(&mut self) -> Result<&mut Limited, StoreError> {
        self.settle(true, Plans::OfValues).await
    }

    /// Reads places by statements that are planned once.
    pub(super) async fn places_once_planned(&mut self) -> Result<&mut Limited, StoreError> {
        self.settle(true, Plans::Once).await
    }

    async fn settle(&mut self, past: bool, plans: Plans) -> Result<&mut Limited, StoreError> {
        let past = past && self.viewer.is_restricted();
        let plans = if self.may_plan_once {
            plans
        } else {
            Plans::OfValues
        };
        if self.settled != Some((past, plans)) {
            let all = past.then(|| Viewer::all(self.viewer.tenant));
            let viewer = all.as_ref().unwrap_or(self.viewer);
            viewer.settle(&mut self.connection, plans).await?;
            self.settled = Some((past, plans));
        }
        Ok(&mut self.connection)
    }

    /// Keeps the rows about instances that the viewer sees, and those about none. Returns the last row, if the page might have been
    /// full with the others.
    pub(super) async fn keep_seen<T: Clone>(
        &mut self,
        rows: &mut Vec<T>,
        limit: i64,
        instance: impl Fn(&T) -> Option<Uuid>,
    ) -> Result<Option<T>, StoreError> {
        if !self.viewer.is_restricted() || rows.is_empty() {
            return Ok(None);
        }
        let is_full = i64::try_from(rows.len()).is_ok_and(|read| read >= limit);
        let last = rows.last().cloned().filter(|_| is_full);
        let ids: Vec<_> = rows.iter().filter_map(&instance).collect();
        let tenant = self.viewer.tenant.0;
        let seen = sqlx::query_scalar!(
            "select id from instance where tenant_id = $1 and id = any($2)",
            tenant,
            &ids
        );
        let seen = seen.fetch_all(self.seen().await?).await?;
        let seen: HashSet<_> = seen.into_iter().collect();
        rows.retain(|row| instance(row).is_none_or(|id| seen.contains(&id)));
        Ok(last)
    }
}

/// The principals as which the actor is a participant, in the form of the policy.
fn principals(actor: &Actor) -> Vec<String> {
    let (user, group) = (Kind::User.name(), Kind::Group.name());
    let of = |person: &str, groups: &[String]| -> Vec<String> {
        let groups = groups.iter().map(|id| format!("{group}\n{id}"));
        std::iter::once(format!("{user}\n{person}"))
            .chain(groups)
            .collect()
    };
    let mut principals = of(&actor.id, &actor.groups);
    for absent in &actor.stands_in_for {
        let as_absent = of(&absent.person, &absent.groups);
        principals.extend(as_absent.into_iter().map(|one| match &absent.definition {
            Some(definition) => format!("{definition}\n{one}"),
            None => one,
        }));
    }
    principals
}

impl Reader {
    /// A connection for a list of what the viewer sees.
    pub(super) async fn looking<'v>(&self, viewer: &'v Viewer) -> Result<Looking<'v>, StoreError> {
        let mut connection = self.reader_connection().await?;
        Ok(Looking {
            viewer,
            may_plan_once: self.tables.are_large(&mut connection).await?,
            connection,
            settled: None,
        })
    }

    /// Whether the viewer sees this instance.
    pub async fn sees(&self, viewer: &Viewer, id: InstanceId) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"select exists(select from instance where tenant_id = $1 and id = $2) as "found!""#,
            viewer.tenant.0,
            id.0
        );
        Ok(found.fetch_one(&mut self.reading(viewer).await?).await?)
    }
}
