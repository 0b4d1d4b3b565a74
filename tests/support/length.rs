//! How long a test runs: short by default, long with `WRKFLW_SOAK` in the environment, as `make soak` sets it.

/// The first value by default, the second in a long run.
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
