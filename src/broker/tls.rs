//! TLS to upstreams: rustls with the platform's roots and the caller's, HTTP/1.1 only. What is said inside is left to
//! `upstream`.

use crate::broker::host::Host;
use crate::error::{Error, ErrorCode, Result};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use std::sync::{Arc, OnceLock};
use tokio_rustls::TlsConnector;

/// Reads the platform's roots at first use: a broker that only tunnels never pays for them.
pub struct Tls {
    extra_roots: Vec<CertificateDer<'static>>,
    connector: OnceLock<Option<TlsConnector>>,
}

impl Tls {
    pub fn new(ca_pem: Option<&[u8]>) -> Result<Self> {
        let extra_roots = match ca_pem {
            None => Vec::new(),
            Some(pem) => parse_ca(pem)?,
        };
        Ok(Self {
            extra_roots,
            connector: OnceLock::new(),
        })
    }

    /// `None` when this machine has no roots and the caller gave none.
    pub fn connector(&self) -> Option<&TlsConnector> {
        self.connector.get_or_init(|| self.build()).as_ref()
    }

    fn build(&self) -> Option<TlsConnector> {
        let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            Verifier::new_with_extra_roots(self.extra_roots.iter().cloned(), provider.clone()).ok()?;
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()?;
        // `dangerous` is rustls' word for any verifier but its own; this one is the platform's.
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Some(TlsConnector::from(Arc::new(config)))
    }
}

fn parse_ca(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let invalid = |why: &str| {
        Error::new(
            ErrorCode::InvalidArgument,
            format!("ca: {why}; give one or more PEM certificates"),
        )
    };
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| invalid("not valid PEM"))?;
    if certificates.is_empty() {
        return Err(invalid("no certificate found"));
    }
    let mut store = rustls::RootCertStore::empty();
    for certificate in &certificates {
        store
            .add(certificate.clone())
            .map_err(|_| invalid("a certificate cannot be read"))?;
    }
    Ok(certificates)
}

pub fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Name(name) => ServerName::try_from(name.clone()).ok(),
        Host::Ip(ip) => Some(ServerName::IpAddress((*ip).into())),
    }
}
