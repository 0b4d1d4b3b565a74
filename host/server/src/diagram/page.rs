//! Writes a diagram as SVG.
//!
//! Screen readers get a title and a description in sentences. Colours follow the reader's light or dark
//! setting. They are literals, because not all viewers know variables.

mod words;

use std::fmt::{Arguments, Write as _};

use super::figure::{
    BADGE_GAP, DETAIL_LINE, DrawnEdge, Figure, LABEL_HEIGHT, LOOP_REACH, Look, NOTE_LINE, Node,
    Shade, TITLE_LINE,
};
use super::layout::{Layout, Route, Spot, real};
use super::text::escaped;

pub(super) use words::Words;

const MARGIN: f64 = 24.0;
/// Space above the first state for the mark of the start.
const START: f64 = 34.0;
/// The styles of a drawing, for pages that have them in a file of their own.
pub const STYLE: &str = include_str!("page/diagram.css");

/// An SVG text that is being written.
pub(super) struct Page(String);

impl Page {
    /// The diagram with this layout.
    pub(super) fn drawn(words: &Words, figure: &Figure, layout: &Layout) -> String {
        let mut page = Page(String::new());
        page.open(
            words,
            layout.width + 2.0 * MARGIN,
            layout.height + 2.0 * MARGIN + START,
        );
        page.add(format_args!(
            r#"<g transform="translate({} {})">"#,
            n(MARGIN),
            n(MARGIN + START)
        ));
        let mut ways: Vec<(&DrawnEdge, &Route)> = figure.between().zip(&layout.routes).collect();
        // Taken edges are drawn above the others.
        ways.sort_by_key(|(line, _)| line.shade);
        page.start(layout.nodes[figure.root], &figure.nodes[figure.root]);
        for (line, route) in &ways {
            page.line(line, route);
        }
        for (line, route) in &ways {
            page.label(line, route.label);
        }
        page.loops(figure, layout);
        for (node, spot) in figure.nodes.iter().zip(&layout.nodes) {
            page.node(node, *spot);
        }
        page.add(format_args!("</g></svg>\n"));
        page.0
    }

    /// A sentence instead of a diagram that is too large to read.
    pub(super) fn sentence(words: &Words, figure: &Figure) -> String {
        let mut page = Page(String::new());
        page.open(words, 560.0, 80.0);
        page.add(format_args!(
            r#"<text class="title plain" x="24" y="45" text-anchor="start">{} states with {} ways between them cannot be drawn</text></svg>{}"#,
            figure.nodes.len(),
            figure.lines.len(),
            '\n'
        ));
        page.0
    }

    fn add(&mut self, text: Arguments<'_>) {
        self.0.write_fmt(text).expect("a string takes any text");
    }

