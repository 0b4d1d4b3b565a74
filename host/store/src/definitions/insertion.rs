//! The row of a new version, and the declarations of its attributes.

use sqlx::PgConnection;

use super::NewVersion;
use crate::StoreError;
use crate::streams::Note;
use crate::time::Time;
use wrkflw_core::ids::TenantId;
use wrkflw_core::json::Json;

/// Inserts a version under the next number of its definition, which the caller has locked.
pub(super) async fn insert_version(
    connection: &mut PgConnection,
    tenant: TenantId,
    new: &NewVersion<'_>,
    note: &Note<'_>,
) -> Result<u32, StoreError> {
    let graph = Json::of(new.graph);
    let version = sqlx::query_scalar!(
        r#"insert into definition_version (
               tenant_id, key, version, digest, config, config_digest, graph, sdk, wit, published_at, published_by,
               restricted, note
           )
           select $1, $2, coalesce(max(version), 0) + 1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
           from definition_version where tenant_id = $1 and key = $2
           returning version"#,
        tenant.0,
        new.key,
        new.digest.0.as_slice(),
        new.config.as_str(),
        new.config_digest.as_slice(),
        graph.as_str(),
        new.sdk,
        new.wit,
        Time(note.at) as _,
        note.actor,
        new.graph.observers.is_some(),
        new.note
    )
    .fetch_one(&mut *connection)
    .await?;
    declare(connection, tenant, new).await?;
    Ok(version.cast_unsigned())
}

/// Inserts the declarations of the version's attributes, from which searches know the types.
async fn declare(
    connection: &mut PgConnection,
    tenant: TenantId,
    new: &NewVersion<'_>,
) -> Result<(), StoreError> {
    let declared = &new.graph.attributes;
    let names: Vec<_> = declared.iter().map(|one| one.name.clone()).collect();
    let types: Vec<_> = declared
        .iter()
        .map(|one| one.kind.name().to_owned())
        .collect();
    sqlx::query!(
        "insert into attribute_declaration (tenant_id, name, definition_key, type)
        select $1, d.name, $2, d.type from unnest($3::text[], $4::text[]) as d (name, type) on conflict do nothing",
        tenant.0,
        new.key,
        &names,
        &types
    )
    .execute(connection)
    .await?;
    Ok(())
}
