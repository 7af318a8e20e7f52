//! New policies in JavaScript.

use super::{NewFile, Place, PolicyKind};

/// What a README says of the code.
pub(super) const CODE: &str = "`app.js`: the code.";

/// The module.
pub(super) fn files(_kind: PolicyKind, _name: &str, _place: &Place) -> Vec<NewFile> {
    Vec::new()
}
