//! A flow as a picture: SVG, drawn on the server, the same for the API, the command line and a page.
//!
//! With the path that an instance took, taken edges are coloured and numbered in their order, visited
//! states carry their count and active ones stand out. Only declared edges are drawn. Titles come from
//! components and are not trusted: every text is escaped, cut and measured, and a graph too dense to be
//! read is told in words instead. The same graph and path always give the same bytes.
//!
//! `layout` finds the places and knows nothing of flows; `figure` says what stands there;
//! `page` writes it down. Layered layout is done here because graph drawing libraries at hand walk
//! all paths of a graph, which a dense one has without number.

mod figure;
mod layout;
mod page;
mod text;

use std::collections::BTreeMap;

use figure::Figure;
use page::Page;
use wrkflw_core::graph::Graph;

/// The way that an instance has gone so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// How often each state was entered, by name.
    pub visits: BTreeMap<String, u32>,
    /// The edges in the order in which they were taken.
    pub edges: Vec<TakenEdge>,
    /// The names of the states being worked on.
    pub active: Vec<String>,
}

/// One step along a declared transition, to one of its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenEdge {
    pub source: String,
    pub trigger: String,
    pub target: String,
}

/// The picture of `graph`, with the path taken through it if one is given.
pub fn svg(graph: &Graph, path: Option<&Taken>) -> String {
    let figure = Figure::of(graph, path);
    let words = page::Words::of(graph, path);
    match layout::layout(&figure.extents(), figure.root, &figure.links()) {
        Some(layout) => Page::drawn(&words, &figure, &layout),
        None => Page::told(&words, &figure),
    }
}

#[cfg(test)]
mod tests;
