//! The members of every public event's data. They are only ever added to.

use super::Presence::{Always, OrNull, Sometimes};
use super::Shape::{Anything, Count, Id, Ids, Record, Records, Text, Texts, Time};
use super::{EventType, Member, member};
use crate::domain::event::CUSTOM;

const DEFINITION: &[Member] = &[
    member("key", Text, Always, "The definition's key."),
    member(
        "version",
        Count,
        Always,
        "The version that the instance keeps.",
    ),
];
const ENTITY: &[Member] = &[
    member("type", Text, Always, "The kind of thing."),
    member("id", Text, Always, "The thing's id where it lives."),
];
/// What every event's data carries besides its own members.
pub(super) const CONTEXT: &[Member] = &[
    member("instance", Id, Always, "The instance."),
    member(
        "revision",
        Count,
        Always,
        "The instance's revision after the change.",
    ),
    member(
        "definition",
        Record(DEFINITION),
        Always,
        "The definition version that the instance runs.",
    ),
    member(
        "entity",
        Record(ENTITY),
        Always,
        "What the instance is about.",
    ),
    member(
        "actor",
        Text,
        Sometimes,
        "Who acted; absent when the host acted by itself.",
    ),
];
const CANDIDATE: &[Member] = &[
    member("type", Text, Always, "`user`, `group` or `managerOf`."),
    member("id", Text, Always, "The person or group."),
];
const TASK: &[Member] = &[
    member("id", Id, Always, "The task."),
    member("label", Text, Always, "The task in words."),
    member(
        "candidates",
        Records(CANDIDATE),
        Always,
        "Who may claim it.",
    ),
    member("createdAt", Time, Always, "When it was created."),
    member(
        "status",
        Text,
        Always,
        "`PENDING`, or `CLAIMED` when it is owned from the start.",
    ),
    member("owner", Text, Sometimes, "Who owns it from the start."),
    member("claimedAt", Time, Sometimes, "When it was given to them."),
    member("holding", Anything, Sometimes, "How the owner came by it."),
    member("dueAt", Time, Sometimes, "Its next deadline."),
    member("deadlines", Anything, Sometimes, "Its open deadlines."),
];
const STAY: &[Member] = &[
    member("id", Id, Always, "The stay."),
    member("name", Text, Always, "The state's name."),
    member("enteredAt", Time, Always, "When it was entered."),
    member("dueAt", Time, OrNull, "When its work is due."),
    member(
        "predecessors",
        Ids,
        Always,
        "The stays that led here, in order.",
    ),
    member("enteredBy", Text, OrNull, "The trigger that led here."),
    member("caller", Text, OrNull, "Who fired it."),
    member(
        "needed",
        Count,
        Always,
        "Decisions of one outcome that the state asks for.",
    ),
    member("exclude", Texts, Always, "People who must not decide."),
    member(
        "fallback",
        Text,
        OrNull,
        "The group that gets the work when nobody else is left.",
    ),
    member("priority", Count, Always, "Higher is more urgent."),
    member(
        "tasks",
        Records(TASK),
        Always,
        "Empty: each task has an event of its own.",
    ),
    member(
        "forks",
        Ids,
        Sometimes,
        "The forks around it, from the outermost.",
    ),
    member(
        "choices",
        Count,
        Sometimes,
        "Bit n: its branch was one chosen among several since the n-th fork.",
    ),
    member("deadlines", Anything, Sometimes, "Its open deadlines."),
    member(
        "correlation",
        Text,
        Sometimes,
        "The name by which signals find it.",
    ),
    member(
        "keepEarly",
        Anything,
        Sometimes,
        "Signals that came before count.",
    ),
];
const VALUE: &[Member] = &[
    member("type", Text, Always, "The value's type."),
    member("value", Anything, Always, "The value."),
];
const ATTRIBUTE: &[Member] = &[
    member("name", Text, Always, "The attribute's name."),
    member(
        "value",
        Record(VALUE),
        OrNull,
        "Its value; none removes it.",
    ),
];
const IN_STATE: Member = member("state", Id, Always, "The stay in the state.");
const ON_TASK: Member = member("task", Id, Always, "The task.");

