//! Wrong settings and arguments, and the messages about them.

use std::fs;

use clap::error::ErrorKind;

use crate::program::{TestFolder, ran};

/// The paths of all commands without subcommands.
pub(crate) fn leaves(command: &clap::Command) -> Vec<Vec<String>> {
    let below: Vec<_> = command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .collect();
    if below.is_empty() {
        return vec![vec![command.get_name().to_owned()]];
    }
    let paths = below.iter().flat_map(|command| leaves(command));
    paths
        .map(|path| [vec![command.get_name().to_owned()], path].concat())
        .collect()
}

#[test]
fn every_command_takes_output_json_and_quiet() {
    let all = leaves(&wrkflw::cli::command());
    assert!(all.len() > 20, "{all:?}");
    for path in all {
        let arguments = path
            .iter()
            .map(String::as_str)
            .chain(["--output", "json", "--quiet"]);
        if let Err(error) = wrkflw::cli::command().try_get_matches_from(arguments) {
            assert_eq!(
                error.kind(),
                ErrorKind::MissingRequiredArgument,
                "{path:?}: {error}"
            );
        }
    }
}

#[test]
fn help_tells_the_exit_codes() {
    let help = TestFolder::new().run("--help");
    assert_eq!(help.code, 0);
    for line in [
        "2  wrong usage",
        "5  a conflict, or not possible now",
        "8  the flow's logic failed",
    ] {
        assert!(help.stdout.contains(line), "{line}");
    }
}

#[test]
fn every_command_warns_of_an_unknown_variable() {
    let place = TestFolder::new();
    let mut command = place.command("config template --quiet");
    command
        .env("WRKFLW_SERVR", "http://127.0.0.1:1")
        .env("WRKFLW_SERVICE_HOST", "10.0.0.11")
        .env("WRKFLW_PORT_8080_TCP", "tcp://10.0.0.11:8080");
    let ran = ran(command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stderr,
        "warning: the variable WRKFLW_SERVR, which is no setting: did you mean WRKFLW_SERVER?\n",
        "without a warning about the variables of Kubernetes"
    );
}

/// Without debug assertions clap reports an unknown argument differently. In that case the named file was not read.
#[test]
fn the_named_settings_file_is_read() {
    let place = TestFolder::new();
    let file = place.folder.join("other.toml");
    fs::write(&file, "kafka_topic = \"named\"\n").expect("our own folder");
    let by_default = "kafka_topic = \"by-default\"\n";
    fs::write(place.folder.join("wrkflw.toml"), by_default).expect("our own folder");
    let shown = |command| ran(command).stdout;

    let text = shown(place.command("config show"));
    assert!(
        text.contains("kafka_topic = \"by-default\"  # wrkflw.toml\n"),
        "{text}"
    );
    let mut by_flag = place.command("config show --config");
    by_flag.arg(&file);
    let text = shown(by_flag);
    let line = format!("kafka_topic = \"named\"  # {}\n", file.display());
    assert!(text.contains(&line), "{text}");
    let mut by_variable = place.command("config show");
    by_variable.env("WRKFLW_CONFIG", &file);
    assert_eq!(shown(by_variable), text);
}

