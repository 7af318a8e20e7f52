//! `jackfield serve`: prebuilt policies, put in force as one set, and again when the configuration changes.

mod changes;
mod reload;
mod set;

use crate::args::ServeArgs;
use crate::config::Settings;
use crate::dirs::Dirs;
use crate::distribution::Resolver;
use crate::{Failure, host};

use reload::Reloader;
use set::ServedSet;

pub(crate) fn run(args: &ServeArgs, dirs: &Dirs) -> Result<(), Failure> {
    let changes = changes::Changes::start()?;
    let stamps = changes::Stamps::of_file(args.config.as_deref());
    let settings = Settings::read(args, dirs).map_err(Failure::usage)?;
    let stamps = stamps.with(changes::local_files(&settings));
    let resolved = Resolver::new(&settings).resolve().map_err(Failure::usage)?;
    let threads = host::threads()?;
    let host = host::assemble(&settings, dirs, true, &threads)?;
    let mut set = ServedSet::open(std::sync::Arc::clone(&host.registry), &settings.state);
    set.apply(&resolved).map_err(Failure::failed)?;
    let reloader = Reloader::new(args, dirs, &settings, set, &host);
    host::serve(host, &settings, threads, move |address| {
        tracing::info!(%address, "serving");
        reloader.run(changes, stamps);
    })
}
