//! The texts of all statements: for every table with tenants, each statement names the tenant.
//!
//! The writer's policies are open, so its statements alone keep tenants apart. A few statements are meant for all tenants; they
//! are listed with the reason.

use std::collections::BTreeSet;

use crate::structure::queries;
use crate::support::app::TestApp;

/// Beginnings of statements that are meant for all tenants, and why.
const ACROSS: &[(&str, &str)] = &[
    (
        "delete from webhook_attempt where ctid",
        "old attempts are deleted",
    ),
    (
        "select min(n.ready_at)",
        "the worker of services reads when the next call is due",
    ),
    (
        "select s.name as \"name!\" from unnest($2::text[])",
        "the worker of services reads which services have due calls",
    ),
    (
        "update job set last_error = replace($3, '{}', service) where (tenant_id, id) in ( select j.tenant_id, j.id from job j where j.service",
        "calls of services that this host does not know are marked",
    ),
    (
        "select greatest(due_at, lease_until) as \"ready_at!: Time\" from reassessment",
        "a worker reads when the next one is due",
    ),
    (
        "select (select count(*) from (select from outbox_event",
        "counts for metrics",
    ),
    (
        "select p.pending as \"pending!\", p.since",
        "counts for metrics",
    ),
    ("select count(*) as \"stuck!\" from (", "counts for metrics"),
    (
        "select count(*) as \"failing!\" from (",
        "counts for metrics",
    ),
    (
        "select tenant_id, id, occurred_at as \"at: Time\", actor, action",
        "the checkpointer reads the new entries of all tenants",
    ),
    (
        "select tenant_id, stream_kind, stream_id, seq, hash, xid::text::bigint",
        "the checkpointer reads the new entries of all tenants",
    ),
    (
        "select l.partition, l.failures",
        "the relay takes partitions, each of many tenants",
    ),
    (
        "select e.pos as \"pos!\", e.tenant_id",
        "the relay publishes a partition in its order",
    ),
    (
        "with deleted as ( delete from outbox_event where partition",
        "the relay deletes acknowledged events",
    ),
    (
        "insert into dead_letter",
        "the relay parks events of its partition",
    ),
    (
        "delete from idempotency_key where ctid",
        "the sweep deletes old rows",
    ),
    (
        "delete from session where ctid",
        "the sweep deletes old rows",
    ),
    ("delete from draft where ctid", "the sweep deletes old rows"),
    (
        "delete from session where provider_session",
        "the identity provider signs a person out, and knows no tenants",
    ),
    (
        "delete from session where person",
        "the identity provider signs a person out, and knows no tenants",
    ),
    (
        "delete from signal_inbox where ctid",
        "the sweep deletes old rows",
    ),
    (
        "delete from signal where ctid",
        "the sweep deletes old rows",
    ),
    (
        "delete from webhook_delivery where ctid",
        "the sweep deletes old rows",
    ),
    (
        "delete from notification where ctid",
        "the sweep deletes old rows",
    ),
    (
        "delete from bulk_item where ctid",
        "the sweep deletes old rows",
    ),
    (
        "delete from series_point where ctid",
        "the sweep deletes old rows",
    ),
    (
        "with old as ( delete from series_point",
        "the sweep merges minutes into hours",
    ),
    (
        "with waiting as materialized (",
        "one host measures the backlog of all tenants",
    ),
    ("insert into notifier_cursor", "one cursor for each tenant"),
    (
        "select c.tenant_id, c.epoch",
        "the notifier reads which tenants have new events",
    ),
    (
        "with turns as ( select tenant_id, max(taken_at)",
        "a worker takes the operation of the tenant that waited longest",
    ),
    (
        "with recursive queue as ( ( select tenant_id, subscription_id from webhook_delivery",
        "a worker reads which tenants have due work",
    ),
    (
        "with recursive circle (tenant_id, turned, turn) as",
        "a worker reads whose turn it is",
    ),
    (
        "with due as materialized ( (select c.tenant_id, c.id from reassessment c",
        "a worker claims due work",
    ),
];
/// Keywords that may follow a table and are no alias of it.
const KEYWORDS: &[&str] = &[
    "where",
    "on",
    "set",
    "join",
    "left",
    "cross",
    "inner",
    "order",
    "group",
    "limit",
    "for",
    "using",
    "union",
    "values",
    "select",
    "as",
    "returning",
    "having",
    "when",
    "then",
    "end",
    "default",
    "lateral",
    "full",
    "natural",
    "offset",
];

