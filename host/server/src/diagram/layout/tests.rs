//! What holds of every layout.

use proptest::prelude::*;

use super::*;

fn links(pairs: &[(usize, usize)]) -> Vec<Link> {
    pairs
        .iter()
        .map(|(from, to)| Link {
            from: *from,
            to: *to,
            label: Extent::centred(60.0, 16.0),
        })
        .collect()
}

fn laid_out(count: usize, pairs: &[(usize, usize)]) -> Layout {
    let nodes = vec![Extent::centred(120.0, 50.0); count];
    layout(&nodes, 0, &links(pairs)).expect("few points")
}

#[test]
fn a_chain_goes_straight_down() {
    let layout = laid_out(3, &[(0, 1), (1, 2)]);
    assert!(layout.nodes.windows(2).all(|pair| pair[0].y < pair[1].y));
    assert!(
        layout
            .nodes
            .windows(2)
            .all(|pair| (pair[0].x - pair[1].x).abs() < 0.1)
    );
    assert!((layout.width - 120.0).abs() < 0.1, "{}", layout.width);
}

#[test]
fn a_way_back_leads_up_and_is_labelled_at_its_source() {
    let layout = laid_out(3, &[(0, 1), (1, 2), (2, 0)]);
    let back = &layout.routes[2];
    let heights: Vec<f64> = back
        .segments
        .iter()
        .flat_map(|s| [s.enters, s.leaves])
        .collect();
    assert!(
        heights.windows(2).all(|pair| pair[0] >= pair[1]),
        "{heights:?}"
    );
    assert!(back.label.y > layout.nodes[1].y && back.label.y < layout.nodes[2].y);
}

#[test]
fn lines_that_need_not_cross_do_not() {
    // 1 and 2 lead to 4 and 3: the rows are turned until they stand opposite.
    let layout = laid_out(5, &[(0, 1), (0, 2), (1, 4), (2, 3)]);
    let left = |a: usize, b: usize| layout.nodes[a].x < layout.nodes[b].x;
    assert_eq!(left(1, 2), left(4, 3));
}

#[test]
fn too_many_points_are_refused() {
    let nodes = vec![Extent::centred(10.0, 10.0); 200];
    let mut pairs: Vec<_> = (1..200).map(|node| (node - 1, node)).collect();
    pairs.extend((1..200).map(|node| (0, node)));
    assert!(layout(&nodes, 0, &links(&pairs)).is_none());
}

proptest! {
    /// Boxes and labels keep clear of each other, lines pass beside boxes, all within the canvas.
    #[test]
    fn nothing_overlaps(
        count in 2_usize..12,
        pairs in prop::collection::vec((0_usize..12, 0_usize..12), 0..25),
    ) {
        let pairs: Vec<_> = pairs
            .into_iter()
            .map(|(from, to)| (from % count, to % count))
            .filter(|(from, to)| from != to)
            .collect();
        let layout = laid_out(count, &pairs);
        let mut boxes: Vec<_> = layout.nodes.iter().map(|spot| (*spot, 60.0, 25.0)).collect();
        boxes.extend(layout.routes.iter().map(|route| (route.label, 30.0, 8.0)));
        for (index, (a, wide, high)) in boxes.iter().enumerate() {
            prop_assert!(a.x - wide > -0.1 && a.x + wide < layout.width + 0.1);
            prop_assert!(a.y - high > -0.1 && a.y + high < layout.height + 0.1);
            for (b, width, height) in &boxes[index + 1..] {
                let beside = (a.x - b.x).abs() > wide + width - 0.1;
                let above = (a.y - b.y).abs() > high + height - 0.1;
                prop_assert!(beside || above, "{a:?} {b:?}");
            }
        }
        for route in &layout.routes {
            for segment in &route.segments[1..route.segments.len() - 1] {
                let (top, bottom) = (segment.enters.min(segment.leaves), segment.enters.max(segment.leaves));
                let hit = layout.nodes.iter().any(|spot| {
                    (spot.x - segment.x).abs() < 60.0 && spot.y + 25.0 > top && spot.y - 25.0 < bottom
                });
                prop_assert!(!hit, "a line through a box");
            }
        }
    }
}
