//! Names of tenants, for work that begins with a row and has no request.

use super::{Store, StoreError};
use wrkflw_core::ids::TenantId;

impl Store {
    /// The public name of the tenant.
    pub async fn tenant_name(&self, tenant: TenantId) -> Result<String, StoreError> {
        let name = sqlx::query_scalar!("select name from tenant where id = $1", tenant.0);
        Ok(name.fetch_one(&self.writer).await?)
    }
}
