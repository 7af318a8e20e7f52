//! Line plots as inline SVG. Colours come from the page, so that they follow its light or dark dress.

use crate::html::escape;
use crate::table::number;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 28.0;

/// A named line through points that ascend in x.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A figure with its title, axes from 0, and a legend when there are several lines. Empty when there is nothing to show.
pub(crate) fn lines(title: &str, x_unit: &str, lines: &[Line]) -> String {
    let lines: Vec<&Line> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    let most = |axis: fn(&(f64, f64)) -> f64| {
        lines.iter().flat_map(|line| &line.points).map(axis).fold(0.0, f64::max)
    };
    let (x_most, y_most) = (most(|point| point.0), round_up(most(|point| point.1)));
    if lines.is_empty() || x_most <= 0.0 {
        return String::new();
    }
    let place = |(x, y): (f64, f64)| {
        (LEFT + x / x_most * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / y_most * (HEIGHT - TOP - BOTTOM))
    };
    let mut svg = format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\">",
        escape(title)
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (x, y) = place((x_most * share, y_most * share));
        let (right, below) = (WIDTH - RIGHT, HEIGHT - 8.0);
        svg.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        ));
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            number(y_most * share)
        ));
        let unit = if step == 4 { format!(" {x_unit}") } else { String::new() };
        let anchor = if step == 4 { "end" } else { "middle" };
        svg.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"{anchor}\">{}{}</text>",
            number(x_most * share),
            escape(&unit)
        ));
    }
    for (index, line) in lines.iter().enumerate() {
        let points: Vec<String> =
            line.points.iter().map(|point| place(*point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        svg.push_str(&format!("<polyline class=\"line c{}\" points=\"{}\"/>", index % 6, points.join(" ")));
    }
    svg.push_str("</svg>");
    svg.push_str(&legend(&lines));
    svg.push_str("</figure>\n");
    svg
}

fn legend(lines: &[&Line]) -> String {
    if lines.len() < 2 {
        return String::new();
    }
    let entries = lines
        .iter()
        .enumerate()
        .map(|(index, line)| format!("<span><i class=\"c{}\"></i>{}</span> ", index % 6, escape(&line.name)));
    format!("<p class=\"legend\">{}</p>", entries.collect::<String>())
}

/// The next of 1, 2, 2.5, 5 times a power of ten, so that the axis has plain numbers.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0]
        .map(|step| step * power)
        .into_iter()
        .find(|top| *top >= value)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_plain_number() {
        for (value, expected) in
            [(0.0, 1.0), (1.0, 1.0), (1.1, 2.0), (23.0, 25.0), (450.0, 500.0), (600.0, 1000.0)]
        {
            assert!((round_up(value) - expected).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn points_lie_between_the_axes() {
        let line = |name: &str| Line { name: name.into(), points: vec![(0.0, 0.0), (10.0, 100.0)] };
        let svg = lines("a < b", "s", &[line("one"), line("two")]);
        assert!(svg.contains("points=\"52.0,172.0 548.0,12.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("</i>two</span>"), "{svg}");
        assert_eq!(lines("none", "s", &[Line { name: String::new(), points: Vec::new() }]), "");
    }
}
