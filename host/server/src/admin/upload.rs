//! What an upload may look like: the bytes of a component, or a form with its signature, manifest, configuration and cases.

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use futures::stream;
use jackfield_policy::{Case, Manifest, SignatureError, TrustedKeys, Upload};
use serde_json::Value;

use crate::error::ApiError;

/// The parts of an upload that were sent; the others are taken from what is in force.
#[derive(Debug, Default)]
pub(super) struct Sent {
    component: Option<Bytes>,
    manifest: Option<Manifest>,
    config: Option<Value>,
    cases: Option<Vec<Case>>,
    signature: Option<String>,
}

impl Sent {
    /// Reads the body of `PUT /admin/policies/{name}`.
    pub(super) async fn read(headers: &HeaderMap, body: Bytes) -> Result<Sent, ApiError> {
        match kind(headers).as_str() {
            "multipart/form-data" => Sent::form(headers, body).await,
            "application/wasm" | "application/octet-stream" | "" => {
                Ok(Sent { component: Some(body), ..Sent::default() })
            }
            other => {
                let message = format!(
                    "The content type `{}` is not supported; send application/wasm or multipart/form-data",
                    crate::error::shorten(other)
                );
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Err(ApiError::new(status, "invalid_request_error", "unsupported_content_type", message))
            }
        }
    }

    async fn form(headers: &HeaderMap, body: Bytes) -> Result<Sent, ApiError> {
        let kind =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let boundary = multer::parse_boundary(kind).map_err(|error| bad("form", error))?;
        let whole = stream::iter([Ok::<_, Infallible>(body)]);
        let mut form = multer::Multipart::new(whole, boundary);
        let mut sent = Sent::default();
        while let Some(field) = form.next_field().await.map_err(|error| bad("form", error))? {
            let name = field.name().unwrap_or_default().to_owned();
            let is_toml = field.content_type().is_some_and(|kind| kind.essence_str().contains("toml"))
                || field.file_name().is_some_and(|name| name.ends_with(".toml"));
            let bytes = field.bytes().await.map_err(|error| bad("form", error))?;
            sent.part(&name, bytes, is_toml)?;
        }
        Ok(sent)
    }

    fn part(&mut self, name: &str, bytes: Bytes, is_toml: bool) -> Result<(), ApiError> {
        match name {
            "component" => self.component = Some(bytes),
            "manifest" => self.manifest = Some(data(name, &bytes, is_toml)?),
            "config" => self.config = Some(data(name, &bytes, is_toml)?),
            "cases" => self.cases = Some(data(name, &bytes, false)?),
            "signature" => {
                let text = String::from_utf8(bytes.into()).map_err(|error| bad(name, error))?;
                self.signature = Some(text);
            }
            other => {
                let message =
                    "is no part of an upload; these are component, signature, manifest, config, cases";
                return Err(bad(&crate::error::shorten(other), message));
            }
        }
        Ok(())
    }

    /// Holds a component that was sent to its signature. What is in force was held to one when it came.
    pub(super) fn check(&self, keys: &TrustedKeys) -> Result<(), ApiError> {
        let Some(component) = &self.component else { return Ok(()) };
        keys.check(component, self.signature.as_deref()).map_err(|error| {
            let code = match error {
                SignatureError::Unsigned => "unsigned",
                _ => "bad_signature",
            };
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            ApiError::new(status, "invalid_request_error", code, error.to_string()).with_param("signature")
        })
    }

    /// The whole upload for the policy `name`: what was sent, over what is in force.
    pub(super) fn over(self, name: &str, in_force: Option<Upload>) -> Result<Upload, ApiError> {
        let missing = |part: &str| {
            let message =
                format!("There is no policy `{}` yet: send its {part}, too", crate::error::shorten(name));
            ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", "policy_not_found", message)
                .with_param(part)
        };
        let upload = match in_force {
            Some(upload) => Upload {
                component: self.component.map_or(upload.component, |bytes| Arc::from(&bytes[..])),
                manifest: self.manifest.unwrap_or(upload.manifest),
                config: self.config.unwrap_or(upload.config),
                cases: self.cases.unwrap_or(upload.cases),
            },
            None => Upload {
                component: self
                    .component
                    .map(|bytes| Arc::from(&bytes[..]))
                    .ok_or_else(|| missing("component"))?,
                manifest: self.manifest.ok_or_else(|| missing("manifest"))?,
                config: self.config.unwrap_or_else(|| Value::Object(Default::default())),
                cases: self.cases.unwrap_or_default(),
            },
        };
        if upload.manifest.name != name {
            let message = format!("names the policy `{}`, the address names `{name}`", upload.manifest.name);
            return Err(bad("manifest.name", message));
        }
        Ok(upload)
    }
}

