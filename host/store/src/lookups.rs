//! The directory look-ups of an execution: one query by keys, one for substitutes, and one for the work of people.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::types::Json as Column;

use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::actor::StandIn;
use wrkflw_core::ids::TenantId;
use wrkflw_core::json::Json;
use wrkflw_core::lookup::{Findings, Lookup, Workload, WorkloadsOf};

/// Reads the findings for the look-up. Absences are those that hold at `now`.
pub async fn look_up(
    store: &Store,
    tenant: TenantId,
    lookup: &Lookup,
    now: Timestamp,
) -> Result<Findings, StoreError> {
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
            ) as "people!",
            coalesce((
                select json_object_agg(p.id, array(
                    select m.group_id from membership m
                    where m.tenant_id = $1 and m.person_id = p.id and m.valid_to is null order by m.group_id
                )) from unnest($7::text[]) as p (id)
            ), '{}') as "groups!: Column<BTreeMap<String, Vec<String>>>""#,
        tenant.0,
        &list(&lookup.managers_of),
        &list(&lookup.groups),
        &list(&lookup.calendars),
        &list(&lookup.people),
        i64::from(lookup.members_max),
        &list(&lookup.memberships_of)
    )
    .fetch_one(&store.writer)
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
        members: filled(row.members.0),
        calendars: calendars
            .map(|(name, settings)| (name, Json::from_canonical(settings)))
            .collect(),
        people: row.people.into_iter().collect(),
        groups: filled(row.groups.0),
        stand_ins: stand_ins(store, tenant, &lookup.stand_ins_of, now).await?,
        workloads: match &lookup.workloads {
            Some(of) => workloads(store, tenant, of, now).await?,
            None => BTreeMap::new(),
        },
    })
}

/// The work of these people, without those who are absent now. It reads a bounded number of rows for each person, by indexes.
async fn workloads(
    store: &Store,
    tenant: TenantId,
    of: &WorkloadsOf,
    now: Timestamp,
) -> Result<BTreeMap<String, Workload>, StoreError> {
    let people: Vec<_> = of.people.iter().cloned().collect();
    let rows = sqlx::query!(
        r#"select p.id as "id!",
            (
                select count(*) from (
                    select from task t
                    where t.tenant_id = $1 and t.owner = p.id and t.status = 'CLAIMED' and t.instance_id <> $3 limit $4
                ) owned
            ) as "open!",
            (
                select a.given_at from allocation a
                where a.tenant_id = $1 and a.definition_key = $5 and a.state = $6 and a.person_id = p.id
            ) as "given_at: Time"
        from unnest($2::text[]) as p (id)
        where not exists (
            select from absence b
            where b.tenant_id = $1 and b.person_id = p.id and b.active_until > $7::timestamptz
              and b.active_from <= $7::timestamptz and b.ended_at is null and coalesce(b.definition_key, $5) = $5
        )"#,
        tenant.0,
        &people,
        of.besides.0,
        i64::from(of.open_max),
        &of.definition,
        &of.state,
        Time(now) as _
    )
    .fetch_all(&store.writer)
    .await?;
    let work = rows.into_iter().map(|row| {
        let workload = Workload {
            open: u32::try_from(row.open).unwrap_or(u32::MAX),
            given_at: row.given_at.map(|at| at.0),
        };
        (row.id, workload)
    });
    Ok(work.collect())
}

/// The people for whom each of these people may act now, also through chains of substitutes. The rules are those for an
/// actor.
async fn stand_ins(
    store: &Store,
    tenant: TenantId,
    people: &BTreeSet<String>,
    now: Timestamp,
) -> Result<BTreeMap<String, Vec<StandIn>>, StoreError> {
    if people.is_empty() {
        return Ok(BTreeMap::new());
    }
    let people: Vec<_> = people.iter().cloned().collect();
    let found = sqlx::query_scalar!(
        r#"with recursive stand_in (substitute, person, definition, via) as (
            select p.id, a.person_id, a.definition_key, array[]::text[]
            from unnest($2::text[]) as p (id)
            join absence a on a.tenant_id = $1 and a.substitute_id = p.id and a.active_until > $3::timestamptz
              and a.active_from <= $3::timestamptz and a.ended_at is null
            union all
            select s.substitute, a.person_id, coalesce(s.definition, a.definition_key), s.via || s.person
            from stand_in s
            join absence a on a.tenant_id = $1 and a.substitute_id = s.person and a.active_until > $3::timestamptz
              and a.active_from <= $3::timestamptz and a.ended_at is null
              and (s.definition is null or a.definition_key is null or a.definition_key = s.definition)
            where cardinality(s.via) < 2
        )
        select coalesce(json_object_agg(p.id, (
            select coalesce(json_agg(json_build_object(
                'person', s.person, 'definition', s.definition, 'via', s.via, 'groups', array(
                    select m.group_id from membership m
                    where m.tenant_id = $1 and m.person_id = s.person and m.valid_to is null order by m.group_id
                )
            ) order by cardinality(s.via), s.person, s.definition), '[]') from stand_in s where s.substitute = p.id
        )), '{}') as "stand_ins!: Column<BTreeMap<String, Vec<StandIn>>>"
        from unnest($2::text[]) as p (id)"#,
        tenant.0,
        &people,
        Time(now) as _
    )
    .fetch_one(&store.writer)
    .await?;
    Ok(filled(found.0))
}

/// Drops the empty lists.
fn filled<T>(found: BTreeMap<String, Vec<T>>) -> BTreeMap<String, Vec<T>> {
    let found = found.into_iter();
    found.filter(|(_, items)| !items.is_empty()).collect()
}
