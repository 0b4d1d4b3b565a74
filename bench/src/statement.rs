//! A decision's read and commit as a `pgbench` script: the host's own statements, with values in place of parameters.
//!
//! What the host would compute - ids, hashes, payloads of a decision's size - stands there as constants or is made
//! from the script's variables, so that only the database's share is measured.

const LOAD: &str = include_str!("../../host/src/store/load.sql");
const COMMIT: &str = include_str!("../../host/src/store/commit/commit.sql");

/// The tenant that the script's rows belong to.
const TENANT: &str = "1000000";
/// As large as the evidence of a first review of a small document.
const EVIDENCE_BYTES: usize = 2_800;
const PAYLOAD_BYTES: usize = 320;

/// An id made from a variable of the script; `kind` tells apart what the ids are of.
fn id(kind: u8, variable: &str) -> String {
    format!(
        "('00000000-0000-7000-8{kind:03}-' || lpad(to_hex(:{variable}::bigint), 12, '0'))::uuid"
    )
}

const INSTANCE: u8 = 0;
const STAY: u8 = 1;
const TASK: u8 = 2;
const COMMAND: u8 = 3;
const NEXT_STAY: u8 = 4;
const NEXT_TASK: u8 = 5;
/// The first of the entries.
const ENTRY: u8 = 6;

/// Instances in their first review, claimed.
pub(crate) fn fill(instances: u32) -> String {
    let id = |kind| id(kind, "n").replace(":n::bigint", "n::bigint");
    format!(
        "insert into tenant (id, name, created_at) overriding system value values ({TENANT}, 'bench-statement', now()) on conflict do nothing;
insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id, initiator,
    requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, stays)
select {TENANT}, {instance}, 'document-approval', 1, 2, 'RUNNING', 'bench', n::text, 'author', '{{author}}',
    '{{\"title\":\"A document that is measured\"}}', now(), now(), 4, '\\x00', 4, 1
from generate_series(1, {instances}) n;
insert into state_instance (tenant_id, instance_id, id, ordinal, name, entered_at, predecessors, caller, needed, exclude, priority)
select {TENANT}, {instance}, {stay}, 0, 'Submitted', now(), '{{}}', 'author', 1, '{{}}', 0 from generate_series(1, {instances}) n;
insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at, claimed_at)
select {TENANT}, {task}, {instance}, {stay}, 0, '', 'CLAIMED', 'reviewer', '[{{\"id\":\"reviewers\",\"type\":\"group\"}}]', now(), now()
from generate_series(1, {instances}) n;
vacuum analyze instance; vacuum analyze state_instance; vacuum analyze task;",
        instance = id(INSTANCE),
        stay = id(STAY),
        task = id(TASK),
    )
}

pub(crate) fn script(instances: u32) -> String {
    let read = bind(
        LOAD,
        &[
            TENANT.into(),
            id(INSTANCE, "n"),
            "'reviewer'".into(),
            "array['user']::text[]".into(),
            "null::text".into(),
            "100".into(),
            "now()".into(),
            "null::text".into(),
        ],
    );
    // The script needs the revision and the end of the stream, which the host finds in the same answer.
    let read = read.replacen("select\n", "select i.revision as revision, i.audit_seq as audit_seq, i.event_seq as event_seq, i.stays as stays,\n", 1);
    let commit = bind(COMMIT, &parameters());
    format!(
        "\\set n random(1, {instances})\n\\set r random(1, 100000000000000)\n{} \\gset\n{};\n",
        plain(&read),
        plain(&commit)
    )
}

