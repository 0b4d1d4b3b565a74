//! Compares the versions of an export with the entries that published them.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::super::Problem;
use super::super::definitions::{VERSION, exported, published};
use super::super::rows::Expected;
use super::super::tree::LocatedProblem;
use crate::record::rows::{Columns, RecordedVersion};
use wrkflw_core::audit::{Entry, StreamKind};

/// The versions of a tenant that were not compared with an entry yet.
#[derive(Default)]
pub(super) struct Versions(BTreeMap<(String, u32), Columns>);

impl Versions {
    pub(super) fn line(&mut self, version: &RecordedVersion) {
        let columns = exported(version).into_iter();
        let columns = columns.map(|(name, value)| (name.to_owned(), value));
        let reference = &version.reference;
        let key = (reference.key.clone(), reference.version);
        self.0.insert(key, columns.collect());
    }

    /// If the entry published a version, compares that version with its line. The line may be missing if the entry `is_new`: versions are
    /// exported before entries.
    pub(super) fn entry(&mut self, entry: &Entry, is_new: bool, problems: &mut Vec<Problem>) {
        let (reference, row) = match published(entry) {
            Ok(Some(version)) => version,
            Ok(None) => return,
            Err(error) => {
                let detail = format!("its payload cannot be read: {error}");
                problems.push(Problem::new(Some(entry.seq), "payload", detail));
                return;
            }
        };
        let line = self.0.remove(&(reference.key, reference.version));
        if line.is_none() && is_new {
            return;
        }
        let mut expected = Expected::new(&VERSION);
        expected.add(row);
        expected.compare_all(&line, problems);
    }

    /// Reports the versions that no entry published.
    pub(super) fn end(&self, found: &mut Vec<LocatedProblem>) {
        let mut problems = Vec::new();
        Expected::new(&VERSION).compare_all(self.0.values(), &mut problems);
        let kind = StreamKind::Definition.name();
        let located = |problem| (kind.to_owned(), Uuid::nil(), problem);
        found.extend(problems.into_iter().map(located));
    }
}
