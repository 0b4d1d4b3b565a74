//! Runs every input of the corpus through its target once, and checks that the corpus stays small.

use std::fs;
use std::path::{Path, PathBuf};

use wrkflw_fuzz::TARGETS;

/// Maximum number of inputs of one target.
const FILES_MAX: usize = 200;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The paths and contents of the files of a folder, sorted by path.
fn inputs(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("every target has a corpus");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let content = fs::read(&path).expect("an input");
        (path, content)
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn every_kept_input_keeps_what_is_promised() {
    for target in &TARGETS {
        for (path, content) in inputs(&corpus().join(target.name)) {
            // Printed first, so that an input that aborts or hangs is known.
            eprintln!("{}", path.display());
            (target.run)(&content);
        }
    }
}

#[test]
fn the_corpus_is_small_and_belongs_to_targets() {
    for target in &TARGETS {
        let inputs = inputs(&corpus().join(target.name));
        let count = inputs.len();
        assert!((1..=FILES_MAX).contains(&count), "{}: {count}", target.name);
        for (path, content) in inputs {
            let size = content.len();
            assert!(size <= target.bytes_max, "{}: {size}", path.display());
        }
    }
    for entry in fs::read_dir(corpus()).expect("a corpus") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("a name");
        assert!(
            TARGETS.iter().any(|target| target.name == name),
            "{name} is the corpus of no target"
        );
    }
}
