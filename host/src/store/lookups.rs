//! What a turn wants to know of the directory, in one query of key look-ups.

use std::collections::BTreeMap;

use sqlx::types::Json as Column;

use super::{Store, StoreError};
use crate::domain::ids::TenantId;
use crate::domain::json::Json;
use crate::domain::lookup::{Findings, Lookup};

impl Store {
    /// Finds out what is asked for, as it is now.
    pub async fn look_up(&self, tenant: TenantId, lookup: &Lookup) -> Result<Findings, StoreError> {
        if lookup.is_empty() {
            return Ok(Findings::default());
        }
        let list = |names: &std::collections::BTreeSet<String>| -> Vec<String> {
            names.iter().cloned().collect()
        };
        let row = sqlx::query!(
            r#"select
                coalesce((
                    select json_object_agg(person_id, manager_id) from manager
                    where tenant_id = $1 and person_id = any($2) and valid_to is null
                ), '{}') as "managers!: Column<BTreeMap<String, String>>",
                coalesce((
                    select json_object_agg(g.id, m.members) from unnest($3::text[]) g (id) cross join lateral (
                        select array_agg(one.person_id order by one.person_id) as members from (
                            select person_id from membership
                            where tenant_id = $1 and group_id = g.id and valid_to is null
                            order by person_id limit $4
                        ) one
                    ) m
                    where m.members is not null
                ), '{}') as "members!: Column<BTreeMap<String, Vec<String>>>",
                coalesce((
                    select json_object_agg(name, settings) from calendar where tenant_id = $1 and name = any($5)
                ), '{}') as "calendars!: Column<BTreeMap<String, String>>",
                array(select id from person where tenant_id = $1 and id = any($6)) as "people!""#,
            tenant.0,
            &list(&lookup.managers_of),
            &list(&lookup.groups),
            i64::from(lookup.members_max),
            &list(&lookup.calendars),
            &list(&lookup.people)
        )
        .fetch_one(&self.writer)
        .await?;
        let calendars = row.calendars.0.into_iter();
        Ok(Findings {
            managers: row.managers.0,
            members: row.members.0,
            calendars: calendars
                .map(|(name, settings)| (name, Json::from_canonical(settings)))
                .collect(),
            people: row.people.into_iter().collect(),
        })
    }
}
