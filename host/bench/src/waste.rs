//! What a phase cost beyond its work, as the server's `/metrics` tells it.

use std::collections::BTreeMap;

/// A figure, the samples it is the sum of, and what the sample's labels must contain.
const FIGURES: [(&str, &[&str], &str); 6] = [
    ("cached tokens", &["jackfield_prefix_hit_tokens_total", "vllm:prefix_cache_hits_total"], ""),
    ("computed tokens", &["jackfield_computed_tokens_total"], ""),
    ("recomputed tokens", &["jackfield_recomputed_tokens_total"], ""),
    ("preemptions", &["jackfield_preemptions_total", "vllm:num_preemptions_total"], ""),
    ("evicted blocks", &["jackfield_evicted_blocks_total"], ""),
    ("rejected requests", &["jackfield_http_requests_total"], "status=\"429\""),
];

/// Figures by name.
pub(crate) type Figures = BTreeMap<String, f64>;

/// The figures that this exposition text has. A family that is there with no matching series counts 0: its counter has
/// not been needed yet.
pub(crate) fn read(exposition: &str) -> Figures {
    let mut found = Figures::new();
    for (figure, names, label) in FIGURES {
        for line in exposition.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            if !names.contains(&name) {
                continue;
            }
            let value = value.parse::<f64>().unwrap_or(0.0);
            let counted = if labels.contains(label) { value } else { 0.0 };
            *found.entry(figure.to_owned()).or_default() += counted;
        }
    }
    found
}

/// What came on top between two readings.
pub(crate) fn between(before: &Figures, after: &Figures) -> Figures {
    after
        .iter()
        .map(|(figure, value)| (figure.clone(), value - before.get(figure).copied().unwrap_or(0.0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP jackfield_preemptions x\n# TYPE jackfield_preemptions counter\n\
        jackfield_preemptions_total 2\njackfield_preemptions_total_of_others 9\n\
        jackfield_http_requests_total{route=\"/v1/completions\",status=\"200\"} 40\n\
        jackfield_http_requests_total{route=\"/v1/completions\",status=\"429\"} 3\n\
        jackfield_http_requests_total{route=\"/v1/chat/completions\",status=\"429\"} 4\n# EOF\n";

    #[test]
    fn figures_are_sums_of_their_series_and_differences_count() {
        let before = read(TEXT);
        let expected = [("preemptions", 2.0), ("rejected requests", 7.0)];
        assert_eq!(before, expected.map(|(name, value)| (name.to_owned(), value)).into());
        let after = read(&TEXT.replace("total 2", "total 7"));
        assert_eq!(between(&before, &after)["preemptions"], 5.0);
        assert_eq!(between(&before, &after)["rejected requests"], 0.0);
        assert_eq!(between(&Figures::new(), &before)["preemptions"], 2.0);
    }

    #[test]
    fn other_servers_and_no_exposition_at_all_give_what_there_is() {
        assert_eq!(read("vllm:num_preemptions_total{engine=\"0\"} 4.0\n")["preemptions"], 4.0);
        assert!(read("<html>not here</html>").is_empty());
    }
}
