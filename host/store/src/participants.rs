//! Who takes part in an instance for another reason than its tasks. The commit adds those of commands (`Change::participants`).

use sqlx::PgConnection;

use super::StoreError;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::participant::Kind;

/// Makes people participants of an instance for good, such as those whom a comment mentions: in the transaction that writes why, with
/// a connection of the writer. Nothing is written about an instance that everybody of the tenant sees.
pub async fn join(
    connection: &mut PgConnection,
    tenant: TenantId,
    instance: InstanceId,
    people: &[String],
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into participant (tenant_id, instance_id, kind, principal)
        select i.tenant_id, i.id, $3, person from instance i cross join unnest($4::text[]) person
        where i.tenant_id = $1 and i.id = $2 and i.observers is not null
        on conflict do nothing",
        tenant.0,
        instance.0,
        Kind::User.name(),
        people
    )
    .execute(connection)
    .await?;
    Ok(())
}
