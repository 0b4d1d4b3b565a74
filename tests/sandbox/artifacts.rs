//! Machine code on disk: loaded after a restart, always verified, and compiled once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const KEY: [u8; 32] = [7; 32];

/// A folder of this test, which is removed after it.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn new(name: &str) -> Folder {
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

/// Calls a component. Returns how often its bytes were read.
async fn go(sandbox: &Sandbox, component: &[u8]) -> usize {
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
        reads: &Read::ALL,
    };
    let question = Question::Transition(wanting("ok", "transition").into());
    let evaluation = sandbox
        .ask(&pinned(component), facts, &question, fetch)
        .await;
    let next = plan(evaluation.expect("answers")).next;
    assert_eq!(next, Next::Enter(vec![Target::new("Done")]));
    count.into_inner()
}

#[tokio::test]
async fn a_restart_loads_from_disk() {
    let folder = Folder::new("restart");
    assert_eq!(go(&folder.sandbox(), guests::hostile()).await, 1);
    let restarted = folder.sandbox();
    assert_eq!(go(&restarted, guests::hostile()).await, 0);
    assert_eq!(go(&restarted, guests::hostile()).await, 0);
}

/// A change of a file.
type Alteration = (String, Box<dyn Fn(&mut Vec<u8>)>);

/// Changes one byte in each part of the file, at many positions, or cuts the file at many positions.
fn alterations(length: usize) -> Vec<Alteration> {
    const MAGIC_ENDS: usize = 8;
    const MAC_ENDS: usize = MAGIC_ENDS + 32;
    // Multiples of a large prime cover the whole file, with other positions for each length.
    let anywhere = (1..=24).map(|n: usize| n.wrapping_mul(2_654_435_761) % length);
    let places = [
        0,
        MAGIC_ENDS - 1,
        MAGIC_ENDS,
        MAC_ENDS - 1,
        MAC_ENDS,
        length / 2,
        length - 1,
    ];
    let mut alterations: Vec<Alteration> = Vec::new();
    for (number, at) in places.into_iter().chain(anywhere).enumerate() {
        let bit = 1 << (number % 8);
        let flip = move |bytes: &mut Vec<u8>| bytes[at] ^= bit;
        alterations.push((format!("bit {bit:#x} of byte {at} flipped"), Box::new(flip)));
    }
    for kept in [0, 3, MAC_ENDS - 1, MAC_ENDS, length / 2, length - 1] {
        let cut = move |bytes: &mut Vec<u8>| bytes.truncate(kept);
        alterations.push((format!("cut after {kept} bytes"), Box::new(cut)));
    }
    alterations.push(("one byte more".into(), Box::new(|bytes| bytes.push(0))));
    alterations.push(("all zero".into(), Box::new(|bytes| bytes.fill(0))));
    alterations
}

fn quarantined() -> u64 {
    let text = wrkflw_runtime::telemetry::metrics()
        .expect("metrics")
        .render();
    let name = "wrkflw_artifacts_quarantined_total ";
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |count| count.parse().expect("a count"))
}

#[tokio::test]
async fn a_changed_file_is_set_aside_and_compiled_again() {
    let folder = Folder::new("altered");
    let component = crate::support::raw::Raw::default().component();
    let fetches = async || go(&folder.sandbox(), &component).await;
    quarantined();
    assert_eq!(fetches().await, 1);
    let file = folder.files("cwasm").remove(0);
    let good = fs::read(&file).expect("an artifact");
    for (what, alter) in alterations(good.len()) {
        let before = quarantined();
        let mut bytes = good.clone();
        alter(&mut bytes);
        fs::write(&file, &bytes).expect("altered");
        // The call is answered by newly compiled code.
        assert_eq!(fetches().await, 1, "{what}");
        let aside = folder.files("quarantined");
        assert_eq!(aside.len(), 1, "{what}");
        assert_eq!(fs::read(&aside[0]).expect("kept as found"), bytes, "{what}");
        assert!(quarantined() > before, "{what} is not counted");
        // The newly compiled file is valid again.
        assert_eq!(fetches().await, 0, "{what}");
        fs::remove_file(&aside[0]).expect("removed");
    }
}

