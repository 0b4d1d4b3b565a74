//! The sample instances of `wrkflw dev`: a document that was approved, one that waits for its review, and one for each page of the
//! sample product.
//!
//! A start makes an instance only if none is about its entity. So a later start adds nothing, and changes nothing that people
//! did. The next start continues an interrupted one.

use anyhow::{Context as _, Result};

use super::connection::DEV_TENANT;
use super::demo::FLOW;
use crate::roles;
use wrkflw_console::SampleDocument;
use wrkflw_core::command::Command;
use wrkflw_core::ids::{InstanceId, TaskId, TenantId};
use wrkflw_core::instance::Entity;
use wrkflw_core::json::Json;
use wrkflw_engine::{Engine, Identity, Rendered, Request, Trace};
use wrkflw_store::entities;
use wrkflw_store::viewer::Viewer;

/// The outcome of every decision on a sample.
const APPROVE: &str = "APPROVE";
/// The type of the entities of the samples that only the console shows.
const DOCUMENT: &str = "document";
const AUTHOR: &str = "author";

/// The documents of the sample product, each of another type.
pub(super) const PRODUCT: &[SampleDocument] = &[
    document("rfa", "RFA-0042", "Facade of building C"),
    document("transmittal", "TRM-0107", "Drawings of the substructure"),
    document("circulation", "CIR-0013", "Revised site rules"),
    document("correspondence", "COR-0218", "Reply to the surveyor"),
];

const fn document(
    entity_type: &'static str,
    entity_id: &'static str,
    title: &'static str,
) -> SampleDocument {
    SampleDocument {
        entity_type,
        entity_id,
        title,
    }
}

/// An instance about a document.
#[derive(Clone, Copy)]
struct Sample {
    document: SampleDocument,
    /// Who approves, in this order, and with which comment.
    approvals: &'static [(&'static str, &'static str)],
}

const SAMPLES: [Sample; 2] = [
    Sample {
        document: document(DOCUMENT, "sample-approved", "Travel policy"),
        approvals: &[
            ("reviewer", "Clear and complete."),
            ("approver", "Valid from today."),
        ],
    },
    Sample {
        document: document(DOCUMENT, "sample-open", "Office budget"),
        approvals: &[],
    },
];

/// Makes the missing samples. Failures are only logged, because the host works without samples.
pub(super) async fn prepare(engine: &Engine, tenant: TenantId) {
    let of_product = PRODUCT.iter().map(|document| Sample {
        document: *document,
        approvals: &[],
    });
    for sample in SAMPLES.into_iter().chain(of_product) {
        if let Err(error) = sample.prepare(engine, tenant).await {
            let entity = sample.entity();
            let entity = format!("{}/{}", entity.kind, entity.id);
            tracing::warn!(%entity, error = format!("{error:#}"), "a sample could not be made");
        }
    }
}

impl Sample {
    fn entity(&self) -> Entity {
        Entity {
            kind: self.document.entity_type.to_owned(),
            id: self.document.entity_id.to_owned(),
        }
    }

    async fn prepare(&self, engine: &Engine, tenant: TenantId) -> Result<()> {
        let (viewer, entity) = (Viewer::all(tenant), self.entity());
        let reader = engine.reader();
        let known = entities::history(reader, &viewer, &entity, None, None, 2);
        let id = match known.await?.found.as_slice() {
            [] => {
                self.start(engine, tenant).await?;
                let history = entities::history(reader, &viewer, &entity, None, None, 1);
                let started = history.await?.found.pop();
                started.context("the started instance is not found")?.id
            }
            // Only an interrupted start leaves a sample with open approvals.
            [only] if only.status == "RUNNING" => only.id,
            _ => return Ok(()),
        };
        for (person, comment) in self.approvals {
            approve(engine, &identity(tenant, person), InstanceId(id), comment).await?;
        }
        Ok(())
    }

    async fn start(&self, engine: &Engine, tenant: TenantId) -> Result<()> {
        let command = Command::Start {
            definition: FLOW.to_owned(),
            entity: self.entity(),
            data: Json::of(&serde_json::json!({ "title": self.document.title })),
            lineage: None,
        };
        execute(engine, &identity(tenant, AUTHOR), command).await
    }
}

/// Approves the open task of the instance that this person may decide. Does nothing if there is none: they have decided before.
async fn approve(engine: &Engine, who: &Identity, id: InstanceId, comment: &str) -> Result<()> {
    let Some(task) = open_task(engine, who, id).await? else {
        return Ok(());
    };
    let command = Command::Decide {
        task,
        outcome: APPROVE.to_owned(),
        comment: Some(comment.to_owned()),
        input: Json::empty(),
    };
    execute(engine, who, command).await
}

async fn open_task(engine: &Engine, who: &Identity, id: InstanceId) -> Result<Option<TaskId>> {
    let explained = engine.actions().on_instance(who, id).await?;
    let mut allowed = explained.actions.iter().filter(|action| action.allowed);
    let decision = allowed
        .find(|action| action.action == "decide" && action.outcome.as_deref() == Some(APPROVE));
    Ok(decision.and_then(|action| action.task))
}

async fn execute(engine: &Engine, who: &Identity, command: Command) -> Result<()> {
    let unread = Rendered {
        status: 200,
        body: String::new(),
        headers: String::new(),
    };
    let request = Request {
        who,
        command,
        if_match: None,
        idempotency: None,
        dry_run: false,
        trace: Trace::default(),
        job: None,
        render: &|_| unread.clone(),
    };
    engine.execute(request).await?;
    Ok(())
}

fn identity(tenant: TenantId, person: &str) -> Identity {
    Identity {
        tenant,
        tenant_name: DEV_TENANT.to_owned(),
        subject: person.to_owned(),
        roles: vec![roles::USER.to_owned()],
        embedded_by: None,
    }
}
