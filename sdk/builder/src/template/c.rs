//! New policies in C.

use super::{NewFile, Place, PolicyKind};
use crate::c::SDK;

/// What a README says of the code.
pub(super) const CODE: &str = "`policy.c`: the code; every other `.c` file beside it is compiled, too.";

/// The source.
pub(super) fn files(kind: PolicyKind, name: &str, place: &Place) -> Vec<NewFile> {
    let source = match kind {
        PolicyKind::SlotExtractor => include_str!("../../../c/template/slot-extractor/policy.c"),
        PolicyKind::Router => include_str!("../../../c/template/router/policy.c"),
        PolicyKind::Compressor => include_str!("../../../c/template/compressor/policy.c"),
        PolicyKind::OutputFilter => include_str!("../../../c/template/output-filter/policy.c"),
    };
    let mut files = vec![("policy.c".to_owned(), source.replace("{{name}}", name))];
    files.extend(place.vendor(&SDK));
    files
}
