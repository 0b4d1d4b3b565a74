//! The texts of the console. Each language has a catalogue in `locales/`. English is complete, and the others have the same
//! texts: a test compares them.

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::http::{HeaderMap, header};
use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use unic_langid::LanguageIdentifier;

use crate::session::cookie;
use crate::zone::{self, Zone};
use wrkflw_engine::Preference;

/// The cookie with the chosen language.
pub(crate) const COOKIE: &str = "__Host-wrkflw-language";

/// A language with its texts.
pub(crate) struct Language {
    pub(crate) code: &'static str,
    /// Its name in the language itself.
    pub(crate) name: &'static str,
    /// The separator between thousands.
    thousands: char,
    bundle: FluentBundle<FluentResource>,
}

/// Languages that write points between thousands; the others of the console write commas.
const WITH_POINTS: [&str; 1] = ["de"];

/// The code, name and catalogue of each language. The first is the default.
pub(crate) const SOURCES: [(&str, &str, &str); 3] = [
    ("en", "English", include_str!("../locales/en.ftl")),
    ("th", "ไทย", include_str!("../locales/th.ftl")),
    ("de", "Deutsch", include_str!("../locales/de.ftl")),
];

static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let languages = SOURCES.iter();
    languages
        .map(|(code, name, source)| {
            let id: LanguageIdentifier = code.parse().expect("a code of a language");
            let resource = FluentResource::try_new((*source).to_owned());
            let resource = resource.unwrap_or_else(|(resource, errors)| {
                // The tests fail for a catalogue with errors.
                tracing::error!(code, ?errors, "a catalogue has errors");
                resource
            });
            let mut bundle = FluentBundle::new_concurrent(vec![id]);
            // Templates isolate the writing direction of inserted texts, so the bundle need not.
            bundle.set_use_isolating(false);
            bundle.add_resource_overriding(resource);
            let has_points = WITH_POINTS.contains(code);
            let format = if has_points { by_points } else { by_commas };
            bundle.set_formatter(Some(format));
            Language {
                code,
                name,
                thousands: if has_points { '.' } else { ',' },
                bundle,
            }
        })
        .collect()
});

fn by_points<M>(value: &FluentValue<'_>, _: &M) -> Option<String> {
    by_thousands(value, '.')
}

fn by_commas<M>(value: &FluentValue<'_>, _: &M) -> Option<String> {
    by_thousands(value, ',')
}

/// Formats a number within a text. Pages have whole numbers only.
fn by_thousands(value: &FluentValue<'_>, separator: char) -> Option<String> {
    match value {
        FluentValue::Number(number) => Some(grouped(&number.as_string(), separator)),
        _ => None,
    }
}

/// The digits of a whole number in groups of three.
fn grouped(number: &str, separator: char) -> String {
    let (sign, digits) = number
        .strip_prefix('-')
        .map_or(("", number), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

pub(crate) fn all() -> &'static [Language] {
    &LANGUAGES
}

/// The texts in one language, and the zone of its moments.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    language: &'static Language,
    zone: Option<Zone>,
}

impl Words {
    /// The chosen language, or else the first that the browser accepts and the console has.
    pub(crate) fn of(headers: &HeaderMap) -> Words {
        let chosen = cookie(headers, COOKIE).and_then(|code| Words::named(&code));
        let accepted = headers.get(header::ACCEPT_LANGUAGE);
        let accepted = accepted.and_then(|value| value.to_str().ok());
        let accepted = || accepted.and_then(preferred);
        chosen
            .or_else(accepted)
            .unwrap_or(Words::in_language(&LANGUAGES[0]))
    }

    pub(crate) fn named(code: &str) -> Option<Words> {
        let language = LANGUAGES.iter().find(|one| one.code == code);
        language.map(Words::in_language)
    }

    fn in_language(language: &'static Language) -> Words {
        Words {
            language,
            zone: None,
        }
    }

    /// The texts in the language and time zone that a person prefers. Without a known language the present one stays; without a known
    /// time zone there is none.
    pub(crate) fn preferring(self, preference: &Preference) -> Words {
        let language = preference.language.as_deref().and_then(preferred);
        Words {
            language: language.unwrap_or(self).language,
            zone: preference.time_zone.as_deref().and_then(Zone::named),
        }
    }

