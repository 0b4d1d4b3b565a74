//! Comments that people have begun to write for decisions.

use super::Engine;
use super::error::Error;
use super::request::Identity;
use super::validation::check_comment;
use wrkflw_core::ids::TaskId;
use wrkflw_store::drafts::Draft;

/// The permission to read and keep a draft. Only people with it can decide.
const ACT: &str = "task:act";

impl Engine {
    /// The draft of the caller for an open task.
    pub async fn draft(&self, who: &Identity, task: TaskId) -> Result<Option<Draft>, Error> {
        let viewer = self.viewing(who, ACT).await?;
        let found = self.reader().draft(&viewer, &who.subject, task).await?;
        found.ok_or_else(|| Error::missing("open task", task.0))
    }

    /// Keeps a draft of the caller for an open task. An empty draft is deleted. If the task ends meanwhile, nobody sees the draft
    /// any more, and a sweep deletes it.
    pub async fn put_draft(
        &self,
        who: &Identity,
        task: TaskId,
        comment: String,
    ) -> Result<Option<Draft>, Error> {
        check_comment(&comment)?;
        self.draft(who, task).await?;
        let (store, person) = (&self.0.store, who.subject.as_str());
        if comment.trim().is_empty() {
            store.delete_draft(who.tenant, person, task).await?;
            return Ok(None);
        }
        let draft = Draft {
            comment,
            updated_at: self.0.clock.now(),
        };
        store.put_draft(who.tenant, person, task, &draft).await?;
        Ok(Some(draft))
    }
}
