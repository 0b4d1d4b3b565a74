//! The bounds on a schema, checked before it is compiled.
//!
//! A short schema can be arbitrarily expensive: definitions that refer to each other twice double the work at each step, and
//! a recursive definition may never end. So references must stay within the document and must not be recursive. The size of
//! the schema with every reference expanded is bounded. [`super::cost`] then computes the cost of validation.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::SchemaError;
use super::cost::{Cost, Matching, OfPatterns, Part, Price};
use super::pattern::{PATTERNS_MAX, Patterns};
use crate::json::Json;

/// Bytes of a schema's text.
pub(crate) const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Subschemas, with every reference expanded.
pub(crate) const SUBSCHEMAS_MAX: u64 = 5_000;
/// Nesting of subschemas, with every reference expanded.
pub const NESTING_MAX: usize = 100;
/// Values of one `enum`. The time to compare them with each other is quadratic.
pub(crate) const ENUM_VALUES_MAX: usize = 2_000;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Keywords whose value is a schema.
const ONE: [(&str, Part); 12] = [
    ("additionalItems", Part::Items),
    ("additionalProperties", Part::Members),
    ("contains", Part::Sought),
    ("contentSchema", Part::Definition),
    ("else", Part::Same),
    ("if", Part::Condition),
    ("items", Part::Items),
    ("not", Part::Condition),
    ("propertyNames", Part::Members),
    ("then", Part::Same),
    ("unevaluatedItems", Part::Sought),
    ("unevaluatedProperties", Part::RestOfMembers),
];
/// Keywords whose value is a list of schemas.
const MANY: [(&str, Part); 4] = [
    ("allOf", Part::Same),
    ("anyOf", Part::Branch),
    ("oneOf", Part::Branch),
    ("prefixItems", Part::One(1)),
];
/// Keywords whose value's members are schemas.
const NAMED: [(&str, Part); 6] = [
    ("$defs", Part::Definition),
    ("definitions", Part::Definition),
    ("dependencies", Part::Same),
    ("dependentSchemas", Part::Same),
    ("patternProperties", Part::Members),
    ("properties", Part::One(4)),
];

/// Checks that a document is a schema of the dialect and within the bounds. Returns its cost, and the bytes of the tables of its
/// patterns. A `new` schema must also satisfy the bounds that do not apply to older schemas.
pub(super) fn check(document: &Json, new: bool) -> Result<(Cost, usize), SchemaError> {
    let bytes = document.as_str().len();
    if bytes > SCHEMA_BYTES_MAX {
        return Err(error(
            "",
            format!("the schema has {bytes} bytes; at most {SCHEMA_BYTES_MAX} are allowed"),
        ));
    }
    let root = document.value();
    let mut walk = Walk {
        root: &root,
        sizes: BTreeMap::new(),
        depth: 0,
        patterns: Patterns::of(new),
        new,
    };
    let cost = walk.size(String::new(), &root)?.cost;
    let patterns = walk.patterns;
    Ok((cost.with_tables(patterns.building()), patterns.tables()))
}

/// The size and cost of a schema with its references expanded.
#[derive(Clone, Copy)]
struct Size {
    subschemas: u64,
    nesting: usize,
    cost: Cost,
}

impl Size {
    const LEAF: Size = Size {
        subschemas: 1,
        nesting: 1,
        cost: Cost::PLAIN,
    };

    fn hold(&mut self, below: Size) {
        self.subschemas += below.subschemas;
        self.nesting = self.nesting.max(below.nesting + 1);
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// Expanded sizes by pointer; none while the place is being visited.
    sizes: BTreeMap<String, Option<Size>>,
    /// How many places are being visited.
    depth: usize,
    patterns: Patterns,
    new: bool,
}

impl<'a> Walk<'a> {
    /// The expanded size of the schema at `pointer`. Each place is visited once.
    fn size(&mut self, pointer: String, schema: &'a Value) -> Result<Size, SchemaError> {
        let Value::Object(members) = schema else {
            return Ok(Size::LEAF);
        };
        match self.sizes.get(&pointer) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => {
                return Err(error(
                    &pointer,
                    "the schema refers back to itself, which is not supported; write the nesting out to \
                     the depth that you need",
                ));
            }
            None => {}
        }
        self.sizes.insert(pointer.clone(), None);
        self.depth += 1;
        let size = self.walked(&pointer, members)?;
        self.depth -= 1;
        self.sizes.insert(pointer, Some(size));
        Ok(size)
    }

    fn walked(
        &mut self,
        pointer: &str,
        members: &'a Map<String, Value>,
    ) -> Result<Size, SchemaError> {
        self.keywords(pointer, members)?;
        let patterns = self.patterns(pointer, members)?;
        let mut parts = subschemas(pointer, members);
        if let Some(reference) = members.get("$ref") {
            let (target, schema) = self.referred(pointer, reference)?;
            parts.push((Part::Reference, target, schema));
        }
        let mut size = Size::LEAF;
        let mut costs = Vec::with_capacity(parts.len());
        for (part, below, subschema) in parts {
            // Bounds the recursion, which uses this thread's stack.
            if self.depth > NESTING_MAX {
                return Err(too_deep(pointer));
            }
            let below = self.size(below, subschema)?;
            size.hold(below);
            costs.push((part, below.cost));
        }
        size.cost = Cost::of(members, patterns, &costs);
        if size.nesting > NESTING_MAX {
            return Err(too_deep(pointer));
        }
        if size.subschemas > SUBSCHEMAS_MAX {
            return Err(error(
                pointer,
                format!(
                    "with every reference written out there are more than {SUBSCHEMAS_MAX} subschemas; \
                     use fewer references"
                ),
            ));
        }
        Ok(size)
    }

