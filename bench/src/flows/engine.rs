//! The two-review approval on each measured engine: a start and two decisions, by the calls that the engine's documentation
//! recommends. On some engines a task is claimed before it is completed.

use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use hyper::Method;
use serde_json::{Value, json};

use super::Steps;
use crate::load::Connection;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Engine {
    Wrkflw,
    Flowable,
    Operaton,
    Restate,
}

/// Bearer tokens of the people in the flow. Other engines run without authentication.
#[derive(clap::Args, Clone)]
pub(super) struct Tokens {
    #[arg(long, env = "BENCH_AUTHOR", default_value = "", hide_env_values = true)]
    author: String,
    #[arg(
        long,
        env = "BENCH_REVIEWER",
        default_value = "",
        hide_env_values = true
    )]
    reviewer: String,
    #[arg(
        long,
        env = "BENCH_APPROVER",
        default_value = "",
        hide_env_values = true
    )]
    approver: String,
}

/// One caller: a connection, and the times of its steps.
pub(super) struct Caller {
    pub(super) connection: Connection,
    pub(super) tokens: Tokens,
    pub(super) steps: Steps,
}

/// The approved document, the same for all.
fn document() -> Value {
    json!({
        "documentId": "D-2041", "title": "Framework supply contract", "amount": 48250.5, "currency": "EUR",
        "owner": "m.keller", "department": "purchasing", "pages": 14, "checksum": "9f2c1d7e5b",
    })
}

impl Caller {
    /// Runs one flow from its start to its end. Checks the end if `check` is set.
    pub(super) async fn flow(
        &mut self,
        engine: Engine,
        key: &str,
        check: bool,
    ) -> anyhow::Result<()> {
        match engine {
            Engine::Wrkflw => self.wrkflw(key).await,
            Engine::Flowable => self.flowable(key, check).await,
            Engine::Operaton => self.operaton(key, check).await,
            Engine::Restate => self.restate(key).await,
        }
    }

    async fn step(
        &mut self,
        name: &'static str,
        method: Method,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let begun = Instant::now();
        let (status, answer) = self.connection.call(method, path, token, body).await?;
        self.steps.entry(name).or_default().push(begun.elapsed());
        if !status.is_success() {
            bail!("{name} {path}: {status} {answer}");
        }
        Ok(answer)
    }

    async fn wrkflw(&mut self, key: &str) -> anyhow::Result<()> {
        let Tokens {
            author,
            reviewer,
            approver,
        } = self.tokens.clone();
        let body = json!({
            "definitionKey": "document-approval", "entityType": "peers", "entityId": key,
            "data": { "title": "Framework supply contract", "link": document().to_string() },
        });
        let mut answer = self
            .step("start", Method::POST, "/v1/instances", &author, Some(&body))
            .await?;
        for token in [reviewer, approver] {
            let task = text(&answer["instance"]["states"][0]["tasks"][0]["id"])?.to_owned();
            let decide = format!("/v1/tasks/{task}/decide");
            let approve = json!({ "outcome": "APPROVE" });
            answer = self
                .step("decide", Method::POST, &decide, &token, Some(&approve))
                .await?;
        }
        let instance = &answer["instance"];
        ensure!(
            instance["outcome"] == "APPROVED",
            "not approved: {instance}"
        );
        Ok(())
    }

    async fn flowable(&mut self, key: &str, check: bool) -> anyhow::Result<()> {
        let body = json!({
            "processDefinitionKey": "review", "businessKey": key,
            "variables": [{ "name": "document", "value": document().to_string() }],
        });
        let path = "/process-api/runtime/process-instances";
        let started = self
            .step("start", Method::POST, path, "", Some(&body))
            .await?;
        let id = text(&started["id"])?.to_owned();
        for (review, who) in [(1, "anna"), (2, "bert")] {
            // The responses to start and complete do not name the next task.
            let path = format!("/process-api/runtime/tasks?processInstanceId={id}");
            let tasks = self.step("look up", Method::GET, &path, "", None).await?;
            let path = format!(
                "/process-api/runtime/tasks/{}",
                text(&tasks["data"][0]["id"])?
            );
            let claim = json!({ "action": "claim", "assignee": who });
            self.step("claim", Method::POST, &path, "", Some(&claim))
                .await?;
            let variable = json!({ "name": format!("review{review}"), "value": "APPROVE" });
            let complete = json!({ "action": "complete", "variables": [variable] });
            self.step("decide", Method::POST, &path, "", Some(&complete))
                .await?;
        }
        if check {
            let path = format!("/process-api/history/historic-process-instances/{id}");
            let (_, ended) = self.connection.call(Method::GET, &path, "", None).await?;
            ensure!(
                ended["endActivityId"] == "APPROVED",
                "not approved: {ended}"
            );
        }
        Ok(())
    }

    async fn operaton(&mut self, key: &str, check: bool) -> anyhow::Result<()> {
        let body = json!({
            "businessKey": key,
            "variables": { "document": { "value": document().to_string(), "type": "String" } },
        });
        let path = "/engine-rest/process-definition/key/review/start";
        let started = self
            .step("start", Method::POST, path, "", Some(&body))
            .await?;
        let id = text(&started["id"])?.to_owned();
        for (review, who) in [(1, "anna"), (2, "bert")] {
            let path = format!("/engine-rest/task?processInstanceId={id}");
            let tasks = self.step("look up", Method::GET, &path, "", None).await?;
            let path = format!("/engine-rest/task/{}", text(&tasks[0]["id"])?);
            let claim = json!({ "userId": who });
            self.step(
                "claim",
                Method::POST,
                &format!("{path}/claim"),
                "",
                Some(&claim),
            )
            .await?;
            let variables =
                json!({ "variables": { format!("review{review}"): { "value": "APPROVE" } } });
            self.step(
                "decide",
                Method::POST,
                &format!("{path}/complete"),
                "",
                Some(&variables),
            )
            .await?;
        }
        if check {
            let path = format!("/engine-rest/history/process-instance/{id}");
            let (_, ended) = self.connection.call(Method::GET, &path, "", None).await?;
            ensure!(ended["state"] == "COMPLETED", "not completed: {ended}");
        }
        Ok(())
    }

    async fn restate(&mut self, key: &str) -> anyhow::Result<()> {
        let flow = format!("/review/{key}");
        self.step(
            "start",
            Method::POST,
            &format!("{flow}/run/send"),
            "",
            Some(&document()),
        )
        .await?;
        for (review, who) in [(1, "anna"), (2, "bert")] {
            let decision = json!({ "n": review, "who": who, "outcome": "APPROVE" });
            self.step(
                "decide",
                Method::POST,
                &format!("{flow}/decide"),
                "",
                Some(&decision),
            )
            .await?;
        }
        // The call only delivers the decision; the flow ends later.
        let path = format!("/restate/workflow{flow}/attach");
        let end = self.step("wait", Method::GET, &path, "", None).await?;
        ensure!(end == "APPROVED", "not approved: {end}");
        Ok(())
    }
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value
        .as_str()
        .with_context(|| format!("{value} where an id was expected"))
}
