//! The pages, a module each. Every module has `routes()`, and its template is in `templates/`.

pub(crate) mod inbox;
pub(crate) mod instance;
pub(crate) mod sign_in;
pub(crate) mod trouble;

use axum::Router;
use axum::routing::any;

use crate::Console;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .merge(sign_in::routes())
        .merge(inbox::routes())
        .merge(instance::routes())
        .route("/console/{*rest}", any(trouble::missing))
}
