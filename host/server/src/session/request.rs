//! What is asked of sessions: bodies and queries, checked.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;

use super::messages::Sent;
use crate::error::ApiError;
use crate::openai::{Fields, message_list, object};

/// Sessions of one answer to a list, where the request does not say.
const USUAL_LIMIT: usize = 20;
/// The most of them.
const MOST_LISTED: usize = 100;

/// A session to be made.
#[derive(Debug)]
pub(crate) struct Create {
    /// Its id; none has the server draw one.
    pub(crate) id: Option<String>,
    /// What was said already.
    pub(crate) sent: Sent,
}

/// A session to be branched off another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its id; none has the server draw one.
    pub(crate) id: Option<String>,
    /// The last turn to share; none shares all.
    pub(crate) turn: Option<u32>,
}

/// Which sessions to list.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Those whose ids are greater.
    pub(crate) after: Option<String>,
    /// At most so many.
    #[serde(default = "usual_limit")]
    pub(crate) limit: usize,
}

fn usual_limit() -> usize {
    USUAL_LIMIT
}

impl Create {
    /// Reads `{"id": …, "messages": […]}`; both may be left out, and so may the body.
    pub(crate) fn read(body: &[u8]) -> Result<Create, ApiError> {
        let none = Sent { instructions: None, messages: Vec::new() };
        if body.is_empty() {
            return Ok(Create { id: None, sent: none });
        }
        let map = object(body)?;
        let fields = Fields::root(&map);
        check_names(&fields, &["id", "messages"])?;
        let sent = fields.get("messages").map(|_| message_list(&fields)).transpose()?;
        let id = fields.text("id")?.map(str::to_owned);
        Ok(Create { id, sent: sent.map_or(none, |messages| Sent::of(&messages)) })
    }
}

impl Branch {
    /// Reads `{"id": …, "turn": …}`; both may be left out, and so may the body.
    pub(crate) fn read(body: &[u8]) -> Result<Branch, ApiError> {
        if body.is_empty() {
            return Ok(Branch { id: None, turn: None });
        }
        let map = object(body)?;
        let fields = Fields::root(&map);
        check_names(&fields, &["id", "turn"])?;
        let id = fields.text("id")?.map(str::to_owned);
        Ok(Branch { id, turn: fields.integer("turn", 0..=u32::MAX)? })
    }
}

impl List {
    /// Reads `?after=…&limit=…`.
    pub(crate) fn read(uri: &Uri) -> Result<List, ApiError> {
        let Query(list) = Query::<List>::try_from_uri(uri).map_err(|error| {
            let message = format!("The query: {}; there are after and limit", error.body_text());
            ApiError::invalid("query", "invalid_value", message)
        })?;
        if !(1..=MOST_LISTED).contains(&list.limit) {
            let message = format!("`limit` is {}; it must be 1 to {MOST_LISTED}", list.limit);
            return Err(ApiError::invalid("limit", "invalid_value", message));
        }
        Ok(list)
    }
}

/// A field that is misspelt would silently do nothing.
fn check_names(fields: &Fields<'_>, known: &[&str]) -> Result<(), ApiError> {
    match fields.entries().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let name = crate::error::shorten(name);
            let message = format!("`{name}` is not known here; there are {}", known.join(" and "));
            Err(ApiError::invalid(name, "unknown_parameter", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_may_be_left_out() {
        for body in ["", "{}"] {
            let create = Create::read(body.as_bytes()).unwrap();
            assert!(create.id.is_none() && create.sent.messages.is_empty());
            assert_eq!(Branch::read(body.as_bytes()).unwrap(), Branch { id: None, turn: None });
        }
        assert_eq!(List::read(&"/v1/sessions".parse().unwrap()).unwrap(), List { after: None, limit: 20 });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let param = |error: ApiError| error.param.unwrap_or_default();
        assert_eq!(param(Create::read(br#"{"ids":"a"}"#).unwrap_err()), "ids");
        assert_eq!(param(Create::read(br#"{"id":1}"#).unwrap_err()), "id");
        assert_eq!(
            param(Create::read(br#"{"messages":[{"role":"user"}]}"#).unwrap_err()),
            "messages[0].content"
        );
        assert_eq!(param(Branch::read(br#"{"turn":-1}"#).unwrap_err()), "turn");
        for query in ["limit=0", "limit=101"] {
            let uri = format!("/v1/sessions?{query}").parse().unwrap();
            assert_eq!(param(List::read(&uri).unwrap_err()), "limit");
        }
        let misspelt = "/v1/sessions?from=a".parse().unwrap();
        assert_eq!(param(List::read(&misspelt).unwrap_err()), "query");
    }
}
