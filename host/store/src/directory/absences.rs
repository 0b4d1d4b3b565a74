//! Absences, with their substitutes and periods. An absence may be ended early, but is never deleted.

use std::collections::BTreeSet;

use jiff::Timestamp;
use uuid::Uuid;

use super::reassessments::{self, Whose};
use super::{Change, Put, Run};
use crate::pool::transacted;
use crate::streams::Note;
use crate::time::Time;
use crate::{Reader, Store, StoreError};
use wrkflw_core::absence::{Absence, LINKS_MAX, OF_PAIR_MAX, OF_PERSON_MAX, OF_SUBSTITUTE_MAX};
use wrkflw_core::ids::TenantId;
use wrkflw_core::refusal::Refusal;

/// Limit of the absences of one period that are checked together.
const TOGETHER_MAX: usize = 500;
/// Limit of the absences in a list.
pub const LISTED_MAX: i64 = 500;

/// A stored absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAbsence {
    pub id: Uuid,
    pub person: String,
    pub substitute: String,
    pub definition: Option<String>,
    pub active_from: Timestamp,
    pub active_until: Timestamp,
    pub created_at: Timestamp,
    pub created_by: String,
    pub ended_at: Option<Timestamp>,
}

/// The columns of an absence.
struct Row {
    id: Uuid,
    person_id: String,
    substitute_id: String,
    definition_key: Option<String>,
    active_from: Time,
    active_until: Time,
    created_at: Time,
    created_by: String,
    ended_at: Option<Time>,
}

impl From<Row> for KeptAbsence {
    fn from(row: Row) -> KeptAbsence {
        KeptAbsence {
            id: row.id,
            person: row.person_id,
            substitute: row.substitute_id,
            definition: row.definition_key,
            active_from: row.active_from.0,
            active_until: row.active_until.0,
            created_at: row.created_at.0,
            created_by: row.created_by,
            ended_at: row.ended_at.map(|time| time.0),
        }
    }
}

impl From<Row> for Absence {
    fn from(row: Row) -> Absence {
        Absence {
            person: row.person_id,
            substitute: row.substitute_id,
            definition: row.definition_key,
            from: row.active_from.0,
            until: row.active_until.0,
        }
    }
}

/// The current and future absences of a person, and those for which the person is the substitute. The earliest come
/// first.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    person: &str,
    at: Timestamp,
) -> Result<Vec<KeptAbsence>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id, person_id, substitute_id, definition_key, active_from as "active_from: Time",
            active_until as "active_until: Time", created_at as "created_at: Time", created_by, ended_at as "ended_at: Time"
        from absence
        where tenant_id = $1 and (person_id = $2 or substitute_id = $2) and active_until > $3 and ended_at is null
        order by active_from, id
        limit $4"#,
        tenant.0,
        person,
        Time(at) as _,
        LISTED_MAX
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(rows.into_iter().map(KeptAbsence::from).collect())
}

/// One absence of a person.
pub async fn get(
    reader: &Reader,
    tenant: TenantId,
    person: &str,
    id: Uuid,
) -> Result<Option<KeptAbsence>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, person_id, substitute_id, definition_key, active_from as "active_from: Time",
            active_until as "active_until: Time", created_at as "created_at: Time", created_by, ended_at as "ended_at: Time"
        from absence where tenant_id = $1 and id = $2 and person_id = $3"#,
        tenant.0,
        id,
        person
    )
    .fetch_optional(&mut reader.reading(tenant).await?)
    .await?;
    Ok(row.map(KeptAbsence::from))
}

