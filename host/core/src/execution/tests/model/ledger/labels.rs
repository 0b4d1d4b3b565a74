//! The title and the summary of the instance in the model.

use super::super::flow::TITLE;
use super::{Checked, Ledger, ensure};
use crate::event::Event;
use crate::instance::Instance;

/// The title and the summary.
pub(super) type Labels = (Option<String>, Option<String>);

impl Ledger {
    /// The requesters of an instance that begins, and its labels. Later only other labels are told.
    pub(super) fn write_labels(&mut self, event: &Event) -> Checked {
        match event {
            Event::FlowStarted {
                initiator,
                requesters,
                title,
                summary,
                ..
            } => {
                self.initiator.clone_from(initiator);
                self.requesters.clone_from(requesters);
                self.labels = (title.clone(), summary.clone());
                ensure(requesters.contains(initiator), || {
                    "the initiator is not among the requesters".into()
                })
            }
            Event::FlowRetitled {
                title,
                summary,
                previous_title,
                previous_summary,
            } => {
                let labels = (title.clone(), summary.clone());
                let before = (previous_title.clone(), previous_summary.clone());
                ensure(before == self.labels, || {
                    format!("was called {:?}, not {before:?}", self.labels)
                })?;
                ensure(labels != self.labels, || {
                    format!("the labels are {labels:?} already")
                })?;
                self.labels = labels;
                Ok(())
            }
            other => Err(format!("the event {} has no labels", other.kind())),
        }
    }

    /// Checks that the labels are what the version's templates make of the current data.
    pub(super) fn labels_agree(&self, instance: &Instance) -> Checked {
        let called = |template: &Option<String>| match template.as_deref() {
            Some(TITLE) => {
                let data: serde_json::Value = serde_json::from_str(instance.data.as_str()).ok()?;
                Some(format!(
                    "{} for {}",
                    data["title"].as_str()?,
                    instance.entity.id
                ))
            }
            _ => None,
        };
        let graph = self.graph();
        let labels = (
            called(&graph.instance_title),
            called(&graph.instance_summary),
        );
        let shown = &instance.labels;
        ensure(
            labels == self.labels && labels == (shown.title.clone(), shown.summary.clone()),
            || {
                format!(
                    "the labels are {shown:?}, those of the events {:?}, those of the data {labels:?}",
                    self.labels
                )
            },
        )?;
        Ok(())
    }
}
