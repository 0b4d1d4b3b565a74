//! The settings template: every setting, explained and commented out, generated from the struct.

use std::fmt::Write as _;

use clap::{Arg, Args, Command};

use super::{SECRETS, Settings};

/// The text of the template.
pub fn template() -> String {
    let mut text = String::from(
        "# Settings of wrkflw. A flag or a variable WRKFLW_... takes precedence over this file.\n\
         # Lines that are commented out show the defaults.\n",
    );
    for arg in Settings::augment_args(Command::new("settings")).get_arguments() {
        let name = arg.get_id().as_str();
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        write!(text, "\n# {help}.\n{}", choices(arg)).expect("a String takes every write");
        let unset = if arg.get_default_values().is_empty() {
            "  # not set"
        } else {
            ""
        };
        writeln!(text, "#{name} = {}{unset}", value(arg)).expect("a String takes every write");
        if SECRETS.contains(&name) {
            writeln!(text, "#{name}_file = \"/run/secrets/{name}\"")
                .expect("a String takes every write");
        }
    }
    text
}

fn choices(arg: &Arg) -> String {
    let names: Vec<String> = arg
        .get_possible_values()
        .iter()
        .map(|value| value.get_name().to_owned())
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("# One of: {}.\n", names.join(", "))
    }
}

fn value(arg: &Arg) -> String {
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    let quoted = |text: &str| {
        if text.parse::<u64>().is_ok() {
            text.to_owned()
        } else {
            format!("{text:?}")
        }
    };
    match (arg.get_value_delimiter(), defaults.first()) {
        (Some(delimiter), all) => {
            let items = all
                .into_iter()
                .flat_map(|all| all.split(delimiter))
                .map(quoted);
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        (None, Some(one)) => quoted(one),
        (None, None) => "\"\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_a_file_of_known_keys() {
        let template = template();
        let uncommented = template.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
            _ => String::new(),
        });
        let table: toml::Table =
            toml::from_str(&uncommented.collect::<String>()).expect("the template is TOML");
        assert_eq!(table["listen"].as_str(), Some("127.0.0.1:8080"));
        assert_eq!(table["roles"].as_array().map(Vec::len), Some(4));
        assert!(table.contains_key("jwt_secret_file") && table.contains_key("guest_deadline_ms"));
    }
}