    fn keywords(&mut self, pointer: &str, members: &Map<String, Value>) -> Result<(), SchemaError> {
        let top = pointer.is_empty();
        match members.get("$schema") {
            Some(Value::String(dialect)) if top && dialect.trim_end_matches('#') == DIALECT => {}
            Some(_) => {
                return Err(error(
                    &format!("{pointer}/$schema"),
                    format!(
                        "only the dialect `{DIALECT}` is supported, named at the top or not at all"
                    ),
                ));
            }
            None => {}
        }
        for keyword in ["$id", "$dynamicRef", "$recursiveRef"] {
            if members.contains_key(keyword) && !(top && keyword == "$id") {
                return Err(error(
                    &format!("{pointer}/{keyword}"),
                    format!("`{keyword}` is not supported here; refer to `#/$defs/...` instead"),
                ));
            }
        }
        let values = members.get("enum").and_then(Value::as_array);
        if self.new && values.is_some_and(|values| values.len() > ENUM_VALUES_MAX) {
            return Err(error(
                &format!("{pointer}/enum"),
                format!("at most {ENUM_VALUES_MAX} values; keep longer lists outside the schema"),
            ));
        }
        Ok(())
    }

    /// The cost of the patterns of one schema object.
    fn patterns(
        &mut self,
        pointer: &str,
        members: &Map<String, Value>,
    ) -> Result<OfPatterns, SchemaError> {
        let text = members.get("pattern").and_then(Value::as_str);
        let names = members.get("patternProperties").and_then(Value::as_object);
        let names = || names.into_iter().flat_map(Map::keys);
        let count = usize::from(text.is_some()) + names().count();
        if self.patterns.are_too_many(count) {
            return Err(error(
                pointer,
                format!("the schema has more than {PATTERNS_MAX} patterns; use fewer"),
            ));
        }
        let mut prices = OfPatterns::default();
        if let Some(text) = text {
            prices.text = self.pattern(&format!("{pointer}/pattern"), text)?;
        }
        for name in names() {
            let place = super::checked::member(&format!("{pointer}/patternProperties"), name);
            prices.names = prices.names.and(self.pattern(&place, name)?);
        }
        Ok(prices)
    }

    fn pattern(&mut self, place: &str, pattern: &str) -> Result<Matching, SchemaError> {
        let matching = match self.patterns.take(pattern) {
            Ok(matching) => matching,
            Err(detail) if self.new => return Err(error(place, detail)),
            // A schema that was admitted earlier is not refused, even if this parser cannot read the pattern.
            Err(_) => Matching {
                run: Price::UNKNOWN,
                ..Matching::default()
            },
        };
        match self.patterns.excess() {
            Some(detail) if self.new => Err(error(place, detail)),
            _ => Ok(matching),
        }
    }

    fn referred(
        &self,
        pointer: &str,
        reference: &Value,
    ) -> Result<(String, &'a Value), SchemaError> {
        let place = format!("{pointer}/$ref");
        let text = reference.as_str().unwrap_or_default();
        let local = text.strip_prefix('#').filter(|target| {
            (target.is_empty() || target.starts_with('/')) && !target.contains('%')
        });
        let Some(target) = local else {
            return Err(error(
                &place,
                "nothing is fetched and anchors are not followed; refer to a place in this schema, such \
                 as `#/$defs/address`, without percent-encoding",
            ));
        };
        match self.root.pointer(target) {
            Some(schema) => Ok((target.to_owned(), schema)),
            None => Err(error(
                &place,
                "the reference leads to no place in this schema; correct its pointer",
            )),
        }
    }
}

fn subschemas<'a>(
    pointer: &str,
    members: &'a Map<String, Value>,
) -> Vec<(Part, String, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, value) in members {
        let part = |of: &[(&str, Part)]| {
            let known = of.iter().find(|(known, _)| known == keyword);
            known.map(|(_, part)| *part)
        };
        if let Some(part) = part(&ONE) {
            found.push((part, format!("{pointer}/{keyword}"), value));
        } else if let Some(part) = part(&MANY) {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                found.push((part, format!("{pointer}/{keyword}/{index}"), item));
            }
        } else if let Some(part) = part(&NAMED) {
            for (name, item) in value.as_object().into_iter().flatten() {
                let place = super::checked::member(&format!("{pointer}/{keyword}"), name);
                let part = match part {
                    // The bytes of the name are added to those of quotes, a colon and a comma.
                    Part::One(around) => Part::One(around + name.len() as u64),
                    part => part,
                };
                found.push((part, place, item));
            }
        }
    }
    found
}

fn too_deep(pointer: &str) -> SchemaError {
    error(
        pointer,
        format!(
            "with every reference written out more than {NESTING_MAX} subschemas lie within each other; \
             make the schema flatter"
        ),
    )
}

fn error(pointer: &str, detail: impl Into<String>) -> SchemaError {
    SchemaError {
        pointer: pointer.to_owned(),
        detail: detail.into(),
    }
}
