//! A decision's read and commit as a `pgbench` script: the host's own statements, with values in place of parameters, one
//! decision at a time or a batch of them.
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
/// Entries of one decision.
const ENTRIES: u32 = 4;

/// An id made from a number, an SQL expression; `kind` tells apart what the ids are of.
fn id(kind: u8, number: &str) -> String {
    format!("('00000000-0000-7000-8{kind:03}-' || lpad(to_hex(({number})::bigint), 12, '0'))::uuid")
}

const INSTANCE: u8 = 0;
const STAY: u8 = 1;
const TASK: u8 = 2;
const COMMAND: u8 = 3;
const NEXT_STAY: u8 = 4;
const NEXT_TASK: u8 = 5;
const ENTRY: u8 = 6;

/// Instances in their first review, claimed.
pub(crate) fn fill(instances: u32) -> String {
    let id = |kind| id(kind, "n");
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

/// How many decisions one statement carries. Those of a batch are of instances next to each other, which are always
/// decided together: what one of them has for a revision all have.
#[derive(Clone, Copy)]
struct Shape(u32);

/// What differs from member to member of a batch. Each has its name in the script.
#[derive(Clone, Copy)]
enum Made {
    Instance,
    Stay,
    Task,
    Command,
    Member,
    NextStay,
    NextTask,
    EntryMember,
    EntryTask,
    EntryId,
    EntrySeq,
    EntryEvent,
    EntryCommand,
}

impl Made {
    const ALL: [(Made, &str); 13] = [
        (Made::Instance, "instances"),
        (Made::Stay, "stays"),
        (Made::Task, "tasks"),
        (Made::Command, "commands"),
        (Made::Member, "members"),
        (Made::NextStay, "next_stays"),
        (Made::NextTask, "next_tasks"),
        (Made::EntryMember, "entry_members"),
        (Made::EntryTask, "entry_tasks"),
        (Made::EntryId, "entry_ids"),
        (Made::EntrySeq, "entry_seqs"),
        (Made::EntryEvent, "entry_events"),
        (Made::EntryCommand, "entry_commands"),
    ];

    fn name(self) -> &'static str {
        let (_, name) = Made::ALL[self as usize];
        name
    }

    /// There is one for each entry, not for each member.
    fn is_of_entries(self) -> bool {
        self as usize >= Made::EntryMember as usize
    }

    /// Its value for a member and its entry, both SQL expressions.
    fn value(self, member: &str, entry: &str) -> String {
        let (old, new) = (
            format!(":n::bigint + {member}"),
            format!(":r::bigint + {member}"),
        );
        match self {
            Made::Instance => id(INSTANCE, &old),
            Made::Stay => id(STAY, &old),
            Made::Task | Made::EntryTask => id(TASK, &old),
            Made::Command | Made::EntryCommand => id(COMMAND, &new),
            Made::Member | Made::EntryMember => format!("{member} + 1"),
            Made::NextStay => id(NEXT_STAY, &new),
            Made::NextTask => id(NEXT_TASK, &new),
            Made::EntryId => id(ENTRY, &format!("({new}) * {ENTRIES} + {entry}")),
            Made::EntrySeq => format!(":audit_seq + {entry} + 1"),
            Made::EntryEvent => format!(":event_seq + {entry} + 1"),
        }
    }
}

impl Shape {
    /// The same value for all members.
    fn same(self, value: &str) -> String {
        // A variable stands once, however many members there are: `pgbench` knows 255 of them in a statement.
        if value.starts_with(':') && self.0 > 1 {
            return format!("array_fill(({value})::int, array[{}])", self.0);
        }
        let values = vec![value; usize::try_from(self.0).expect("few members")];
        format!("array[{}]", values.join(", "))
    }

    /// A value for each entry of a member, the same for all members.
    fn entries(self, values: [&str; ENTRIES as usize]) -> String {
        let values = vec![values.join(", "); usize::try_from(self.0).expect("few members")];
        format!("array[{}]", values.join(", "))
    }

