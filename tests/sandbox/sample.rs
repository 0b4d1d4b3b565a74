//! The sample flow in the binary, run by the sandbox.

use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_core::check;

use super::*;

#[tokio::test]
async fn the_sample_is_admitted_and_its_graph_is_valid() {
    let admitted = sandbox().admit(DOCUMENT_APPROVAL, &json("{}")).await;
    let admission = admitted.expect("admitted");
    assert_eq!(check::check(&admission.graph), []);
    assert_eq!(admission.graph.initial, "Submitted");
    let sdk = admission.sdk.expect("the SDK says who it is");
    assert!(sdk.contains(r#""sdk":"wrkflw-guest""#), "{sdk}");
}

#[tokio::test]
async fn an_unknown_setting_is_refused() {
    let refused = sandbox()
        .admit(DOCUMENT_APPROVAL, &json(r#"{"reviwers":"x"}"#))
        .await;
    let Err(wrkflw_sandbox::AdmitError::Rejected(problems)) = refused else {
        panic!("expected to be refused, got {refused:?}");
    };
    assert_eq!(problems[0].code, "config_invalid");
}

#[tokio::test]
async fn a_start_with_good_data_is_allowed() {
    let result = start(&sandbox()).await;
    assert_eq!(result.expect("answers").answer, Answer::Start(Ok(())));
}

/// The least memory with which the component is admitted is its initial memory, so the memory cannot grow.
#[tokio::test]
async fn a_usual_call_needs_only_the_initial_memory() {
    const PAGE: usize = 64 << 10;
    for pages in 16..64 {
        let sandbox = Sandbox::new(Settings {
            memory_bytes_max: pages * PAGE,
            ..settings()
        });
        match start(&sandbox.expect("sandbox")).await {
            Ok(evaluation) => {
                assert_eq!(evaluation.answer, Answer::Start(Ok(())));
                return;
            }
            Err(error) => assert!(
                matches!(error.cause, Cause::Incompatible(_)),
                "{pages} pages: {error}"
            ),
        }
    }
    panic!("a component of the SDK begins with less than 4 MiB");
}

async fn start(sandbox: &Sandbox) -> Result<Evaluation, GuestError> {
    let (config, instance) = (json("{}"), instance(r#"{"title":"Budget"}"#));
    let facts = Facts {
        now: NOW.parse().expect("instant"),
        tenant: "acme",
        config: &config,
        instance: &instance,
        reads: &Read::ALL,
    };
    let fetch = async || Ok::<_, Infallible>(DOCUMENT_APPROVAL.to_vec());
    sandbox
        .ask(
            &pinned(DOCUMENT_APPROVAL),
            facts,
            &Question::Start(actor("author")),
            fetch,
        )
        .await
}
