//! The refused events of all instances, by their errors: send some or all of them again, or discard them.

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{DeadLetter, Moved, PAGE_ROWS, sent};
use crate::api::with_query;
use crate::form;
use crate::list::{Link, Paged};
use crate::moment::Moment;
use crate::pages::operations::choices::{Choice, Choices, FOLLOWED_MAX, Item, MANY_MAX};
use crate::pages::operations::{ROOT, trail};
use crate::posted::Posted;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};

/// The parameters in the address of the list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::pages::operations) struct DeadLetterListQuery {
    after: String,
    /// Keys of those that were sent again, with commas between them.
    sent: String,
}

/// The value of an instance in a form: its id, the entry of the refused event, and the event.
pub(super) struct Key {
    pub(super) instance: Uuid,
    entry: u64,
    pub(super) event: Option<Uuid>,
}

impl Key {
    fn of(letter: &DeadLetter) -> String {
        let event = letter.event.event_id.map(|id| id.to_string());
        let event = event.unwrap_or_default();
        format!(
            "{}.{}.{event}",
            letter.event.instance_id, letter.event.entry
        )
    }

    pub(super) fn parse(key: &str) -> Option<Key> {
        let (instance, rest) = key.split_once('.')?;
        let (entry, event) = rest.split_once('.')?;
        Some(Key {
            instance: instance.parse().ok()?,
            entry: entry.parse().ok()?,
            event: event.parse().ok(),
        })
    }
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct All {
    shell: Shell,
    trail: Vec<Link>,
    choices: Choices,
    first: Option<String>,
    next: Option<String>,
}

fn address(parameter: &str, value: &str) -> String {
    with_query(&format!("{ROOT}/dead-letters"), &[(parameter, value)])
}

fn list_path(after: &str) -> String {
    let parameters = [("limit", PAGE_ROWS), ("after", after)];
    with_query("/v1/dead-letters", &parameters)
}

pub(in crate::pages::operations) async fn list(
    Query(query): Query<DeadLetterListQuery>,
    visitor: Visitor,
) -> Answer {
    let mut choices = Choices::new(address("", ""));
    let sent: Vec<_> = query.sent.split(',').map(str::to_owned).collect();
    choices.sent = sent::of(&visitor, &sent, address("sent", &query.sent)).await;
    render(&visitor, &query.after, choices, &Choice::default()).await
}

async fn render(visitor: &Visitor, after: &str, choices: Choices, choice: &Choice) -> Answer {
    let w = visitor.w;
    let found: Paged<DeadLetter> = visitor.page_with_rows(after, list_path).await?;
    let item = |letter: DeadLetter| {
        let key = Key::of(&letter);
        let event = letter.event;
        Item {
            key,
            name: event.kind(),
            address: address("", "") + "/" + &event.instance_id.to_string(),
            id: event.instance_id.to_string(),
            about: w.n("dead-letter-followers", letter.followers),
            since: Moment::of(event.parked_at, w),
            error: event.error,
            is_chosen: false,
        }
    };
    let items = found.data.into_iter().map(item).collect();
    let status = match choices.refusal {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let heading = w.t("panel-dead-letters").into_owned();
    let template = All {
        shell: Shell::of(visitor, "operations", heading).await,
        trail: trail(visitor),
        choices: choices.listing((items, after), choice, "instances-count", w),
        first: (!after.is_empty()).then(|| address("", "")),
        next: found.page.next.map(|next| address("after", &next)),
    };
    Ok(page(status, &template))
}

/// Sends the events of the chosen instances again, or discards the refused ones, one instance after the other.
pub(in crate::pages::operations) async fn act(Posted { visitor, fields }: Posted) -> Answer {
    let w = visitor.w;
    let mut choices = Choices::new(address("", ""));
    let choice = Choice::of(&fields);
    let known = |letter: &DeadLetter| (letter.event.error.clone(), Key::of(letter));
    let (keys, is_more) = choice.resolved(&visitor, list_path, known).await?;
    if keys.is_empty() || choice.reason.is_empty() {
        choices.refusal = Some(w.t("dead-letter-choose").into_owned());
        return render(&visitor, &choice.after, choices, &choice).await;
    }
    if is_more {
        let most = w.n("choice-bounded", MANY_MAX);
        choices.done.push(most);
    }
    let discards = fields.get("do") == "discard";
    if discards && !form::is_to_be_done(&fields) {
        choices.asking(keys, &choice, "dead-letter-discard-many", w);
        return render(&visitor, &choice.after, choices, &choice).await;
    }
    let mut sent = Vec::new();
    let (mut released, mut left) = (0, 0_usize);
    let mut discarded: usize = 0;
    for key in keys {
        let Some(one) = Key::parse(&key) else {
            continue;
        };
        let (command, body): (_, Value) = if discards {
            let body = json!({ "entry": one.entry, "reason": choice.reason });
            ("discard", body)
        } else {
            ("retry", json!({ "reason": choice.reason }))
        };
        let path = format!("/v1/dead-letters/{}/{command}", one.instance);
        match visitor.api.post::<Moved>(&path, &body, None).await {
            Ok(moved) => {
                left += usize::from(moved.more);
                if discards {
                    discarded += 1;
                } else {
                    released += moved.released;
                    sent.push(key);
                }
            }
            Err(trouble) => {
                let id = one.instance.to_string();
                let page = format!("{}/{id}", choices.address);
                choices.refused.push((page, id, trouble.detail));
            }
        }
    }
    if discarded > 0 {
        choices.done.push(w.n("dead-letter-discarded", discarded));
    }
    if released > 0 {
        choices.done.push(w.n("dead-letter-sent", released));
    }
    if left > 0 {
        choices.done.push(w.n("dead-letter-more-of", left));
    }
    choices.bounding(sent.len(), w);
    sent.truncate(FOLLOWED_MAX);
    choices.sent = sent::of(&visitor, &sent, address("sent", &sent.join(","))).await;
    render(&visitor, "", choices, &Choice::default()).await
}
