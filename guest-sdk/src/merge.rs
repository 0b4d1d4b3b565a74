//! JSON Merge Patch (RFC 7396) on JSON texts. Numbers keep their digits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

type Fields<'a> = BTreeMap<String, Cow<'a, str>>;

/// The target with the patch applied.
pub(crate) fn merge(target: &str, patch: &str) -> String {
    let Some(changes) = fields(patch) else {
        return patch.to_owned();
    };
    let mut merged = fields(target).unwrap_or_default();
    for (key, change) in changes {
        if change == "null" {
            merged.remove(&key);
        } else {
            let earlier = merged.get(&key).map_or("null", |value| value);
            let value = merge(earlier, &change);
            merged.insert(key, value.into());
        }
    }
    object(&merged)
}

/// The patch that changes `old` to `new`. None if they are equal.
pub(crate) fn difference(old: &str, new: &str) -> Option<String> {
    let (Some(mut before), Some(after)) = (fields(old), fields(new)) else {
        return (!is_same(old, new)).then(|| new.to_owned());
    };
    let mut patch = Fields::new();
    for (key, value) in after {
        let change = match before.remove(&key) {
            Some(earlier) => difference(&earlier, &value).map(Cow::Owned),
            None => (value != "null").then_some(value),
        };
        if let Some(change) = change {
            patch.insert(key, change);
        }
    }
    let gone = before.into_keys().map(|key| (key, "null".into()));
    patch.extend(gone);
    (!patch.is_empty()).then(|| object(&patch))
}

/// Merges two patches into one. Nulls, which remove fields of the data, are kept. Fails with the name of a field if the first patch
/// removes it or makes it a plain value, and the second makes it an object: in a merge patch, an object only changes the object in the
/// data.
pub(crate) fn compose(first: &str, second: &str) -> Result<String, String> {
    let (Some(mut both), Some(changes)) = (fields(first), fields(second)) else {
        return Ok(second.to_owned());
    };
    for (key, change) in changes {
        let change = match both.remove(&key) {
            Some(earlier) if fields(&change).is_some() && fields(&earlier).is_none() => {
                return Err(key);
            }
            Some(earlier) => compose(&earlier, &change)?.into(),
            None => change,
        };
        both.insert(key, change);
    }
    Ok(object(&both))
}

/// Applies the change from `before` to `after` to the stored data. `before` and `after` are written by the author's type. So they may
/// lack stored fields, and have further ones by default. Everything they do not change is kept.
///
/// A list item is matched with an equal earlier item, or else with the item at the same index of a list of the same length.
pub(crate) fn updated(stored: &str, before: &str, after: &str) -> String {
    if is_same(before, after) {
        return stored.to_owned();
    }
    if let (Some(stored), Some(before), Some(after)) =
        (fields(stored), fields(before), fields(after))
    {
        return updated_object(stored, &before, after);
    }
    if let (Some(stored), Some(before), Some(after)) = (items(stored), items(before), items(after))
        && stored.len() == before.len()
    {
        return updated_list(&stored, &before, &after);
    }
    after.to_owned()
}

fn updated_object(mut stored: Fields<'_>, before: &Fields<'_>, after: Fields<'_>) -> String {
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        stored.remove(key);
    }
    for (key, value) in after {
        let earlier = before.get(&key);
        if earlier.is_some_and(|earlier| is_same(earlier, &value)) {
            continue;
        }
        let value = match (stored.remove(&key), earlier) {
            _ if value == "null" => continue,
            (Some(kept), Some(earlier)) => updated(&kept, earlier, &value).into(),
            _ => value.into_owned().into(),
        };
        stored.insert(key, value);
    }
    object(&stored)
}

fn updated_list(stored: &[&str], before: &[&str], after: &[&str]) -> String {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, item) in before.iter().enumerate().rev() {
        places.entry(item).or_default().push(place);
    }
    let mut is_kept = vec![false; before.len()];
    let mut kept = Vec::with_capacity(after.len());
    for item in after {
        let place = places.get_mut(item).and_then(Vec::pop);
        if let Some(place) = place {
            is_kept[place] = true;
        }
        kept.push(place);
    }
    let same_length = before.len() == after.len();
    let list = after
        .iter()
        .enumerate()
        .map(|(place, item)| match kept[place] {
            Some(earlier) => stored[earlier].to_owned(),
            None if same_length && !is_kept[place] => updated(stored[place], before[place], item),
            None => (*item).to_owned(),
        });
    format!("[{}]", list.collect::<Vec<_>>().join(","))
}

/// Whether the texts have the same fields, items and scalars. Numbers are the same if they are written with the same digits.
fn is_same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    if let (Some(one), Some(other)) = (fields(one), fields(other)) {
        let same = |(key, value): (&String, &Cow<'_, str>)| {
            other.get(key).is_some_and(|other| is_same(value, other))
        };
        return one.len() == other.len() && one.iter().all(same);
    }
    if let (Some(one), Some(other)) = (items(one), items(other)) {
        let mut pairs = one.iter().zip(&other);
        return one.len() == other.len() && pairs.all(|(one, other)| is_same(one, other));
    }
    false
}

/// The fields of an object; none if this is another value.
fn fields(text: &str) -> Option<Fields<'_>> {
    let read = text.trim_start().starts_with('{');
    let read = read.then(|| serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok())??;
    let fields = read.into_iter();
    Some(
        fields
            .map(|(key, value)| (key, value.get().into()))
            .collect(),
    )
}

