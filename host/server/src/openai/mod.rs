//! The OpenAI dialect: requests in, responses out. Pure; handlers are elsewhere.

mod fields;
mod json;
mod messages;
pub mod request;
pub(crate) mod response;
mod sampling;
pub(crate) mod sse;
mod unsupported;

pub(crate) use fields::Fields;
pub(crate) use json::object;
pub(crate) use messages::messages as message_list;
pub use messages::{Message, Role};
pub use sampling::{
    Bounds, Common, MOST_ALTERNATIVES, MOST_BIASES, MOST_CHOICES, MOST_STOP_BYTES, MOST_STOPS, Recall,
    Sampling,
};