/// Adds an absence under this id. If it exists already, nothing is written.
pub async fn add(
    store: &Store,
    tenant: TenantId,
    id: Uuid,
    absence: &Absence,
    run: Run,
    note: &Note<'_>,
) -> Result<Put, StoreError> {
    transacted(Box::pin(async move {
        let mut change = super::change(store, tenant, note, run).await?;
        let (person, substitute) = (&absence.person, &absence.substitute);
        let known = sqlx::query!(
            r#"select exists(select from person where tenant_id = $1 and id = $2) as "person!",
            exists(select from person where tenant_id = $1 and id = $3) as "substitute!""#,
            tenant.0,
            person,
            substitute
        )
        .fetch_one(change.connection())
        .await?;
        if !known.person {
            return Ok(Put::Missing);
        }
        if let Some(kept) = kept(&mut change, id).await? {
            return Ok(if kept == *absence {
                Put::Done
            } else {
                Put::Taken
            });
        }
        if let Err(refusal) = absence.check(note.at) {
            return Ok(Put::Refused(refusal));
        }
        if !known.substitute {
            return Ok(Put::Refused(Refusal::UnknownSubstitute(substitute.clone())));
        }
        if let Some(refusal) = limit_of(&mut change, absence).await? {
            return Ok(Put::Refused(refusal));
        }
        let fits = match around(&mut change, absence).await? {
            Some(held) => absence.fits(&held),
            None => Err(Refusal::Crowded(TOGETHER_MAX)),
        };
        if let Err(refusal) = fits {
            return Ok(Put::Refused(refusal));
        }
        insert(&mut change, id, absence).await?;
        let whose = [
            (Whose::User(person), absence.from),
            (Whose::User(person), absence.until),
        ];
        reassessments::reassessment(&mut change, &whose).await?;
        let payload = serde_json::json!({
            "absence": id, "person": person, "substitute": substitute,
            "definition": absence.definition,
            "activeFrom": absence.from, "activeUntil": absence.until,
        });
        change.finish("ABSENCE_ADDED", &payload).await?;
        Ok(Put::Done)
    }))
    .await
}

/// Ends an absence early. An absence that is over does not change.
pub async fn end(
    store: &Store,
    tenant: TenantId,
    person: &str,
    id: Uuid,
    run: Run,
    note: &Note<'_>,
) -> Result<Put, StoreError> {
    transacted(Box::pin(async move {
        let mut change = super::change(store, tenant, note, run).await?;
        let at = change.at;
        let row = sqlx::query!(
            r#"select active_until > $4 and ended_at is null as "lasts!" from absence
        where tenant_id = $1 and id = $2 and person_id = $3"#,
            tenant.0,
            id,
            person,
            Time(note.at) as _
        )
        .fetch_optional(change.connection())
        .await?;
        match row.map(|row| row.lasts) {
            None => return Ok(Put::Missing),
            Some(false) => return Ok(Put::Done),
            Some(true) => {}
        }
        let updated = sqlx::query!(
            "update absence set ended_at = $3 where tenant_id = $1 and id = $2",
            tenant.0,
            id,
            Time(at) as _
        )
        .execute(change.connection())
        .await?;
        assert_eq!(updated.rows_affected(), 1);
        let whose = [(Whose::User(person), note.at)];
        reassessments::reassessment(&mut change, &whose).await?;
        let payload = serde_json::json!({ "absence": id, "person": person });
        change.finish("ABSENCE_ENDED", &payload).await?;
        Ok(Put::Done)
    }))
    .await
}

async fn kept(change: &mut Change<'_>, id: Uuid) -> Result<Option<Absence>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, person_id, substitute_id, definition_key, active_from as "active_from: Time",
            active_until as "active_until: Time", created_at as "created_at: Time", created_by, ended_at as "ended_at: Time"
        from absence where tenant_id = $1 and id = $2"#,
        change.tenant.0,
        id
    )
    .fetch_optional(change.connection())
    .await?;
    Ok(row.map(Absence::from))
}

