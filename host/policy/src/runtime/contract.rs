//! Holds a component's imports and exports to the contract, before anything of it runs.

use wasmtime::{Engine, component::Component};

use crate::{Grant, Kind, Refusal};

/// The contract's package.
pub(crate) const PACKAGE: &str = "jackfield:policy";
/// The newest version that this host serves; it also serves the minor before.
pub(crate) const VERSION: (u32, u32, u32) = (0, 2, 0);

/// The full name of an interface of the contract, as this host serves it.
pub(crate) fn full_name(interface: &str) -> String {
    let (major, minor, patch) = VERSION;
    format!("{PACKAGE}/{interface}@{major}.{minor}.{patch}")
}

/// Check the names and versions of all imports and exports. Types are checked when the component is linked.
pub(crate) fn check(engine: &Engine, component: &Component, kind: Kind) -> Result<(), Refusal> {
    let ty = component.component_type();
    for (import, _) in ty.imports(engine) {
        check_import(import)?;
    }
    let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
    check_exports(&exports, kind)
}

pub(crate) fn check_import(import: &str) -> Result<(), Refusal> {
    let unknown = || Refusal::Import { import: import.to_owned() };
    let (interface, version) = of_contract(import).ok_or_else(unknown)?;
    check_version(interface, version, import)?;
    let known = interface == "types" || Grant::ALL.iter().any(|grant| grant.name() == interface);
    if known { Ok(()) } else { Err(unknown()) }
}

pub(crate) fn check_exports(exports: &[&str], kind: Kind) -> Result<(), Refusal> {
    let exported: Vec<&str> =
        exports.iter().filter_map(|name| of_contract(name)).map(|(interface, _)| interface).collect();
    for name in exports {
        if let Some((interface, version)) = of_contract(name) {
            check_version(interface, version, name)?;
        }
    }
    let found = Kind::ALL.into_iter().find(|kind| exported.contains(&kind.interface()));
    for interface in [kind.interface(), "lifecycle"] {
        if !exported.contains(&interface) {
            return Err(Refusal::WrongWorld {
                kind,
                wanted: full_name(interface),
                found: found.filter(|&found| found != kind),
            });
        }
    }
    Ok(())
}

/// Interface and version of a name of the contract's package, whatever the version.
pub(crate) fn of_contract(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    Some(rest.split_once('@').unwrap_or((rest, "")))
}

/// A host serves its own minor and the one before, whatever the patch, which changes words only.
fn check_version(interface: &str, version: &str, found: &str) -> Result<(), Refusal> {
    let refused = |newer| Refusal::Version { wanted: full_name(interface), found: found.to_owned(), newer };
    let (major, minor, patch) = parse_version(version).ok_or_else(|| refused(false))?;
    let (our_major, our_minor, _) = VERSION;
    if major == our_major && (minor == our_minor || minor + 1 == our_minor) {
        return Ok(());
    }
    Err(refused((major, minor, patch) > VERSION))
}

fn parse_version(version: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    let parsed = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_contract_may_be_imported() {
        let refused = |import: &str| check_import(import).expect_err(import);
        for import in
            ["jackfield:policy/log@0.2.0", "jackfield:policy/log@0.1.0", "jackfield:policy/types@0.2.7"]
        {
            assert_eq!(check_import(import), Ok(()));
        }
        for import in ["wasi:sockets/tcp@0.2.3", "jackfield:policy/sockets@0.2.0", "log"] {
            assert!(matches!(refused(import), Refusal::Import { import: found } if found == import));
        }
        let newer = refused("jackfield:policy/log@0.3.0").to_string();
        assert!(newer.contains("log@0.3.0") && newer.contains("log@0.2.0"), "{newer}");
        assert!(newer.contains("too new"), "{newer}");
        let older = refused("jackfield:policy/log@0.0.9").to_string();
        assert!(older.contains("too old"), "{older}");
        assert!(matches!(refused("jackfield:policy/log@1.0.0"), Refusal::Version { newer: true, .. }));
        assert!(matches!(refused("jackfield:policy/log"), Refusal::Version { newer: false, .. }));
    }

    #[test]
    fn the_exports_say_what_a_component_is() {
        let router = ["jackfield:policy/lifecycle@0.2.0", "jackfield:policy/routing@0.2.0"];
        assert_eq!(check_exports(&router, Kind::Router), Ok(()));
        let wrong = check_exports(&router, Kind::OutputFilter).expect_err("a router");
        assert_eq!(
            wrong.to_string(),
            "the component is not a output-filter: it does not export \
             `jackfield:policy/output-filtering@0.2.0`, but is a router"
        );
        assert!(matches!(
            check_exports(&router[1..], Kind::Router),
            Err(Refusal::WrongWorld { wanted, found: None, .. }) if wanted.contains("lifecycle")
        ));
        assert!(check_exports(&[], Kind::Router).is_err());
        let newer = ["jackfield:policy/lifecycle@0.2.0", "jackfield:policy/routing@0.3.0"];
        assert!(matches!(check_exports(&newer, Kind::Router), Err(Refusal::Version { newer: true, .. })));
    }
}
