//! Finds an instance or a task by the beginning of its id, for people who type ids.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::conditional::conditional;
use super::extract::{Caller, Path};
use super::layers::without_query;
use super::problem::Problem;
use super::shapes::{IdKind, NamedStatus};
use wrkflw_core::ids::InstanceId;
use wrkflw_engine::validation::check_id;
use wrkflw_engine::{Engine, Error, Identity};
use wrkflw_store::prefixes::{self, Candidate};

/// How many instances, and how many tasks, are shown.
const CANDIDATES_MAX: usize = 5;
/// The digits of an id.
const DIGITS: usize = 32;
/// The shortest beginning.
const DIGITS_MIN: usize = 4;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(find));
    without_query(conditional(single))
}

/// An instance or a task whose id begins as requested.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IdMatch {
    /// Of the task, or of the instance.
    pub id: Uuid,
    #[schema(value_type = IdKind)]
    pub kind: &'static str,
    pub instance_id: Uuid,
    pub definition_key: String,
    pub entity_type: String,
    pub entity_id: String,
    /// The label of a task, the title of an instance.
    pub title: Option<String>,
    #[schema(value_type = NamedStatus)]
    pub status: String,
}

/// The instances and tasks whose ids begin as requested.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct IdMatches {
    /// Instances first; at most 5 of each kind.
    pub data: Vec<IdMatch>,
    /// Fewer than 5 of a kind are shown, and there may be more: the caller does not see the others of the first 500 of this kind. Name more
    /// digits.
    pub more: bool,
}

/// The instances and tasks whose id begins with at least four digits, at most 5 of each kind. Hyphens do not count.
#[utoipa::path(get, path = "/v1/ids/{prefix}", tag = "instances", operation_id = "findIds", params(("prefix" = String, Path, format = "name")),
    responses((status = 200, body = IdMatches)))]
pub(super) async fn find(
    State(app): State<App>,
    Caller(who): Caller,
    Path(prefix): Path<String>,
) -> Result<axum::Json<IdMatches>, Problem> {
    app.engine.permit(&who, "instance:read").await?;
    let viewer = app.engine.viewing(&who, "task:read").await?;
    check_id("/prefix", &prefix)?;
    let range = range(&prefix).ok_or_else(|| {
        let form = format!("{DIGITS_MIN} to {DIGITS} hexadecimal digits, with or without hyphens");
        Error::malformed("/prefix", form)
    })?;
    let reader = app.engine.reader();
    let (candidates, more) = prefixes::ids_between(reader, &viewer, range, CANDIDATES_MAX).await?;
    let mut data = Vec::new();
    for candidate in candidates {
        data.extend(seen(&app.engine, &who, candidate).await?);
    }
    if data.is_empty() && !more {
        let what = "instance or task whose id begins with";
        return Err(Error::NotFound { what, id: prefix }.into());
    }
    Ok(axum::Json(IdMatches { data, more }))
}

/// The candidate as the caller may see it. It is read as the caller, and left out if the caller does not see it.
async fn seen(
    engine: &Engine,
    who: &Identity,
    candidate: Candidate,
) -> Result<Option<IdMatch>, Problem> {
    let stored = match engine.read(who, InstanceId(candidate.instance)).await {
        Ok(stored) => stored,
        Err(Error::NotFound { .. } | Error::Permission(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let instance = &stored.instance;
    let mut found = IdMatch {
        id: candidate.instance,
        kind: "instance",
        instance_id: candidate.instance,
        definition_key: instance.definition.key.clone(),
        entity_type: instance.entity.kind.clone(),
        entity_id: instance.entity.id.clone(),
        title: instance.labels.title.clone(),
        status: instance.status.name().to_owned(),
    };
    let Some(id) = candidate.task else {
        return Ok(Some(found));
    };
    let mut tasks = instance
        .state_instances()
        .flat_map(|state_instance| &state_instance.tasks);
    Ok(tasks.find(|task| task.id.0 == id).map(|task| {
        found.id = id;
        found.kind = "task";
        found.title = Some(task.label.clone());
        task.status.name().clone_into(&mut found.status);
        found
    }))
}

/// The first and the last id with this beginning.
fn range(prefix: &str) -> Option<(Uuid, Uuid)> {
    let digits: String = prefix.chars().filter(|char| *char != '-').collect();
    let fits = (DIGITS_MIN..=DIGITS).contains(&digits.len());
    if !fits || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let filled = |with: &str| {
        let text = format!("{digits}{}", with.repeat(DIGITS - digits.len()));
        Uuid::try_parse(&text).ok()
    };
    Some((filled("0")?, filled("f")?))
}

#[cfg(test)]
mod tests {
    use super::range;
    use uuid::Uuid;

    #[test]
    fn a_beginning_is_a_range_of_ids() {
        let id = Uuid::from_u128(0x01a2_0416_5f62_7350_986a_13b0_f047_7285);
        for prefix in ["01a2", "01a20416-5f6", "01A204165f627350", &id.to_string()] {
            let (first, last) = range(prefix).expect("a range");
            assert!(first <= id && id <= last, "{prefix}");
            assert_eq!(first == last, prefix == id.to_string());
        }
        for wrong in ["", "01a", "01ag", "document/9", &"0".repeat(33)] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }
}
