//! Guests for tests, built once per test run into `target/guests`.

use std::path::Path;
use std::sync::OnceLock;

use wrkflw_sandbox::componentize::{STACK, componentize};

#[path = "../../host/cli/build/guest.rs"]
mod build;

/// The component of `tests/guests/hostile`, which misbehaves as its input asks.
pub(crate) fn hostile() -> &'static [u8] {
    static HOSTILE: OnceLock<Vec<u8>> = OnceLock::new();
    HOSTILE.get_or_init(|| componentize(hostile_module()).expect("a component"))
}

/// The core module of [`hostile`]. It contains its contract.
pub(crate) fn hostile_module() -> &'static [u8] {
    static HOSTILE: OnceLock<Vec<u8>> = OnceLock::new();
    HOSTILE.get_or_init(|| module("hostile-guest"))
}

/// The component of `tests/guests/committee`. The data of an instance sets its offers and quorum.
pub(crate) fn committee() -> &'static [u8] {
    static COMMITTEE: OnceLock<Vec<u8>> = OnceLock::new();
    COMMITTEE.get_or_init(|| built("committee-guest"))
}

/// The component of `tests/guests/branches`, whose branches meet in one join.
pub(crate) fn branches() -> &'static [u8] {
    static BRANCHES: OnceLock<Vec<u8>> = OnceLock::new();
    BRANCHES.get_or_init(|| built("branches-guest"))
}

/// The component of `tests/guests/subflows`. The data of an instance sets what it waits for.
pub(crate) fn subflows() -> &'static [u8] {
    static SUBFLOWS: OnceLock<Vec<u8>> = OnceLock::new();
    SUBFLOWS.get_or_init(|| built("subflows-guest"))
}

/// The component of `plugins/purchase-approval`.
pub(crate) fn purchase_approval() -> &'static [u8] {
    static PURCHASE: OnceLock<Vec<u8>> = OnceLock::new();
    PURCHASE.get_or_init(|| built("purchase-approval"))
}

/// The component of `plugins/order-handling`.
pub(crate) fn order_handling() -> &'static [u8] {
    static ORDER: OnceLock<Vec<u8>> = OnceLock::new();
    ORDER.get_or_init(|| built("order-handling"))
}

fn built(package: &str) -> Vec<u8> {
    componentize(&module(package)).expect("a component")
}

fn module(package: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are in the workspace");
    build::build(root, package, &root.join("target/guests"), STACK)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The same component under another digest.
pub(crate) fn another(component: &[u8], name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len() + 1).expect("a short name");
    let mut bytes = component.to_vec();
    // An empty custom section: its id, its length, the length of its name, its name.
    bytes.extend([0, length, length - 1]);
    bytes.extend(name.as_bytes());
    bytes
}
