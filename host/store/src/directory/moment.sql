-- The part of a tenant's directory that some work asks for, as of a moment, as JSON. $1 tenant, $2 moment, $3 groups, $4 people,
-- $5 members of a group and $6 of all, $7 links of a chain of substitutes, $8 absences
with recursive member as materialized (
    -- Group by group, each in the order of its people: what is cut off is the end.
    select g.id as group_id, m.person_id
    from unnest($3::text[]) g (id) cross join lateral (
        select person_id from membership
        where tenant_id = $1 and group_id = g.id and valid_from <= $2 and (valid_to is null or valid_to > $2)
        order by person_id limit $5
    ) m
    limit $6
), known (person, links) as (
    select p.person, 0 from (
        select person_id from member union select unnest($4::text[])
    ) p (person)
    union
    select a.substitute_id, k.links + 1
    from known k join absence a on a.tenant_id = $1 and a.person_id = k.person and a.active_until > $2
        and a.active_from <= $2 and a.created_at <= $2 and (a.ended_at is null or a.ended_at > $2)
    where k.links + 1 < $7::int
)
select
    coalesce((
        select json_object_agg(group_id, people) from (
            select group_id, json_agg(person_id) as people from member group by group_id
        ) g
    )::text, '{}') as "members!",
    coalesce((
        select json_agg(a order by a.person_id, a.id) from (
            select id, person_id, substitute_id, definition_key from absence
            where tenant_id = $1 and person_id in (select person from known) and active_until > $2
              and active_from <= $2 and created_at <= $2 and (ended_at is null or ended_at > $2)
            order by person_id, id
            limit $8
        ) a
    )::text, '[]') as "absences!"
