//! The drawing of a flow as a part of a page: its states are links, and it has several sizes. The page contains the markup
//! itself, not an image. So the flow is drawn once, and links and sizes need no script. Its template is `templates/drawing.html`.

use std::fmt;

use askama::filters::HtmlSafe;

use crate::session::Visitor;

/// Sizes, in hundredths of the usual one.
const SIZES: [u32; 7] = [25, 50, 75, 100, 150, 200, 300];
const USUAL: u32 = 100;
/// The size that is as wide as the page.
const FIT: &str = "fit";
/// The markup at which a state begins in a drawing, and its name.
const STATE: &str = "<g class=\"state ";
const NAME: &str = "data-state=\"";

/// Markup as the server writes it. Every text of other people in it is escaped.
pub(crate) struct Markup(String);

impl HtmlSafe for Markup {}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A state with the markup up to the next state.
pub(crate) struct Piece {
    /// The address that the state leads to.
    pub(crate) way: Option<String>,
    pub(crate) state: Markup,
    pub(crate) rest: Markup,
}

pub(crate) struct Drawing {
    pub(crate) head: Markup,
    pub(crate) pieces: Vec<Piece>,
    /// Why there is no drawing; empty if there is one.
    pub(crate) refusal: String,
    /// The present size in hundredths; empty if it is as wide as the page.
    pub(crate) size: String,
    pub(crate) smaller: Option<String>,
    pub(crate) larger: Option<String>,
    pub(crate) usual: Option<String>,
    pub(crate) fit: Option<String>,
    /// The drawing as a file.
    pub(crate) file: String,
}

/// How large a drawing is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Size {
    Fit,
    Hundredths(u32),
}

impl Size {
    /// The size in an address, if it is one of the sizes.
    fn of(text: &str) -> Size {
        if text == FIT {
            return Size::Fit;
        }
        let number = text.parse().ok().filter(|size| SIZES.contains(size));
        Size::Hundredths(number.unwrap_or(USUAL))
    }

    /// The next smaller size and the next larger one.
    fn others(self) -> (Option<u32>, Option<u32>) {
        let own = match self {
            Size::Fit => USUAL,
            Size::Hundredths(own) => own,
        };
        let smaller = SIZES.into_iter().rev().find(|size| *size < own);
        (smaller, SIZES.into_iter().find(|size| *size > own))
    }
}

impl Drawing {
    /// The drawing at this path of the API. `file` is its address in the console, `page` gives the address of the page with
    /// another size, `way` the target of a state's link.
    pub(crate) async fn of(
        visitor: &Visitor,
        path: &str,
        file: String,
        wanted: &str,
        page: impl Fn(&str) -> String,
        way: impl Fn(&str) -> Option<String>,
    ) -> Drawing {
        let size = Size::of(wanted);
        let page = |size: &str| format!("{}#diagram", page(size));
        let (smaller, larger) = size.others();
        let numbered = |size: Option<u32>| size.map(|size| page(&size.to_string()));
        let (drawn, refusal) = match visitor.api.text(path).await {
            Ok(drawn) => (drawn, String::new()),
            Err(trouble) => (String::new(), trouble.detail),
        };
        let (head, pieces) = taken_apart(&drawn, size, way);
        Drawing {
            head,
            pieces,
            refusal,
            size: match size {
                Size::Fit => String::new(),
                Size::Hundredths(size) => size.to_string(),
            },
            smaller: numbered(smaller),
            larger: numbered(larger),
            usual: (size != Size::Hundredths(USUAL)).then(|| page("")),
            fit: (size != Size::Fit).then(|| page(FIT)),
            file,
        }
    }
}

/// The beginning of a drawing, and its states.
fn taken_apart(
    drawing: &str,
    size: Size,
    way: impl Fn(&str) -> Option<String>,
) -> (Markup, Vec<Piece>) {
    let mut states = drawing.split(STATE);
    let head = head(states.next().unwrap_or_default(), size);
    let pieces = states.map(|text| {
        let name = text
            .split_once(NAME)
            .and_then(|(_, rest)| rest.split_once('"'));
        // No state has a group within it.
        let (state, rest) = text.split_once("</g>").unwrap_or((text, ""));
        Piece {
            way: name.and_then(|(name, _)| way(&plain(name))),
            state: Markup(format!("{STATE}{state}</g>")),
            rest: Markup(rest.to_owned()),
        }
    });
    (head, pieces.collect())
}

