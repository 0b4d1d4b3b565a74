//! Comments that people have begun to write for decisions.

use super::Engine;
use super::error::Error;
use super::request::Identity;
use super::validation::check_comment;
use wrkflw_core::ids::TaskId;
use wrkflw_store::drafts::{self, Draft};

/// The permission to read and keep a draft. Only people with it can decide.
const ACT: &str = "task:act";

/// The caller's drafts: one for each open task.
#[derive(Clone, Copy)]
pub struct Drafts<'a> {
    pub(super) engine: &'a Engine,
}

impl Drafts<'_> {
    /// The draft of the caller for an open task.
    pub async fn get(self, who: &Identity, task: TaskId) -> Result<Option<Draft>, Error> {
        let viewer = self.engine.viewing(who, ACT).await?;
        let found = drafts::get(self.engine.reader(), &viewer, &who.subject, task).await?;
        found.ok_or_else(|| Error::missing("open task", task.0))
    }

    /// Keeps a draft of the caller for an open task. An empty draft is deleted. If the task ends meanwhile, nobody sees the draft
    /// any more, and [`Engine::purge`] deletes it.
    pub async fn put(
        self,
        who: &Identity,
        task: TaskId,
        comment: String,
    ) -> Result<Option<Draft>, Error> {
        check_comment(&comment)?;
        self.get(who, task).await?;
        let (store, person) = (&self.engine.0.store, who.subject.as_str());
        if comment.trim().is_empty() {
            drafts::delete(store, who.tenant, person, task).await?;
            return Ok(None);
        }
        let draft = Draft {
            comment,
            updated_at: self.engine.0.clock.now(),
        };
        drafts::put(store, who.tenant, person, task, &draft).await?;
        Ok(Some(draft))
    }
}
