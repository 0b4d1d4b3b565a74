//! The program `wrkflw`: its command line is in `wrkflw::cli`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The compiling child is handled first, because its limits leave no resources for other work.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|command| command == wrkflw_sandbox::COMPILE_COMMAND)
    {
        return wrkflw_sandbox::compile_child_main();
    }
    wrkflw::cli::main()
}
