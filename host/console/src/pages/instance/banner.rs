//! The head of an instance: its title, its status, and the visitor's actions, with the reason for each refused action.

use std::borrow::Cow;

use uuid::Uuid;

use super::{LoadedInstance, queue};
use crate::data::{Action, Instance, Refusal, State, Task};
use crate::moment::Moment;
use crate::names::{Badge, Names};
use crate::session::Visitor;

pub(in crate::pages) struct Banner {
    pub(in crate::pages) id: Uuid,
    pub(in crate::pages) title: String,
    pub(in crate::pages) summary: String,
    pub(in crate::pages) entity: String,
    /// Badges: the text and the class.
    pub(in crate::pages) states: Vec<(String, &'static str)>,
    pub(in crate::pages) badge: Option<Badge>,
    pub(in crate::pages) due: Option<Moment>,
    /// Who started it, when, and by which flow.
    pub(in crate::pages) about: String,
    /// Who suspended or cancelled the instance, and the reason.
    pub(in crate::pages) reason: Option<String>,
    /// Open tasks; those that the visitor may act on come first.
    pub(in crate::pages) tasks: Vec<TaskLine>,
    /// The allowed actions on the instance as a whole.
    pub(in crate::pages) whole: Vec<Button>,
    /// The refused actions, with the reason.
    pub(in crate::pages) refused: Vec<(String, String)>,
}

/// An open task with its buttons.
pub(in crate::pages) struct TaskLine {
    pub(in crate::pages) state: String,
    pub(in crate::pages) label: String,
    pub(in crate::pages) holder: String,
    pub(in crate::pages) has_owner: bool,
    pub(in crate::pages) is_mine: bool,
    pub(in crate::pages) is_suspended: bool,
    pub(in crate::pages) due: Option<Moment>,
    /// The outcomes, allowed or refused.
    pub(in crate::pages) outcomes: Vec<Button>,
    /// Other allowed actions.
    pub(in crate::pages) others: Vec<Button>,
}

impl TaskLine {
    fn is_for_the_visitor(&self) -> bool {
        let mut buttons = self.outcomes.iter().chain(&self.others);
        buttons.any(|button| button.refusal.is_empty())
    }
}

/// A button that links to the form of an action.
pub(in crate::pages) struct Button {
    pub(in crate::pages) name: String,
    pub(in crate::pages) address: String,
    /// Empty if it is allowed.
    pub(in crate::pages) refusal: String,
    /// Whether the next button of the row shows the same reason.
    pub(in crate::pages) is_said_after: bool,
}

impl Button {
    fn of(action: &Action, loaded: &LoadedInstance, visitor: &Visitor) -> Button {
        let refusal = action.refusal.as_ref();
        Button {
            name: name(action, visitor),
            address: address(action, loaded),
            is_said_after: false,
            refusal: match (action.allowed, refusal) {
                (true, _) => String::new(),
                (false, Some(refusal)) => reason(refusal, visitor),
                (false, None) => visitor.w.t("refused-without-reason").into_owned(),
            },
        }
    }
}

/// Why an action is refused. A rule of the host is in the reader's language, a refusal of the flow in the words of its authors.
fn reason(refusal: &Refusal, visitor: &Visitor) -> String {
    let known = visitor.w.known(&format!("refusal-{}", refusal.code));
    known.map_or_else(|| refusal.message.clone(), Cow::into_owned)
}

/// The buttons of a row. If adjacent buttons have the same reason, only the last one shows it.
fn row(mut buttons: Vec<Button>) -> Vec<Button> {
    for at in 1..buttons.len() {
        buttons[at - 1].is_said_after = buttons[at - 1].refusal == buttons[at].refusal;
    }
    buttons
}

/// The address of the page with the form of an action.
pub(in crate::pages) fn address(action: &Action, loaded: &LoadedInstance) -> String {
    let task = action.task_id.map(|task| task.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let parameters = [
        ("action", action.action.as_str()),
        ("task", &task.unwrap_or_default()),
        ("outcome", &text(&action.outcome)),
        ("trigger", &text(&action.trigger)),
    ];
    let page = queue::address(loaded.instance.id, &loaded.queue, &parameters);
    format!("{page}#act")
}

/// The name of an action for people.
pub(in crate::pages) fn name(action: &Action, visitor: &Visitor) -> String {
    let declared = action.title.clone().filter(|title| !title.is_empty());
    if let Some(title) = declared {
        return title;
    }
    let event = action.outcome.as_ref().or(action.trigger.as_ref());
    if let Some(event) = event {
        return event.clone();
    }
    let kind = if action.task_id.is_some() {
        "task"
    } else {
        "instance"
    };
    let known = visitor.w.known(&format!("act-{kind}-{}", action.action));
    known.map_or_else(|| action.action.clone(), std::borrow::Cow::into_owned)
}

fn line(
    state: &State,
    task: &Task,
    loaded: &LoadedInstance,
    names: &Names,
    visitor: &Visitor,
) -> TaskLine {
    let actions = loaded.actions.actions.iter();
    let actions = actions.filter(|action| action.task_id == Some(task.id));
    let (outcomes, others): (Vec<_>, Vec<_>) = actions.partition(|one| one.action == "decide");
    let ownership = task.ownership.as_ref();
    let delegator = ownership.and_then(|ownership| ownership.on_behalf_of.as_deref());
    let button = |action: &&Action| Button::of(action, loaded, visitor);
    TaskLine {
        state: state.title.clone(),
        label: task.label.clone(),
        holder: names.holder(
            task.owner.as_deref(),
            delegator,
            &task.candidates,
            visitor.w,
        ),
        has_owner: task.owner.is_some(),
        is_mine: task.owner.as_deref() == Some(visitor.id()),
        is_suspended: task.suspended.is_some(),
        due: task.due_at.map(|at| Moment::of(at, visitor.w)),
        outcomes: row(outcomes.iter().map(button).collect()),
        others: others
            .iter()
            .filter(|one| one.allowed)
            .map(button)
            .collect(),
    }
}

/// The badges of an instance: its active states, or how it ended.
fn badges(instance: &Instance, visitor: &Visitor) -> Vec<(String, &'static str)> {
    let w = visitor.w;
    let badge = |id: &str, class| (w.t(id).into_owned(), class);
    match instance.status.as_str() {
        "COMPLETED" => {
            let outcome = instance.outcome.clone();
            vec![(
                outcome.unwrap_or_else(|| w.t("completed").into_owned()),
                "good",
            )]
        }
        "CANCELLED" => vec![badge("cancelled", "bad")],
        running => {
            let states = instance.states.iter();
            let states = states.map(|state| (state.title.clone(), "state"));
            let mut all: Vec<_> = states.collect();
            all.dedup();
            if running == "SUSPENDED" {
                all.push(badge("suspended", "waiting"));
            }
            all
        }
    }
}

impl Banner {
    pub(in crate::pages) fn of(loaded: &LoadedInstance, visitor: &Visitor) -> Banner {
        let (instance, w) = (&loaded.instance, visitor.w);
        let names = instance.names();
        let entity = format!("{} {}", instance.entity_type, instance.entity_id);
        let open = instance.states.iter().flat_map(|state| {
            let tasks = state.tasks.iter().filter(|task| task.is_open());
            tasks.map(move |task| (state, task))
        });
        let mut tasks: Vec<_> = open
            .map(|(state, task)| line(state, task, loaded, &names, visitor))
            .collect();
        tasks.sort_by_key(|task| !task.is_for_the_visitor());
        let actions = loaded.actions.actions.iter();
        let whole = actions.filter(|one| one.task_id.is_none() && one.allowed);
        let reason = instance.suspended.as_ref().or(instance.cancelled.as_ref());
        Banner {
            id: instance.id,
            title: instance.title.clone().unwrap_or_else(|| entity.clone()),
            summary: instance.summary.clone().unwrap_or_default(),
            entity,
            states: badges(instance, visitor),
            badge: Badge::of(instance.priority, instance.priority_name.as_deref(), w),
            due: instance.next_due_at.map(|at| Moment::of(at, w)),
            about: w.say(
                "about-instance",
                &[
                    ("who", names.person(&instance.initiator).as_str()),
                    ("when", &Moment::of(instance.started_at, w).relative),
                    ("flow", &instance.flow()),
                ],
            ),
            reason: reason.and_then(|reason| {
                let by = names.person(reason.by.as_deref()?);
                let why = reason.reason.as_deref().unwrap_or_default();
                Some(w.say("stopped-by", &[("who", by.as_str()), ("reason", why)]))
            }),
            tasks,
            whole: whole.map(|one| Button::of(one, loaded, visitor)).collect(),
            refused: refused(loaded, visitor),
        }
    }
}

/// The refused actions except decisions, which the tasks show: name and reason, without duplicates.
fn refused(loaded: &LoadedInstance, visitor: &Visitor) -> Vec<(String, String)> {
    let actions = loaded.actions.actions.iter();
    let refused = actions.filter(|one| !one.allowed && one.action != "decide");
    let mut all: Vec<(String, String)> = Vec::new();
    for action in refused {
        let button = Button::of(action, loaded, visitor);
        let pair = (button.name, button.refusal);
        if !all.contains(&pair) {
            all.push(pair);
        }
    }
    all
}
