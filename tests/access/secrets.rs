//! Secrets that contain marker texts are given to a host in files. Then everything that the host prints is searched for the
//! markers: its log at the most verbose level, its responses, its metrics, its arguments, and the output of its commands.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::TIMEOUT;
use super::host::{Folder, Host, program};
use crate::support::app::TestApp;
use crate::support::receiver::Receiver;

/// Part of a password of the database.
const DATABASE: &str = "marked-database-password";
const JWT: &str = "marked-jwt-secret-of-more-than-32-bytes";
const SEAL: &str = "5ea15ea15ea15ea15ea15ea1c0ffee01";
const ARTIFACT: &str = "a57ifac7";
const KAFKA: &str = "marked-kafka-password";
const SERVICE: &str = "marked-service-token";

/// The URL of a database with a password, which the tests' server does not ask for.
fn with_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (user, place) = rest.split_once('@').expect("a user");
    format!("{scheme}://{user}:{DATABASE}@{place}")
}

fn artifact_key() -> String {
    // Hex digits in which the marker can be recognised.
    ARTIFACT.replace(['i', 't'], "1").repeat(8)
}

fn marks() -> Vec<String> {
    let mut marks: Vec<_> = [DATABASE, JWT, SEAL, KAFKA, SERVICE]
        .map(str::to_owned)
        .into();
    marks.push(artifact_key()[..16].to_owned());
    marks
}

#[track_caller]
fn clean(what: &str, text: &str, marks: &[String]) {
    for mark in marks {
        let found = text.to_lowercase().find(&mark.to_lowercase());
        let around =
            found.map(|at| &text[at.saturating_sub(200)..(at + mark.len()).min(text.len())]);
        assert_eq!(around, None, "{what} shows {mark}");
    }
}

/// The settings of a host, each secret in a file of its own.
fn settings(folder: &Folder, url: &str) -> Vec<(&'static str, String)> {
    let file = |name: &str, text: &str| folder.file(name, text).display().to_string();
    let artifacts = folder.0.join("artifacts");
    fs::create_dir(&artifacts).expect("our own folder");
    vec![
        ("database_url_file", file("database", &with_password(url))),
        ("jwt_secret_file", file("jwt", JWT)),
        ("seal_keys_file", file("seal", &format!("k1:{SEAL}"))),
        ("artifact_key_file", file("artifact", &artifact_key())),
        ("artifact_dir", artifacts.display().to_string()),
        (
            "kafka_properties_file",
            file("kafka", &format!("sasl.password={KAFKA}")),
        ),
        ("services", "scorer=http://127.0.0.1:9/".to_owned()),
        (
            "service_tokens_file",
            file("tokens", &format!("scorer:{SERVICE}")),
        ),
        ("service_keys_file", file("keys", &format!("scorer:{SEAL}"))),
        // Nothing listens at this address, so the relay logs errors.
        ("kafka_brokers", "127.0.0.1:9".to_owned()),
        ("roles", "api,relay,timers,notifier".to_owned()),
        ("webhook_allow_private", "true".to_owned()),
        ("log", "trace".to_owned()),
        ("log_format", "json".to_owned()),
    ]
}

