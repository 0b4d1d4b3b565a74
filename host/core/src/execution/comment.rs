//! Comments on an instance. They change only its history. So they are also accepted while it is suspended and after its end, and
//! flow logic does not get them.

use std::collections::BTreeSet;

use super::assign::LookupPurpose;
use super::{Execution, ExecutionError, Phase};
use crate::answer::Violation;
use crate::command::Command;
use crate::event::Event;
use crate::lookup::{Findings, Lookup};
use crate::rejection::Rejection;

/// How many people a comment may mention.
pub const MENTIONS_MAX: usize = 20;

/// Records the comment, if the directory knows everybody whom it mentions. A person who is named twice is mentioned once.
pub(super) fn add(execution: &mut Execution<'_>, command: &Command) -> Result<(), ExecutionError> {
    let Command::Comment {
        comment, mentions, ..
    } = command
    else {
        unreachable!("called only for a comment")
    };
    if comment.trim().is_empty() {
        return Err(Rejection::invalid("/comment", "required", "say something").into());
    }
    if mentions.len() > MENTIONS_MAX {
        let message = format!("a comment mentions at most {MENTIONS_MAX} people");
        return Err(Rejection::invalid("/mentions", "too_many", message).into());
    }
    let commented = Event::FlowCommented {
        comment: comment.clone(),
        mentions: mentions.clone(),
    };
    if mentions.is_empty() {
        execution.emit(commented);
        return Ok(());
    }
    let lookup = Lookup {
        people: mentions.iter().cloned().collect(),
        ..Lookup::default()
    };
    execution.phase = Phase::Lookup(lookup, LookupPurpose::Comment(Box::new(commented)));
    Ok(())
}

/// Refuses people whom the directory does not know, each with a pointer to where they are named.
pub(super) fn mentioned_found(
    execution: &mut Execution<'_>,
    mut commented: Event,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    if let Event::FlowCommented { mentions, .. } = &mut commented {
        let unknown = mentions.iter().enumerate();
        let unknown = unknown.filter(|(_, person)| !findings.people.contains(*person));
        let violations: Vec<_> = unknown
            .map(|(place, person)| Violation {
                expected: None,
                field: format!("/mentions/{place}"),
                code: "unknown_person".to_owned(),
                message: format!("the directory does not know {person}"),
            })
            .collect();
        if !violations.is_empty() {
            return Err(Rejection::Invalid(violations).into());
        }
        let mut seen = BTreeSet::new();
        mentions.retain(|person| seen.insert(person.clone()));
    }
    execution.emit(commented);
    Ok(())
}
