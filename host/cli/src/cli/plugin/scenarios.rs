//! Runs scenario files with a component: the core of the host and the sandbox, without a server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use tokio::runtime::Runtime;

use super::super::Environment;
use super::super::failure::{Exit, Failure};
use super::super::flow_config::FlowConfig;
use super::super::home::Home;
use super::super::output::Output;
use super::check::{NOBODY, refusal};
use wrkflw_core::ids::{VersionRef, unhex};
use wrkflw_core::json::{Json, Node};
use wrkflw_core::question::{Answer, Facts, Question};
use wrkflw_core::scenario::{self, Logic};
use wrkflw_core::version::Version;
use wrkflw_engine::check_component;
use wrkflw_engine::offload::Offload;
use wrkflw_sandbox::{CompileLimits, Compiler, Pinned, Sandbox, Settings};
use wrkflw_scenario::{Failure as Failed, Problem, Scenario, play};

/// The folder of a plugin's scenarios.
pub(super) const FOLDER: &str = "scenarios";
/// Limit of the scenarios of one run.
const FILES_MAX: usize = 10_000;
/// Limit of the machine code that is stored for the next run.
const ARTIFACT_BYTES_MAX: u64 = 512 << 20;

/// The files of scenarios: the named files, and those in a named folder.
pub(super) fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path);
        let entries = entries.with_context(|| format!("cannot read {}", path.display()))?;
        let mut found = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        found.retain(|path| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("yaml" | "yml"))
        });
        found.sort();
        files.extend(found);
    }
    if files.len() > FILES_MAX {
        let message = format!("these are more than {FILES_MAX} scenarios");
        return Err(Failure::new(Exit::Usage, message).into());
    }
    Ok(files)
}

/// How many scenarios passed, and why the others failed.
#[derive(Debug, Default)]
pub(super) struct ScenarioResults {
    pub(super) passed: usize,
    pub(super) failures: Vec<String>,
    /// Why components cannot be published with a config: told once.
    refused: Vec<String>,
}

impl ScenarioResults {
    /// Fails if a scenario did.
    pub(super) fn check(self) -> Result<usize> {
        if self.failures.is_empty() {
            return Ok(self.passed);
        }
        let (failed, passed) = (self.failures.len(), self.passed);
        let message = format!("scenarios: {failed} failed, {passed} passed");
        Err(Failure::new(Exit::Failed, message)
            .details(self.failures)
            .into())
    }
}

/// A component with a sandbox, and the versions that its configs make.
pub(super) struct Subject {
    runtime: Runtime,
    sandbox: Sandbox,
    bytes: Arc<[u8]>,
    /// The key of the definition, unless a scenario names another one.
    key: String,
    /// The config of scenarios without their own, and what messages call it.
    config: (String, Json),
    versions: BTreeMap<(String, Json), Version>,
}

/// Why a scenario does not pass.
enum NotPassed {
    /// The file cannot be read.
    Unopened(io::Error),
    /// The file is no scenario.
    Unreadable(Vec<Problem>),
    /// The config cannot be read, or the component refuses it.
    Config(String),
    Failed(Failed),
}

/// The sandbox stores machine code in the user's state folder, so that the next command and `wrkflw dev` need no compiler. The
/// author waits for the compiler, so its priority is not lowered.
pub(super) fn settings(environment: &Environment, compiler: Compiler) -> Result<Settings> {
    let settings = Settings {
        artifact_bytes_max: ARTIFACT_BYTES_MAX,
        compile: CompileLimits {
            niceness: 0,
            ..CompileLimits::DEFAULT
        },
        ..Settings::new(compiler)
    };
    let Some(state) = &environment.state else {
        return Ok(settings);
    };
    let (folder, secret) = Home::persistent(state)?.machine_code()?;
    let secret = unhex(&secret).and_then(|bytes| bytes.try_into().ok());
    let secret = secret.context("the secret of the machine code is damaged")?;
    Ok(settings.keeping_artifacts(folder, secret))
}

