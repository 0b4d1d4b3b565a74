//! The program's compiling child and nothing else, so that tests need not wait for the whole program.

fn main() -> std::process::ExitCode {
    wrkflw::wasm::compile_child_main()
}
