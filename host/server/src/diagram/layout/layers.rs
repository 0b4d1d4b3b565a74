//! Assigns rows. Every link is turned to lead down. Every node is below all nodes that lead to it. Every link has one point
//! in each row that it passes.
//!
//! Nodes are in even rows, so that each link has at least one row for its label. A label is next to the
//! source of its link.

use super::{Chain, Direction, Extent, Link, Mesh, POINTS_MAX, Point, PointKind};

/// The mesh of these links, unordered. Returns none without nodes, or if it needs too many points.
pub(super) fn mesh(nodes: &[Extent], root: usize, links: &[Link]) -> Option<Mesh> {
    if nodes.is_empty() || nodes.len() + links.len() > POINTS_MAX {
        return None;
    }
    let leads = turned(nodes.len(), root, links);
    let ranks = ranks(nodes.len(), links, &leads);
    let mut mesh = Mesh {
        points: Vec::with_capacity(nodes.len()),
        rows: vec![Vec::new(); 2 * ranks.iter().max().map_or(0, |rank| rank + 1)],
        chains: Vec::with_capacity(links.len()),
    };
    for (extent, rank) in nodes.iter().zip(&ranks) {
        add(&mut mesh, *extent, 2 * rank, PointKind::Node);
    }
    for (link, leads) in links.iter().zip(leads) {
        let (upper, lower) = ends(link, leads);
        let rows = 2 * ranks[upper] + 1..2 * ranks[lower];
        if mesh.points.len() + rows.len() > POINTS_MAX {
            return None;
        }
        let label_row = match leads {
            Direction::Down => rows.start,
            Direction::Up => rows.end - 1,
        };
        let mut points = vec![upper];
        let mut label = upper;
        for row in rows {
            let point = if row == label_row {
                label = add(&mut mesh, link.label, row, PointKind::Label);
                label
            } else {
                add(&mut mesh, Extent::centred(0.0, 0.0), row, PointKind::Bend)
            };
            points.push(point);
        }
        points.push(lower);
        for pair in points.windows(2) {
            mesh.points[pair[0]].down.push(pair[1]);
            mesh.points[pair[1]].up.push(pair[0]);
        }
        mesh.chains.push(Chain {
            points,
            label,
            leads,
        });
    }
    Some(mesh)
}

fn add(mesh: &mut Mesh, extent: Extent, row: usize, kind: PointKind) -> usize {
    let point = mesh.points.len();
    mesh.points.push(Point {
        extent,
        row,
        kind,
        up: Vec::new(),
        down: Vec::new(),
    });
    mesh.rows[row].push(point);
    point
}

fn ends(link: &Link, leads: Direction) -> (usize, usize) {
    match leads {
        Direction::Down => (link.from, link.to),
        Direction::Up => (link.to, link.from),
    }
}

/// Which links lead up: the back edges of a depth-first walk from the root, in declared order. The other
/// links form no cycle.
fn turned(nodes: usize, root: usize, links: &[Link]) -> Vec<Direction> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut leaving = vec![Vec::new(); nodes];
    for (index, link) in links.iter().enumerate() {
        leaving[link.from].push(index);
    }
    let mut leads = vec![Direction::Down; links.len()];
    let mut marks = vec![Mark::New; nodes];
    for start in std::iter::once(root).chain(0..nodes) {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut open = vec![(start, 0)];
        while let Some((node, next)) = open.last_mut() {
            let Some(link) = leaving[*node].get(*next).copied() else {
                marks[*node] = Mark::Done;
                open.pop();
                continue;
            };
            *next += 1;
            let to = links[link].to;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::Open;
                    open.push((to, 0));
                }
                Mark::Open => leads[link] = Direction::Up,
                Mark::Done => {}
            }
        }
    }
    leads
}

/// The length of the longest path down to each node.
fn ranks(nodes: usize, links: &[Link], leads: &[Direction]) -> Vec<usize> {
    let mut below = vec![Vec::new(); nodes];
    let mut above = vec![0_usize; nodes];
    for (link, leads) in links.iter().zip(leads) {
        let (upper, lower) = ends(link, *leads);
        below[upper].push(lower);
        above[lower] += 1;
    }
    let mut ranks = vec![0; nodes];
    let mut ready: Vec<usize> = (0..nodes).filter(|node| above[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        for lower in &below[node] {
            ranks[*lower] = ranks[*lower].max(ranks[node] + 1);
            above[*lower] -= 1;
            if above[*lower] == 0 {
                ready.push(*lower);
            }
        }
    }
    ranks
}
