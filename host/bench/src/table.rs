//! The report as plain text.

use crate::report::{LaneReport, PhaseReport, Quantiles, Report};

const HEAD: [&str; 12] = [
    "",
    "done",
    "prefill t/s",
    "decode t/s",
    "per stream",
    "output t/s",
    "TTFT P50",
    "P95",
    "P99 ms",
    "ITL P50",
    "P95",
    "P99 ms",
];

/// A table for each workload; times in milliseconds, rates in tokens a second.
pub fn table(report: &Report) -> String {
    let mut out = format!(
        "{} · model {} · seed {}{}\n",
        report.url,
        report.model,
        report.seed,
        if report.quick { " · quick: not for comparison" } else { "" }
    );
    if !report.fixed_length {
        out.push_str("this server does not take ignore_eos: answers may have ended early\n");
    }
    for workload in &report.workloads {
        out.push_str(&format!("\n{}: {}\n", workload.name, workload.about));
        out.push_str(&aligned(&rows(&workload.phases)));
        for phase in &workload.phases {
            for note in notes(&workload.phases, phase) {
                out.push_str(&format!("  {note}\n"));
            }
        }
        let slo = workload.slo;
        out.push_str(&format!("  good: TTFT ≤ {} ms and ITL P95 ≤ {} ms\n", slo.ttft_ms, slo.itl_ms));
    }
    out
}

fn rows(phases: &[PhaseReport]) -> Vec<Vec<String>> {
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for phase in phases {
        for lane in &phase.lanes {
            rows.push(row(&label(phases, phase, lane), lane));
        }
    }
    rows
}

/// A lane's name, with its phase's where there are several.
pub(crate) fn label(phases: &[PhaseReport], phase: &PhaseReport, lane: &LaneReport) -> String {
    if phases.len() == 1 { lane.name.clone() } else { format!("{}: {}", phase.name, lane.name) }
}

fn row(label: &str, lane: &LaneReport) -> Vec<String> {
    let times = |quantiles: &Option<Quantiles>| match quantiles {
        Some(q) => [q.p50, q.p95, q.p99].map(number),
        None => [const { String::new() }; 3],
    };
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    let mut row = vec![
        label.to_owned(),
        format!("{}/{}", lane.served, lane.requests),
        optional(lane.prefill_tokens_per_s),
        optional(lane.decode_tokens_per_s),
        optional(lane.stream_tokens_per_s),
        number(lane.output_tokens_per_s),
    ];
    row.extend(times(&lane.ttft_ms));
    row.extend(times(&lane.itl_ms));
    row
}

/// What a table has no room for, one line each.
pub(crate) fn notes(phases: &[PhaseReport], phase: &PhaseReport) -> Vec<String> {
    let mut notes = Vec::new();
    for lane in &phase.lanes {
        let mut facts = vec![format!(
            "{} prompt tokens ({} cached), {} output tokens",
            lane.prompt_tokens, lane.cached_tokens, lane.output_tokens
        )];
        facts.extend(lane.end_to_end_ms.as_ref().map(|q| format!("end to end P95 {} ms", number(q.p95))));
        facts.extend(lane.all_first_ms.map(|ms| format!("all had a first token after {} ms", number(ms))));
        facts.push(format!("good {:.0} %, {} a second", lane.good_share * 100.0, number(lane.good_per_s)));
        facts.extend(lane.errors.iter().map(|(kind, count)| format!("{count} × {kind}")));
        notes.push(format!("{}: {}", label(phases, phase, lane), facts.join("; ")));
        notes.extend(lane.first_error.iter().map(|error| format!("first error: {error}")));
    }
    notes.extend(phase.resident_peak_mib.map(|mib| format!("resident memory: at most {} MiB", number(mib))));
    let waste: Vec<String> =
        phase.waste.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
    if !waste.is_empty() {
        notes.push(format!("by the server's own count: {}", waste.join(", ")));
    }
    notes
}

/// Three digits, or all of a larger number's.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if v == 0.0 || v.abs() >= 100.0 => format!("{v:.0}"),
        v if v.abs() >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The first column to the left, the others to the right, without columns that are empty in every row.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let used = |column: &usize| *column == 0 || rows.iter().skip(1).any(|row| !row[*column].is_empty());
    let widths: Vec<(usize, usize)> = (0..columns)
        .filter(used)
        .map(|column| {
            let width = rows.iter().map(|row| row[column].chars().count()).max();
            (column, width.unwrap_or(0))
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let cells = widths.iter().map(|(column, width)| match column {
            0 => format!("  {:<width$}", row[0]),
            _ => format!("  {:>width$}", row[*column]),
        });
        out.push_str(cells.collect::<String>().trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::report;

    #[test]
    fn numbers_have_three_digits() {
        let shown: Vec<String> = [0.0, 0.123, 1.234, 12.34, 123.4, 1234.5, f64::NAN].map(number).to_vec();
        assert_eq!(shown, ["0", "0.12", "1.23", "12.3", "123", "1234", "NaN"]);
    }

    #[test]
    fn columns_line_up_and_empty_ones_are_left_out() {
        let rows = [["", "done", "x", "t/s"], ["ä", "1/1", "", "5"], ["lane", "12/12", "", "1234"]];
        let rows: Vec<Vec<String>> = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        assert_eq!(aligned(&rows), "         done   t/s\n  ä       1/1     5\n  lane  12/12  1234\n");
    }

    #[test]
    fn a_report_names_what_ran_and_what_failed() {
        let text = table(&report());
        for words in ["http://h:1 · model m · seed 7", "tiny: Two streams", "2/3", "1 × status 429", "busy"]
        {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
    }
}
