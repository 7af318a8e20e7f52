//! Reading the configuration again while the host serves: what it lists then comes into force as one generation, or nothing
//! changes.

use jackfield_policy::{Applied, Trust};
use jackfield_server::{Host, Swaps};

use super::changes::{Changes, Reason, Stamps, local_files};
use super::set::ServedSet;
use crate::args::ServeArgs;
use crate::config::{ConfigFile, Settings};
use crate::dirs::Dirs;
use crate::distribution::Resolver;

/// Reads the configuration again.
pub(super) struct Reloader {
    args: ServeArgs,
    dirs: Dirs,
    /// The file as it was at the start: what differs from it and is no policy waits for a restart.
    started: Option<ConfigFile>,
    set: ServedSet,
    swaps: Swaps,
    trust: Trust,
}

impl Reloader {
    pub(super) fn new(
        args: &ServeArgs,
        dirs: &Dirs,
        settings: &Settings,
        set: ServedSet,
        host: &Host,
    ) -> Reloader {
        Reloader {
            args: args.clone(),
            dirs: dirs.clone(),
            started: settings.file.clone(),
            set,
            swaps: host.swaps.clone(),
            trust: host.config.trust.clone(),
        }
    }

    /// Goes on until the process ends.
    pub(super) fn run(mut self, mut changes: Changes, mut stamps: Stamps) {
        loop {
            changes.watch(&stamps);
            // What changed before the watch began is no news to it.
            let reason = if stamps.changed() { Some(Reason::Files) } else { changes.next() };
            match reason {
                None => return,
                Some(Reason::Files) if !stamps.changed() => {}
                Some(reason) => self.reload(reason, &mut stamps),
            }
        }
    }

    fn reload(&mut self, reason: Reason, stamps: &mut Stamps) {
        tracing::info!(?reason, "the configuration is read again");
        let outcome = match self.attempt(stamps) {
            Ok(applied) if applied.changed => "applied",
            Ok(_) => {
                tracing::info!("nothing that is listed has changed");
                "unchanged"
            }
            Err(error) => {
                tracing::error!(error, "the reload was refused; nothing has changed");
                "refused"
            }
        };
        self.swaps.count("reload", outcome);
    }

    /// The stamps are from before the files were read, so that no later change is missed; where the configuration itself
    /// cannot be read, those of the files that it named before.
    fn attempt(&mut self, stamps: &mut Stamps) -> Result<Applied, String> {
        *stamps = stamps.clone().renewed();
        let file = Stamps::of_file(self.args.config.as_deref());
        let settings = Settings::read(&self.args, &self.dirs).map_err(|error| error.to_string())?;
        *stamps = file.with(local_files(&settings));
        let resolved = Resolver::new(&settings).resolve().map_err(|problem| problem.to_string())?;
        let applied = self.set.apply(&resolved)?;
        self.trust.set(settings.keys.clone());
        if let (Some(before), Some(now)) = (&self.started, &settings.file) {
            let waiting = now.differences(before);
            if !waiting.is_empty() {
                tracing::warn!(
                    fields = waiting.join(", "),
                    "changed in the file, and in force after a restart"
                );
            }
        }
        Ok(applied)
    }
}
