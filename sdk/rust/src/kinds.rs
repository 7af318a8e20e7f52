use crate::Description;

/// What every kind of policy has.
pub trait Policy: Sized + 'static {
    /// The shape of the configuration (`rules.toml`), usually a struct with `#[derive(serde::Deserialize)]` and
    /// `#[serde(deny_unknown_fields)]`.
    type Config: serde::de::DeserializeOwned;

    /// What the policy says of itself. Asked before there is a configuration.
    fn describe() -> Description;

    /// Makes the policy from its configuration; here tables are built. Must be deterministic.
    ///
    /// # Errors
    /// The text refuses the activation and is shown to the operator.
    fn configure(config: Self::Config) -> Result<Self, String>;
}

/// Kind `slot-extractor`: reads the user's words.
pub mod slot_extraction {
    use crate::{Message, Policy, Turn};

    pub use crate::bindings::slot_extraction::exports::jackfield::policy::slot_extraction::{
        Dialog, Next, Transition,
    };

    /// A slot extractor. Made a component by [`crate::export_slot_extractor!`].
    pub trait SlotExtractor: Policy {
        /// Called once a turn. `recent` is never empty; its last message is the user's words of this turn.
        ///
        /// # Errors
        /// A fault of the policy in this turn; the text is logged.
        fn extract(&self, turn: &Turn, recent: &[Message], dialog: &Dialog) -> Result<Transition, String>;
    }
}

/// Kind `router`: decides where and how a turn runs, or that it does not.
pub mod routing {
    use crate::{Policy, Turn};

    pub use crate::bindings::routing::exports::jackfield::policy::routing::{
        Bias, Decision, Grammar, Guidance, Mode, Plan, Refusal, Request, Target,
    };

    /// A router. Made a component by [`crate::export_router!`].
    pub trait Router: Policy {
        /// Called once a turn. `fleet` is never empty; its first target is the host's own choice.
        ///
        /// # Errors
        /// A fault of the policy in this turn; the text is logged.
        fn route(&self, turn: &Turn, request: &Request, fleet: &[Target]) -> Result<Decision, String>;
    }

    impl Plan {
        /// Generate on this target, everything else left to the host; priority 100.
        pub fn on(target: &Target) -> Plan {
            Plan {
                target: target.model.clone(),
                mode: Mode::Generate,
                task: None,
                priority: 100,
                deadline_ms: None,
                max_tokens: None,
                draft_tokens: None,
                exit_threshold: None,
                compress_to: None,
                minimal_output: false,
                keep_cache_s: None,
                guidance: None,
                attributes: Vec::new(),
            }
        }
    }

    impl Decision {
        /// Run by [`Plan::on`] this target.
        pub fn run_on(target: &Target) -> Decision {
            Decision::Run(Plan::on(target))
        }
    }
}

/// Kind `compressor`: decides which bytes of a prompt are not worth their tokens.
pub mod compression {
    use crate::{Edit, Policy, Turn};

    pub use crate::bindings::compression::exports::jackfield::policy::compression::{Budget, Part};

    /// A compressor. Made a component by [`crate::export_compressor!`].
    pub trait Compressor: Policy {
        /// Called once a turn that is to be compressed.
        ///
        /// # Errors
        /// A fault of the policy in this turn; the text is logged.
        fn compress(&self, turn: &Turn, parts: &[Part], budget: &Budget) -> Result<Vec<Edit>, String>;
    }
}

/// Kind `output-filter`: decides what of an answer may leave the host.
pub mod output_filtering {
    use crate::Policy;

    pub use crate::bindings::output_filtering::exports::jackfield::policy::output_filtering::{
        Hit, Interest, Replacement, Token, Verdict, Watch, Window,
    };

    /// An output filter. Made a component by [`crate::export_output_filter!`].
    pub trait OutputFilter: Policy {
        /// What the host looks for. Asked once, after `configure`.
        fn interests(&self) -> Interest;

        /// Called for windows of unsent text, of several streams at once. A window without a verdict passes.
        ///
        /// # Errors
        /// A fault of the policy in this step; the text is logged.
        fn review(&self, windows: &[Window]) -> Result<Vec<Verdict>, String>;
    }

    impl Interest {
        /// These watches, and nothing else.
        pub fn in_watches(watches: Vec<Watch>) -> Interest {
            Interest { watches, sent_tail_bytes: 0, token_probabilities: false, attributes: Vec::new() }
        }
    }
}

/// What the host offers to a policy that its manifest grants it. These work inside a component only.
pub mod imports {
    pub use crate::bindings::imports::jackfield::policy::{embeddings, log, metrics, saliency, tokens};
}
