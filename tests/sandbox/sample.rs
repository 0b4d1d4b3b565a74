//! The sample flow that the binary carries, as the sandbox runs it.

use wrkflw::domain::answer::Verdict;
use wrkflw::domain::check;
use wrkflw::sample::DOCUMENT_APPROVAL;

use super::*;

#[tokio::test]
async fn the_sample_is_admitted_and_its_graph_is_sound() {
    let admitted = sandbox().admit(DOCUMENT_APPROVAL, &json("{}")).await;
    let admission = admitted.expect("admitted");
    assert_eq!(check::check(&admission.graph), []);
    assert_eq!(admission.graph.initial, "Submitted");
    let sdk = admission.sdk.expect("the SDK says who it is");
    assert!(sdk.contains(r#""sdk":"wrkflw-guest""#), "{sdk}");
}

#[tokio::test]
async fn a_config_it_does_not_know_is_refused() {
    let refused = sandbox()
        .admit(DOCUMENT_APPROVAL, &json(r#"{"reviwers":"x"}"#))
        .await;
    let Err(wrkflw::wasm::AdmitError::Rejected(problems)) = refused else {
        panic!("expected to be refused, got {refused:?}");
    };
    assert_eq!(problems[0].code, "config_invalid");
}

#[tokio::test]
async fn a_start_with_good_data_is_allowed() {
    let sandbox = sandbox();
    let (config, instance) = (json("{}"), instance(r#"{"title":"Budget"}"#));
    let facts = Facts {
        now: NOW.parse().expect("instant"),
        tenant: "acme",
        config: &config,
        instance: &instance,
    };
    let start = occurrence("START", Source::Start(actor("author")), "{}");
    let fetch = async || Ok::<_, Infallible>(DOCUMENT_APPROVAL.to_vec());
    let asked = sandbox
        .ask(
            &pinned(DOCUMENT_APPROVAL),
            facts,
            &Question::Guard(start),
            fetch,
        )
        .await;
    assert_eq!(
        asked.expect("answers").answer,
        Answer::Verdict(Verdict::Allow)
    );
}
