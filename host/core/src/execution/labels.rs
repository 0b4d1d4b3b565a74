//! What people are shown of an instance: its title and summary, and the names of priorities.

use super::Execution;
use crate::event::Event;
use crate::template::Labels;

impl Execution<'_> {
    /// Records the title and the summary after the data or the version has changed, if they are others now.
    pub(super) fn retitle(&mut self) {
        let templates = &self.context.version.templates;
        let labels = templates.labels(&self.instance.entity, &self.instance.data);
        if labels != self.instance.labels {
            let Labels { title, summary } = labels;
            let before = self.instance.labels.clone();
            self.emit(Event::FlowRetitled {
                title,
                summary,
                previous_title: before.title,
                previous_summary: before.summary,
            });
        }
    }

    /// The declared name of a priority.
    pub(super) fn priority_name(&self, priority: u8) -> Option<String> {
        let name = self.context.version.graph.priority_name(priority);
        name.map(str::to_owned)
    }
}
