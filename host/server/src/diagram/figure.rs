//! The parts of a diagram: a box for each state, and a line for each target of a transition, with their
//! texts, sizes and shades.

use std::collections::BTreeMap;

use super::Taken;
use super::layout::{Extent, Link, real};
use super::text;
use wrkflw_core::graph::{FiredBy, Graph, Join, State, StateKind, Transition};

/// Font sizes: of titles, of the line below them, of labels.
pub(super) const TITLE_SIZE: f64 = 14.0;
pub(super) const DETAIL_SIZE: f64 = 11.0;
pub(super) const LABEL_SIZE: f64 = 11.0;
pub(super) const TITLE_LINE: f64 = 18.0;
pub(super) const DETAIL_LINE: f64 = 15.0;
pub(super) const LABEL_HEIGHT: f64 = 18.0;
/// The font size of the lines below a label.
pub(super) const NOTE_SIZE: f64 = 10.0;
pub(super) const NOTE_LINE: f64 = 13.0;
/// The gap between the numbers of a taken edge and its label.
pub(super) const BADGE_GAP: f64 = 5.0;
/// The width of an edge from a state to itself.
pub(super) const LOOP_REACH: f64 = 24.0;
const LOOP_HEIGHT: f64 = 24.0;
const NOTE_WIDTH_MAX: f64 = 150.0;
const NOTE_LINES_MAX: usize = 2;
const TITLE_WIDTH_MAX: f64 = 190.0;
const TITLE_LINES_MAX: usize = 3;
const BOX_WIDTH_MIN: f64 = 110.0;
const BOX_WIDTH_MAX: f64 = 420.0;
const BOX_PADDING: f64 = 18.0;
const WIDTH_PER_LINE: f64 = 14.0;
const LABEL_PADDING: f64 = 5.0;
/// Maximum count of numbers beside a label. An edge that was taken more often shows the last ones.
const NUMBERS_MAX: usize = 3;
/// Maximum count of lines on the work in a state.
const WORK_LINES_MAX: usize = 4;
/// Bold letters are wider.
const BOLD: f64 = 1.08;

/// The parts of the diagram.
pub(super) struct Figure {
    pub(super) nodes: Vec<Node>,
    pub(super) lines: Vec<DrawnEdge>,
    /// The node of the initial state.
    pub(super) root: usize,
}

/// A state.
pub(super) struct Node {
    pub(super) name: String,
    /// The name and the description.
    pub(super) told: String,
    pub(super) title: Vec<String>,
    pub(super) detail: String,
    /// For an active state: who works in it, and until when. A line each.
    pub(super) work: Vec<String>,
    pub(super) look: Look,
    pub(super) shade: Shade,
    pub(super) visits: u32,
    pub(super) width: f64,
    pub(super) height: f64,
    /// From one edge back to itself to the next.
    pub(super) loop_height: f64,
    /// The widest label of an edge back to itself.
    loop_width: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    OwnWork,
    Terminal,
}

/// The relation of a state or an edge to the path of the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shade {
    /// The path does not touch it.
    Untouched,
    /// No path is shown.
    Plain,
    Taken,
    Active,
}

impl Shade {
    pub(super) fn class(self) -> &'static str {
        match self {
            Shade::Untouched => "untouched",
            Shade::Plain => "plain",
            Shade::Taken => "taken",
            Shade::Active => "active",
        }
    }
}

/// An edge from a state to a state.
pub(super) struct DrawnEdge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The trigger, with what fires it and the condition.
    pub(super) about: String,
    pub(super) label: String,
    /// Below the label: the source that fires it, if that is unusual in such a state, and the condition.
    pub(super) notes: Vec<String>,
    /// The steps in which it was taken, such as `1, 4`. Empty if it was not taken.
    pub(super) numbers: String,
    pub(super) shade: Shade,
}

impl Figure {
    pub(super) fn of(graph: &Graph, path: Option<&Taken>) -> Figure {
        let mut index = BTreeMap::new();
        for (position, state) in graph.states.iter().enumerate() {
            index.entry(state.name.as_str()).or_insert(position);
        }
        let mut figure = Figure {
            nodes: graph
                .states
                .iter()
                .map(|state| Node::of(state, path))
                .collect(),
            lines: lines(graph, path, &index),
            root: index.get(graph.initial.as_str()).copied().unwrap_or(0),
        };
        figure.fit();
        figure
    }

