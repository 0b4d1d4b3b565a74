//! Lists of people and groups by id. A search by prefix first lists the matches by id, then the matches by name.

use crate::{Reader, StoreError};
use wrkflw_core::ids::TenantId;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Person,
    Group,
}

/// A person or group in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryRow {
    pub id: String,
    pub name: String,
}

/// How far a list was read. The next part begins behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryCursor {
    /// Behind this id.
    Id(String),
    /// Behind this name in lower case and this id. Ids come before names.
    Name(String, String),
}

impl DirectoryCursor {
    /// Before everything.
    pub fn start() -> DirectoryCursor {
        DirectoryCursor::Id(String::new())
    }
}

/// A part of a list, and its end. Without an end, nothing follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub rows: Vec<DirectoryRow>,
    pub next: Option<DirectoryCursor>,
}

/// At most `limit` people or groups whose id or name begins with the prefix. A part of a search may have fewer although
/// more follow, because people and groups that match by id and name are listed only once.
pub async fn named(
    reader: &Reader,
    tenant: TenantId,
    kind: Kind,
    prefix: &str,
    after: DirectoryCursor,
    limit: usize,
) -> Result<Part, StoreError> {
    let (mut rows, mut after) = (Vec::new(), after);
    if let DirectoryCursor::Id(id) = &after {
        rows = by_id(reader, tenant, kind, (prefix, id), limit + 1).await?;
        if rows.len() > limit {
            rows.truncate(limit);
            let next = rows.last().map(|last| DirectoryCursor::Id(last.id.clone()));
            return Ok(Part { rows, next });
        }
        after = DirectoryCursor::Name(String::new(), String::new());
    }
    let (DirectoryCursor::Name(name, id), false) = (&after, prefix.is_empty()) else {
        return Ok(Part { rows, next: None });
    };
    let place = (name.as_str(), id.as_str());
    let room = limit - rows.len();
    let mut found = by_name(reader, tenant, kind, prefix, place, room + 1).await?;
    let more = found.len() > room;
    found.truncate(room);
    let next = match found.last() {
        _ if !more => None,
        Some((last, lowered)) => Some(DirectoryCursor::Name(lowered.clone(), last.id.clone())),
        None => Some(after),
    };
    let others = found.into_iter().map(|(named, _)| named);
    rows.extend(others.filter(|named| !named.id.starts_with(prefix)));
    Ok(Part { rows, next })
}

/// At most `limit` members of a group behind this id, in the order of the index of current members.
pub async fn members(
    reader: &Reader,
    tenant: TenantId,
    group: &str,
    after: &str,
    limit: usize,
) -> Result<Part, StoreError> {
    let rows = sqlx::query!(
        r#"select m.person_id as "id!", coalesce(p.name, m.person_id) as "name!" from (
            select person_id from membership
            where tenant_id = $1 and group_id = $2 and valid_to is null and person_id > $3 order by person_id limit $4
        ) as m left join person p on p.tenant_id = $1 and p.id = m.person_id order by m.person_id"#,
        tenant.0,
        group,
        after,
        i64::try_from(limit + 1).expect("the size of a page")
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let is_cut = rows.len() > limit;
    let rows = rows.into_iter().take(limit).map(|row| DirectoryRow {
        id: row.id,
        name: row.name,
    });
    let rows: Vec<_> = rows.collect();
    let next = rows.last().filter(|_| is_cut);
    let next = next.map(|last| DirectoryCursor::Id(last.id.clone()));
    Ok(Part { rows, next })
}

async fn by_id(
    reader: &Reader,
    tenant: TenantId,
    kind: Kind,
    (prefix, after): (&str, &str),
    limit: usize,
) -> Result<Vec<DirectoryRow>, StoreError> {
    // The upper bound of a prefix is the prefix with the last of all characters.
    let rows = sqlx::query!(
        r#"select id as "id!", name as "name!" from (
            select id, name from person where tenant_id = $1 and not $5
            union all
            select id, name from "group" where tenant_id = $1 and $5
        ) as named
        where id collate "C" >= $2 and id collate "C" < $2 || chr(1114111) and id collate "C" > $3
        order by id collate "C" limit $4"#,
        tenant.0,
        prefix,
        after,
        i64::try_from(limit).expect("the size of a page"),
        kind == Kind::Group
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let named = rows.into_iter().map(|row| DirectoryRow {
        id: row.id,
        name: row.name,
    });
    Ok(named.collect())
}

/// Each with its name in lower case.
async fn by_name(
    reader: &Reader,
    tenant: TenantId,
    kind: Kind,
    prefix: &str,
    (name, id): (&str, &str),
    limit: usize,
) -> Result<Vec<(DirectoryRow, String)>, StoreError> {
    let rows = sqlx::query!(
        r#"select id as "id!", name as "name!", lower(name) as "lowered!" from (
            select id, name from person where tenant_id = $1 and name is not null and not $6
            union all
            select id, name from "group" where tenant_id = $1 and name is not null and $6
        ) as named
        where lower(name) collate "C" >= lower($2) and lower(name) collate "C" < lower($2) || chr(1114111)
          and (lower(name) collate "C", id collate "C") > ($3, $4)
        order by lower(name) collate "C", id collate "C" limit $5"#,
        tenant.0,
        prefix,
        name,
        id,
        i64::try_from(limit).expect("the size of a page"),
        kind == Kind::Group
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let named = rows.into_iter().map(|row| {
        let (id, name) = (row.id, row.name);
        (DirectoryRow { id, name }, row.lowered)
    });
    Ok(named.collect())
}
