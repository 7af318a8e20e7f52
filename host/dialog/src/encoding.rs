//! A session as bytes: the number of the format, then MessagePack with names of fields.
//!
//! Not JSON, though it would be easier to look at: what serde_json reads may differ from what it wrote in the last bit of a number,
//! unless a feature is on that would slow down every other reader of the workspace.

use crate::{Session, StoreError};

/// The format that this code writes.
const FORMAT: u8 = 1;

/// Appends the session to `bytes`.
pub(crate) fn encode(session: &Session, bytes: &mut Vec<u8>) -> Result<(), StoreError> {
    bytes.push(FORMAT);
    let written = rmp_serde::encode::write_named(bytes, session);
    written.map_err(|error| StoreError::Unavailable(format!("the session cannot be written: {error}")))
}

/// The session in these bytes, or what is wrong.
pub(crate) fn decode(bytes: &[u8]) -> Result<Session, String> {
    match bytes {
        [FORMAT, rest @ ..] => rmp_serde::from_slice(rest).map_err(|error| error.to_string()),
        [format, ..] => Err(format!("it is in format {format}; this build reads format {FORMAT}")),
        [] => Err("it is empty".into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Slot, Value};

    proptest! {
        #[test]
        fn every_number_comes_back_as_it_was(number: f64, confidence: f32) {
            let mut session = Session::new(vec![], 7);
            let (name, value) = ("x".into(), Value::Number(number));
            session.dialog.set(Slot { name, value, source: Some(1..2), confidence, turn: 1, policy: "p@1".into() });
            let mut bytes = Vec::new();
            encode(&session, &mut bytes).expect("plain data");
            prop_assert_eq!(decode(&bytes), Ok(session));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes);
        }
    }
}
