//! The record of an instance: its events, its audit entries, and the result of their verification.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::deliveries::{Deliveries, DeliveryStatus};
use super::{InstancePageQuery, queue};
use crate::api::{Trouble, with_query};
use crate::data::{Instance, pretty};
use crate::language::Words;
use crate::list::PageInfo;
use crate::moment::Moment;
use crate::pages::audit::custody::{self, Seal};
use crate::session::Visitor;

/// Entries of one page.
const LINES: usize = 50;

/// A list of recorded events or entries, oldest first.
#[derive(Default)]
pub(super) struct Record {
    pub(super) lines: Vec<RecordLine>,
    pub(super) next: Option<String>,
    /// Why it cannot be shown, if it cannot.
    pub(super) refusal: String,
    /// Whether entries have seals that were not read.
    pub(super) lacks_seals: bool,
}

/// One entry.
pub(super) struct RecordLine {
    pub(super) at: Moment,
    pub(super) what: String,
    pub(super) who: String,
    /// The hash of an entry of the audit; empty for an event.
    pub(super) hash: String,
    /// The seal of a decision or delegation, for those who may read it.
    pub(super) seal: Option<Seal>,
    /// All that it says, as JSON.
    pub(super) content: String,
    /// The deliveries of an event, for visitors who may read them.
    pub(super) statuses: Vec<DeliveryStatus>,
}

#[derive(Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
    pub(super) page: PageInfo,
    #[serde(default)]
    deliveries: Deliveries,
}

#[derive(Deserialize)]
struct Event {
    id: Uuid,
    #[serde(rename = "type")]
    kind: String,
    time: Timestamp,
    #[serde(default)]
    authid: String,
    data: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    seq: u64,
    #[serde(rename = "type")]
    kind: String,
    /// None if the host acted on its own.
    actor: Option<String>,
    hash: String,
    occurred_at: Timestamp,
    payload: Box<RawValue>,
}

fn line(kind: String, at: Timestamp, who: String, content: &RawValue, w: Words) -> RecordLine {
    RecordLine {
        at: Moment::of(at, w),
        what: kind,
        who,
        hash: String::new(),
        seal: None,
        content: pretty(content),
        statuses: Vec::new(),
    }
}

/// A page of a list. A refusal is the error.
pub(super) async fn list<T: DeserializeOwned>(
    visitor: &Visitor,
    path: &str,
    fixed: &[(&str, &str)],
    after: &str,
) -> Result<List<T>, Trouble> {
    let limit = LINES.to_string();
    let page = [("limit", limit.as_str()), ("after", after)];
    let parameters: Vec<_> = fixed.iter().copied().chain(page).collect();
    visitor.api.get(&with_query(path, &parameters)).await
}

/// The address of the next page of a tab.
pub(super) fn further(id: Uuid, query: &InstancePageQuery, tab: &str, next: &str) -> String {
    queue::address(id, &query.queue, &[("tab", tab), ("after", next)])
}

impl Record {
    fn of(
        found: Result<(Vec<RecordLine>, Option<String>), Trouble>,
        id: Uuid,
        query: &InstancePageQuery,
        tab: &str,
    ) -> Record {
        match found {
            Ok((lines, next)) => Record {
                lines,
                next: next.map(|next| further(id, query, tab, &next)),
                ..Record::default()
            },
            Err(trouble) => Record {
                refusal: trouble.detail,
                ..Record::default()
            },
        }
    }

    /// The published events, and their deliveries.
    pub(super) async fn events(
        visitor: &Visitor,
        instance: &Instance,
        query: &InstancePageQuery,
    ) -> Record {
        let (names, w) = (instance.names(), visitor.w);
        let mut found = events(visitor, instance, "deliveries", &query.after).await;
        // Deliveries are for operators. Other visitors see only the events.
        if found.as_ref().is_err_and(|trouble| trouble.status == 403) {
            found = events(visitor, instance, "", &query.after).await;
        }
        let found = found.map(|list| {
            let deliveries = list.deliveries;
            let line = |one: Event| {
                let delivery = deliveries.get(&one.id);
                let who = names.person(&one.authid);
                RecordLine {
                    statuses: delivery.map_or_else(Vec::new, |delivery| {
                        delivery.statuses(instance.id, one.id, w)
                    }),
                    ..line(one.kind, one.time, who, &one.data, w)
                }
            };
            (list.data.into_iter().map(line).collect(), list.page.next)
        });
        Record::of(found, instance.id, query, "events")
    }

