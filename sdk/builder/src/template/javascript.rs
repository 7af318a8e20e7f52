//! New policies in JavaScript.

use super::{NewFile, Place, PolicyKind};
use crate::javascript::SDK;
use crate::sdk::VENDORED;

/// What a README says of the code.
pub(super) const CODE: &str = "`app.js`: the code, or `app.ts`; other modules may lie beside it, and packages of npm in `node_modules/`.\n\
     - `tsconfig.json`: for editors, so that they know the types of the SDK.";

/// The module, and what tells editors of the SDK's types.
pub(super) fn files(kind: PolicyKind, name: &str, place: &Place) -> Vec<NewFile> {
    let source = match kind {
        PolicyKind::SlotExtractor => include_str!("../../../javascript/template/slot-extractor/app.js"),
        PolicyKind::Router => include_str!("../../../javascript/template/router/app.js"),
        PolicyKind::Compressor => include_str!("../../../javascript/template/compressor/app.js"),
        PolicyKind::OutputFilter => include_str!("../../../javascript/template/output-filter/app.js"),
    };
    let sdk = match &place.checkout {
        Some(checkout) => format!("{checkout}sdk/javascript"),
        None => format!("./{VENDORED}/javascript"),
    };
    let editor = include_str!("../../../javascript/template/tsconfig.json.template").replace("{{sdk}}", &sdk);
    let mut files =
        vec![("app.js".to_owned(), source.replace("{{name}}", name)), ("tsconfig.json".to_owned(), editor)];
    files.extend(place.vendor(&SDK));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_are_told_where_the_sdk_lies() {
        for (checkout, expected) in [
            (None, "./vendor/jackfield/javascript/src/index"),
            (Some("../../".to_owned()), "../../sdk/javascript/src/index"),
        ] {
            let place = Place { checkout, in_plugins: false };
            let files = files(PolicyKind::Router, "mine", &place);
            let (_, text) = files.iter().find(|(file, _)| file == "tsconfig.json").expect("written");
            let read: serde_json::Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(read["compilerOptions"]["paths"]["jackfield"][0], expected);
        }
    }
}
