//! An instance inside of a page of a product: the banner, the form of a decision, and the timeline, as parts that the element
//! `<wrkflw-instance>` shows. `docs/embedding.md` describes it.
//!
//! A request carries an embed token and comes from the origin that the token names. Every request is a POST: browsers name the origin
//! of every POST, and a token must not be part of an address. The token is valid only for the two paths of this module.

use askama::Template;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use uuid::Uuid;

use wrkflw_engine::{Embedding, EmbeddingScope, Identity};
use wrkflw_server::http::auth::Claims;

use super::instance::act::{self, Acted};
use super::instance::banner::Banner;
use super::instance::timeline::Timeline;
use super::instance::{self, InstancePageQuery, LoadedInstance};
use super::{live, trouble};
use crate::Console;
use crate::api::Trouble;
use crate::data::{Action, History, Refusal};
use crate::form::Form;
use crate::language::Words;
use crate::posted::{self, Fields};
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

/// Seconds for which a browser need not ask again whether it may send a request.
const PREFLIGHT_SECONDS: &str = "600";

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/embed/instance", post(show).options(preflight))
        .route("/embed/live", post(follow).options(preflight))
}

/// The person and the instance of an embed token.
struct Embedded {
    visitor: Visitor,
    embedding: Embedding,
}

/// A decision that was just made.
struct Decided {
    task: String,
    outcome: String,
}

#[derive(Template)]
#[template(path = "embed.html")]
struct Parts {
    shell: Shell,
    banner: Banner,
    form: Option<Form>,
    timeline: Timeline,
    decided: Option<Decided>,
}

/// Allows a page to send its request with a token. The answer then depends on the token, which a browser does not send yet.
async fn preflight(headers: HeaderMap) -> Response {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let allowed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, accept-language, content-type",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS),
    ];
    let allowed = allowed.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let response = (StatusCode::NO_CONTENT, HeaderMap::from_iter(allowed)).into_response();
    readable(response, origin)
}

