//! One server over HTTP: what is asked of it, and when its answer arrives.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Options;
use crate::error::BenchError;
use crate::prompt::Author;
use crate::sse::Events;
use crate::turn::{Fault, Turn, Usage};
use crate::waste::{self, Figures};

/// The longest that a request may take; beyond it counts as a fault.
const REQUEST_LIMIT: Duration = Duration::from_secs(900);
/// A list of models, or figures, that take longer will not come.
const GET_LIMIT: Duration = Duration::from_secs(10);
/// Words of the two prompts that try the address and tell how many tokens a word takes.
const PROBE_WORDS: [u32; 2] = [16, 48];

/// A server that has answered a first request.
#[derive(Debug)]
pub(crate) struct Client {
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    key: Option<HeaderValue>,
    pub(crate) model: String,
    dialect: Dialect,
    pub(crate) tokens_per_word: f64,
}

/// What the server understands of what not all servers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dialect {
    /// It has `/v1/completions`; otherwise raw text is sent as a user's message.
    raw: bool,
    /// It takes `ignore_eos`, so that answers have the length that was asked for.
    ignore_eos: bool,
}

/// The most useful first.
const DIALECTS: [Dialect; 4] = [
    Dialect { raw: true, ignore_eos: true },
    Dialect { raw: true, ignore_eos: false },
    Dialect { raw: false, ignore_eos: true },
    Dialect { raw: false, ignore_eos: false },
];

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Prompt<'a> {
    /// Text to go on from.
    Text(&'a str),
    /// Messages of a chat, as the API has them.
    Chat(&'a [Value]),
    /// New messages of a session.
    Session(&'a str, &'a [Value]),
}

/// Which request of which phase it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) lane: usize,
    /// The beginning of the phase.
    pub(crate) clock: Instant,
    /// When the request was due, from there.
    pub(crate) started: Duration,
}

impl Client {
    /// Finds the model, tries what the server understands, and measures how many tokens a word takes.
    pub(crate) async fn connect(options: &Options) -> Result<Client, BenchError> {
        let mut client = Client {
            http: http_client(),
            base: base_of(&options.url)?,
            key: options.key.as_deref().map(|key| bearer(key, &options.url)).transpose()?,
            model: String::new(),
            dialect: DIALECTS[0],
            tokens_per_word: 1.0,
        };
        client.model = match &options.model {
            Some(model) => model.clone(),
            None => client.first_model().await?,
        };
        client.probe(options.seed).await?;
        Ok(client)
    }

