//! A running host: the engine with the API, the relay, the timers, the notifier and the sweeping around it, from start to a drained stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failure::{Exit, Failure};
use super::migrate::ensure_tenants;
use super::serve::not_migrated;
use crate::clock::Clock;
use crate::config::{LogFormat, Role, Settings, SettingsError};
use crate::engine::Engine;
use crate::engine::checkpoint::Checkpointer;
use crate::engine::checkpoint::keys::CheckpointKeys;
use crate::engine::jobs::Jobs;
use crate::http::auth::Authenticator;
use crate::http::{self, App};
use crate::outbox::Relay;
use crate::store::Store;
use crate::telemetry::{self, LogSettings, Telemetry};
use crate::wasm::Sandbox;
use crate::webhook::Notifier;

/// How often replies that are too old are forgotten.
const SWEEP_EVERY: Duration = Duration::from_hours(1);

/// Everything that runs in this process.
pub(super) struct Host {
    engine: Engine,
    cancel: CancellationToken,
    tasks: TaskTracker,
    /// The streams of the API.
    streams: Option<TaskTracker>,
    server: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
    drain: Duration,
}

/// Starts logs and metrics.
pub(super) fn observe(settings: &Settings) -> Result<Telemetry> {
    let format = match settings.log_format {
        LogFormat::Text => telemetry::LogFormat::Human,
        LogFormat::Json => telemetry::LogFormat::Json,
    };
    let log = LogSettings {
        format,
        filter: settings.log.clone(),
    };
    Ok(telemetry::init(&log).map_err(SettingsError)?)
}

/// Takes the address, or says who might have it.
pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let next = "choose another with --port or --listen; port 0 takes any that is free";
        Failure::new(Exit::Failed, format!("cannot listen on {address}: {error}"))
            .next(next)
            .into()
    })
}

/// Becomes ready when this process is asked to stop.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

impl Host {
    /// Starts what the settings say. `listener` is there exactly if the API is to be served.
    pub(super) async fn start(
        settings: &Settings,
        listener: Option<TcpListener>,
        program: PathBuf,
        telemetry: Telemetry,
    ) -> Result<Host> {
        // What the settings lack is said before anything is contacted.
        let (seals, naming) = (settings.seals()?, settings.naming());
        let checkpoints = settings.checkpoints()?;
        let kafka = settings
            .has(Role::Relay)
            .then(|| settings.kafka())
            .transpose()?;
        let clock = Clock::System;
        let auth = match &listener {
            Some(_) => Some(
                Authenticator::new(settings.auth.settings(), clock.clone())
                    .map_err(SettingsError)?,
            ),
            None => None,
        };
        let sandbox = Sandbox::new(settings.sandbox(program)?).map_err(SettingsError)?;
        let store = Store::connect(settings.database.url()?, settings.database.pools())?;
        let notifier = notifier(settings, &store, &clock)?;
        check(&store).await?;
        ensure_tenants(&store, &settings.database.tenants).await?;
        let patience = Duration::from_secs(settings.request_seconds_max);
        let engine = Engine::new(store.clone(), sandbox, clock, seals, patience).await?;

        let (cancel, tasks) = (CancellationToken::new(), TaskTracker::new());
        let mut host = Host {
            engine: engine.clone(),
            cancel: cancel.clone(),
            tasks: tasks.clone(),
            streams: None,
            server: None,
            drain: Duration::from_secs(settings.drain_seconds_max),
        };
        if let (Some(listener), Some(auth)) = (listener, auth) {
            let topic = settings.kafka_topic.clone();
            let metrics = telemetry.metrics.clone();
            let render = Arc::new(move || metrics.render());
            let app = App::new(
                engine.clone(),
                Arc::new(auth),
                naming.clone(),
                topic,
                render,
                cancel.clone(),
            )
            .reaching(settings.webhooks().reach);
            host.streams = Some(app.tracker.clone());
            host.server = Some(tasks.spawn(http::server::serve(
                listener,
                http::router(app),
                cancel.clone(),
            )));
        }
        if let Some(notifier) = notifier {
            tasks.spawn(notifier.run(cancel.clone(), engine.commits()));
        }
        if let Some(kafka) = kafka {
            let relay = Relay::new(store.outbox(), kafka, naming)
                .map_err(|error| SettingsError(error.to_string()))?;
            tasks.spawn(relay.run(cancel.clone(), engine.wake()));
        }
        if settings.has(Role::Timers) {
            tasks.spawn(Jobs::new(&engine, cancel.clone()).run());
            sign_checkpoints(&engine, checkpoints, &tasks, &cancel);
        }
        tasks.spawn(telemetry.metrics.upkeep(cancel.clone()));
        tasks.spawn(sweep(engine, cancel));
        Ok(host)
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs until `stop`, then drains: no new requests, those under way get their answers, then the relay and the
    /// pools end. Bounded, and cut short by a second signal.
    pub(super) async fn run_until(mut self, stop: impl Future<Output = ()>) -> Result<()> {
        let ended = async {
            match &mut self.server {
                Some(server) => server.await,
                None => std::future::pending().await,
            }
        };
        let failed = tokio::select! {
            () = stop => None,
            ended = ended => Some(ended),
        };
        tracing::info!("stopping");
        self.cancel.cancel();
        if let Some(failed) = failed {
            self.server = None;
            failed
                .context("the API ended")?
                .context("the API cannot go on")?;
        }
        tokio::select! {
            drained = tokio::time::timeout(self.drain, self.drained()) => match drained {
                Ok(()) => Ok(()),
                Err(_) => bail!("stopped after {} s with requests still under way", self.drain.as_secs()),
            },
            () = stop_signal()? => bail!("stopped at once, as asked again"),
        }
    }

    async fn drained(&self) {
        for tracker in self.streams.iter().chain([&self.tasks]) {
            tracker.close();
            tracker.wait().await;
        }
        self.engine.store().close().await;
    }
}

/// Runs the checkpointer, if this host has a key that signs.
fn sign_checkpoints(
    engine: &Engine,
    keys: CheckpointKeys,
    tasks: &TaskTracker,
    cancel: &CancellationToken,
) {
    if let Some(checkpointer) = Checkpointer::new(engine, Arc::new(keys)) {
        tasks.spawn(checkpointer.run(cancel.clone()));
    } else {
        tracing::warn!("checkpoint_keys is not set: this host signs no checkpoints of the audit");
    }
}

/// The notifier, if this host runs one.
fn notifier(settings: &Settings, store: &Store, clock: &Clock) -> Result<Option<Notifier>> {
    if !settings.has(Role::Notifier) {
        return Ok(None);
    }
    let (naming, webhooks) = (settings.naming(), settings.webhooks());
    let notifier = Notifier::new(store.clone(), clock.clone(), naming, webhooks)
        .map_err(|error| SettingsError(error.to_string()))?;
    Ok(Some(notifier))
}

async fn check(store: &Store) -> Result<()> {
    match store.ready().await {
        Ok(true) => Ok(()),
        Ok(false) => Err(not_migrated().into()),
        Err(error) => {
            let next = "check database_url; if the database is new, run `wrkflw migrate` first";
            Err(
                Failure::new(Exit::Failed, format!("the database is not usable: {error}"))
                    .next(next)
                    .into(),
            )
        }
    }
}

async fn sweep(engine: Engine, cancel: CancellationToken) {
    loop {
        if let Err(error) = engine.purge().await {
            tracing::warn!(%error, "old replies could not be forgotten; the next sweep tries again");
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}
