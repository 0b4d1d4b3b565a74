//! How long a test goes on: as on every day, or as `make soak` asks with `WRKFLW_SOAK` in the environment.

/// So many on every day, so many in the long run.
#[expect(
    clippy::disallowed_methods,
    reason = "the test command says in the environment how long it may take"
)]
pub(crate) fn at_length<T>(everyday: T, long: T) -> T {
    match std::env::var_os("WRKFLW_SOAK") {
        Some(_) => long,
        None => everyday,
    }
}
