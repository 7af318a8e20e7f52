//! Why a conversation has no prompt.

/// A conversation that the model's template does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The file's template does not compile. Raw completions work.
    #[error("the model's chat template is unusable ({message}); raw completions still work")]
    Unusable {
        /// What the compiler said.
        message: String,
    },
    /// A role that no template knows.
    #[error("messages[{index}].role: `{role}` is not one of system, developer, user, assistant, tool")]
    UnknownRole {
        /// Which message.
        index: usize,
        /// Its role.
        role: String,
    },
    /// No messages at all.
    #[error("messages: is empty")]
    NoMessages,
    /// The template refused the conversation in its own words.
    #[error("the model's chat template refuses these messages: {message}")]
    Raised {
        /// What it said.
        message: String,
    },
    /// The template failed on this conversation.
    #[error("the model's chat template failed: {message}")]
    Failed {
        /// What went wrong, with the template's line.
        message: String,
    },
    /// The texts use every character that could mark them.
    #[error("the messages use all of Unicode's noncharacters; remove some")]
    NoMarker,
}