    pub(crate) fn code(self) -> &'static str {
        self.language.code
    }

    /// The zone that the reader chose.
    pub(crate) fn zone(self) -> Option<Zone> {
        self.zone
    }

    /// The name of the zone of the moments that the reader types.
    pub(crate) fn zone_name(self) -> &'static str {
        zone::name_of(self.zone)
    }

    /// A text without variables.
    pub(crate) fn t(self, id: &str) -> Cow<'static, str> {
        self.format(id, None)
    }

    /// A text with the variable `$count`, which also selects the plural form.
    pub(crate) fn n(self, id: &str, count: impl TryInto<i64>) -> String {
        let mut arguments = FluentArgs::new();
        arguments.set("count", count.try_into().unwrap_or(i64::MAX));
        self.format(id, Some(&arguments)).into_owned()
    }

    /// A number as the reader writes it. Do not use it for versions, years and ids: these are names.
    pub(crate) fn number(self, number: impl TryInto<i64>) -> String {
        let number = number.try_into().unwrap_or(i64::MAX);
        grouped(&number.to_string(), self.language.thousands)
    }

    /// Whether the reader may take the `.` of a JSON number for a separator of thousands, as in `1.500` in German.
    pub(crate) fn has_thousands(self, text: &str) -> bool {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_plain = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
        let (first, rest) = digits.split_once('.').unwrap_or((digits, ""));
        let begins = (1..=3).contains(&first.len()) && !first.starts_with('0') && is_plain(first);
        let mut groups = rest.split('.');
        let goes_on = groups.all(|group| group.len() == 3 && is_plain(group));
        self.language.thousands == '.' && begins && goes_on
    }

    /// A text with one variable.
    pub(crate) fn with(self, id: &str, name: &'static str, value: &str) -> String {
        self.say(id, &[(name, value)])
    }

    /// A text with variables.
    pub(crate) fn say(self, id: &str, variables: &[(&'static str, impl AsRef<str>)]) -> String {
        let mut arguments = FluentArgs::new();
        for (name, value) in variables {
            arguments.set(*name, FluentValue::from(value.as_ref().to_owned()));
        }
        self.format(id, Some(&arguments)).into_owned()
    }

    /// A text, or None if the catalogue lacks it: for example the name of a value that a later API adds.
    pub(crate) fn known(self, id: &str) -> Option<Cow<'static, str>> {
        self.has(id).then(|| self.t(id))
    }

    pub(crate) fn has(self, id: &str) -> bool {
        self.language.bundle.has_message(id)
    }

    /// The text with the id `what-kind`.
    pub(crate) fn t_of(self, what: &str, kind: &str) -> Cow<'static, str> {
        self.t(&format!("{what}-{kind}"))
    }

    fn format(self, id: &str, arguments: Option<&FluentArgs<'_>>) -> Cow<'static, str> {
        let languages = [self.language, &LANGUAGES[0]];
        for language in languages {
            let pattern = language.bundle.get_message(id).and_then(|one| one.value());
            if let Some(pattern) = pattern {
                let mut errors = Vec::new();
                let text = language
                    .bundle
                    .format_pattern(pattern, arguments, &mut errors);
                return Cow::Owned(text.into_owned());
            }
        }
        Cow::Owned(id.to_owned())
    }
}

/// The first language of an `Accept-Language` that the console has. Browsers send them in the order of preference.
fn preferred(accepted: &str) -> Option<Words> {
    accepted.split(',').find_map(|one| {
        let tag = one.split(';').next().unwrap_or_default().trim();
        Words::named(tag.split('-').next()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_the_language_also_within_texts() {
        for (code, thousand, million, text) in [
            ("en", "1,234", "-1,234,567", "1,234 tasks"),
            ("de", "1.234", "-1.234.567", "1.234 Aufgaben"),
            ("th", "1,234", "-1,234,567", "1,234 งาน"),
        ] {
            let words = Words::named(code).expect("a language");
            assert_eq!(words.number(1234), thousand);
            assert_eq!(words.number(-1_234_567), million);
            assert_eq!(words.n("inbox-count", 1234), text);
            for (small, as_it_is) in [(0, "0"), (7, "7"), (999, "999"), (-12, "-12")] {
                assert_eq!(words.number(small), as_it_is);
            }
        }
        let german = Words::named("de").expect("German");
        for apart in ["1.500", "-12.000", "1.234.567"] {
            assert!(german.has_thousands(apart), "{apart}");
            let english = Words::named("en").expect("English");
            assert!(!english.has_thousands(apart), "{apart}");
        }
        for plain in [
            "", "1500", "1.5", "0.125", "1.2345", "1234.567", "1.5e3", ".",
        ] {
            assert!(!german.has_thousands(plain), "{plain}");
        }
        // The plural follows the number and not its text.
        assert_eq!(german.n("inbox-count", 1), "1 Aufgabe");
    }

    #[test]
    fn what_a_person_chose_counts_before_cookie_and_browser() {
        let headers =
            HeaderMap::from_iter([(header::ACCEPT_LANGUAGE, "th".parse().expect("a value"))]);
        let browser = Words::of(&headers);
        assert_eq!((browser.code(), browser.zone().is_none()), ("th", true));
        let chosen = |language: &str, zone: &str| {
            browser.preferring(&Preference {
                language: Some(language.to_owned()),
                time_zone: Some(zone.to_owned()),
                theme: None,
            })
        };
        let words = chosen("de-CH", "Europe/Zurich");
        assert_eq!(words.code(), "de");
        assert_eq!(words.zone().map(Zone::name), Some("Europe/Zurich"));
        // A language that the console does not have, and a zone of a later database.
        let words = chosen("fr", "Mars/Olympus");
        assert_eq!((words.code(), words.zone().is_none()), ("th", true));
    }
}