/// The beginning of the drawing, in this size and without its styles, which the policy of pages forbids there. It does not
/// have the role of an image, because it has links.
fn head(drawing: &str, size: Size) -> Markup {
    let (before, styles) = drawing.split_once("<style>").unwrap_or((drawing, ""));
    let after = styles.split_once("</style>").map_or("", |(_, rest)| rest);
    let mut text = before.replacen(
        " role=\"img\" aria-labelledby=\"wrkflw-title wrkflw-desc\"",
        " role=\"group\" aria-labelledby=\"wrkflw-title\" aria-describedby=\"wrkflw-desc\"",
        1,
    );
    for side in ["width", "height"] {
        let Some((own, scaled)) = sized(&text, side, size) else {
            continue;
        };
        text = text.replacen(&own, &scaled, 1);
    }
    Markup(text + after)
}

/// A side of a drawing: its own length, and the length in this size.
fn sized(drawing: &str, edge: &str, wanted: Size) -> Option<(String, String)> {
    let begin = format!(" {edge}=\"");
    let (number, _) = drawing.split_once(&begin)?.1.split_once('"')?;
    let own = format!("{begin}{number}\"");
    let scaled = match (wanted, edge) {
        (Size::Fit, "width") => format!("{begin}100%\""),
        (Size::Fit, _) => String::new(),
        (Size::Hundredths(hundredths), _) => {
            let pixels = number.parse::<f64>().ok()? * f64::from(hundredths) / f64::from(USUAL);
            format!("{begin}{pixels}\"")
        }
    };
    Some((own, scaled))
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

    const DRAWING: &str = concat!(
        "<svg class=\"wrkflw-diagram\" role=\"img\" aria-labelledby=\"wrkflw-title wrkflw-desc\" width=\"200\" height=\"90\" viewBox=\"0 0 200 90\">",
        "<style>.a{fill:red}</style><g transform=\"translate(24 58)\">",
        "<g class=\"state task taken\" data-state=\"a&amp;&lt;b\"><title>t</title><rect class=\"frame\"/></g>",
        "<g class=\"state task\" data-state=\"c\"><rect class=\"frame\"/></g></g></svg>",
    );

    fn way(name: &str) -> Option<String> {
        (name == "a&<b").then(|| "/there".to_owned())
    }

    #[test]
    fn states_lead_to_where_they_are_told_of_and_nothing_else_changes() {
        let (head, pieces) = taken_apart(DRAWING, Size::Hundredths(100), way);
        let ways: Vec<_> = pieces.iter().map(|piece| piece.way.is_some()).collect();
        assert_eq!(ways, [true, false]);
        let parts = pieces.iter().flat_map(|piece| [&piece.state, &piece.rest]);
        let rest: String = parts.map(ToString::to_string).collect();
        let (_, states) = DRAWING.split_once("</style>").expect("styles");
        assert!(format!("{head}{rest}").ends_with(states));
        assert!(!head.to_string().contains("style"), "{head}");
        assert!(!head.to_string().contains("img"), "{head}");
    }

    #[test]
    fn a_drawing_has_the_size_that_is_asked_for() {
        let sides = |text: &str| {
            let (head, _) = taken_apart(DRAWING, Size::of(text), way);
            let (_, sides) = head.0.split_once("\"wrkflw-desc\"").expect("a head");
            sides.split_once(" viewBox").expect("a box").0.to_owned()
        };
        assert_eq!(sides("150"), " width=\"300\" height=\"135\"");
        assert_eq!(sides("fit"), " width=\"100%\"");
        for unknown in ["", "100", "7", "1e9", "\"><b>"] {
            assert_eq!(sides(unknown), " width=\"200\" height=\"90\"", "{unknown}");
        }
        assert_eq!(Size::of("25").others(), (None, Some(50)));
        assert_eq!(Size::of("300").others(), (Some(200), None));
        assert_eq!(Size::Fit.others(), (Some(75), Some(150)));
    }
}
