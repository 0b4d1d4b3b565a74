//! The call of a service state, as it is stored with the state instance.

use serde::{Deserialize, Serialize};

use crate::declare::record;
use crate::json::Json;

/// What a service is asked, how often it is tried, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenCall {
    /// The name of a service that the operator has configured.
    pub service: String,
    pub request: Json,
    /// Seconds for each attempt.
    pub timeout: u32,
    /// Seconds before each further attempt.
    pub retries: Vec<u32>,
    /// The trigger that a reply fires.
    pub on_reply: String,
    /// The trigger that fires when the last attempt has failed.
    pub on_failure: String,
    /// None until the service has answered or the last attempt has failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<CallResult>,
}

impl OpenCall {
    /// How many attempts it has: the first, and those after the pauses.
    pub fn attempts_max(&self) -> u32 {
        u32::try_from(self.retries.len()).map_or(u32::MAX, |more| more.saturating_add(1))
    }
}

record! {
    /// What became of a service call.
    #[derive(Eq)]
    pub struct CallResult {
        /// How many attempts were made.
        #[public("attempts")]
        pub attempts: u32,
        /// Why the last attempt failed; absent if the service answered.
        #[public("error")]
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub error: Option<String>,
        /// The model that answered, as the reply names it.
        #[public("model")]
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub model: Option<String>,
        /// The version of the model, as the reply names it.
        #[public("modelVersion")]
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub model_version: Option<String>,
    }
}