/// Identifiers, symbols and operators, without comments and literals.
fn tokens(sql: &str) -> Vec<String> {
    let text: String = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default().to_owned() + "\n")
        .collect();
    let (mut tokens, mut chars) = (Vec::new(), text.chars().peekable());
    while let Some(first) = chars.next() {
        let mut token = String::new();
        if first == '\'' {
            while chars.next().is_some_and(|inner| inner != '\'') {}
            token.push('\'');
        } else if first == '"' {
            token.extend(chars.by_ref().take_while(|inner| *inner != '"'));
        } else if first.is_alphanumeric() || first == '_' || first == '$' {
            token.push(first);
            while let Some(next) = chars.next_if(|next| next.is_alphanumeric() || *next == '_') {
                token.push(next);
            }
        } else if !first.is_whitespace() {
            token.push(first);
        } else {
            continue;
        }
        tokens.push(token);
    }
    tokens
}

/// The position of the bracket that matches the one at `at`.
fn partner(tokens: &[String], at: usize) -> usize {
    let opens = tokens[at] == "(";
    let mut depth = 0_i32;
    let mut places: Box<dyn Iterator<Item = usize>> = if opens {
        Box::new(at..tokens.len())
    } else {
        Box::new((0..=at).rev())
    };
    let found = places.find(|place| {
        depth += match tokens[*place].as_str() {
            "(" => 1,
            ")" => -1,
            _ => 0,
        };
        depth == 0
    });
    found.unwrap_or(at)
}

/// The begin and the end of the innermost query around the token at `at`.
fn scope(tokens: &[String], at: usize) -> (usize, usize) {
    let mut depth = 0_i32;
    for place in (0..at).rev() {
        match tokens[place].as_str() {
            ")" => depth += 1,
            "(" if depth == 0 => return (place + 1, partner(tokens, place)),
            "(" => depth -= 1,
            _ => {}
        }
    }
    (0, tokens.len())
}

/// Whether the `tenant_id` at this position is compared with something, alone or as the first element of a row.
fn is_compared(tokens: &[String], at: usize) -> bool {
    let name_begins = if at >= 2 && tokens[at - 1] == "." {
        at - 2
    } else {
        at
    };
    let text = |place: usize| tokens.get(place).map_or("", String::as_str);
    let before = name_begins.checked_sub(1).map_or("", text);
    if text(at + 1) == "=" || before == "=" {
        return true;
    }
    before == "(" && {
        let after = text(partner(tokens, name_begins - 1) + 1);
        let leads = name_begins.checked_sub(2).map_or("", text);
        ["=", "in", ">", "<"].contains(&after) || ["=", "in"].contains(&leads)
    }
}

/// The tables with tenants that the statement uses without naming the tenant.
fn nameless(sql: &str, tables: &BTreeSet<String>) -> Vec<String> {
    let tokens = tokens(sql);
    let word = |place: usize| tokens.get(place).map_or("", String::as_str);
    let mut found = Vec::new();
    for at in 1..tokens.len() {
        let introduced = ["from", "join", "update", "into", "using", ","].contains(&word(at - 1));
        if !introduced
            || !tables.contains(word(at))
            || [".", "(", "="].contains(&word(at + 1)) && word(at - 1) == ","
        {
            continue;
        }
        // In a list of columns or values, a comma introduces no table.
        if word(at - 1) == "," && !is_in_from(&tokens, at) {
            continue;
        }
        if word(at - 1) == "into" {
            let columns = &tokens[at + 1..=partner(&tokens, at + 1)];
            if !columns.iter().any(|column| column == "tenant_id") {
                found.push(tokens[at].clone());
            }
            continue;
        }
        let alias = match word(at + 1) {
            "as" => word(at + 2),
            next if next.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !next.is_empty()
                && !KEYWORDS.contains(&next) =>
            {
                next
            }
            _ => word(at),
        };
        let (begin, end) = scope(&tokens, at);
        let named = (begin..end).any(|place| {
            tokens[place] == "tenant_id"
                && is_compared(&tokens, place)
                && (word(place - 1) != "." || word(place.saturating_sub(2)) == alias)
        });
        if !named {
            found.push(tokens[at].clone());
        }
    }
    found
}

