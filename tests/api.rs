//! The HTTP API from the caller's side: real PostgreSQL, real wasm, no network.
//!
//! One module per subject. This file has what they share: requests that the support module does not have, and a count of all
//! stored rows.

mod absences;
pub(crate) mod access;
mod actions;
mod attributes;
mod calendars;
mod changes;
mod comments;
mod compliance;
mod custody;
mod definition_lists;
mod definitions;
mod delegation;
mod deliveries;
mod described;
mod directory;
mod directory_lists;
mod drafts;
mod dry_run;
mod eligibility;
mod embed_tokens;
pub(crate) mod events;
mod examples;
mod exceptions;
mod fairness;
mod filters;
mod heads;
mod histories;
mod hostile;
mod inboxes;
mod isolation;
mod list_plans;
mod lists;
mod lookups;
mod managers;
mod minimal;
mod names;
pub(crate) mod notifications;
mod observed;
pub(crate) mod openapi;
mod operation;
mod orphans;
mod owners;
mod parameters;
mod people;
mod preconditions;
mod preferences;
mod problems;
mod refusals;
mod requests;
mod retention;
mod saved_views;
mod search_bodies;
mod searches;
mod self_approval;
mod series;
pub(crate) mod sessions;
mod spelling;
mod streams;
mod subscriptions;
mod substitutes;
mod transfer;
mod verification;
mod versions;
mod visibility;
mod webhooks;
mod work_lists;

use std::collections::BTreeMap;

use axum::body::Body;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::app::{Answer, Host, TestApp, task_of};
use crate::support::guests;

/// The number of rows of every table, without the figures that hosts write by themselves.
pub(crate) async fn rows(app: &TestApp) -> BTreeMap<String, i64> {
    let pool = app.database.admin_pool();
    let tables = "select table_name::text from information_schema.tables
        where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'series_point' order by 1";
    let tables: Vec<String> = sqlx::query_scalar(tables)
        .fetch_all(pool)
        .await
        .expect("the catalogue");
    assert!(tables.len() > 20, "{tables:?}");
    let counts: Vec<_> = tables
        .iter()
        .map(|table| format!("select '{table}', count(*) from \"{table}\""))
        .collect();
    let counts = sqlx::query_as(AssertSqlSafe(counts.join(" union all ")));
    let counts: Vec<(String, i64)> = counts.fetch_all(pool).await.expect("counts");
    counts.into_iter().collect()
}

