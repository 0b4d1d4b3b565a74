//! How long a step of a turn may keep its thread, told before it is taken: whoever drives the turn takes long steps
//! elsewhere. And what is made once of texts that come with every task: forms and calendars.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::assign::Looking;
use super::{Context, Phase, Turn, deadline};
use crate::domain::answer::Assignment;
use crate::domain::calendar::Calendar;
use crate::domain::command::Command;
use crate::domain::instance::Instance;
use crate::domain::json::Json;
use crate::domain::lookup::Findings;
use crate::domain::question::Answer;
use crate::domain::schema::{self, Kept, Schema, SchemaError};

/// Forms that are kept ready, and bytes of their texts.
const FORMS_MAX: usize = 1_000;
const FORMS_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Calendars that are kept ready, and bytes of their settings.
const CALENDARS_MAX: usize = 500;
const CALENDARS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// To hold so much against a form whose cost is not known yet is no matter.
const SMALL_BYTES_MAX: usize = 2 * 1024;
/// To read a byte of a calendar's settings.
const SETTINGS_BYTE: Duration = Duration::from_nanos(100);
/// To count working time over twenty years of days that all differ.
const WORKING: Duration = Duration::from_millis(2);
/// To merge a byte of a patch or of what is patched.
const MERGED_BYTE: Duration = Duration::from_nanos(60);

static FORMS: LazyLock<Kept<Schema>> = LazyLock::new(|| Kept::new(FORMS_MAX, FORMS_BYTES_MAX));
static CALENDARS: LazyLock<Kept<Arc<Calendar>>> =
    LazyLock::new(|| Kept::new(CALENDARS_MAX, CALENDARS_BYTES_MAX));

/// The form of a task.
pub(super) fn form(text: &Json) -> Result<Schema, SchemaError> {
    FORMS.get_or_make(text, Schema::compile)
}

/// A form that is offered now.
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

fn checking(schema: Option<&Schema>, data: &Json) -> Duration {
    schema.map_or(Duration::ZERO, |schema| schema.effort(data))
}

impl Turn<'_> {
    /// How long [`Turn::begin`] takes at the most.
    pub fn beginning(
        context: Context<'_>,
        instance: Option<&Instance>,
        command: &Command,
    ) -> Duration {
        let schema = context.version.schema.as_ref();
        match (command, instance) {
            (Command::Start { data, .. }, _) => checking(schema, data),
            (Command::Migrate { .. }, Some(instance)) => checking(schema, &instance.data),
            (Command::Decide { task, input, .. }, Some(instance)) => {
                let form = instance.task(*task).and_then(|task| task.form.as_ref());
                let bytes = input.as_str().len();
                form.map_or(Duration::ZERO, |form| match FORMS.get(form) {
                    Some(known) => known.effort(input),
                    // What it costs is known once it is made.
                    None if bytes > SMALL_BYTES_MAX => schema::MAKING_MAX,
                    None => schema::making(form.as_str()),
                })
            }
            _ => Duration::ZERO,
        }
    }

    /// How long [`Turn::answer`] takes at the most with this answer.
    pub fn answering(&self, answer: &Answer) -> Duration {
        match answer {
            Answer::Plan(Ok(plan)) => plan.data.as_ref().map_or(Duration::ZERO, |patch| {
                let bytes = self.instance.data.as_str().len() + patch.len();
                let merged = MERGED_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
                let schema = self.context.version.schema.as_ref();
                // A plan against its flow's schema is a fault, of which the first violation alone is told.
                merged + schema.map_or(Duration::ZERO, |schema| schema.judging(bytes))
            }),
            Answer::Assignment(assignment) => tasks(assignment),
            Answer::Plan(Err(_)) | Answer::Verdict(_) | Answer::Waiting(_) => Duration::ZERO,
        }
    }

    /// How long [`Turn::found`] takes at the most.
    pub fn finding(&self, findings: &Findings) -> Duration {
        let deadlines = match &self.phase {
            Phase::Look(_, Looking::Assign(_, _, assignment)) => {
                let all = deadline::of(assignment).flat_map(deadline::calendars);
                return tasks(assignment) + working(all.count(), findings);
            }
            Phase::Look(_, Looking::Wait(_, waiting)) => &waiting.deadlines,
            _ => return Duration::ZERO,
        };
        working(deadline::calendars(deadlines).count(), findings)
    }
}

/// To make the tasks of an assignment.
fn tasks(assignment: &Assignment) -> Duration {
    let forms = assignment
        .offers
        .iter()
        .filter_map(|offer| offer.form.as_deref());
    forms.map(schema::making).sum()
}

/// To count so many deadlines in working time. One is cheaper than to go elsewhere for it.
fn working(deadlines: usize, findings: &Findings) -> Duration {
    let settings = findings.calendars.values();
    let new = settings.filter(|settings| CALENDARS.get(settings).is_none());
    let bytes = new.map(|settings| settings.as_str().len()).sum();
    let times = |each: Duration, count: usize| {
        each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
    };
    times(SETTINGS_BYTE, bytes) + times(WORKING, deadlines.saturating_sub(1))
}
