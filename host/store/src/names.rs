//! Finds the names in a definition that the tenant does not have, and the display names of people and groups.

use std::collections::BTreeMap;

use super::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

/// The display names of people and groups, by id. Unknown people and groups are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisplayNames {
    pub people: BTreeMap<String, String>,
    pub groups: BTreeMap<String, String>,
}

impl DisplayNames {
    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        const NAME_BYTES: usize = 8;
        let names = self.people.iter().chain(&self.groups);
        names
            .map(|(id, name)| NAME_BYTES + id.len() + name.len())
            .sum()
    }
}

/// The display names of these people and groups.
pub async fn display(
    reader: &Reader,
    tenant: TenantId,
    people: &[String],
    groups: &[String],
) -> Result<DisplayNames, StoreError> {
    let mut names = DisplayNames::default();
    if people.is_empty() && groups.is_empty() {
        return Ok(names);
    }
    let rows = sqlx::query!(
        r#"select true as "is_person!", p.id as "id!", p.name as "name!" from person p where p.tenant_id = $1 and p.id = any($2)
        union all
        select false, g.id, g.name from "group" g where g.tenant_id = $1 and g.id = any($3)"#,
        tenant.0,
        people,
        groups
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    for row in rows {
        let of_kind = if row.is_person {
            &mut names.people
        } else {
            &mut names.groups
        };
        of_kind.insert(row.id, row.name);
    }
    Ok(names)
}

/// The places of the names that the tenant does not have, in order. Each is a kind (`group`, `person`, `calendar` or
/// `permission`) and a name. A permission is one of the tenant if some role gives it.
pub async fn unknown(
    store: &Store,
    tenant: TenantId,
    names: &[(&str, &str)],
) -> Result<Vec<usize>, StoreError> {
    let (kinds, names): (Vec<_>, Vec<_>) = names
        .iter()
        .map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned()))
        .unzip();
    let unknown = sqlx::query_scalar!(
        r#"select u.number as "number!" from unnest($2::text[], $3::text[]) with ordinality as u (kind, name, number)
        where not case u.kind
            when 'group' then exists(select from "group" g where g.tenant_id = $1 and g.id = u.name)
            when 'person' then exists(select from person p where p.tenant_id = $1 and p.id = u.name)
            when 'permission' then exists(select from role_permission r where r.tenant_id = $1 and r.permission = u.name)
            else exists(select from calendar c where c.tenant_id = $1 and c.name = u.name)
        end
        order by u.number"#,
        tenant.0,
        &kinds,
        &names
    );
    let unknown = unknown.fetch_all(&store.writer).await?;
    let places = unknown
        .into_iter()
        .map(|number| usize::try_from(number - 1).expect("ordinality counts from 1"));
    Ok(places.collect())
}
