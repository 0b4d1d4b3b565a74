//! Reads the requested part of a tenant's directory, as it is now or was at a time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::time::Time;
use crate::{Reader, StoreError};
use wrkflw_core::absence::LINKS_MAX;
use wrkflw_core::eligibility::directory::{Directory, Substitution};
use wrkflw_core::ids::TenantId;

/// Limit of the members of a group that are read.
pub const MEMBERS_MAX: usize = 1_000;
/// Limit of the memberships that are read in all.
const MEMBERSHIPS_MAX: usize = 20_000;
/// Limit of the absences that are read.
const ABSENCES_MAX: i64 = 10_000;

/// The groups and people to look up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MomentQuery {
    pub groups: BTreeSet<String>,
    /// People whose absences are read, besides those of all members found.
    pub people: BTreeSet<String>,
}

/// A part of the directory as JSON of the database. Parsing it may take long.
#[derive(Debug)]
pub struct WrittenDirectory {
    /// The groups that were asked for.
    groups: BTreeSet<String>,
    members: String,
    absences: String,
}

impl WrittenDirectory {
    /// The size of the JSON in bytes.
    pub fn bytes(&self) -> usize {
        self.members.len() + self.absences.len()
    }

    /// Parses the JSON.
    pub fn read(self) -> Result<Directory, StoreError> {
        let members: BTreeMap<String, BTreeSet<String>> = read("membership", &self.members)?;
        let absences: Vec<AbsenceRow> = read("absence", &self.absences)?;
        let mut directory = Directory {
            lacks_absences: i64::try_from(absences.len()).is_ok_and(|read| read >= ABSENCES_MAX),
            ..Directory::default()
        };
        if members.values().map(BTreeSet::len).sum::<usize>() >= MEMBERSHIPS_MAX {
            // Groups were read in this order. The last one may lack members. Groups without members may be unread.
            let unread = self
                .groups
                .iter()
                .filter(|group| !members.contains_key(*group));
            let last = members.keys().next_back();
            directory.cut = unread.chain(last).cloned().collect();
        }
        for (group, mut people) in members {
            if people.len() > MEMBERS_MAX {
                people.pop_last();
                directory.cut.insert(group.clone());
            }
            directory.members.insert(group, people);
        }
        for row in absences {
            let link = Substitution {
                absence: row.id,
                person: row.person_id,
                substitute: row.substitute_id,
                definition: row.definition_key,
            };
            let links = directory.substitutions.entry(link.person.clone());
            links.or_default().push(link);
        }
        Ok(directory)
    }
}

#[derive(Deserialize)]
struct AbsenceRow {
    id: Uuid,
    person_id: String,
    substitute_id: String,
    definition_key: Option<String>,
}

fn read<T: DeserializeOwned>(table: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::inconsistent(table, "(as JSON)", error))
}

/// Reads the requested part of the directory, as of a time.
pub async fn directory_at(
    reader: &Reader,
    tenant: TenantId,
    at: Timestamp,
    query: MomentQuery,
) -> Result<WrittenDirectory, StoreError> {
    let list = |names: &BTreeSet<String>| -> Vec<String> { names.iter().cloned().collect() };
    let limit = |count: usize| i64::try_from(count).expect("a small number");
    let row = sqlx::query_file!(
        "src/directory/moment.sql",
        tenant.0,
        Time(at) as _,
        &list(&query.groups),
        &list(&query.people),
        limit(MEMBERS_MAX + 1),
        limit(MEMBERSHIPS_MAX),
        i32::try_from(LINKS_MAX).expect("a small number"),
        ABSENCES_MAX
    )
    .fetch_one(&mut reader.reading(tenant).await?)
    .await?;
    Ok(WrittenDirectory {
        groups: query.groups,
        members: row.members,
        absences: row.absences,
    })
}

/// The person, and everybody for whom the person may have acted as a substitute at this time.
pub async fn represented_at(
    reader: &Reader,
    tenant: TenantId,
    at: Timestamp,
    person: &str,
) -> Result<BTreeSet<String>, StoreError> {
    let people = sqlx::query_scalar!(
        r#"with recursive represented (person, links) as (
            select $2::text, 0
            union
            select a.person_id, r.links + 1
            from represented r join absence a on a.tenant_id = $1 and a.substitute_id = r.person
                and a.active_until > $3 and a.active_from <= $3 and a.created_at <= $3
                and (a.ended_at is null or a.ended_at > $3)
            where r.links < $4::int
        )
        select distinct person as "person!" from represented order by 1 limit $5"#,
        tenant.0,
        person,
        Time(at) as _,
        i32::try_from(LINKS_MAX).expect("a small number"),
        ABSENCES_MAX
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(people.into_iter().collect())
}

/// The groups that had any of these people as a member at this time.
pub async fn groups_at(
    reader: &Reader,
    tenant: TenantId,
    at: Timestamp,
    people: &BTreeSet<String>,
) -> Result<BTreeSet<String>, StoreError> {
    let people: Vec<String> = people.iter().cloned().collect();
    let groups = sqlx::query_scalar!(
        "select distinct group_id from membership
         where tenant_id = $1 and person_id = any($2) and valid_from <= $3 and (valid_to is null or valid_to > $3)",
        tenant.0,
        &people,
        Time(at) as _
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(groups.into_iter().collect())
}
