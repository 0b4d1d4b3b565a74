//! The content of a scenario file, and its errors.
//!
//! The JSON Schema defines the allowed content. The types here only hold it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wrkflw_core::absence::Absence;
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_core::schema::Schema;

use crate::step::Step;
use crate::yaml::Document;

/// The JSON Schema of scenario files, for editors.
pub const SCHEMA: &str = include_str!("../scenario.schema.json");
/// Limit of the size of a file.
pub(crate) const SCENARIO_BYTES_MAX: usize = 1 << 20;
/// Limit of the steps of a scenario.
pub const STEPS_MAX: usize = 1000;
/// When a scenario without `now` begins: a Monday.
const BEGINS: &str = "2026-01-05T09:00:00Z";
/// The end of an absence that has none.
const NEVER: &str = "9999-01-01T00:00:00Z";

static COMPILED: LazyLock<Schema> = LazyLock::new(|| {
    let schema = Json::parse(SCHEMA).expect("the schema is JSON");
    Schema::admit(&schema).expect("the schema is within its bounds")
});

/// The actions of people on one instance, and the expected effects.
#[derive(Debug)]
pub struct Scenario {
    pub(crate) text: Text,
    document: Document,
}

/// The members of a file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Text {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) groups: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) managers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) permissions: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) absences: Vec<Away>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) calendars: BTreeMap<String, Json>,
    pub(crate) steps: Vec<Step>,
}

/// An absence.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Away {
    pub(crate) person: String,
    pub(crate) substitute: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) definition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) until: Option<String>,
}

impl Away {
    /// The absence in the form of the directory. Without `from`, it begins at `now`. None if a time cannot be read.
    pub(crate) fn absence(&self, now: Timestamp) -> Option<Absence> {
        let at = |text: &Option<String>| text.as_deref().map(moment::parse);
        Some(Absence {
            person: self.person.clone(),
            substitute: self.substitute.clone(),
            definition: self.definition.clone(),
            from: at(&self.from).unwrap_or(Some(now))?,
            until: at(&self.until).unwrap_or_else(|| moment::parse(NEVER))?,
        })
    }
}

/// An error in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The first line is 1.
    pub line: usize,
    /// JSON Pointer; empty for the file as a whole.
    pub field: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            line,
            field,
            message,
        } = self;
        match field.as_str() {
            "" => write!(f, "{line}: {message}"),
            field => write!(f, "{line}: {field}: {message}"),
        }
    }
}

impl std::error::Error for Problem {}

impl Scenario {
    /// Reads a file. Returns all violations of the schema together, then all violations of further rules.
    pub fn read(text: &str) -> Result<Scenario, Vec<Problem>> {
        let whole = |line, message| {
            vec![Problem {
                line,
                field: String::new(),
                message,
            }]
        };
        if text.len() > SCENARIO_BYTES_MAX {
            let message = format!("the file is longer than {SCENARIO_BYTES_MAX} bytes");
            return Err(whole(1, message));
        }
        let document = Document::read(text).map_err(|error| whole(error.line, error.detail))?;
        let json = Json::parse(&document.node.to_string())
            .map_err(|error| whole(document.line(&error.pointer), error.to_string()))?;
        let problem = |field: &str, message: String| Problem {
            line: document.line(field),
            field: field.to_owned(),
            message,
        };
        let violations = COMPILED.violations(&json).into_iter();
        let found: Vec<_> = violations
            .map(|violation| problem(&violation.field, violation.message))
            .collect();
        if !found.is_empty() {
            return Err(found);
        }
        let mut reader = serde_json::Deserializer::from_str(json.as_str());
        let text: Text = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = pointer(&error.path().to_string());
            vec![problem(&field, error.inner().to_string())]
        })?;
        let mut found = Vec::new();
        let mut moments = vec![("/now".to_owned(), text.now.as_ref())];
        for (index, away) in text.absences.iter().enumerate() {
            moments.push((format!("/absences/{index}/from"), away.from.as_ref()));
            moments.push((format!("/absences/{index}/until"), away.until.as_ref()));
        }
        for (field, moment) in moments {
            if moment.is_some_and(|text| moment::parse(text).is_none()) {
                found.push(problem(&field, format!("write {}", moment::expected())));
            }
        }
        for (index, step) in text.steps.iter().enumerate() {
            let at = format!("/steps/{index}");
            if let Err((field, message)) = step.check() {
                found.push(problem(&format!("{at}{field}"), message));
            }
        }
        if found.is_empty() {
            Ok(Scenario { text, document })
        } else {
            Err(found)
        }
    }

    /// The name of the scenario, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.text.name.as_deref()
    }

    /// The key of the definition, if the file names one.
    pub fn definition(&self) -> Option<&str> {
        self.text.definition.as_deref()
    }

    /// The config of its flow: an object, or the name of a file beside the scenario. None: the config of the project.
    pub fn config(&self) -> Option<&Json> {
        self.text.config.as_ref()
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.text.steps.len()
    }

    /// The line of a step.
    pub(crate) fn line(&self, step: usize) -> usize {
        self.document.line(&format!("/steps/{step}"))
    }

    /// The time at which the scenario begins.
    pub(crate) fn begins(&self) -> Timestamp {
        let now = self.text.now.as_deref().unwrap_or(BEGINS);
        moment::parse(now).expect("checked when it was read")
    }
}

/// The JSON Pointer of a path such as `steps[1].by`.
fn pointer(path: &str) -> String {
    let path = path.replace('[', ".").replace(']', "");
    let parts = path.split('.').filter(|part| !part.is_empty());
    parts.flat_map(|part| ["/", part]).collect()
}
