use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(wrkflw::wasm::COMPILE_COMMAND) => wrkflw::wasm::compile_child_main(),
        _ => ExitCode::FAILURE,
    }
}