impl Subject {
    pub(super) fn new(environment: &Environment, compiler: Compiler) -> Result<Subject> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let sandbox = {
            let _in = runtime.enter();
            Sandbox::new(settings(environment, compiler)?).map_err(|error| anyhow!(error))?
        };
        Ok(Subject {
            runtime,
            sandbox,
            bytes: [].into(),
            key: String::new(),
            config: (String::new(), Json::empty()),
            versions: BTreeMap::new(),
        })
    }

    /// Reads this component and its config, which the scenarios then run with.
    pub(super) fn load(&mut self, component: &Path, key: &str, config: &FlowConfig) -> Result<()> {
        let bytes = fs::read(component);
        let bytes = bytes.with_context(|| format!("cannot read {}", component.display()))?;
        self.bytes = bytes.into();
        key.clone_into(&mut self.key);
        self.config = (config.name.clone(), config.parse()?);
        self.versions.clear();
        Ok(())
    }

    /// Whether the component can be published with the config of the project.
    pub(super) fn check(&mut self) -> Result<()> {
        let (key, (name, config)) = (self.key.clone(), self.config.clone());
        self.version(&key, config, &name).map(drop)
    }

    /// Runs the scenarios, with one line for each.
    pub(super) fn run(&mut self, files: &[PathBuf], output: Output) -> ScenarioResults {
        let mut tally = ScenarioResults::default();
        for path in files {
            let began = Instant::now();
            let (name, result) = self.run_one(path);
            let (shown, millis) = (path.display(), began.elapsed().as_millis());
            match result {
                Ok(()) => {
                    tally.passed += 1;
                    output.hint(&format!("passed  {shown}  {name} ({millis} ms)"));
                }
                Err(NotPassed::Config(error)) if tally.refused.contains(&error) => {
                    output.hint(&format!("FAILED  {shown}  {name} ({millis} ms)"));
                    tally.failures.push(format!("{shown}: the same"));
                }
                Err(why) => {
                    if let NotPassed::Config(error) = &why {
                        tally.refused.push(error.clone());
                    }
                    output.hint(&format!("FAILED  {shown}  {name} ({millis} ms)"));
                    tally.failures.push(words(path, &why));
                }
            }
        }
        tally
    }

    /// Runs one scenario. Returns its name, too.
    fn run_one(&mut self, path: &Path) -> (String, Result<(), NotPassed>) {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return (String::new(), Err(NotPassed::Unopened(error))),
        };
        let scenario = match Scenario::read(&text) {
            Ok(scenario) => scenario,
            Err(problems) => return (String::new(), Err(NotPassed::Unreadable(problems))),
        };
        let name = scenario.name().unwrap_or_default().to_owned();
        let (file, config) = match scenario.config().map(|config| config_of(path, config)) {
            None => self.config.clone(),
            Some(Ok(config)) => config,
            Some(Err(error)) => return (name, Err(NotPassed::Config(format!("{error:#}")))),
        };
        let key = scenario.definition().unwrap_or(&self.key).to_owned();
        let version = match self.version(&key, config, &file) {
            Ok(version) => version,
            Err(error) => return (name, Err(NotPassed::Config(format!("{error:#}")))),
        };
        let mut component = Component {
            subject: self,
            pinned: Pinned {
                reference: self.versions[&version].reference.clone(),
                digest: self.versions[&version].component,
            },
        };
        let played = play(&scenario, &self.versions[&version], &mut component);
        (name, played.map_err(NotPassed::Failed))
    }

    /// The version of this config, by its key in the map. `file` is the name of the config in messages.
    fn version(&mut self, key: &str, config: Json, file: &str) -> Result<(String, Json)> {
        let place = (key.to_owned(), config);
        if !self.versions.contains_key(&place) {
            let offload = Offload::default();
            let checked = check_component(&self.sandbox, (&offload, NOBODY), &self.bytes, &place.1);
            let admission = self.runtime.block_on(checked);
            let admission = admission.map_err(|error| refusal(error, file))?;
            let reference = VersionRef {
                key: key.to_owned(),
                version: 1,
            };
            let version = scenario::version(reference, place.1.clone(), admission.graph);
            let mut version = version.map_err(|problems| anyhow!("{problems:?}"))?;
            version.component = admission.digest;
            self.versions.insert(place.clone(), version);
        }
        Ok(place)
    }
}

/// The component as the logic of a scenario.
struct Component<'a> {
    subject: &'a Subject,
    pinned: Pinned,
}

impl Logic for Component<'_> {
    fn answer(&mut self, facts: &Facts<'_>, question: &Question) -> Result<Answer, String> {
        let Subject {
            runtime,
            sandbox,
            bytes,
            ..
        } = self.subject;
        let fetch = || async { Ok::<_, Infallible>(bytes.to_vec()) };
        let evaluation = sandbox.ask(&self.pinned, *facts, question, fetch);
        let evaluation = runtime.block_on(evaluation);
        evaluation
            .map(|evaluation| evaluation.answer)
            .map_err(|error| error.to_string())
    }
}

/// The config of a scenario, with its name in messages: its own, or one in a file beside it.
fn config_of(path: &Path, config: &Json) -> Result<(String, Json)> {
    let Node::String(name) = config.node() else {
        return Ok(("config".to_owned(), config.clone()));
    };
    let file = path.with_file_name(name);
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let config = Json::parse(&text).map_err(|error| anyhow!("{} has {error}", file.display()))?;
    Ok((file.display().to_string(), config))
}

/// Why a scenario does not pass, for people.
fn words(path: &Path, why: &NotPassed) -> String {
    let path = path.display();
    match why {
        NotPassed::Unopened(error) => format!("{path}: cannot be read: {error}"),
        NotPassed::Unreadable(problems) => {
            let lines = problems.iter().map(|problem| format!("{path}:{problem}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        NotPassed::Config(error) => format!("{path}: {error}"),
        NotPassed::Failed(failed) => format!("{path}:{}: {failed}", failed.line),
    }
}
