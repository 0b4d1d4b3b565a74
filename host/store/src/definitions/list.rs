//! Lists of versions: of one definition or of all, also by words in their key, title or description.

use jiff::Timestamp;

use crate::time::Time;
use crate::{Reader, StoreError};
use wrkflw_core::ids::{TenantId, hex};

/// A published version in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionSummary {
    pub key: String,
    pub version: u32,
    /// The flow's name for people; empty for its key.
    pub title: String,
    pub active: bool,
    /// Of the definition.
    pub newest_version: u32,
    pub digest: String,
    pub sdk: Option<String>,
    pub wit: String,
    pub published_at: Timestamp,
    pub published_by: String,
    /// Why it was published.
    pub note: Option<String>,
    pub retired_at: Option<Timestamp>,
    pub stopped_at: Option<Timestamp>,
}

/// Which versions a list has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VersionChoice {
    #[default]
    All,
    /// One of each definition: the active one, or the newest if none is active.
    Current,
    /// Only active ones.
    Active,
}

impl VersionChoice {
    fn name(self) -> Option<&'static str> {
        match self {
            VersionChoice::All => None,
            VersionChoice::Current => Some("current"),
            VersionChoice::Active => Some("active"),
        }
    }
}

/// The filter of a list of versions.
#[derive(Debug, Clone, Copy, Default)]
pub struct VersionFilter<'a> {
    /// The definition; none for all.
    pub key: Option<&'a str>,
    /// Words of key, title and description.
    pub words: Option<&'a str>,
    pub choice: VersionChoice,
    /// The last version of the page before.
    pub after: Option<(&'a str, u32)>,
    pub limit: i64,
}

/// A page of versions, by key and from the newest.
pub async fn versions(
    reader: &Reader,
    tenant: TenantId,
    filter: VersionFilter<'_>,
) -> Result<Vec<VersionSummary>, StoreError> {
    let (after_key, before_version) = filter.after.map_or((None, None), |(key, version)| {
        (Some(key), Some(version.cast_signed()))
    });
    // Titles are read only for the rows of the page, because reading a title parses a graph.
    let rows = sqlx::query!(
        r#"select v.key, v.version, coalesce(v.graph::json ->> 'title', '') as "title!", v.digest, v.sdk, v.wit, v.published_at as "published_at: Time", v.published_by, v.note,
               v.retired_at as "retired_at: Time", v.stopped_at as "stopped_at: Time", v.active_version is not distinct from v.version as "active!",
               (select max(n.version) from definition_version n where n.tenant_id = $1 and n.key = v.key) as "newest_version!"
        from (
            select v.key, v.version, v.graph, v.digest, v.sdk, v.wit, v.published_at, v.published_by, v.note, v.retired_at, v.stopped_at,
                d.active_version
            from definition_version v join definition d on d.tenant_id = v.tenant_id and d.key = v.key
            where v.tenant_id = $1 and ($2::text is null or v.key = $2)
              and ($3::text is null or v.key > $3 or (v.key = $3 and v.version < $4))
              and ($6::text is null or (v.key, v.version) in (select h.key, h.version from versions_with_words($6) h))
              and case $7::text
                  when 'active' then v.version = d.active_version
                  when 'current' then v.version = coalesce(d.active_version, (
                      select max(n.version) from definition_version n where n.tenant_id = v.tenant_id and n.key = v.key
                  ))
                  else true end
            order by v.key, v.version desc
            limit $5
        ) v
        order by v.key, v.version desc"#,
        tenant.0,
        filter.key,
        after_key,
        before_version,
        filter.limit,
        filter.words,
        filter.choice.name()
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| VersionSummary {
            key: row.key,
            version: row.version.cast_unsigned(),
            title: row.title,
            active: row.active,
            newest_version: row.newest_version.cast_unsigned(),
            digest: hex(&row.digest),
            sdk: row.sdk,
            wit: row.wit,
            published_at: row.published_at.0,
            published_by: row.published_by,
            note: row.note,
            retired_at: row.retired_at.map(|time| time.0),
            stopped_at: row.stopped_at.map(|time| time.0),
        })
        .collect())
}
