//! Files that are missing, cannot be read, or change under a running host; a folder in which no file can be written.

use std::fs;

use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_runtime::clock::Clock;
use wrkflw_sandbox::{Compiler, Sandbox, Settings};

use super::program::{Folder, Program, command, run, serve};
use super::*;

const ARTIFACT_KEY: &str = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";

#[tokio::test]
async fn changed_files_are_read_at_the_next_start() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let (file, secret) = (folder.0.join("wrkflw.toml"), folder.0.join("jwt.secret"));
    let key = str::from_utf8(crate::support::app::SECRET).expect("text");
    fs::write(&secret, key).expect("our own folder");
    let artifacts = folder.0.join("artifacts");
    let settings = format!(
        "jwt_secret_file = {secret:?}\nroles = [\"api\"]\nartifact_dir = {artifacts:?}\nartifact_key = \"{ARTIFACT_KEY}\"\n"
    );
    fs::write(&file, &settings).expect("our own folder");
    let with_file = || {
        let mut command = serve(&folder, &app, "");
        command.env_remove("WRKFLW_JWT_SECRET");
        command
    };
    let token = app.host().token("author");
    let host = Program::start(&folder, with_file()).await;
    host.started(&token, &start_of("doc-1")).await;

    fs::write(&file, "this is no TOML [").expect("our own folder");
    fs::remove_file(&secret).expect("our own folder");
    fs::remove_dir_all(&artifacts).expect("our own folder");
    fs::write(&artifacts, "in the way").expect("our own folder");
    let second = host
        .post(&token, "/v1/instances", &start_of("doc-2"))
        .await
        .expect("an answer");
    assert_eq!(second.status, 201, "{}", second.body);
    assert_eq!(
        host.get("", "/readyz").await.expect("an answer").status,
        200
    );
    drop(host);

    let failed = |output: std::process::Output| {
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    let output = failed(run(with_file()).await);
    assert!(output.contains("wrkflw.toml"), "{output}");
    fs::write(&file, &settings).expect("our own folder");
    let output = failed(run(with_file()).await);
    assert!(
        output.contains("jwt.secret") && output.contains("jwt_secret"),
        "{output}"
    );
    // A folder instead of a file cannot be read by anybody, not even by root.
    fs::create_dir(&secret).expect("our own folder");
    let output = failed(run(with_file()).await);
    assert!(output.contains("jwt.secret"), "{output}");
    fs::remove_dir(&secret).expect("our own folder");
    fs::write(&secret, key).expect("our own folder");
    let output = failed(run(with_file()).await);
    assert!(output.contains("artifacts"), "{output}");

    fs::remove_file(&artifacts).expect("our own folder");
    let host = Program::start(&folder, with_file()).await;
    let page = host
        .get(&token, "/v1/instances")
        .await
        .expect("an answer")
        .json();
    assert_eq!(
        page["data"].as_array().map(Vec::len),
        Some(2),
        "nothing is lost"
    );
}

#[tokio::test]
async fn a_truncated_artifact_is_compiled_again_and_decisions_go_on() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let artifacts = folder.0.join("artifacts");
    let with_cache = || {
        let mut command = serve(&folder, &app, "--roles api");
        command
            .env("WRKFLW_ARTIFACT_DIR", &artifacts)
            .env("WRKFLW_ARTIFACT_KEY", ARTIFACT_KEY);
        command
    };
    let token = app.host().token("author");
    let code = || -> Vec<_> {
        let files = fs::read_dir(&artifacts).expect("a folder");
        let paths = files.map(|entry| entry.expect("an entry").path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == "cwasm"))
            .collect()
    };
    for (number, is_damaged) in [false, true].into_iter().enumerate() {
        if is_damaged {
            for path in code() {
                let whole = fs::read(&path).expect("our own folder");
                fs::write(path, &whole[..whole.len() / 2]).expect("our own folder");
            }
        }
        let host = Program::start(&folder, with_cache()).await;
        let entity = format!("doc-{number}");
        host.started(&token, &start_of(&entity)).await;
        let set_aside = host.metric("wrkflw_artifacts_quarantined_total").await;
        assert_eq!(set_aside > 0.5, is_damaged, "{set_aside}");
        assert!(!code().is_empty(), "kept for the next start");
    }
}

#[tokio::test]
async fn a_folder_without_write_access_only_costs_time() {
    let (folder, app) = (Folder::new(), TestApp::empty().await);
    let artifacts = folder.0.join("artifacts");
    let settings = Settings::new(Compiler::InProcess).keeping_artifacts(&artifacts, [7; 32]);
    let sandbox = Sandbox::new(settings).expect("a sandbox");
    // From here on nothing can be written there, as on a full or read-only disk.
    fs::remove_dir_all(&artifacts).expect("our own folder");
    fs::write(&artifacts, "in the way").expect("our own folder");
    let (store, seals) = (app.store().clone(), app.engine.seals().clone());
    let engine = wrkflw_engine::Engine::new(store, sandbox, Clock::System, seals, TIMEOUT).await;
    let engine = engine.expect("an engine");
    let store = app.store().clone();
    let app = app.with_engine(store, engine);
    app.publish("document-approval", DOCUMENT_APPROVAL, &json!({}))
        .await
        .expect(201);
    let activate = "/v1/definitions/document-approval/versions/1/activate";
    app.post("admin", activate, json!({})).await.expect(200);
    let started = app.started("doc-1").await;
    claim(&app.host(), "reviewer", &started).await.expect(200);
    assert!(artifacts.is_file(), "nothing was kept");
}

#[tokio::test]
async fn a_relay_needs_no_keys_and_answers_probes() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let mut relay = command(
        &folder,
        "serve --roles relay --output json --kafka-brokers 127.0.0.1:1",
    );
    relay
        .env("WRKFLW_LISTEN", "127.0.0.1:0")
        .env("WRKFLW_DATABASE_URL", app.database.url());
    let mut host = Program::start(&folder, relay).await;
    for (path, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/v1/instances", 404),
    ] {
        assert_eq!(
            host.get("", path).await.expect("an answer").status,
            status,
            "{path}"
        );
    }
    host.metric_reaches("wrkflw_outbox_depth", |_| true).await;
    host.terminate();
    assert!(host.ended().await.success(), "{}", host.log());
}

#[tokio::test]
async fn a_host_warns_if_it_cannot_measure_the_backlog() {
    let (folder, app) = (Folder::new(), TestApp::empty().await);
    let locked = "revoke select on dead_letter from wrkflw_relay; revoke select on webhook_delivery from wrkflw_writer";
    sql(&app, locked).await;
    let line = "--roles relay,notifier --kafka-brokers 127.0.0.1:1";
    let host = Program::start(&folder, serve(&folder, &app, line)).await;
    host.log_reaches("the outbox could not be measured").await;
    host.log_reaches("the deliveries could not be measured")
        .await;
}
