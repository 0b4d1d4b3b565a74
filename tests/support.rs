//! What tests share: the service, databases, brokers, guests.

pub(crate) mod app;
pub(crate) mod documented;
pub(crate) mod guests;
pub(crate) mod kafka;
pub(crate) mod length;
pub(crate) mod machine;
pub(crate) mod own_postgres;
pub(crate) mod plans;
pub(crate) mod plug;
pub(crate) mod postgres;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod receiver;
pub(crate) mod statements;

/// The time between two looks at what a test waits for. Looks without a pause take the processor from the tests beside it.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(10);

/// Waits before the next check of a condition.
pub(crate) async fn pause() {
    tokio::time::sleep(LOOK_EVERY).await;
}

/// A name that is unique on a shared server.
#[expect(
    clippy::disallowed_methods,
    reason = "the name of something thrown away is no id of the core"
)]
pub(crate) fn unique() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
