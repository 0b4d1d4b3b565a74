//! The same service, put together otherwise: hosts beside the first, with clocks, keys and bounds of their own.

use std::time::Duration;

use wrkflw::clock::Clock;
use wrkflw::engine::{Engine, SealKeys, WriterBounds};
use wrkflw::http::admission::Admission;
use wrkflw::http::auth::AuthSettings;
use wrkflw::http::router;
use wrkflw::store::{PoolSizes, Store};

use super::{
    Host, PATIENCE, POOLS, TestApp, application, engine, sandbox, sealing_engine, service,
};

impl TestApp {
    /// A second host on the same database.
    pub(crate) async fn beside(&self) -> Host {
        self.beside_at(self.database.url(), PATIENCE).await
    }

    /// A second host that finds the same database at another address, or gives a request another time.
    pub(crate) async fn beside_at(&self, url: &str, patience: Duration) -> Host {
        self.beside_with_engine(url, patience).await.0
    }

    /// A second host that seals decisions with other keys.
    pub(crate) async fn beside_sealing(&self, seals: SealKeys) -> (Host, Engine) {
        let store = Store::connect(self.database.url(), POOLS).expect("a URL");
        let engine = sealing_engine(store, PATIENCE, seals).await;
        (self.serving(&engine), engine)
    }

    /// The same, with the engine of that host.
    pub(crate) async fn beside_with_engine(&self, url: &str, patience: Duration) -> (Host, Engine) {
        let store = Store::connect(url, POOLS).expect("a URL");
        let engine = engine(store, patience).await;
        (self.serving(&engine), engine)
    }

    /// A second host that finds the same database at another address, with bounds of the writer that a test can reach.
    pub(crate) async fn beside_bounded(&self, url: &str, bounds: WriterBounds) -> (Host, Engine) {
        let sizes = PoolSizes {
            writer: 6,
            reader: 3,
            relay: 2,
        };
        let store = Store::connect(url, sizes).expect("a URL");
        let (sandbox, seals) = (sandbox().await, self.engine.seals().clone());
        let engine = Engine::bounded(store, sandbox, Clock::System, seals, PATIENCE, bounds).await;
        let engine = engine.expect("an engine");
        (self.serving(&engine), engine)
    }

    /// A second host with connections of its own, whose clock stands until it is moved, and its engine.
    pub(crate) async fn beside_at_time(&self, clock: Clock) -> (Host, Engine) {
        let store = Store::connect(self.database.url(), POOLS).expect("a URL");
        let (sandbox, seals) = (sandbox().await, self.engine.seals().clone());
        let engine = Engine::new(store, sandbox, clock, seals, PATIENCE).await;
        let engine = engine.expect("an engine");
        (self.serving(&engine), engine)
    }

    /// A second host on the same database, whose clock stands until it is moved.
    pub(crate) async fn beside_with_clock(&self, clock: Clock) -> Host {
        Host {
            router: service(self.engine_with_clock(clock).await, &self.auth),
            auth: self.auth.clone(),
        }
    }

    /// The engine of such a host.
    pub(crate) async fn engine_with_clock(&self, clock: Clock) -> Engine {
        let seals = self.engine.seals().clone();
        let (store, sandbox) = (self.engine.store().clone(), sandbox().await);
        let engine = Engine::new(store, sandbox, clock, seals, PATIENCE).await;
        engine.expect("an engine")
    }

    /// This host, if it checked tokens in another way.
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

    /// This host, if it bounded the requests in hand otherwise.
    pub(crate) fn admitting(&self, admission: Admission) -> Host {
        Host {
            router: router(application(self.engine.clone(), &self.auth).admitting(admission)),
            auth: self.auth.clone(),
        }
    }

    /// The same service with another engine.
    pub(crate) fn with_engine(self, engine: Engine) -> TestApp {
        TestApp {
            router: service(engine.clone(), &self.auth),
            engine,
            ..self
        }
    }
}
