//! An instance as large as it may become fits into the largest question.

use proptest::prelude::*;

use super::lower::{decision, event, snapshot};
use crate::size::size;
use jiff::Timestamp;
use wrkflw_core::actor::Actor;
use wrkflw_core::instance::Decision;
use wrkflw_core::json::Json;
use wrkflw_core::question::{Facts, Occurrence, Source};
use wrkflw_core::shown::samples::{Random, input_of};
use wrkflw_core::shown::{
    COMMENT_BYTES_MAX, CONFIG_BYTES_MAX, DATA_BYTES_MAX, FACTS_BYTES_MAX, check, check_actor,
};

/// In as many groups as anybody may act with.
fn busiest(random: &mut Random) -> Actor {
    let mut actor = Actor {
        id: random.name(800),
        on_behalf_of: Some(random.name(800)),
        ..Actor::host()
    };
    loop {
        let before = actor.clone();
        actor.groups.push(random.name(200));
        actor.permissions.push(random.name(128));
        if check_actor(&actor).is_err() {
            return before;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_an_instance_grew_to_it_can_be_asked_about(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let instance = random.largest();
        prop_assert_eq!(check(&instance), Ok(()));
        let config = input_of(CONFIG_BYTES_MAX);
        let tenant = "t".repeat(256);
        let facts = Facts {
            now: Timestamp::UNIX_EPOCH,
            tenant: &tenant,
            config: &config,
            instance: &instance,
        };
        let source = Source::Task {
            task: instance.id.to_string(),
            actor: busiest(&mut random),
            comment: Some("c".repeat(COMMENT_BYTES_MAX)),
        };
        let occurrence = Occurrence {
            state_instance: Some(instance.id.to_string()),
            trigger: "T".repeat(256),
            source,
            input: input_of(DATA_BYTES_MAX),
        };
        let bytes = size(&snapshot(&facts)) + size(&event(&occurrence));
        prop_assert!(bytes <= FACTS_BYTES_MAX, "{bytes} bytes");
        prop_assert!(bytes > FACTS_BYTES_MAX / 2, "{bytes} bytes are not much");
    }
}

#[test]
fn what_is_left_out_says_so() {
    let (at, input) = (
        Timestamp::UNIX_EPOCH,
        Json::parse(r#"{"a":1}"#).expect("JSON"),
    );
    let made = Decision {
        outcome: "GO".into(),
        actor: "ann".into(),
        on_behalf_of: None,
        comment: Some("fine".into()),
        input,
        decided_at: at,
    };
    let told = decision(&made, true);
    assert_eq!((told.omitted, &*told.input), (false, r#"{"a":1}"#));
    let unsent = decision(&made, false);
    assert_eq!(
        (unsent.omitted, &*unsent.input, unsent.comment),
        (true, "{}", None)
    );
    assert_eq!(unsent.actor, "ann");
}
