//! What a state asks of services, signals and other instances.
//!
//! The host sends, retries and receives. Logic only describes it, and has no network.

use serde_json::Value;

use crate::{Child, Deadline, ServiceCall, Triggers, Waiting, minutes};

/// How long a service has for one attempt, unless said otherwise.
const TIMEOUT_SECONDS: u32 = 30;
/// The pauses before further attempts, unless said otherwise.
const RETRIES_SECONDS: [u32; 3] = [10, minutes(1), minutes(5)];

impl ServiceCall {
    /// Sends the request to a service that the operator has configured by this name. One trigger
    /// for its reply, one for when every attempt has failed.
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

    /// How many seconds each attempt may take. 30 by default.
    pub fn timeout(mut self, seconds: u32) -> Self {
        self.timeout = seconds;
        self
    }

    /// The pauses, in seconds, before further attempts. Three by default; none for a single attempt.
    pub fn retries(mut self, pauses: impl IntoIterator<Item = u32>) -> Self {
        self.retries = pauses.into_iter().collect();
        self
    }

    /// A deadline of the state as a whole.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadlines.push(deadline);
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
        }
    }
}

impl Waiting {
    /// Waits for the signals that the graph declares.
    pub fn for_signals() -> Self {
        Self {
            deadlines: vec![],
            correlation: None,
            buffer_signals: false,
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

    /// The correlation key by which signals find this state, such as an order number.
    pub fn correlation(mut self, name: &str) -> Self {
        self.correlation = Some(name.into());
        self
    }

    /// Takes buffered signals: those that arrived before the state was entered.
    pub fn buffer_signals(mut self) -> Self {
        self.buffer_signals = true;
        self
    }

    /// A deadline of the state as a whole.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadlines.push(deadline);
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
        }
    }

    /// Fires this trigger when it ends.
    pub fn on_end(mut self, trigger: impl Triggers) -> Self {
        self.on_end = Some(trigger.name().into());
        self
    }
}
