//! The program `wrkflw` as tests run it: the same code, but it checks invariants and dies at the point that a test chose.

use std::process::ExitCode;
use std::time::Duration;

use wrkflw::config::Settings;

/// Times that are no settings, in seconds: `name=number`, separated by commas. Tests use shorter ones than a host.
const TIMES_VARIABLE: &str = "UNDER_TEST_TIMES";

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::disallowed_methods,
    reason = "a variable for the test, read before the program reads its settings"
)]
fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|command| command == wrkflw_sandbox::COMPILE_COMMAND)
    {
        return wrkflw_sandbox::compile_child_main();
    }
    wrkflw_fault::under_test();
    if let Some(point) = std::env::var_os(wrkflw_fault::VARIABLE) {
        let point = point.into_string().expect("the name of a point is text");
        wrkflw_fault::arm(&point).expect("a point that exists");
    }
    let times = std::env::var(TIMES_VARIABLE).unwrap_or_default();
    wrkflw::cli::main_with(|settings| {
        for time in times.split(',').filter(|time| !time.is_empty()) {
            set(settings, time);
        }
    })
}

fn set(settings: &mut Settings, time: &str) {
    let (name, seconds) = time.split_once('=').expect("name=number");
    let timeouts = &mut settings.connections.timeouts;
    let ages = &mut settings.auth.key_ages;
    let field = match name {
        "idle_max" => &mut timeouts.idle_max,
        "head_max" => &mut timeouts.head_max,
        "unread_max" => &mut timeouts.unread_max,
        "body_max" => &mut settings.connections.pace.body_max,
        "fresh" => &mut ages.fresh,
        "kept_max" => &mut ages.kept_max,
        "interval_min" => &mut ages.interval_min,
        _ => panic!("there is no time {name}"),
    };
    *field = Duration::from_secs(seconds.parse().expect("a number"));
}
