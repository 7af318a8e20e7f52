//! Generated from the contract. Nothing but `convert.rs` and `runtime/` knows these types.
#![allow(missing_docs, unreachable_pub, dead_code)]

/// What all kinds share: the imports, the plain types, and `lifecycle`.
pub(crate) mod shared {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package jackfield:host;
            world shared {
                import jackfield:policy/types@0.2.0;
                import jackfield:policy/log@0.2.0;
                import jackfield:policy/metrics@0.2.0;
                import jackfield:policy/tokens@0.2.0;
                import jackfield:policy/saliency@0.2.0;
                import jackfield:policy/embeddings@0.2.0;
                export jackfield:policy/lifecycle@0.2.0;
            }
        ",
        imports: { default: trappable },
    });
}

pub(crate) mod extraction {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package jackfield:host;
            world extraction { export jackfield:policy/slot-extraction@0.2.0; }
        ",
        with: { "jackfield:policy/types@0.2.0": crate::bindings::shared::jackfield::policy::types },
    });
}

pub(crate) mod routing {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package jackfield:host;
            world routing { export jackfield:policy/routing@0.2.0; }
        ",
        with: { "jackfield:policy/types@0.2.0": crate::bindings::shared::jackfield::policy::types },
    });
}

pub(crate) mod compression {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package jackfield:host;
            world compression { export jackfield:policy/compression@0.2.0; }
        ",
        with: { "jackfield:policy/types@0.2.0": crate::bindings::shared::jackfield::policy::types },
    });
}

pub(crate) mod filtering {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package jackfield:host;
            world filtering { export jackfield:policy/output-filtering@0.2.0; }
        ",
        // Windows come every step: they are lowered from where they are, not copied first.
        ownership: Borrowing { duplicate_if_necessary: false },
        with: { "jackfield:policy/types@0.2.0": crate::bindings::shared::jackfield::policy::types },
    });
}
