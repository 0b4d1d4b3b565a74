//! Schemas of flows: a schema is refused with a short reason, or it checks any document, with few and short violations.

use wrkflw_core::json::Json;
use wrkflw_core::schema::{MESSAGE_CHARS_MAX, Schema, VIOLATIONS_MAX};

/// The input is a schema and, each after a NUL, the documents to check.
pub(crate) fn run(data: &[u8]) {
    let Some(texts) = crate::parts(data) else {
        return;
    };
    let mut documents = texts.iter().filter_map(|text| Json::parse(text).ok());
    let Some(schema) = documents.next() else {
        return;
    };
    let rules = match Schema::compile(&schema) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(error.detail.chars().count() <= MESSAGE_CHARS_MAX + 1);
            return;
        }
    };
    // A schema is a document, too.
    for document in documents.chain([schema.clone(), Json::empty()]) {
        let violations = rules.violations(&document);
        assert!(violations.len() <= VIOLATIONS_MAX);
        for violation in &violations {
            assert!(violation.message.chars().count() <= MESSAGE_CHARS_MAX + 1);
        }
        assert_eq!(
            rules.violations(&document),
            violations,
            "the same each time"
        );
    }
}
