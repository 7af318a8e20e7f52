//! New policies in Python.

use super::{NewFile, Place, PolicyKind};
use crate::python::SDK;

/// What a README says of the code.
pub(super) const CODE: &str = "`app.py`: the code; other modules and packages may lie beside it.";

/// The module.
pub(super) fn files(kind: PolicyKind, name: &str, place: &Place) -> Vec<NewFile> {
    let source = match kind {
        PolicyKind::SlotExtractor => include_str!("../../../python/template/slot-extractor/app.py"),
        PolicyKind::Router => include_str!("../../../python/template/router/app.py"),
        PolicyKind::Compressor => include_str!("../../../python/template/compressor/app.py"),
        PolicyKind::OutputFilter => include_str!("../../../python/template/output-filter/app.py"),
    };
    let mut files = vec![("app.py".to_owned(), source.replace("{{name}}", name))];
    files.extend(place.vendor(&SDK));
    files
}
