//! What a component's imports are linked to.

use wasmtime::{
    Result, StoreContextMut,
    component::{Component, Linker, LinkerInstance},
};

use super::{
    contract::of_contract,
    state::{CallState, Denied},
};
use crate::{
    Fault, Grant, Manifest,
    bindings::shared::jackfield::policy::{embeddings, log, metrics, saliency, tokens},
};

/// A linker with everything that this component imports, by the names it was built with. What is granted is served; the rest
/// is there as well, since most toolchains keep every import of a world, and faults when it is called, naming the grant.
pub(super) fn linker(component: &Component, manifest: &Manifest) -> Result<Linker<CallState>> {
    let engine = component.engine();
    let mut linker = Linker::new(engine);
    for (name, _) in component.component_type().imports(engine) {
        let mut instance = linker.instance(name)?;
        let interface = of_contract(name).map(|(interface, _)| interface);
        // `contract::check` has refused everything else.
        let Some(grant) = Grant::ALL.into_iter().find(|grant| Some(grant.name()) == interface) else {
            continue;
        };
        match manifest.grants(grant) {
            true => serve(&mut instance, grant)?,
            false => deny(&mut instance, grant)?,
        }
    }
    Ok(linker)
}

type Context<'a> = StoreContextMut<'a, CallState>;

fn serve(to: &mut LinkerInstance<'_, CallState>, grant: Grant) -> Result<()> {
    match grant {
        Grant::Log => {
            to.func_wrap("write", |mut context: Context<'_>, (level, text): (log::Level, String)| {
                log::Host::write(context.data_mut(), level, text)
            })
        }
        Grant::Metrics => {
            to.func_wrap("add", |mut context: Context<'_>, (counter, amount): (String, f64)| {
                metrics::Host::add(context.data_mut(), counter, amount)
            })
        }
        Grant::Tokens => {
            to.func_wrap("count", |mut context: Context<'_>, (text,): (String,)| {
                Ok((tokens::Host::count(context.data_mut(), text)?,))
            })?;
            to.func_wrap("boundaries", |mut context: Context<'_>, (text,): (String,)| {
                Ok((tokens::Host::boundaries(context.data_mut(), text)?,))
            })?;
            to.func_wrap("encode", |mut context: Context<'_>, (text,): (String,)| {
                Ok((tokens::Host::encode(context.data_mut(), text)?,))
            })
        }
        Grant::Saliency => to.func_wrap("score", |mut context: Context<'_>, (text,): (String,)| {
            Ok((saliency::Host::score(context.data_mut(), text)?,))
        }),
        Grant::Embeddings => to.func_wrap("embed", |mut context: Context<'_>, (text,): (String,)| {
            Ok((embeddings::Host::embed(context.data_mut(), text)?,))
        }),
    }
}

fn deny(to: &mut LinkerInstance<'_, CallState>, grant: Grant) -> Result<()> {
    let import = grant.name();
    for function in functions(grant) {
        to.func_new(function, move |_, _, _, _| Err(Denied(Fault::NotGranted { import }).into()))?;
    }
    Ok(())
}

/// The functions of an import.
fn functions(grant: Grant) -> &'static [&'static str] {
    match grant {
        Grant::Log => &["write"],
        Grant::Metrics => &["add"],
        Grant::Tokens => &["count", "boundaries", "encode"],
        Grant::Saliency => &["score"],
        Grant::Embeddings => &["embed"],
    }
}
