//! Generated from `wit/`: the plain types and the imports in one module, each exported interface in one of its own.
//!
//! The worlds here are pieces: a component made by one of this crate's export macros exports `lifecycle` and the interface
//! of its kind, which together are the kind's world. Generating the four worlds themselves would define `lifecycle` four
//! times in one crate. Imports that a policy does not call do not appear in its component.
//!
//! The export macros name these modules; nothing else needs to.

#![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all)]

/// Types without functions, and everything that the host offers.
pub mod imports {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package jackfield:sdk;
            world imports {
                import jackfield:policy/types@0.2.0;
                import jackfield:policy/log@0.2.0;
                import jackfield:policy/metrics@0.2.0;
                import jackfield:policy/tokens@0.2.0;
                import jackfield:policy/saliency@0.2.0;
                import jackfield:policy/embeddings@0.2.0;
            }
        ",
        world: "jackfield:sdk/imports",
        generate_unused_types: true,
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// Exports `lifecycle`.
pub mod lifecycle {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package jackfield:sdk;
            world lifecycle {
                export jackfield:policy/lifecycle@0.2.0;
            }
        ",
        world: "jackfield:sdk/lifecycle",
        pub_export_macro: true,
        export_macro_name: "export_lifecycle",
        default_bindings_module: "jackfield_sdk::bindings::lifecycle",
        generate_all,
        additional_derives: [PartialEq],
        with: {
            "jackfield:policy/types@0.2.0": crate::bindings::imports::jackfield::policy::types,
        },
    });
}

/// Exports `slot-extraction`.
pub mod slot_extraction {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package jackfield:sdk;
            world slot-extraction {
                export jackfield:policy/slot-extraction@0.2.0;
            }
        ",
        world: "jackfield:sdk/slot-extraction",
        pub_export_macro: true,
        export_macro_name: "export_slot_extraction",
        default_bindings_module: "jackfield_sdk::bindings::slot_extraction",
        generate_all,
        additional_derives: [PartialEq],
        with: {
            "jackfield:policy/types@0.2.0": crate::bindings::imports::jackfield::policy::types,
        },
    });
}

/// Exports `routing`.
pub mod routing {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package jackfield:sdk;
            world routing {
                export jackfield:policy/routing@0.2.0;
            }
        ",
        world: "jackfield:sdk/routing",
        pub_export_macro: true,
        export_macro_name: "export_routing",
        default_bindings_module: "jackfield_sdk::bindings::routing",
        generate_all,
        additional_derives: [PartialEq],
        with: {
            "jackfield:policy/types@0.2.0": crate::bindings::imports::jackfield::policy::types,
        },
    });
}

/// Exports `compression`.
pub mod compression {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package jackfield:sdk;
            world compression {
                export jackfield:policy/compression@0.2.0;
            }
        ",
        world: "jackfield:sdk/compression",
        pub_export_macro: true,
        export_macro_name: "export_compression",
        default_bindings_module: "jackfield_sdk::bindings::compression",
        generate_all,
        additional_derives: [PartialEq],
        with: {
            "jackfield:policy/types@0.2.0": crate::bindings::imports::jackfield::policy::types,
        },
    });
}

/// Exports `output-filtering`.
pub mod output_filtering {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package jackfield:sdk;
            world output-filtering {
                export jackfield:policy/output-filtering@0.2.0;
            }
        ",
        world: "jackfield:sdk/output-filtering",
        pub_export_macro: true,
        export_macro_name: "export_output_filtering",
        default_bindings_module: "jackfield_sdk::bindings::output_filtering",
        generate_all,
        additional_derives: [PartialEq],
        with: {
            "jackfield:policy/types@0.2.0": crate::bindings::imports::jackfield::policy::types,
        },
    });
}
