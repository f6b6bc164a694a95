//! The store of an address, with the credentials that the store's own tools use.
//!
//! S3 takes `AWS_*` variables, then the profile of `~/.aws`; Google Cloud `GOOGLE_*` variables, then the default
//! credentials of gcloud; Azure `AZURE_*` variables. The metadata service of a cloud is asked only on a machine of
//! that cloud. Without credentials, requests are not signed, as for public data.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ListResult, ObjectStore, RetryConfig};
use tokio::time::timeout;

use super::super::open::OpenError;
use super::address::{Address, Scheme};
use super::fetch::fault;
use super::network::Network;
use super::wire::{SharedNote, Wire};
use super::{FolderEntry, RemoteError};
use crate::os::machine_vendor;

/// The default time that a server may send nothing; `TSLICE_REMOTE_TIMEOUT` changes it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of attempts at a request, if a failure may be temporary: connections, timeouts, responses that break off,
/// statuses 408, 429 and 5xx.
pub(super) const ATTEMPTS: u32 = 7;

/// The time that a server may send nothing.
pub(super) fn patience() -> Result<Duration, RemoteError> {
    let Some(text) = env::var_os("TSLICE_REMOTE_TIMEOUT") else { return Ok(PATIENCE) };
    let seconds = text.to_str().and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds| (1..=3600).contains(seconds)).ok_or_else(|| {
        let message = "TSLICE_REMOTE_TIMEOUT is a number of seconds, from 1 to 3600";
        RemoteError::Configuration(message.to_owned())
    })?;
    Ok(Duration::from_secs(seconds))
}

fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { max_backoff: Duration::from_secs(10), ..BackoffConfig::default() };
    RetryConfig {
        backoff,
        max_retries: ATTEMPTS as usize - 1,
        retry_timeout: Duration::from_secs(600),
    }
}

#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) path: Path,
    /// The client of a URL, which can also request the whole file.
    pub(super) wire: Option<Wire>,
    /// The time that a server may send nothing.
    pub(super) patience: Duration,
}

/// Find the store of an address. `region` is the bucket's region, where a server has told it.
pub(super) fn locate(
    address: &Address,
    wire: &Wire,
    region: Option<&str>,
) -> Result<Located, RemoteError> {
    let patience = patience()?;
    if address.scheme() == Scheme::Url {
        let wire = wire.to_url(address.secret_text())?;
        let store = HttpBuilder::new()
            .with_url("http://url")
            .with_retry(retries())
            .with_http_connector(wire.clone())
            .build()
            .map_err(configured)?;
        let path = Path::from("file");
        return Ok(Located { store: Arc::new(store), path, wire: Some(wire), patience });
    }
    let key = address.bucket_and_key().1;
    if key.is_empty() {
        return Err(RemoteError::Address("it takes a bucket and a key".into()));
    }
    let path = Path::parse(key).map_err(|error| RemoteError::Address(error.to_string()))?;
    Ok(Located { store: store(address, wire, region)?, path, wire: None, patience })
}

/// Find the bucket or container of an address that is not a URL.
pub(super) fn store(
    address: &Address,
    wire: &Wire,
    region: Option<&str>,
) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    if address.has_user() {
        let message = "credentials are not taken from an address, but from the environment";
        return Err(RemoteError::Address(message.into()));
    }
    let bucket = address.bucket_and_key().0;
    if bucket.is_empty() {
        return Err(RemoteError::Address("it takes a bucket and a key".into()));
    }
    Ok(match address.scheme() {
        Scheme::Gcs => Arc::new(
            google()
                .with_bucket_name(bucket)
                .with_retry(retries())
                .with_http_connector(wire.clone())
                .build()
                .map_err(configured)?,
        ),
        Scheme::Azure => Arc::new(
            azure()
                .with_container_name(bucket)
                .with_retry(retries())
                .with_http_connector(wire.clone())
                .build()
                .map_err(configured)?,
        ),
        Scheme::S3 | Scheme::Url => {
            let mut s3 = amazon().with_bucket_name(bucket);
            if let Some(region) = region {
                s3 = s3.with_region(region);
            }
            let s3 = s3.with_retry(retries()).with_http_connector(wire.clone());
            Arc::new(s3.build().map_err(configured)?)
        }
    })
}

fn configured(error: object_store::Error) -> RemoteError {
    match error {
        // the error holds the name of a setting, never a value
        object_store::Error::Generic { source, .. } => {
            RemoteError::Configuration(source.to_string())
        }
        _ => RemoteError::Configuration("the settings of the store are not understood".into()),
    }
}

