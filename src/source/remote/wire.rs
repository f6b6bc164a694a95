//! HTTP requests for the stores: one client for all, which follows redirects only for URLs.
//!
//! A redirect is followed once, and remembered: later requests go to its target. Credentials for the first server
//! (`HF_TOKEN`, a name and password in the address) are not sent to another one.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use async_trait::async_trait;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, HeaderValue, LOCATION};
use http::{StatusCode, Uri};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use url::Url;

use super::RemoteError;

const CONNECT: Duration = Duration::from_secs(10);

const REDIRECTS: usize = 10;

/// The only host that gets `HF_TOKEN`.
const HUGGING_FACE: &str = "huggingface.co";

/// Facts of a response that a store does not pass on. Each request for elements carries a note.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    /// The status of the last response; `None` before the first one.
    pub(super) status: Option<StatusCode>,
    /// The region of the bucket, where it differs from the requested one.
    pub(super) region: Option<String>,
}

/// A note, shared with its request.
pub(super) type SharedNote = Arc<Mutex<Note>>;

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone)]
pub(super) struct Wire {
    client: reqwest::Client,
    target: Option<Arc<RequestTarget>>,
    /// The note for requests that cannot carry one.
    note: Option<SharedNote>,
}

/// A URL to request instead of the one that a store makes.
struct RequestTarget {
    url: Url,
    authorization: Option<HeaderValue>,
    /// The target of the server's last redirect.
    moved: Mutex<Option<Url>>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// A client for servers that may send nothing for `patience`.
    pub(super) fn new(patience: Duration) -> Result<Wire, RemoteError> {
        let failed = |error: &dyn fmt::Display| RemoteError::Configuration(error.to_string());
        let mut roots = rustls::RootCertStore::empty();
        // SSL_CERT_FILE and SSL_CERT_DIR, or the system's certificates; without any, TLS fails by itself
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT)
            .read_timeout(patience)
            .redirect(reqwest::redirect::Policy::none())
            // several connections are faster than several streams of one
            .http1_only()
            .user_agent(concat!("tslice/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(&error.without_url()))?;
        Ok(Wire { client, target: None, note: None })
    }

    /// This client, with a note for requests that carry none.
    pub(super) fn with_note(&self, note: &SharedNote) -> Wire {
        Wire { note: Some(note.clone()), ..self.clone() }
    }

    /// This client for requests of one URL, whatever URL a store makes.
    pub(super) fn to_url(&self, text: &str) -> Result<Wire, RemoteError> {
        let bad = |error: &dyn fmt::Display| RemoteError::Address(error.to_string());
        let url = Url::parse(text).map_err(|error| bad(&error))?;
        let has_user = !url.username().is_empty();
        let is_hugging_face = url.scheme() == "https" && url.host_str() == Some(HUGGING_FACE);
        // reqwest makes a header of the user name and password
        let request = self.client.get(url).build();
        let request = request.map_err(|error| bad(&error.without_url()))?;
        let mut authorization = request.headers().get(AUTHORIZATION).cloned();
        let url = request.url().clone();
        if !has_user && is_hugging_face {
            let token = std::env::var("HF_TOKEN").ok().filter(|token| !token.trim().is_empty());
            let header = token.map(|it| HeaderValue::from_str(&format!("Bearer {}", it.trim())));
            authorization = header.transpose().map_err(|_| {
                RemoteError::Configuration("HF_TOKEN holds characters that no token has".into())
            })?;
        }
        if let Some(header) = &mut authorization {
            header.set_sensitive(true);
        }
        let target = RequestTarget { url, authorization, moved: Mutex::default() };
        Ok(Wire { target: Some(Arc::new(target)), ..self.clone() })
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let note: Option<SharedNote> = request.extensions().get().or(self.note.as_ref()).cloned();
        let answer = HttpService::call(&self.client, request).await.map_err(lasting)?;
        if lengths_differ(&answer) {
            return Err(refused("the server states two lengths for one response"));
        }
        if let Some(note) = note {
            let region = answer.headers().get("x-amz-bucket-region");
            let region = region.and_then(|it| it.to_str().ok()).map(str::to_owned);
            *locked(&note) = Note { status: Some(answer.status()), region };
        }
        Ok(answer)
    }

    /// Send a request to the URL, or to the target of its redirect.
    async fn follow(
        &self,
        target: &RequestTarget,
        request: HttpRequest,
    ) -> Result<HttpResponse, HttpError> {
        let moved = locked(&target.moved).clone();
        if let Some(url) = moved {
            let answer = self.send(target.addressed(&request, &url)?).await?;
            // a redirect may be valid only for some time
            let stale = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND];
            if !stale.contains(&answer.status()) && answer.status() != StatusCode::GONE {
                return Ok(answer);
            }
            *locked(&target.moved) = None;
        }
        let mut url = target.url.clone();
        for _ in 0..=REDIRECTS {
            let answer = self.send(target.addressed(&request, &url)?).await?;
            let location = answer.headers().get(LOCATION).filter(|_| is_moved(answer.status()));
            let Some(location) = location else {
                if answer.status().is_success() && url != target.url {
                    *locked(&target.moved) = Some(url);
                }
                return Ok(answer);
            };
            let next = location.to_str().ok().and_then(|text| url.join(text).ok());
            url = match next {
                Some(next) if next.scheme() == "https" || next.scheme() == url.scheme() => next,
                Some(_) => return Err(refused("the server redirects from https to http")),
                None => return Err(refused("the server redirects to an invalid URL")),
            };
        }
        Err(refused("the server redirects again and again"))
    }
}

