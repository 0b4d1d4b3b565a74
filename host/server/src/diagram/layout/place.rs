//! Computes coordinates. Each point is as near to its neighbours as its row allows.
//!
//! Each row is solved exactly: points that want the same space are pooled and share it by weight. Sweeps down and up adapt
//! the rows to each other. Lines between labels and bends have the largest weight, so that long lines are straight.

use super::{Chain, Direction, Layout, Mesh, PointKind, Route, RouteSegment, Spot, real};

const SWEEPS: usize = 60;
/// The gap between two boxes, and between any other two points of a row.
const BOX_GAP: f64 = 36.0;
const LABEL_GAP: f64 = 14.0;
/// The gap between two rows. It is wider if lines go far sideways.
const ROW_GAP: f64 = 22.0;
const ROW_GAP_MAX: f64 = 64.0;
const ROW_GAP_PER_SHIFT: f64 = 0.16;
/// The distance between the ends of lines at a box, and from its corners.
const PORT_GAP: f64 = 22.0;
const CORNER: f64 = 16.0;

/// Computes the layout of an ordered mesh, whose first points are the nodes.
pub(super) fn place(mesh: &Mesh, nodes: usize) -> Layout {
    let xs = columns(mesh);
    let bands = bands(mesh, &xs);
    let middle = |point: usize| Spot {
        x: xs[point],
        y: bands[mesh.points[point].row].middle(),
    };
    let ports = ports(mesh, &xs);
    let routes = mesh
        .chains
        .iter()
        .enumerate()
        .map(|(link, chain)| Route {
            segments: segments(mesh, link, chain, &xs, &bands, &ports),
            label: middle(chain.label),
        })
        .collect();
    let width = (0..xs.len()).map(|p| xs[p] + mesh.points[p].extent.right);
    Layout {
        width: width.fold(0.0, f64::max),
        height: bands.last().map_or(0.0, |band| band.bottom),
        nodes: (0..nodes).map(middle).collect(),
        routes,
    }
}

/// The x of every point, the leftmost edge at 0.
fn columns(mesh: &Mesh) -> Vec<f64> {
    let mut xs = vec![0.0; mesh.points.len()];
    for row in &mesh.rows {
        let mut right = 0.0;
        for (index, point) in row.iter().enumerate() {
            if index > 0 {
                right += apart(mesh, row[index - 1], *point);
            }
            xs[*point] = right;
        }
    }
    for sweep in 0..SWEEPS {
        let both = 2 * sweep >= SWEEPS;
        let settle = |row: &[usize], xs: &mut Vec<f64>| {
            let wishes: Vec<Wish> = row
                .iter()
                .map(|point| {
                    let near = &mesh.points[*point];
                    let up = near.up.iter().filter(|_| both || sweep % 2 == 0);
                    let down = near.down.iter().filter(|_| both || sweep % 2 == 1);
                    wish(mesh, xs, *point, up.chain(down))
                })
                .collect();
            settle(mesh, row, &wishes, xs);
        };
        if sweep % 2 == 0 {
            mesh.rows.iter().for_each(|row| settle(row, &mut xs));
        } else {
            mesh.rows.iter().rev().for_each(|row| settle(row, &mut xs));
        }
    }
    let lefts = (0..xs.len()).map(|p| xs[p] - mesh.points[p].extent.left);
    let left = lefts.fold(f64::INFINITY, f64::min);
    xs.iter().map(|x| x - left).collect()
}

/// The preferred x of a point, and the weight of this preference.
#[derive(Clone, Copy)]
struct Wish {
    x: f64,
    weight: f64,
}

fn wish<'a>(
    mesh: &Mesh,
    xs: &[f64],
    point: usize,
    neighbours: impl Iterator<Item = &'a usize>,
) -> Wish {
    let own = mesh.points[point].kind;
    let mut sum = 0.0;
    let mut weight = 0.0;
    for other in neighbours {
        let straight = match (own, mesh.points[*other].kind) {
            (PointKind::Node, _) | (_, PointKind::Node) => 1.0,
            (PointKind::Label | PointKind::Bend, PointKind::Label | PointKind::Bend) => 60.0,
        };
        sum += straight * xs[*other];
        weight += straight;
    }
    if weight > 0.0 {
        Wish {
            x: sum / weight,
            weight,
        }
    } else {
        // Without neighbours, it keeps its position unless other points need the space.
        Wish {
            x: xs[point],
            weight: 0.05,
        }
    }
}

/// The least distance between the middles of two neighbours in a row.
fn apart(mesh: &Mesh, left: usize, right: usize) -> f64 {
    let (a, b) = (&mesh.points[left], &mesh.points[right]);
    let gap = match (a.kind, b.kind) {
        (PointKind::Node, PointKind::Node) => BOX_GAP,
        _ => LABEL_GAP,
    };
    a.extent.right + gap + b.extent.left
}

