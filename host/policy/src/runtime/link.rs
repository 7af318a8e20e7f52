//! What a component's imports are linked to.

use wasmtime::{
    Engine, Result,
    component::{HasSelf, Linker},
};

use super::{
    contract::full_name,
    state::{CallState, Denied},
};
use crate::{
    Fault, Grant, Manifest,
    bindings::shared::jackfield::policy::{embeddings, log, metrics, saliency, tokens},
};

/// A linker with everything a policy may import. What is granted is served; the rest is there as well, since most
/// toolchains keep every import of a world, and faults when it is called, naming the grant.
pub(super) fn linker(engine: &Engine, manifest: &Manifest) -> Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    linker.instance(&full_name("types"))?;
    for grant in Grant::ALL {
        if manifest.grants(grant) {
            serve(&mut linker, grant)?;
        } else {
            deny(&mut linker, grant)?;
        }
    }
    Ok(linker)
}

fn serve(linker: &mut Linker<CallState>, grant: Grant) -> Result<()> {
    type Own = HasSelf<CallState>;
    match grant {
        Grant::Log => log::add_to_linker::<_, Own>(linker, |state| state),
        Grant::Metrics => metrics::add_to_linker::<_, Own>(linker, |state| state),
        Grant::Tokens => tokens::add_to_linker::<_, Own>(linker, |state| state),
        Grant::Saliency => saliency::add_to_linker::<_, Own>(linker, |state| state),
        Grant::Embeddings => embeddings::add_to_linker::<_, Own>(linker, |state| state),
    }
}

fn deny(linker: &mut Linker<CallState>, grant: Grant) -> Result<()> {
    let import = grant.name();
    let mut instance = linker.instance(&full_name(import))?;
    for function in functions(grant) {
        instance.func_new(function, move |_, _, _, _| Err(Denied(Fault::NotGranted { import }).into()))?;
    }
    Ok(())
}

/// The functions of an import.
fn functions(grant: Grant) -> &'static [&'static str] {
    match grant {
        Grant::Log => &["write"],
        Grant::Metrics => &["add"],
        Grant::Tokens => &["count", "boundaries"],
        Grant::Saliency => &["score"],
        Grant::Embeddings => &["embed"],
    }
}
