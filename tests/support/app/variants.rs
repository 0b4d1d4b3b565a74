//! Variants of the service: more hosts beside the first, with their own clocks, keys and limits.

use std::time::Duration;

use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::seal::SealKeys;
use wrkflw_engine::Engine;
use wrkflw_engine::pipeline::WriterBounds;
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::admission::Admission;
use wrkflw_server::http::auth::AuthSettings;
use wrkflw_server::http::router;
use wrkflw_store::{PoolSizes, Store};

use super::{Host, POOLS, TIMEOUT, TestApp, application, engine, sandbox, sealing_engine, service};

impl TestApp {
    /// A second host on the same database.
    pub(crate) async fn beside(&self) -> Host {
        self.beside_at(self.database.url(), TIMEOUT).await
    }

    /// A second host that connects to the same database at another address, with another request timeout.
    pub(crate) async fn beside_at(&self, url: &str, timeout: Duration) -> Host {
        self.beside_with_engine(url, timeout).await.0
    }

    /// A second host that seals decisions with other keys.
    pub(crate) async fn beside_sealing(&self, seals: SealKeys) -> (Host, Engine) {
        let store = Store::connect(self.database.url(), POOLS).expect("a URL");
        let engine = sealing_engine(store, TIMEOUT, seals).await;
        (self.serving(&engine), engine)
    }

    /// The same, with the engine of that host.
    pub(crate) async fn beside_with_engine(&self, url: &str, timeout: Duration) -> (Host, Engine) {
        let store = Store::connect(url, POOLS).expect("a URL");
        let engine = engine(store, timeout).await;
        (self.serving(&engine), engine)
    }

    /// A second host that connects to the same database at another address, with low limits of the writer.
    pub(crate) async fn beside_bounded(&self, url: &str, bounds: WriterBounds) -> (Host, Engine) {
        let sizes = PoolSizes {
            writer: 6,
            reader: 3,
            relay: 2,
        };
        let store = Store::connect(url, sizes).expect("a URL");
        let (sandbox, seals) = (sandbox().await, self.engine.seals().clone());
        let engine = Engine::bounded(store, sandbox, Clock::System, seals, TIMEOUT, bounds).await;
        let engine = engine.expect("an engine");
        (self.serving(&engine), engine)
    }

    /// A second host with its own connections and a clock that the test moves, and its engine.
    pub(crate) async fn beside_at_time(&self, clock: Clock) -> (Host, Engine) {
        let store = Store::connect(self.database.url(), POOLS).expect("a URL");
        let (sandbox, seals) = (sandbox().await, self.engine.seals().clone());
        let engine = Engine::new(store, sandbox, clock, seals, TIMEOUT).await;
        let engine = engine.expect("an engine");
        (self.serving(&engine), engine)
    }

    /// A second host on the same database, with a clock that the test moves.
    pub(crate) async fn beside_with_clock(&self, clock: Clock) -> Host {
        Host {
            router: service(self.engine_with_clock(clock).await, &self.auth),
            auth: self.auth.clone(),
        }
    }

    /// The engine of such a host.
    pub(crate) async fn engine_with_clock(&self, clock: Clock) -> Engine {
        let seals = self.engine.seals().clone();
        let (store, sandbox) = (self.store().clone(), sandbox().await);
        let engine = Engine::new(store, sandbox, clock, seals, TIMEOUT).await;
        engine.expect("an engine")
    }

    /// This host with other settings of authentication.
    pub(crate) fn guarded_by(&self, auth: &AuthSettings) -> Host {
        Host {
            router: service(self.engine.clone(), auth),
            auth: self.auth.clone(),
        }
    }

    fn serving(&self, engine: &Engine) -> Host {
        Host {
            router: service(engine.clone(), &self.auth),
            auth: self.auth.clone(),
        }
    }

    /// This host with other limits of the requests in flight.
    pub(crate) fn admitting(&self, admission: Admission) -> Host {
        Host {
            router: router(application(self.engine.clone(), &self.auth).admitting(admission)),
            auth: self.auth.clone(),
        }
    }

    /// The same service with keys that verify checkpoints.
    pub(crate) async fn knowing(self, keys: CheckpointKeys) -> TestApp {
        let store = Store::connect(self.database.url(), POOLS).expect("a URL");
        let engine = engine(store.clone(), TIMEOUT).await.verifying(keys);
        self.with_engine(store, engine)
    }

    /// The same service with another engine, and the store that it writes to.
    pub(crate) fn with_engine(self, store: Store, engine: Engine) -> TestApp {
        TestApp {
            router: service(engine.clone(), &self.auth),
            engine,
            store,
            ..self
        }
    }
}
