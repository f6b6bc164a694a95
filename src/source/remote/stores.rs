//! From an address to the store that holds the file, with the credentials that its tools use.
//!
//! S3 takes `AWS_*` variables, then the profile of `~/.aws`; Google Cloud `GOOGLE_*` variables, then
//! the default credentials of gcloud; Azure `AZURE_*` variables. The metadata service of a cloud is
//! asked on a machine of that cloud only. Without credentials requests are not signed, which is how
//! public data are read.

use std::env;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};

use super::address::{Address, Scheme};
use super::error::RemoteError;
use super::profile::Profile;
use super::wire::Wire;
use crate::os::machine_vendor;

/// A store, and where in it the file is.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) path: Path,
    /// The client of a URL, which can also ask for all of it.
    pub(super) wire: Option<Wire>,
}

/// Find the store of an address. `region` is that of the bucket, where a server has told it.
pub(super) fn locate(
    address: &Address,
    wire: &Wire,
    region: Option<&str>,
) -> Result<Located, RemoteError> {
    if address.scheme() == Scheme::Url {
        let wire = wire.to_url(address.secret_text())?;
        let store = HttpBuilder::new()
            .with_url("http://url")
            .with_retry(retry())
            .with_http_connector(wire.clone())
            .build()
            .map_err(configured)?;
        return Ok(Located { store: Arc::new(store), path: Path::from("file"), wire: Some(wire) });
    }
    let key = address.bucket_and_key().1;
    if key.is_empty() {
        return Err(RemoteError::Address("it takes a bucket and a key".into()));
    }
    let path = Path::parse(key).map_err(|error| RemoteError::Address(error.to_string()))?;
    Ok(Located { store: store(address, wire, region)?, path, wire: None })
}

/// The bucket or container of an address that is no URL.
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
                .with_retry(retry())
                .with_http_connector(wire.clone())
                .build()
                .map_err(configured)?,
        ),
        Scheme::Azure => Arc::new(
            azure()
                .with_container_name(bucket)
                .with_retry(retry())
                .with_http_connector(wire.clone())
                .build()
                .map_err(configured)?,
        ),
        Scheme::S3 | Scheme::Url => {
            let mut s3 = amazon().with_bucket_name(bucket);
            if let Some(region) = region {
                s3 = s3.with_region(region);
            }
            let s3 = s3.with_retry(retry()).with_http_connector(wire.clone());
            Arc::new(s3.build().map_err(configured)?)
        }
    })
}

fn configured(error: object_store::Error) -> RemoteError {
    match error {
        // what it holds is a name of a setting, never a value
        object_store::Error::Generic { source, .. } => {
            RemoteError::Configuration(source.to_string())
        }
        _ => RemoteError::Configuration("the settings of the store are not understood".into()),
    }
}

/// Errors are handled where answers are read, their bodies included.
fn retry() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// S3 with what the environment says, then the profile.
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
    match known || asked && !disabled {
        true => s3,
        false => s3.with_skip_signature(true),
    }
}

/// Google Cloud Storage with what the environment says.
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
    match known || default || is_machine_of("Google") {
        true => gcs,
        false => gcs.with_skip_signature(true),
    }
}

/// Azure's blob storage with what the environment says.
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
    match known || switches.iter().any(is_on) || is_machine_of("Microsoft") {
        true => azure,
        false => azure.with_skip_signature(true),
    }
}

/// Whether this machine is one of that vendor's, by its firmware.
fn is_machine_of(vendor: &str) -> bool {
    machine_vendor().is_some_and(|text| text.trim().starts_with(vendor))
}