/// The settings of S3: from the environment, then from the profile.
fn amazon() -> AmazonS3Builder {
    use AmazonS3ConfigKey as Key;
    let mut s3 = AmazonS3Builder::from_env();
    let has = |s3: &AmazonS3Builder, key: &Key| s3.get_config_value(key).is_some();
    let profile = Profile::read();
    if !has(&s3, &Key::AccessKeyId)
        && let (Some(id), Some(secret)) =
            (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"))
    {
        s3 = s3.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = profile.get("aws_session_token") {
            s3 = s3.with_token(token);
        }
    }
    if let (false, Some(region)) = (has(&s3, &Key::Region), profile.get("region")) {
        s3 = s3.with_region(region);
    }
    if let (false, false, Some(endpoint)) =
        (has(&s3, &Key::Endpoint), has(&s3, &Key::S3Endpoint), profile.get("endpoint_url"))
    {
        s3 = s3.with_endpoint(endpoint);
    }
    let others = [
        Key::AccessKeyId,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
    ];
    let known = others.iter().any(|key| has(&s3, key));
    let disabled = env::var("AWS_EC2_METADATA_DISABLED").is_ok_and(|it| it == "true");
    let asked = env::var_os("AWS_METADATA_ENDPOINT").is_some() || is_machine_of("Amazon EC2");
    let signs = known || asked && !disabled;
    if signs { s3 } else { s3.with_skip_signature(true) }
}

fn google() -> GoogleCloudStorageBuilder {
    use GoogleConfigKey as Key;
    let gcs = GoogleCloudStorageBuilder::from_env();
    let keys = [
        Key::ServiceAccount,
        Key::ServiceAccountKey,
        Key::ApplicationCredentials,
        Key::BearerToken,
    ];
    let known = keys.iter().any(|key| gcs.get_config_value(key).is_some());
    let default = env::home_dir()
        .map(|home| home.join(".config/gcloud/application_default_credentials.json"))
        .is_some_and(|file| file.exists());
    let signs = known || default || is_machine_of("Google");
    if signs { gcs } else { gcs.with_skip_signature(true) }
}

fn azure() -> MicrosoftAzureBuilder {
    use AzureConfigKey as Key;
    let azure = MicrosoftAzureBuilder::from_env();
    let keys = [
        Key::AccessKey,
        Key::ClientId,
        Key::ClientSecret,
        Key::SasKey,
        Key::Token,
        Key::MsiEndpoint,
        Key::FederatedTokenFile,
    ];
    let switches = [Key::UseAzureCli, Key::UseEmulator];
    let is_on = |key: &Key| azure.get_config_value(key).is_some_and(|value| value == "true");
    let known = keys.iter().any(|key| azure.get_config_value(key).is_some());
    let signs = known || switches.iter().any(is_on) || is_machine_of("Microsoft");
    if signs { azure } else { azure.with_skip_signature(true) }
}

fn is_machine_of(vendor: &str) -> bool {
    machine_vendor().is_some_and(|text| text.trim().starts_with(vendor))
}

/// The values of a profile by the names of settings. The file of credentials takes precedence.
#[derive(Default)]
pub(super) struct Profile(HashMap<String, String>);

impl Profile {
    /// The profile that `AWS_PROFILE` names, or `default`; empty where there is none.
    pub(super) fn read() -> Profile {
        let name = env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
        let file = |variable: &str, name: &str| {
            let path = env::var_os(variable).map(PathBuf::from);
            let path = path.or_else(|| Some(env::home_dir()?.join(".aws").join(name)))?;
            fs::read_to_string(path).ok()
        };
        let mut profile = Profile::default();
        if let Some(text) = file("AWS_SHARED_CREDENTIALS_FILE", "credentials") {
            profile.add(&text, &name);
        }
        if let Some(text) = file("AWS_CONFIG_FILE", "config") {
            let section = if name == "default" { name } else { format!("profile {name}") };
            profile.add(&text, &section);
        }
        profile
    }

    pub(super) fn get(&self, key: &str) -> Option<&String> {
        self.0.get(key)
    }

    /// Add settings that are not known yet from a section of a text.
    fn add(&mut self, text: &str, section: &str) {
        let mut inside = false;
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(name) = trimmed.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                inside = name.split_whitespace().eq(section.split_whitespace());
                continue;
            }
            // indented lines belong to the setting above them
            let nested = line.starts_with([' ', '\t']);
            let Some((key, value)) = trimmed.split_once('=').filter(|_| inside && !nested) else {
                continue;
            };
            let value = value.trim();
            if !value.is_empty() {
                self.0.entry(key.trim().to_owned()).or_insert_with(|| value.to_owned());
            }
        }
    }
}

/// The files and folders in a folder, each kind in the order of names: one request for each thousand.
pub fn list(address: &Address) -> Result<Vec<FolderEntry>, OpenError> {
    let network = Network::get()?;
    let patience = patience()?;
    // each response has at most a thousand names
    let longest = patience * ATTEMPTS * 4;
    let note = SharedNote::default();
    let store = store(address, &network.wire.with_note(&note), None)?;
    let folder = Path::parse(address.bucket_and_key().1.trim_end_matches('/'));
    let folder = folder.map_err(|error| RemoteError::Address(error.to_string()))?;
    let listing = network.start(async move {
        let listing = timeout(longest, store.list_with_delimiter(Some(&folder))).await;
        let listing = listing.map_err(|_| RemoteError::Timeout(longest))?;
        listing.map_err(|error| fault(&error, &note, false, patience))
    });
    let ListResult { common_prefixes, objects, .. } = listing.wait()?;
    let name = |path: &Path| path.filename().unwrap_or_default().to_owned();
    let folders =
        common_prefixes.iter().map(|path| FolderEntry { name: name(path) + "/", bytes: None });
    let files = objects
        .iter()
        .map(|file| FolderEntry { name: name(&file.location), bytes: Some(file.size) });
    let entries: Vec<FolderEntry> = folders.chain(files).collect();
    // stores know no empty folders
    if entries.is_empty() { Err(RemoteError::NotFound.into()) } else { Ok(entries) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_the_profile_is_read() {
        let text = "# keys\n[default]\naws_access_key_id = A\n\n[ other ]\nregion=eu-1\n\
                    aws_access_key_id=B\ns3 =\n  endpoint_url = http://no\naws_session_token = \n";
        let mut profile = Profile::default();
        profile.add(text, "other");
        profile.add("[profile other]\nregion = us-2\nendpoint_url = http://e\n", "profile other");
        let expected =
            [("aws_access_key_id", "B"), ("region", "eu-1"), ("endpoint_url", "http://e")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(profile.0, HashMap::from(expected));
    }
}
