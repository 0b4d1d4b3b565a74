//! Templates for people: the title and the summary of an instance, from its entity and its data.
//!
//! A template is text with placeholders. `{/customer/name}` is a value of the data by its JSON Pointer, `{entityType}` and
//! `{entityId}` name the entity, and `{{` and `}}` are braces. A text is shown unchanged, a number or boolean as in JSON. A missing
//! value, null, a list or an object is the empty text. The result is one line without control characters. An empty result is none.

use serde::{Deserialize, Serialize};

use crate::check::names::{TITLE_CHARS_MAX, is_plain, shown};
use crate::graph::Graph;
use crate::instance::Entity;
use crate::json::{Json, Node};

/// Characters of a template.
pub(crate) const TEMPLATE_CHARS_MAX: usize = 500;
/// Placeholders of a template.
pub(crate) const PLACEHOLDERS_MAX: usize = 20;
/// Characters of a summary.
pub(crate) const SUMMARY_CHARS_MAX: usize = 500;

/// The templates of a version, parsed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Templates {
    title: Option<Template>,
    summary: Option<Template>,
}

/// The texts that people are shown of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Labels {
    pub title: Option<String>,
    pub summary: Option<String>,
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    EntityType,
    EntityId,
    /// The segments of a JSON Pointer into the data.
    Data(Vec<String>),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: {detail}")]
pub struct TemplateError {
    /// The place in the text, counted in characters from 1.
    pub at: usize,
    pub detail: String,
}

impl Templates {
    /// The templates of a graph. Fails only for a graph that cannot be published.
    pub fn of(graph: &Graph) -> Result<Templates, TemplateError> {
        let parse = |text: &Option<String>| text.as_deref().map(Template::parse).transpose();
        Ok(Templates {
            title: parse(&graph.instance_title)?,
            summary: parse(&graph.instance_summary)?,
        })
    }

    /// The title and the summary of an instance with this data.
    pub fn labels(&self, entity: &Entity, data: &Json) -> Labels {
        let reads_data = [&self.title, &self.summary].into_iter().flatten();
        let mut parts = reads_data.flat_map(|template| &template.0);
        let data = if parts.any(|part| matches!(part, Part::Data(_))) {
            data.node()
        } else {
            Node::Null
        };
        let line = |template: &Option<Template>, chars_max| {
            template.as_ref()?.line(entity, &data, chars_max)
        };
        Labels {
            title: line(&self.title, TITLE_CHARS_MAX),
            summary: line(&self.summary, SUMMARY_CHARS_MAX),
        }
    }
}

impl Template {
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let chars: Vec<char> = text.chars().collect();
        if chars.is_empty() {
            return failed(0, "a template is not empty; leave it out instead");
        }
        if chars.len() > TEMPLATE_CHARS_MAX {
            let detail = format!("a template has at most {TEMPLATE_CHARS_MAX} characters");
            return failed(TEMPLATE_CHARS_MAX, detail);
        }
        if let Some(at) = chars.iter().position(|c| !is_plain(*c)) {
            return failed(at, "a template is one line without control characters");
        }
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let (mut at, mut placeholders) = (0, 0);
        while let Some(&c) = chars.get(at) {
            let is_brace = matches!(c, '{' | '}');
            if !is_brace || chars.get(at + 1) == Some(&c) {
                plain.push(c);
                at += if is_brace { 2 } else { 1 };
                continue;
            }
            let (part, end) = placeholder(&chars, at)?;
            placeholders += 1;
            if placeholders > PLACEHOLDERS_MAX {
                let detail = format!("a template has at most {PLACEHOLDERS_MAX} placeholders");
                return failed(at, detail);
            }
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(part);
            at = end;
        }
        parts.push(Part::Text(plain));
        Ok(Template(parts))
    }

    /// The text of at most `chars_max` characters; none if it is empty.
    fn line(&self, entity: &Entity, data: &Node, chars_max: usize) -> Option<String> {
        let mut line = PlainLine::default();
        for part in &self.0 {
            let text = match part {
                Part::Text(text) => text,
                Part::EntityType => &entity.kind,
                Part::EntityId => &entity.id,
                Part::Data(segments) => match found(data, segments) {
                    Some(Node::String(text) | Node::Number(text)) => text,
                    Some(Node::Bool(true)) => "true",
                    Some(Node::Bool(false)) => "false",
                    Some(Node::Null | Node::Array(_) | Node::Object(_)) | None => "",
                },
            };
            line.add(text, chars_max);
        }
        line.end(chars_max)
    }
}

