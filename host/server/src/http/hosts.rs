//! The hosts that run.

use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::Caller;
use super::layers::without_query;
use super::problem::Problem;
use super::view::{each, view};
use wrkflw_store::hosts;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    without_query(OpenApiRouter::new().routes(routes!(list)))
}

view! {
    of wrkflw_store::hosts::HostRow;
    /// A process that runs `wrkflw serve` or `wrkflw dev`.
    pub(super) struct HostView {
        /// New with each start.
        pub id: Uuid,
        /// The name of the machine, and the port that the host listens on.
        pub name: String,
        pub version: String,
        /// What it does: `api`, `relay`, `timers`, `notifier`.
        pub roles: Vec<String>,
        #[schema(value_type = String, format = DateTime)]
        pub started_at: Timestamp,
        /// When it last said that it runs, by the clock of the database.
        #[schema(value_type = String, format = DateTime)]
        pub seen_at: Timestamp,
    }
}

/// The hosts that run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Hosts {
    #[schema(max_items = 1000)]
    data: Vec<HostView>,
    /// The versions that run, in the order of their names. More than one: an upgrade is not complete.
    versions: Vec<String>,
}

/// Lists the hosts of this database, those that run longest first, at most 1000. They serve all tenants.
///
/// A host says every 10 s that it runs. One that fails is listed for 30 s; one that stops is not listed any more.
#[utoipa::path(get, path = "/v1/hosts", tag = "operation", operation_id = "listHosts", responses((status = 200, body = Hosts)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Hosts>, Problem> {
    app.engine.permit(&who, "dead-letter:read").await?;
    let hosts = hosts::list(app.engine.reader(), who.tenant).await?;
    let mut versions: Vec<_> = hosts.iter().map(|host| host.version.clone()).collect();
    versions.sort_unstable();
    versions.dedup();
    let data = each(hosts);
    Ok(axum::Json(Hosts { data, versions }))
}
