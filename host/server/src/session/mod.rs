//! Sessions: the line of their turns, the one a turn has open, and what the API shows and makes of them.

pub(crate) mod api;
mod line;
mod messages;
mod open;
mod phrases;
mod recall;
mod request;
mod view;

pub(crate) use line::Lines;
pub(crate) use open::{OpenSession, Outcome, Sessions};
pub use recall::{Embed, NoVector};
pub(crate) use recall::{Recall, Wanted, Went};
