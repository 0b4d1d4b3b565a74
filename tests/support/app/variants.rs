//! The same service, put together otherwise.

use wrkflw::engine::Engine;
use wrkflw::http::admission::Admission;
use wrkflw::http::router;

use super::{Host, TestApp, application, service};

impl TestApp {
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
