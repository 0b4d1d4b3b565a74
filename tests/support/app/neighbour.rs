//! Another tenant of the same host, with document approval and its own people.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_core::ids::VersionRef;
use wrkflw_core::json::Json;
use wrkflw_engine::Identity;

use super::{ADMIN, Answer, Host, TestApp};
use wrkflw_store::directory::tenants;

const TENANT: &str = "neighbour";

/// The tenant `neighbour`. Its `admin` is in every group, and so is `reviewer`, who may decide what `admin` requests.
pub(crate) struct Neighbour {
    pub(crate) host: Host,
    /// The `Authorization` header of `admin`.
    pub(crate) admin: String,
}

impl Neighbour {
    pub(crate) async fn of(app: &TestApp) -> Neighbour {
        let (store, now) = (app.store(), app.engine.clock().now());
        let roles = BTreeMap::from([("admin", ADMIN)]);
        let tenant = tenants::ensure_tenant(store, TENANT, &roles, now).await;
        let who = Identity {
            tenant: tenant.expect("a tenant"),
            tenant_name: TENANT.to_owned(),
            subject: "admin".to_owned(),
            roles: vec!["admin".to_owned()],
            embedded_by: None,
        };
        let (key, config) = ("document-approval", Json::empty());
        let published =
            app.engine
                .definitions()
                .publish(&who, key, (DOCUMENT_APPROVAL, &config), None);
        published.await.expect("a version");
        let version = VersionRef {
            key: key.to_owned(),
            version: 1,
        };
        let active = app
            .engine
            .definitions()
            .activate(&who, &version, true)
            .await;
        active.expect("an active version");
        let host = app.host();
        let admin = format!("Bearer {}", token(&host, "admin"));
        let neighbour = Neighbour { host, admin };
        for person in ["admin", "reviewer"] {
            let path = format!("/v1/people/{person}");
            let body = json!({ "name": person });
            neighbour.send("PUT", &path, body).await.expect(200);
        }
        for group in ["authors", "reviewers", "approvers"] {
            let path = format!("/v1/groups/{group}");
            let body = json!({ "name": group });
            neighbour.send("PUT", &path, body).await.expect(200);
            for person in ["admin", "reviewer"] {
                let path = format!("{path}/members/{person}");
                neighbour.send("PUT", &path, json!({})).await.expect(200);
            }
        }
        neighbour
    }

    /// A bearer token of one of its people.
    pub(crate) fn token(&self, person: &str) -> String {
        token(&self.host, person)
    }

    /// Sends a request as `admin`.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        let headers = [("authorization", self.admin.as_str())];
        let body = (method != "GET").then_some(body);
        self.host.send("", method, path, &headers, body).await
    }

    /// Starts document approval as `admin`. The whole answer.
    pub(crate) async fn start(&self, entity: &str) -> Value {
        let body = json!({
            "definitionKey": "document-approval", "entityType": "document", "entityId": entity,
            "data": { "title": "A plan" },
        });
        let started = self.send("POST", "/v1/instances", body);
        started.await.expect(201)
    }
}

fn token(host: &Host, person: &str) -> String {
    host.token_of(person, TENANT, &["admin"])
}
