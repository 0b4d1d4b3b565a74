//! Upper bounds on the time of each step of an execution. The driver knows them before the step, so that it can run long steps
//! on other threads. Also the caches of compiled input schemas and calendars.
//!
//! The constants are times per unit of work.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::assign::LookupPurpose;
use super::{Context, Execution, Phase, allocation, deadline, members};
use crate::answer::{Assignment, ServiceCall, Waiting, Work};
use crate::calendar::Calendar;
use crate::command::Command;
use crate::graph::{FiredBy, Graph, Transition};
use crate::instance::{Instance, StateInstance};
use crate::json::Json;
use crate::lookup::Findings;
use crate::question::Answer;
use crate::schema::{self, JsonCache, Schema, SchemaError};

/// How many compiled schemas of inputs are cached, and how many bytes they may take in memory.
const INPUTS_MAX: usize = 1_000;
const INPUTS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many calendars are cached, and how many bytes of their settings.
const CALENDARS_MAX: usize = 500;
const CALENDARS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Input up to this size is cheap to check against a schema whose cost is not known yet.
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

static INPUTS: LazyLock<JsonCache<Schema>> =
    LazyLock::new(|| JsonCache::new(INPUTS_MAX, INPUTS_BYTES_MAX, Schema::weight));
static CALENDARS: LazyLock<JsonCache<Arc<Calendar>>> =
    LazyLock::new(|| JsonCache::new(CALENDARS_MAX, CALENDARS_BYTES_MAX, |_| 0));

/// The compiled schema of a transition's input.
pub(super) fn input_schema(text: &Json) -> Result<Schema, SchemaError> {
    INPUTS.get_or_make(text, Schema::compile)
}

/// The time to check an input of a decision or signal against the schema of its transition.
fn checking_input(schema: Option<&Json>, input: &Json) -> Duration {
    schema.map_or(Duration::ZERO, |schema| match INPUTS.get(schema) {
        Some(known) => known.effort(input),
        // The cost of a schema is known only after its compilation. Until then the limit counts.
        None if input.as_str().len() > SMALL_BYTES_MAX => schema::COMPILE_MAX,
        None => schema::compile_max(schema.as_str()),
    })
}

/// The time to check a signal's payload. A signal without a taker is checked against all transitions that it may fire.
fn checking_signal(graph: &Graph, trigger: &str, input: &Json) -> Duration {
    let schemas = graph.signalled(trigger).map(|way| way.input.as_ref());
    // Many transitions may share a schema.
    let different: BTreeSet<_> = schemas.flatten().map(Json::as_str).collect();
    let count = u32::try_from(different.len()).unwrap_or(u32::MAX);
    let mut ways = graph.signalled(trigger);
    let first = ways.find_map(|way| way.input.as_ref());
    match count {
        0 | 1 => checking_input(first, input),
        _ => schema::JUDGING_MAX.saturating_mul(count),
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
            (
                Command::Decide {
                    task,
                    outcome,
                    input,
                    ..
                },
                Some(instance),
            ) => {
                let way = instance.open_task(*task).and_then(|(state_instance, _)| {
                    let graph = &context.version.graph;
                    graph.transition(&state_instance.name, outcome)
                });
                checking_input(way.and_then(|way| way.input.as_ref()), input)
            }
            (Command::Signal { trigger, input, .. }, Some(_)) => {
                checking_signal(&context.version.graph, trigger, input)
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
                // A plan that violates its flow's schema is a fault, and a fault names only the first violation.
                merged + schema.map_or(Duration::ZERO, |schema| schema.judging(bytes))
            }),
            Answer::Enter(_) | Answer::Start(_) | Answer::Transition(Err(_)) => Duration::ZERO,
        };
        let taking = taking(&self.context.version.graph, &self.instance);
        checking + taking + copying(&self.instance)
    }

    /// The upper bound on the time of [`Execution::found`].
    pub fn finding(&self, findings: &Findings) -> Duration {
        let creating = match &self.phase {
            Phase::Lookup(_, LookupPurpose::Work(_, work)) => {
                let (counted, examined) = match work {
                    Work::Task(assignment) => {
                        let members = findings.members.values().map(Vec::len).sum::<usize>();
                        let tasks = if members::is_for_each_member(assignment) {
                            members.max(1)
                        } else {
                            1
                        };
                        let examined = allocation::examined(assignment, findings);
                        (tasks * calendars_of(assignment), examined)
                    }
                    Work::Service(ServiceCall { deadlines, .. })
                    | Work::Wait(Waiting { deadlines, .. }) => {
                        (deadline::calendars(deadlines).count(), 0)
                    }
                };
                times(ELIGIBLE, examined) + working(counted, findings)
            }
            Phase::Lookup(_, LookupPurpose::Allocate(allocating)) => {
                let (assignment, known) = (&allocating.assignment, &allocating.known);
                let examined = allocation::examined(assignment, known);
                times(ELIGIBLE, examined) + working(calendars_of(assignment), known)
            }
            Phase::Lookup(_, LookupPurpose::ChangeOwner(_)) => {
                working(findings.calendars.len() * deadline::DEADLINES_MAX, findings)
            }
            _ => matching(&self.instance, findings),
        };
        let taking = taking(&self.context.version.graph, &self.instance);
        creating + taking + copying(&self.instance)
    }
}

/// The time to check the buffered signals that a state may take. There may be many, and nearly all were valid when they came.
/// So the time is estimated for all of them together.
fn taking(graph: &Graph, instance: &Instance) -> Duration {
    let is_checked = |way: &Transition| way.input.is_some() && way.by.contains(&FiredBy::Signal);
    if instance.buffered.is_empty() {
        return Duration::ZERO;
    }
    let mut ways = graph.transitions.iter();
    ways.find(|way| is_checked(way))
        .map_or(Duration::ZERO, |_| schema::JUDGING_MAX)
}

/// The time of a staffing check. Each open task of a state instance has at most as many people as there are open tasks.
fn matching(instance: &Instance, findings: &Findings) -> Duration {
    let open = |state_instance: &StateInstance| {
        let tasks = state_instance.tasks.iter();
        tasks.filter(|task| task.status.is_open()).count()
    };
    let tasks = instance.active.iter().map(open).max().unwrap_or(0);
    let pairs = tasks * tasks.min(findings.names());
    times(ELIGIBLE, pairs) + times(TRIED, pairs.saturating_mul(tasks))
}

/// How many deadlines of an assignment count by a calendar.
fn calendars_of(assignment: &Assignment) -> usize {
    let deadlines = deadline::of(assignment);
    deadlines.flat_map(deadline::calendars).count()
}

/// The time to compute this many deadlines by calendars.
fn working(deadlines: usize, findings: &Findings) -> Duration {
    let settings = || findings.calendars.values();
    let new = settings().filter(|settings| CALENDARS.get(settings).is_none());
    let bytes = new.map(|settings| settings.as_str().len()).sum();
    let longest = settings().map(|settings| settings.as_str().len()).max();
    let counting = WORKING + times(WORKING_BYTE, longest.unwrap_or(0));
    times(SETTINGS_BYTE, bytes) + times(counting, deadlines)
}