fn token(subject: &str, role: &str) -> String {
    let claims =
        json!({ "sub": subject, "tenant": "default", "roles": [role], "exp": 4_000_000_000_u64 });
    let key = jsonwebtoken::EncodingKey::from_secret(JWT.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_leaves_the_host() {
    let app = TestApp::start().await;
    let folder = Folder::new();
    let settings = settings(&folder, app.database.url());
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let host = Host::start(app.database.url(), &settings).await;
    let (admin, author) = (token("admin", "admin"), token("author", "user"));
    let mut marks = marks();
    let signature = |token: &String| token.rsplit('.').next().expect("a signature").to_owned();
    marks.extend([&admin, &author].map(signature));
    let mut replies = Vec::new();
    let bearer = |token: &str| format!("Bearer {token}");
    let mut send = async |line: &str, authorization: &str, body: &str| {
        let reply = host
            .ask(line, &[("authorization", authorization)], body)
            .await;
        replies.push((
            line.to_owned(),
            format!("{:?}\n{}", reply.headers, reply.text),
        ));
        reply
    };
    let mut receiver = Receiver::start().await;
    receiver.answers(&[500, 500]);
    let subscription = json!({ "url": receiver.url, "types": ["*"] }).to_string();
    let subscription = send("POST /v1/subscriptions", &bearer(&admin), &subscription).await;
    assert_eq!(subscription.status, 201, "{}", subscription.text);
    let secret = subscription.json()["secret"]
        .as_str()
        .expect("a secret")
        .to_owned();
    let id = subscription.json()["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let begun = json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": "d-1", "data": { "title": "A" } });
    let started = send("POST /v1/instances", &bearer(&author), &begun.to_string()).await;
    assert_eq!(started.status, 201, "{}", started.text);
    // The receiver fails, and the host logs that.
    let message = receiver.next().await;
    assert!(message.is_signed_with(&secret));
    provoke(
        &app,
        &mut send,
        &bearer(&admin),
        &format!("{}x", bearer(&admin)),
        &id,
    )
    .await;
    let delivered = async {
        while !host.log().contains("webhook") {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, delivered)
        .await
        .expect("the log speaks of webhooks");
    // The secret of the subscription is returned once, to its creator, and never again.
    marks.push(secret.trim_start_matches("whsec_").to_owned());
    let shown = replies.remove(0);
    assert!(shown.1.contains(&secret));
    for (line, text) in &replies {
        clean(line, text, &marks);
    }
    searched(&host, &folder, &marks).await;
}

/// Searches the log of the host, its process data, and the output of its commands.
async fn searched(host: &Host, folder: &Folder, marks: &[String]) {
    let log = host.log();
    assert!(
        log.contains("\"level\":\"TRACE\"") && log.len() > 100_000,
        "{} bytes of log",
        log.len()
    );
    clean("the log", &log, marks);
    let metrics = host.ask("GET /metrics", &[], "").await.text;
    clean("the metrics", &metrics, marks);
    for place in ["cmdline", "environ"] {
        let bytes = fs::read(format!("/proc/{}/{place}", host.pid())).expect("it runs");
        clean(place, &String::from_utf8_lossy(&bytes), marks);
    }
    assert!(
        fs::read_dir(folder.0.join("artifacts"))
            .expect("a folder")
            .count()
            > 0,
        "machine code was kept"
    );
    for line in [
        "config show",
        "config show --output json",
        "config template",
        "serve --help",
    ] {
        let output = program(&host.folder.0, line)
            .output()
            .await
            .expect("it runs");
        assert!(output.status.success(), "{line}: {output:?}");
        clean(line, &String::from_utf8_lossy(&output.stdout), marks);
        clean(line, &String::from_utf8_lossy(&output.stderr), marks);
    }
}

/// Requests that fail, each in another part of the host.
async fn provoke(
    app: &TestApp,
    send: &mut impl AsyncFnMut(&str, &str, &str) -> super::client::Reply,
    admin: &str,
    forged: &str,
    subscription: &str,
) {
    for (line, authorization, body, status) in [
        ("GET /v1/instances", forged, "", 401),
        ("GET /v1/instances", "Bearer x.y.z", "", 401),
        ("POST /v1/instances", admin, "{", 400),
        ("POST /v1/instances", admin, r#"{"colour":1}"#, 422),
        ("GET /v1/instances?after=x", admin, "", 400),
        (
            "GET /v1/instances/00000000-0000-7000-8000-000000000000",
            admin,
            "",
            404,
        ),
    ] {
        let reply = send(line, authorization, body).await;
        assert_eq!(reply.status, status, "{line}: {}", reply.text);
    }
    let shown = send(&format!("GET /v1/subscriptions/{subscription}"), admin, "").await;
    assert_eq!(shown.status, 200);
    let run = async |sql: &'static str| {
        let done = sqlx::raw_sql(sql).execute(app.database.admin_pool()).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    };
    run("alter table instance rename to elsewhere").await;
    let broken = send("GET /v1/instances", admin, "").await;
    assert_eq!(broken.status, 500, "{}", broken.text);
    run("alter table elsewhere rename to instance").await;
    // Ends the host's connections to the database.
    run("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'wrkflw'").await;
    for _ in 0..6 {
        send("GET /v1/instances", admin, "").await;
    }
}

/// Runs the program with a wrong settings file. Returns its output.
pub(super) async fn refused(folder: &Path, settings: &str, variables: &[(&str, &str)]) -> String {
    fs::write(folder.join("wrkflw.toml"), settings).expect("our own folder");
    let mut command = program(folder, "serve");
    command.envs(variables.iter().copied());
    let ended = tokio::time::timeout(TIMEOUT, command.output()).await;
    let output = ended.expect("the program ends").expect("it runs");
    assert!(!output.status.success(), "{settings}");
    assert!(!output.stderr.is_empty(), "{settings}");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_named_without_its_value() {
    const MARK: &str = "marked-and-wrong";
    let folder = Folder::new();
    let base = "listen = \"127.0.0.1:0\"\nroles = [\"api\"]\n";
    let good = format!(
        "seal_keys = [\"k1:{SEAL}\"]\njwt_secret = \"{JWT}\"\ndatabase_url = \"postgres://u:p@127.0.0.1:9/x\"\n"
    );
    let replaced = |name: &str, value: &str| {
        let lines = good.lines().filter(|line| !line.starts_with(name));
        format!(
            "{base}{}\n{name} = {value}\n",
            lines.collect::<Vec<_>>().join("\n")
        )
    };
    let text = format!("\"{MARK}\"");
    let cases = [
        ("seal_keys", replaced("seal_keys", &text)),
        (
            "seal_keys",
            replaced("seal_keys", &format!("[\"k1:{MARK}\"]")),
        ),
        ("HS256", replaced("jwt_secret", &format!("\"{MARK}\""))),
        (
            "artifact_key",
            replaced("artifact_key", &format!("{text}\nartifact_dir = \"/tmp\"")),
        ),
        ("", replaced("database_url", &text)),
        (
            "",
            replaced("database_url", &format!("\"postgres://u:{MARK}@[bad/x\"")),
        ),
        (
            "",
            replaced(
                "database_url",
                &format!("\"postgres://u:{MARK}@127.0.0.1:9/x\""),
            ),
        ),
        (
            "",
            replaced("database_url", &format!("\"mysql://u:{MARK}@127.0.0.1/x\"")),
        ),
        (
            "kafka_properties",
            replaced("kafka_properties", &text).replace(
                "[\"api\"]",
                "[\"api\", \"relay\"]\nkafka_brokers = \"127.0.0.1:9\"",
            ),
        ),
        (
            "sasl.pasword",
            replaced("kafka_properties", &format!("\"sasl.pasword={MARK}\""))
                .replace("[\"api\"]", "[\"relay\"]\nkafka_brokers = \"127.0.0.1:9\""),
        ),
        ("line", format!("{base}{good}jwt_secret = \"{MARK}\n")),
    ];
    let marks = [MARK.to_owned(), SEAL.to_owned(), JWT.to_owned()];
    for (named, settings) in &cases {
        let refusal = refused(&folder.0, settings, &[]).await;
        clean(settings, &refusal, &marks);
        assert!(
            refusal.contains(named),
            "{named} is not named in: {refusal}"
        );
    }
    // The same for a variable.
    for variable in ["WRKFLW_SEAL_KEYS", "WRKFLW_DATABASE_URL"] {
        let refusal = refused(&folder.0, base, &[(variable, MARK)]).await;
        clean(variable, &refusal, &marks);
    }
}
