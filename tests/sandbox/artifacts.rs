//! Machine code on disk: loaded after a restart, never trusted unverified, made once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const KEY: [u8; 32] = [7; 32];

/// A folder of this test alone, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("wrkflw-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).expect("folder");
        files
            .map(|entry| entry.expect("entry").path())
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect()
    }

    /// A sandbox as after a restart.
    fn sandbox(&self) -> Sandbox {
        Sandbox::new(settings().keeping_artifacts(&self.0, KEY)).expect("sandbox")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asks, and tells how often the component's bytes were wanted.
async fn fetches(sandbox: &Sandbox, component: &[u8]) -> usize {
    let count = AtomicUsize::new(0);
    let fetch = async || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(component.to_vec())
    };
    let (config, instance) = (json("{}"), instance("{}"));
    let facts = Facts {
        now: NOW.parse().expect("instant"),
        tenant: "acme",
        config: &config,
        instance: &instance,
    };
    let question = Question::Transition(wanting("ok", "transition"));
    let evaluation = sandbox
        .ask(&pinned(component), facts, &question, fetch)
        .await;
    assert!(plan(evaluation.expect("answers")).enter.is_some());
    count.into_inner()
}

#[tokio::test]
async fn a_restart_loads_from_disk() {
    let folder = Folder::new("restart");
    assert_eq!(fetches(&folder.sandbox(), guests::hostile()).await, 1);
    let restarted = folder.sandbox();
    assert_eq!(fetches(&restarted, guests::hostile()).await, 0);
    assert_eq!(fetches(&restarted, guests::hostile()).await, 0);
}

#[tokio::test]
async fn an_altered_file_is_set_aside_and_compiled_anew() {
    type Alteration = fn(&mut Vec<u8>);
    let alterations: [(&str, Alteration); 4] = [
        ("a flipped bit in the code", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }),
        ("a flipped bit in the MAC", |bytes| bytes[20] ^= 1),
        ("a truncated file", |bytes| {
            bytes.truncate(bytes.len() - 100);
        }),
        ("a file without a header", |bytes| bytes.truncate(3)),
    ];
    let folder = Folder::new("altered");
    fetches(&folder.sandbox(), guests::hostile()).await;
    for (what, alter) in alterations {
        let file = folder.files("cwasm").remove(0);
        let mut bytes = fs::read(&file).expect("artifact");
        alter(&mut bytes);
        fs::write(&file, bytes).expect("altered");
        assert_eq!(
            fetches(&folder.sandbox(), guests::hostile()).await,
            1,
            "{what}"
        );
        assert_eq!(folder.files("quarantined").len(), 1, "{what}");
        // What was made anew is good again.
        assert_eq!(
            fetches(&folder.sandbox(), guests::hostile()).await,
            0,
            "{what}"
        );
    }
}

#[tokio::test]
async fn code_of_another_component_or_key_is_not_taken() {
    let folder = Folder::new("swapped");
    let other = guests::another(guests::hostile(), "other");
    fetches(&folder.sandbox(), guests::hostile()).await;
    let first = folder.files("cwasm").remove(0);
    fetches(&folder.sandbox(), &other).await;
    let is_second = |path: &PathBuf| path != &first;
    let second = folder.files("cwasm").into_iter().find(is_second);
    fs::copy(&first, second.expect("two artifacts")).expect("swapped");
    assert_eq!(fetches(&folder.sandbox(), &other).await, 1);

    let stranger = Sandbox::new(settings().keeping_artifacts(&folder.0, [8; 32]));
    assert_eq!(
        fetches(&stranger.expect("sandbox"), guests::hostile()).await,
        1
    );
}

#[tokio::test]
async fn the_folder_stays_within_its_bound() {
    let folder = Folder::new("bounded");
    fetches(&folder.sandbox(), guests::hostile()).await;
    let one = fs::metadata(&folder.files("cwasm")[0])
        .expect("artifact")
        .len();
    let sandbox = Sandbox::new(Settings {
        artifact_bytes_max: 2 * one + one / 2,
        ..settings().keeping_artifacts(&folder.0, KEY)
    });
    let sandbox = sandbox.expect("sandbox");
    for name in ["b", "c", "d"] {
        fetches(&sandbox, &guests::another(guests::hostile(), name)).await;
    }
    assert_eq!(folder.files("cwasm").len(), 2);
    let mode = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).expect("metadata").permissions().mode() & 0o777
    };
    assert_eq!(mode(&folder.0), 0o700);
    assert_eq!(mode(&folder.files("cwasm")[0]), 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_ask_at_once_compile_once() {
    let sandbox = Sandbox::new(settings()).expect("sandbox");
    let asked = (0..16).map(|_| fetches(&sandbox, guests::hostile()));
    let counts = futures_util::future::join_all(asked).await;
    assert_eq!(counts.iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn bytes_of_another_digest_are_refused() {
    let sandbox = Sandbox::new(settings()).expect("sandbox");
    let fetch = async || Ok::<_, Infallible>(b"something else".to_vec());
    let error = sandbox.warm(&pinned(guests::hostile()), fetch).await;
    let error = error.expect_err("refused");
    assert_eq!(error.code(), "logic_unavailable");

    // Failing is not remembered.
    let fetch = async || Ok::<_, Infallible>(guests::hostile().to_vec());
    sandbox
        .warm(&pinned(guests::hostile()), fetch)
        .await
        .expect("warm");
}
