//! The changes of people, groups and roles. Each is one operation of the API. Operations that may leave work to nobody have a
//! dry run, and the form shows its result before the confirmation.

use serde::Deserialize;
use serde_json::json;

use wrkflw_engine::PERMISSIONS;

use super::Subject;
use super::change::{Change, Permitted, of_person};
use crate::api::{Trouble, segment};
use crate::fields::Field;
use crate::form::{self, Form, Person};
use crate::language::Words;
use crate::list::Link;
use crate::posted::Fields;
use crate::session::{Halt, Visitor};

const DIRECTORY: &str = "directory:write";
const ROLE: &str = "role:write";
/// Groups that a form proposes; the API refuses an id that no group has.
const GROUPS: &str = "/v1/groups?limit=100";

/// A change that a page offers.
pub(super) struct Action {
    pub(super) name: &'static str,
    /// The second object of the action, besides the subject: a group, a member or an absence. Empty for most.
    of: String,
    permission: &'static str,
    /// Whether the API has a dry run of the action.
    is_tried: bool,
}

#[derive(Deserialize)]
struct CurrentName {
    name: String,
}

#[derive(Deserialize)]
struct Groups {
    data: Vec<Person>,
}

impl Action {
    /// The action of this name, if the page has it.
    pub(super) fn find(subject: &Subject, name: &str, of: &str) -> Option<Action> {
        let (permission, names): (_, &[(&str, bool)]) = match subject {
            Subject::People => (DIRECTORY, &[("add-person", false)]),
            Subject::Groups => (DIRECTORY, &[("add-group", false)]),
            Subject::Roles => (ROLE, &[("add-role", true)]),
            Subject::Person(_) => (
                DIRECTORY,
                &[
                    ("rename", false),
                    ("manager", true),
                    ("no-manager", true),
                    ("join", true),
                    ("leave", true),
                    ("absent", true),
                    ("return", true),
                ],
            ),
            Subject::Group(_) => (
                DIRECTORY,
                &[
                    ("rename", false),
                    ("add-member", true),
                    ("remove-member", true),
                ],
            ),
            Subject::Role(_) => (ROLE, &[("permit", true), ("remove-role", true)]),
        };
        let found = names.iter().find(|(one, _)| *one == name);
        let (name, is_tried) = *found?;
        Some(Action {
            name,
            of: of.to_owned(),
            permission,
            is_tried,
        })
    }

    pub(super) fn change(&self, subject: &Subject, filled: &Fields) -> Change {
        let text = |name: &str| filled.get(name).trim();
        let named = |path: &str, id: &str| {
            let body = json!({ "name": text("name") });
            Change::put(format!("/v1/{path}/{}", segment(id)), Some(body))
        };
        let member = |group: &str, person: &str| {
            format!("/v1/groups/{}/members/{}", segment(group), segment(person))
        };
        let role = |id: &str, permissions: Vec<&str>| {
            let body = json!({ "permissions": permissions });
            Change::put(format!("/v1/roles/{}", segment(id)), Some(body))
        };
        match (subject, self.name) {
            (Subject::People, _) => named("people", text("id")),
            (Subject::Groups, _) => named("groups", text("id")),
            (Subject::Roles, _) => role(text("id"), permissions(filled)),
            (Subject::Role(id), "permit") => role(id, permissions(filled)),
            (Subject::Role(id), _) => role(id, Vec::new()),
            (Subject::Group(id), "rename") => named("groups", id),
            (Subject::Group(id), "add-member") => Change::put(member(id, text("person")), None),
            (Subject::Group(id), _) => Change::delete(member(id, &self.of)),
            (Subject::Person(id), "rename") => named("people", id),
            (Subject::Person(id), "join") => Change::put(member(text("group"), id), None),
            (Subject::Person(id), "leave") => Change::delete(member(&self.of, id)),
            (Subject::Person(id), action) => of_person(id, action, &self.of, filled),
        }
    }

