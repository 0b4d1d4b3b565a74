//! The rows of a commit are sent as composite types: the columns of the host and of the database must agree in order.

use wrkflw_store::Store;
use wrkflw_store::commit::row_types;

use crate::support::postgres::database;

#[tokio::test]
async fn the_rows_of_a_commit_have_the_columns_of_their_types() {
    let database = database(async |url: &str| Store::migrate(url).await).await;
    let types = "select t.typname::text, array_agg(a.attname::text order by a.attnum)
        from pg_type t join pg_attribute a on a.attrelid = t.typrelid
        where t.typname like 'commit\\_%' and t.typtype = 'c' and t.typrelid in (select oid from pg_class where relkind = 'c')
        group by 1 order by 1";
    let types: Vec<(String, Vec<String>)> = sqlx::query_as(types)
        .fetch_all(database.admin_pool())
        .await
        .expect("types");
    let plain = |column: &&str| column.trim_start_matches("r#").to_owned();
    let mut wanted: Vec<_> = row_types()
        .iter()
        .map(|(name, columns)| ((*name).to_owned(), columns.iter().map(plain).collect()))
        .collect();
    wanted.sort();
    assert_eq!(types, wanted);
}
