//! Names of tenants, for work that begins with a row and has no request.

use super::{Store, StoreError};
use wrkflw_core::ids::TenantId;

/// The public name of the tenant.
pub async fn name(store: &Store, tenant: TenantId) -> Result<String, StoreError> {
    let name = sqlx::query_scalar!("select name from tenant where id = $1", tenant.0);
    Ok(name.fetch_one(&store.writer).await?)
}
