//! One action on many tasks: the selected tasks, or all that match the filter. The page counts the effects before the
//! confirmation, and afterwards each task has its result.

use std::collections::BTreeMap;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::query::InboxQuery;
use crate::api::Trouble;
use crate::data::Outcome;
use crate::form;
use crate::list::Paged;
use crate::posted::{Fields, Posted};
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};
use wrkflw_runtime::clock;

/// The most tasks of one request. The API has the same limit.
const TASKS_MAX: usize = 100;
/// The actions on many tasks at once.
const ACTIONS: [&str; 3] = ["claim", "release", "decide"];
/// Limit of the tasks that left the list and whose titles are looked up one by one. Others are shown by their ids.
const LOOKED_UP_MAX: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    id: Uuid,
    instance_id: Uuid,
    entity_type: String,
    entity_id: String,
    instance_title: Option<String>,
    outcomes: Vec<Outcome>,
}

/// A task of which only the instance is read.
#[derive(Deserialize)]
struct TaskAnswer {
    instance: TaskInstance,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskInstance {
    id: Uuid,
    title: Option<String>,
    entity_type: String,
    entity_id: String,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<OneResult>,
    done: usize,
    refused: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneResult {
    task_id: Uuid,
    /// Without a code if the task is done.
    #[serde(flatten)]
    trouble: Trouble,
}

/// A task as the page names it.
#[derive(Clone)]
struct BulkTask {
    id: Uuid,
    instance: Option<Uuid>,
    title: String,
}

impl BulkTask {
    /// A task that is shown by its id.
    fn unknown(id: Uuid) -> BulkTask {
        BulkTask {
            id,
            instance: None,
            title: id.to_string(),
        }
    }
}

/// An outcome that some of the tasks take.
struct Choice {
    outcome: String,
    title: String,
    /// How many of the tasks take this outcome.
    count: String,
    is_chosen: bool,
}

/// Tasks with the same result.
struct Group {
    /// Empty for those that are done.
    reason: String,
    count: String,
    tasks: Vec<BulkTask>,
}

#[derive(Template)]
#[template(path = "bulk.html")]
struct Page {
    shell: Shell,
    heading: String,
    action: &'static str,
    /// Back to the inbox.
    back: String,
    parameters: Vec<(&'static str, String)>,
    tasks: Vec<BulkTask>,
    /// The message if more tasks match than are handled at once.
    more: Option<String>,
    choices: Vec<Choice>,
    comment: String,
    refusal: Option<String>,
    /// The effects or results. The first group has the tasks without a refusal.
    groups: Vec<Group>,
    summary: String,
    is_done: bool,
    /// The button that confirms; none if nothing would change, or without a preview.
    confirm: Option<String>,
    key: String,
    seen: String,
}

/// The tasks that a form names, and whether more match.
struct Chosen {
    tasks: Vec<BulkTask>,
    outcomes: Vec<(Outcome, usize)>,
    is_more: bool,
}

pub(super) async fn bulk(Posted { visitor, fields }: Posted) -> Answer {
    let mut query = InboxQuery::of(&fields);
    if takes_all(&fields) {
        // The list of all matching tasks begins at the first one, here and in the next forms.
        query.after.clear();
    }
    let name = fields.get("action");
    let action = ACTIONS.into_iter().find(|action| *action == name);
    let action = action.unwrap_or(ACTIONS[0]);
    let chosen = chosen(&visitor, &query, &fields).await?;
    let body = body(action, &chosen.tasks, &fields);
    let mut shown = Page::of(&visitor, &query, action, &chosen, &fields).await;
    // A decision needs a chosen outcome first.
    let is_ready =
        !chosen.tasks.is_empty() && (action != "decide" || !fields.get("outcome").is_empty());
    if !is_ready {
        return Ok(page(StatusCode::OK, &shown));
    }
    let mut is_confirmed = form::is_confirmed(&fields, &body);
    let mut answer = Ok(());
    if !is_confirmed {
        answer = shown.preview(&visitor, &body).await;
        is_confirmed = answer.is_ok() && form::has_same_effects(&fields, &shown.seen);
    }
    if is_confirmed {
        answer = shown.run(&visitor, &body, form::key(&fields)).await;
    }
    let status = match answer {
        Ok(()) => StatusCode::OK,
        Err(trouble) => {
            shown.refusal = Some(trouble.detail.clone());
            trouble.status()
        }
    };
    Ok(page(status, &shown))
}

fn body(action: &str, tasks: &[BulkTask], fields: &Fields) -> Value {
    let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
    let mut body = json!({ "action": action, "taskIds": ids });
    if action == "decide" {
        body["outcome"] = json!(fields.get("outcome"));
        let comment = fields.get("comment").trim();
        if !comment.is_empty() {
            body["comment"] = json!(comment);
        }
    }
    body
}

/// Whether the form is about all matching tasks. Only the form of the inbox can be.
fn takes_all(fields: &Fields) -> bool {
    fields.get("step").is_empty() && !fields.get("all").is_empty()
}

/// The selected tasks, or the first matching ones. A form that was shown once names all of its tasks.
async fn chosen(visitor: &Visitor, query: &InboxQuery, fields: &Fields) -> Result<Chosen, Halt> {
    let is_all = takes_all(fields);
    let most = TASKS_MAX.to_string();
    let list = |after: &str| {
        let further = [("limit", most.as_str()), ("after", after)];
        query.list(query.view(), &further, visitor.w.zone())
    };
    let listed: Paged<Task> = visitor.page_with_rows(&query.after, list).await?;
    let mut ids: Vec<Uuid> = Vec::new();
    if is_all {
        ids.extend(listed.data.iter().map(|task| task.id));
    } else {
        for id in fields.all("task").filter_map(|id| Uuid::parse_str(id).ok()) {
            if !ids.contains(&id) && ids.len() < TASKS_MAX {
                ids.push(id);
            }
        }
    }
    let is_more = is_all && listed.page.next.is_some();
    let mut known: BTreeMap<Uuid, Task> = listed
        .data
        .into_iter()
        .map(|task| (task.id, task))
        .collect();
    let mut outcomes: Vec<(Outcome, usize)> = Vec::new();
    let (mut tasks, mut looked_up) = (Vec::new(), 0);
    for id in ids {
        let Some(task) = known.remove(&id) else {
            looked_up += 1;
            tasks.push(if looked_up <= LOOKED_UP_MAX {
                unlisted_task(visitor, id).await
            } else {
                BulkTask::unknown(id)
            });
            continue;
        };
        for outcome in task.outcomes {
            let same = outcomes
                .iter_mut()
                .find(|(one, _)| one.outcome == outcome.outcome);
            match same {
                Some((_, count)) => *count += 1,
                None => outcomes.push((outcome, 1)),
            }
        }
        let entity = format!("{} {}", task.entity_type, task.entity_id);
        tasks.push(BulkTask {
            id,
            instance: Some(task.instance_id),
            title: task.instance_title.unwrap_or(entity),
        });
    }
    Ok(Chosen {
        tasks,
        outcomes,
        is_more,
    })
}

/// A task that is no longer in the list, because somebody else has claimed or decided it.
async fn unlisted_task(visitor: &Visitor, id: Uuid) -> BulkTask {
    let path = format!("/v1/tasks/{id}");
    let answer = visitor.api.get::<TaskAnswer>(&path).await;
    let Ok(TaskAnswer { instance }) = answer else {
        return BulkTask::unknown(id);
    };
    let entity = || format!("{} {}", instance.entity_type, instance.entity_id);
    BulkTask {
        id,
        instance: Some(instance.id),
        title: instance.title.unwrap_or_else(entity),
    }
}

impl Page {
    async fn of(
        visitor: &Visitor,
        query: &InboxQuery,
        action: &'static str,
        chosen: &Chosen,
        fields: &Fields,
    ) -> Page {
        let w = visitor.w;
        let heading = w.n(&format!("bulk-head-{action}"), chosen.tasks.len());
        let chosen_outcome = fields.get("outcome");
        let choices = chosen.outcomes.iter().map(|(outcome, count)| Choice {
            is_chosen: outcome.outcome == chosen_outcome,
            outcome: outcome.outcome.clone(),
            title: outcome.title.clone(),
            count: w.n("inbox-count", *count),
        });
        let mut choices: Vec<_> = choices.collect();
        // The chosen outcome stays, even if its tasks are no longer in the list.
        if !chosen_outcome.is_empty() && !choices.iter().any(|one| one.is_chosen) {
            choices.push(Choice {
                outcome: chosen_outcome.to_owned(),
                title: chosen_outcome.to_owned(),
                count: w.n("inbox-count", 0),
                is_chosen: true,
            });
        }
        let key = form::key(fields).map(str::to_owned);
        Page {
            shell: Shell::of(visitor, "inbox", heading.clone()).await,
            heading,
            action,
            back: query.address(query.view(), &query.after),
            parameters: query.parameters(query.view(), &query.after),
            tasks: chosen.tasks.clone(),
            more: chosen.is_more.then(|| w.n("bulk-more", TASKS_MAX)),
            choices,
            comment: fields.get("comment").to_owned(),
            refusal: None,
            groups: Vec::new(),
            summary: String::new(),
            is_done: false,
            confirm: None,
            key: key.unwrap_or_else(|| clock::new_id().to_string()),
            seen: String::new(),
        }
    }

    /// Shows what will happen.
    async fn preview(&mut self, visitor: &Visitor, body: &Value) -> Result<(), Trouble> {
        let path = "/v1/tasks/bulk?dryRun=true";
        let results = visitor.api.post::<Results>(path, body, None).await?;
        self.show_results(&results, false, visitor);
        let groups = self.groups.iter().map(|group| {
            let tasks: Vec<_> = group.tasks.iter().map(|task| task.id).collect();
            json!([group.reason, tasks])
        });
        let effects: Value = groups.collect();
        self.seen = form::preview_digests(body, &effects);
        Ok(())
    }

    /// Runs the action, and shows the results.
    async fn run(
        &mut self,
        visitor: &Visitor,
        body: &Value,
        key: Option<&str>,
    ) -> Result<(), Trouble> {
        let done = visitor
            .api
            .post::<Results>("/v1/tasks/bulk", body, key)
            .await;
        if let Err(trouble) = &done {
            // A refused action has no effects to show.
            (self.groups, self.summary, self.confirm) = (Vec::new(), String::new(), None);
            // The key belongs to another submission. With it, every further attempt would be refused.
            if trouble.code == "idempotency_key_reused" {
                self.key = clock::new_id().to_string();
            }
        }
        self.show_results(&done?, true, visitor);
        Ok(())
    }

    /// Shows the effects or results: first the tasks without a refusal, then each reason with its tasks.
    fn show_results(&mut self, results: &Results, is_done: bool, visitor: &Visitor) {
        let w = visitor.w;
        let mut groups: Vec<Group> = Vec::new();
        for one in &results.results {
            let reason = if one.trouble.code.is_empty() {
                String::new()
            } else {
                one.trouble.clone().in_a_sentence(w)
            };
            let Some(task) = self.tasks.iter().find(|task| task.id == one.task_id) else {
                continue;
            };
            match groups.iter_mut().find(|group| group.reason == reason) {
                Some(group) => group.tasks.push(task.clone()),
                None => groups.push(Group {
                    reason,
                    count: String::new(),
                    tasks: vec![task.clone()],
                }),
            }
        }
        for group in &mut groups {
            group.count = w.n("inbox-count", group.tasks.len());
        }
        groups.sort_by_key(|group| !group.reason.is_empty());
        self.groups = groups;
        let text = if is_done { "bulk-done" } else { "bulk-will" };
        let mut summary = w.n(text, results.done);
        if results.refused > 0 {
            let text = if is_done {
                "bulk-was-refused"
            } else {
                "bulk-refused"
            };
            summary = format!("{summary} {}", w.n(text, results.refused));
        }
        self.summary = summary;
        self.is_done = is_done;
        let can_go_on = !is_done && results.done > 0;
        let name = w.n(&format!("bulk-head-{}", self.action), results.done);
        self.confirm = can_go_on.then(|| w.with("confirm", "action", &name));
    }
}
