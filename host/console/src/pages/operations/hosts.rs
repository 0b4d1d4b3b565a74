//! The hosts that run: a panel, and their list.

use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;

use super::{NAMED_MAX, Panel, PanelItem, ROOT, trail};
use crate::api::Trouble;
use crate::language::Words;
use crate::list::{Cell, Listing, Table};
use crate::session::{Answer, Visitor};
use crate::shell::page;

/// The answer of the API.
#[derive(Deserialize)]
pub(super) struct Hosts {
    data: Vec<Host>,
    versions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Host {
    name: String,
    version: String,
    roles: Vec<String>,
    started_at: Timestamp,
    seen_at: Timestamp,
}

impl Hosts {
    /// Warnings about all hosts together: several versions, and roles that no host has.
    fn warnings(&self, w: Words) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.versions.len() > 1 {
            let versions = self.versions.join(", ");
            warnings.push(w.with("hosts-versions", "versions", &versions));
        }
        let has = |role: &str| {
            let mut hosts = self.data.iter();
            hosts.any(|host| host.roles.iter().any(|one| one == role))
        };
        for role in ["relay", "timers", "notifier"] {
            if !has(role) {
                warnings.push(w.t(&format!("hosts-without-{role}")).into_owned());
            }
        }
        warnings
    }

    fn are_of_one_version(&self) -> bool {
        self.versions.len() < 2
    }
}

pub(super) fn panel(visitor: &Visitor, found: Result<Hosts, Trouble>) -> Panel {
    let w = visitor.w;
    let mut panel = Panel::empty(visitor, "hosts", format!("{ROOT}/hosts"));
    match found {
        Ok(hosts) => {
            panel.count = w.number(hosts.data.len());
            panel.is_bad = !hosts.are_of_one_version();
            panel.warnings = hosts.warnings(w);
            let line = |host: Host| PanelItem {
                address: String::new(),
                name: host.name,
                detail: format!("{} {}", host.version, host.roles.join(", ")),
            };
            panel.named = hosts.data.into_iter().take(NAMED_MAX).map(line).collect();
        }
        Err(trouble) => panel.refusal = trouble.detail,
    }
    panel
}

pub(super) async fn list(visitor: Visitor) -> Answer {
    let w = visitor.w;
    let hosts: Hosts = visitor.get("/v1/hosts").await?;
    let row = |host: &Host| {
        let version = if hosts.are_of_one_version() {
            Cell::text(host.version.as_str())
        } else {
            Cell::badge(host.version.as_str(), "waiting")
        };
        vec![
            Cell::text(host.name.as_str()),
            version,
            Cell::text(host.roles.join(", ")),
            Cell::when(host.started_at, w),
            Cell::when(host.seen_at, w),
        ]
    };
    let rows = hosts.data.iter().map(row).collect();
    let heading = w.t("panel-hosts").into_owned();
    let columns = [
        "column-host",
        "column-version",
        "column-roles",
        "column-started",
        "column-seen",
    ];
    let table = Table::new(w, &heading, &columns, rows);
    let about = w.t("panel-hosts-about").into_owned();
    let listing = Listing {
        trail: trail(&visitor),
        about: [vec![about], hosts.warnings(w)].concat().join(" "),
        ..Listing::new(&visitor, "operations", heading, table).await
    };
    Ok(page(StatusCode::OK, &listing))
}
