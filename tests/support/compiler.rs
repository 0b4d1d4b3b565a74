//! Only the compiling child of the program, so that tests need not wait for the whole program to be built.

fn main() -> std::process::ExitCode {
    wrkflw_sandbox::compile_child_main()
}
