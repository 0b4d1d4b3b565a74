//! Managers, with their periods. The managers above a person never form a circle.

use super::reassessments::{self, Whose};
use super::{Change, Put, Run};
use crate::pool::transacted;
use crate::streams::Note;
use crate::time::Time;
use crate::{Store, StoreError};
use wrkflw_core::ids::TenantId;
use wrkflw_core::refusal::Refusal;

/// Limit of the managers above a person.
const HEIGHT_MAX: usize = 100;

/// Sets or removes a person's manager. Writes nothing if this changes nothing.
pub async fn put(
    store: &Store,
    tenant: TenantId,
    person: &str,
    manager: Option<&str>,
    run: Run,
    note: &Note<'_>,
) -> Result<Put, StoreError> {
    transacted(Box::pin(async move {
        let mut change = super::change(store, tenant, note, run).await?;
        let known = sqlx::query!(
            r#"select exists(select from person where tenant_id = $1 and id = $2) as "person!",
            $3::text is null or exists(select from person where tenant_id = $1 and id = $3) as "manager!""#,
            tenant.0,
            person,
            manager
        )
        .fetch_one(change.connection())
        .await?;
        if !known.person {
            return Ok(Put::Missing);
        }
        if let Some(manager) = manager {
            if !known.manager {
                return Ok(Put::Refused(Refusal::UnknownManager(manager.to_owned())));
            }
            if let Err(refusal) = may_manage(person, &line(&mut change, manager).await?) {
                return Ok(Put::Refused(refusal));
            }
        }
        if manage(&mut change, person, manager).await? {
            let whose = [(Whose::User(person), note.at)];
            reassessments::reassessment(&mut change, &whose).await?;
            let payload = serde_json::json!({ "person": person, "manager": manager });
            change.finish("MANAGER_PUT", &payload).await?;
        }
        Ok(Put::Done)
    }))
    .await
}

/// Whether the first of the line may manage the person. The others are the managers above.
fn may_manage(person: &str, line: &[String]) -> Result<(), Refusal> {
    let place = line.iter().position(|above| above == person);
    match place {
        Some(0) => Err(Refusal::OwnManager),
        Some(place) => {
            let above = line[..=place].iter().map(String::as_str);
            let circle = std::iter::once(person).chain(above);
            Err(Refusal::ManagerCircle(circle.map(str::to_owned).collect()))
        }
        None if line.len() > HEIGHT_MAX => Err(Refusal::TooHigh(HEIGHT_MAX)),
        None => Ok(()),
    }
}

/// The person and the managers above, upwards: at most [`HEIGHT_MAX`] managers.
async fn line(change: &mut Change<'_>, person: &str) -> Result<Vec<String>, StoreError> {
    let line = sqlx::query_scalar!(
        r#"with recursive line (person, height) as (
            select $2::text, 0
            union all
            select m.manager_id, line.height + 1
            from line join manager m on m.tenant_id = $1 and m.person_id = line.person and m.valid_to is null
            where line.height < $3::int
        )
        select person as "person!" from line order by height"#,
        change.tenant.0,
        person,
        i32::try_from(HEIGHT_MAX).expect("a small number")
    )
    .fetch_all(change.connection())
    .await?;
    Ok(line)
}

/// Changes the manager. False if this changes nothing.
async fn manage(
    change: &mut Change<'_>,
    person: &str,
    manager: Option<&str>,
) -> Result<bool, StoreError> {
    let ended = sqlx::query!(
        "update manager set valid_to = $4
         where tenant_id = $1 and person_id = $2 and valid_to is null and manager_id is distinct from $3",
        change.tenant.0,
        person,
        manager,
        Time(change.at) as _
    )
    .execute(change.connection())
    .await?;
    let Some(manager) = manager else {
        return Ok(ended.rows_affected() > 0);
    };
    // A period that began at this time has no length, so it is replaced.
    let begun = sqlx::query!(
        "insert into manager (tenant_id, person_id, manager_id, valid_from)
         select $1, $2, $3, $4
         where not exists (select from manager where tenant_id = $1 and person_id = $2 and valid_to is null)
         on conflict (tenant_id, person_id, valid_from) do update set manager_id = excluded.manager_id, valid_to = null",
        change.tenant.0,
        person,
        manager,
        Time(change.at) as _
    )
    .execute(change.connection())
    .await?;
    Ok(begun.rows_affected() > 0)
}