/// `pgbench` reads one statement up to its end, and knows no comments within.
fn plain(sql: &str) -> String {
    sql.lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .map(named)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Column names with the type overrides of checked queries, made plain: `\gset` takes them as variables.
fn named(line: &str) -> String {
    match (line.find(" as \""), line.rfind('"')) {
        (Some(start), Some(end)) if end > start + 5 => {
            let quoted = &line[start + 5..end];
            let name: String = quoted
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            format!("{} as {name}_{}", &line[..start], &line[end + 1..])
        }
        _ => line.to_owned(),
    }
}

/// Puts values in place of `$1`, `$2` and so on.
fn bind(sql: &str, values: &[String]) -> String {
    (1..=values.len())
        .rev()
        .fold(sql.to_owned(), |sql, number| {
            sql.replace(
                &format!("${number}::"),
                &format!("({})::", values[number - 1]),
            )
            .replace(&format!("${number}"), &format!("({})", values[number - 1]))
        })
}

fn one(value: &str) -> String {
    format!("array[{value}]")
}

fn none() -> String {
    "'{}'".to_owned()
}

/// One row: its values, in the order of the columns.
fn row(values: &str) -> Vec<String> {
    values.split(" | ").map(|value| one(value.trim())).collect()
}

/// The values of a decision, in the order of the statement's parameters.
fn parameters() -> Vec<String> {
    let (instance, stay, task) = (id(INSTANCE, "n"), id(STAY, "n"), id(TASK, "n"));
    let (command, next_stay, next_task) =
        (id(COMMAND, "r"), id(NEXT_STAY, "r"), id(NEXT_TASK, "r"));
    let hash = "decode(repeat('ab', 32), 'hex')";
    let data = "'{\"title\":\"A document that is measured\"}'";
    let candidates = "'[{\"id\":\"approvers\",\"type\":\"group\"}]'";
    let member = format!(
        "{TENANT} | {instance} | {command} | :revision | :revision + 1 | 0 | 'RUNNING' | null | null | null | null | {data} | now() \
         | :audit_seq + 4 | {hash} | :event_seq + 4 | :stays + 1 | null | null | null | null | 1"
    );
    let entered = format!(
        "{command} | {next_stay} | :stays | 'FinalReview' | now() | null | '{{}}' | 'APPROVE' | 'reviewer' | 1 | '{{}}' | null | 0 \
         | '{{}}' | 0 | false | null | null | false | null | null | null | null | null"
    );
    let departed = format!("{command} | {stay} | now() | 'APPROVE' | 'reviewer'");
    let created = format!(
        "{command} | {next_task} | {next_stay} | 0 | '' | 'PENDING' | null | {candidates} | null | now() | null | null \
         | null | null | null"
    );
    let changed = format!(
        "{command} | {task} | 'COMPLETED' | 'reviewer' | {candidates} | now() | now() | null | null | null | null"
    );
    let offered = format!("{command} | {next_task} | 'group' | 'approvers'");
    let withdrawn = format!("{command} | {task}");
    // Each run decides anew: the decision is filed under the new task's id, which no run uses twice.
    let decided = format!(
        "{command} | {next_task} | 'APPROVE' | 'reviewer' | null | 'measured' | '{{}}' | now() | 'key' | 1 | {hash}"
    );
    let (no_reply_and_no_start, nothing_restayed) = (9 + 10, 23);
    let (no_attributes, no_jobs_and_no_signal) = (9 + 2, 6 + 2 + 3);
    let mut values = row(&member);
    values.extend(std::iter::repeat_n(none(), no_reply_and_no_start));
    for rows in [entered, departed] {
        values.extend(row(&rows));
    }
    values.extend(std::iter::repeat_n(none(), nothing_restayed));
    for rows in [created, changed, offered, withdrawn, decided] {
        values.extend(row(&rows));
    }
    values.extend(std::iter::repeat_n(none(), no_attributes));
    values.extend(audited(&command, &task));
    values.extend(std::iter::repeat_n(none(), no_jobs_and_no_signal));
    // Why the new task was cancelled: it was not.
    values.push(one("null"));
    values
}

/// Four entries, the first with the evidence.
fn audited(command: &str, task: &str) -> Vec<String> {
    let four = |value: &dyn Fn(u8) -> String| {
        format!(
            "array[{}]",
            (0..4).map(value).collect::<Vec<_>>().join(", ")
        )
    };
    let constant = |value: &str| four(&|_| value.to_owned());
    let kinds = [
        "DECISION_RECORDED",
        "STATE_TRANSITIONED",
        "STATE_ENTERED",
        "TASK_CREATED",
    ];
    vec![
        constant(command),
        four(&|entry| format!(":audit_seq + {}", entry + 1)),
        four(&|entry| id(ENTRY + entry, "r")),
        four(&|entry| format!("'{}'", kinds[usize::from(entry)])),
        constant(":revision + 1"),
        constant("'reviewer'"),
        constant(task),
        constant(&format!(
            "'{{\"p\":\"' || repeat('x', {PAYLOAD_BYTES}) || '\"}}'"
        )),
        four(&|entry| {
            if entry == 0 {
                format!("repeat('e', {EVIDENCE_BYTES})")
            } else {
                "null".to_owned()
            }
        }),
        constant("decode(repeat('cd', 16), 'hex')"),
        constant("now()"),
        constant("decode(repeat('ab', 32), 'hex')"),
        four(&|entry| format!(":event_seq + {}", entry + 1)),
        constant("'00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parameter that the host's statements have gained would be left in the script, or shift the others.
    #[test]
    fn every_parameter_of_the_hosts_statements_has_a_value() {
        let highest = |sql: &str| {
            let numbers = sql.split('$').skip(1).filter_map(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_digit());
                rest[..end.unwrap_or(rest.len())].parse::<usize>().ok()
            });
            numbers.max()
        };
        assert_eq!(highest(COMMIT), Some(parameters().len()));
        let script = script(10);
        assert!(!script.contains('$'), "{script}");
    }
}
