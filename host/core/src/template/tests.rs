//! What templates show, and where they are malformed.

use proptest::prelude::*;

use super::*;
use crate::json::tests::any_json;

fn entity() -> Entity {
    Entity {
        kind: "invoice".into(),
        id: "4711".into(),
    }
}

fn title(template: &str, data: &str) -> Option<String> {
    let templates = Templates {
        title: Some(Template::parse(template).expect("a template")),
        summary: None,
    };
    let data = Json::parse(data).expect("JSON");
    templates.labels(&entity(), &data).title
}

#[test]
fn placeholders_show_values() {
    let data = r#"{"name":"Ann","sum":12.50,"on":true,"off":null,"a/b":{"~":"tilde"},"lines":[{"item":"pen"},"cap"],"":"blank"}"#;
    for (template, shown) in [
        ("Invoice", "Invoice"),
        ("Invoice {/name}", "Invoice Ann"),
        ("{/sum} by {/name}, {/on}", "12.50 by Ann, true"),
        ("{entityType} {entityId}", "invoice 4711"),
        ("{{{/name}}} {{}}", "{Ann} {}"),
        ("{/a~1b/~0}", "tilde"),
        ("{/lines/0/item} {/lines/1}", "pen cap"),
        ("{/}", "blank"),
        // Neither a value nor a number of a list.
        (
            "<{/off}{/missing}{/name/x}{/lines}{/a~1b}{/lines/00}{/lines/+1}{/lines/2}>",
            "<>",
        ),
    ] {
        assert_eq!(title(template, data).as_deref(), Some(shown), "{template}");
    }
}

#[test]
fn the_result_is_one_bounded_line() {
    assert_eq!(title("{/a}", r#"{"a":""}"#), None);
    assert_eq!(title(" {/a} ", r#"{"a":" \n"}"#), None);
    assert_eq!(
        title(
            " {/a}  {/b}\u{a0}",
            r#"{"a":"one\n\ttwo","b":"\u202ethree\u0007"}"#
        )
        .as_deref(),
        Some("one two \u{fffd}three\u{fffd}")
    );
    let fits = "é".repeat(TITLE_CHARS_MAX);
    let data = |text: &str| format!(r#"{{"a":"{text}"}}"#);
    assert_eq!(title("{/a}", &data(&fits)), Some(fits.clone()));
    let cut = title("{/a}!", &data(&fits)).expect("a title");
    assert_eq!(cut.chars().count(), TITLE_CHARS_MAX);
    assert!(cut.ends_with("é…"), "{cut}");
    // The blank before the cut is left out.
    let blank = format!("{} {}", "é".repeat(TITLE_CHARS_MAX - 2), "and more");
    let cut = title("{/a}", &data(&blank)).expect("a title");
    assert!(cut.ends_with("é…"), "{cut}");
    let templates = Templates {
        title: None,
        summary: Some(Template::parse("{/a}{/a}{/a}").expect("a template")),
    };
    let data = Json::parse(&data(&fits)).expect("JSON");
    let summary = templates.labels(&entity(), &data).summary;
    assert_eq!(
        summary.expect("a summary").chars().count(),
        SUMMARY_CHARS_MAX
    );
}

#[test]
fn a_malformed_template_names_its_place() {
    let many = "{/a}".repeat(PLACEHOLDERS_MAX + 1);
    let long = "x".repeat(TEMPLATE_CHARS_MAX + 1);
    for (template, at, part) in [
        ("", 1, "not empty"),
        ("é {/a", 3, "has no end"),
        ("a } b", 3, "`}}`"),
        ("{}", 1, "`{}` is no placeholder"),
        ("x {title}", 3, "`{title}` is no placeholder"),
        ("{/a{/b}", 1, "`{/a}` is no placeholder"),
        ("{/a~2}", 1, "no placeholder"),
        ("{/a~}", 1, "no placeholder"),
        ("{ entityId}", 1, "no placeholder"),
        ("a\nb", 2, "control characters"),
        ("a\u{202e}", 2, "control characters"),
        (&long, TEMPLATE_CHARS_MAX + 1, "at most 500 characters"),
        (&many, PLACEHOLDERS_MAX * 4 + 1, "at most 20 placeholders"),
    ] {
        let error = Template::parse(template).expect_err(template);
        assert_eq!(error.at, at, "{template}: {error}");
        assert!(error.detail.contains(part), "{template}: {error}");
    }
}

fn templates() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "\\PC{0,4}",
        Just("{{".to_owned()),
        Just("}}".to_owned()),
        Just("{entityId}".to_owned()),
        "\\{(/[a-c0-2~]{0,2}){1,3}\\}",
        "[{}~/ \n\u{202e}]{0,2}",
    ];
    prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_template_and_no_data_break_the_line(text in templates(), data in any_json(), id in "\\PC{0,300}") {
        let Ok(template) = Template::parse(&text) else { return Ok(()) };
        let entity = Entity { kind: "a\nb".into(), id };
        let data = Json::of(&data).node();
        for chars_max in [1, 5, TITLE_CHARS_MAX] {
            if let Some(line) = template.line(&entity, &data, chars_max) {
                let count = line.chars().count();
                prop_assert!((1..=chars_max).contains(&count), "{line}");
                prop_assert!(line.chars().all(is_plain), "{line:?}");
                prop_assert_eq!(line.trim(), &line);
                prop_assert!(!line.contains("  "), "{}", line);
            }
        }
    }

    #[test]
    fn any_text_can_be_written_as_a_template(text in "[^\\p{C}\\p{Z}]{1,60}") {
        let escaped = text.replace('{', "{{").replace('}', "}}");
        let template = Template::parse(&escaped).expect("escaped");
        prop_assert_eq!(template.line(&entity(), &Node::Null, 60), Some(text));
    }
}
