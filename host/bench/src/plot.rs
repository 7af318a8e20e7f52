//! Line plots as inline SVG. Colours come from the page, so that they follow its light or dark dress.

use crate::html::escape;

// About as large as it is shown, so that its text has the size of the page's.
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// A line of so few points shows them: where there are gaps, and where it is a single one.
const FEW: usize = 40;

/// A named line through points that ascend in x.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// The axis of several plots that are looked at together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Across {
    pub(crate) end: f64,
    pub(crate) unit: &'static str,
}

/// A figure with its title, axes from 0, and a legend when there are several lines. Empty when there is nothing to show.
pub(crate) fn lines(title: &str, across: Across, lines: &[Line]) -> String {
    let lines: Vec<&Line> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    if lines.is_empty() || across.end <= 0.0 {
        return String::new();
    }
    let most = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
    let up = Ticks::below(most);
    let top = up.top(most);
    let place = |x: f64, y: f64| {
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        (LEFT + x / across.end * wide, HEIGHT - BOTTOM - y / top * high)
    };
    let mut svg = format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\">",
        escape(title)
    );
    for value in up.upto(top) {
        let ((_, y), right, before) = (place(0.0, value), WIDTH - RIGHT, LEFT - 6.0);
        svg.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{before}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y + 4.0,
            up.label(value)
        ));
    }
    let along = Ticks::below(across.end);
    for value in along.upto(across.end) {
        let is_last = value + along.step > across.end * (1.0 + 1e-9);
        let unit = if is_last { format!(" {}", escape(across.unit)) } else { String::new() };
        let anchor = if value > 0.9 * across.end { "end" } else { "middle" };
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}{unit}</text>",
            place(value, 0.0).0,
            HEIGHT - 8.0,
            along.label(value)
        ));
    }
    for (index, line) in lines.iter().enumerate() {
        let at: Vec<(f64, f64)> = line.points.iter().map(|&(x, y)| place(x, y)).collect();
        let points: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let class = format!("c{}", index % 6);
        svg.push_str(&format!("<polyline class=\"line {class}\" points=\"{}\"/>", points.join(" ")));
        for (x, y) in at.iter().filter(|_| at.len() <= FEW) {
            svg.push_str(&format!("<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>"));
        }
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

/// Marks of an axis, at multiples of 1, 2 or 5 times a power of ten.
struct Ticks {
    step: f64,
}

impl Ticks {
    /// At most five up to `most`, the one at 0 apart.
    fn below(most: f64) -> Ticks {
        if most <= 0.0 || !most.is_finite() {
            return Ticks { step: 1.0 };
        }
        let power = 10f64.powf((most / 5.0).log10().floor());
        let enough = |step: &f64| step * 5.0 >= most * (1.0 - 1e-9);
        Ticks {
            step: [1.0, 2.0, 5.0].map(|step| step * power).into_iter().find(enough).unwrap_or(10.0 * power),
        }
    }

    /// The first mark that nothing is above.
    fn top(&self, most: f64) -> f64 {
        (most / self.step - 1e-9).ceil().max(1.0) * self.step
    }

    fn upto(&self, end: f64) -> impl Iterator<Item = f64> {
        let step = self.step;
        (0..=(end / step + 1e-9) as u32).map(move |index| f64::from(index) * step)
    }

    fn label(&self, value: f64) -> String {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_plain_numbers() {
        let axis = |most: f64| {
            let ticks = Ticks::below(most);
            ticks.upto(ticks.top(most)).map(|value| ticks.label(value)).collect::<Vec<_>>().join(" ")
        };
        for (most, expected) in [
            (0.0, "0 1"),
            (1.0, "0.0 0.2 0.4 0.6 0.8 1.0"),
            (3.5, "0 1 2 3 4"),
            (5.0, "0 1 2 3 4 5"),
            (23.0, "0 5 10 15 20 25"),
            (450.0, "0 100 200 300 400 500"),
            (2460.0, "0 500 1000 1500 2000 2500"),
            (0.013, "0.000 0.005 0.010 0.015"),
        ] {
            assert_eq!(axis(most), expected, "{most}");
        }
    }

    #[test]
    fn points_lie_between_the_axes() {
        let line = |name: &str| Line { name: name.into(), points: vec![(0.0, 0.0), (10.0, 100.0)] };
        let across = Across { end: 10.0, unit: "s" };
        let svg = lines("a < b", across, &[line("one"), line("two")]);
        assert!(svg.contains("points=\"44.0,154.0 368.0,10.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("</i>two</span>"), "{svg}");
        assert!(svg.contains(">10 s</text>") && svg.matches("<circle").count() == 4, "{svg}");
        assert_eq!(lines("none", across, &[Line { name: String::new(), points: Vec::new() }]), "");
    }
}
