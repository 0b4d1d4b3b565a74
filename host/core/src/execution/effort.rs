//! Upper bounds on the time of each step of an execution, known before the step, so that the driver can run long steps on other
//! threads. Also the caches of compiled forms and calendars.
//!
//! The constants are times per unit of work.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::assign::LookupPurpose;
use super::{Context, Execution, Phase, deadline};
use crate::answer::Work;
use crate::calendar::Calendar;
use crate::command::Command;
use crate::instance::{Instance, StateInstance};
use crate::json::Json;
use crate::lookup::Findings;
use crate::question::Answer;
use crate::schema::{self, Kept, Schema, SchemaError};

/// How many compiled forms are cached, and how many bytes of their texts.
const FORMS_MAX: usize = 1_000;
const FORMS_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How many calendars are cached, and how many bytes of their settings.
const CALENDARS_MAX: usize = 500;
const CALENDARS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Input up to this size is cheap to check against a form whose cost is not known yet.
const SMALL_BYTES_MAX: usize = 2 * 1024;
/// To read a byte of a calendar's settings.
const SETTINGS_BYTE: Duration = Duration::from_nanos(100);
/// To count working time over twenty years, plus for each byte of the settings, most of which are holidays and exceptions.
const WORKING: Duration = Duration::from_micros(20);
const WORKING_BYTE: Duration = Duration::from_nanos(40);
/// To copy or examine a byte of an instance.
const COPIED_BYTE: Duration = Duration::from_nanos(1);
/// To write a byte of an instance as JSON and hash it. The text is less than half of the weight.
const SERIALISED_BYTE: Duration = Duration::from_nanos(4);
/// To read and apply an audit entry, plus for each byte of it.
const FOLDED: Duration = Duration::from_micros(2);
const FOLDED_BYTE: Duration = Duration::from_nanos(20);
/// For matching: to look up an eligible person of a task, and to try them for another task.
const ELIGIBLE: Duration = Duration::from_nanos(100);
const TRIED: Duration = Duration::from_nanos(2);
/// To merge a byte of a patch or of the patched data.
const MERGED_BYTE: Duration = Duration::from_nanos(60);

static FORMS: LazyLock<Kept<Schema>> = LazyLock::new(|| Kept::new(FORMS_MAX, FORMS_BYTES_MAX));
static CALENDARS: LazyLock<Kept<Arc<Calendar>>> =
    LazyLock::new(|| Kept::new(CALENDARS_MAX, CALENDARS_BYTES_MAX));

/// The compiled form of a task.
pub(super) fn form(text: &Json) -> Result<Schema, SchemaError> {
    FORMS.get_or_make(text, Schema::compile)
}

/// The compiled form of a new task, checked against the bounds for new schemas.
pub(super) fn offered_form(text: &Json) -> Result<Schema, SchemaError> {
    match FORMS.get(text) {
        Some(known) if known.is_admitted() => Ok(known),
        _ => {
            let schema = Schema::admit(text)?;
            FORMS.keep(text, schema.clone());
            Ok(schema)
        }
    }
}

/// The calendar of these settings, if they can be read.
pub(super) fn calendar(settings: &Json) -> Option<Arc<Calendar>> {
    let read = |settings: &Json| Calendar::parse(settings).map(Arc::new);
    CALENDARS.get_or_make(settings, read).ok()
}

/// The time to read the settings of a calendar.
pub fn calendar_of(settings: &Json) -> Duration {
    times(SETTINGS_BYTE, settings.as_str().len())
}

/// The time to copy an instance, or to check the bounds of its parts.
pub fn copying(instance: &Instance) -> Duration {
    times(COPIED_BYTE, instance.weight())
}

/// The time to serialise `bytes` of an instance, for flow logic or for the audit.
pub fn serialising(bytes: usize) -> Duration {
    times(SERIALISED_BYTE, bytes)
}

/// The time to fold `entries` audit entries of `bytes` in total.
pub fn replaying(entries: usize, bytes: usize) -> Duration {
    times(FOLDED, entries) + times(FOLDED_BYTE, bytes)
}

