//! `jackfield dev`: build from source, serve, and swap on save.

mod plugins;

use std::sync::Arc;

use crate::Failure;
use crate::args::DevArgs;
use crate::config::Settings;
use crate::dirs::Dirs;
use crate::{host, policies};

use plugins::Plugins;

pub(crate) fn run(args: &DevArgs, dirs: &Dirs) -> Result<(), Failure> {
    let settings = Settings::read(&args.serve, dirs).map_err(Failure::usage)?;
    let folder = args.dir.join("plugins");
    if !folder.is_dir() {
        return Err(Failure::usage(format!(
            "{} has no plugins/ folder; run this where the project is, or name its folder: jackfield dev DIR",
            args.dir.display()
        )));
    }
    if !settings.references.is_empty() {
        tracing::warn!("[[policy]] is read by `jackfield serve`; here, policies are what is in plugins/");
    }
    // What is in the sources is the truth here, so nothing is restored and nothing is kept.
    let threads = host::threads()?;
    let host = host::assemble(&settings, dirs, false, &threads)?;
    let mut plugins = Plugins::new(folder, policies::builder(dirs), Arc::clone(&host.registry));
    plugins.start();
    host::serve(host, &settings, threads, move |address| {
        invite(address);
        plugins.watch();
    })
}

/// Three things to try, ready to paste.
fn invite(address: std::net::SocketAddr) {
    let chat = |text: &str, rest: &str| {
        format!(
            "  curl -s http://{address}/v1/chat/completions -H 'content-type: application/json' \\\n    \
             -d '{{\"model\":\"default\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]{rest}}}'"
        )
    };
    eprintln!("\nServing on http://{address}. Try:\n");
    eprintln!("# a plain chat\n{}\n", chat("Name three rivers of Europe.", ",\"max_tokens\":60"));
    eprintln!(
        "# a turn that the slot machine answers without the model\n{}\n",
        chat("I want to cancel my order", ",\"session\":\"demo\"")
    );
    eprintln!(
        "# a secret that the model repeats and the filter masks\n{}\n",
        chat("Repeat exactly: my card is 4111 1111 1111 1111", ",\"max_tokens\":40,\"temperature\":0")
    );
    eprintln!("Edit a file under plugins/ and save: the next turn obeys it.\n");
}
