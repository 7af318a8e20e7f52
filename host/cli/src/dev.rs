//! `jackfield dev`: build from source, serve, and swap on save.

mod plugins;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Failure;
use crate::args::DevArgs;
use crate::config::Settings;
use crate::dirs::Dirs;
use crate::{host, policies};

use plugins::Plugins;

pub(crate) fn run(args: &DevArgs, dirs: &Dirs) -> Result<(), Failure> {
    let settings = Settings::read(&args.serve, dirs).map_err(Failure::usage)?;
    let folder = folder_of(&args.dir).map_err(Failure::usage)?;
    if !settings.references.is_empty() {
        let folder = folder.display();
        tracing::warn!("[[policy]] is read by `jackfield serve`; here, policies are what is in {folder}");
    }
    // What is in the sources is the truth here, so nothing is restored and nothing is kept.
    let threads = host::threads()?;
    let host = host::assemble(&settings, dirs, false, &threads)?;
    let edited = folder.display().to_string();
    let mut plugins = Plugins::new(folder, policies::builder(dirs), Arc::clone(&host.registry));
    plugins.start();
    host::serve(host, &settings, threads, move |address| {
        invite(address, &edited);
        plugins.watch();
    })
}

/// Where the policies of a project are: in its `plugins/`, or in the folder itself.
fn folder_of(project: &Path) -> Result<PathBuf, String> {
    let plugins = project.join("plugins");
    if plugins.is_dir() {
        return Ok(plugins);
    }
    if policies::policy_folders(project).is_empty() {
        let project = project.display();
        return Err(format!(
            "{project} has no plugins/ folder, and no folders of policies in it; name the folder that has: jackfield dev DIR"
        ));
    }
    Ok(project.to_owned())
}

/// Three things to try, ready to paste.
fn invite(address: std::net::SocketAddr, folder: &str) {
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
    eprintln!("Edit a file of a policy in {folder} and save: the next turn obeys it.\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_in_plugins_or_beside_one_another() {
        let project = tempfile::tempdir().expect("a folder");
        let refused = folder_of(project.path()).expect_err("nothing is there");
        assert!(refused.contains("jackfield dev DIR"), "{refused}");
        let policy = project.path().join("greeter");
        std::fs::create_dir(&policy).expect("made");
        assert!(folder_of(project.path()).is_err(), "a folder without a manifest is no policy");
        std::fs::write(policy.join("policy.toml"), "").expect("written");
        assert_eq!(folder_of(project.path()), Ok(project.path().to_owned()));
        let plugins = project.path().join("plugins");
        std::fs::create_dir(&plugins).expect("made");
        assert_eq!(folder_of(project.path()), Ok(plugins));
    }
}
