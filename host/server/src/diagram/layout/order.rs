//! Orders the points of each row, so that few lines cross: the barycentre heuristic of layered drawings.
//!
//! Sweeps go down and up in turn. A sweep down sorts each row by the mean position of its neighbours above, a sweep up by that of its
//! neighbours below. The order with the fewest crossings is kept. The sweeps end if there are no crossings, or after [`SWEEPS`]. All
//! sorting is stable: points with equal means keep their order.

use super::{Mesh, real};

const SWEEPS: usize = 24;

/// Orders the rows of `mesh`.
pub(super) fn order(mesh: &mut Mesh) {
    let mut positions = Positions::of(mesh);
    let mut best = mesh.rows.clone();
    let mut fewest = crossings(mesh, &positions);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let count = mesh.rows.len();
        for step in 1..count {
            if sweep % 2 == 0 {
                sort(mesh, &mut positions, step, |mesh, point| {
                    &mesh.points[point].up
                });
            } else {
                let row = count - 1 - step;
                sort(mesh, &mut positions, row, |mesh, point| {
                    &mesh.points[point].down
                });
            }
        }
        let crossed = crossings(mesh, &positions);
        if crossed < fewest {
            fewest = crossed;
            best.clone_from(&mesh.rows);
        }
    }
    mesh.rows = best;
}

/// The position of each point in its row.
struct Positions(Vec<usize>);

impl Positions {
    fn of(mesh: &Mesh) -> Positions {
        let mut positions = Positions(vec![0; mesh.points.len()]);
        for row in &mesh.rows {
            positions.note(row);
        }
        positions
    }

    fn note(&mut self, row: &[usize]) {
        for (position, point) in row.iter().enumerate() {
            self.0[*point] = position;
        }
    }
}

fn sort(
    mesh: &mut Mesh,
    positions: &mut Positions,
    row: usize,
    neighbours: impl Fn(&Mesh, usize) -> &Vec<usize>,
) {
    let mut keyed: Vec<(f64, usize)> = mesh.rows[row]
        .iter()
        .map(|point| {
            let near = neighbours(mesh, *point);
            let sum: usize = near.iter().map(|other| positions.0[*other]).sum();
            let own = real(positions.0[*point]);
            (
                if near.is_empty() {
                    own
                } else {
                    real(sum) / real(near.len())
                },
                *point,
            )
        })
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    mesh.rows[row] = keyed.into_iter().map(|(_, point)| point).collect();
    positions.note(&mesh.rows[row]);
}

fn crossings(mesh: &Mesh, positions: &Positions) -> usize {
    mesh.rows
        .windows(2)
        .map(|pair| {
            let mut lower = Vec::new();
            for point in &pair[0] {
                let from = lower.len();
                lower.extend(mesh.points[*point].down.iter().map(|end| positions.0[*end]));
                lower[from..].sort_unstable();
            }
            inversions(&lower, pair[1].len())
        })
        .sum()
}

/// The number of pairs in the wrong order, counted with a Fenwick tree over the `bound` possible values.
fn inversions(values: &[usize], bound: usize) -> usize {
    let mut tree = vec![0_usize; bound + 1];
    let mut found = 0;
    for (seen, value) in values.iter().enumerate() {
        let mut not_above = 0;
        let mut node = value + 1;
        while node > 0 {
            not_above += tree[node];
            node &= node - 1;
        }
        found += seen - not_above;
        let mut node = value + 1;
        while node <= bound {
            tree[node] += 1;
            node += node & node.wrapping_neg();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::inversions;

    #[test]
    fn inversions_are_counted() {
        for (values, expected) in [
            (&[][..], 0),
            (&[0, 1, 2], 0),
            (&[2, 1, 0], 3),
            (&[1, 1, 0, 0], 4),
            (&[0, 2, 1, 3, 0], 4),
        ] {
            assert_eq!(inversions(values, 4), expected, "{values:?}");
        }
    }
}