    fn open(&mut self, words: &Words, width: f64, height: f64) {
        let (width, height) = (n(width.ceil()), n(height.ceil()));
        self.add(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="wrkflw-diagram" role="img" aria-labelledby="wrkflw-title wrkflw-desc" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
        ));
        self.add(format_args!(
            r#"<title id="wrkflw-title">{}</title><desc id="wrkflw-desc">{}</desc><style>{STYLE}</style><defs>"#,
            escaped(&words.title),
            escaped(&words.description)
        ));
        for shade in [Shade::Untouched, Shade::Plain, Shade::Taken] {
            let class = shade.class();
            self.add(format_args!(
                r#"<marker id="wrkflw-{class}" class="head {class}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1 10 5 0 9z"/></marker>"#
            ));
        }
        self.add(format_args!(
            r#"</defs><rect class="canvas" width="{width}" height="{height}" rx="12"/>"#
        ));
    }

    /// A dot with an arrow, above the state that an instance starts in.
    fn start(&mut self, spot: Spot, node: &Node) {
        let class = match node.shade {
            Shade::Active => Shade::Taken.class(),
            other => other.class(),
        };
        let top = spot.y - node.height / 2.0;
        self.add(format_args!(
            r#"<circle class="dot {class}" cx="{x}" cy="{}" r="5"/><path class="line {class}" d="M{x} {}V{}" marker-end="url(#wrkflw-{class})"/>"#,
            n(top - 26.0),
            n(top - 21.0),
            n(top),
            x = n(spot.x)
        ));
    }

    fn line(&mut self, line: &DrawnEdge, route: &Route) {
        let class = line.shade.class();
        let mut way = String::new();
        for (index, segment) in route.segments.iter().enumerate() {
            let drawn = if index == 0 {
                write!(way, "M{} {}", n(segment.x), n(segment.leaves))
            } else {
                let before = route.segments[index - 1];
                let bend = f64::midpoint(before.leaves, segment.enters);
                let curve = write!(
                    way,
                    "C{} {bend} {x} {bend} {x} {}",
                    n(before.x),
                    n(segment.enters),
                    x = n(segment.x),
                    bend = n(bend)
                );
                let passes = (segment.enters - segment.leaves).abs() > 0.05;
                curve.and_then(|()| {
                    if passes {
                        write!(way, "V{}", n(segment.leaves))
                    } else {
                        Ok(())
                    }
                })
            };
            drawn.expect("a string takes any text");
        }
        self.add(format_args!(
            r#"<path class="line {class}" d="{way}" marker-end="url(#wrkflw-{class})"/>"#
        ));
    }

    /// The title of the trigger, behind the numbers of the steps that took it and above its sources.
    fn label(&mut self, line: &DrawnEdge, middle: Spot) {
        let class = line.shade.class();
        let (width, badge) = (line.width(), line.badge_width());
        let left = middle.x - width / 2.0;
        let top = middle.y - line.height() / 2.0;
        let base = n(top + LABEL_HEIGHT / 2.0 + 4.0);
        self.add(format_args!(
            r#"<g class="label {class}"><title>{}</title><rect class="behind" x="{}" y="{}" width="{}" height="{}"/>"#,
            escaped(&line.about),
            n(left),
            n(top),
            n(width),
            n(line.height())
        ));
        // The text begins at a fixed distance from the badge, whatever the width of the reader's font.
        let mut text = (middle.x, "");
        if badge > 0.0 {
            let start = left + (width - badge - BADGE_GAP - line.label_width()) / 2.0;
            text = (start + badge + BADGE_GAP, r#" class="after""#);
            self.add(format_args!(
                r#"<rect class="badge" x="{}" y="{}" width="{}" height="16" rx="8"/><text class="number" x="{}" y="{base}">{}</text>"#,
                n(start),
                n(top + 1.0),
                n(badge),
                n(start + badge / 2.0),
                escaped(&line.numbers)
            ));
        }
        self.add(format_args!(
            r#"<text{} x="{}" y="{base}">{}</text>"#,
            text.1,
            n(text.0),
            escaped(&line.label)
        ));
        for (below, note) in line.notes.iter().enumerate() {
            self.add(format_args!(
                r#"<text class="note" x="{}" y="{}">{}</text>"#,
                n(middle.x),
                n(top + LABEL_HEIGHT + real(below) * NOTE_LINE + 9.0),
                escaped(note)
            ));
        }
        self.add(format_args!("</g>"));
    }

    /// Edges from a state to itself, one below the other on its right side.
    fn loops(&mut self, figure: &Figure, layout: &Layout) {
        let mut drawn = vec![0_usize; figure.nodes.len()];
        let mut counts = vec![0_usize; figure.nodes.len()];
        figure.loops().for_each(|line| counts[line.from] += 1);
        for line in figure.loops() {
            let (node, spot) = (&figure.nodes[line.from], layout.nodes[line.from]);
            let below = real(drawn[line.from]) - real(counts[line.from] - 1) / 2.0;
            drawn[line.from] += 1;
            let x = spot.x + node.width / 2.0;
            let y = spot.y + below * node.loop_height;
            let class = line.shade.class();
            let far = x + LOOP_REACH;
            self.add(format_args!(
                r#"<path class="line {class}" d="M{x} {above}C{far} {above} {far} {below} {x} {below}" marker-end="url(#wrkflw-{class})"/>"#,
                x = n(x),
                far = n(far),
                above = n(y - 6.0),
                below = n(y + 6.0)
            ));
            let middle = x + LOOP_REACH - 2.0 + line.width() / 2.0;
            self.label(line, Spot { x: middle, y });
        }
    }

    fn node(&mut self, node: &Node, spot: Spot) {
        let shade = node.shade.class();
        let (look, corner) = match node.look {
            Look::Plain => ("task", 10.0),
            Look::OwnWork => ("own", 10.0),
            Look::Terminal => ("terminal", node.height / 2.0),
        };
        let (left, top) = (spot.x - node.width / 2.0, spot.y - node.height / 2.0);
        let name = escaped(&node.name);
        self.add(format_args!(
            r#"<g class="state {look} {shade}" data-state="{name}"><title>{}</title>"#,
            escaped(&node.told)
        ));
        self.frame(left, top, node.width, node.height, corner);
        if node.look == Look::Terminal {
            self.frame(
                left + 4.0,
                top + 4.0,
                node.width - 8.0,
                node.height - 8.0,
                corner - 4.0,
            );
        }
        let mut base = spot.y - node.text_height() / 2.0 + 14.0;
        let x = n(spot.x);
        for line in &node.title {
            let line = escaped(line);
            self.add(format_args!(
                r#"<text class="title" x="{x}" y="{}">{line}</text>"#,
                n(base)
            ));
            base += TITLE_LINE;
        }
        for detail in node.details() {
            let detail = escaped(detail);
            self.add(format_args!(
                r#"<text class="detail" x="{x}" y="{}">{detail}</text>"#,
                n(base - 2.0)
            ));
            base += DETAIL_LINE;
        }
        if node.visits > 0 {
            self.visits(node.visits, left + node.width, top);
        }
        self.add(format_args!("</g>"));
    }

    fn frame(&mut self, left: f64, top: f64, width: f64, height: f64, corner: f64) {
        self.add(format_args!(
            r#"<rect class="frame" x="{}" y="{}" width="{}" height="{}" rx="{}"/>"#,
            n(left),
            n(top),
            n(width),
            n(height),
            n(corner)
        ));
    }

    /// How often the state was entered, on the corner of its box.
    fn visits(&mut self, visits: u32, right: f64, top: f64) {
        let text = format!("×{visits}");
        let width = super::text::width(&text) * 11.0 + 8.0;
        self.add(format_args!(
            r#"<rect class="badge" x="{}" y="{}" width="{}" height="16" rx="8"/><text class="number" x="{}" y="{}">{text}</text>"#,
            n(right - width + 6.0),
            n(top - 8.0),
            n(width),
            n(right - width / 2.0 + 6.0),
            n(top + 4.0)
        ));
    }
}

/// Rounds a length to tenths, without a negative zero.
fn n(length: f64) -> f64 {
    (length * 10.0).round() / 10.0 + 0.0
}