fn failed<T>(at: usize, detail: impl Into<String>) -> Result<T, TemplateError> {
    let detail = detail.into();
    Err(TemplateError { at: at + 1, detail })
}

/// The placeholder that the brace at this place begins, and the place after it.
fn placeholder(chars: &[char], at: usize) -> Result<(Part, usize), TemplateError> {
    if chars[at] == '}' {
        return failed(at, "write `}}` for a brace");
    }
    let rest = &chars[at + 1..];
    let Some(length) = rest.iter().position(|c| matches!(c, '{' | '}')) else {
        return failed(at, "the placeholder has no end; write `{{` for a brace");
    };
    let name: String = rest[..length].iter().collect();
    if let Some(part) = part(&name).filter(|_| rest[length] == '}') {
        return Ok((part, at + length + 2));
    }
    let name = shown(&name);
    let detail = format!(
        "`{{{name}}}` is no placeholder: write `{{/name}}` for a value of the data by its JSON Pointer, `{{entityType}}` \
         or `{{entityId}}`, and `{{{{` for a brace"
    );
    failed(at, detail)
}

fn part(name: &str) -> Option<Part> {
    match name {
        "entityType" => Some(Part::EntityType),
        "entityId" => Some(Part::EntityId),
        pointer => {
            let segments = pointer.strip_prefix('/')?.split('/').map(unescaped);
            segments.collect::<Option<_>>().map(Part::Data)
        }
    }
}

/// A segment of a JSON Pointer (RFC 6901); none if it is malformed.
fn unescaped(segment: &str) -> Option<String> {
    let mut parts = segment.split('~');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (tilde, rest) = match part.as_bytes().first() {
            Some(b'0') => ('~', &part[1..]),
            Some(b'1') => ('/', &part[1..]),
            _ => return None,
        };
        plain.push(tilde);
        plain.push_str(rest);
    }
    Some(plain)
}

fn found<'a>(data: &'a Node, segments: &[String]) -> Option<&'a Node> {
    segments.iter().try_fold(data, |node, segment| match node {
        Node::Object(members) => members.get(segment),
        Node::Array(items) => {
            let is_number = segment == "0" || !segment.starts_with(['0', '+']);
            items.get(segment.parse::<usize>().ok().filter(|_| is_number)?)
        }
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) => None,
    })
}

/// One line that is being written. White space becomes one blank, and characters that are not plain are replaced.
#[derive(Default)]
struct PlainLine {
    text: String,
    chars: usize,
    /// White space came after the last character.
    blank: bool,
}

impl PlainLine {
    /// Adds a text until the line is too long.
    fn add(&mut self, text: &str, chars_max: usize) {
        for c in text.chars() {
            if self.chars > chars_max {
                return;
            }
            if c.is_whitespace() {
                self.blank = self.chars > 0;
                continue;
            }
            if std::mem::take(&mut self.blank) {
                self.text.push(' ');
                self.chars += 1;
            }
            self.text.push(if is_plain(c) { c } else { '\u{fffd}' });
            self.chars += 1;
        }
    }

    fn end(mut self, chars_max: usize) -> Option<String> {
        if self.chars > chars_max {
            let end = self.text.char_indices().nth(chars_max - 1);
            self.text.truncate(end.map_or(0, |(at, _)| at));
            self.text.truncate(self.text.trim_end().len());
            self.text.push('…');
        }
        (!self.text.is_empty()).then_some(self.text)
    }
}

#[cfg(test)]
mod tests;
