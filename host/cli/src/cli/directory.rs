//! `wrkflw person`, `group` and `role`: people, groups with their members, and the permissions of roles.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Environment;
use super::client::{DryRunArgs, segment};
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::failure::quoted;
use super::output::{Column, Format, Output};

#[derive(Debug, Subcommand)]
pub(super) enum PersonCommand {
    /// List people by id
    List {
        #[command(flatten)]
        args: ListArgs,
        /// Only the members of this group
        #[arg(long, conflicts_with = "q")]
        group: Option<String>,
    },
    /// Show a person with their groups
    Show(DirectoryRefArgs),
    /// Find what people and groups are called, by their ids
    Names {
        /// Ids of people
        people: Vec<String>,
        /// Id of a group; may be repeated
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Add a person, or rename them
    Set(NamedArgs),
    /// Set a person's manager, or remove them
    Manager {
        #[command(flatten)]
        target: DirectoryRefArgs,
        /// Id of the manager
        #[arg(required_unless_present = "none")]
        manager: Option<String>,
        /// The person has no manager any more
        #[arg(long, conflicts_with = "manager")]
        none: bool,
        #[command(flatten)]
        dry: DryRunArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum GroupCommand {
    /// List groups by id
    List(ListArgs),
    /// Show a group with its first members
    Show(DirectoryRefArgs),
    /// Add a group, or rename it
    Set(NamedArgs),
    /// Make a person a member
    Add(MemberArgs),
    /// End a person's membership
    Remove(MemberArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum RoleCommand {
    /// List all roles with what they permit
    List {
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Show what a role permits
    Show(DirectoryRefArgs),
    /// Set all that a role permits. Without a permission, there is no such role any more
    Set {
        #[command(flatten)]
        target: DirectoryRefArgs,
        /// A permission, such as task:act
        permissions: Vec<String>,
        #[command(flatten)]
        dry: DryRunArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only those whose id or name begins so
    #[arg(value_name = "BEGINNING")]
    q: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct DirectoryRefArgs {
    /// Its id
    id: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct NamedArgs {
    #[command(flatten)]
    target: DirectoryRefArgs,
    /// The name that people see
    #[arg(long)]
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct MemberArgs {
    #[command(flatten)]
    target: DirectoryRefArgs,
    /// Id of the person
    person: String,
    #[command(flatten)]
    dry: DryRunArgs,
}

const NAMED: &[Column] = &[("ID", "/id"), ("NAME", "/name")];
const PERSON: &[Column] = &[
    ("id", "/id"),
    ("name", "/name"),
    ("groups", "/groups"),
    ("manager", "/manager"),
];
const NAMES: &[Column] = &[("KIND", "/kind"), ("ID", "/id"), ("NAME", "/name")];
const GROUP: &[Column] = &[("id", "/id"), ("name", "/name"), ("members", "/members")];
const ROLES: &[Column] = &[("ROLE", "/id"), ("PERMISSIONS", "/permissions")];
const ROLE: &[Column] = &[("role", "/id"), ("permissions", "/permissions")];
const ORPHANS: &[Column] = &[
    ("TASK", "/taskId"),
    ("INSTANCE", "/instanceId"),
    ("DEFINITION", "/definitionKey"),
    ("STATE", "/state"),
    ("LABEL", "/label"),
    ("WHY", "/why"),
];

/// Shows names, a line for each. Leaves out ids that the directory does not know.
fn names(found: &Value, output: Output) -> Result<()> {
    if output.format == Format::Json {
        return output.record(found, &[]);
    }
    let mut lines = Vec::new();
    for (kind, of) in [("person", "people"), ("group", "groups")] {
        let of_kind = found[of].as_object().into_iter().flatten();
        lines.extend(of_kind.map(|(id, name)| json!({ "kind": kind, "id": id, "name": name })));
    }
    output.list(&json!({ "data": lines }), NAMES)
}

pub(super) fn person(
    command: PersonCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        PersonCommand::List { args, group } => args.list("people", group, output, environment),
        PersonCommand::Show(target) => target.show("people", PERSON, output, environment),
        PersonCommand::Names {
            people,
            groups,
            connection,
        } => {
            let client = connection.open(environment)?;
            let body = json!({ "people": people, "groups": groups });
            names(&client.post("/v1/names", &body)?, output)
        }
        PersonCommand::Set(args) => args.set("people", PERSON, output, environment),
        PersonCommand::Manager {
            target,
            manager,
            none: _,
            dry,
        } => {
            let client = target.connection.open(environment)?;
            let path = format!("{}/manager", target.path("people"));
            let answer = match manager {
                Some(manager) => client.put(&path, &dry.query(), &json!({ "manager": manager })),
                None => client.delete(&path, &dry.query()),
            };
            show_changed(&answer?, PERSON, output)
        }
    }
}

pub(super) fn group(
    command: GroupCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        GroupCommand::List(args) => args.list("groups", None, output, environment),
        GroupCommand::Show(target) => {
            let client = target.connection.open(environment)?;
            let group = client.get(&target.path("groups"), &[])?;
            output.record(&group, GROUP)?;
            if group["more"] == true {
                let of = quoted(&target.id);
                output.hint(&format!(
                    "next: `wrkflw person list --group {of}` lists all members"
                ));
            }
            Ok(())
        }
        GroupCommand::Set(args) => args.set("groups", GROUP, output, environment),
        GroupCommand::Add(args) => {
            let client = args.target.connection.open(environment)?;
            let answer = client.put(&args.path(), &args.dry.query(), &json!({}))?;
            show_changed(&answer, GROUP, output)
        }
        GroupCommand::Remove(args) => {
            let client = args.target.connection.open(environment)?;
            let answer = client.delete(&args.path(), &args.dry.query())?;
            show_changed(&answer, GROUP, output)
        }
    }
}

pub(super) fn role(command: RoleCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        RoleCommand::List { connection } => {
            let client = connection.open(environment)?;
            output.list(&client.get("/v1/roles", &[])?, ROLES)
        }
        RoleCommand::Show(target) => target.show("roles", ROLE, output, environment),
        RoleCommand::Set {
            target,
            permissions,
            dry,
        } => {
            let client = target.connection.open(environment)?;
            let body = json!({ "permissions": permissions });
            let answer = client.put(&target.path("roles"), &dry.query(), &body)?;
            if output.format == Format::Table && answer["dryRun"] == true {
                return output.compare(Some(&answer["before"]), &answer["role"], ROLE);
            }
            show_changed(&answer, ROLE, output)
        }
    }
}

impl ListArgs {
    fn list(
        &self,
        what: &str,
        group: Option<String>,
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let client = self.connection.open(environment)?;
        let query: Vec<_> = [("q", self.q.clone()), ("group", group)]
            .into_iter()
            .chain(self.page.query())
            .collect();
        output.list(&client.get(&format!("/v1/{what}"), &query)?, NAMED)
    }
}

impl DirectoryRefArgs {
    fn path(&self, what: &str) -> String {
        format!("/v1/{what}/{}", segment(&self.id))
    }

    fn show(
        &self,
        what: &str,
        fields: &[Column],
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let client = self.connection.open(environment)?;
        output.record(&client.get(&self.path(what), &[])?, fields)
    }
}

impl NamedArgs {
    fn set(
        &self,
        what: &str,
        fields: &[Column],
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let client = self.target.connection.open(environment)?;
        let body = json!({ "name": self.name });
        show_changed(
            &client.put(&self.target.path(what), &[], &body)?,
            fields,
            output,
        )
    }
}

impl MemberArgs {
    fn path(&self) -> String {
        let person = segment(&self.person);
        format!("{}/members/{person}", self.target.path("groups"))
    }
}

/// Shows a changed object or, for a dry run, the tasks that nobody could do after the change.
pub(super) fn show_changed(answer: &Value, fields: &[Column], output: Output) -> Result<()> {
    if output.format == Format::Json {
        return output.record(answer, fields);
    }
    if answer["dryRun"] != true {
        let parts = ["person", "group", "absence", "role"];
        let changed = parts.iter().find_map(|part| answer.get(part));
        return output.record(changed.unwrap_or(answer), fields);
    }
    let orphans = answer["orphans"].as_array().map_or(0, Vec::len);
    output.record(
        &json!({ "dryRun": true, "orphans": orphans, "more": answer["more"] }),
        &[
            ("tasks that nobody could do", "/orphans"),
            ("there may be more", "/more"),
        ],
    )?;
    if orphans == 0 {
        return Ok(());
    }
    output.list(&json!({ "data": answer["orphans"] }), ORPHANS)
}