/// Reads the body of a change of configuration: JSON, or TOML where the content type says so.
pub(super) fn config(headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    data("config", body, kind(headers).contains("toml"))
}

/// JSON, or TOML: where it is not said, what begins like a JSON object or array is JSON.
fn data<T: serde::de::DeserializeOwned>(part: &str, bytes: &[u8], is_toml: bool) -> Result<T, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|error| bad(part, error))?;
    if is_toml || !text.trim_start().starts_with(['{', '[']) {
        return toml::from_str(text).map_err(|error| bad(part, error));
    }
    serde_json::from_str(text).map_err(|error| bad(part, error))
}

fn kind(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn bad(part: &str, problem: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(part, "invalid_upload", format!("`{part}`: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "name = \"p\"\nkind = \"router\"\n";

    fn form(parts: &[(&str, &str, &str)]) -> (HeaderMap, Bytes) {
        let mut body = String::new();
        for (name, file, content) in parts {
            body += &format!(
                "--x\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\r\n{content}\r\n"
            );
        }
        body += "--x--\r\n";
        let headers = HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            "multipart/form-data; boundary=x".parse().unwrap(),
        )]);
        (headers, body.into())
    }

    async fn upload(parts: &[(&str, &str, &str)]) -> Result<Upload, ApiError> {
        let (headers, body) = form(parts);
        Sent::read(&headers, body).await?.over("p", None)
    }

    #[tokio::test]
    async fn a_form_brings_everything() {
        let parts = [
            ("component", "p.wasm", "\0asm"),
            ("manifest", "policy.toml", MANIFEST),
            ("config", "rules.json", r#"{"a": [1]}"#),
        ];
        let upload = upload(&parts).await.unwrap();
        assert_eq!((&upload.component[..], upload.manifest.name.as_str()), (&b"\0asm"[..], "p"));
        assert_eq!(upload.config, serde_json::json!({"a": [1]}));
    }

    #[tokio::test]
    async fn toml_is_known_by_its_name_or_its_look() {
        for file in ["rules.toml", ""] {
            let parts = [("component", "", "x"), ("manifest", "", MANIFEST), ("config", file, "a = [1]\n")];
            assert_eq!(upload(&parts).await.unwrap().config, serde_json::json!({"a": [1]}));
        }
    }

    #[tokio::test]
    async fn what_is_wrong_is_named() {
        let part =
            |parts: &'static [(&str, &str, &str)]| async move { upload(parts).await.unwrap_err().param };
        assert_eq!(part(&[("manifest", "", MANIFEST)]).await.as_deref(), Some("component"));
        assert_eq!(part(&[("component", "", "x")]).await.as_deref(), Some("manifest"));
        assert_eq!(part(&[("manifest", "", "kind = 5")]).await.as_deref(), Some("manifest"));
        assert_eq!(part(&[("config", "", "{")]).await.as_deref(), Some("config"));
        assert_eq!(part(&[("bytes", "", "x")]).await.as_deref(), Some("bytes"));
        let other = "name = \"q\"\nkind = \"router\"\n";
        let named = upload(&[("component", "", "x"), ("manifest", "", other)]).await;
        assert_eq!(named.unwrap_err().param.as_deref(), Some("manifest.name"));
    }

    #[tokio::test]
    async fn bytes_alone_keep_the_rest() {
        let parts = [("component", "", "old"), ("manifest", "", MANIFEST), ("config", "", "{\"a\":1}")];
        let in_force = upload(&parts).await.unwrap();
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, "application/wasm".parse().unwrap())]);
        let sent = Sent::read(&headers, Bytes::from_static(b"new")).await.unwrap();
        let upload = sent.over("p", Some(in_force)).unwrap();
        assert_eq!((&upload.component[..], &upload.config), (&b"new"[..], &serde_json::json!({"a": 1})));
    }
}
