//! Texts of a record as an output filter would let them out.

use serde_json::Value;

use super::Record;
use crate::{Policy, cases::through};

/// The same record, its arguments, outcome and imports' answers masked. What names things (versions, turn, tenant) stays.
///
/// # Errors
/// The filter failed, or what it made of the texts is no record any more.
pub(super) fn masked(record: &Record, filter: &Policy) -> Result<Record, String> {
    let mut record = record.clone();
    record.call = masked_part(&record.call, filter)?;
    record.outcome = masked_part(&record.outcome, filter)?;
    record.imports = masked_part(&record.imports, filter)?;
    record.turn.headers = masked_part(&record.turn.headers, filter)?;
    Ok(record)
}

fn masked_part<T: serde::Serialize + serde::de::DeserializeOwned>(
    part: &T,
    filter: &Policy,
) -> Result<T, String> {
    let mut value = serde_json::to_value(part).map_err(|error| error.to_string())?;
    each_text(&mut value, &mut |text| {
        let played = through(filter, text).map_err(|fault| format!("the mask failed: {fault}"))?;
        *text = played.sent;
        Ok(())
    })?;
    serde_json::from_value(value).map_err(|error| format!("masked, it is no record any more: {error}"))
}

/// Values, not the names of fields.
fn each_text(
    value: &mut Value,
    mask: &mut impl FnMut(&mut String) -> Result<(), String>,
) -> Result<(), String> {
    match value {
        Value::String(text) => mask(text),
        Value::Array(values) => values.iter_mut().try_for_each(|value| each_text(value, mask)),
        Value::Object(fields) => fields.values_mut().try_for_each(|value| each_text(value, mask)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}
