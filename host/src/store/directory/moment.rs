//! The directory as it was at a moment, or is: only the part that some work asks for, read with the reader's rights.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::PgConnection;

use crate::domain::absence::LINKS_MAX;
use crate::domain::ids::TenantId;
use crate::domain::standing::directory::{Directory, Substitution};
use crate::store::time::Time;
use crate::store::{Store, StoreError};

/// How many members of a group are read.
pub const MEMBERS_MAX: usize = 1_000;
/// How many absences one step of a chain reads.
const ABSENCES_MAX: i64 = 10_000;

/// Whom to look up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    pub groups: BTreeSet<String>,
    /// Whose managers.
    pub managed: BTreeSet<String>,
    /// Whose absences, besides those of all members and managers found.
    pub people: BTreeSet<String>,
}

impl Store {
    /// What of the directory held at the moment.
    pub async fn directory_at(
        &self,
        tenant: TenantId,
        at: Timestamp,
        asked: &Asked,
    ) -> Result<Directory, StoreError> {
        let mut connection = self.reading(tenant).await?;
        let mut directory = Directory::default();
        members(&mut connection, tenant, at, asked, &mut directory).await?;
        directory.managers = managers(&mut connection, tenant, at, asked).await?;
        let members = directory.members.values().flatten();
        let people = members
            .chain(directory.managers.values())
            .chain(&asked.people);
        let mut seen: BTreeSet<String> = people.cloned().collect();
        let mut frontier: Vec<String> = seen.iter().cloned().collect();
        for _ in 0..LINKS_MAX {
            let links = absences(&mut connection, tenant, at, &frontier).await?;
            let substitutes = links.iter().map(|link| &link.substitute);
            frontier = substitutes
                .filter(|person| seen.insert((*person).clone()))
                .cloned()
                .collect();
            for link in links {
                let theirs = directory.substitutions.entry(link.person.clone());
                theirs.or_default().push(link);
            }
            if frontier.is_empty() {
                break;
            }
        }
        Ok(directory)
    }

    /// The people for whom this one may have stood in at the moment, and themselves.
    pub async fn represented_at(
        &self,
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
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        Ok(people.into_iter().collect())
    }

    /// The groups that any of these people were in at the moment.
    pub async fn groups_at(
        &self,
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
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        Ok(groups.into_iter().collect())
    }
}

async fn members(
    connection: &mut PgConnection,
    tenant: TenantId,
    at: Timestamp,
    asked: &Asked,
    directory: &mut Directory,
) -> Result<(), StoreError> {
    let groups: Vec<String> = asked.groups.iter().cloned().collect();
    let limit = i64::try_from(MEMBERS_MAX).expect("a small number") + 1;
    let rows = sqlx::query!(
        r#"select g.id as "group!", m.person_id as "person!"
        from unnest($2::text[]) g (id) cross join lateral (
            select person_id from membership
            where tenant_id = $1 and group_id = g.id and valid_from <= $3 and (valid_to is null or valid_to > $3)
            order by person_id limit $4
        ) m"#,
        tenant.0,
        &groups,
        Time(at) as _,
        limit
    )
    .fetch_all(connection)
    .await?;
    for row in rows {
        let members = directory.members.entry(row.group.clone()).or_default();
        if members.len() < MEMBERS_MAX {
            members.insert(row.person);
        } else {
            directory.cut.insert(row.group);
        }
    }
    Ok(())
}

async fn managers(
    connection: &mut PgConnection,
    tenant: TenantId,
    at: Timestamp,
    asked: &Asked,
) -> Result<BTreeMap<String, String>, StoreError> {
    let people: Vec<String> = asked.managed.iter().cloned().collect();
    let rows = sqlx::query!(
        "select person_id, manager_id from manager
         where tenant_id = $1 and person_id = any($2) and valid_from <= $3 and (valid_to is null or valid_to > $3)",
        tenant.0,
        &people,
        Time(at) as _
    )
    .fetch_all(connection)
    .await?;
    let pairs = rows.into_iter().map(|row| (row.person_id, row.manager_id));
    Ok(pairs.collect())
}

async fn absences(
    connection: &mut PgConnection,
    tenant: TenantId,
    at: Timestamp,
    people: &[String],
) -> Result<Vec<Substitution>, StoreError> {
    let rows = sqlx::query!(
        "select id, person_id, substitute_id, definition_key from absence
         where tenant_id = $1 and person_id = any($2) and active_until > $3 and active_from <= $3 and created_at <= $3
           and (ended_at is null or ended_at > $3)
         order by person_id, id
         limit $4",
        tenant.0,
        people,
        Time(at) as _,
        ABSENCES_MAX
    )
    .fetch_all(connection)
    .await?;
    let links = rows.into_iter().map(|row| Substitution {
        absence: row.id,
        person: row.person_id,
        substitute: row.substitute_id,
        definition: row.definition_key,
    });
    Ok(links.collect())
}