/// Lets the page with this origin read a response.
fn readable(mut response: Response, origin: &HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    let own = [
        (header::VARY, "origin, authorization, accept-language"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "cross-origin",
        ),
    ];
    headers.extend(own.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// The person of the token of a request, if the request comes from the token's page.
async fn admitted(console: &Console, headers: &HeaderMap) -> Result<Embedded, Response> {
    let w = Words::of(headers);
    let refused = |status, text| trouble::fragment(status, &w.t(text));
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Err(refused(StatusCode::FORBIDDEN, "embed-origin"));
    };
    let token = headers.get(header::AUTHORIZATION);
    let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let found = token.and_then(|token| console.app.engine.embeddings().verify(token));
    let embedding = found.ok_or_else(|| {
        // The page reads it, gets a new token, and tries again.
        readable(refused(StatusCode::UNAUTHORIZED, "embed-token"), origin)
    })?;
    if origin.as_bytes() != embedding.origin.as_bytes() {
        return Err(refused(StatusCode::FORBIDDEN, "embed-origin"));
    }
    let claims = Claims {
        subject: embedding.subject.clone(),
        tenant: embedding.tenant.clone(),
        roles: embedding.roles.clone(),
    };
    let known = console.app.identity(claims).await.map_err(|problem| {
        tracing::warn!(detail = problem.detail, "an embed token cannot be checked");
        let unreachable = refused(StatusCode::SERVICE_UNAVAILABLE, "embed-unreachable");
        readable(unreachable, origin)
    })?;
    let who = Identity {
        embedded_by: Some(embedding.issuer.clone()),
        ..known
    };
    Ok(Embedded {
        visitor: Visitor::embedded(console, who, embedding.until(), headers),
        embedding,
    })
}

/// Shows the instance; with an action also its form, its effects, or its result.
async fn show(State(console): State<Console>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let embedded = match admitted(&console, &parts.headers).await {
        Ok(embedded) => embedded,
        Err(refused) => return refused,
    };
    let shown = match posted::fields(body).await {
        Ok(fields) => embedded.answer(&fields).await,
        Err(halt) => Err(halt),
    };
    embedded.readable(shown.unwrap_or_else(Halt::into_response))
}

/// Tells the page that something has happened to the instance.
async fn follow(State(console): State<Console>, headers: HeaderMap) -> Response {
    match admitted(&console, &headers).await {
        Ok(embedded) => {
            // The stream of the API ends with the token.
            let instance = Some(embedded.embedding.instance);
            let stream = live::follow(&embedded.visitor, instance, std::future::pending()).await;
            embedded.readable(stream)
        }
        Err(refused) => refused,
    }
}

impl Embedded {
    fn readable(&self, response: Response) -> Response {
        let origin = HeaderValue::try_from(&self.embedding.origin);
        readable(response, &origin.expect("it was a header of this request"))
    }

    fn id(&self) -> Uuid {
        self.embedding.instance
    }

    async fn answer(&self, fields: &Fields) -> Answer {
        let mut query = act::query_of(fields);
        query.queue.clear();
        let loaded = self.load().await?;
        if query.action.is_empty() {
            return self.render(loaded, None, None, StatusCode::OK).await;
        }
        self.check(&query).await?;
        if fields.get("step").is_empty() {
            let form = act::chosen_form(&self.visitor, &loaded, &query).await?;
            return self.render(loaded, form, None, StatusCode::OK).await;
        }
        match act::run(&self.visitor, loaded, &query, fields).await? {
            Acted::Done(action) => {
                let decided = Some(Decided::of(&action));
                let loaded = self.load().await?;
                self.render(loaded, None, decided, StatusCode::OK).await
            }
            Acted::Shown {
                mut loaded,
                form,
                status,
            } => {
                self.confine(&mut loaded);
                self.render(*loaded, Some(*form), None, status).await
            }
        }
    }

    async fn load(&self) -> Result<LoadedInstance, Halt> {
        let mut loaded = instance::load(&self.visitor, self.id(), "").await?;
        self.confine(&mut loaded);
        Ok(loaded)
    }

    /// Keeps only the decisions, and refuses them if the page may only show the instance.
    fn confine(&self, loaded: &mut LoadedInstance) {
        let actions = &mut loaded.actions.actions;
        actions.retain(|action| action.action == "decide");
        if self.embedding.scope == EmbeddingScope::Decide {
            return;
        }
        for action in actions {
            action.allowed = false;
            action.refusal = Some(Refusal {
                code: "read_only".to_owned(),
                message: self.visitor.w.t("embed-read-only").into_owned(),
            });
        }
    }

    /// Fails unless it is the decision of a task of this instance, and the page may decide.
    async fn check(&self, query: &InstancePageQuery) -> Result<(), Halt> {
        let refuse = |text| {
            self.visitor.halt(&Trouble {
                status: StatusCode::FORBIDDEN.as_u16(),
                detail: self.visitor.w.t(text).into_owned(),
                ..Trouble::default()
            })
        };
        if self.embedding.scope != EmbeddingScope::Decide {
            return Err(refuse("embed-read-only"));
        }
        if query.action != "decide" {
            return Err(refuse("embed-decides-alone"));
        }
        let history = self.history().await?;
        let mut tasks = history.data.iter().flat_map(|state| &state.tasks);
        if tasks.any(|task| task.id.to_string() == query.task) {
            return Ok(());
        }
        Err(refuse("embed-decides-alone"))
    }

    async fn history(&self) -> Result<History, Halt> {
        let path = format!("/v1/instances/{}/history", self.id());
        self.visitor.get(&path).await
    }

    async fn render(
        &self,
        loaded: LoadedInstance,
        form: Option<Form>,
        decided: Option<Decided>,
        status: StatusCode,
    ) -> Answer {
        let visitor = &self.visitor;
        let history = self.history().await?;
        let banner = Banner::of(&loaded, visitor);
        let parts = Parts {
            shell: Shell::bare(visitor, banner.title.clone()),
            timeline: Timeline::of(history, &loaded.instance, visitor).await,
            // A button that keeps a draft needs a page to return to. The preview keeps the draft, too.
            form: form.map(|form| Form {
                draft: None,
                ..form
            }),
            banner,
            decided,
        };
        Ok(page(status, &parts))
    }
}

impl Decided {
    fn of(action: &Action) -> Decided {
        let task = action.task_id.map(|task| task.to_string());
        Decided {
            task: task.unwrap_or_default(),
            outcome: action.outcome.clone().unwrap_or_default(),
        }
    }
}