/// Runs a statement directly in the database.
pub(crate) async fn sql(app: &TestApp, statement: &'static str) {
    sqlx::raw_sql(statement)
        .execute(app.database.admin_pool())
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// The types of the newest entries of the directory's stream, oldest first, and the payload of the last one.
async fn directory_entries(app: &TestApp, count: i64) -> (Vec<String>, Value) {
    let entries = "select type, payload from audit_entry where stream_kind = 'directory' order by seq desc limit $1";
    let mut entries: Vec<(String, String)> = sqlx::query_as(entries)
        .bind(count)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("entries");
    let last = serde_json::from_str(&entries[0].1).expect("JSON");
    entries.reverse();
    (entries.into_iter().map(|(kind, _)| kind).collect(), last)
}

/// The stored reassessments: whose work, and how many seconds after the change they are due.
async fn reassessments(app: &TestApp) -> Vec<(String, i64)> {
    let rows = "select kind || ' ' || principal, extract(epoch from due_at - created_at)::bigint from reassessment order by created_at, due_at, 1";
    sqlx::query_as(rows)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("reassessments")
}

/// Sends a DELETE without a body.
async fn delete(app: &TestApp, user: &str, path: &str) -> Answer {
    app.host().send(user, "DELETE", path, &[], None).await
}

/// The code and the field of the only field error in the response.
#[track_caller]
fn fault(answer: Answer) -> (String, String) {
    let problem = answer.problem(422, "invalid_request");
    let error = &problem["errors"][0];
    let text = |member: &str| error[member].as_str().expect("text").to_owned();
    (text("pointer"), text("code"))
}

/// Sets the permissions of a role to exactly these.
async fn grant(app: &TestApp, role: &str, permissions: &[&str]) {
    let grant = "insert into role_permission select id, $1, unnest($2::text[]) from tenant where name = 'default'";
    sqlx::query(grant)
        .bind(role)
        .bind(permissions)
        .execute(app.database.admin_pool())
        .await
        .expect("a grant");
}

/// An `Authorization` header for somebody with these roles.
fn bearer(host: &Host, subject: &str, tenant: &str, roles: &[&str]) -> (&'static str, String) {
    let token = host.token_of(subject, tenant, roles);
    ("authorization", format!("Bearer {token}"))
}

/// Sends a body without encoding it.
async fn raw(
    host: &Host,
    user: &str,
    line: (&str, &str),
    content_type: &str,
    body: impl Into<Body>,
) -> Answer {
    let (method, path) = line;
    let request = host
        .request(user, method, path)
        .header("content-type", content_type);
    host.answer(request.body(body.into()).expect("a request"))
        .await
}

/// Sends a form with these fields to the versions of `key`.
pub(crate) async fn upload(host: &Host, user: &str, key: &str, fields: &[(&str, &[u8])]) -> Answer {
    const BOUNDARY: &str = "----boundary";
    let mut body = Vec::new();
    for (name, value) in fields {
        let head =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    let path = format!("/v1/definitions/{key}/versions");
    let form = format!("multipart/form-data; boundary={BOUNDARY}");
    raw(host, user, ("POST", &path), &form, body).await
}

/// Publishes the hostile guest as `hostile` and activates it.
pub(crate) async fn with_hostile(app: &TestApp) {
    app.publish("hostile", guests::hostile(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/hostile/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
}

/// The body of a start of the hostile flow.
pub(crate) fn hostile_start(entity: &str, data: Value) -> Value {
    json!({ "definitionKey": "hostile", "entityType": "thing", "entityId": entity, "data": data })
}

/// The body of a start of document approval.
fn approval_start(entity: &str) -> Value {
    json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": entity,
        "data": { "title": "A plan" },
    })
}

/// The id of the only open task of an instance that `user` has claimed.
async fn claimed(app: &TestApp, user: &str, instance: &Value) -> String {
    let task = task_of(instance);
    let claim = format!("/v1/tasks/{task}/claim");
    app.post(user, &claim, json!({})).await.expect(200);
    task
}

/// The response without what differs between runs: ids are numbered in the order of their occurrence, and times become `then`.
/// Trace contexts and the flag of dry runs are removed.
pub(crate) fn blurred(answer: &Value) -> Value {
    fn blur(value: &mut Value, ids: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                members.remove("traceparent");
                members.remove("dryRun");
                members.values_mut().for_each(|member| blur(member, ids));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| blur(item, ids)),
            Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => *text = "then".into(),
            Value::String(text) => number_ids(text, ids),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut blurry = answer.clone();
    blur(&mut blurry, &mut Vec::new());
    blurry
}

/// Replaces every UUID in the text.
fn number_ids(text: &mut String, ids: &mut Vec<String>) {
    const LENGTH: usize = 36;
    let found = |text: &str| {
        let mut places = 0..(text.len() + 1).saturating_sub(LENGTH);
        let part = |at: usize| text.get(at..at + LENGTH);
        places
            .find_map(|at| part(at).filter(|part| uuid::Uuid::parse_str(part).is_ok()))
            .map(str::to_owned)
    };
    while let Some(id) = found(text) {
        let known = ids.iter().position(|known| *known == id);
        let number = known.unwrap_or_else(|| {
            ids.push(id.clone());
            ids.len() - 1
        });
        *text = text.replace(&id, &format!("#{number}"));
    }
}
