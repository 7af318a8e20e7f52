//! The report as one page: nothing is loaded from elsewhere, and it is readable in light and dark.

use crate::plot::{self, Across, Line};
use crate::report::{LaneReport, PhaseReport, Quantiles, Report, Window, WorkloadReport};
use crate::table::{label, notes, number};

const STYLE: &str = include_str!("page.css");

/// A page of its own.
pub fn html(report: &Report) -> String {
    let quick = if report.quick { "<p><b>A quick run: not for comparison.</b></p>" } else { "" };
    let fixed = if report.fixed_length {
        ""
    } else {
        "<p>This server does not take <code>ignore_eos</code>: answers may have ended early.</p>"
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{model} at {url}</title>\
         <style>{STYLE}</style></head>\n<body><h1>{model} at {url}</h1>\n\
         <p>Seed {seed}. Times are in milliseconds, rates in tokens a second; tokens are counted by the server.</p>\
         {quick}{fixed}\n{workloads}</body></html>\n",
        model = escape(&report.model),
        url = escape(&report.url),
        seed = report.seed,
        workloads = report.workloads.iter().map(workload).collect::<String>(),
    )
}

/// Text as it may stand in an element or in a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

fn workload(workload: &WorkloadReport) -> String {
    let phases: String = workload.phases.iter().map(|phase| self::phase(workload, phase)).collect();
    format!(
        "<section><h2>{}</h2><p>{}</p>\n{}\n<p class=\"note\">Good: TTFT ≤ {} ms and ITL P95 ≤ {} ms.</p>\n{phases}</section>\n",
        escape(&workload.name),
        escape(&workload.about),
        summary(workload),
        workload.slo.ttft_ms,
        workload.slo.itl_ms,
    )
}

fn summary(workload: &WorkloadReport) -> String {
    let rows = workload.phases.iter().flat_map(|phase| phase.lanes.iter().map(move |lane| (phase, lane)));
    let rows: String = rows.map(|(phase, lane)| row(&label(&workload.phases, phase, lane), lane)).collect();
    format!(
        "<div class=\"wide\"><table><thead><tr><th></th><th>done</th><th>prefill t/s</th><th>decode t/s</th>\
         <th>per stream</th><th>output t/s</th><th>TTFT P50</th><th>P95</th><th>P99</th><th>ITL P50</th><th>P95</th>\
         <th>P99</th><th>good</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn row(label: &str, lane: &LaneReport) -> String {
    let optional = |value: Option<f64>| value.map_or("–".to_owned(), number);
    let times = |quantiles: &Option<Quantiles>| {
        let of = |take: fn(&Quantiles) -> f64| optional(quantiles.as_ref().map(take));
        [of(|q| q.p50), of(|q| q.p95), of(|q| q.p99)]
    };
    let mut cells = vec![
        format!("{}/{}", lane.served, lane.requests),
        optional(lane.prefill_tokens_per_s),
        optional(lane.decode_tokens_per_s),
        optional(lane.stream_tokens_per_s),
        number(lane.output_tokens_per_s),
    ];
    cells.extend(times(&lane.ttft_ms));
    cells.extend(times(&lane.itl_ms));
    cells.push(format!("{:.0} %", lane.good_share * 100.0));
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr><th>{}</th>{cells}</tr>", escape(label))
}

fn phase(workload: &WorkloadReport, phase: &PhaseReport) -> String {
    let heading =
        if workload.phases.len() > 1 { format!("<h3>{}</h3>", escape(&phase.name)) } else { String::new() };
    let notes: String =
        notes(&workload.phases, phase).iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    let plots = [over_time(phase), distributions(phase)].concat();
    format!("{heading}<ul>{notes}</ul>\n<div class=\"plots\">{plots}</div>\n")
}

fn over_time(phase: &PhaseReport) -> String {
    let middle = |w: &Window| (w.from_s + (w.from_s + phase.window_s).min(phase.seconds)) / 2.0;
    let line = |name: &str, value: fn(&Window) -> Option<f64>| Line {
        name: name.to_owned(),
        points: phase.series.iter().filter_map(|w| Some((middle(w), value(w)?))).collect(),
    };
    // All with the same axis, so that what happened at one time is in one column.
    let across = Across { end: phase.seconds, unit: "s" };
    [
        plot::lines("Output tokens a second", across, &[line("", |w| Some(w.output_tokens_per_s))]),
        plot::lines("Requests in progress", across, &[line("", |w| Some(w.in_progress))]),
        plot::lines(
            "Time to first token, ms",
            across,
            &[line("P50", |w| w.ttft_p50_ms), line("P95", |w| w.ttft_p95_ms)],
        ),
        plot::lines("Time between deliveries, P95, ms", across, &[line("", |w| w.itl_p95_ms)]),
        plot::lines("Resident memory, MiB", across, &[line("", |w| w.resident_mib)]),
    ]
    .concat()
}

fn distributions(phase: &PhaseReport) -> String {
    let of = |take: fn(&LaneReport) -> &Option<Quantiles>| -> Vec<Line> {
        let curve = |lane: &LaneReport| Line {
            name: lane.name.clone(),
            points: take(lane)
                .iter()
                .flat_map(|q| q.curve.iter().enumerate().map(|(step, value)| (step as f64 * 5.0, *value)))
                .collect(),
        };
        phase.lanes.iter().map(curve).collect()
    };
    let across = Across { end: 100.0, unit: "%" };
    [
        plot::lines("Time to first token by percentile, ms", across, &of(|lane| &lane.ttft_ms)),
        plot::lines("Time between deliveries by percentile, ms", across, &of(|lane| &lane.itl_ms)),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::report;

    #[test]
    fn a_page_needs_nothing_from_elsewhere() {
        let page = html(&report());
        for word in ["src=", "<link", "@import", "url(", "<script"] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.contains("Output tokens a second") && page.contains("<polyline"));
    }

    #[test]
    fn what_comes_from_outside_is_text() {
        let mut report = report();
        report.model = "<img src='x'>&\"".into();
        report.workloads[0].phases[0].lanes[0].first_error = Some("<b>".into());
        let page = html(&report);
        assert!(!page.contains("<img") && !page.contains("<b>"));
        assert!(page.contains("&lt;img src=&#39;x&#39;&gt;&amp;&quot;"));
    }

    #[test]
    fn every_element_is_closed() {
        let page = html(&report());
        for element in ["section", "table", "tr", "td", "th", "ul", "li", "div", "figure", "svg", "p"] {
            let opened =
                page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
        }
    }
}