/// Every public audit type. The order is that of the event vocabulary.
pub const EVENT_TYPES: &[EventType] = &[
    EventType {
        kind: "FLOW_STARTED",
        summary: "An instance started.",
        members: &[
            member("initiator", Text, Always, "Who started it."),
            member(
                "requesters",
                Texts,
                Always,
                "Those who must not decide on it.",
            ),
            member("predecessor", Id, OrNull, "The instance that it continues."),
            member("parent", Id, OrNull, "The instance that started it."),
        ],
    },
    EventType {
        kind: "STATE_ENTERED",
        summary: "An instance entered a state.",
        members: &[member(
            "state",
            Record(STAY),
            Always,
            "The stay in the state.",
        )],
    },
    EventType {
        kind: "TASK_CREATED",
        summary: "Work waits for its candidates.",
        members: &[
            IN_STATE,
            member("stateName", Text, Always, "The state's name."),
            member("task", Record(TASK), Always, "The task."),
        ],
    },
    EventType {
        kind: "TASK_CLAIMED",
        summary: "A candidate took a task.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("owner", Text, Always, "Who took it."),
            member(
                "onBehalfOf",
                Text,
                Sometimes,
                "The absent candidate whom they stand in for.",
            ),
        ],
    },
    EventType {
        kind: "TASK_RELEASED",
        summary: "An owner gave a task back to its candidates.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("owner", Text, Always, "Who had it."),
            member("reason", Text, Sometimes, "Why somebody else gave it back."),
        ],
    },
    EventType {
        kind: "TASK_DELEGATED",
        summary: "An owner handed a task on.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("from", Text, Always, "Who handed it on."),
            member("to", Text, Always, "Who owns it now."),
            member("reason", Text, Always, "Why."),
        ],
    },
    EventType {
        kind: "TASK_RESOLVED",
        summary: "A delegate handed a task back.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("from", Text, Always, "Who handed it back."),
            member("to", Text, Always, "Who owns it now."),
        ],
    },
    EventType {
        kind: "TASK_REASSIGNED",
        summary: "An operator gave a task to somebody.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("previous", Text, OrNull, "Who had it."),
            member("to", Text, Always, "Who owns it now."),
            member("reason", Text, Always, "Why."),
        ],
    },
    EventType {
        kind: "TASK_RESET",
        summary: "An operator put a claimed task back to its candidates.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("owner", Text, Always, "Who had it."),
            member("reason", Text, Always, "Why."),
        ],
    },
    EventType {
        kind: "TASK_REROUTED",
        summary: "Nobody was left for a task, so it is offered to others as well.",
        members: &[
            ON_TASK,
            IN_STATE,
            member(
                "step",
                Text,
                Always,
                "`manager` or `fallback`; `migrated` where another version offers it so.",
            ),
            member(
                "candidates",
                Records(CANDIDATE),
                Always,
                "Who may claim it from now on.",
            ),
        ],
    },
    EventType {
        kind: "DECISION_RECORDED",
        summary: "An owner decided on a task.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("stateName", Text, Always, "The state's name."),
            member("outcome", Text, Always, "The outcome chosen."),
            member("onBehalfOf", Text, OrNull, "Whom the owner acted for."),
            member("comment", Text, OrNull, "The owner's words."),
        ],
    },
    EventType {
        kind: "TASK_CANCELLED",
        summary: "A task is needed no longer.",
        members: &[
            ON_TASK,
            IN_STATE,
            member("reason", Text, Sometimes, "Why the host withdrew it."),
        ],
    },
    EventType {
        kind: "TASK_REMINDED",
        summary: "Work is due, and those who have it are reminded.",
        members: &[
            IN_STATE,
            member(
                "task",
                Id,
                OrNull,
                "The task; none for all open ones of the state.",
            ),
            member(
                "recipients",
                Records(CANDIDATE),
                Always,
                "Who has the work.",
            ),
            member("dueAt", Time, Always, "When it was due."),
            member(
                "count",
                Count,
                Always,
                "How often they were reminded by now.",
            ),
        ],
    },
    EventType {
        kind: "TASK_ESCALATED",
        summary: "Overdue work goes from those who had it to others; new tasks follow.",
        members: &[
            IN_STATE,
            member(
                "task",
                Id,
                OrNull,
                "The task; none for all open ones of the state.",
            ),
            member("from", Records(CANDIDATE), Always, "Who had the work."),
            member("dueAt", Time, Always, "When it was due."),
            member("count", Count, Always, "How often it was escalated by now."),
        ],
    },
    EventType {
        kind: "STATE_UNASSIGNABLE",
        summary: "Nobody is able to do the work of a state.",
        members: &[IN_STATE, member("name", Text, Always, "The state's name.")],
    },
    EventType {
        kind: "STATE_ASSIGNABLE",
        summary: "Somebody is able to do the work of a state again.",
        members: &[IN_STATE, member("name", Text, Always, "The state's name.")],
    },
    EventType {
        kind: "SIGNAL_RECEIVED",
        summary: "A signal came from outside.",
        members: &[
            member("id", Text, Always, "The sender's id of the signal."),
            member("trigger", Text, Always, "The trigger that it fires."),
            member(
                "state",
                Id,
                OrNull,
                "The stay that takes it; none while it is kept for one to come.",
            ),
        ],
    },
    EventType {
        kind: "CHILD_ENDED",
        summary: "An instance that a state started has ended.",
        members: &[
            IN_STATE,
            member("child", Id, Always, "The child."),
            member("outcome", Text, Always, "With what."),
            member("reason", Text, Sometimes, "Why it could not be started."),
        ],
    },
    EventType {
        kind: "STATE_TRANSITIONED",
        summary: "A trigger moved a state on.",
        members: &[
            IN_STATE,
            member("from", Text, Always, "The state's name."),
            member("trigger", Text, Always, "The trigger."),
            member(
                "to",
                Texts,
                Always,
                "The names of the states that follow; none where a branch ends.",
            ),
            member(
                "attributes",
                Records(ATTRIBUTE),
                Sometimes,
                "Attributes that changed.",
            ),
            member("notes", Texts, Sometimes, "Why the flow chose so."),
        ],
    },
    EventType {
        kind: "STATE_CANCELLED",
        summary: "A flow ended one of its branches.",
        members: &[
            IN_STATE,
            member("name", Text, Always, "The state's name."),
            member("trigger", Text, Always, "The trigger that ended it."),
        ],
    },
    EventType {
        kind: "FLOW_COMPLETED",
        summary: "An instance reached its end.",
        members: &[member("outcome", Text, Always, "With what.")],
    },
    EventType {
        kind: "FLOW_CANCELLED",
        summary: "An instance was cancelled.",
        members: &[member("reason", Text, Always, "Why.")],
    },
    EventType {
        kind: "FLOW_SUSPENDED",
        summary: "An instance rests.",
        members: &[member("reason", Text, Always, "Why.")],
    },
    EventType {
        kind: "FLOW_RESUMED",
        summary: "An instance goes on after a rest.",
        members: &[],
    },
    EventType {
        kind: "FLOW_RESTARTED",
        summary: "An instance takes up what an ended one was about.",
        members: &[member("predecessor", Id, Always, "The ended instance.")],
    },
    EventType {
        kind: "FLOW_MIGRATED",
        summary: "An instance goes on under another version.",
        members: &[
            member(
                "previous",
                Record(DEFINITION),
                Always,
                "The version until now.",
            ),
            member(
                "states",
                Anything,
                Always,
                "The new name of each state that has one.",
            ),
        ],
    },
    EventType {
        kind: CUSTOM,
        summary: "A flow published an event of its own.",
        members: &[
            member("name", Text, Always, "The name that the flow gave it."),
            member("data", Anything, Always, "Whatever the flow says."),
        ],
    },
];
