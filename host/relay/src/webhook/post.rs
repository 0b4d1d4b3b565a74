//! One POST of a webhook. It goes only to addresses that webhooks may call. Redirects are not followed. Only the status of the
//! response is read.

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::header::CONTENT_TYPE;
use url::Url;

use super::message::Message;
use super::settings::{Settings, SettingsError};
use wrkflw_core::cloudevent::STRUCTURED_CONTENT_TYPE;
use wrkflw_core::subscription::{AllowedAddresses, may_connect};
use wrkflw_runtime::http_client::{ClientError, HttpClient, Route};

/// Why a post has no status.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("{0}")]
    Forbidden(String),
    #[error(transparent)]
    Client(ClientError),
}

#[derive(Debug)]
pub(super) struct Post {
    client: HttpClient,
    reach: AllowedAddresses,
    timeout: Duration,
}

impl Post {
    pub(super) fn new(settings: &Settings) -> Result<Post, SettingsError> {
        let client = match &settings.ca_file {
            Some(path) => HttpClient::trusting(path)?,
            None => HttpClient::new(),
        };
        Ok(Post {
            client,
            reach: settings.reach,
            timeout: settings.timeout,
        })
    }

    /// Posts a message. Returns the status of the response.
    pub(super) async fn send(&self, url: &Url, message: Message) -> Result<u16, PostError> {
        let (scheme, reach) = (url.scheme().to_owned(), self.reach);
        let allowed = Arc::new(move |address| may_connect(address, &scheme, reach));
        let (request, route) = (request(url, message)?, Route::To(allowed));
        match self.client.send(request, route, self.timeout).await {
            Ok(response) => Ok(response.status().as_u16()),
            Err(ClientError::Forbidden(host)) => Err(PostError::Forbidden(format!(
                "{host} has no address that webhooks may call"
            ))),
            Err(error) => Err(PostError::Client(error)),
        }
    }
}

fn request(url: &Url, message: Message) -> Result<Request<Vec<u8>>, PostError> {
    Request::post(url.as_str())
        .header(CONTENT_TYPE, STRUCTURED_CONTENT_TYPE)
        .header("webhook-id", message.id)
        .header("webhook-timestamp", message.timestamp)
        .header("webhook-signature", message.signature)
        .body(message.body.into_bytes())
        .map_err(|error| PostError::Forbidden(format!("the URL cannot be asked for: {error}")))
}

#[cfg(test)]
mod tests;
