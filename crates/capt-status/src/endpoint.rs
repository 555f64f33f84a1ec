//! The endpoint of an API server as host and port.
//!
//! Terraform modules output URLs (`https://ABC.gr7.eu-west-1.eks.amazonaws.com`), Cluster API wants
//! a host and a port. This is the only parser; whoever needs an endpoint comes here.

use alloc::string::{String, ToString};
use core::{fmt, net::Ipv6Addr, str::FromStr};

/// Port of an API server whose endpoint names none.
pub const DEFAULT_PORT: u16 = 443;

/// Longest host that Cluster API accepts, in bytes.
const MAX_HOST: usize = 512;

/// Host and port; both valid by construction. An IPv6 host is kept without brackets.
///
/// ```
/// use capt_status::Endpoint;
///
/// let endpoint: Endpoint = "https://ABC.gr7.eu-west-1.eks.amazonaws.com".parse()?;
/// assert_eq!(endpoint.to_string(), "ABC.gr7.eu-west-1.eks.amazonaws.com:443");
/// assert_eq!("[2001:db8::1]:6443".parse::<Endpoint>()?.host(), "2001:db8::1");
/// assert!("https://user@host".parse::<Endpoint>().is_err());
/// # Ok::<(), capt_status::endpoint::EndpointError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    host: String,
    port: u16,
}

/// Why a text is not an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Nothing but white space.
    #[error("the endpoint is empty")]
    Empty,
    /// No host, or one with characters that no host has.
    #[error("the endpoint has no valid host: write it as https://host or host:port")]
    Host,
    /// A port outside 1 to 65535.
    #[error("the port of the endpoint is not a number from 1 to 65535")]
    Port,
    /// User name or password in the URL.
    #[error("the endpoint carries user information; remove what stands before the @")]
    UserInfo,
    /// A scheme other than http and https.
    #[error("the endpoint has a scheme other than https")]
    Scheme,
}

impl Endpoint {
    /// An endpoint of a host name or address (IPv6 without brackets) and a port.
    pub fn new(host: &str, port: u16) -> Result<Self, EndpointError> {
        if port == 0 {
            return Err(EndpointError::Port);
        }
        let is_name = !host.is_empty()
            && host.len() <= MAX_HOST
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
            && host.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !is_name && host.parse::<Ipv6Addr>().is_err() {
            return Err(EndpointError::Host);
        }
        Ok(Self { host: host.to_string(), port })
    }

    /// Host name or address, IPv6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port, never 0.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// Reads `host`, `host:port`, `[v6]:port`, or an http(s) URL of these; a path is ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(EndpointError::Scheme),
            None => text,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(EndpointError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        Self::new(host, port)
    }
}

/// Host and port of `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
fn split_port(authority: &str) -> Result<(&str, u16), EndpointError> {
    if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or(EndpointError::Host)?;
        if host.parse::<Ipv6Addr>().is_err() {
            return Err(EndpointError::Host);
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, parse_port(port)?)),
            None if rest.is_empty() => Ok((host, DEFAULT_PORT)),
            None => Err(EndpointError::Host),
        };
    }
    if authority.parse::<Ipv6Addr>().is_ok() {
        return Ok((authority, DEFAULT_PORT));
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => Ok((host, parse_port(port)?)),
        None => Ok((authority, DEFAULT_PORT)),
    }
}

fn parse_port(text: &str) -> Result<u16, EndpointError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(EndpointError::Port);
    }
    text.parse().map_err(|_| EndpointError::Port)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_terraform_outputs() {
        for (text, expected) in [
            ("https://ABC.gr7.eu-west-1.eks.amazonaws.com", "ABC.gr7.eu-west-1.eks.amazonaws.com:443"),
            ("HTTPS://host", "host:443"),
            ("  https://host:6443/path?x#y \n", "host:6443"),
            ("host:6443", "host:6443"),
            ("10.0.0.1", "10.0.0.1:443"),
            ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443"),
            ("[2001:db8::1]", "[2001:db8::1]:443"),
            ("2001:db8::1", "[2001:db8::1]:443"),
        ] {
            assert_eq!(
                text.parse::<Endpoint>().map(|endpoint| endpoint.to_string()).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_endpoint() {
        for (text, expected) in [
            ("", EndpointError::Empty),
            (" \n", EndpointError::Empty),
            ("https://", EndpointError::Host),
            ("{\"host\":\"a\"}", EndpointError::Port),
            ("null null", EndpointError::Host),
            ("https://user:pass@host", EndpointError::UserInfo),
            ("ftp://host", EndpointError::Scheme),
            ("host:0", EndpointError::Port),
            ("host:65536", EndpointError::Port),
            ("host:", EndpointError::Port),
            ("host:+1", EndpointError::Port),
            ("[::1", EndpointError::Host),
            ("[host]:1", EndpointError::Host),
            ("[::1]x", EndpointError::Host),
            ("-host", EndpointError::Host),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(expected), "{text}");
        }
        assert_eq!("x".repeat(64 * 1024).parse::<Endpoint>(), Err(EndpointError::Host));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_printed_parses_to_the_same(text in ".{0,80}") {
            if let Ok(endpoint) = text.parse::<Endpoint>() {
                prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
            }
        }

        #[test]
        fn parse_undoes_render(host in "[a-z0-9][a-z0-9.-]{0,40}", port in 1u16..) {
            let endpoint = Endpoint::new(&host, port).unwrap();
            prop_assert_eq!((endpoint.host(), endpoint.port()), (host.as_str(), port));
            prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
        }
    }
}
