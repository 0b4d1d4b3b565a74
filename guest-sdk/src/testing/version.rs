//! A version of the flow's definition, as publishing makes it of settings and the flow's graph.

use wrkflw_core::ids::VersionRef;
use wrkflw_core::scenario;
use wrkflw_core::version::Version;

use super::contract::graph;
use super::run::well_formed;
use super::scenario::canonical;
use crate::Flow;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::export::Logic;

/// The version of this number; the test fails where the host would not publish it.
#[track_caller]
pub(super) fn version<F: Flow>(key: &str, number: u32, config: &str) -> Version {
    let config = canonical("the config", config);
    let definition = match Logic::<F>::describe(config.to_string()) {
        Ok(definition) => definition,
        Err(violations) => panic!("the flow refuses its config: {violations:#?}"),
    };
    let graph = well_formed("describe", graph::graph(definition));
    let reference = VersionRef {
        key: key.to_owned(),
        version: number,
    };
    match scenario::version(reference, config, graph) {
        Ok(version) => version,
        Err(problems) => panic!("the host does not publish this graph: {problems:#?}"),
    }
}