/// The limit that the person or the substitute has reached.
async fn limit_of(
    change: &mut Change<'_>,
    absence: &Absence,
) -> Result<Option<Refusal>, StoreError> {
    let (tenant, at) = (change.tenant.0, change.note.at);
    let counts = sqlx::query!(
        r#"select p.of_person as "of_person!", p.of_pair as "of_pair!", (
                select count(*) from absence
                where tenant_id = $1 and substitute_id = $3 and active_until > $4 and ended_at is null
            ) as "of_substitute!"
        from (
            select count(*) as of_person, count(*) filter (where substitute_id = $3) as of_pair from absence
            where tenant_id = $1 and person_id = $2 and active_until > $4 and ended_at is null
        ) p"#,
        tenant,
        absence.person,
        absence.substitute,
        Time(at) as _
    )
    .fetch_one(change.connection())
    .await?;
    Ok(if counts.of_person >= OF_PERSON_MAX {
        Some(Refusal::TooManyOfPerson)
    } else if counts.of_pair >= OF_PAIR_MAX {
        Some(Refusal::TooManyOfPair)
    } else if counts.of_substitute >= OF_SUBSTITUTE_MAX {
        Some(Refusal::TooManyOfSubstitute)
    } else {
        None
    })
}

async fn insert(change: &mut Change<'_>, id: Uuid, absence: &Absence) -> Result<(), StoreError> {
    let (tenant, at, by) = (change.tenant.0, change.at, change.note.actor);
    sqlx::query!(
        "insert into absence (tenant_id, id, person_id, substitute_id, definition_key, active_from, active_until, created_at, created_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        tenant,
        id,
        absence.person,
        absence.substitute,
        absence.definition,
        Time(absence.from) as _,
        Time(absence.until) as _,
        Time(at) as _,
        by
    )
    .execute(change.connection())
    .await?;
    Ok(())
}

/// The absences of the same period that may be in a chain with this one. None if there are too many.
async fn around(
    change: &mut Change<'_>,
    absence: &Absence,
) -> Result<Option<Vec<Absence>>, StoreError> {
    let own = [absence.person.clone()];
    let mut held = links_of(change, absence, Side::Person, &own).await?;
    for (side, first) in [
        (Side::Person, &absence.substitute),
        (Side::Substitute, &absence.person),
    ] {
        let mut seen = BTreeSet::from([first.clone()]);
        let mut frontier = vec![first.clone()];
        for _ in 0..LINKS_MAX {
            let links = links_of(change, absence, side, &frontier).await?;
            frontier = links
                .iter()
                .map(|link| match side {
                    Side::Person => link.substitute.clone(),
                    Side::Substitute => link.person.clone(),
                })
                .filter(|person| seen.insert(person.clone()))
                .collect();
            held.extend(links);
            if held.len() > TOGETHER_MAX {
                return Ok(None);
            }
            if frontier.is_empty() {
                break;
            }
        }
    }
    Ok(Some(held))
}

/// The absences within the period that have one of these people on this side.
async fn links_of(
    change: &mut Change<'_>,
    period: &Absence,
    side: Side,
    people: &[String],
) -> Result<Vec<Absence>, StoreError> {
    let limit = i64::try_from(TOGETHER_MAX).expect("a small number") + 1;
    let (tenant, from, until) = (change.tenant.0, Time(period.from), Time(period.until));
    let rows = match side {
        Side::Person => {
            sqlx::query_as!(
                Row,
                r#"select id, person_id, substitute_id, definition_key, active_from as "active_from: Time",
                    active_until as "active_until: Time", created_at as "created_at: Time", created_by, ended_at as "ended_at: Time"
                from absence
                where tenant_id = $1 and person_id = any($2) and active_until > $3 and active_from < $4 and ended_at is null
                limit $5"#,
                tenant,
                people,
                from as _,
                until as _,
                limit
            )
            .fetch_all(change.connection())
            .await?
        }
        Side::Substitute => {
            sqlx::query_as!(
                Row,
                r#"select id, person_id, substitute_id, definition_key, active_from as "active_from: Time",
                    active_until as "active_until: Time", created_at as "created_at: Time", created_by, ended_at as "ended_at: Time"
                from absence
                where tenant_id = $1 and substitute_id = any($2) and active_until > $3 and active_from < $4 and ended_at is null
                limit $5"#,
                tenant,
                people,
                from as _,
                until as _,
                limit
            )
            .fetch_all(change.connection())
            .await?
        }
    };
    Ok(rows.into_iter().map(Absence::from).collect())
}

/// A side of an absence.
#[derive(Debug, Clone, Copy)]
enum Side {
    Person,
    Substitute,
}
