//! Settings and arguments that are wrong, and what the program says to them.

use std::fs;

use clap::error::ErrorKind;

use crate::program::{Place, ran};

/// The paths of all commands that do something.
fn leaves(command: &clap::Command) -> Vec<Vec<String>> {
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
    let help = Place::new().run("--help");
    assert_eq!(help.code, 0);
    for line in [
        "2  wrong usage",
        "5  somebody was faster",
        "8  the flow's logic failed",
    ] {
        assert!(help.stdout.contains(line), "{line}");
    }
}

#[test]
fn a_misspelt_variable_is_refused_by_every_command() {
    let place = Place::new();
    let mut command = place.command("task list");
    command.env("WRKFLW_SERVR", "http://127.0.0.1:1");
    let ran = ran(command);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("WRKFLW_SERVR"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("did you mean WRKFLW_SERVER?"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_misspelt_key_of_the_file_is_refused() {
    let place = Place::new();
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
fn what_serve_lacks_is_named_before_anything_is_contacted() {
    let place = Place::new();
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
            "1 bytes",
        ),
        ("migrate".to_owned(), "database_url is not set"),
    ];
    for (line, words) in cases {
        let ran = place.run(&line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{line}: {}", ran.stderr);
    }
}

#[test]
fn secrets_come_from_files_and_are_never_printed() {
    let place = Place::new();
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
    let place = Place::new();
    for line in ["instance list", "instance list --server http://127.0.0.1:1"] {
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
fn the_template_is_accepted_as_it_is_printed() {
    let place = Place::new();
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
