//! The pages, a module each. Every module has `routes()`, and its template is in `templates/`.

pub(crate) mod audit;
pub(crate) mod definitions;
pub(crate) mod embed;
pub(crate) mod inbox;
pub(crate) mod instance;
pub(crate) mod live;
pub(crate) mod me;
pub(crate) mod notifications;
pub(crate) mod operations;
pub(crate) mod people;
pub(crate) mod provider;
pub(crate) mod samples;
pub(crate) mod search;
pub(crate) mod sign_in;
pub(crate) mod start;
pub(crate) mod trouble;
pub(crate) mod who;

use axum::Router;
use axum::routing::any;

use crate::Console;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .merge(sign_in::routes())
        .merge(provider::routes())
        .merge(inbox::routes())
        .merge(instance::routes())
        .merge(live::routes())
        .merge(me::routes())
        .merge(notifications::routes())
        .merge(search::routes())
        .merge(start::routes())
        .merge(audit::routes())
        .merge(definitions::routes())
        .merge(operations::routes())
        .merge(who::routes())
        .merge(people::routes())
        .merge(embed::routes())
        .merge(samples::routes())
        .route("/console/{*rest}", any(trouble::missing))
}
