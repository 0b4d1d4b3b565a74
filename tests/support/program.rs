//! The program itself, for tests that start it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The path of `wrkflw`, built once if it is missing or out of date, in the profile of these tests.
pub(crate) fn wrkflw() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

fn build() -> PathBuf {
    let tests = std::env::current_exe().expect("the tests are a program");
    let profile_dir = tests.parent().and_then(|deps| deps.parent());
    let profile_dir = profile_dir.expect("cargo keeps tests in <target>/<profile>/deps");
    let target_dir = profile_dir.parent().expect("<target>/<profile>");
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("{} names no profile", profile_dir.display()),
    };
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "wrkflw",
            "--bin",
            "wrkflw",
        ])
        .args(["--profile", profile, "--target-dir"])
        .arg(target_dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(
        status.expect("cargo runs").success(),
        "wrkflw does not build"
    );
    profile_dir.join("wrkflw")
}
