//! Tests of where each setting comes from: arguments, variables, files, defaults.

use super::*;
use crate::config::Hidden;
use clap::FromArgMatches as _;

fn read(arguments: &[&str], variables: &[(&str, &str)], file: &str) -> Result<Settings, String> {
    let folder = std::env::temp_dir().join(format!(
        "wrkflw-settings-{}",
        wrkflw_runtime::clock::new_id()
    ));
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("test.toml");
    std::fs::write(
        &path,
        file.replace("FOLDER", folder.to_str().expect("text")),
    )
    .expect("a file");
    std::fs::write(folder.join("secret"), "from-a-file\n").expect("a file");
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let arguments = ["serve", "--config", path.to_str().expect("text")]
        .iter()
        .chain(arguments)
        .map(Into::into)
        .collect();
    let command = Settings::augment_args(Command::new("serve"))
        .arg(
            clap::Arg::new(FILE_ARGUMENT)
                .long("config")
                .value_parser(clap::value_parser!(PathBuf)),
        )
        .mut_args(|arg| arg.env(clap::builder::Resettable::Reset))
        .mut_arg("kafka_topic", |arg| arg.env("WRKFLW_KAFKA_TOPIC"));
    let result = resolve(
        command,
        &Sources {
            arguments,
            variables,
        },
    );
    std::fs::remove_dir_all(&folder).expect("our folder");
    match result {
        Ok(resolved) if !resolved.unknown.is_empty() => Err(resolved.unknown.join("; ")),
        Ok(resolved) => {
            Ok(Settings::from_arg_matches(&resolved.matches).expect("matches of the settings"))
        }
        Err(LayerError::Settings(error)) => Err(error.0),
        Err(LayerError::Clap(error)) => Err(error.to_string()),
    }
}

