//! The export macros. Outside WebAssembly they expand to nothing but a check of the trait.

/// The part that all four macros share: where the configured policy is kept, and `lifecycle`.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_lifecycle {
    ($policy:ty) => {
        struct Component;

        ::std::thread_local! {
            static POLICY: $crate::Configured<$policy> = const { $crate::Configured::new() };
        }

        impl $crate::bindings::lifecycle::exports::jackfield::policy::lifecycle::Guest for Component {
            fn describe() -> $crate::Description {
                <$policy as $crate::Policy>::describe()
            }

            fn configure(config: ::std::string::String) -> ::std::result::Result<(), ::std::string::String> {
                POLICY.with(|policy| policy.configure(&config))
            }
        }

        $crate::bindings::lifecycle::export_lifecycle!(Component with_types_in $crate::bindings::lifecycle);
    };
}

/// Makes a type that implements [`crate::slot_extraction::SlotExtractor`] the component's policy.
#[macro_export]
macro_rules! export_slot_extractor {
    ($policy:ty) => {
        const _: fn() = $crate::__slot_extractor::<$policy>;

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            use world::exports::jackfield::policy::slot_extraction::{Dialog, Guest, Transition};
            use $crate::bindings::slot_extraction as world;

            $crate::__export_lifecycle!($policy);

            impl Guest for Component {
                fn extract(
                    turn: $crate::Turn,
                    recent: ::std::vec::Vec<$crate::Message>,
                    dialog: Dialog,
                ) -> ::std::result::Result<Transition, ::std::string::String> {
                    use $crate::slot_extraction::SlotExtractor;
                    POLICY.with(|policy| policy.call(|policy| policy.extract(&turn, &recent, &dialog)))
                }
            }

    world::export_slot_extraction!(Component with_types_in $crate::bindings::slot_extraction);
        };
    };
}

/// Makes a type that implements [`crate::routing::Router`] the component's policy.
#[macro_export]
macro_rules! export_router {
    ($policy:ty) => {
        const _: fn() = $crate::__router::<$policy>;

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            use world::exports::jackfield::policy::routing::{Decision, Guest, Request, Target};
            use $crate::bindings::routing as world;

            $crate::__export_lifecycle!($policy);

            impl Guest for Component {
                fn route(
                    turn: $crate::Turn,
                    request: Request,
                    fleet: ::std::vec::Vec<Target>,
                ) -> ::std::result::Result<Decision, ::std::string::String> {
                    use $crate::routing::Router;
                    POLICY.with(|policy| policy.call(|policy| policy.route(&turn, &request, &fleet)))
                }
            }

    world::export_routing!(Component with_types_in $crate::bindings::routing);
        };
    };
}

/// Makes a type that implements [`crate::compression::Compressor`] the component's policy.
#[macro_export]
macro_rules! export_compressor {
    ($policy:ty) => {
        const _: fn() = $crate::__compressor::<$policy>;

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            use world::exports::jackfield::policy::compression::{Budget, Guest, Part};
            use $crate::bindings::compression as world;

            $crate::__export_lifecycle!($policy);

            impl Guest for Component {
                fn compress(
                    turn: $crate::Turn,
                    parts: ::std::vec::Vec<Part>,
                    budget: Budget,
                ) -> ::std::result::Result<::std::vec::Vec<$crate::Edit>, ::std::string::String> {
                    use $crate::compression::Compressor;
                    POLICY.with(|policy| policy.call(|policy| policy.compress(&turn, &parts, &budget)))
                }
            }

    world::export_compression!(Component with_types_in $crate::bindings::compression);
        };
    };
}

/// Makes a type that implements [`crate::output_filtering::OutputFilter`] the component's policy.
///
/// Should `interests` be asked before `configure`, which the host does not do, the answer is an interest in every window.
#[macro_export]
macro_rules! export_output_filter {
    ($policy:ty) => {
        const _: fn() = $crate::__output_filter::<$policy>;

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            use world::exports::jackfield::policy::output_filtering::{Guest, Interest, Verdict, Window};
            use $crate::bindings::output_filtering as world;
            use $crate::output_filtering::OutputFilter;

            $crate::__export_lifecycle!($policy);

            impl Guest for Component {
                fn interests() -> Interest {
                    let asked = POLICY.with(|policy| policy.call(|policy| Ok(policy.interests())));
                    asked.unwrap_or_else(|_| Interest::in_watches(::std::vec::Vec::new()))
                }

                fn review(
                    windows: ::std::vec::Vec<Window>,
                ) -> ::std::result::Result<::std::vec::Vec<Verdict>, ::std::string::String> {
                    POLICY.with(|policy| policy.call(|policy| policy.review(&windows)))
                }
            }

    world::export_output_filtering!(Component with_types_in $crate::bindings::output_filtering);
        };
    };
}

// What the macros check natively: that the type has the trait.
#[doc(hidden)]
pub fn __slot_extractor<P: crate::slot_extraction::SlotExtractor>() {}
#[doc(hidden)]
pub fn __router<P: crate::routing::Router>() {}
#[doc(hidden)]
pub fn __compressor<P: crate::compression::Compressor>() {}
#[doc(hidden)]
pub fn __output_filter<P: crate::output_filtering::OutputFilter>() {}
