//! A server and two hosts in network namespaces of their own, and links between them that can be cut: what is sent over them then
//! vanishes, and nobody is told.

use std::process::{Command, Output};

/// The server's namespace has a link to this one, and one to that of the far host. All of it is gone when this is dropped.
pub(crate) struct Net {
    server: Namespace,
    far: Namespace,
}

struct Namespace(String);

/// The two links of the server.
#[derive(Clone, Copy)]
pub(crate) enum Link {
    /// To the namespace of the test.
    Near,
    /// To that of the far host.
    Far,
}

impl Net {
    /// None, and said aloud, where this user may make none, unless `JACKFIELD_REQUIRE_NETNS=1`.
    pub(crate) fn make() -> Option<Net> {
        let made = Net::try_make();
        if let Err(why) = &made {
            let required = std::env::var("JACKFIELD_REQUIRE_NETNS").is_ok_and(|value| value == "1");
            assert!(!required, "{why}");
            eprintln!("SKIPPED: no network namespaces are to be had here, nothing was tested: {why}");
        }
        made.ok()
    }

    fn try_make() -> Result<Net, String> {
        let net = Net { server: Namespace::make("s")?, far: Namespace::make("f")? };
        let server = &net.server.0;
        for (link, host) in [(Link::Near, None), (Link::Far, Some(&net.far.0))] {
            let at_host = |words: &[&str]| {
                let within: Vec<&str> = host.iter().flat_map(|host| ["-n", host.as_str()]).collect();
                ip(&[&within, words].concat())
            };
            let (ours, theirs) = (format!("{}h", link.interface()), link.interface());
            at_host(&["link", "add", &ours, "type", "veth", "peer", "name", &theirs, "netns", server])?;
            at_host(&["address", "add", &format!("{}/30", link.address(1)), "dev", &ours])?;
            at_host(&["link", "set", &ours, "up"])?;
            ip(&["-n", server, "address", "add", &format!("{}/30", link.address(2)), "dev", &theirs])?;
            ip(&["-n", server, "link", "set", &theirs, "up"])?;
        }
        Ok(net)
    }

    /// What a command begins with that runs where the server is.
    pub(crate) fn at_the_server(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.server.0]
    }

    /// The same, where the far host is.
    pub(crate) fn far_away(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.far.0]
    }

    /// Nothing more goes either way. At the server's end: a host whose own end were down would be told that there is no way.
    pub(crate) fn cut(&self, link: Link) {
        self.set(link, "down");
    }

    /// It is as before.
    pub(crate) fn mend(&self, link: Link) {
        self.set(link, "up");
    }

    fn set(&self, link: Link, state: &str) {
        ip(&["-n", &self.server.0, "link", "set", &link.interface(), state]).expect("it is there");
    }
}

impl Link {
    /// Where the server is over this link.
    pub(crate) fn url(self) -> String {
        format!("redis://{}:6379/0", self.address(2))
    }

    /// One of its two ends, in a network that no other process of these tests has.
    fn address(self, end: u32) -> String {
        let subnet = (std::process::id() * 2 + self as u32) % (1 << 15);
        // 198.18.0.0/15 is for tests of networks.
        std::net::Ipv4Addr::from_bits((198 << 24 | 18 << 16) + subnet * 4 + end).to_string()
    }

    /// The server's end.
    fn interface(self) -> String {
        format!("jf{}{}", std::process::id(), if matches!(self, Link::Near) { 'n' } else { 'f' })
    }
}

impl Namespace {
    fn make(kind: &str) -> Result<Namespace, String> {
        let name = format!("jackfield-{}-{kind}", std::process::id());
        ip(&["netns", "add", &name])?;
        Ok(Namespace(name))
    }
}

impl Drop for Namespace {
    /// Takes its links with it, once nobody is in it any more.
    fn drop(&mut self) {
        let _ = ip(&["netns", "delete", &self.0]);
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    let Output { status, stderr, .. } =
        Command::new("ip").args(args).output().map_err(|error| format!("ip: {error}"))?;
    let said = || format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&stderr).trim());
    if status.success() { Ok(()) } else { Err(said()) }
}