    /// Enlarges the boxes, to make room for the ends of their lines.
    fn fit(&mut self) {
        let mut out = vec![0_usize; self.nodes.len()];
        let mut into = vec![0_usize; self.nodes.len()];
        let mut loops = vec![0_usize; self.nodes.len()];
        for line in &self.lines {
            if line.from == line.to {
                loops[line.from] += 1;
                let node = &mut self.nodes[line.from];
                node.loop_width = Some(node.loop_width.unwrap_or(0.0).max(line.width()));
                node.loop_height = node
                    .loop_height
                    .max(line.height() + LOOP_HEIGHT - LABEL_HEIGHT);
            } else {
                out[line.from] += 1;
                into[line.to] += 1;
            }
        }
        for (position, node) in self.nodes.iter_mut().enumerate() {
            let lines = real(out[position] + into[position]) * WIDTH_PER_LINE;
            node.width = node.width.max(lines.min(BOX_WIDTH_MAX));
            node.height = node.height.max(real(loops[position]) * node.loop_height);
        }
    }

    pub(super) fn extents(&self) -> Vec<Extent> {
        let extent = |node: &Node| Extent {
            left: node.width / 2.0,
            right: node.width / 2.0 + node.loop_width.map_or(0.0, |width| LOOP_REACH + width),
            height: node.height,
        };
        self.nodes.iter().map(extent).collect()
    }

    /// The lines between different states, in the order of [`Figure::between`].
    pub(super) fn links(&self) -> Vec<Link> {
        let link = |line: &DrawnEdge| Link {
            from: line.from,
            to: line.to,
            label: Extent::centred(line.width(), line.height()),
        };
        self.between().map(link).collect()
    }

    pub(super) fn between(&self) -> impl Iterator<Item = &DrawnEdge> {
        self.lines.iter().filter(|line| line.from != line.to)
    }

    pub(super) fn loops(&self) -> impl Iterator<Item = &DrawnEdge> {
        self.lines.iter().filter(|line| line.from == line.to)
    }
}

impl Node {
    fn of(state: &State, path: Option<&Taken>) -> Node {
        let title = text::wrapped(&state.title, TITLE_WIDTH_MAX / TITLE_SIZE, TITLE_LINES_MAX);
        let detail = detail(state);
        let active = path.and_then(|path| path.active.get(&state.name));
        let work = active.into_iter().flatten().take(WORK_LINES_MAX);
        let work: Vec<_> = work.map(|line| text::label(line)).collect();
        let titles = title.iter();
        let titles = titles.map(|line| text::width(line) * TITLE_SIZE * BOLD);
        let details = work.iter().chain([&detail]);
        let details = details.map(|line| text::width(line) * DETAIL_SIZE);
        let wide = titles.chain(details).fold(0.0, f64::max);
        let visits = path.and_then(|path| path.visits.get(&state.name)).copied();
        Node {
            name: state.name.clone(),
            told: match state.description.as_str() {
                "" => state.name.clone(),
                description => format!("{}: {description}", state.name),
            },
            look: match (&state.kind, state.own_work) {
                (StateKind::Terminal(_), _) => Look::Terminal,
                (_, true) => Look::OwnWork,
                (_, false) => Look::Plain,
            },
            shade: match (path, visits.unwrap_or(0)) {
                (None, _) => Shade::Plain,
                _ if active.is_some() => Shade::Active,
                (Some(_), 0) => Shade::Untouched,
                (Some(_), _) => Shade::Taken,
            },
            visits: visits.unwrap_or(0),
            width: (wide + 2.0 * BOX_PADDING).max(BOX_WIDTH_MIN),
            height: text_height(&title, &detail, &work) + BOX_PADDING,
            loop_height: LOOP_HEIGHT,
            loop_width: None,
            title,
            detail,
            work,
        }
    }

    /// The height of all lines of text.
    pub(super) fn text_height(&self) -> f64 {
        text_height(&self.title, &self.detail, &self.work)
    }

    /// The lines below the title.
    pub(super) fn details(&self) -> impl Iterator<Item = &String> {
        [&self.detail]
            .into_iter()
            .filter(|detail| !detail.is_empty())
            .chain(&self.work)
    }
}

fn text_height(title: &[String], detail: &str, work: &[String]) -> f64 {
    let details = work.len() + usize::from(!detail.is_empty());
    real(title.len()) * TITLE_LINE + real(details) * DETAIL_LINE
}

impl DrawnEdge {
    /// The width of the label with its numbers, or of the widest line below it.
    pub(super) fn width(&self) -> f64 {
        let badge = self.badge_width();
        let gap = if badge > 0.0 { BADGE_GAP } else { 0.0 };
        let notes = self.notes.iter().map(|line| text::width(line) * NOTE_SIZE);
        notes.fold(badge + gap + self.label_width(), f64::max) + 2.0 * LABEL_PADDING
    }

