//! A component whose core modules export their own state.
//!
//! What is frozen is compiled twice: made readable, which exports that state, and frozen, which does not. The compiler knows more of
//! a global that no other module can reach, so nearly every function that touches the stack pointer came out differently and had to
//! be compiled again. Exported from the start, the state looks the same in both, and the second time the code is found in the
//! [engine's cache](super::engine).

use wasm_encoder::{
    Component, ComponentSectionId, ExportKind, ExportSection, Module, RawSection,
    reencode::{Reencode, RoundtripReencoder},
};
use wasmparser::{ImportSectionReader, Parser, Payload, TypeRef};
use wasmtime::{Result, bail, error::Context};

/// Globals and memories of a module. Compilers make a handful, dynamic linking hundreds; each costs a name several times over.
const MOST_OF_A_MODULE: usize = 10_000;

/// The component, with every mutable global and every memory of its core modules exported by the module.
pub(super) fn exposed(component: &[u8]) -> Result<Vec<u8>> {
    let mut out = Component::new();
    let mut payloads = Parser::new(0).parse_all(component);
    // How many components deep.
    let mut depth = 0usize;
    while let Some(payload) = payloads.next() {
        let payload = payload?;
        match &payload {
            Payload::ModuleSection { .. } if depth == 0 => {
                let module = module(component, &mut payloads)?.finish();
                out.section(&RawSection { id: ComponentSectionId::CoreModule as u8, data: &module });
                continue;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                if let Some(section) = raw(component, &payload)? {
                    out.section(&section);
                }
            }
            _ => {}
        }
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        }
    }
    Ok(out.finish())
}

/// The rest of a module of `component`.
fn module<'a>(
    component: &'a [u8],
    payloads: &mut impl Iterator<Item = wasmparser::Result<Payload<'a>>>,
) -> Result<Module> {
    let mut out = Module::new();
    let mut state = State::default();
    for payload in payloads {
        let payload = payload?;
        match &payload {
            Payload::End(_) => break,
            Payload::ImportSection(imports) => state.import(imports.clone())?,
            Payload::MemorySection(memories) => (0..memories.count()).try_for_each(|_| state.memory(true))?,
            Payload::GlobalSection(globals) => {
                globals.clone().into_iter().try_for_each(|global| state.global(global?.ty.mutable))?;
            }
            Payload::ExportSection(exports) => {
                let mut all = ExportSection::new();
                for export in exports.clone() {
                    RoundtripReencoder.parse_export(&mut all, export?)?;
                }
                for (kind, index) in &state.exposed {
                    all.export(&format!("jackfield:{kind:?}:{index}"), *kind, *index);
                }
                out.section(&all);
                continue;
            }
            _ => {}
        }
        if let Some(section) = raw(component, &payload)? {
            out.section(&section);
        }
    }
    Ok(out)
}

/// What a module has, in the order of its indices.
#[derive(Default)]
struct State {
    globals: u32,
    memories: u32,
    exposed: Vec<(ExportKind, u32)>,
}

impl State {
    fn import(&mut self, imports: ImportSectionReader<'_>) -> Result<()> {
        for import in imports.into_imports() {
            match import?.ty {
                TypeRef::Global(_) => self.global(false)?,
                TypeRef::Memory(_) => self.memory(false)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn global(&mut self, is_exposed: bool) -> Result<()> {
        self.globals += 1;
        self.add(ExportKind::Global, self.globals - 1, is_exposed)
    }

    fn memory(&mut self, is_exposed: bool) -> Result<()> {
        self.memories += 1;
        self.add(ExportKind::Memory, self.memories - 1, is_exposed)
    }

    fn add(&mut self, kind: ExportKind, index: u32, is_exposed: bool) -> Result<()> {
        if is_exposed {
            self.exposed.push((kind, index));
        }
        if self.exposed.len() > MOST_OF_A_MODULE {
            bail!("a module has more than {MOST_OF_A_MODULE} globals and memories");
        }
        Ok(())
    }
}

/// A section as it is.
fn raw<'a>(component: &'a [u8], payload: &Payload<'_>) -> Result<Option<RawSection<'a>>> {
    let Some((id, range)) = payload.as_section() else { return Ok(None) };
    let data = component.get(range).context("a section goes past the end")?;
    Ok(Some(RawSection { id, data }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exports of each core module of a component, in order, and whether it is still valid.
    fn exports(component: &[u8]) -> Vec<Vec<String>> {
        wasmparser::validate(component).expect("valid");
        let mut modules = Vec::new();
        for payload in Parser::new(0).parse_all(component) {
            match payload.expect("whole") {
                Payload::ModuleSection { .. } => modules.push(Vec::new()),
                Payload::ExportSection(exports) => {
                    let names = exports.into_iter().map(|export| export.expect("whole").name.to_owned());
                    modules.last_mut().expect("in a module").extend(names);
                }
                _ => {}
            }
        }
        modules
    }

    fn exposed_text(text: &str) -> Result<Vec<u8>> {
        exposed(&wat::parse_str(text).expect("a component"))
    }

    #[test]
    fn modules_export_their_own_state_after_what_they_export() {
        let component = exposed_text(
            r#"(component
                (core module
                    (import "a" "g" (global i32)) (import "a" "f" (func)) (import "a" "m" (memory 1))
                    (memory 1) (memory 1)
                    (global (mut i32) (i32.const 0)) (global i32 (i32.const 0)) (global (mut i64) (i64.const 0))
                    (func (export "run") (global.set 1 (i32.const 1))))
                (component (core module (global (mut i32) (i32.const 0)) (func (export "inner"))))
                (core module (global (mut i32) (i32.const 0)) (func (export "last")) (start 0))
                (core module (memory 1)))"#,
        );
        let own =
            ["run", "jackfield:Memory:1", "jackfield:Memory:2", "jackfield:Global:1", "jackfield:Global:3"];
        let last = ["last", "jackfield:Global:0"];
        // One in a component of its own, and one that exports nothing, are left as they are.
        let expected: [&[&str]; 4] = [&own, &["inner"], &last, &[]];
        assert_eq!(exports(&component.expect("is rewritten")), expected);
    }

    #[test]
    fn what_is_torn_or_has_too_much_is_refused() {
        let text = r#"(component (core module (global (mut i32) (i32.const 0)) (func (export "run"))))"#;
        let whole = wat::parse_str(text).expect("a component");
        assert!(exposed(&whole).is_ok());
        for length in 0..whole.len() {
            // A component without its last sections is one as well: nothing but that it does not panic.
            let _ = exposed(&whole[..length]);
        }
        let globals = "(global (mut i32) (i32.const 0))".repeat(MOST_OF_A_MODULE + 1);
        assert!(exposed_text(&format!("(component (core module {globals}))")).is_err());
    }
}
