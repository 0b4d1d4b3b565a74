//! What a schema may ask for, checked before it is compiled.
//!
//! Two lines of schema can cost more than a machine has: definitions that refer to each other twice
//! double the work at each step, and one that leads back to itself may never end. So references stay
//! within the document, lead to no place that contains them, and the schema with every reference
//! written out has a bounded size. Validation then takes time in proportion to schema times data.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::SchemaError;
use crate::domain::json::Json;

/// Bytes of a schema's text.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Subschemas, with every reference written out.
pub const SUBSCHEMAS_MAX: u64 = 5_000;
/// Subschemas within each other, with every reference written out.
pub const NESTING_MAX: usize = 100;
/// Regular expressions in one schema.
pub const PATTERNS_MAX: usize = 100;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Keywords whose value is a schema.
const ONE: [&str; 12] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords whose value is a list of schemas.
const MANY: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value's members are schemas.
const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Refuses a document that is no schema of the dialect, or costs too much.
pub(super) fn check(document: &Json) -> Result<(), SchemaError> {
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
        patterns: 0,
    };
    walk.size(String::new(), &root).map(drop)
}

/// What a schema comes to when its references are written out.
#[derive(Clone, Copy)]
struct Size {
    subschemas: u64,
    nesting: usize,
}

impl Size {
    const LEAF: Size = Size {
        subschemas: 1,
        nesting: 1,
    };

    fn hold(&mut self, below: Size) {
        self.subschemas += below.subschemas;
        self.nesting = self.nesting.max(below.nesting + 1);
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// Written-out sizes by pointer; none while the place is being walked.
    sizes: BTreeMap<String, Option<Size>>,
    /// Places being walked.
    depth: usize,
    patterns: usize,
}

impl<'a> Walk<'a> {
    /// The written-out size of the schema at `pointer`, each place walked once.
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
        let mut parts = subschemas(pointer, members);
        if let Some(reference) = members.get("$ref") {
            parts.push(self.referred(pointer, reference)?);
        }
        let mut size = Size::LEAF;
        for (below, subschema) in parts {
            // The way down is bounded before it is taken: it is this thread's stack.
            if self.depth > NESTING_MAX {
                return Err(too_deep(pointer));
            }
            size.hold(self.size(below, subschema)?);
        }
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
        let named = members.get("patternProperties").and_then(Value::as_object);
        self.patterns += usize::from(members.contains_key("pattern")) + named.map_or(0, Map::len);
        if self.patterns > PATTERNS_MAX {
            return Err(error(
                pointer,
                format!("the schema has more than {PATTERNS_MAX} patterns; use fewer"),
            ));
        }
        Ok(())
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
                "the reference leads to no place in this schema; mend its pointer",
            )),
        }
    }
}

fn subschemas<'a>(pointer: &str, members: &'a Map<String, Value>) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, value) in members {
        let keyword = keyword.as_str();
        if ONE.contains(&keyword) {
            found.push((format!("{pointer}/{keyword}"), value));
        } else if MANY.contains(&keyword) {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                found.push((format!("{pointer}/{keyword}/{index}"), item));
            }
        } else if NAMED.contains(&keyword) {
            for (name, item) in value.as_object().into_iter().flatten() {
                found.push((super::member(&format!("{pointer}/{keyword}"), name), item));
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