fn times(each: Duration, count: usize) -> Duration {
    each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

fn checking(schema: Option<&Schema>, data: &Json) -> Duration {
    schema.map_or(Duration::ZERO, |schema| schema.effort(data))
}

impl Execution<'_> {
    /// The upper bound on the time of [`Execution::begin`].
    pub fn beginning(
        context: Context<'_>,
        instance: Option<&Instance>,
        command: &Command,
    ) -> Duration {
        let schema = context.version.schema.as_ref();
        let checking = match (command, instance) {
            (Command::Start { data, .. }, _) => checking(schema, data),
            (Command::Migrate { .. }, Some(instance)) => checking(schema, &instance.data),
            (Command::Decide { task, input, .. }, Some(instance)) => {
                let form = instance.task(*task).and_then(|task| task.form.as_ref());
                let bytes = input.as_str().len();
                form.map_or(Duration::ZERO, |form| match FORMS.get(form) {
                    Some(known) => known.effort(input),
                    // Its cost is known once it is compiled.
                    None if bytes > SMALL_BYTES_MAX => schema::COMPILE_MAX,
                    None => schema::compile_max(form.as_str()),
                })
            }
            _ => Duration::ZERO,
        };
        checking + instance.map_or(Duration::ZERO, copying)
    }

    /// The upper bound on the time of [`Execution::ask`], including the serialisation of the question.
    pub fn asking(&self) -> Duration {
        serialising(self.instance.weight())
    }

    /// The upper bound on the time of [`Execution::answer`] with this answer.
    pub fn answering(&self, answer: &Answer) -> Duration {
        let checking = match answer {
            Answer::Transition(Ok(plan)) => plan.data.as_ref().map_or(Duration::ZERO, |patch| {
                let bytes = self.instance.data.as_str().len() + patch.len();
                let merged = MERGED_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
                let schema = self.context.version.schema.as_ref();
                // A plan that violates its flow's schema is a fault, which names only the first violation.
                merged + schema.map_or(Duration::ZERO, |schema| schema.judging(bytes))
            }),
            Answer::Enter(Ok(works)) => works.iter().map(creating).sum(),
            Answer::Guard(_) | Answer::Transition(Err(_)) | Answer::Enter(Err(_)) => Duration::ZERO,
        };
        checking + copying(&self.instance)
    }

    /// The upper bound on the time of [`Execution::found`].
    pub fn finding(&self, findings: &Findings) -> Duration {
        let creating = match &self.phase {
            Phase::Lookup(_, LookupPurpose::Work(_, work)) => {
                let counted = match work {
                    Work::Task(assignment) => deadline::of(assignment)
                        .flat_map(deadline::calendars)
                        .count(),
                    Work::Wait(waiting) => deadline::calendars(&waiting.deadlines).count(),
                };
                creating(work) + working(counted, findings)
            }
            _ => self.matching(findings),
        };
        creating + copying(&self.instance)
    }

    /// The time of a staffing check. Each open task of a state instance has at most as many people as there are open tasks.
    fn matching(&self, findings: &Findings) -> Duration {
        let open = |state_instance: &StateInstance| {
            let tasks = state_instance.tasks.iter();
            tasks.filter(|task| task.status.is_open()).count()
        };
        let tasks = self.instance.active.iter().map(open).max().unwrap_or(0);
        let pairs = tasks * tasks.min(findings.names());
        times(ELIGIBLE, pairs) + times(TRIED, pairs.saturating_mul(tasks))
    }
}

/// The time to create the tasks of a state.
fn creating(work: &Work) -> Duration {
    let Work::Task(assignment) = work else {
        return Duration::ZERO;
    };
    let forms = assignment
        .offers
        .iter()
        .filter_map(|offer| offer.form.as_deref());
    forms.map(schema::compile_max).sum()
}

/// The time to compute this many deadlines in working time.
fn working(deadlines: usize, findings: &Findings) -> Duration {
    let settings = || findings.calendars.values();
    let new = settings().filter(|settings| CALENDARS.get(settings).is_none());
    let bytes = new.map(|settings| settings.as_str().len()).sum();
    let longest = settings().map(|settings| settings.as_str().len()).max();
    let counting = WORKING + times(WORKING_BYTE, longest.unwrap_or(0));
    times(SETTINGS_BYTE, bytes) + times(counting, deadlines)
}
