//! The scenarios of the sample plugins, with their components.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::guests::{order_handling, purchase_approval};
use crate::support::program::command;
use crate::support::unique;

/// A folder that is removed afterwards.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let folder = std::env::temp_dir().join(format!("wrkflw-scenarios-{}", unique()));
        fs::create_dir(&folder).expect("a fresh folder");
        Place(folder)
    }

    /// Runs scenarios with a component. Returns whether all passed, and the output.
    fn test(&self, component: &[u8], more: &[&Path]) -> (bool, String) {
        let file = self.0.join("component.wasm");
        fs::write(&file, component).expect("our own folder");
        let mut program = command(&["plugin", "test", "--component"]);
        let ran = program
            .arg(file)
            .args(more)
            .env("XDG_STATE_HOME", &self.0)
            .output();
        let ran = ran.expect("the program starts");
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.success(), printed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Runs one scenario with a component. Returns whether it passed, and the output.
pub(crate) fn played(component: &[u8], scenario: &str) -> (bool, String) {
    let place = Place::new();
    let file = place.0.join("scenario.yaml");
    fs::write(&file, scenario).expect("our own folder");
    place.test(component, &[&file])
}

#[test]
fn the_sample_plugins_pass_their_scenarios() {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let plugins = root.expect("the workspace").join("plugins");
    for (plugin, component) in [
        ("document-approval", wrkflw::sample::DOCUMENT_APPROVAL),
        ("purchase-approval", purchase_approval()),
        ("order-handling", order_handling()),
    ] {
        let (folder, config) = (plugins.join(plugin), Path::new("--config"));
        let (scenarios, file) = (folder.join("scenarios"), folder.join("config.json"));
        let mut more = vec![scenarios.as_path()];
        if file.is_file() {
            more.extend([config, &file]);
        }
        let (passed, printed) = place.test(component, &more);
        assert!(passed, "{plugin}: {printed}");
        let files = fs::read_dir(&scenarios).expect("scenarios").count();
        let count = printed.matches("passed  ").count();
        assert!(files >= 3 && count == files, "{plugin}: {printed}");
    }
}
