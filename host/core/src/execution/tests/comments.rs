//! Comments on an instance.

use super::directory::everybody;
use super::script::{Script, rejection};
use crate::command::Command;
use crate::event::Event;
use crate::execution::MENTIONS_MAX;
use crate::rejection::Rejection;

fn comment(script: &Script, mentions: &[&str]) -> Command {
    Command::Comment {
        instance: script.instance().id,
        comment: "Where is the receipt?".into(),
        mentions: mentions.iter().map(ToString::to_string).collect(),
    }
}

/// The fields and codes of what is wrong.
fn wrong(refused: Rejection) -> Vec<(String, String)> {
    let Rejection::Invalid(violations) = refused else {
        panic!("{refused:?}");
    };
    let pair = |one: crate::answer::Violation| (one.field, one.code);
    violations.into_iter().map(pair).collect()
}

#[test]
fn a_comment_mentions_each_person_once_and_asks_no_logic() {
    let mut script = Script::new().knowing(everybody).claimed();
    script.asked.clear();
    let before = script.instance().clone();
    let command = comment(&script, &["bob", "ann", "bob"]);
    let outcome = script.run("cid", &command).expect("a comment");
    let commented = Event::FlowCommented {
        comment: "Where is the receipt?".into(),
        mentions: vec!["bob".into(), "ann".into()],
    };
    assert_eq!(outcome.events, [commented]);
    assert!(script.asked.is_empty(), "{:?}", script.asked);
    let mut after = script.instance().clone();
    assert_eq!(after.revision, before.revision + 1);
    (after.revision, after.updated_at) = (before.revision, before.updated_at);
    assert_eq!(after, before);
}

#[test]
fn people_whom_nobody_knows_are_not_mentioned() {
    let mut script = Script::new().knowing(everybody).claimed();
    let before = script.instance().clone();
    let command = comment(&script, &["bob", "nobody"]);
    let refused = wrong(rejection(script.run("cid", &command)));
    assert_eq!(refused, [("/mentions/1".into(), "unknown_person".into())]);
    let many: Vec<_> = (0..=MENTIONS_MAX).map(|_| "bob").collect();
    let command = comment(&script, &many);
    let refused = wrong(rejection(script.run("cid", &command)));
    assert_eq!(refused, [("/mentions".into(), "too_many".into())]);
    let blank = Command::Comment {
        instance: before.id,
        comment: " \n".into(),
        mentions: Vec::new(),
    };
    let refused = wrong(rejection(script.run("cid", &blank)));
    assert_eq!(refused, [("/comment".into(), "required".into())]);
    assert_eq!(script.instance(), &before);
}

#[test]
fn a_suspended_and_an_ended_instance_take_comments() {
    let mut script = Script::new().knowing(everybody).claimed();
    let instance = script.instance().id;
    let suspend = Command::Suspend {
        instance,
        reason: "an audit".into(),
    };
    script.run("amy", &suspend).expect("a suspension");
    let command = comment(&script, &["bob"]);
    script.run("cid", &command).expect("a comment");
    let cancel = Command::Cancel {
        instance,
        reason: "no use".into(),
    };
    script.run("amy", &cancel).expect("an end");
    let ended = script.instance().clone();
    script.run("cid", &command).expect("a comment");
    let after = script.instance();
    assert_eq!(after.status, ended.status);
    assert_eq!(after.revision, ended.revision + 1);
}
