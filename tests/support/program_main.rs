//! The program `wrkflw` as tests run it: the very same, but that it checks its invariants, and dies where a test says.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::disallowed_methods,
    reason = "what the process is told before the program has read anything"
)]
fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|command| command == wrkflw::wasm::COMPILE_COMMAND)
    {
        return wrkflw::wasm::compile_child_main();
    }
    wrkflw::fault::under_test();
    if let Some(point) = std::env::var_os(wrkflw::fault::VARIABLE) {
        let point = point.into_string().expect("the name of a point is text");
        wrkflw::fault::arm(&point).expect("a point that exists");
    }
    wrkflw::cli::main()
}