    /// The endpoint that raw text goes to.
    pub(crate) fn endpoint(&self) -> &'static str {
        if self.dialect.raw { "/v1/completions" } else { "/v1/chat/completions" }
    }

    /// Whether answers have the length that was asked for.
    pub(crate) fn fixed_length(&self) -> bool {
        self.dialect.ignore_eos
    }

    /// Sends a request and follows its answer to the end. Gives the text as well: a dialog goes on from it.
    pub(crate) async fn ask(&self, prompt: Prompt<'_>, max_tokens: u32, place: Place) -> (Turn, String) {
        let (path, body) = self.body(prompt, max_tokens);
        let heard = Mutex::new(Heard::default());
        let follow = self.follow(path, body, place.clock, &heard);
        let outcome = tokio::time::timeout(REQUEST_LIMIT, follow).await.unwrap_or(Err(Fault::Timeout));
        let ended = place.clock.elapsed();
        let heard = heard.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let outcome = outcome.and_then(|()| heard.usage());
        let mut deliveries = heard.deliveries;
        if let Ok(usage) = &outcome {
            // A token whose text came in two pieces was there with the first.
            deliveries.truncate(usage.completion_tokens.max(1) as usize);
        }
        let turn = Turn { lane: place.lane, started: place.started, deliveries, ended, outcome };
        (turn, heard.text)
    }

    /// Bytes of the body that [`ask`](Self::ask) sends.
    pub(crate) fn body_bytes(&self, prompt: Prompt<'_>, max_tokens: u32) -> usize {
        self.body(prompt, max_tokens).1.len()
    }

    /// What `/metrics` says now; empty when the server has none.
    pub(crate) async fn figures(&self) -> Figures {
        match self.get("/metrics").await {
            Ok(text) => waste::read(&text),
            Err(_) => Figures::new(),
        }
    }

    async fn first_model(&self) -> Result<String, BenchError> {
        let text = self.get("/v1/models").await.map_err(|fault| self.refusal(&fault))?;
        let models: Value = serde_json::from_str(&text).unwrap_or_default();
        let first = models["data"][0]["id"].as_str().map(str::to_owned);
        first.ok_or_else(|| BenchError::Probe {
            url: self.base.clone(),
            what: "a list of models that is empty; name one with --model".into(),
        })
    }

    /// Two short prompts in the first dialect that is understood. They warm the server up, too.
    async fn probe(&mut self, seed: u64) -> Result<(), BenchError> {
        let author = Author::new(seed, "probe", 1.0);
        let mut counts = [0.0; 2];
        let mut dialects = DIALECTS.into_iter();
        for (index, words) in PROBE_WORDS.into_iter().enumerate() {
            let text = author.text(words, &mut author.random(index as u64));
            counts[index] = loop {
                let clock = Instant::now();
                let place = Place { lane: 0, clock, started: Duration::ZERO };
                let (turn, _) = self.ask(Prompt::Text(&text), 1, place).await;
                match turn.outcome {
                    Ok(usage) => break usage.prompt_tokens as f64,
                    Err(fault) => {
                        let not_understood = matches!(fault, Fault::Status(400 | 404 | 405 | 422, _));
                        let next = dialects.find(|dialect| *dialect != self.dialect);
                        self.dialect = next.filter(|_| not_understood).ok_or_else(|| self.refusal(&fault))?;
                    }
                }
            };
        }
        let slope = (counts[1] - counts[0]) / f64::from(PROBE_WORDS[1] - PROBE_WORDS[0]);
        self.tokens_per_word = slope.max(0.1);
        Ok(())
    }

    fn body(&self, prompt: Prompt<'_>, max_tokens: u32) -> (&'static str, Vec<u8>) {
        let mut body = json!({
            "model": self.model,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if self.dialect.ignore_eos {
            body["ignore_eos"] = true.into();
        }
        let path = match prompt {
            Prompt::Text(text) if self.dialect.raw => {
                body["prompt"] = text.into();
                "/v1/completions"
            }
            Prompt::Text(text) => {
                body["messages"] = json!([{"role": "user", "content": text}]);
                "/v1/chat/completions"
            }
            Prompt::Chat(messages) => {
                body["messages"] = messages.into();
                "/v1/chat/completions"
            }
            Prompt::Session(id, messages) => {
                body["session"] = id.into();
                body["messages"] = messages.into();
                "/v1/chat/completions"
            }
        };
        (path, body.to_string().into_bytes())
    }

    async fn follow(
        &self,
        path: &str,
        body: Vec<u8>,
        clock: Instant,
        heard: &Mutex<Heard>,
    ) -> Result<(), Fault> {
        let mut response = self.send(Method::POST, path, body).await?;
        let mut events = Events::default();
        while let Some(frame) = response.body_mut().frame().await {
            let at = clock.elapsed();
            let frame = frame.map_err(|error| Fault::Cut(root_cause(&error)))?;
            let Some(bytes) = frame.data_ref() else { continue };
            let mut heard = heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for data in events.push(bytes) {
                heard.take(&data, at)?;
            }
        }
        Ok(())
    }

    async fn get(&self, path: &str) -> Result<String, Fault> {
        let fetch = async {
            let response = self.send(Method::GET, path, Vec::new()).await?;
            let body = response.into_body().collect().await;
            let bytes = body.map_err(|error| Fault::Cut(root_cause(&error)))?.to_bytes();
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        tokio::time::timeout(GET_LIMIT, fetch).await.unwrap_or(Err(Fault::Timeout))
    }

    /// A response with status 200.
    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Response<Incoming>, Fault> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key);
        }
        let request =
            request.body(Full::new(Bytes::from(body))).map_err(|error| Fault::Connect(root_cause(&error)))?;
        let sent = self.http.request(request).await;
        let response = sent.map_err(|error| match error.is_connect() {
            true => Fault::Connect(root_cause(&error)),
            false => Fault::Cut(root_cause(&error)),
        })?;
        let status = response.status().as_u16();
        if status == 200 {
            return Ok(response);
        }
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Err(Fault::Status(status, beginning(&String::from_utf8_lossy(&body))))
    }

    fn refusal(&self, fault: &Fault) -> BenchError {
        match fault {
            Fault::Connect(cause) => BenchError::Refused { url: self.base.clone(), cause: cause.clone() },
            other => BenchError::Probe { url: self.base.clone(), what: other.to_string() },
        }
    }
}

/// What came of an answer so far.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    deliveries: Vec<Duration>,
    usage: Option<Usage>,
    finished: bool,
}