/// The items of a list; none if this is another value.
fn items(text: &str) -> Option<Vec<&str>> {
    let read = text.trim_start().starts_with('[');
    let read = read.then(|| serde_json::from_str::<Vec<&RawValue>>(text).ok())??;
    Some(read.into_iter().map(RawValue::get).collect())
}

fn object(fields: &Fields<'_>) -> String {
    let fields = fields.iter();
    let fields = fields.map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applying_the_difference_gives_the_new_value() {
        let values = [
            r#"{"a":1,"b":{"c":[1],"d":"x"}}"#,
            r#"{"a":1.0,"b":{"c":[12345678901234567890.5],"e\"":{}}}"#,
            "{}",
        ];
        for (old, new) in values
            .iter()
            .flat_map(|old| values.iter().map(move |new| (*old, *new)))
        {
            let patch = difference(old, new);
            assert_eq!(patch.is_none(), old == new, "{patch:?}");
            let patched = patch.map_or(old.to_owned(), |patch| merge(old, &patch));
            assert_eq!(patched, new);
        }
        // The order of fields does not matter.
        assert_eq!(difference(r#"[{"a":1,"b":2}]"#, r#"[{"b":2,"a":1}]"#), None);
    }

    #[test]
    fn a_composed_patch_equals_both_patches_in_order() {
        let (first, second) = (
            r#"{"a":null,"b":{"c":1},"f":0.10000000000000000001}"#,
            r#"{"b":{"c":null,"d":2},"e":3}"#,
        );
        let both = compose(first, second).expect("a patch");
        let data = r#"{"a":1,"b":{"c":0,"x":1}}"#;
        assert_eq!(merge(data, &both), merge(&merge(data, first), second));
        assert_eq!(
            merge(data, &both),
            r#"{"b":{"d":2,"x":1},"e":3,"f":0.10000000000000000001}"#
        );
    }

    #[test]
    fn an_object_after_a_removal_is_refused() {
        for gone in ["null", "1", "[]"] {
            let first = format!(r#"{{"deep":{{"a":{gone}}}}}"#);
            let refused = compose(&first, r#"{"deep":{"a":{"c":1}}}"#);
            assert_eq!(refused, Err("a".to_owned()));
            let plain = compose(&first, r#"{"deep":{"a":2}}"#);
            assert_eq!(plain.as_deref(), Ok(r#"{"deep":{"a":2}}"#));
        }
    }

    #[test]
    fn an_update_keeps_fields_that_the_type_does_not_have() {
        for (stored, before, after, expected) in [
            // A field that the author's type lacks, one with a default, and one that is removed.
            (
                r#"{"x":1.50,"a":1}"#,
                r#"{"a":1,"b":0}"#,
                r#"{"a":2,"b":0}"#,
                r#"{"a":2,"x":1.50}"#,
            ),
            (
                r#"{"x":1,"a":1}"#,
                r#"{"a":1}"#,
                r#"{"a":null}"#,
                r#"{"x":1}"#,
            ),
            (r#"{"x":1,"a":1}"#, r#"{"a":1}"#, "{}", r#"{"x":1}"#),
            (
                r#"{"x":1}"#,
                r#"{"a":null}"#,
                r#"{"a":{"b":1}}"#,
                r#"{"a":{"b":1},"x":1}"#,
            ),
            // Items of a list: one is added, removed, moved or edited.
            (
                r#"[{"a":1,"x":7}]"#,
                r#"[{"a":1}]"#,
                r#"[{"a":1},{"a":2}]"#,
                r#"[{"a":1,"x":7},{"a":2}]"#,
            ),
            (
                r#"[{"a":1,"x":7},{"a":2,"x":8}]"#,
                r#"[{"a":1},{"a":2}]"#,
                r#"[{"a":2}]"#,
                r#"[{"a":2,"x":8}]"#,
            ),
            (
                r#"[{"a":1,"x":7},{"a":2,"x":8}]"#,
                r#"[{"a":1},{"a":2}]"#,
                r#"[{"a":2},{"a":1}]"#,
                r#"[{"a":2,"x":8},{"a":1,"x":7}]"#,
            ),
            (
                r#"[{"a":1,"x":7},{"a":2,"x":8}]"#,
                r#"[{"a":1},{"a":2}]"#,
                r#"[{"a":3},{"a":2}]"#,
                r#"[{"a":3,"x":7},{"a":2,"x":8}]"#,
            ),
            // A new item at the index of a moved one inherits nothing from it.
            (
                r#"[{"a":1,"x":7},{"a":2,"x":8}]"#,
                r#"[{"a":1},{"a":2}]"#,
                r#"[{"a":2},{"a":3}]"#,
                r#"[{"a":2,"x":8},{"a":3}]"#,
            ),
            // Each stored item is matched only once, also among equal items.
            (
                r#"[{"a":1,"x":7}]"#,
                r#"[{"a":1}]"#,
                r#"[{"a":1},{"a":1}]"#,
                r#"[{"a":1,"x":7},{"a":1}]"#,
            ),
            // Another type of value, and items that the author's type leaves out.
            (r#"{"a":1}"#, r#"{"a":1}"#, "2", "2"),
            ("[1,2]", "[2]", "[3]", "[3]"),
        ] {
            assert_eq!(
                updated(stored, before, after),
                expected,
                "{stored} {before} {after}"
            );
        }
    }
}
