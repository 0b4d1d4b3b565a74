//! Which of the names that a definition uses the tenant has.

use super::{Store, StoreError};
use wrkflw_core::ids::TenantId;

impl Store {
    /// The places of the names that the tenant does not have, in order. Each is a kind (`group`, `person` or `calendar`) and a name.
    pub async fn unknown_names(
        &self,
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
                else exists(select from calendar c where c.tenant_id = $1 and c.name = u.name)
            end
            order by u.number"#,
            tenant.0,
            &kinds,
            &names
        );
        let unknown = unknown.fetch_all(&self.writer).await?;
        let places = unknown
            .into_iter()
            .map(|number| usize::try_from(number - 1).expect("ordinality counts from 1"));
        Ok(places.collect())
    }
}
