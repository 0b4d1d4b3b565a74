//! Adds, replaces and deletes the working calendars of a tenant. Deadlines that were computed before do not change.

use super::error::Error;
use super::offload::Offload;
use super::permission::{note, permit};
use super::request::Identity;
use super::validation::check_document;
use wrkflw_core::answer::Violation;
use wrkflw_core::calendar::Calendar;
use wrkflw_core::check::names::{NAME_RULE, is_name};
use wrkflw_core::execution::effort;
use wrkflw_core::ids::TenantId;
use wrkflw_core::json::Json;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::Store;
use wrkflw_store::calendars::{self, CALENDARS_MAX, CalendarDeletion, CalendarPut};

/// The permission that changes of calendars need.
const WRITE: &str = "directory:write";

/// The working calendars of a tenant, by their names.
#[derive(Clone, Copy)]
pub struct Calendars<'a> {
    pub(super) store: &'a Store,
    pub(super) clock: &'a Clock,
    pub(super) offload: &'a Offload,
}

impl Calendars<'_> {
    /// Adds or replaces a calendar.
    pub async fn put(self, who: &Identity, name: &str, settings: &Json) -> Result<(), Error> {
        permit(self.store, who, WRITE).await?;
        if !is_name(name) {
            return Err(Error::malformed("/name", NAME_RULE));
        }
        check_document("", settings)?;
        let calendar = self.parse(who.tenant, settings).await?;
        let settings = calendar.map_err(unfit)?.to_json();
        let note = note(self.clock, &who.subject);
        let put = calendars::put(self.store, who.tenant, name, &settings, &note);
        match put.await? {
            CalendarPut::Done => Ok(()),
            CalendarPut::TooMany => {
                let detail =
                    format!("a tenant has at most {CALENDARS_MAX} calendars; delete one first");
                Err(Error::invalid_as_a_whole(detail, "/name", "too_many"))
            }
        }
    }

    /// Deletes a calendar. Refused, unless forced, while a version uses it that is active or has running instances: entries into its
    /// states would fail.
    pub async fn delete(self, who: &Identity, name: &str, force: bool) -> Result<(), Error> {
        permit(self.store, who, WRITE).await?;
        let note = note(self.clock, &who.subject);
        let deletion = calendars::delete(self.store, who.tenant, name, force, &note);
        match deletion.await? {
            CalendarDeletion::Done => Ok(()),
            CalendarDeletion::Missing => Err(Error::missing("calendar", name)),
            CalendarDeletion::Used(by) => Err(Error::CalendarUsed(by)),
        }
    }

    /// Parses the settings without delaying other tasks.
    pub async fn parse(
        self,
        tenant: TenantId,
        settings: &Json,
    ) -> Result<Result<Calendar, Vec<Violation>>, Error> {
        let effort = effort::calendar_of(settings);
        let read = || Calendar::parse(settings);
        self.offload.in_place(tenant, effort, read).await
    }
}

/// The problems of the settings, each with its pointer.
fn unfit(violations: Vec<Violation>) -> Error {
    Error::Invalid {
        detail: "the calendar has invalid settings".to_owned(),
        violations,
    }
}