/// The same code under the header of another host version, or of an engine with other settings.
#[tokio::test]
async fn code_of_another_engine_is_not_used() {
    let folder = Folder::new("engines");
    let component = crate::support::raw::Raw::default().component();
    assert_eq!(go(&folder.sandbox(), &component).await, 1);
    let file = folder.files("cwasm").remove(0);
    let name = file
        .file_stem()
        .and_then(|name| name.to_str())
        .expect("a name")
        .to_owned();
    let (component_part, engine) = name.rsplit_once('-').expect("digest and engine");
    // The file of an older engine beside the present one is not read.
    let older: String = engine.chars().rev().collect();
    fs::write(
        folder
            .path()
            .join(format!("{component_part}-{older}.cwasm")),
        b"old",
    )
    .expect("written");
    assert_eq!(go(&folder.sandbox(), &component).await, 0);
    assert_eq!(folder.files("quarantined").len(), 0);
    // Another magic number means another format, which this program never wrote with its key.
    let mut bytes = fs::read(&file).expect("an artifact");
    bytes[..8].copy_from_slice(b"wrkflwA0");
    fs::write(&file, bytes).expect("written");
    assert_eq!(go(&folder.sandbox(), &component).await, 1);
    assert_eq!(folder.files("quarantined").len(), 1);
}

#[tokio::test]
async fn code_of_another_component_or_key_is_not_used() {
    let folder = Folder::new("swapped");
    let other = guests::another(guests::hostile(), "other");
    go(&folder.sandbox(), guests::hostile()).await;
    let first = folder.files("cwasm").remove(0);
    go(&folder.sandbox(), &other).await;
    let is_second = |path: &PathBuf| path != &first;
    let second = folder.files("cwasm").into_iter().find(is_second);
    fs::copy(&first, second.expect("two artifacts")).expect("swapped");
    assert_eq!(go(&folder.sandbox(), &other).await, 1);

    let stranger = Sandbox::new(settings().keeping_artifacts(&folder.0, [8; 32]));
    assert_eq!(go(&stranger.expect("sandbox"), guests::hostile()).await, 1);
}

#[tokio::test]
async fn the_folder_stays_within_its_size_limit() {
    let folder = Folder::new("bounded");
    go(&folder.sandbox(), guests::hostile()).await;
    let one = fs::metadata(&folder.files("cwasm")[0])
        .expect("artifact")
        .len();
    let sandbox = Sandbox::new(Settings {
        artifact_bytes_max: 2 * one + one / 2,
        ..settings().keeping_artifacts(&folder.0, KEY)
    });
    let sandbox = sandbox.expect("sandbox");
    for name in ["b", "c", "d"] {
        go(&sandbox, &guests::another(guests::hostile(), name)).await;
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
async fn concurrent_calls_compile_once() {
    let sandbox = Sandbox::new(settings()).expect("sandbox");
    let calls = (0..16).map(|_| go(&sandbox, guests::hostile()));
    let counts = futures_util::future::join_all(calls).await;
    assert_eq!(counts.iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn bytes_of_another_digest_are_refused() {
    let sandbox = Sandbox::new(settings()).expect("sandbox");
    let fetch = async || Ok::<_, Infallible>(b"something else".to_vec());
    let error = sandbox.warm(&pinned(guests::hostile()), fetch).await;
    let error = error.expect_err("refused");
    assert_eq!(error.code(), "logic_unavailable");

    // The failure is not cached.
    let fetch = async || Ok::<_, Infallible>(guests::hostile().to_vec());
    sandbox
        .warm(&pinned(guests::hostile()), fetch)
        .await
        .expect("warm");
}