    /// The form with the values filled in so far.
    pub(super) async fn form(&self, visitor: &Visitor, subject: &Subject, filled: &Fields) -> Form {
        let w = visitor.w;
        let fields = self.fields(w, filled);
        let has = |name: &str| fields.iter().any(|field| field.name == name);
        let people = if has("group") {
            let groups = visitor.api.get::<Groups>(GROUPS).await;
            groups.map_or_else(|_| Vec::new(), |groups| groups.data)
        } else if fields.iter().any(|field| field.kind == "person") {
            form::people(visitor).await
        } else {
            Vec::new()
        };
        let page = subject.address();
        Form {
            hidden: vec![("do", self.name.to_owned()), ("of", self.of.clone())],
            fields,
            people,
            ..Form::new(
                w.t(&format!("people-do-{}", self.name)).into_owned(),
                format!("{page}#act"),
                page,
            )
            .with_key_of(filled)
        }
    }

    fn fields(&self, w: Words, filled: &Fields) -> Vec<Field> {
        let field = |name: &str, kind: &'static str| {
            Field::named(
                name,
                w.t(&format!("people-field-{name}")).into_owned(),
                kind,
                filled,
            )
        };
        match self.name {
            "add-person" | "add-group" => vec![field("id", "text"), field("name", "text")],
            "rename" => vec![field("name", "text")],
            "manager" => vec![field("manager", "person")],
            "join" => vec![field("group", "person")],
            "add-member" => vec![field("person", "person")],
            "absent" => vec![
                field("substitute", "person"),
                field("from", "datetime-local"),
                field("until", "datetime-local"),
                Field {
                    required: false,
                    ..field("definitionKey", "text")
                },
            ],
            "add-role" => {
                let mut fields = vec![field("id", "text")];
                fields.extend(permission_fields(w, filled));
                fields
            }
            "permit" => permission_fields(w, filled),
            _ => Vec::new(),
        }
    }

    /// The form that the address asks for. If it has no fields to fill in, it shows the effects at once. None if the visitor
    /// lacks the permission.
    pub(super) async fn chosen_form(
        &self,
        visitor: &Visitor,
        subject: &Subject,
    ) -> Result<Option<Form>, Halt> {
        if !visitor.may(self.permission).await? {
            return Ok(None);
        }
        let filled = self.present(visitor, subject).await?;
        let mut form = self.form(visitor, subject, &filled).await;
        if form.fields.is_empty() {
            let change = self.change(subject, &filled);
            match self.effects(visitor, subject, &change, &filled).await {
                Ok(effects) => form.show(effects, &change.content()),
                Err(trouble) => {
                    let names = crate::names::Names::default();
                    form.refuse(&trouble, names, visitor).await;
                }
            }
        }
        Ok(Some(form))
    }

    /// The current values, which the form begins with.
    async fn present(&self, visitor: &Visitor, subject: &Subject) -> Result<Fields, Halt> {
        let of = |list: &str, id: &str| format!("/v1/{list}/{}", segment(id));
        let pairs = match (subject, self.name) {
            (Subject::Person(id), "rename") => name_at(visitor, &of("people", id)).await?,
            (Subject::Group(id), "rename") => name_at(visitor, &of("groups", id)).await?,
            (Subject::Role(id), "permit") => {
                let role = visitor.get::<Permitted>(&of("roles", id)).await?;
                let pair = |one: String| {
                    let known = PERMISSIONS.contains(&one.as_str());
                    let field = if known { "permissions" } else { "others" };
                    (field.to_owned(), one)
                };
                role.permissions.into_iter().map(pair).collect()
            }
            _ => Vec::new(),
        };
        Ok(Fields(pairs))
    }

    /// The effects of the change.
    pub(super) async fn effects(
        &self,
        visitor: &Visitor,
        subject: &Subject,
        change: &Change,
        filled: &Fields,
    ) -> Result<Vec<Link>, Trouble> {
        let w = visitor.w;
        let mut effects = vec![line(w.t(&format!("people-effect-{}", self.name)))];
        let list = match subject {
            Subject::People => "people",
            Subject::Groups => "groups",
            _ => "",
        };
        if !list.is_empty() {
            let path = format!("/v1/{list}/{}", segment(filled.get("id").trim()));
            if let Ok(CurrentName { name }) = visitor.api.get(&path).await {
                effects = vec![line(w.with("people-effect-known", "name", &name))];
            }
        }
        if !self.is_tried {
            return Ok(effects);
        }
        let dry_run = change.dry_run(visitor).await?;
        if let Some((before, after)) = dry_run.before.zip(dry_run.role) {
            effects.extend(differences(w, &before.permissions, &after.permissions));
            return Ok(effects);
        }
        let count = dry_run.orphans.len();
        effects.push(line(w.n("people-orphans", count)));
        effects.extend(dry_run.orphans.into_iter().map(|one| {
            let what = format!("{} · {} · {}", one.definition_key, one.state, one.label);
            let variables = [("what", what.as_str()), ("why", &one.why)];
            let address = format!("/console/instances/{}/who", one.instance_id);
            Link::to(address, w.say("people-orphan", &variables))
        }));
        if dry_run.more {
            effects.push(line(w.t("people-orphans-more")));
        }
        Ok(effects)
    }

    /// The page after the change.
    pub(super) fn after(&self, subject: &Subject, filled: &Fields) -> Subject {
        let id = filled.get("id").trim().to_owned();
        match (subject, self.name) {
            (Subject::People, _) => Subject::Person(id),
            (Subject::Groups, _) => Subject::Group(id),
            (Subject::Roles, _) => Subject::Role(id),
            (Subject::Person(id), _) => Subject::Person(id.clone()),
            (Subject::Group(id), _) => Subject::Group(id.clone()),
            (Subject::Role(_), "remove-role") => Subject::Roles,
            (Subject::Role(id), _) => Subject::Role(id.clone()),
        }
    }
}

