//! Which components may be published, and every reason for a refusal.

use wrkflw_core::graph::{FiredBy, StateKind};
use wrkflw_sandbox::AdmitError;

use super::*;

async fn refused(component: &[u8], config: &str) -> Vec<(&'static str, String)> {
    match sandbox().admit(component, &json(config)).await {
        Err(AdmitError::Rejected(problems)) => problems
            .into_iter()
            .map(|problem| (problem.code, format!("{}{}", problem.at, problem.message)))
            .collect(),
        other => panic!("expected to be refused, got {other:?}"),
    }
}

#[tokio::test]
async fn an_admitted_component_has_described_its_graph() {
    let component = guests::hostile();
    let admitted = sandbox().admit(component, &json("{}")).await;
    let admission = admitted.expect("admitted");
    assert_eq!(admission.digest, digest(component));
    assert_eq!(admission.wit, "wrkflw:flow@0.1.0");
    let graph = admission.graph;
    assert_eq!(graph.initial, "Work");
    assert_eq!(graph.states[1].kind, StateKind::Terminal("DONE".into()));
    assert_eq!(graph.transitions[0].by, [FiredBy::Decision]);
    assert!(graph.data_schema.is_some());
}

#[tokio::test]
async fn a_config_is_refused_with_the_flows_own_message() {
    let problems = refused(guests::hostile(), r#"{"behaviour":"refuse_config"}"#).await;
    let message = "/behaviourthis config was asked to be refused (unwanted)";
    assert_eq!(problems, [("config_invalid", message.to_owned())]);
}

#[tokio::test]
async fn a_misbehaving_describe_is_a_refusal() {
    for behaviour in ["spin", "trap", "recurse", "allocate"] {
        let config = format!(r#"{{"behaviour":"{behaviour}","function":"describe"}}"#);
        let problems = refused(guests::hostile(), &config).await;
        assert_eq!(problems[0].0, "describe_failed", "{behaviour}");
    }
}

#[tokio::test]
async fn an_extension_unknown_to_the_host_is_refused() {
    for (behaviour, of) in [
        ("extended", "the definition has the extension `telepathy`"),
        ("extended_state", "a state has the extension `telepathy`"),
        (
            "extended_transition",
            "a transition has the extension `telepathy`",
        ),
        ("demanding", "the extension `telepathy` is required"),
    ] {
        let config = format!(r#"{{"behaviour":"{behaviour}"}}"#);
        let problems = refused(guests::hostile(), &config).await;
        let message = format!("{of}, which this host does not know");
        assert_eq!(problems, [("describe_malformed", message)], "{behaviour}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_component_is_refused_with_its_kind() {
    let module = wat::parse_str("(module)").expect("module");
    for (bytes, named) in [
        (&module[..], "a core WebAssembly module"),
        (b"(component)", "WebAssembly text"),
        (b"\x7fELF\x02\x01\x01\0", "precompiled machine code"),
        (b"\xde\xad\xbe\xef random bytes", "no WebAssembly"),
        (b"", "no bytes at all"),
    ] {
        let problems = refused(bytes, "{}").await;
        assert_eq!(problems[0].0, "not_a_component");
        assert!(problems[0].1.contains(named), "{problems:?}");
    }
    let truncated = &guests::hostile()[..2_000];
    assert_eq!(refused(truncated, "{}").await[0].0, "component_invalid");
}

#[tokio::test]
async fn an_export_of_the_wrong_type_is_refused() {
    let empty = wat::parse_str(
        r#"(component (instance $none) (export "wrkflw:flow/logic@0.1.0" (instance $none)))"#,
    );
    let problems = refused(&empty.expect("component"), "{}").await;
    assert_eq!(problems[0].0, "component_rejected", "{problems:?}");
}
