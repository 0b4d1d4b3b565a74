//! Flags, variables and the file as layers. A value in the file becomes clap's default. So clap's own order (flag, then
//! variable, then default) is the order of the layers.
//!
//! An unknown key in the file is an error that suggests the nearest known key: a misspelt setting must not silently keep its
//! default. An unknown variable only causes a warning, because other programs may set variables, too.
//!
//! Commas separate the items of one line of text. Items of a list or table in the file, and lines of a longer text, may have commas,
//! as passwords do. A comma at the end of a line separates.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};

use super::nearest::nearest;
use super::{SECRETS, Settings, SettingsError};

/// The file that is read if `--config` names no other.
pub const DEFAULT_FILE: &str = "wrkflw.toml";
/// The prefix of all environment variables of this program.
pub const PREFIX: &str = "WRKFLW_";
/// The id of the argument that names the file. The commands with this argument take settings.
pub const FILE_ARGUMENT: &str = "settings_file";

/// The sources of the values.
pub struct Sources {
    pub arguments: Vec<OsString>,
    /// Variables whose names begin with [`PREFIX`].
    pub variables: BTreeMap<String, String>,
}

/// Why the sources could not be read or matched.
#[derive(Debug)]
pub enum LayerError {
    /// An error of clap: wrong usage, or a request for help.
    Clap(clap::Error),
    Settings(SettingsError),
}

impl From<clap::Error> for LayerError {
    fn from(error: clap::Error) -> LayerError {
        LayerError::Clap(error)
    }
}

impl From<SettingsError> for LayerError {
    fn from(error: SettingsError) -> LayerError {
        LayerError::Settings(error)
    }
}

/// Reads a file that a source names.
pub type Reader<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// The matches of a command, and the sources of its values.
#[derive(Debug)]
pub struct ResolvedSettings {
    pub matches: ArgMatches,
    /// The variable or file of each value that is neither an argument, a variable nor a default.
    pub origins: BTreeMap<String, String>,
    /// Variables with the prefix that are no setting, each with a suggestion.
    pub unknown: Vec<String>,
}

/// Matches `command` with all its sources.
pub fn resolve(command: Command, sources: &Sources) -> Result<ResolvedSettings, LayerError> {
    resolve_reading(command, sources, &|path| std::fs::read_to_string(path))
}

/// Like [`resolve`], with a function that reads files.
pub fn resolve_reading(
    command: Command,
    sources: &Sources,
    read: Reader<'_>,
) -> Result<ResolvedSettings, LayerError> {
    let (mut values, unknown) = of_variables(&command, &sources.variables, read)?;
    let matches = command.clone().try_get_matches_from(&sources.arguments)?;
    let Some(chosen) = taking_settings(&command, &matches) else {
        return Ok(ResolvedSettings {
            matches,
            origins: BTreeMap::new(),
            unknown,
        });
    };
    for (name, of_file) in of_file(chosen.get_one(FILE_ARGUMENT).map(PathBuf::as_path), read)? {
        values.entry(name).or_insert(of_file);
    }
    // The source of a value decides whether it is split at commas.
    for name in chosen.ids() {
        if matches!(
            chosen.value_source(name.as_str()),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        ) {
            values.remove(name.as_str());
        }
    }
    Ok(ResolvedSettings {
        matches: with_defaults(command, &values).try_get_matches_from(&sources.arguments)?,
        origins: values
            .into_iter()
            .map(|(name, value)| (name, value.origin))
            .collect(),
        unknown,
    })
}

/// The matches of the chosen command, if it takes settings. The arguments come from the command, because matches know them
/// only in builds with debug assertions.
fn taking_settings<'a>(command: &Command, matches: &'a ArgMatches) -> Option<&'a ArgMatches> {
    if takes_settings(command) {
        return Some(matches);
    }
    let (name, matches) = matches.subcommand()?;
    taking_settings(command.find_subcommand(name)?, matches)
}

fn takes_settings(command: &Command) -> bool {
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_id() == FILE_ARGUMENT)
}

/// The value of a setting in a file.
struct Value {
    texts: Vec<String>,
    /// Whether it was written as a list or a table.
    is_list: bool,
    /// The variable that names the file, or the settings file.
    origin: String,
}

impl Value {
    /// The argument with this value as its default.
    fn as_default_of(&self, arg: Arg) -> Arg {
        let takes_list = arg.get_value_delimiter().is_some();
        let lines = || self.texts.iter().flat_map(|text| text.lines());
        if takes_list && self.is_list {
            arg.value_delimiter(None).default_values(self.texts.clone())
        } else if takes_list && lines().count() > 1 {
            let items = lines().map(|line| line.trim().trim_end_matches(',').trim_end());
            let items = items.filter(|line| !line.is_empty());
            let items: Vec<String> = items.map(str::to_owned).collect();
            arg.value_delimiter(None).default_values(items)
        } else {
            arg.default_values(self.texts.clone())
        }
    }
}

type Values = BTreeMap<String, Value>;

