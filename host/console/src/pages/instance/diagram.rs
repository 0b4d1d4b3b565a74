//! The diagram of an instance with its states as links to their steps: an image with a map, whose areas are the boxes of the
//! states.

use axum::http::StatusCode;
use http_body_util::{BodyExt as _, Limited};
use uuid::Uuid;

use crate::data::{History, Instance};
use crate::session::Visitor;

/// The largest drawing that is searched for states.
const DRAWING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// States with a link.
const AREAS_MAX: usize = 200;
/// Where the box of a state begins in a drawing: its name follows.
const STATE: &str = "data-state=\"";
/// The box itself: its place and size follow.
const FRAME: &str = "<rect class=\"frame\"";

/// A state of the drawing that was entered.
pub(super) struct Area {
    /// Left, top, right, bottom, in pixels.
    pub(super) coords: String,
    pub(super) address: String,
    pub(super) name: String,
}

/// The states that the instance entered, each with the way to its last step.
pub(super) async fn areas(visitor: &Visitor, instance: &Instance) -> Vec<Area> {
    let path = format!("/v1/instances/{}/diagram.svg", instance.id);
    let response = visitor.api.raw(&path).await;
    if response.status() != StatusCode::OK {
        return Vec::new();
    }
    let body = Limited::new(response.into_body(), DRAWING_BYTES_MAX);
    let Ok(body) = body.collect().await else {
        return Vec::new();
    };
    let drawing = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    let history = format!("/v1/instances/{}/history", instance.id);
    let Ok(History { data, .. }) = visitor.api.get(&history).await else {
        return Vec::new();
    };
    let last = |name: &str| data.iter().rev().find(|state| state.name == name);
    let areas = boxes(&drawing).into_iter().filter_map(|(name, coords)| {
        let state = last(&name)?;
        Some(Area {
            coords,
            address: address(instance.id, state.id),
            name: state.title.clone(),
        })
    });
    areas.collect()
}

/// The address of a step.
fn address(instance: Uuid, state: Uuid) -> String {
    format!("/console/instances/{instance}?tab=timeline#step-{state}")
}

/// The boxes of a drawing: the name of each state, and its edges.
fn boxes(drawing: &str) -> Vec<(String, String)> {
    let states = drawing.split(STATE).skip(1).take(AREAS_MAX);
    let found = states.filter_map(|rest| {
        let (name, rest) = rest.split_once('"')?;
        let (frame, _) = rest.split_once(FRAME)?.1.split_once("/>")?;
        let number = |attribute: &str| {
            let begin = format!(" {attribute}=\"");
            let (value, _) = frame.split_once(&begin)?.1.split_once('"')?;
            value.parse::<f64>().ok()
        };
        let (left, top) = (number("x")?, number("y")?);
        let (right, bottom) = (left + number("width")?, top + number("height")?);
        let edges = [left, top, right, bottom].map(|edge| edge.round().to_string());
        Some((plain(name), edges.join(",")))
    });
    found.collect()
}

/// The text of an attribute.
fn plain(attribute: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let pairs = pairs.into_iter();
    pairs.fold(attribute.to_owned(), |text, (from, to)| {
        text.replace(from, to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_read_with_their_names() {
        let drawing = concat!(
            "<rect class=\"canvas\" width=\"9\" height=\"9\"/>",
            "<g class=\"state\" data-state=\"a&amp;&lt;b\"><title>t</title>",
            "<rect class=\"frame\" x=\"10.4\" y=\"20\" width=\"100\" height=\"40.2\" rx=\"10\"/></g>",
            "<g class=\"state\" data-state=\"c\"><title>no box</title></g>",
        );
        let expected = [("a&<b".to_owned(), "10,20,110,60".to_owned())];
        assert_eq!(boxes(drawing), expected);
    }
}
