//! Draws the graph of a flow as SVG, for the API, the command line and web pages.
//!
//! A diagram can show the path of an instance: taken edges are coloured and numbered in their order, visited states have a count, and
//! active ones are highlighted. Only declared edges are drawn. Titles come from components and are not trusted: every text is escaped,
//! cut and measured. A graph that is too large to draw is described in sentences. The same graph and path always give the same bytes.
//!
//! `figure` has the boxes and lines, `layout` computes their positions and knows nothing of flows, and
//! `page` writes the SVG. The layout is implemented here because the available libraries walk all paths
//! of a graph, and a dense graph has exponentially many.

mod figure;
mod layout;
mod page;
mod text;

use std::collections::BTreeMap;

use figure::Figure;
use page::Page;
pub use page::STYLE;
use wrkflw_core::graph::Graph;

/// The path of an instance so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// How often each state was entered, by name.
    pub visits: BTreeMap<String, u32>,
    /// The edges in the order in which they were taken.
    pub edges: Vec<TakenEdge>,
    /// The active states by name, each with who works in it and until when, in a few words each.
    pub active: BTreeMap<String, Vec<String>>,
}

/// One step along a declared transition, to one of its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenEdge {
    pub source: String,
    pub trigger: String,
    pub target: String,
}

/// The diagram of `graph`, with the path of an instance if one is given.
pub fn svg(graph: &Graph, path: Option<&Taken>) -> String {
    let figure = Figure::of(graph, path);
    let words = page::Words::of(graph, path);
    match layout::layout(&figure.extents(), figure.root, &figure.links()) {
        Some(layout) => Page::drawn(&words, &figure, &layout),
        None => Page::sentence(&words, &figure),
    }
}

#[cfg(test)]
mod tests;
