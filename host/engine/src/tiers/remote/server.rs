//! Where the server is, as an operator writes it.

use std::fmt;
use std::str::FromStr;

use redis::{Cmd, ConnectionAddr, IntoConnectionInfo, cmd};

/// A Redis or Valkey server: `redis://[USER][:PASSWORD@]HOST[:PORT][/DATABASE]`.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteServer {
    pub(super) host: String,
    pub(super) port: u16,
    user: Option<String>,
    password: Option<String>,
    database: i64,
}

/// An address that is none of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; write it as redis://HOST:PORT/DATABASE, with USER:PASSWORD@ before the host where it wants them"
)]
pub struct InvalidServer(String);

impl FromStr for RemoteServer {
    type Err = InvalidServer;

    fn from_str(url: &str) -> Result<RemoteServer, InvalidServer> {
        let info = url.into_connection_info().map_err(|error| InvalidServer(error.to_string()))?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(InvalidServer("only servers on the network, without TLS, are supported".into()));
        };
        let settings = info.redis_settings();
        Ok(RemoteServer {
            host: host.clone(),
            port: *port,
            user: settings.username().map(str::to_owned),
            password: settings.password().map(str::to_owned),
            database: settings.db(),
        })
    }
}

impl RemoteServer {
    /// What a connection begins with.
    pub(super) fn greeting(&self) -> Vec<Cmd> {
        let mut greeting = Vec::new();
        if let Some(password) = &self.password {
            let mut auth = cmd("AUTH");
            self.user.iter().for_each(|user| {
                auth.arg(user);
            });
            auth.arg(password);
            greeting.push(auth);
        }
        if self.database != 0 {
            let mut select = cmd("SELECT");
            select.arg(self.database);
            greeting.push(select);
        }
        greeting
    }
}

/// Without the password.
impl fmt::Display for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.host, self.port, self.database)
    }
}

/// Without the password.
impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteServer({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> RemoteServer {
        url.parse().expect("a server")
    }

    #[test]
    fn an_address_is_taken_apart_and_its_password_is_not_shown() {
        let server = parsed("redis://me:hidden@cache.example:7000/3");
        assert_eq!(format!("{server} {server:?}"), "cache.example:7000/3 RemoteServer(cache.example:7000/3)");
        assert_eq!(server.greeting().len(), 2);
        assert_eq!(parsed("valkey://[::1]").to_string(), "::1:6379/0");
        assert!(parsed("redis://10.0.0.1").greeting().is_empty());
    }

    #[test]
    fn what_is_no_server_is_refused_without_its_password() {
        let wrong = [
            "",
            "10.0.0.1:6379",
            "http://:hidden@host",
            "redis://:hidden@",
            "redis://:hidden@host/x",
            "rediss://:hidden@host",
            "unix:///run/redis.sock",
        ];
        for url in wrong {
            let error = url.parse::<RemoteServer>().expect_err(url).to_string();
            assert!(error.contains("redis://HOST") && !error.contains("hidden"), "{url}: {error}");
        }
    }
}
