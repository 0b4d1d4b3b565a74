//! Computes the positions of the boxes, lines and labels of a directed graph, in rows from the top.
//!
//! A layered drawing in four bounded steps. The first turns the edges so that they all lead down. The second gives each node and
//! each label a row ([`layers`]). The third orders each row so that few lines cross ([`order`]). The fourth computes coordinates
//! ([`place`]). Labels and bends occupy space like boxes, so they cannot overlap. The same input always gives the same positions.

mod layers;
mod order;
mod place;

/// Maximum number of boxes, labels and bends of a drawing. A larger one is unreadable, and refused.
pub(super) const POINTS_MAX: usize = 6_000;

/// The size of a box or label, to the left and to the right of its centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) height: f64,
}

impl Extent {
    pub(super) fn centred(width: f64, height: f64) -> Extent {
        Extent {
            left: width / 2.0,
            right: width / 2.0,
            height,
        }
    }
}

/// An edge between two different nodes, by their indices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spot {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The course of a link from its source to its target.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// One segment for each row that it passes.
    pub(super) segments: Vec<RouteSegment>,
    pub(super) label: Spot,
}

/// The passage of a line through a row: it enters and leaves at these heights, at one x.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteSegment {
    pub(super) x: f64,
    pub(super) enters: f64,
    pub(super) leaves: f64,
}

#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The centres of the nodes.
    pub(super) nodes: Vec<Spot>,
    pub(super) routes: Vec<Route>,
}

/// Lays out `nodes`, beginning with `root`. Returns none without nodes, or if the
/// drawing needs too many points.
pub(super) fn layout(nodes: &[Extent], root: usize, links: &[Link]) -> Option<Layout> {
    let mut mesh = layers::mesh(nodes, root, links)?;
    order::order(&mut mesh);
    Some(place::place(&mesh, nodes.len()))
}

/// A count as a length.
pub(super) fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Nodes, labels and bends in rows. Each line leads to the next row only.
struct Mesh {
    /// The nodes first, by their indices; then labels and bends.
    points: Vec<Point>,
    rows: Vec<Vec<usize>>,
    /// By link: its points, from the upper node to the lower one.
    chains: Vec<Chain>,
}

struct Point {
    extent: Extent,
    row: usize,
    kind: PointKind,
    up: Vec<usize>,
    down: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum PointKind {
    Node,
    Label,
    Bend,
}

struct Chain {
    points: Vec<usize>,
    label: usize,
    /// Whether the link leads down this chain or up.
    leads: Direction,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Down,
    Up,
}

#[cfg(test)]
mod tests;