/// Whether the nearest clause before this position, at the same level, lists tables.
fn is_in_from(tokens: &[String], at: usize) -> bool {
    let mut depth = 0_i32;
    for place in (0..at).rev() {
        match tokens[place].as_str() {
            ")" => depth += 1,
            "(" if depth == 0 => return false,
            "(" => depth -= 1,
            "from" if depth == 0 => return true,
            "select" | "where" | "set" | "by" | "values" | "returning" if depth == 0 => {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// All statements that the host is compiled with.
pub(super) fn all() -> Vec<String> {
    let queries = queries::all();
    let texts = queries.iter().map(queries::text);
    texts.map(str::to_owned).collect()
}

/// The tables with a tenant column.
pub(super) async fn tables(app: &TestApp) -> BTreeSet<String> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id'",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("the catalogue");
    tables.into_iter().collect()
}

#[tokio::test]
async fn every_statement_names_the_tenant_of_every_table() {
    let app = TestApp::empty().await;
    let tables = tables(&app).await;
    let (mut findings, mut used, mut touching) = (Vec::new(), BTreeSet::new(), 0);
    for sql in all() {
        let plain = sql
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(" ");
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((begin, _)) = ACROSS.iter().find(|(begin, _)| plain.starts_with(begin)) {
            used.insert(*begin);
            continue;
        }
        touching += usize::from(tokens(&sql).iter().any(|token| tables.contains(token)));
        let nameless = nameless(&sql, &tables);
        if !nameless.is_empty() {
            findings.push(format!("{nameless:?} in: {plain}"));
        }
    }
    assert!(
        findings.is_empty(),
        "without a tenant:\n{}",
        findings.join("\n")
    );
    assert!(
        touching > 100,
        "{touching} statements touch a table of a tenant"
    );
    let stale: Vec<_> = ACROSS
        .iter()
        .filter(|(begin, _)| !used.contains(begin))
        .collect();
    assert!(
        stale.is_empty(),
        "no statement begins so any more: {stale:?}"
    );
}

#[test]
fn a_statement_without_its_tenant_is_found() {
    let tables = ["task", "instance", "group", "decision"]
        .map(str::to_owned)
        .into();
    for (sql, expected) in [
        ("select id from task where tenant_id = $1 and id = $2", ""),
        ("select id from task where id = $2", "task"),
        ("select id from task t where t.tenant_id = $1", ""),
        ("select tenant_id, id from task where id = $1", "task"),
        (
            "select t.id from task t join instance i on i.id = t.instance_id where t.tenant_id = $1",
            "instance",
        ),
        (
            "select t.id from task t join instance i on i.tenant_id = t.tenant_id where t.tenant_id = $1",
            "",
        ),
        (
            "select t.id from task t, instance i where t.tenant_id = $1 and i.id = t.id",
            "instance",
        ),
        (
            "select array(select id from \"group\" where id = $2) from task where tenant_id = $1",
            "group",
        ),
        (
            "select id from task where (tenant_id, id) in (select $1::int, $2::uuid)",
            "",
        ),
        (
            "select id from task where id = $1 -- and tenant_id = $2\n",
            "task",
        ),
        ("select id from task where name = 'tenant_id = $1'", "task"),
        ("insert into task (id) values ($1)", "task"),
        ("insert into task (tenant_id, id) values ($1, $2)", ""),
        ("update task set status = $2 where id = $1", "task"),
        (
            "delete from decision d using task t where d.tenant_id = $1 and t.id = d.id",
            "task",
        ),
    ] {
        assert_eq!(nameless(sql, &tables).join(" "), expected, "{sql}");
    }
}
