//! Starts and stops bulk operations, and reads their status.

use uuid::Uuid;

use super::{Bulk, CANCEL, MIGRATE, Many, Migrations};
use crate::error::Error;
use crate::permission::{need, note};
use crate::request::{Identity, id_under};
use crate::validation::{check_id, check_key, check_reason, check_states};
use wrkflw_core::ids::VersionRef;
use wrkflw_core::rejection::Rejection;
use wrkflw_store::bulk::{self, AliveFilter, BeginResult, NewOperation, Operation, RUNNING_MAX};
use wrkflw_store::viewer::Viewer;

impl Bulk<'_> {
    /// Starts an operation on all instances that match the filter. A repeated request with the same idempotency key returns the
    /// operation of the first one.
    pub async fn begin(
        self,
        who: &Identity,
        many: &Many,
        key: Option<&str>,
    ) -> Result<Operation, Error> {
        self.check_many(who, many).await?;
        let (instances, more) = self.choose(who, many).await?;
        let (id, settings) = (id_under("operation", &who.subject, key), many.settings());
        let new = NewOperation {
            id,
            action: many.action(),
            settings: &settings,
            roles: &who.roles,
            instances: &instances,
            more,
        };
        let note = note(&self.engine.0.clock, &who.subject);
        match bulk::begin(&self.engine.0.store, who.tenant, &new, &note).await? {
            BeginResult::Yes => self.engine.0.post_commit.wake_workers(),
            BeginResult::Taken => return Err(Error::KeyReused),
            BeginResult::TooMany => {
                let detail = format!(
                    "at most {RUNNING_MAX} operations run at once; wait for one, or stop one"
                );
                return Err(Rejection::not_now("too_many_operations", detail).into());
            }
        }
        self.operation(who, id).await
    }

    /// Stops an operation that the caller may see. Items in progress are finished. The caller needs the permission to start such an
    /// operation.
    pub async fn stop(self, who: &Identity, id: Uuid) -> Result<Operation, Error> {
        let actor = self.engine.actor(who).await?;
        need(&actor, CANCEL).or_else(|_| need(&actor, MIGRATE))?;
        let viewer = self.engine.viewer(who).await?;
        let operation = self.operation_shown(who, &viewer, id).await?;
        let needed = if operation.action == "cancel" {
            CANCEL
        } else {
            MIGRATE
        };
        need(&actor, needed)?;
        let note = note(&self.engine.0.clock, &who.subject);
        if !bulk::stop(&self.engine.0.store, who.tenant, id, &note).await? {
            return Err(Error::missing("operation", id));
        }
        self.operation(who, id).await
    }

    /// The status of an operation. Its totals count instances. So if instances are restricted, people other than the requester
    /// see it only if they see all instances.
    pub async fn operation_shown(
        self,
        who: &Identity,
        viewer: &Viewer,
        id: Uuid,
    ) -> Result<Operation, Error> {
        let operation = self.operation(who, id).await?;
        if operation.requested_by == who.subject || !viewer.is_restricted() {
            return Ok(operation);
        }
        Err(Error::missing("operation", id))
    }

    /// The status of an operation. Checks no permission.
    pub async fn operation(self, who: &Identity, id: Uuid) -> Result<Operation, Error> {
        let found = bulk::get(&self.engine.0.store, who.tenant, id).await?;
        found.ok_or_else(|| Error::missing("operation", id))
    }

    /// Refuses a caller without the permission, and a request that would fail for every instance.
    pub(super) async fn check_many(self, who: &Identity, many: &Many) -> Result<(), Error> {
        let actor = self.engine.actor(who).await?;
        need(&actor, many.permission())?;
        match many {
            Many::Migrate(migrations) => check_migrations(migrations)?,
            Many::Cancel(cancellations) => {
                check_key("/definitionKey", &cancellations.definition)?;
                check_reason(&cancellations.reason)?;
                check_filter(&cancellations.filter)?;
            }
        }
        let (current, _) = many.about();
        self.engine.versions().get(who.tenant, &current).await?;
        if let Many::Migrate(migrations) = many {
            let target = VersionRef {
                version: migrations.version,
                ..current
            };
            self.engine
                .versions()
                .target(who.tenant, &actor, &target)
                .await?;
        }
        Ok(())
    }
}

fn check_migrations(migrations: &Migrations) -> Result<(), Error> {
    check_key("/definitionKey", &migrations.definition)?;
    check_states(&migrations.states)?;
    check_filter(&migrations.filter)?;
    if migrations.from_version == migrations.version {
        let detail = "the instances have this version already";
        return Err(Error::invalid_as_a_whole(
            detail,
            "/version",
            "same_version",
        ));
    }
    Ok(())
}

fn check_filter(filter: &AliveFilter) -> Result<(), Error> {
    if let Some(state) = &filter.state {
        check_key("/filter/state", state)?;
    }
    if let Some(kind) = &filter.entity_type {
        check_id("/filter/entityType", kind)?;
    }
    if let Some(id) = &filter.entity_id {
        check_id("/filter/entityId", id)?;
    }
    let status = filter.status.as_deref();
    if status.is_none_or(|status| ["RUNNING", "SUSPENDED"].contains(&status)) {
        return Ok(());
    }
    let detail = "only RUNNING or SUSPENDED instances can be changed";
    Err(Error::invalid_as_a_whole(detail, "/filter/status", "enum"))
}
