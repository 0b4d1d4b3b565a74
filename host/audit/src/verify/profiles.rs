//! Verifies the engine profiles that evidence names: each is stored, and its name is its digest.

use std::collections::BTreeMap;

use serde_json::json;
use uuid::Uuid;

use super::Problem;
use super::rows::{Expected, Table};
use crate::record::Snapshot;
use crate::record::rows::TableRows;
use wrkflw_core::json::Json;

/// The number of different profiles that are verified. Hosts make one per version of the program and its settings.
const PROFILES_MAX: usize = 10_000;
/// The text before a profile's digest. Evidence is canonical JSON with sorted members. Only `requestId`, `timeZones` and `version` follow
/// `profile`, and quotes in strings are escaped. So the last match is the member itself.
const MEMBER: &str = r#""profile":""#;

static PROFILE: Table = Table {
    name: "engine_profile",
    code: "engine_profile",
    key: &["digest"],
    hidden: &["profile"],
};

/// The named profiles, each with the entry that named it first.
#[derive(Default)]
pub(super) struct Profiles(BTreeMap<String, (Uuid, u64)>);

impl Profiles {
    pub(super) fn see(&mut self, evidence: &Json, (instance, seq): (Uuid, u64)) {
        let text = evidence.as_str();
        let Some(begins) = text.rfind(MEMBER).map(|at| at + MEMBER.len()) else {
            return;
        };
        let digest = text[begins..].split('"').next().unwrap_or_default();
        if !self.0.contains_key(digest) && self.0.len() < PROFILES_MAX {
            self.0.insert(digest.to_owned(), (instance, seq));
        }
    }

    /// Compares the named profiles with the stored ones, and forgets them.
    pub(super) async fn compare<S: Snapshot>(
        &mut self,
        snapshot: &mut S,
    ) -> Result<Vec<(Uuid, Problem)>, S::Error> {
        let named = std::mem::take(&mut self.0);
        // Hosts write digests only. The chain reports an entry that was changed.
        let is_digest =
            |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let mut found = Vec::new();
        for (digest, (instance, seq)) in named {
            if !is_digest(&digest) {
                continue;
            }
            let (mut expected, mut problems) = (Expected::new(&PROFILE), Vec::new());
            expected.add(vec![("digest", json!(digest)), ("profile", json!(digest))]);
            let rows = snapshot
                .table(TableRows::EngineProfiles(std::slice::from_ref(&digest)))
                .await?;
            expected.compare_all(&rows, &mut problems);
            let placed = problems.into_iter().map(|problem| Problem {
                seq: Some(seq),
                ..problem
            });
            found.extend(placed.map(|problem| (instance, problem)));
        }
        Ok(found)
    }
}
