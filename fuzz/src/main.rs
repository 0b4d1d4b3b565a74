//! libFuzzer around one target, which the variable `WRKFLW_FUZZ_TARGET` names. `run.sh` builds and starts it.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use wrkflw_fuzz::{Target, target};

static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

#[expect(
    clippy::disallowed_methods,
    reason = "libFuzzer reads the arguments itself"
)]
fn choose() {
    let name = std::env::var("WRKFLW_FUZZ_TARGET").expect("WRKFLW_FUZZ_TARGET names a target");
    let chosen = target(&name).expect("WRKFLW_FUZZ_TARGET names one of the targets");
    CHOSEN.get_or_init(|| chosen);
}

fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        (target.run)(data);
    }
});
