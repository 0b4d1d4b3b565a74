//! Folds a tenant's directory from its stream: people, groups, memberships, managers, absences, calendars, permissions of roles.
//!
//! A directory may be too large for the memory, so it is folded in shares. A share has the rows of some of the names. The stream
//! and the tables are read once for each share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Problem;
use super::rows::{Expected, ExpectedRow, Table, time, time_or_null};
use crate::record::rows::{Columns, DirectoryTable};
use wrkflw_core::audit::Entry;
use wrkflw_core::ids::TenantId;
use wrkflw_core::json::Json;

/// The approximate number of entries for one share.
const SHARE_ENTRIES: u64 = 100_000;

/// A share of the names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    number: u64,
    of: u64,
}

impl Share {
    /// All names.
    pub(super) const WHOLE: Share = Share { number: 0, of: 1 };

    /// The shares of a stream with this number of entries.
    pub(super) fn all(entries: u64) -> impl Iterator<Item = Share> {
        let of = entries / SHARE_ENTRIES + 1;
        (0..of).map(move |number| Share { number, of })
    }

    /// Whether the name is in this share: its FNV-1a hash decides.
    fn has(self, name: &str) -> bool {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        self.of == 1 || hash % self.of == self.number
    }
}

static ABSENCE: Table = Table {
    name: "absence",
    code: "absence",
    key: &["id"],
    hidden: &[],
};
static CALENDAR: Table = Table {
    name: "calendar",
    code: "calendar",
    key: &["name"],
    hidden: &["settings"],
};
static GROUP: Table = Table {
    name: "group",
    code: "group",
    key: &["id"],
    hidden: &[],
};
static MANAGER: Table = Table {
    name: "manager",
    code: "manager",
    key: &["person_id", "valid_from"],
    hidden: &[],
};
static MEMBERSHIP: Table = Table {
    name: "membership",
    code: "membership",
    key: &["person_id", "group_id", "valid_from"],
    hidden: &[],
};
static PERSON: Table = Table {
    name: "person",
    code: "person",
    key: &["id"],
    hidden: &[],
};
static ROLE_PERMISSION: Table = Table {
    name: "role_permission",
    code: "role_permission",
    key: &["role", "permission"],
    hidden: &[],
};
static TENANT: Table = Table {
    name: "tenant",
    code: "tenant",
    key: &["id"],
    hidden: &[],
};

/// Each table with the column whose value determines the share of a row.
pub(super) const TABLES: [(DirectoryTable, &Table, &str); 8] = [
    (DirectoryTable::Absence, &ABSENCE, "person_id"),
    (DirectoryTable::Calendar, &CALENDAR, "name"),
    (DirectoryTable::Group, &GROUP, "id"),
    (DirectoryTable::Manager, &MANAGER, "person_id"),
    (DirectoryTable::Membership, &MEMBERSHIP, "person_id"),
    (DirectoryTable::Person, &PERSON, "id"),
    (DirectoryTable::RolePermission, &ROLE_PERMISSION, "role"),
    (DirectoryTable::Tenant, &TENANT, "name"),
];

/// A period. It is open if `to` is none.
struct Period {
    with: String,
    from: Timestamp,
    to: Option<Timestamp>,
}

/// The members of all payloads of a directory's entries. Each entry has some of them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DirectoryPayload {
    absence: Option<uuid::Uuid>,
    active_from: Option<Timestamp>,
    active_until: Option<Timestamp>,
    calendar: Option<String>,
    created_at: Option<Timestamp>,
    definition: Option<String>,
    group: Option<String>,
    manager: Option<String>,
    name: Option<String>,
    person: Option<String>,
    permissions: Option<Vec<String>>,
    role: Option<String>,
    roles: Option<BTreeMap<String, Vec<String>>>,
    settings: Option<Value>,
    substitute: Option<String>,
    tenant: Option<String>,
}

/// One share of a directory, folded from its entries.
pub(super) struct Directory {
    tenant: TenantId,
    share: Share,
    people: BTreeMap<String, (String, Timestamp)>,
    groups: BTreeMap<String, (String, Timestamp)>,
    /// By person and group.
    memberships: BTreeMap<(String, String), Vec<Period>>,
    managers: BTreeMap<String, Vec<Period>>,
    absences: BTreeMap<uuid::Uuid, ExpectedRow>,
    calendars: BTreeMap<String, ExpectedRow>,
    own: Option<ExpectedRow>,
    roles: BTreeMap<String, Vec<String>>,
}

impl Directory {
    pub(super) fn new(tenant: TenantId, share: Share) -> Directory {
        Directory {
            tenant,
            share,
            people: BTreeMap::new(),
            groups: BTreeMap::new(),
            memberships: BTreeMap::new(),
            managers: BTreeMap::new(),
            absences: BTreeMap::new(),
            calendars: BTreeMap::new(),
            own: None,
            roles: BTreeMap::new(),
        }
    }

