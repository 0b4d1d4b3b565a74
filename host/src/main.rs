//! The program `wrkflw`: its command line is in `wrkflw::cli`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The compiler's child comes first: it runs under limits that leave no room for anything else.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|command| command == wrkflw::wasm::COMPILE_COMMAND)
    {
        return wrkflw::wasm::compile_child_main();
    }
    wrkflw::cli::main()
}
