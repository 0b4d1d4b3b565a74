pub(super) fn routes() -> axum::Router<super::App> {
    axum::Router::new()
}
