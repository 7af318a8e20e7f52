//! A connection on which every answer comes in time or not at all.
//!
//! The client's own connection has a limit for each read, which a server that sends a little now and then never exceeds, and
//! waits for each command of several on its own. Here one limit is for all of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use redis::{Cmd, Parser, RedisResult, Value};

use super::server::RemoteServer;

/// Bytes that answers without payload take at most.
pub(super) const SHORT: usize = 64 << 10;

/// A connection to a server; of no more use after an error.
pub(super) struct Connection {
    stream: TcpStream,
    parser: Parser,
}

/// Commands that are sent together, and what their answers may cost.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) commands: &'a [Cmd],
    /// Bytes that the answers may take, all together.
    pub(super) most: usize,
    pub(super) until: Instant,
}

impl Connection {
    pub(super) fn open(
        server: &RemoteServer,
        address: SocketAddr,
        until: Instant,
    ) -> RedisResult<Connection> {
        let stream = TcpStream::connect_timeout(&address, left(until)?)?;
        stream.set_nodelay(true)?;
        let mut connection = Connection { stream, parser: Parser::new() };
        let greeting = Request { commands: &server.greeting(), most: SHORT, until };
        for answer in connection.ask(greeting)? {
            answer.extract_error()?;
        }
        Ok(connection)
    }

    /// The answers, in the order of the commands. One may be an error of the server's.
    pub(super) fn ask(&mut self, request: Request<'_>) -> RedisResult<Vec<Value>> {
        let mut bytes = Vec::new();
        request.commands.iter().for_each(|command| command.write_packed_command(&mut bytes));
        let mut stream = Bounded { stream: &self.stream, until: request.until, most: request.most };
        stream.write_all(&bytes)?;
        request.commands.iter().map(|_| self.parser.parse_value(&mut stream)).collect()
    }
}

/// A stream up to a time and a number of bytes to read.
struct Bounded<'a> {
    stream: &'a TcpStream,
    until: Instant,
    most: usize,
}

impl Read for Bounded<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.until)?))?;
        let read = self.stream.read(to)?;
        self.most = self.most.checked_sub(read).ok_or_else(|| io::Error::other("more than was asked for"))?;
        Ok(read)
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.until)?))?;
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
