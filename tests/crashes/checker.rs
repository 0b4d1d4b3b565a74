//! The invariants after any number of crashes at any time: no acknowledged effect is missing, no uncommitted one exists, none
//! happened twice, none is out of order, and no work is stuck.
//!
//! The checker reads the journal of the callers, the rows and the topic, and does not depend on how a host works.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Row as _};

use super::client::{Client, Order, Reply};
use super::fixture::Fixture;
use super::load::{KEY_PREFIX, Settled};
use super::topic::{Record, records};
use crate::support::{until, until_on_thread};

/// Every so many accepted commands that were never in doubt, one is sent again as well.
const REPEATED_EVERY: usize = 7;
/// Counts that must become 0 by themselves, and what they count.
const LEFT_OVER: [(&str, &str); 7] = [
    (
        "select count(*) from outbox_event",
        "events that were not relayed",
    ),
    (
        "select count(*) from dead_letter",
        "events that were given up",
    ),
    ("select count(*) from job", "jobs that were not done"),
    (
        "select count(*) from reassessment",
        "reassessments that were not done",
    ),
    (
        "select count(*) from webhook_delivery where state <> 'delivered'",
        "webhooks that were not delivered",
    ),
    (
        "select count(*) from bulk_item where result is null",
        "items of operations that were not done",
    ),
    (
        "select count(*) from instance where status = 'RUNNING'",
        "instances that did not finish",
    ),
];
/// Resources that no host may hold without requests.
const HELD: [(&str, &str); 2] = [
    (
        "select count(*) from pg_stat_activity where backend_type = 'client backend' and state like 'idle in transaction%'
            and state_change < now() - interval '2 seconds'",
        "transactions that are never ended",
    ),
    ("select count(*) from pg_locks where not granted", "locks that are waited for"),
];

/// The numbers of what was checked.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: usize,
    refused: usize,
    pub(super) in_doubt: usize,
    doubts: u32,
    repeated: usize,
    instances: usize,
    events: usize,
    records: usize,
    duplicates: usize,
    audit: String,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            accepted,
            refused,
            in_doubt,
            doubts,
            repeated,
            instances,
            events,
            records,
            duplicates,
            audit,
        } = self;
        writeln!(
            f,
            "  {accepted} commands acknowledged, each recorded once; {refused} refused, none recorded"
        )?;
        writeln!(
            f,
            "  {in_doubt} commands in doubt {doubts} times, each answered truly in the end"
        )?;
        writeln!(
            f,
            "  {repeated} commands repeated with their key: the same answer, and nothing happened"
        )?;
        writeln!(
            f,
            "  {instances} instances, all ended, nothing left over or held"
        )?;
        writeln!(
            f,
            "  {events} events committed and {records} records in Kafka, {duplicates} of them equal repetitions;"
        )?;
        writeln!(
            f,
            "    none missing, none without its commit, each instance in order without a gap"
        )?;
        write!(f, "  {audit}")
    }
}

/// An event as it is stored.
struct Event {
    stream: String,
    sequence: i64,
    kind: String,
}

/// Checks everything.
pub(super) async fn check(fixture: &Fixture, client: &Client, journal: &[Settled]) -> Counts {
    settled(fixture).await;
    let mut counts = Counts::default();
    recorded(fixture, journal, &mut counts).await;
    repeated(fixture, client, journal, &mut counts).await;
    settled(fixture).await;
    let records = records(&fixture.brokers, &fixture.topic).await;
    let events = events(fixture).await;
    check_published(&records, &events, &mut counts);
    answered(&records, journal);
    counts.audit = fixture.verified().await;
    let instances = fixture.count("select count(*) from instance").await;
    counts.instances = usize::try_from(instances).expect("a count");
    counts
}

/// Waits until no work is left and nothing is held.
async fn settled(fixture: &Fixture) {
    for (sql, what) in LEFT_OVER.into_iter().chain(HELD) {
        let what = format!("there are no {what}");
        let look = async || fixture.count(sql).await;
        until(&what, look, |left: &i64| *left == 0).await;
    }
}

/// Every accepted command is in the audit once, under the request id of its caller, with the reply that the caller got. A refused
/// command left nothing.
async fn recorded(fixture: &Fixture, journal: &[Settled], counts: &mut Counts) {
    let pool = fixture.postgres.pool();
    let sql = "select evidence::jsonb ->> 'requestId' as request, count(distinct command_id) as commands from audit_entry
        where stream_kind = 'instance' and evidence is not null and evidence::jsonb ->> 'requestId' is not null group by 1";
    let rows = sqlx::query(sql).fetch_all(pool).await.expect("commands");
    let mut commands: HashMap<String, i64> = rows
        .iter()
        .map(|row| (row.get("request"), row.get("commands")))
        .collect();
    commands.retain(|request, _| request.starts_with(KEY_PREFIX));
    let sql = "select key, principal, status, body from idempotency_key";
    let rows = sqlx::query(sql).fetch_all(pool).await.expect("replies");
    let kept: HashMap<String, (String, i16, String)> = rows
        .iter()
        .map(|row| {
            (
                row.get("key"),
                (row.get("principal"), row.get("status"), row.get("body")),
            )
        })
        .collect();
    for Settled {
        order,
        doubts,
        reply,
    } in journal
    {
        let count = commands.remove(&order.key).unwrap_or_default();
        counts.doubts += doubts;
        counts.in_doubt += usize::from(*doubts > 0);
        if !reply.is_accepted() {
            counts.refused += 1;
            assert_eq!(
                count, 0,
                "refused with {}, and yet it happened: {order:?}",
                reply.text
            );
            assert!(
                !kept.contains_key(&order.key),
                "{order:?} was refused and has a reply"
            );
            continue;
        }
        counts.accepted += 1;
        let effects = reply.body()["events"].as_array().map_or(0, Vec::len);
        assert_eq!(
            count,
            i64::from(effects > 0),
            "{order:?} was accepted with {effects} events"
        );
        if effects == 0 {
            continue;
        }
        let (principal, status, body) = kept
            .get(&order.key)
            .unwrap_or_else(|| panic!("{order:?} has no reply"));
        // The line feed behind an answer is not part of the stored reply.
        let text = reply.text.trim_end_matches('\n');
        let found = (order.user, reply.status, text);
        assert_eq!(
            found,
            (principal.as_str(), status.cast_unsigned(), body.as_str()),
            "{order:?}"
        );
    }
    assert!(commands.is_empty(), "nobody was told of {commands:?}");
}