fn line(text: impl Into<String>) -> Link {
    Link::to(String::new(), text)
}

async fn name_at(visitor: &Visitor, path: &str) -> Result<Vec<(String, String)>, Halt> {
    let current = visitor.get::<CurrentName>(path).await?;
    Ok(vec![("name".to_owned(), current.name)])
}

/// A check box for each permission of the host, and a text field for permissions that flows define.
fn permission_fields(w: Words, filled: &Fields) -> Vec<Field> {
    let field = |name: &str, kind: &'static str| Field {
        required: false,
        pointer: "/permissions".to_owned(),
        ..Field::named(
            name,
            w.t(&format!("people-field-{name}")).into_owned(),
            kind,
            filled,
        )
    };
    vec![
        Field {
            choices: PERMISSIONS.iter().map(|one| (*one).to_owned()).collect(),
            ..field("permissions", "several")
        },
        Field {
            help: w.t("people-field-others-help").into_owned(),
            ..field("others", "long")
        },
    ]
}

fn permissions(filled: &Fields) -> Vec<&str> {
    let others = filled.get("others").split_whitespace();
    filled.all("permissions").chain(others).collect()
}

/// The permissions that a role gains and loses.
fn differences(w: Words, before: &[String], after: &[String]) -> Vec<Link> {
    let only = |these: &[String], those: &[String]| {
        let only = these.iter().filter(|one| !those.contains(one));
        only.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let (gained, lost) = (only(after, before), only(before, after));
    let mut effects = Vec::new();
    if !gained.is_empty() {
        effects.push(line(w.with("people-role-gains", "permissions", &gained)));
    }
    if !lost.is_empty() {
        effects.push(line(w.with("people-role-loses", "permissions", &lost)));
    }
    if effects.is_empty() {
        effects.push(line(w.t("what-nothing")));
    }
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_own_actions_alone() {
        let person = Subject::Person("ann".to_owned());
        assert!(Action::find(&person, "manager", "").is_some());
        for other in ["", "permit", "add-member", "add-person"] {
            assert!(Action::find(&person, other, "").is_none(), "{other}");
        }
    }

    #[test]
    fn a_role_permits_what_is_chosen_and_what_is_written() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let filled = Fields(vec![
            pair("permissions", "task:act"),
            pair("permissions", "task:read"),
            pair("others", "plan:sign\nplan:see "),
        ]);
        let expected = ["task:act", "task:read", "plan:sign", "plan:see"];
        assert_eq!(permissions(&filled), expected);
    }

    #[test]
    fn ids_do_not_leave_their_place_in_a_path() {
        let person = Subject::Person("a/../b?x".to_owned());
        let action = Action::find(&person, "leave", "g/1").expect("an action");
        let change = action.change(&person, &Fields::default());
        let expected = "/v1/groups/g%2F1/members/a%2F..%2Fb%3Fx";
        assert_eq!(change.path, expected);
    }
}