    /// The entries of the audit.
    pub(super) async fn audit(
        visitor: &Visitor,
        instance: &Instance,
        query: &InstancePageQuery,
    ) -> Record {
        let (names, w) = (instance.names(), visitor.w);
        let path = format!("/v1/instances/{}/audit", instance.id);
        let found = list::<Entry>(visitor, &path, &[], &query.after).await;
        let last = found.as_ref().ok().and_then(|list| list.data.last());
        let (mut seals, is_more) = match last {
            Some(last) => custody::seals(visitor, instance.id, last.seq).await,
            None => Default::default(),
        };
        let found = found.map(|list| {
            let entries = list.data.into_iter();
            let line = |one: Entry| {
                let host = || w.t("audit-host").into_owned();
                let who = one.actor.map_or_else(host, |actor| names.person(&actor));
                RecordLine {
                    hash: one.hash,
                    seal: seals.remove(&one.seq),
                    ..line(one.kind, one.occurred_at, who, &one.payload, w)
                }
            };
            (entries.map(line).collect(), list.page.next)
        });
        Record {
            lacks_seals: is_more,
            ..Record::of(found, instance.id, query, "audit")
        }
    }
}

/// A page of the events of an instance, with more of each if `include` says so.
async fn events(
    visitor: &Visitor,
    instance: &Instance,
    include: &str,
    after: &str,
) -> Result<List<Event>, Trouble> {
    let id = instance.id.to_string();
    let fixed = [("instanceId", id.as_str()), ("include", include)];
    let mut found: List<Event> = list(visitor, "/v1/events", &fixed, after).await?;
    // The feed names a next position even at its end, and large events end a page before it is full.
    if found.data.len() < LINES
        && let Some(next) = &found.page.next
    {
        let further: List<Event> = list(visitor, "/v1/events", &fixed, next).await?;
        found.page.next.take_if(|_| further.data.is_empty());
    }
    Ok(found)
}

/// The verification of an instance.
pub(super) struct VerificationResult {
    pub(super) text: String,
    pub(super) counts: String,
    pub(super) is_whole: bool,
    /// The code and the detail of each finding.
    pub(super) findings: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Verified {
    entries: u64,
    decisions: u64,
    delegations: u64,
    seals: u64,
    leaves: u64,
    count: i64,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    seq: Option<u64>,
    code: String,
    detail: String,
}

/// Verifies the instance. A refusal is part of the answer.
pub(super) async fn verify(visitor: &Visitor, instance: Uuid) -> VerificationResult {
    let w = visitor.w;
    let path = format!("/v1/instances/{instance}/verification");
    let verified: Verified = match visitor.api.get(&path).await {
        Ok(verified) => verified,
        Err(trouble) => {
            return VerificationResult {
                text: trouble.detail,
                counts: String::new(),
                is_whole: false,
                findings: Vec::new(),
            };
        }
    };
    let counts = [
        ("entries", w.number(verified.entries)),
        ("decisions", w.number(verified.decisions)),
        ("delegations", w.number(verified.delegations)),
        ("seals", w.number(verified.seals)),
        ("leaves", w.number(verified.leaves)),
    ];
    let findings = verified.findings.into_iter().map(|one| {
        let code = match one.seq {
            Some(seq) => format!("{} {seq}", one.code),
            None => one.code,
        };
        (code, one.detail)
    });
    VerificationResult {
        text: match verified.count {
            0 => w.t("verify-whole").into_owned(),
            count => w.n("verify-findings", count),
        },
        counts: w.say("verify-counts", &counts),
        is_whole: verified.count == 0,
        findings: findings.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_stays_in_the_view_that_is_worked_through() {
        let query = InstancePageQuery {
            queue: "view=mine".to_owned(),
            ..InstancePageQuery::default()
        };
        let page = format!("/console/instances/{}", Uuid::nil());
        let expected = format!("{page}?queue=view%3Dmine&tab=audit&after=7");
        assert_eq!(further(Uuid::nil(), &query, "audit", "7"), expected);
    }
}
