//! The steps of an instance: past steps, active steps, and possible later ones.

use crate::data::{Comment, History, Instance, State};
use crate::language::Words;
use crate::moment::Moment;
use crate::names::{Names, divided};
use crate::session::Visitor;

pub(in crate::pages) struct Timeline {
    pub(in crate::pages) steps: Vec<TimelineStep>,
    pub(in crate::pages) ended: Option<(String, Moment)>,
    pub(in crate::pages) ahead: Vec<Later>,
    /// Comments on the instance, oldest first.
    pub(in crate::pages) comments: Vec<TimelineEntry>,
}

pub(in crate::pages) struct TimelineStep {
    pub(in crate::pages) id: uuid::Uuid,
    pub(in crate::pages) is_active: bool,
    pub(in crate::pages) title: String,
    pub(in crate::pages) key: String,
    pub(in crate::pages) description: String,
    pub(in crate::pages) entered: Moment,
    pub(in crate::pages) due: Option<Moment>,
    /// For an active step: the people who have to act.
    pub(in crate::pages) waits_for: String,
    /// The candidates; empty if they are the people who have to act.
    pub(in crate::pages) offered: String,
    /// For a past step: the owners who did not decide.
    pub(in crate::pages) handlers: String,
    /// When it was left.
    pub(in crate::pages) ended: Option<Moment>,
    pub(in crate::pages) nobody: bool,
    /// How it ended: the sentence and the moment.
    pub(in crate::pages) left: Option<(String, Moment)>,
    pub(in crate::pages) decisions: Vec<TimelineEntry>,
    /// How many equal decisions it needs, if more than one.
    pub(in crate::pages) needed: String,
    pub(in crate::pages) notes: Vec<String>,
}

/// A decision or a comment as the timeline shows it.
pub(in crate::pages) struct TimelineEntry {
    pub(in crate::pages) sentence: String,
    pub(in crate::pages) at: Moment,
    pub(in crate::pages) comment: String,
}

/// A step that may come.
pub(in crate::pages) struct Later {
    pub(in crate::pages) title: String,
    pub(in crate::pages) description: String,
    pub(in crate::pages) is_certain: bool,
}

/// Who commented, and whom they mention.
fn commented(comment: &Comment, names: &Names, w: Words) -> String {
    let who = comment.actor.as_deref();
    let who = who.map_or_else(String::new, |actor| names.person(actor));
    if comment.mentions.is_empty() {
        return who;
    }
    let others = comment.mentions.iter().map(|id| names.person(id));
    let others = others.collect::<Vec<_>>().join(", ");
    w.say("commented-on", &[("who", &who), ("others", &others)])
}

impl Timeline {
    /// Looks up the names that the instance does not have: of people who commented, were mentioned, or were owners or candidates in a step.
    pub(in crate::pages) async fn of(
        history: History,
        instance: &Instance,
        visitor: &Visitor,
    ) -> Timeline {
        let (w, mut names) = (visitor.w, instance.names());
        let comments = history.comments.iter();
        let commenters = comments.flat_map(|one| one.actor.iter().chain(&one.mentions));
        let owners = history.data.iter().flat_map(|state| &state.owners);
        let (mut people, groups) = divided(history.data.iter().flat_map(State::offered_to));
        people.extend(commenters.chain(owners).map(String::as_str));
        names.look_up(visitor, &people, &groups).await;
        let comments = history.comments.into_iter();
        let comments = comments.map(|comment| TimelineEntry {
            sentence: commented(&comment, &names, w),
            at: Moment::of(comment.created_at, w),
            comment: comment.comment.unwrap_or_default(),
        });
        let steps = history.data.into_iter();
        let ended = instance.ended_at.map(|at| {
            let outcome = instance.outcome.as_deref();
            let sentence = match outcome {
                Some(outcome) => w.with("ended-with", "outcome", outcome),
                None => w.t("cancelled").into_owned(),
            };
            (sentence, Moment::of(at, w))
        });
        let ahead = instance.ahead.iter().map(|step| Later {
            title: step.title.clone(),
            description: step.description.clone(),
            is_certain: step.certain,
        });
        Timeline {
            steps: steps
                .map(|state| TimelineStep::of(state, &names, w))
                .collect(),
            ended,
            ahead: ahead.collect(),
            comments: comments.collect(),
        }
    }
}

/// The decisions on the tasks of a state.
fn decisions(state: &State, names: &Names, w: Words) -> Vec<TimelineEntry> {
    let decisions = state.tasks.iter().filter_map(|task| {
        let decision = task.decision.as_ref()?;
        let actor = names.person(&decision.actor);
        let outcome = decision.outcome.as_str();
        let sentence = match &decision.on_behalf_of {
            Some(other) => {
                let other = names.person(other);
                let variables = [
                    ("who", actor.as_str()),
                    ("other", &other),
                    ("outcome", outcome),
                ];
                w.say("decided-for", &variables)
            }
            None => w.say("decided", &[("who", actor.as_str()), ("outcome", outcome)]),
        };
        Some(TimelineEntry {
            sentence,
            at: Moment::of(decision.decided_at, w),
            comment: decision.comment.clone().unwrap_or_default(),
        })
    });
    decisions.collect()
}

impl TimelineStep {
    fn of(state: State, names: &Names, w: Words) -> TimelineStep {
        let decisions = decisions(&state, names, w);
        let waits_for = state.waits_for(names).join(", ");
        let is_active = state.left.is_none();
        let offered = state.offered_to().map(|one| names.candidate(one));
        let mut offered: Vec<_> = offered.collect();
        offered.sort();
        let offered = offered.join(", ");
        let has_decided = |id: &String| {
            let mut decisions = state.tasks.iter().filter_map(|task| task.decision.as_ref());
            decisions.any(|decision| decision.actor == *id)
        };
        let handlers = state.owners.iter().filter(|id| !has_decided(id));
        let handlers: Vec<_> = handlers.map(|id| names.person(id)).collect();
        let ended = state.left.as_ref().map(|left| Moment::of(left.at, w));
        // A decision already shows how the step ended.
        let left = state.left.filter(|_| decisions.is_empty());
        let left = left.and_then(|left| {
            let trigger = left.trigger?;
            let sentence = match left.actor {
                Some(actor) => {
                    let actor = names.person(&actor);
                    w.say("left-by", &[("who", &actor), ("trigger", &trigger)])
                }
                None => w.with("left", "trigger", &trigger),
            };
            Some((sentence, Moment::of(left.at, w)))
        });
        let notes = state.plans.into_iter().flat_map(|plan| plan.notes);
        TimelineStep {
            id: state.id,
            is_active,
            title: state.title,
            key: state.key.unwrap_or_default(),
            description: state.description,
            entered: Moment::of(state.entered_at, w),
            due: state
                .due_at
                .filter(|_| is_active)
                .map(|at| Moment::of(at, w)),
            offered: if offered == waits_for {
                String::new()
            } else {
                offered
            },
            waits_for,
            handlers: if is_active {
                String::new()
            } else {
                handlers.join(", ")
            },
            ended,
            nobody: is_active && state.unassignable_since.is_some(),
            left,
            decisions,
            needed: if is_active && state.needed > 1 {
                w.n("needs-decisions", state.needed)
            } else {
                String::new()
            },
            notes: notes.map(|note| note.message).collect(),
        }
    }
}