impl Heard {
    /// One event. The first token has arrived with the first text, or with the end of an answer that has none: a role
    /// alone is no token.
    fn take(&mut self, data: &str, at: Duration) -> Result<(), Fault> {
        if data == "[DONE]" {
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| Fault::Stream(format!("{error} in {}", beginning(data))))?;
        if let Some(error) = chunk.error {
            return Err(Fault::Stream(beginning(&error.to_string())));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        for choice in chunk.choices {
            let text = choice.text.or_else(|| choice.delta.and_then(Delta::text)).unwrap_or_default();
            self.finished |= choice.finish_reason.is_some();
            if !text.is_empty() || (self.finished && self.deliveries.is_empty()) {
                self.deliveries.push(at);
            }
            self.text.push_str(&text);
        }
        Ok(())
    }

    fn usage(&self) -> Result<Usage, Fault> {
        if !self.finished {
            return Err(Fault::Cut("the stream ended without a finish reason".into()));
        }
        self.usage.ok_or(Fault::NoUsage)
    }
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<RawUsage>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    text: Option<String>,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Delta {
    content: Option<String>,
    /// Where some servers put what a model thinks before it answers: tokens like others.
    reasoning_content: Option<String>,
}

impl Delta {
    fn text(self) -> Option<String> {
        self.content.filter(|text| !text.is_empty()).or(self.reasoning_content)
    }
}

#[derive(Debug, Deserialize)]
struct RawUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: Option<RawDetails>,
}

#[derive(Debug, Deserialize)]
struct RawDetails {
    cached_tokens: Option<u64>,
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Usage {
        Usage {
            prompt_tokens: raw.prompt_tokens,
            completion_tokens: raw.completion_tokens,
            cached_tokens: raw.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
        }
    }
}

fn http_client() -> HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_webpki_roots()
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    // A connection for each request: some servers close an idle one in the instant in which it would be used again.
    HttpClient::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector)
}

/// The address without a slash at its end, and without the `/v1` that some clients want.
fn base_of(url: &str) -> Result<String, BenchError> {
    let refuse = |why: &str| BenchError::Url { url: url.to_owned(), why: why.to_owned() };
    let trimmed = url.trim_end_matches('/');
    let base = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
    let uri: Uri = base.parse().map_err(|error: hyper::http::uri::InvalidUri| refuse(&error.to_string()))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(_)) => Ok(base.to_owned()),
        (_, None) => Err(refuse("it has no host")),
        _ => Err(refuse("it begins with neither http:// nor https://")),
    }
}

fn bearer(key: &str, url: &str) -> Result<HeaderValue, BenchError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| BenchError::Probe {
        url: url.to_owned(),
        what: "nothing: the key has characters that no header can carry".into(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The last error of the chain: the one that says what happened.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

fn beginning(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(events: &[&str]) -> (Heard, Result<Usage, Fault>) {
        let mut heard = Heard::default();
        for (index, event) in events.iter().enumerate() {
            if let Err(fault) = heard.take(event, Duration::from_millis(index as u64)) {
                return (heard, Err(fault));
            }
        }
        let usage = heard.usage();
        (heard, usage)
    }

    const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,
        "prompt_tokens_details":{"cached_tokens":3}}}"#;

    #[test]
    fn a_role_is_no_token_and_usage_counts_what_chunks_do_not() {
        let (heard, usage) = hear(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a b"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":" c"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#,
            USAGE,
            "[DONE]",
        ]);
        assert_eq!(usage, Ok(Usage { prompt_tokens: 9, completion_tokens: 4, cached_tokens: 3 }));
        assert_eq!(heard.deliveries, [1, 2].map(Duration::from_millis));
        assert_eq!(heard.text, "a b c");
    }

    #[test]
    fn an_answer_without_text_has_its_first_token_at_its_end() {
        let (heard, usage) = hear(&[r#"{"choices":[{"text":"","finish_reason":"length"}]}"#, USAGE]);
        assert_eq!(heard.deliveries, [Duration::ZERO]);
        assert!(usage.is_ok());
    }

    #[test]
    fn what_is_no_whole_answer_is_a_fault_of_its_kind() {
        let text = r#"{"choices":[{"text":"a","finish_reason":null}]}"#;
        let end = r#"{"choices":[{"text":"","finish_reason":"stop"}]}"#;
        let kind = |events: &[&str]| hear(events).1.expect_err("a fault").kind();
        assert_eq!(kind(&[text]), "cut off");
        assert_eq!(kind(&[text, end]), "no usage");
        assert_eq!(kind(&[text, r#"{"error":{"message":"x"}}"#]), "error in stream");
        assert_eq!(kind(&[text, "{nonsense"]), "error in stream");
    }

    #[test]
    fn an_address_is_checked_and_may_end_in_v1() {
        for url in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"] {
            assert_eq!(base_of(url).expect("good"), "http://h:1");
        }
        assert_eq!(base_of("https://h/api/v1").expect("good"), "https://h/api");
        for url in ["h:1", "ftp://h", "", "http://", "/v1"] {
            assert!(base_of(url).expect_err(url).to_string().contains("http://127.0.0.1:8080"), "{url}");
        }
    }
}
