//! Calls of services, waits for signals, and children.
//!
//! The host sends, retries and receives. Flow logic only describes this, and has no network.

use serde_json::Value;

use crate::{Child, Deadline, ServiceCall, SignalSubscription, Triggers, Waiting, minutes};

/// The default timeout of one attempt.
const TIMEOUT_SECONDS: u32 = 30;
/// The default pauses before further attempts.
const RETRIES_SECONDS: [u32; 3] = [10, minutes(1), minutes(5)];

impl ServiceCall {
    /// Sends the request to a service that the operator has configured by this name. `on_reply` is fired by its reply,
    /// `on_failure` after the last failed attempt.
    pub fn new(
        service: &str,
        request: &Value,
        on_reply: impl Triggers,
        on_failure: impl Triggers,
    ) -> Self {
        Self::between(
            service,
            request.to_string(),
            on_reply.name(),
            on_failure.name(),
        )
    }

    /// How many seconds each attempt may take, at most 120. 30 by default.
    pub fn timeout(mut self, seconds: u32) -> Self {
        self.timeout = seconds;
        self
    }

    /// The pauses, in seconds, before further attempts, at most ten. Three by default; none for a single attempt.
    pub fn retries(mut self, pauses: impl IntoIterator<Item = u32>) -> Self {
        self.retries = pauses.into_iter().collect();
        self
    }

    /// A deadline of the state as a whole. It fires a trigger or cancels. It cannot remind, because there is no task.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadlines.push(deadline);
        self
    }

    /// How a signal reaches this state besides being sent to its instance.
    pub fn subscribe(mut self, subscription: SignalSubscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    pub(crate) fn between(
        service: &str,
        request: String,
        on_reply: &str,
        on_failure: &str,
    ) -> Self {
        Self {
            service: service.into(),
            request,
            timeout: TIMEOUT_SECONDS,
            retries: RETRIES_SECONDS.into(),
            on_reply: on_reply.into(),
            on_failure: on_failure.into(),
            deadlines: vec![],
            subscriptions: vec![],
        }
    }
}

impl Waiting {
    /// Waits for the signals that the graph declares.
    pub fn for_signals() -> Self {
        Self {
            deadlines: vec![],
            subscriptions: vec![],
            children: vec![],
        }
    }

    /// Starts these instances and waits for their ends.
    pub fn for_children(children: impl IntoIterator<Item = Child>) -> Self {
        Self {
            children: children.into_iter().collect(),
            ..Self::for_signals()
        }
    }

    /// How a signal reaches this state besides being sent to its instance.
    pub fn subscribe(mut self, subscription: SignalSubscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    /// A deadline of the state as a whole. It fires a trigger or cancels. It cannot remind, because there is no task.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadlines.push(deadline);
        self
    }
}

impl SignalSubscription {
    /// A subscription of a state to signals of this trigger. It needs a correlation key, or buffered signals, or both.
    pub fn to(trigger: impl Triggers) -> Self {
        Self {
            trigger: trigger.name().into(),
            correlation: None,
            buffered: false,
        }
    }

    /// The correlation key by which signals find the state, such as an order number.
    pub fn correlation(mut self, key: &str) -> Self {
        self.correlation = Some(key.into());
        self
    }

    /// Takes buffered signals: those that arrived before the state was entered.
    pub fn buffered(mut self) -> Self {
        self.buffered = true;
        self
    }
}

impl Child {
    /// An instance of the definition with this key, about this entity.
    pub fn new(key: &str, entity_type: &str, entity_id: &str, data: &Value) -> Self {
        let (entity_type, entity_id) = (entity_type.into(), entity_id.into());
        Self {
            key: key.into(),
            entity_type,
            entity_id,
            data: data.to_string(),
            on_end: None,
            detached: false,
        }
    }

    /// Fires this trigger when it ends.
    pub fn on_end(mut self, trigger: impl Triggers) -> Self {
        self.on_end = Some(trigger.name().into());
        self
    }

    /// The child goes on when the state ends before it. Otherwise it is cancelled then.
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }
}