#[test]
fn a_flag_comes_before_the_file_and_the_file_before_the_default() {
    let file = "listen = \"127.0.0.1:1\"\nconnections_max = 7\nroles = [\"api\"]\n";
    let settings = read(&["--listen", "127.0.0.1:2"], &[], file).expect("settings");
    assert_eq!(settings.listen.port(), 2);
    assert_eq!(
        (settings.connections.connections_max, settings.roles.len()),
        (7, 1)
    );
    assert_eq!(settings.kafka_topic, "wrkflw.events");
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_name() {
    let error = read(&[], &[], "kafka_tpoic = \"x\"").expect_err("unknown");
    assert!(
        error.contains("kafka_tpoic") && error.contains("did you mean kafka_topic?"),
        "{error}"
    );
    let error = read(&[], &[("WRKFLW_KAFKA_TOPICS", "x")], "").expect_err("unknown");
    assert!(
        error.contains("did you mean WRKFLW_KAFKA_TOPIC?"),
        "{error}"
    );
}

#[test]
fn variables_of_services_are_passed_over() {
    for (variable, value) in [
        ("WRKFLW_SERVICE_HOST", "10.0.0.11"),
        ("WRKFLW_SERVICE_PORT", "8080"),
        ("WRKFLW_SERVICE_PORT_HTTP", "8080"),
        ("WRKFLW_PORT", "tcp://10.0.0.11:8080"),
        ("WRKFLW_PORT_8080_TCP", "tcp://10.0.0.11:8080"),
        ("WRKFLW_PORT_8080_TCP_PROTO", "tcp"),
        ("WRKFLW_PORT_8080_TCP_PORT", "8080"),
        ("WRKFLW_PORT_8080_TCP_ADDR", "10.0.0.11"),
        ("WRKFLW_API_PORT_53_UDP_ADDR", "10.0.0.11"),
        ("WRKFLW_API_PORT", "udp://10.0.0.11:53"),
    ] {
        read(&[], &[(variable, value)], "").expect(variable);
    }
    for (variable, value) in [
        ("WRKFLW_PORT", "8080"),
        ("WRKFLW_PORT_HTTP", "8080"),
        ("WRKFLW_PORT_8080_TCP_NAME", "x"),
        ("WRKFLW_HOST", "10.0.0.11"),
    ] {
        read(&[], &[(variable, value)], "").expect_err(variable);
    }
}

#[test]
fn a_file_that_is_named_and_cannot_be_read_is_an_error() {
    let command = Settings::augment_args(Command::new("serve"))
        .arg(
            clap::Arg::new(FILE_ARGUMENT)
                .long("config")
                .value_parser(clap::value_parser!(PathBuf)),
        )
        .mut_args(|arg| arg.env(clap::builder::Resettable::Reset));
    let sources = Sources {
        arguments: ["serve", "--config", "/nowhere"].map(Into::into).to_vec(),
        variables: BTreeMap::new(),
    };
    match resolve(command, &sources) {
        Err(LayerError::Settings(error)) => assert!(error.0.contains("/nowhere"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_number_is_bounded_on_both_sides() {
    let settings = Settings::augment_args(Command::new("settings"));
    let accepts = |flag: &str, value: &str| read(&[flag, value], &[], "").is_ok();
    let mut numbers = 0;
    for argument in settings.get_arguments() {
        let flag = format!("--{}", argument.get_long().expect("each has a flag"));
        let default = argument
            .get_default_values()
            .first()
            .and_then(|text| text.to_str());
        let is_number = default.is_some_and(|text| text.parse::<u64>().is_ok())
            || (accepts(&flag, "20000000") && !accepts(&flag, "many"));
        if !is_number {
            continue;
        }
        numbers += 1;
        let most = u64::MAX.to_string();
        assert!(!accepts(&flag, &most), "{flag} takes {most}");
        // No notice, and no children.
        let takes_none = ["--drain-notice-seconds", "--descendants-max"].contains(&&*flag);
        assert_eq!(accepts(&flag, "0"), takes_none, "{flag} and 0");
    }
    assert_eq!(numbers, 9);
}

#[test]
fn settings_are_few() {
    let settings = Settings::augment_args(Command::new("settings"));
    assert_eq!(settings.get_arguments().count(), 41);
}

#[test]
fn secrets_are_read_from_the_files_that_are_named() {
    let settings = read(&[], &[], "jwt_secret_file = \"FOLDER/secret\"").expect("settings");
    assert_eq!(
        settings.auth.jwt_secret.as_ref().map(Hidden::reveal),
        Some("from-a-file")
    );
    let both = "jwt_secret = \"s3cret\"\njwt_secret_file = \"FOLDER/secret\"";
    let error = read(&[], &[], both).expect_err("which one is meant");
    assert!(
        error.contains("both jwt_secret and jwt_secret_file") && !error.contains("s3cret"),
        "{error}"
    );
    let error = read(&[], &[("WRKFLW_JWT_SECRET_FILE", "/nowhere")], "").expect_err("no such file");
    assert!(error.contains("WRKFLW_JWT_SECRET_FILE"), "{error}");
}

#[test]
fn a_comma_belongs_to_an_item_of_a_list_and_separates_those_of_a_text() {
    let properties = |arguments: &[&str], file: &str| {
        let settings = read(arguments, &[], file).expect("settings");
        let texts = settings.kafka_properties.iter().map(Hidden::reveal);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let both = ["sasl.password=a,b", "sasl.username=c"];
    for file in [
        "kafka_properties = [\"sasl.password=a,b\", \"sasl.username=c\"]",
        "[kafka_properties]\n\"sasl.password\" = \"a,b\"\n\"sasl.username\" = \"c\"",
        "kafka_properties = \"\"\"\nsasl.password=a,b\nsasl.username=c\n\"\"\"",
        "kafka_properties = \"\"\"\nsasl.password=a,b,\nsasl.username=c\n\"\"\"",
    ] {
        assert_eq!(properties(&[], file), both, "{file}");
    }
    let text = "kafka_properties = \"sasl.password=a,sasl.username=c\"";
    let split = ["sasl.password=a", "sasl.username=c"];
    assert_eq!(properties(&[], text), split);
    // The file does not change how a flag is read.
    let list = "kafka_properties = [\"x=1,2\"]";
    let flag = ["--kafka-properties", "sasl.password=a,sasl.username=c"];
    assert_eq!(properties(&flag, list), split);

    let tokens = read(&[], &[], "service_tokens = [\"scorer:a,b\"]").expect("settings");
    let tokens = tokens.services.service_tokens.iter().map(Hidden::reveal);
    assert_eq!(tokens.collect::<Vec<_>>(), ["scorer:a,b"]);

    let split = "kafka_brokers = \"h:1\"\nkafka_properties = \"sasl.password=a,b\"";
    let error = read(&[], &[], split).expect("settings").kafka();
    let error = error.expect_err("no name").0;
    assert!(error.contains("commas separate them"), "{error}");
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    assert!(
        read(&[], &[], "connections_max = \"many\"")
            .expect_err("no number")
            .contains("connections-max")
    );
    assert!(
        read(&[], &[], "listen = 1.5")
            .expect_err("a float")
            .contains("listen")
    );
}

#[test]
fn a_broken_file_is_named_with_its_line_and_not_quoted() {
    let error = read(&[], &[], "log = \"info\"\njwt_secret = \"s3cret\n").expect_err("broken");
    assert!(
        error.contains("line 2") && !error.contains("s3cret"),
        "{error}"
    );
}