    /// Folds the next entry. Only the first share reports a payload that cannot be read.
    pub(super) fn take(&mut self, entry: &Entry, problems: &mut Vec<Problem>) {
        let draft = &entry.draft;
        let data: Result<DirectoryPayload, _> = serde_json::from_str(draft.payload.as_str());
        let taken = match data {
            Ok(data) => self.fold(&draft.kind, &data, (draft.at, draft.actor.as_deref())),
            Err(error) => Err(format!("its payload cannot be read: {error}")),
        };
        if let Err(detail) = taken
            && self.share.number == 0
        {
            problems.push(Problem::new(Some(entry.seq), "payload", detail));
        }
    }

    fn fold(
        &mut self,
        kind: &str,
        data: &DirectoryPayload,
        (at, actor): (Timestamp, Option<&str>),
    ) -> Result<(), String> {
        match kind {
            "PERSON_PUT" => self.named(
                PersonOrGroup::Person,
                there(data.person.as_ref())?,
                data,
                at,
            )?,
            "GROUP_PUT" => {
                self.named(PersonOrGroup::Group, there(data.group.as_ref())?, data, at)?;
            }
            "MEMBER_ADDED" | "MEMBER_REMOVED" => {
                let (person, group) = (there(data.person.as_ref())?, there(data.group.as_ref())?);
                if self.share.has(person) {
                    let key = (person.to_owned(), group.to_owned());
                    let with = (kind == "MEMBER_ADDED").then_some(group);
                    turn(self.memberships.entry(key).or_default(), with, at);
                }
            }
            "MANAGER_PUT" => {
                let person = there(data.person.as_ref())?;
                if self.share.has(person) {
                    let periods = self.managers.entry(person.to_owned()).or_default();
                    turn(periods, data.manager.as_deref(), at);
                }
            }
            "ABSENCE_ADDED" => self.absence(data, (at, actor))?,
            "ABSENCE_ENDED" => {
                let id = data.absence.ok_or("it names no absence")?;
                if let Some(absence) = self.absences.get_mut(&id) {
                    absence.retain(|(column, _)| *column != "ended_at");
                    absence.push(("ended_at", time(at)));
                }
            }
            "CALENDAR_PUT" => {
                let name = there(data.calendar.as_ref())?;
                let settings = data.settings.as_ref().ok_or("it has no settings")?;
                if self.share.has(name) {
                    let row = vec![
                        ("tenant_id", json!(self.tenant)),
                        ("name", json!(name)),
                        ("settings", json!(Json::of(settings).as_str())),
                        ("updated_at", time(at)),
                    ];
                    self.calendars.insert(name.to_owned(), row);
                }
            }
            "CALENDAR_DELETED" => drop(self.calendars.remove(there(data.calendar.as_ref())?)),
            "ROLE_PUT" => {
                let permissions = data.permissions.clone().ok_or("it has no permissions")?;
                let role = there(data.role.as_ref())?;
                self.roles.insert(role.to_owned(), permissions);
            }
            "TENANT_CREATED" | "TENANT_RECORDED" => {
                let created = data.created_at.ok_or("it has no createdAt")?;
                self.own = Some(vec![
                    ("id", json!(self.tenant)),
                    ("name", json!(there(data.tenant.as_ref())?)),
                    ("created_at", time(created)),
                ]);
                self.roles = data.roles.clone().ok_or("it has no roles")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn named(
        &mut self,
        what: PersonOrGroup,
        id: &str,
        data: &DirectoryPayload,
        at: Timestamp,
    ) -> Result<(), String> {
        let name = there(data.name.as_ref())?;
        let all = match what {
            PersonOrGroup::Person => &mut self.people,
            PersonOrGroup::Group => &mut self.groups,
        };
        if self.share.has(id) {
            let kept = all
                .entry(id.to_owned())
                .or_insert_with(|| (String::new(), at));
            name.clone_into(&mut kept.0);
        }
        Ok(())
    }

    fn absence(
        &mut self,
        data: &DirectoryPayload,
        (at, actor): (Timestamp, Option<&str>),
    ) -> Result<(), String> {
        let id = data.absence.ok_or("it names no absence")?;
        let person = there(data.person.as_ref())?;
        if self.share.has(person) {
            let row = vec![
                ("tenant_id", json!(self.tenant)),
                ("id", json!(id)),
                ("person_id", json!(person)),
                ("substitute_id", json!(there(data.substitute.as_ref())?)),
                ("definition_key", json!(data.definition)),
                ("active_from", time_or_null(data.active_from)),
                ("active_until", time_or_null(data.active_until)),
                ("created_at", time(at)),
                ("created_by", json!(actor)),
                ("ended_at", Value::Null),
            ];
            self.absences.insert(id, row);
        }
        Ok(())
    }

    /// Takes the rows of one table out of the fold.
    pub(super) fn expected(&mut self, which: DirectoryTable, table: &'static Table) -> Expected {
        let (tenant, mut expected) = (json!(self.tenant), Expected::new(table));
        let rows: Vec<ExpectedRow> = match which {
            DirectoryTable::Absence => std::mem::take(&mut self.absences).into_values().collect(),
            DirectoryTable::Calendar => std::mem::take(&mut self.calendars).into_values().collect(),
            DirectoryTable::Person => named_rows(&tenant, std::mem::take(&mut self.people)),
            DirectoryTable::Group => named_rows(&tenant, std::mem::take(&mut self.groups)),
            DirectoryTable::Manager => {
                let of = |(person, periods): (String, Vec<Period>)| {
                    let tenant = tenant.clone();
                    periods.into_iter().map(move |period| {
                        vec![
                            ("tenant_id", tenant.clone()),
                            ("person_id", json!(person)),
                            ("manager_id", json!(period.with)),
                            ("valid_from", time(period.from)),
                            ("valid_to", time_or_null(period.to)),
                        ]
                    })
                };
                std::mem::take(&mut self.managers)
                    .into_iter()
                    .flat_map(of)
                    .collect()
            }
            DirectoryTable::Membership => {
                let of = |((person, group), periods): ((String, String), Vec<Period>)| {
                    let tenant = tenant.clone();
                    periods.into_iter().map(move |period| {
                        vec![
                            ("tenant_id", tenant.clone()),
                            ("person_id", json!(person)),
                            ("group_id", json!(group)),
                            ("valid_from", time(period.from)),
                            ("valid_to", time_or_null(period.to)),
                        ]
                    })
                };
                std::mem::take(&mut self.memberships)
                    .into_iter()
                    .flat_map(of)
                    .collect()
            }
            DirectoryTable::RolePermission => {
                let roles = std::mem::take(&mut self.roles);
                let mine = roles.into_iter().filter(|(role, _)| self.share.has(role));
                let of = |(role, permissions): (String, Vec<String>)| {
                    let tenant = tenant.clone();
                    permissions.into_iter().map(move |permission| {
                        vec![
                            ("tenant_id", tenant.clone()),
                            ("role", json!(role)),
                            ("permission", json!(permission)),
                        ]
                    })
                };
                mine.flat_map(of).collect()
            }
            DirectoryTable::Tenant => {
                let first = self.own.take().filter(|_| self.share.number == 0);
                first.into_iter().collect()
            }
        };
        for row in rows {
            expected.add(row);
        }
        expected
    }

    /// Whether a row belongs to this share. The tenant's own row belongs to the first share.
    pub(super) fn owns(&self, which: DirectoryTable, column: &str, row: &Columns) -> bool {
        if which == DirectoryTable::Tenant {
            return self.share.number == 0;
        }
        let name = row.get(column).and_then(Value::as_str);
        self.share.has(name.unwrap_or_default())
    }
}

#[derive(Clone, Copy)]
enum PersonOrGroup {
    Person,
    Group,
}

fn there(text: Option<&String>) -> Result<&str, String> {
    let missing = || "its payload lacks a member that its type requires".to_owned();
    text.map(String::as_str).ok_or_else(missing)
}

/// Ends the open period, and opens one if `with` is given. The same `with` changes nothing. A period that began at `at` is replaced.
fn turn(periods: &mut Vec<Period>, with: Option<&str>, at: Timestamp) {
    let ends = |period: &&mut Period| period.to.is_none() && Some(period.with.as_str()) != with;
    if let Some(open) = periods.iter_mut().find(ends) {
        open.to = Some(at);
    }
    let Some(with) = with.filter(|_| periods.iter().all(|period| period.to.is_some())) else {
        return;
    };
    let with = with.to_owned();
    match periods.iter_mut().find(|period| period.from == at) {
        Some(period) => (period.with, period.to) = (with, None),
        None => periods.push(Period {
            with,
            from: at,
            to: None,
        }),
    }
}

fn named_rows(tenant: &Value, all: BTreeMap<String, (String, Timestamp)>) -> Vec<ExpectedRow> {
    let row = |(id, (name, created)): (String, (String, Timestamp))| {
        vec![
            ("tenant_id", tenant.clone()),
            ("id", json!(id)),
            ("name", json!(name)),
            ("created_at", time(created)),
        ]
    };
    all.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::{Period, Share, turn};

    #[test]
    fn every_name_is_in_one_share() {
        let shares: Vec<Share> = Share::all(350_000).collect();
        assert_eq!(shares.len(), 4);
        for name in ["", "a", "reviewer", "reviewers", "\u{1f600}"] {
            let having = shares.iter().filter(|share| share.has(name));
            assert_eq!(having.count(), 1, "{name}");
        }
    }

    #[test]
    fn periods_end_before_others_begin() {
        let at = |second: i64| jiff::Timestamp::from_second(second).expect("a time");
        let mut periods: Vec<Period> = Vec::new();
        for (with, second) in [
            (Some("a"), 1),
            (Some("b"), 2),
            // This replaces the period of `b`, which would have no length.
            (Some("c"), 2),
            (Some("c"), 3),
            (None, 4),
            (Some("c"), 4),
            (Some("d"), 5),
        ] {
            turn(&mut periods, with, at(second));
        }
        let listed: Vec<_> = periods
            .iter()
            .map(|period| (period.with.as_str(), period.from, period.to))
            .collect();
        let expected = [
            ("a", at(1), Some(at(2))),
            ("c", at(2), Some(at(4))),
            ("c", at(4), Some(at(5))),
            ("d", at(5), None),
        ];
        assert_eq!(listed, expected);
    }
}
