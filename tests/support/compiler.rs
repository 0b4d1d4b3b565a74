//! Only the compiler child of the program, so that tests need not wait until the whole program is built.

fn main() -> std::process::ExitCode {
    wrkflw_sandbox::compile_child_main()
}
