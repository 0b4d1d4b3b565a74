//! A decision's read and commit as a `pgbench` script: the host's own statements, with values instead of parameters, one decision
//! per statement or a batch of them.
//!
//! The values that the host computes - ids, hashes, payloads of a decision's size - are constants or are made from the script's
//! variables, so that only the database is measured.

use std::collections::BTreeMap;

use wrkflw_store::commit::{common, row_types};

const LOAD: &str = include_str!("../../host/store/src/load.sql");
const COMMIT: &str = include_str!("../../host/store/src/commit/commit.sql");

/// The tenant of the script's rows.
const TENANT: &str = "1000000";
/// The evidence of the first review of a small document has about this size.
const EVIDENCE_BYTES: usize = 1_600;
const PAYLOAD_BYTES: usize = 320;
/// Entries of one decision.
const ENTRIES: u32 = 4;

/// An id made from a number, as an SQL expression. `kind` distinguishes ids of different tables.
fn id(kind: u8, number: &str) -> String {
    format!("('00000000-0000-7000-8{kind:03}-' || lpad(to_hex(({number})::bigint), 12, '0'))::uuid")
}

const INSTANCE: u8 = 0;
const STATE: u8 = 1;
const TASK: u8 = 2;
const COMMAND: u8 = 3;
const NEXT_STATE: u8 = 4;
const NEXT_TASK: u8 = 5;
const ENTRY: u8 = 6;

/// Instances in their first review, with a claimed task.
pub(crate) fn fill(instances: u32) -> String {
    let id = |kind| id(kind, "n");
    format!(
        "insert into tenant (id, name, created_at) overriding system value values ({TENANT}, 'bench-statement', now()) on conflict do nothing;
insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id, initiator,
    requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
select {TENANT}, {instance}, 'document-approval', 1, 2, 'RUNNING', 'bench', n::text, 'author', '{{author}}',
    '{{\"title\":\"A document that is measured\"}}', now(), now(), 4, '\\x00', 4, 1
from generate_series(1, {instances}) n;
insert into state_instance (tenant_id, instance_id, id, ordinal, name, entered_at, predecessors, caller, needed, exclude, priority)
select {TENANT}, {instance}, {state_instance}, 0, 'Submitted', now(), '{{}}', 'author', 1, '{{}}', 0 from generate_series(1, {instances}) n;
insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at, claimed_at)
select {TENANT}, {task}, {instance}, {state_instance}, 0, '', 'CLAIMED', 'reviewer', '[{{\"id\":\"reviewers\",\"type\":\"group\"}}]', now(), now()
from generate_series(1, {instances}) n;
vacuum analyze instance; vacuum analyze state_instance; vacuum analyze task;",
        instance = id(INSTANCE),
        state_instance = id(STATE),
        task = id(TASK),
    )
}

/// How many decisions one statement has. Those of a batch are of adjacent instances, which are always decided together, so all of
/// them have the same revision.
#[derive(Clone, Copy)]
struct Shape(u32);

/// The index of a decision in its statement, and of one of its entries, from 0, as SQL expressions.
struct Place<'a> {
    member: &'a str,
    entry: &'a str,
}

impl Place<'_> {
    /// The id of something that [`fill`] inserted.
    fn known(&self, kind: u8) -> String {
        id(kind, &format!(":n::bigint + {}", self.member))
    }

    /// The id of something that the decision inserts.
    fn made(&self, kind: u8) -> String {
        id(kind, &format!(":r::bigint + {}", self.member))
    }

    /// The columns with which each row begins: the member and the tenant.
    fn of(&self) -> Vec<String> {
        vec![format!("{} + 1", self.member), TENANT.to_owned()]
    }
}