#[test]
fn an_unreadable_settings_file_stops_every_command_that_takes_one() {
    let place = TestFolder::new();
    let takes_a_file = |path: &Vec<String>| {
        let mut command = wrkflw::cli::command();
        for name in &path[1..] {
            command = command.find_subcommand(name).expect("a command").clone();
        }
        command
            .get_arguments()
            .any(|arg| arg.get_id() == "settings_file")
    };
    let taking: Vec<_> = leaves(&wrkflw::cli::command())
        .into_iter()
        .filter(takes_a_file)
        .collect();
    assert!(taking.len() > 5, "{taking:?}");
    for path in taking {
        let mut command = place.command(&path[1..].join(" "));
        // Some commands require more than the file, and may report either.
        command.env("WRKFLW_CONFIG", "/nowhere/wrkflw.toml");
        let ran = ran(command);
        assert_eq!(ran.code, 2, "{path:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("/nowhere/wrkflw.toml")
                || ran.stderr.contains("required arguments"),
            "{path:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn config_show_names_the_source_of_each_value() {
    let place = TestFolder::new();
    fs::write(
        place.folder.join("wrkflw.toml"),
        "request_seconds_max = 11\nlog = \"warn\"\n",
    )
    .expect("our own folder");
    let secret = place.folder.join("secret");
    fs::write(&secret, "s3cret-s3cret-s3cret-s3cret-s3cret\n").expect("our own folder");
    let mut command = place.command("config show --output json --listen 127.0.0.1:1");
    command
        .env("WRKFLW_LOG", "debug")
        .env("WRKFLW_JWT_SECRET_FILE", secret);
    let ran = ran(command);
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    for (name, value, source) in [
        ("listen", "127.0.0.1:1", "--listen"),
        ("log", "debug", "WRKFLW_LOG"),
        ("request_seconds_max", "11", "wrkflw.toml"),
        ("jwt_secret", "(set)", "WRKFLW_JWT_SECRET_FILE"),
        ("kafka_topic", "wrkflw.events", "default"),
    ] {
        assert_eq!(shown[name]["value"], value, "{name}");
        assert_eq!(shown[name]["source"], source, "{name}");
    }
}

#[test]
fn a_number_out_of_range_is_refused_with_its_bounds() {
    let place = TestFolder::new();
    for (line, words) in [
        ("serve --request-seconds-max 0", "0 is not in 1..=3600"),
        ("serve --requests-in-flight-max 0", "0 is not in 1..=100000"),
        ("serve --connections-max 0", "0 is not in 1..=1000000"),
        ("serve --guest-deadline-ms 2001", "2001 is not in 10..=2000"),
    ] {
        let ran = place.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{line}: {}", ran.stderr);
    }
}

const _: () = assert!(!cfg!(debug_assertions), "tests run what is shipped");

/// Some checks of clap run only with debug assertions. This test repeats them.
#[test]
fn no_command_has_two_arguments_with_one_name() {
    fn check(command: &clap::Command) {
        let mut names = std::collections::BTreeSet::new();
        for argument in command.get_arguments() {
            let long = argument.get_long().map(|name| format!("--{name}"));
            let short = argument.get_short().map(|name| format!("-{name}"));
            for name in long.into_iter().chain(short) {
                assert!(names.insert(name.clone()), "{}: {name}", command.get_name());
            }
        }
        command.get_subcommands().for_each(check);
    }
    let mut command = wrkflw::cli::command();
    command.build();
    check(&command);
}

#[test]
fn a_misspelt_key_of_the_file_is_refused() {
    let place = TestFolder::new();
    let file = "listen = \"127.0.0.1:1\"\nkafka_brokrs = \"b:1\"\n";
    fs::write(place.folder.join("wrkflw.toml"), file).expect("our own folder");
    let ran = place.run("serve");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("kafka_brokrs"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("did you mean kafka_brokers?"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_unusable_database_is_reported_with_the_cause() {
    let place = TestFolder::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let refusing = port.local_addr().expect("an address").port();
    drop(port);
    let seal = "k1:000102030405060708090a0b0c0d0e0f";
    let serve = format!(
        "serve --roles api --listen 127.0.0.1:0 --seal-keys {seal} --jwt-secret {}",
        "s".repeat(32)
    );
    for (url, words) in [
        (
            format!("postgres://127.0.0.1:{refusing}/wrkflw"),
            "Connection refused",
        ),
        (
            "mysql://127.0.0.1/wrkflw".to_owned(),
            "not a PostgreSQL URL",
        ),
        ("127.0.0.1".to_owned(), "not a PostgreSQL URL"),
    ] {
        for line in [serve.as_str(), "migrate"] {
            let mut command = place.command(line);
            command.env("WRKFLW_DATABASE_URL", &url);
            let ran = ran(command);
            assert_ne!(ran.code, 0, "{line} with {url}");
            assert!(
                ran.stderr.contains(words),
                "{line} with {url}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn missing_settings_of_serve_are_reported_before_any_connection() {
    let place = TestFolder::new();
    let seal = "k1:000102030405060708090a0b0c0d0e0f";
    let cases = [
        (
            "serve --listen 127.0.0.1:0".to_owned(),
            "seal_keys is not set",
        ),
        (
            format!("serve --listen 127.0.0.1:0 --seal-keys {seal}"),
            "kafka_brokers is not set",
        ),
        (
            format!("serve --listen 127.0.0.1:0 --seal-keys {seal} --roles api --jwt-secret short"),
            "32",
        ),
        (
            "serve --roles api --listen 127.0.0.1:0 --seal-keys k1:00".to_owned(),
            "has 1 byte;",
        ),
        ("migrate".to_owned(), "database_url is not set"),
    ];
    for (line, words) in cases {
        let ran = place.run(&line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{line}: {}", ran.stderr);
    }
    // All of them in one message.
    let bare = place.run("serve --listen 127.0.0.1:0").stderr;
    let names = ["database_url", "seal_keys", "kafka_brokers"];
    for name in names.map(|name| format!("\n- {name} is not set")) {
        assert!(bare.contains(&name), "{name}: {bare}");
    }
    assert!(bare.contains("4 settings are missing or wrong"), "{bare}");
}

#[test]
fn secrets_come_from_files_and_are_never_printed() {
    let place = TestFolder::new();
    let file = place.folder.join("secret");
    fs::write(&file, "s3cret-s3cret-s3cret-s3cret-s3cret\n").expect("our own folder");
    let mut command = place.command("token bob");
    command.env("WRKFLW_JWT_SECRET_FILE", file);
    let token = ran(command);
    assert_eq!(
        (token.code, token.stdout.matches('.').count()),
        (0, 2),
        "{}",
        token.stderr
    );

    let mut command = place.command("serve --help");
    command
        .env("WRKFLW_JWT_SECRET", "s3cret")
        .env("WRKFLW_DATABASE_URL", "s3cret");
    assert!(!ran(command).stdout.contains("s3cret"));
}

#[test]
fn a_command_without_a_server_says_how_to_start_one() {
    let place = TestFolder::new();
    for line in [
        "instance list",
        "instance list --server http://127.0.0.1:1",
        "--server http://127.0.0.1:1 -q instance list",
    ] {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (7, ""), "{line}");
        assert!(
            ran.stderr.contains("next: ") && ran.stderr.contains("wrkflw dev"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn connection_options_before_a_local_command_are_refused() {
    let place = TestFolder::new();
    for (line, option) in [
        ("--server http://127.0.0.1:1 config template", "--server"),
        ("--as admin plugin schema", "--as"),
        ("--as admin task list --as author", "--as"),
    ] {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{line}");
        assert!(ran.stderr.contains(option), "{line}: {}", ran.stderr);
    }
}

#[test]
fn the_printed_template_is_a_valid_settings_file() {
    let place = TestFolder::new();
    let template = place.run("config template").stdout;
    assert!(
        template.contains("#listen = \"127.0.0.1:8080\""),
        "{template}"
    );
    fs::write(place.folder.join("wrkflw.toml"), template).expect("our own folder");
    let ran = place.run("serve --listen 127.0.0.1:0");
    assert!(
        ran.stderr.contains("seal_keys is not set"),
        "{}",
        ran.stderr
    );
}