/// Moves the points of a row so that the weighted sum of the squared distances from their wishes is
/// minimal. Keeps their order and the gaps between them.
fn settle(mesh: &Mesh, row: &[usize], wishes: &[Wish], xs: &mut [f64]) {
    struct Pool {
        x: f64,
        weight: f64,
        members: usize,
    }
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(row.len());
    let mut pools: Vec<Pool> = Vec::with_capacity(row.len());
    for (index, wish) in wishes.iter().enumerate() {
        if index > 0 {
            offset += apart(mesh, row[index - 1], row[index]);
        }
        offsets.push(offset);
        let mut pool = Pool {
            x: wish.x - offset,
            weight: wish.weight,
            members: 1,
        };
        while let Some(last) = pools.pop_if(|last| last.x >= pool.x) {
            let weight = last.weight + pool.weight;
            pool = Pool {
                x: (last.x * last.weight + pool.x * pool.weight) / weight,
                weight,
                members: last.members + pool.members,
            };
        }
        pools.push(pool);
    }
    let spread = pools
        .iter()
        .flat_map(|pool| std::iter::repeat_n(pool.x, pool.members));
    for ((point, offset), x) in row.iter().zip(offsets).zip(spread) {
        xs[*point] = x + offset;
    }
}

/// The space of a row from top to bottom.
struct Band {
    top: f64,
    bottom: f64,
}

impl Band {
    fn middle(&self) -> f64 {
        f64::midpoint(self.top, self.bottom)
    }
}

fn bands(mesh: &Mesh, xs: &[f64]) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::with_capacity(mesh.rows.len());
    for row in &mesh.rows {
        let height = row.iter().map(|point| mesh.points[*point].extent.height);
        let lines = row.iter().flat_map(|point| {
            let up = mesh.points[*point].up.iter();
            up.map(|above| (xs[*point] - xs[*above]).abs())
        });
        let gap = (lines.fold(0.0, f64::max) * ROW_GAP_PER_SHIFT).clamp(ROW_GAP, ROW_GAP_MAX);
        let top = bands.last().map_or(0.0, |above| above.bottom + gap);
        bands.push(Band {
            top,
            bottom: top + height.fold(0.0, f64::max),
        });
    }
    // The row for labels below the last nodes is empty.
    if bands.len().is_multiple_of(2) {
        bands.pop();
    }
    bands
}

/// By link, the x at which its line meets the upper and the lower node.
fn ports(mesh: &Mesh, xs: &[f64]) -> Vec<(f64, f64)> {
    let mut above = vec![Vec::new(); mesh.points.len()];
    let mut below = vec![Vec::new(); mesh.points.len()];
    for (link, chain) in mesh.chains.iter().enumerate() {
        let last = chain.points.len() - 1;
        below[chain.points[0]].push((link, xs[chain.points[1]]));
        above[chain.points[last]].push((link, xs[chain.points[last - 1]]));
    }
    let mut ports = vec![(0.0, 0.0); mesh.chains.len()];
    for (point, (mut above, mut below)) in above.into_iter().zip(below).enumerate() {
        above.sort_by(|a, b| a.1.total_cmp(&b.1));
        below.sort_by(|a, b| a.1.total_cmp(&b.1));
        let extent = mesh.points[point].extent;
        // The box is symmetric. If one side of the extent is wider, it also has the labels of loops.
        let half = (extent.left.min(extent.right) - CORNER).max(0.0);
        let spread = |lines: &[(usize, f64)]| -> Vec<(usize, f64)> {
            let gaps = real(lines.len().saturating_sub(1));
            let gap = if gaps > 0.0 {
                PORT_GAP.min(2.0 * half / gaps)
            } else {
                0.0
            };
            let first = xs[point] - gap * gaps / 2.0;
            let lines = lines.iter().enumerate();
            lines
                .map(|(index, (link, _))| (*link, first + gap * real(index)))
                .collect()
        };
        for (link, x) in spread(&below) {
            ports[link].0 = x;
        }
        for (link, x) in spread(&above) {
            ports[link].1 = x;
        }
    }
    ports
}

fn segments(
    mesh: &Mesh,
    link: usize,
    chain: &Chain,
    xs: &[f64],
    bands: &[Band],
    ports: &[(f64, f64)],
) -> Vec<RouteSegment> {
    let last = chain.points.len() - 1;
    let mut segments: Vec<RouteSegment> = Vec::with_capacity(chain.points.len());
    for (index, point) in chain.points.iter().enumerate() {
        let band = &bands[mesh.points[*point].row];
        let half = mesh.points[*point].extent.height / 2.0;
        let segment = if index == 0 {
            let y = band.middle() + half;
            RouteSegment {
                x: ports[link].0,
                enters: y,
                leaves: y,
            }
        } else if index == last {
            let y = band.middle() - half;
            RouteSegment {
                x: ports[link].1,
                enters: y,
                leaves: y,
            }
        } else {
            RouteSegment {
                x: xs[*point],
                enters: band.top,
                leaves: band.bottom,
            }
        };
        segments.push(segment);
    }
    if chain.leads == Direction::Up {
        segments.reverse();
        for segment in &mut segments {
            std::mem::swap(&mut segment.enters, &mut segment.leaves);
        }
    }
    segments
}
