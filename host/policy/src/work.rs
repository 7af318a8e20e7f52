//! What each kind of policy exports beside `lifecycle`: found once, checked by its types, called in an instance.

use wasmtime::{
    Result, Store,
    component::{Component, Instance},
};

use crate::{
    Kind, Refusal,
    bindings::{
        compression::exports::jackfield::policy::compression as c,
        extraction::exports::jackfield::policy::slot_extraction as e,
        filtering::exports::jackfield::policy::output_filtering as f,
        routing::exports::jackfield::policy::routing as r, shared::jackfield::policy::types as t,
    },
    runtime::{CallState, Export},
};

/// Where the functions of a kind are.
pub(crate) enum Work {
    SlotExtractor(Export),
    Router(Export),
    Compressor(Export),
    OutputFilter { review: Export, interests: Export },
}

/// What a guest answers: what it was asked for, or an error in its words.
type Answer<T> = std::result::Result<T, String>;

type ExtractArguments<'a> = (&'a t::Turn, &'a [t::Message], &'a e::Dialog);
type RouteArguments<'a> = (&'a t::Turn, &'a r::Request, &'a [r::Target]);
type CompressArguments<'a> = (&'a t::Turn, &'a [c::Part], c::Budget);
type ReviewArguments<'a> = (&'a [f::Window<'a>],);

impl Work {
    /// That of a component of this kind.
    pub(crate) fn find(kind: Kind, component: &Component) -> std::result::Result<Work, Refusal> {
        let find = |function| Export::find(component, kind.interface(), function);
        Ok(match kind {
            Kind::SlotExtractor => Work::SlotExtractor(find("extract")?),
            Kind::Router => Work::Router(find("route")?),
            Kind::Compressor => Work::Compressor(find("compress")?),
            Kind::OutputFilter => {
                Work::OutputFilter { review: find("review")?, interests: find("interests")? }
            }
        })
    }

    /// Whether the functions have the contract's types.
    pub(crate) fn check(&self, store: &mut Store<CallState>, instance: &Instance) -> Result<()> {
        match self {
            Work::SlotExtractor(extract) => {
                extract.check::<ExtractArguments<'_>, Answer<e::Transition>>(store, instance)
            }
            Work::Router(route) => route.check::<RouteArguments<'_>, Answer<r::Decision>>(store, instance),
            Work::Compressor(compress) => {
                compress.check::<CompressArguments<'_>, Answer<Vec<t::Edit>>>(store, instance)
            }
            Work::OutputFilter { review, interests } => {
                review.check::<ReviewArguments<'_>, Answer<Vec<f::Verdict>>>(store, instance)?;
                interests.check::<(), f::Interest>(store, instance)
            }
        }
    }
}

pub(crate) fn extract(
    function: &Export,
    store: &mut Store<CallState>,
    instance: &Instance,
    arguments: ExtractArguments<'_>,
) -> Result<Answer<e::Transition>> {
    function.call(store, instance, arguments)
}

pub(crate) fn route(
    function: &Export,
    store: &mut Store<CallState>,
    instance: &Instance,
    arguments: RouteArguments<'_>,
) -> Result<Answer<r::Decision>> {
    function.call(store, instance, arguments)
}

pub(crate) fn compress(
    function: &Export,
    store: &mut Store<CallState>,
    instance: &Instance,
    arguments: CompressArguments<'_>,
) -> Result<Answer<Vec<t::Edit>>> {
    function.call(store, instance, arguments)
}

pub(crate) fn review(
    function: &Export,
    store: &mut Store<CallState>,
    instance: &Instance,
    windows: &[f::Window<'_>],
) -> Result<Answer<Vec<f::Verdict>>> {
    function.call(store, instance, (windows,))
}

pub(crate) fn interests(
    function: &Export,
    store: &mut Store<CallState>,
    instance: &Instance,
) -> Result<f::Interest> {
    function.call(store, instance, ())
}