impl Shape {
    /// An array with a value for each decision. A batch builds it in SQL, because `pgbench` has at most 255 variables in one
    /// statement.
    fn array(self, value: impl Fn(&Place<'_>) -> String) -> String {
        if self.0 == 1 {
            let (member, entry) = ("0", "0");
            return format!("array[{}]", value(&Place { member, entry }));
        }
        let (member, entry) = ("g", "0");
        let value = value(&Place { member, entry });
        let last = self.0 - 1;
        format!("array(select {value} from generate_series(0, {last}) g)")
    }

    /// The same value for each decision.
    fn same(self, value: &str) -> String {
        self.array(|_| value.to_owned())
    }

    /// A row for each decision.
    fn rows(self, kind: &str, columns: impl Fn(&Place<'_>) -> Vec<String>) -> String {
        self.array(|place| format!("row({})::{kind}", columns(place).join(", ")))
    }

    /// A row for each entry of each decision.
    fn entries(self, kind: &str, columns: impl Fn(&Place<'_>) -> Vec<String>) -> String {
        let row = |place: &Place<'_>| format!("row({})::{kind}", columns(place).join(", "));
        if self.0 == 1 {
            let entry = |number: u32| {
                let (member, entry) = ("0", &number.to_string());
                row(&Place { member, entry })
            };
            let rows: Vec<_> = (0..ENTRIES).map(entry).collect();
            return format!("array[{}]", rows.join(", "));
        }
        let (member, entry) = (&format!("g / {ENTRIES}"), &format!("g % {ENTRIES}"));
        let (row, last) = (row(&Place { member, entry }), self.0 * ENTRIES - 1);
        format!("array(select {row} from generate_series(0, {last}) g)")
    }
}

/// The script: `members` decisions a statement, on `instances` that [`fill`] made.
pub(crate) fn script(instances: u32, members: u32) -> String {
    let shape = Shape(members.max(1));
    let read = bind(
        LOAD,
        &[
            shape.same(TENANT),
            shape.array(|place| place.known(INSTANCE)),
            shape.same("'reviewer'"),
            shape.same("'{\"user\"}'"),
            shape.same("null"),
            shape.same("now()"),
            shape.same("null"),
            shape.same("null"),
            shape.same("null"),
        ],
    );
    // The script needs the revision, the last numbers of both streams and the number of state instances. The host reads them from the same result.
    let read = read.replacen("select\n", "select i.revision as revision, i.audit_seq as audit_seq, i.event_seq as event_seq, i.state_instances as state_instances,\n", 1);
    let values: Vec<_> = parameters(shape)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    let (read, commit) = (plain(&read), plain(&bind(&common(COMMIT), &values)));
    // Four ids are made of each number and of the next `members`, and an id has twelve hexadecimal digits for them.
    let number = "\\set r random(1, 15000000000000) * 4";
    if shape.0 == 1 {
        return format!("\\set n random(1, {instances})\n{number}\n{read} \\gset\n{commit};\n");
    }
    format!(
        "\\set n random(0, {}) * {members} + 1\n{number}\n{read} \\aset\n{commit};\n",
        instances / members - 1,
    )
}

/// `pgbench` reads a statement up to its end, and does not support comments in it.
fn plain(sql: &str) -> String {
    sql.lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .map(named)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Removes the type overrides of checked queries from column names, because `\gset` takes the names as variables.
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

/// Replaces `$1`, `$2` and so on by values.
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

/// The SQL expressions in a text, which are separated by bars.
fn constants(text: &str) -> impl Iterator<Item = String> {
    text.split(" | ").map(|value| value.trim().to_owned())
}

/// The parameters of the commit, in the statement's order: the type of each, and its array.
fn parameters(shape: Shape) -> Vec<(&'static str, String)> {
    let none = |kind| (kind, "'{}'".to_owned());
    let rows =
        |kind, columns: &dyn Fn(&Place<'_>) -> Vec<String>| (kind, shape.rows(kind, columns));
    vec![
        rows("commit_member", &member),
        none("commit_reply"),
        rows("commit_state", &entered),
        rows("commit_departure", &departed),
        rows("commit_task", &created),
        rows("commit_task", &changed),
        rows("commit_candidate", &offered),
        rows("commit_candidate", &withdrawn),
        rows("commit_decision", &decided),
        ("commit_entry", shape.entries("commit_entry", audited)),
    ]
}

const HASH: &str = "decode(repeat('ab', 32), 'hex')";

fn member(place: &Place<'_>) -> Vec<String> {
    let data = "'{\"title\":\"A document that is measured\"}'";
    let rest = format!(
        ":revision | :revision + 1 | 0 | 'RUNNING' | null | null | null | null | {data} | now() \
         | :audit_seq + {ENTRIES} | {HASH} | :event_seq + {ENTRIES} | :state_instances + 1 | null | null | null | null | 1 \
         | null | null | false | null | null | false | null"
    );
    let mut row = place.of();
    row.extend([place.known(INSTANCE), place.made(COMMAND)]);
    row.extend(constants(&rest));
    row
}

/// Columns without a value here are null.
const ENTERED: &[(&str, &str)] = &[
    ("ordinal", ":state_instances"),
    ("waiting", "false"),
    ("name", "'FinalReview'"),
    ("entered_at", "now()"),
    ("predecessors", "'{}'"),
    ("entered_trigger", "'APPROVE'"),
    ("caller", "'reviewer'"),
    ("needed", "1"),
    ("exclude", "'{}'"),
    ("priority", "0"),
    ("forks", "'{}'"),
    ("choices", "0"),
    ("blind", "false"),
];

fn entered(place: &Place<'_>) -> Vec<String> {
    let (id, instance) = (place.made(NEXT_STATE), place.known(INSTANCE));
    let own = [("id", &*id), ("instance_id", &*instance)];
    let of = place.of();
    let of = ["member", "tenant_id"]
        .into_iter()
        .zip(of.iter().map(|value| &**value));
    let values: BTreeMap<_, _> = of.chain(own).chain(ENTERED.iter().copied()).collect();
    let columns = columns("commit_state").into_iter();
    columns
        .map(|column| values.get(column).copied().unwrap_or("null").to_owned())
        .collect()
}

/// The columns of a composite type.
fn columns(kind: &str) -> Vec<&'static str> {
    let mut types = row_types().into_iter();
    let found = types.find_map(|(known, columns)| (known == kind).then_some(columns));
    found.expect("a row of the commit")
}

fn departed(place: &Place<'_>) -> Vec<String> {
    let mut row = place.of();
    row.extend([place.known(INSTANCE), place.known(STATE)]);
    row.extend(constants("now() | 'APPROVE' | 'reviewer'"));
    row
}

fn created(place: &Place<'_>) -> Vec<String> {
    let rest = "0 | '' | '[{\"id\":\"approvers\",\"type\":\"group\"}]' | now() | null | null | null | 'PENDING' | null | null | null \
                | null | null";
    task(place, place.made(NEXT_STATE), place.made(NEXT_TASK), rest)
}

fn changed(place: &Place<'_>) -> Vec<String> {
    let rest = "0 | '' | '[{\"id\":\"approvers\",\"type\":\"group\"}]' | now() | null | null | null | 'COMPLETED' | 'reviewer' \
                | now() | now() | null | null";
    task(place, place.known(STATE), place.known(TASK), rest)
}

/// A row of an unrestricted task: the columns in `rest` are its ordinal and those behind its id.
fn task(place: &Place<'_>, state: String, id: String, rest: &str) -> Vec<String> {
    let mut rest = constants(rest);
    let mut row = place.of();
    row.extend([place.known(INSTANCE), state]);
    row.extend(rest.next());
    row.extend(["false".to_owned(), id]);
    row.extend(rest);
    row
}

fn offered(place: &Place<'_>) -> Vec<String> {
    let mut row = place.of();
    row.push(place.made(NEXT_TASK));
    row.extend(constants("'group' | 'approvers'"));
    row
}

fn withdrawn(place: &Place<'_>) -> Vec<String> {
    let mut row = place.of();
    row.push(place.known(TASK));
    row.extend(constants("null | null"));
    row
}

/// Each run decides the same task again, so the decision is stored under the id of the new task, which is used once.
fn decided(place: &Place<'_>) -> Vec<String> {
    let rest =
        format!("'key' | 1 | {HASH} | 'APPROVE' | 'reviewer' | null | 'measured' | '{{}}' | now()");
    let mut row = place.of();
    row.extend([place.known(INSTANCE), place.made(NEXT_TASK)]);
    row.extend(constants(&rest));
    row
}

/// The entries of each decision, the first with the evidence.
fn audited(place: &Place<'_>) -> Vec<String> {
    let entry = place.entry;
    let number = format!(
        "({}::bigint) * {ENTRIES} + {entry}",
        format_args!(":r + {}", place.member)
    );
    let kinds = "'{DECISION_RECORDED,STATE_TRANSITIONED,STATE_ENTERED,TASK_CREATED}'::text[]";
    let mut row = place.of();
    row.extend([
        place.known(INSTANCE),
        format!(":audit_seq + {entry} + 1"),
        id(ENTRY, &number),
        format!("({kinds})[{entry} + 1]"),
        ":revision + 1".to_owned(),
        place.made(COMMAND),
        "'reviewer'".to_owned(),
        place.known(TASK),
        format!("'{{\"p\":\"' || repeat('x', {PAYLOAD_BYTES}) || '\"}}'"),
        format!("case when {entry} = 0 then repeat('e', {EVIDENCE_BYTES}) end"),
        "decode(repeat('cd', 16), 'hex')".to_owned(),
        "now()".to_owned(),
        HASH.to_owned(),
        format!(":event_seq + {entry} + 1"),
        "'00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'".to_owned(),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the host's statement gets another parameter or column, the script must have a value for it. Otherwise values would go
    /// to the wrong parameters.
    #[test]
    fn every_parameter_and_every_column_has_a_value() {
        let statement = common(COMMIT);
        let numbers = statement.split('$').skip(1).filter_map(|rest| {
            let (number, rest) = rest.split_once("::")?;
            Some((number.parse::<usize>().ok()?, rest.split_once("[]")?.0))
        });
        for (number, kind) in numbers {
            assert_eq!(parameters(Shape(1))[number - 1].0, kind, "${number}");
        }
        let place = Place {
            member: "0",
            entry: "0",
        };
        let rows = [
            ("commit_member", member(&place)),
            ("commit_state", entered(&place)),
            ("commit_departure", departed(&place)),
            ("commit_task", created(&place)),
            ("commit_task", changed(&place)),
            ("commit_candidate", offered(&place)),
            ("commit_candidate", withdrawn(&place)),
            ("commit_decision", decided(&place)),
            ("commit_entry", audited(&place)),
        ];
        for (kind, row) in rows {
            assert_eq!(row.len(), columns(kind).len(), "{kind}");
        }
        let columns = columns("commit_state");
        for (column, _) in ENTERED {
            assert!(columns.contains(column), "{column}");
        }
        for members in [1, 32] {
            let script = script(1000, members);
            assert!(!script.contains('$'), "{script}");
        }
    }
}
