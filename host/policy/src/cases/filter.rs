//! Cases of output filters: windows as they are, or a text played as a stream.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::timed;
use crate::{
    Fault, Policy,
    stream::FilterStream,
    types::{Verdict, Window},
};

/// Longer texts are not cut in two at every place.
const MAX_CUT_SCALARS: usize = 400;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Input {
    Text(String),
    Stream(Vec<String>),
    Windows(Vec<Window>),
}

/// The outer error is a failure of the case, the inner one of the policy.
pub(super) fn answer(policy: &Policy, input: &Input) -> Result<Result<Value, Fault>, String> {
    match input {
        Input::Windows(windows) => {
            let verdicts = policy.review(windows);
            Ok(verdicts.map(|called| json!({ "verdicts": called.answer })))
        }
        Input::Stream(deltas) => {
            Ok(play(&parts(deltas), policy, &mut review(policy)).map(|played| played.json()))
        }
        Input::Text(text) => everywhere(policy, text),
    }
}

/// How long each call of the policy takes, a text played whole.
pub(super) fn time(policy: &Policy, input: &Input) -> Result<Vec<Duration>, Fault> {
    let mut taken = Vec::new();
    let mut timed_review = |window: Window| {
        let mut verdicts = None;
        taken.extend(timed(|| {
            let called = policy.review(&[window])?;
            verdicts = called.answer.into_iter().next();
            Ok(())
        })?);
        Ok(verdicts.unwrap_or_default())
    };
    match input {
        Input::Windows(windows) => return timed(|| policy.review(windows)),
        Input::Stream(deltas) => play(&parts(deltas), policy, &mut timed_review)?,
        Input::Text(text) => play(&[text], policy, &mut timed_review)?,
    };
    Ok(taken)
}

fn parts(deltas: &[String]) -> Vec<&str> {
    deltas.iter().map(String::as_str).collect()
}

/// Shows a window to the policy.
type Review<'a> = dyn FnMut(Window) -> Result<Verdict, Fault> + 'a;

fn review(policy: &Policy) -> impl FnMut(Window) -> Result<Verdict, Fault> {
    |window| Ok(policy.review(&[window])?.answer.into_iter().next().unwrap_or_default())
}

/// What the filter makes of a whole answer.
///
/// # Errors
/// Any [`Fault`].
pub(crate) fn through(policy: &Policy, text: &str) -> Result<Played, Fault> {
    play(&[text], policy, &mut review(policy))
}

/// A text whole, and cut at every place.
fn everywhere(policy: &Policy, text: &str) -> Result<Result<Value, Fault>, String> {
    let whole = match through(policy, text) {
        Ok(played) => played,
        Err(fault) => return Ok(Err(fault)),
    };
    for deltas in cuts(text) {
        let played = play(&deltas, policy, &mut review(policy))
            .map_err(|fault| format!("cut as {deltas:?}: {fault}"))?;
        if played != whole {
            return Err(format!(
                "cut as {deltas:?} it comes out as {}, whole as {}",
                played.json(),
                whole.json()
            ));
        }
    }
    Ok(Ok(whole.json()))
}

fn cuts(text: &str) -> Vec<Vec<&str>> {
    let scalar = |(at, c): (usize, char)| &text[at..at + c.len_utf8()];
    let scalars: Vec<&str> = text.char_indices().map(scalar).collect();
    let mut cuts = Vec::new();
    if scalars.len() <= MAX_CUT_SCALARS {
        let places = text.char_indices().skip(1);
        cuts.extend(places.map(|(at, _)| vec![&text[..at], &text[at..]]));
    }
    cuts.push(scalars);
    cuts
}

/// What reached the client.
#[derive(Default, PartialEq)]
pub(crate) struct Played {
    pub(crate) sent: String,
    stop: Option<String>,
}

impl Played {
    pub(crate) fn json(&self) -> Value {
        passed(&self.sent, self.stop.as_deref())
    }
}

/// What a filter let through of an answer, as cases and recorded calls have it.
pub(crate) fn passed(sent: &str, stop: Option<&str>) -> Value {
    json!({ "sent": sent, "stop": stop })
}

fn play(deltas: &[&str], policy: &Policy, review: &mut Review<'_>) -> Result<Played, Fault> {
    let mut stream = FilterStream::new(policy, 0);
    let mut played = Played::default();
    for delta in deltas {
        stream.feed(delta);
        step(review, &mut stream, &mut played)?;
    }
    stream.finish();
    step(review, &mut stream, &mut played)?;
    Ok(played)
}

fn step(review: &mut Review<'_>, stream: &mut FilterStream, played: &mut Played) -> Result<(), Fault> {
    let sent = match stream.window() {
        None => stream.pass(),
        Some(window) => stream.apply(review(window)?),
    };
    played.sent.push_str(&sent.text);
    played.stop = played.stop.take().or(sent.stop);
    Ok(())
}
