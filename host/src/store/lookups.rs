//! What a turn asks of the directory, in one query of key look-ups.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::types::Json as Column;

use super::{Store, StoreError};
use crate::domain::ids::TenantId;
use crate::domain::json::Json;
use crate::domain::lookup::{Findings, Lookup};

impl Store {
    /// What the directory says at this moment.
    pub async fn look_up(&self, tenant: TenantId, lookup: &Lookup) -> Result<Findings, StoreError> {
        let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
        let row = sqlx::query!(
            r#"select
                coalesce((
                    select json_object_agg(p.id, (
                        select m.manager_id from manager m
                        where m.tenant_id = $1 and m.person_id = p.id and m.valid_to is null
                    )) from unnest($2::text[]) as p (id)
                ), '{}') as "managers!: Column<BTreeMap<String, Option<String>>>",
                coalesce((
                    select json_object_agg(g.id, array(
                        select m.person_id from membership m
                        where m.tenant_id = $1 and m.group_id = g.id and m.valid_to is null
                        order by m.person_id limit $6
                    )) from unnest($3::text[]) as g (id)
                ), '{}') as "members!: Column<BTreeMap<String, Vec<String>>>",
                coalesce((
                    select json_object_agg(n.name, (
                        select c.settings from calendar c where c.tenant_id = $1 and c.name = n.name
                    )) from unnest($4::text[]) as n (name)
                ), '{}') as "calendars!: Column<BTreeMap<String, Option<String>>>",
                array(
                    select k.id from unnest($5::text[]) as k (id)
                    where exists (select from person p where p.tenant_id = $1 and p.id = k.id)
                ) as "people!""#,
            tenant.0,
            &list(&lookup.managers_of),
            &list(&lookup.groups),
            &list(&lookup.calendars),
            &list(&lookup.people),
            i64::from(lookup.members_max)
        )
        .fetch_one(&self.writer)
        .await?;
        let known = |found: BTreeMap<String, Option<String>>| {
            let known = found
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)));
            known.collect::<BTreeMap<_, _>>()
        };
        let calendars = known(row.calendars.0).into_iter();
        Ok(Findings {
            managers: known(row.managers.0),
            members: row
                .members
                .0
                .into_iter()
                .filter(|(_, members)| !members.is_empty())
                .collect(),
            calendars: calendars
                .map(|(name, settings)| (name, Json::from_canonical(settings)))
                .collect(),
            people: row.people.into_iter().collect(),
        })
    }
}
