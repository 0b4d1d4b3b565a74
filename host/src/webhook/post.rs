//! One POST over a connection of its own. The address that was checked is the one that is connected to: a name is
//! looked up once, so it cannot stand for another address a moment later. Redirects are answers like any
//! other, and of an answer nothing but its status is read.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

use super::message::Message;
use super::settings::{Settings, SettingsError};
use crate::domain::cloudevent::STRUCTURED_CONTENT_TYPE;
use crate::domain::subscription::{Reach, may_connect};

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;
/// What the client buffers of an answer's head, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const AGENT: &str = concat!("wrkflw/", env!("CARGO_PKG_VERSION"));

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("{0}")]
    Forbidden(String),
    #[error("the name {host} cannot be looked up: {error}")]
    Lookup { host: String, error: std::io::Error },
    #[error("no connection to {address}: {error}")]
    Connect {
        address: SocketAddr,
        error: std::io::Error,
    },
    #[error("no TLS with the receiver: {0}")]
    Tls(std::io::Error),
    #[error("the receiver speaks no HTTP/1.1: {0}")]
    Http(#[from] hyper::Error),
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
}

pub(super) struct Post {
    tls: TlsConnector,
    reach: Reach,
    timeout: Duration,
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post")
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

impl Post {
    pub(super) fn new(settings: &Settings) -> Result<Post, SettingsError> {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        if let Some(path) = &settings.ca_file {
            let wrong = |detail: String| SettingsError::Certificates {
                path: path.clone(),
                detail,
            };
            let before = roots.len();
            let found =
                CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots
                    .add(certificate)
                    .map_err(|error| wrong(error.to_string()))?;
            }
            if roots.len() == before {
                return Err(wrong("has no certificate in PEM".into()));
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| SettingsError::Tls(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Post {
            tls: TlsConnector::from(Arc::new(config)),
            reach: settings.reach,
            timeout: settings.timeout,
        })
    }

    /// The status that the receiver answered.
    pub(super) async fn send(&self, url: &Url, message: Message) -> Result<u16, PostError> {
        let sending = self.send_in_time(url, message);
        let status = tokio::time::timeout(self.timeout, sending)
            .await
            .map_err(|_| PostError::Timeout(self.timeout))??;
        Ok(status.as_u16())
    }

    async fn send_in_time(&self, url: &Url, message: Message) -> Result<StatusCode, PostError> {
        let stream = self.connect(url).await?;
        let request = request(url, message)?;
        if url.scheme() == "https" {
            let name = server_name(url)?;
            let stream = self
                .tls
                .connect(name, stream)
                .await
                .map_err(PostError::Tls)?;
            exchange(stream, request).await
        } else {
            exchange(stream, request).await
        }
    }

    async fn connect(&self, url: &Url) -> Result<TcpStream, PostError> {
        let (host, port) = (
            url.host_str().unwrap_or_default().to_owned(),
            url.port_or_known_default().unwrap_or(443),
        );
        let found: Vec<SocketAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![(address, port).into()],
            Some(Host::Ipv6(address)) => vec![(address, port).into()],
            Some(Host::Domain(name)) => tokio::net::lookup_host((name, port))
                .await
                .map_err(|error| PostError::Lookup {
                    host: host.clone(),
                    error,
                })?
                .collect(),
            None => Vec::new(),
        };
        let allowed = found
            .iter()
            .filter(|found| may_connect(found.ip(), url.scheme(), self.reach));
        let mut failed = PostError::Forbidden(format!(
            "{host} stands for no address that webhooks may call"
        ));
        for address in allowed.take(ADDRESSES_MAX) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    failed = PostError::Connect {
                        address: *address,
                        error,
                    }
                }
            }
        }
        Err(failed)
    }
}

fn server_name(url: &Url) -> Result<ServerName<'static>, PostError> {
    let invalid =
        || PostError::Forbidden("the URL names no host that a certificate could name".into());
    match url.host().ok_or_else(invalid)? {
        Host::Domain(name) => ServerName::try_from(name.to_owned()).map_err(|_| invalid()),
        Host::Ipv4(address) => Ok(ServerName::from(std::net::IpAddr::V4(address))),
        Host::Ipv6(address) => Ok(ServerName::from(std::net::IpAddr::V6(address))),
    }
}

fn request(url: &Url, message: Message) -> Result<Request<Full<Bytes>>, PostError> {
    let mut host = url.host_str().unwrap_or_default().to_owned();
    if let Some(port) = url.port() {
        host = format!("{host}:{port}");
    }
    let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    Request::post(path)
        .header(HOST, host)
        .header(USER_AGENT, AGENT)
        .header(
            CONTENT_TYPE,
            HeaderValue::from_static(STRUCTURED_CONTENT_TYPE),
        )
        .header("webhook-id", message.id)
        .header("webhook-timestamp", message.timestamp)
        .header("webhook-signature", message.signature)
        .body(Full::new(Bytes::from(message.body)))
        .map_err(|error| PostError::Forbidden(format!("the URL cannot be asked for: {error}")))
}

/// Sends the request and reads the head of the answer; dropping the connection ends what is left of it.
async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<StatusCode, PostError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await?;
    let answer = sender.send_request(request);
    tokio::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => Ok(answer?.status()),
        // The receiver may close at once behind its answer.
        _ = connection => Ok(answer.await?.status()),
    }
}

#[cfg(test)]
mod tests;
