//! A Redis server of a test's own, and stores in it.

use std::time::Duration;

use jackfield_dialog::{RedisConfig, RedisStore};
use jackfield_redis::RedisServer;

pub(crate) struct Server(RedisServer);

impl Server {
    /// None when the program is missing, as [`RedisServer::start`].
    pub(crate) fn start() -> Option<Server> {
        RedisServer::start().map(Server)
    }

    /// Again on the same port and folder.
    pub(crate) fn run(&mut self) {
        self.0.run();
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }

    /// `STOP`: it neither answers nor closes, as behind a broken network. `CONT`: it goes on.
    pub(crate) fn signal(&self, name: &str) {
        self.0.signal(name);
    }

    pub(crate) fn config(&self) -> RedisConfig {
        RedisConfig { url: self.0.url(), timeout: Duration::from_secs(5), ..RedisConfig::default() }
    }

    /// Connects once it is up.
    pub(crate) async fn connect(&self, config: RedisConfig) -> RedisStore {
        let mut last = None;
        for _ in 0..200 {
            match RedisStore::connect(config.clone()).await {
                Ok(store) => return store,
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{last:?}");
    }
}