    /// What is made, one after the other: in a batch from the part of the statement that made it once.
    fn made(self, made: Made) -> String {
        if self.0 > 1 {
            return format!("(select {} from made)", made.name());
        }
        let entries = if made.is_of_entries() { ENTRIES } else { 1 };
        let values: Vec<_> = (0..entries)
            .map(|entry| made.value("0", &entry.to_string()))
            .collect();
        format!("array[{}]", values.join(", "))
    }

    /// The part of a batch that makes it.
    fn making(self, made: &[Made]) -> String {
        let array = |made: &Made| {
            let (last, value) = if made.is_of_entries() {
                let value = made.value(&format!("g / {ENTRIES}"), &format!("g % {ENTRIES}"));
                (self.0 * ENTRIES - 1, value)
            } else {
                (self.0 - 1, made.value("g", "0"))
            };
            let name = made.name();
            format!("array(select {value} from generate_series(0, {last}) g) as {name}")
        };
        let arrays: Vec<_> = made.iter().map(array).collect();
        format!(
            "with made as materialized (select {})",
            arrays.join(",\n    ")
        )
    }

    /// One row of each member: its values, in the order of the columns.
    fn row(self, values: &[Value<'_>]) -> Vec<String> {
        values
            .iter()
            .map(|value| match value {
                Value::Made(made) => self.made(*made),
                Value::Same(value) => self.same(value),
            })
            .collect()
    }
}

/// One column of a row.
enum Value<'a> {
    Made(Made),
    Same(&'a str),
}

/// The columns that all members have the same values in, parted by bars.
fn same(values: &str) -> Vec<Value<'_>> {
    let parts = values.split(" | ");
    parts.map(|value| Value::Same(value.trim())).collect()
}

/// Columns that differ, and after them those that do not.
fn columns<'a>(made: &[Made], values: &'a str) -> Vec<Value<'a>> {
    let made = made.iter().map(|made| Value::Made(*made));
    made.chain(same(values)).collect()
}