/// Commands in doubt, and some others, get the same answer again from every host.
async fn repeated(fixture: &Fixture, client: &Client, journal: &[Settled], counts: &mut Counts) {
    let before = entries(fixture).await;
    let chosen = journal.iter().enumerate().filter(|(number, settled)| {
        let has_effect =
            settled.reply.is_accepted() && settled.reply.body()["events"] != Value::Array(vec![]);
        has_effect && (settled.doubts > 0 || number % REPEATED_EVERY == 0)
    });
    for (number, Settled { order, reply, .. }) in chosen {
        let again = tokio::task::block_in_place(|| answer(client, number % fixture.hosts(), order));
        let expected = Reply {
            is_replay: true,
            ..reply.clone()
        };
        assert_eq!(again, expected, "{order:?}");
        counts.repeated += 1;
    }
    assert_eq!(entries(fixture).await, before, "a repetition did something");
}

/// The answer of a host that is up.
pub(super) fn answer(client: &Client, host: usize, order: &Order) -> Reply {
    let what = format!("{order:?} is answered");
    let is_answered = |result: &Result<Reply, String>| {
        let reply = result.as_ref();
        reply.is_ok_and(|reply| reply.status != 503)
    };
    let answered = until_on_thread(&what, || client.post(host, order), is_answered);
    answered.expect("an answer")
}

async fn entries(fixture: &Fixture) -> i64 {
    let sql = "select count(*) from audit_entry where stream_kind = 'instance'";
    fixture.count(sql).await
}

async fn events(fixture: &Fixture) -> BTreeMap<String, Event> {
    let sql = "select id::text, stream_id::text as stream, event_seq, type as kind from audit_entry where event_seq is not null";
    let rows = sqlx::query(AssertSqlSafe(sql))
        .fetch_all(fixture.postgres.pool())
        .await
        .expect("events");
    let event = |row: &sqlx::postgres::PgRow| {
        let event = Event {
            stream: row.get("stream"),
            sequence: row.get("event_seq"),
            kind: row.get("kind"),
        };
        (row.get("id"), event)
    };
    rows.iter().map(event).collect()
}

/// The topic has all committed events and no others. Without repetitions, as consumers drop them, each instance's events are in
/// order. Repetitions are equal.
fn check_published(records: &[Record], events: &BTreeMap<String, Event>, counts: &mut Counts) {
    let mut first: HashMap<&str, &Record> = HashMap::new();
    let mut last: HashMap<&str, i64> = HashMap::new();
    for record in records {
        let id = record.header("ce_id");
        if let Some(earlier) = first.get(id) {
            counts.duplicates += 1;
            assert_eq!(*earlier, record, "a repetition differs");
            continue;
        }
        first.insert(id, record);
        let event = events
            .get(id)
            .unwrap_or_else(|| panic!("an event without its commit: {record:?}"));
        let kind = format!("dev.wrkflw.{}", event.kind.to_lowercase().replace('_', "."));
        let sequence: i64 = record.header("ce_sequence").parse().expect("a number");
        let found = (record.key.as_str(), record.header("ce_type"), sequence);
        assert_eq!(
            found,
            (event.stream.as_str(), kind.as_str(), event.sequence),
            "{id}"
        );
        let before = last.insert(&record.key, sequence).unwrap_or_default();
        assert_eq!(
            sequence,
            before + 1,
            "instance {} is out of order",
            record.key
        );
    }
    let missing: BTreeSet<&String> = events
        .keys()
        .filter(|id| !first.contains_key(id.as_str()))
        .collect();
    assert!(missing.is_empty(), "committed and never told: {missing:?}");
    (counts.events, counts.records) = (events.len(), records.len());
}

/// The events in callers' answers are those that consumers get.
fn answered(records: &[Record], journal: &[Settled]) {
    let published: HashMap<&str, &Record> = records
        .iter()
        .map(|record| (record.header("ce_id"), record))
        .collect();
    for settled in journal.iter().filter(|settled| settled.reply.is_accepted()) {
        let body = settled.reply.body();
        for event in body["events"].as_array().into_iter().flatten() {
            let id = event["id"].as_str().expect("an id");
            let record = published.get(id).unwrap_or_else(|| {
                panic!("{:?} was acknowledged, and {id} never told", settled.order)
            });
            assert_eq!(record.data, event["data"], "{id}");
        }
    }
}