    /// The height of the label with the lines below it.
    pub(super) fn height(&self) -> f64 {
        LABEL_HEIGHT + real(self.notes.len()) * NOTE_LINE
    }

    pub(super) fn label_width(&self) -> f64 {
        text::width(&self.label) * LABEL_SIZE
    }

    pub(super) fn badge_width(&self) -> f64 {
        if self.numbers.is_empty() {
            0.0
        } else {
            (text::width(&self.numbers) * LABEL_SIZE + 8.0).max(16.0)
        }
    }
}

/// The line below the title: the name, if the title differs from it, the kind and the outcome.
fn detail(state: &State) -> String {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let mut parts = Vec::new();
    if plain(&state.title) != plain(&state.name) {
        parts.push(state.name.as_str());
    }
    match &state.kind {
        StateKind::Task => {}
        StateKind::Service | StateKind::Router | StateKind::Wait => parts.push(state.kind.name()),
        // Its title is often the outcome.
        StateKind::Terminal(outcome) if plain(outcome) == plain(&state.title) => {}
        StateKind::Terminal(outcome) => parts.push(outcome),
    }
    let join = match state.join {
        Join::None => None,
        Join::All => Some("join".to_owned()),
        Join::Count(count) => Some(format!("join of {count}")),
    };
    parts.extend(join.as_deref());
    if state.own_work {
        parts.push("own work");
    }
    let parts: Vec<String> = parts.into_iter().map(text::label).collect();
    parts.join(" · ")
}

fn lines(graph: &Graph, path: Option<&Taken>, index: &BTreeMap<&str, usize>) -> Vec<DrawnEdge> {
    let mut taken: BTreeMap<(&str, &str, &str), Vec<usize>> = BTreeMap::new();
    for (step, edge) in path.iter().flat_map(|path| &path.edges).enumerate() {
        taken
            .entry((&edge.source, &edge.trigger, &edge.target))
            .or_default()
            .push(step + 1);
    }
    let mut lines = Vec::new();
    for way in &graph.transitions {
        for target in &way.targets {
            let ends = (index.get(way.source.as_str()), index.get(target.as_str()));
            let (Some(from), Some(to)) = ends else {
                continue;
            };
            let circumstances = circumstances(&graph.states[*from], way);
            let steps = taken.get(&(way.source.as_str(), way.trigger.as_str(), target.as_str()));
            lines.push(DrawnEdge {
                from: *from,
                to: *to,
                about: match circumstances.as_str() {
                    "" => way.trigger.clone(),
                    circumstances => format!("{}: {circumstances}", way.trigger),
                },
                label: text::label(way.shown_title()),
                notes: match circumstances.as_str() {
                    "" => Vec::new(),
                    text => text::wrapped(text, NOTE_WIDTH_MAX / NOTE_SIZE, NOTE_LINES_MAX),
                },
                numbers: steps.map_or_else(String::new, |steps| numbers(steps)),
                shade: match (path, steps) {
                    (None, _) => Shade::Plain,
                    (Some(_), None) => Shade::Untouched,
                    (Some(_), Some(_)) => Shade::Taken,
                },
            });
        }
    }
    lines
}

/// The lines below the label of a transition: the sources that fire it, if they are unusual in this state, and its condition.
pub(super) fn circumstances(state: &State, way: &Transition) -> String {
    let usual = match state.kind {
        StateKind::Task => FiredBy::Decision,
        StateKind::Service => FiredBy::Reply,
        StateKind::Router => FiredBy::Entry,
        StateKind::Wait => FiredBy::Signal,
        StateKind::Terminal(_) => return way.condition.clone(),
    };
    let mut parts = Vec::new();
    if way.by != [usual] {
        let by: Vec<_> = way.by.iter().map(|by| fired_by(*by)).collect();
        parts.push(format!("by {}", by.join(" or ")));
    }
    if !way.condition.is_empty() {
        parts.push(way.condition.clone());
    }
    parts.join(": ")
}

fn fired_by(by: FiredBy) -> &'static str {
    match by {
        FiredBy::Decision => "a decision",
        FiredBy::Signal => "a signal",
        FiredBy::Deadline => "a deadline",
        FiredBy::Reply => "a reply",
        FiredBy::Failure => "a failure",
        FiredBy::Child => "a child",
        FiredBy::Entry => "entry",
    }
}

fn numbers(steps: &[usize]) -> String {
    let shown = &steps[steps.len().saturating_sub(NUMBERS_MAX)..];
    let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
    let before = if steps.len() > NUMBERS_MAX { "…" } else { "" };
    format!("{before}{}", shown.join(", "))
}
