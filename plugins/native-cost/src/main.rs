//! What the shipped policies' functions cost natively: `cargo run --release -p native-cost`, in `plugins/`.
//!
//! The inputs are those of `cargo run --release -p jackfield-policy --example call_cost`, which measures the same calls as
//! components, instance and checks included.

use std::path::Path;
use std::time::Instant as Clock;

use compress_courtesy::CompressCourtesy;
use jackfield_sdk::compression::{Budget, Compressor, Part};
use jackfield_sdk::output_filtering::{Hit, OutputFilter, Window};
use jackfield_sdk::routing::{Mode, Request, Router, Target};
use jackfield_sdk::slot_extraction::{Dialog, SlotExtractor};
use jackfield_sdk::{Instant, Message, Policy, Role, Span, Turn};
use mask_secrets::MaskSecrets;
use regex::Regex;
use route_by_intent::RouteByIntent;
use slots_orders::SlotsOrders;

const CALLS: usize = 2000;
const TEXT: &str = "您好，请问一下，我昨天的订单 AB-123456 到哪里了？麻烦您帮我查一下，谢谢！My card is 4111 1111 1111 1111.";

fn main() -> Result<(), String> {
    println!("{:<28} {:>9} {:>9} {:>9}", "call", "P50 µs", "P99 µs", "max µs");
    extract()?;
    route()?;
    compress()?;
    review()
}

fn extract() -> Result<(), String> {
    let policy: SlotsOrders = configured("slots-orders")?;
    let recent = [message()];
    let dialog = Dialog { state: String::new(), slots: vec![], schema: 0 };
    time("slots-orders extract", || policy.extract(&turn(), &recent, &dialog).map(drop))
}

fn route() -> Result<(), String> {
    let policy: RouteByIntent = configured("route-by-intent")?;
    let request = Request {
        prompt_tokens: 60,
        messages: 1,
        last_user_text: TEXT.into(),
        slots: vec![],
        wanted_model: String::new(),
        max_tokens: None,
        attributes: vec![],
    };
    let target = Target {
        model: "default".into(),
        modes: vec![Mode::Generate],
        queue_depth: 0,
        free_blocks: 0,
        cached_tokens: 0,
        ttft_p50_ms: 0.0,
        attributes: vec![],
    };
    time("route-by-intent route", || policy.route(&turn(), &request, std::slice::from_ref(&target)).map(drop))
}

fn compress() -> Result<(), String> {
    let policy: CompressCourtesy = configured("compress-courtesy")?;
    let parts: Vec<Part> =
        (0..8).map(|_| Part { message: message(), protected: vec![], cached_bytes: 0 }).collect();
    let budget = Budget { keep_tokens: 200, prompt_tokens: 480, us_per_token: 2000.0 };
    time("compress-courtesy compress", || policy.compress(&turn(), &parts, &budget).map(drop))
}

fn review() -> Result<(), String> {
    let policy: MaskSecrets = configured("mask-secrets")?;
    for count in [1, 64] {
        let windows: Vec<Window> = (0..count).map(|id| window(&policy, id)).collect::<Result<_, _>>()?;
        time(&format!("mask-secrets review, {count}"), || policy.review(&windows).map(drop))?;
    }
    Ok(())
}

fn window(policy: &MaskSecrets, stream_id: u32) -> Result<Window, String> {
    let mut hits = Vec::new();
    for (index, watch) in (0..).zip(policy.interests().watches) {
        let regex = Regex::new(&watch.regex).map_err(|error| error.to_string())?;
        hits.extend(regex.find_iter(TEXT).map(|found| Hit {
            watch: index,
            at: Span::new(found.range()),
            cut: false,
        }));
    }
    hits.sort_by_key(|hit| hit.at.start);
    Ok(Window {
        stream_id,
        sent_tail: String::new(),
        pending: TEXT.into(),
        hits,
        tokens: vec![],
        final_: true,
    })
}

/// The policy with its shipped rules.
fn configured<P: Policy>(folder: &str) -> Result<P, String>
where
    P::Config: for<'a> serde::Deserialize<'a>,
{
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join("rules.toml");
    let rules = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    P::configure(toml::from_str(&rules).map_err(|error| error.to_string())?)
}

fn time(what: &str, call: impl Fn() -> Result<(), String>) -> Result<(), String> {
    let mut micros = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begun = Clock::now();
        call()?;
        micros.push(begun.elapsed().as_nanos() as f64 / 1000.0);
    }
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
    println!("{what:<28} {:>9.1} {:>9.1} {:>9.1}", at(0.5), at(0.99), at(1.0));
    Ok(())
}

fn message() -> Message {
    Message { role: Role::User, text: TEXT.into() }
}

fn turn() -> Turn {
    Turn {
        id: String::new(),
        tenant: String::new(),
        session: None,
        task: None,
        locale: String::new(),
        now: Instant { unix_ms: 0.0, utc_offset_minutes: 0 },
        seed: 0,
        headers: vec![],
        attributes: vec![],
    }
}