/// The script: `members` decisions a statement, on `instances` that [`fill`] made.
pub(crate) fn script(instances: u32, members: u32) -> String {
    let shape = Shape(members.max(1));
    let read = bind(
        LOAD,
        &[
            shape.same(TENANT),
            shape.made(Made::Instance),
            shape.same("'reviewer'"),
            shape.same("'{\"user\"}'"),
            shape.same("null"),
            shape.same("now()"),
            shape.same("null"),
            shape.same("null"),
        ],
    );
    // The script needs the revision and the end of the stream, which the host finds in the same answer.
    let read = read.replacen("select\n", "select i.revision as revision, i.audit_seq as audit_seq, i.event_seq as event_seq, i.stays as stays,\n", 1);
    let (read, commit) = (plain(&read), plain(&bind(COMMIT, &parameters(shape))));
    let number = "\\set r random(1, 20000000000000) * 4";
    if shape.0 == 1 {
        return format!("\\set n random(1, {instances})\n{number}\n{read} \\gset\n{commit};\n");
    }
    let made: Vec<Made> = Made::ALL.iter().map(|(made, _)| *made).collect();
    let commit = commit.replacen("with ", &format!("{},\n", shape.making(&made)), 1);
    format!(
        "\\set n random(0, {}) * {members} + 1\n{number}\n{}\n{read} \\aset\n{commit};\n",
        instances / members - 1,
        shape.making(&[Made::Instance]),
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

/// The values of a decision, in the order of the statement's parameters.
fn parameters(shape: Shape) -> Vec<String> {
    let hash = "decode(repeat('ab', 32), 'hex')";
    let data = "'{\"title\":\"A document that is measured\"}'";
    let candidates = "'[{\"id\":\"approvers\",\"type\":\"group\"}]'";
    let mut member = same(TENANT);
    let facts = format!(
        ":revision | :revision + 1 | 0 | 'RUNNING' | null | null | null | null | {data} | now() \
         | :audit_seq + 4 | {hash} | :event_seq + 4 | :stays + 1 | null | null | null | null | 1"
    );
    member.extend(columns(&[Made::Instance, Made::Command], &facts));
    let entered = "'FinalReview' | now() | null | '{}' | 'APPROVE' | 'reviewer' | 1 | '{}' | null | 0 \
         | '{}' | 0 | false | null | null | false | null | null | null | null | null";
    let entered = format!(":stays | {entered}");
    let entered = columns(&[Made::Member, Made::NextStay], &entered);
    let departed = columns(
        &[Made::Member, Made::Stay],
        "now() | 'APPROVE' | 'reviewer'",
    );
    let created = format!(
        "0 | '' | 'PENDING' | null | {candidates} | null | now() | null | null | null | null | null"
    );
    let created = columns(&[Made::Member, Made::NextTask, Made::NextStay], &created);
    let changed = format!(
        "'COMPLETED' | 'reviewer' | {candidates} | now() | now() | null | null | null | null"
    );
    let changed = columns(&[Made::Member, Made::Task], &changed);
    let offered = columns(&[Made::Member, Made::NextTask], "'group' | 'approvers'");
    let withdrawn = [Value::Made(Made::Member), Value::Made(Made::Task)];
    // Each run decides anew: the decision is filed under the new task's id, which no run uses twice.
    let decided =
        format!("'APPROVE' | 'reviewer' | null | 'measured' | '{{}}' | now() | 'key' | 1 | {hash}");
    let decided = columns(&[Made::Member, Made::NextTask], &decided);
    let none = "'{}'".to_owned();
    let (no_reply_and_no_start, nothing_restayed) = (9 + 10, 23);
    let (no_attributes, no_jobs_and_no_signal) = (9 + 2, 6 + 2 + 3);
    let mut values = shape.row(&member);
    values.extend(std::iter::repeat_n(none.clone(), no_reply_and_no_start));
    for rows in [&entered, &departed] {
        values.extend(shape.row(rows));
    }
    values.extend(std::iter::repeat_n(none.clone(), nothing_restayed));
    for rows in [&created[..], &changed, &offered, &withdrawn, &decided] {
        values.extend(shape.row(rows));
    }
    values.extend(std::iter::repeat_n(none.clone(), no_attributes));
    values.extend(audited(shape));
    values.extend(std::iter::repeat_n(none.clone(), no_jobs_and_no_signal));
    // Why the new task was cancelled: it was not.
    values.push(shape.same("null"));
    values.push(shape.made(Made::EntryCommand));
    // Nothing was remembered: the script reads. All candidates of the decided task go.
    values.extend([shape.same("null"), shape.same("null")]);
    // What signals say, and by which entry.
    values.extend([none.clone(), none]);
    values.push(shape.same("null"));
    // No job is finished.
    values.push("'{}'".to_owned());
    values
}

/// The entries of each member, the first with the evidence.
fn audited(shape: Shape) -> Vec<String> {
    let constant = |value: &str| shape.entries([value; ENTRIES as usize]);
    let revision = match shape.0 {
        1 => constant(":revision + 1"),
        members => format!(
            "array_fill((:revision + 1)::int, array[{}])",
            members * ENTRIES
        ),
    };
    let evidence = format!("repeat('e', {EVIDENCE_BYTES})");
    vec![
        shape.made(Made::EntryMember),
        shape.made(Made::EntrySeq),
        shape.made(Made::EntryId),
        shape.entries([
            "'DECISION_RECORDED'",
            "'STATE_TRANSITIONED'",
            "'STATE_ENTERED'",
            "'TASK_CREATED'",
        ]),
        revision,
        constant("'reviewer'"),
        shape.made(Made::EntryTask),
        constant(&format!(
            "'{{\"p\":\"' || repeat('x', {PAYLOAD_BYTES}) || '\"}}'"
        )),
        shape.entries([&evidence, "null", "null", "null"]),
        constant("decode(repeat('cd', 16), 'hex')"),
        constant("now()"),
        constant("decode(repeat('ab', 32), 'hex')"),
        shape.made(Made::EntryEvent),
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
        for members in [1, 32] {
            assert_eq!(highest(COMMIT), Some(parameters(Shape(members)).len()));
            let script = script(1000, members);
            assert!(!script.contains('$'), "{script}");
        }
    }
}