/// Reads the files that `..._FILE` variables name, and collects unknown variables.
fn of_variables(
    command: &Command,
    variables: &BTreeMap<String, String>,
    read: Reader<'_>,
) -> Result<(Values, Vec<String>), SettingsError> {
    let mut known = BTreeSet::new();
    collect(command, &mut known);
    let files: BTreeMap<String, &str> = SECRETS
        .iter()
        .map(|name| (format!("{PREFIX}{}_FILE", name.to_uppercase()), *name))
        .collect();
    known.extend(files.keys().cloned());
    let (mut values, mut strangers) = (Values::new(), Vec::new());
    for (variable, value) in variables {
        if !known.contains(variable) {
            if !is_of_a_service(variable, value) {
                let known = known.iter().map(String::as_str);
                strangers.push(unknown("the variable", variable, known).0);
            }
            continue;
        }
        let Some(name) = files.get(variable) else {
            continue;
        };
        let plain = variable.trim_end_matches("_FILE");
        if variables.contains_key(plain) {
            return Err(SettingsError(format!(
                "{plain} and {variable} are both set: unset one of them"
            )));
        }
        let value = Value {
            texts: vec![content(variable, Path::new(value), read)?],
            is_list: false,
            origin: variable.clone(),
        };
        values.insert((*name).to_owned(), value);
    }
    Ok((values, strangers))
}

/// Whether Kubernetes has set this variable. It sets variables in each pod for each Service, here for a Service whose name
/// begins with `wrkflw`: `..._SERVICE_HOST`, `..._SERVICE_PORT`, `..._SERVICE_PORT_HTTP`, `..._PORT` with an address as its
/// value, and `..._PORT_8080_TCP`, also with the suffix `_PROTO`, `_PORT` or `_ADDR`.
fn is_of_a_service(variable: &str, value: &str) -> bool {
    const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
    let is_address = |value: &str| {
        let protocol = value.split_once("://").map(|(protocol, _)| protocol);
        protocol.is_some_and(|name| {
            PROTOCOLS
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
        })
    };
    let is_port = |rest: &str| {
        let mut words = rest.split('_');
        let is_number = |word: &str| word.parse::<u16>().is_ok();
        words.next().is_some_and(is_number)
            && words.next().is_some_and(|word| PROTOCOLS.contains(&word))
            && matches!(words.next(), None | Some("PROTO" | "PORT" | "ADDR"))
            && words.next().is_none()
    };
    variable.ends_with("_SERVICE_HOST")
        || variable.ends_with("_SERVICE_PORT")
        || variable.contains("_SERVICE_PORT_")
        || (variable.ends_with("_PORT") && is_address(value))
        || variable
            .match_indices("_PORT_")
            .any(|(at, word)| is_port(&variable[at + word.len()..]))
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    known.extend(
        command
            .get_arguments()
            .filter_map(|arg| Some(arg.get_env()?.to_str()?.to_owned())),
    );
    command
        .get_subcommands()
        .for_each(|command| collect(command, known));
}

fn of_file(named: Option<&Path>, read: Reader<'_>) -> Result<Values, SettingsError> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    let shown = path.display();
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Values::new());
        }
        Err(error) => {
            return Err(SettingsError(format!(
                "cannot read the settings in {shown}: {error}"
            )));
        }
    };
    // Only the error's message is shown, because its `Display` quotes the line, which may contain a secret.
    let table: toml::Table = toml::from_str(&text).map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            1 + text[..span.start.min(text.len())].matches('\n').count()
        });
        SettingsError(format!("{shown}, line {line}: {}", error.message()))
    })?;
    let settings = Settings::augment_args(Command::new("settings"));
    let known: BTreeSet<&str> = settings
        .get_arguments()
        .map(|arg| arg.get_id().as_str())
        .collect();
    let mut values = Values::new();
    for (key, value) in table {
        let secret = key
            .strip_suffix("_file")
            .filter(|name| SECRETS.contains(name));
        if secret.is_none() && !known.contains(key.as_str()) {
            return Err(unknown(&format!("{shown} has the key"), &key, known));
        }
        let texts = texts(&value).ok_or_else(|| {
            SettingsError(format!("{shown}: {key} is neither a text, number nor list"))
        })?;
        let is_list = value.is_array() || value.is_table();
        let (name, texts, is_list) = match (secret, texts.first()) {
            (Some(name), Some(file)) => {
                let text = content(&key, Path::new(file), read)?;
                (name.to_owned(), vec![text], false)
            }
            _ => (key, texts, is_list),
        };
        if values.contains_key(&name) {
            return Err(SettingsError(format!(
                "{shown} has both {name} and {name}_file: remove one of them"
            )));
        }
        let origin = shown.to_string();
        let value = Value {
            texts,
            is_list,
            origin,
        };
        values.insert(name, value);
    }
    Ok(values)
}

fn texts(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(number) => Some(vec![number.to_string()]),
        toml::Value::Boolean(truth) => Some(vec![truth.to_string()]),
        toml::Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(texts).collect();
            Some(items?.concat())
        }
        toml::Value::Table(entries) => entries
            .iter()
            .map(|(name, value)| Some(format!("{name}={}", texts(value)?.join(","))))
            .collect(),
        toml::Value::Float(_) | toml::Value::Datetime(_) => None,
    }
}

fn content(name: &str, path: &Path, read: Reader<'_>) -> Result<String, SettingsError> {
    let text = read(path).map_err(|error| {
        SettingsError(format!(
            "cannot read {}, which {name} names: {error}",
            path.display()
        ))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> SettingsError {
    let suggestion = nearest(name, known).map_or_else(
        || "`wrkflw config template` lists all".into(),
        |near| format!("did you mean {near}?"),
    );
    SettingsError(format!("{what} {name}, which is no setting: {suggestion}"))
}

fn with_defaults(command: Command, values: &Values) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |sub| with_defaults(sub, values))
    });
    if !takes_settings(&command) {
        return command;
    }
    command.mut_args(|arg| match values.get(arg.get_id().as_str()) {
        Some(value) => value.as_default_of(arg),
        None => arg,
    })
}

#[cfg(test)]
mod tests;
