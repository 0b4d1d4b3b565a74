//! The HTTP client of a host: each request has its own connection and timeout. It follows no redirects.
//!
//! `reqwest` is not used for two reasons. It cannot limit the head of a response (`http1_max_buf_size` of `hyper-util`). It
//! does not give the scheme to a resolver, but the addresses that a webhook may call depend on the scheme.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Exchange;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower::Service;

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;
/// Limit of the response head that is buffered, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("wrkflw/", env!("CARGO_PKG_VERSION")));

/// Whether `host`, as written in a URL, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0} has no address that may be called")]
    Forbidden(String),
    #[error("no connection: {0}")]
    Connect(String),
    #[error("no TLS: {0}")]
    Tls(String),
    #[error("no HTTP/1.1: {0}")]
    Http(String),
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
}

/// A file of certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {detail}", path.display())]
pub struct CertificateError {
    path: PathBuf,
    detail: String,
}

/// Which addresses a request may be sent to.
pub type Allowed = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// How a request reaches its server.
#[derive(Clone)]
pub enum Route {
    /// Directly, and only to these addresses. The connection goes to exactly the address that was checked.
    To(Allowed),
    /// Directly.
    Direct,
    /// Through the proxy that the environment names for the URL, if any.
    Proxied,
}

/// The client. Cheap to clone.
#[derive(Clone)]
pub struct HttpClient {
    tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
    connect_timeout: Option<Duration>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    /// Trusts the public certificate authorities.
    pub fn new() -> HttpClient {
        HttpClient::with_roots(public_roots())
    }

    /// Also trusts the certificates in a file (PEM).
    pub fn trusting(path: &Path) -> Result<HttpClient, CertificateError> {
        let mut roots = public_roots();
        match add(&mut roots, path) {
            Ok(()) => Ok(HttpClient::with_roots(roots)),
            Err(detail) => Err(CertificateError {
                path: path.to_owned(),
                detail,
            }),
        }
    }

    fn with_roots(roots: RootCertStore) -> HttpClient {
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        HttpClient {
            tls: Arc::new(config),
            proxies: Arc::new(Matcher::from_env()),
            connect_timeout: None,
        }
    }

    /// Gives up a connection that is not established in this time. The time is part of the timeout of the request.
    pub fn connecting_within(self, timeout: Duration) -> HttpClient {
        HttpClient {
            connect_timeout: Some(timeout),
            ..self
        }
    }

    /// Sends a request. Returns when the head of the response has arrived. The timeout does not apply to the body.
    pub async fn send(
        &self,
        request: Request<Vec<u8>>,
        route: Route,
        timeout: Duration,
    ) -> Result<Response<Incoming>, ClientError> {
        let sent = tokio::time::timeout(timeout, self.sent(request, route)).await;
        sent.unwrap_or(Err(ClientError::Timeout(timeout)))
    }

    /// Sends a request. Returns the whole response. Its body may have at most this number of bytes.
    pub async fn fetch(
        &self,
        request: Request<Vec<u8>>,
        route: Route,
        timeout: Duration,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, ClientError> {
        let fetched = async {
            let (head, body) = self.sent(request, route).await?.into_parts();
            Ok(Response::from_parts(head, read(body, bytes_max).await?))
        };
        let fetched = tokio::time::timeout(timeout, fetched).await;
        fetched.unwrap_or(Err(ClientError::Timeout(timeout)))
    }

    async fn sent(
        &self,
        request: Request<Vec<u8>>,
        route: Route,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut request = request.map(|body| Full::new(Bytes::from(body)));
        request.headers_mut().insert(USER_AGENT, AGENT);
        let proxy = match route {
            Route::Proxied => self.proxies.intercept(request.uri()),
            Route::To(_) | Route::Direct => None,
        };
        let allowed = match route {
            Route::To(allowed) => allowed,
            Route::Direct | Route::Proxied => Arc::new(|_| true),
        };
        check_literal(request.uri(), &allowed)?;
        let mut tcp = HttpConnector::new_with_resolver(Resolver { allowed });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(self.connect_timeout);
        match proxy {
            None => exchange(HttpsConnector::from((tcp, self.tls.clone())), request).await,
            Some(proxy) => {
                let to_proxy = HttpsConnector::from((tcp, self.tls.clone()));
                let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
                if let Some(auth) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(auth.clone());
                }
                exchange(HttpsConnector::from((tunnel, self.tls.clone())), request).await
            }
        }
    }
}

impl Default for HttpClient {
    fn default() -> HttpClient {
        HttpClient::new()
    }
}

/// The next bytes of a body; none at its end.
pub async fn next(body: &mut Incoming) -> Option<Result<Bytes, ClientError>> {
    loop {
        match body.frame().await? {
            // The other frames are trailers.
            Ok(frame) => {
                if let Ok(bytes) = frame.into_data() {
                    return Some(Ok(bytes));
                }
            }
            Err(error) => return Some(Err(ClientError::Http(error.to_string()))),
        }
    }
}

/// Reads a body of at most so many bytes.
pub async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, ClientError> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ClientError::TooLarge(bytes_max)),
        Err(error) => Err(ClientError::Http(error.to_string())),
    }
}

fn public_roots() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let before = roots.len();
    let found = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    for certificate in found {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.len() == before {
        return Err("has no certificate in PEM".to_owned());
    }
    Ok(())
}

async fn exchange<C>(
    connector: C,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, ClientError>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let client = Exchange::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .retry_canceled_requests(false)
        .http1_max_buf_size(HEAD_BYTES_MAX)
        .build(connector);
    client.request(request).await.map_err(|error| {
        let first = error.source();
        let text = chain(&error);
        match forbidden(&error) {
            Some(host) => ClientError::Forbidden(host),
            None if !error.is_connect() => ClientError::Http(text),
            // `HttpsConnector` reports a failed handshake by this type, and a failed connection by another.
            None if first.is_some_and(<dyn StdError>::is::<io::Error>) => ClientError::Tls(text),
            None => ClientError::Connect(text),
        }
    })
}

/// The texts of an error's causes. The error itself only says that something failed.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let first = error.source().unwrap_or(error);
    let causes = std::iter::successors(Some(first), |&cause| cause.source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

/// No address of a name may be called.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoAddress(String);

fn forbidden(error: &(dyn StdError + 'static)) -> Option<String> {
    let causes = std::iter::successors(Some(error), |&cause| cause.source());
    causes
        .filter_map(|cause| cause.downcast_ref::<NoAddress>())
        .map(|NoAddress(host)| host.clone())
        .next()
}

/// Checks an address in the URL, which no resolver sees.
fn check_literal(url: &Uri, allowed: &Allowed) -> Result<(), ClientError> {
    let host = url.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    match address {
        Ok(address) if !allowed(address) => Err(ClientError::Forbidden(host.to_owned())),
        _ => Ok(()),
    }
}

/// Looks a name up, once for each connection, and leaves out the addresses that may not be called.
#[derive(Clone)]
struct Resolver {
    allowed: Allowed,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn StdError + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let allowed = Arc::clone(&self.allowed);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let usable = found.filter(|address| allowed(address.ip()));
            let usable: Vec<_> = usable.take(ADDRESSES_MAX).collect();
            if usable.is_empty() {
                return Err(NoAddress(name.as_str().to_owned()).into());
            }
            Ok(usable.into_iter())
        })
    }
}

#[cfg(test)]
mod tests;