impl RequestTarget {
    fn addressed(&self, request: &HttpRequest, url: &Url) -> Result<HttpRequest, HttpError> {
        let mut request = request.clone();
        let uri = url.as_str().split('#').next().unwrap_or_default();
        let uri = uri.parse::<Uri>().map_err(|_| refused("the address is not a URL"))?;
        *request.uri_mut() = uri;
        request.headers_mut().remove(AUTHORIZATION);
        if let (Some(header), true) = (&self.authorization, url.origin() == self.url.origin()) {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
        }
        Ok(request)
    }
}

#[async_trait]
impl HttpService for Wire {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Some(target) = &self.target else { return self.send(request).await };
        let mut answer = self.follow(target, request).await?;
        // a store asks for the length, which a server need not send
        let range = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let len =
            range.and_then(range_len).filter(|_| !answer.headers().contains_key(CONTENT_LENGTH));
        if let Some(len) = len {
            answer.headers_mut().insert(CONTENT_LENGTH, len.into());
        }
        Ok(answer)
    }
}

impl HttpConnector for Wire {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

fn is_moved(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Whether the length of a response differs from the length of its range.
fn lengths_differ(answer: &HttpResponse) -> bool {
    let header = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let len = header(CONTENT_LENGTH).and_then(|text| text.parse().ok());
    let range = header(CONTENT_RANGE).and_then(range_len);
    answer.status() == StatusCode::PARTIAL_CONTENT && len.is_some_and(|len| range != Some(len))
}

/// The number of bytes in the range of a header such as `bytes 0-9/20`.
fn range_len(text: &str) -> Option<u64> {
    let (range, _) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(&'static str);

fn refused(why: &'static str) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, Refused(why))
}

/// Mark an error that would be the same at each attempt, such as a bad certificate, so that no store tries again.
fn lasting(error: HttpError) -> HttpError {
    let is_lasting = causes(&error).iter().any(|cause| cause.is::<rustls::Error>());
    if is_lasting { HttpError::new(HttpErrorKind::Unknown, error) } else { error }
}

/// The error for a request without a complete response. It has the message of the innermost cause, because outer causes
/// name the URL.
pub(super) fn said(error: &(dyn Error + 'static), patience: Duration) -> RemoteError {
    let causes = causes(error);
    let kind = causes.iter().find_map(|cause| cause.downcast_ref::<HttpError>());
    let Some(kind) = kind.map(HttpError::kind) else {
        let refused = "no credentials: the service that gives them refuses";
        return RemoteError::Configuration(refused.into());
    };
    let cause = causes.last().map_or_else(String::new, |cause| cause.to_string());
    let tls = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>());
    RemoteError::Network(match tls {
        Some(tls) => format!("no secure connection: {tls}"),
        None if causes.iter().any(|cause| cause.is::<Refused>()) => cause,
        None if kind == HttpErrorKind::Timeout => return RemoteError::Timeout(patience),
        None if kind == HttpErrorKind::Connect => format!("no connection: {cause}"),
        None => format!("the connection broke: {cause}"),
    })
}

/// An error and all its causes, including causes inside an [`io::Error`].
fn causes<'e>(error: &'e (dyn Error + 'static)) -> Vec<&'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error)).collect()
}

fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_ranges() {
        assert_eq!(range_len("bytes 10-19/100"), Some(10));
        assert_eq!(range_len("bytes 10-10/100"), Some(1));
        for text in ["bytes 10-9/100", "bytes */100", "items 0-9/10", "bytes 0-9"] {
            assert_eq!(range_len(text), None, "{text}");
        }
    }
}
