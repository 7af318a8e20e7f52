//! A Redis server of a test's own.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use jackfield_dialog::{RedisConfig, RedisStore};
use tempfile::TempDir;

pub(crate) struct Server {
    port: u16,
    folder: TempDir,
    process: Option<Child>,
}

impl Server {
    /// On a free port, in a folder of its own, with an append-only file. None, and said aloud, when the program is missing, unless
    /// `JACKFIELD_REQUIRE_REDIS=1`.
    pub(crate) fn start() -> Option<Server> {
        let there = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        if there.is_err() {
            let required = std::env::var("JACKFIELD_REQUIRE_REDIS").is_ok_and(|value| value == "1");
            assert!(!required, "redis-server is not installed");
            eprintln!("SKIPPED: redis-server is not installed; nothing was tested");
            return None;
        }
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut server = Server { port, folder: tempfile::tempdir().expect("a folder"), process: None };
        server.run();
        Some(server)
    }

    /// Again on the same port and folder.
    pub(crate) fn run(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        command.arg("--port").arg(self.port.to_string()).arg("--dir").arg(self.folder.path());
        self.process = Some(command.stdout(Stdio::null()).spawn().expect("starts"));
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("still there");
            process.wait().expect("ended");
        }
    }

    /// `STOP`: it neither answers nor closes, as behind a broken network. `CONT`: it goes on.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.as_ref().expect("runs").id();
        let sent = Command::new("kill").arg(format!("-{name}")).arg(id.to_string()).status().expect("kill");
        assert!(sent.success());
    }

    pub(crate) fn config(&self) -> RedisConfig {
        RedisConfig {
            url: format!("redis://127.0.0.1:{}/0", self.port),
            timeout: Duration::from_secs(5),
            ..RedisConfig::default()
        }
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

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
