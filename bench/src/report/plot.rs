// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A plot as SVG: lines over logarithmic axes, or bars. Colours are the page's.

use std::fmt::Write;

use super::page::escaped;
use super::table::number;

/// A line: its number among the peers, its name, its points.
pub(super) struct Line {
    pub(super) color: usize,
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines over two logarithmic axes.
pub(super) fn lines(title: &str, x_label: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let (x_low, x_high) = extremes(points().map(|point| point.0));
    let (y_low, y_high) = extremes(points().map(|point| point.1));
    let x_of = |x: f64| {
        LEFT + (x.max(x_low) / x_low).ln() / (x_high / x_low).ln() * (WIDTH - LEFT - RIGHT)
    };
    let y_of =
        |y: f64| BOTTOM - (y.max(y_low) / y_low).ln() / (y_high / y_low).ln() * (BOTTOM - TOP);
    let mut svg = open(title, HEIGHT);
    for x in points().map(|point| point.0).fold(Vec::new(), distinct) {
        let at = x_of(x);
        put(
            &mut svg,
            format_args!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"),
        );
        put(
            &mut svg,
            format_args!(
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                BOTTOM + 14.0,
                number(x)
            ),
        );
    }
    for y in decades(y_low, y_high) {
        let at = y_of(y);
        put(
            &mut svg,
            format_args!(
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{}\"/>",
                WIDTH - RIGHT
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 5.0,
                at + 4.0,
                number(y)
            ),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            BOTTOM + 30.0,
            escaped(x_label)
        ),
    );
    for (place, line) in lines.iter().enumerate() {
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(x, y)| format!("{:.1} {:.1}", x_of(*x), y_of(*y)))
            .collect();
        let (color, y) = (line.color, TOP + 13.0 * place as f64);
        put(
            &mut svg,
            format_args!("<path class=\"line c{color}\" d=\"M{}\"/>", path.join("L")),
        );
        put(
            &mut svg,
            format_args!(
                "<path class=\"line c{color}\" d=\"M{} {y:.1}h14\"/>",
                WIDTH - RIGHT + 8.0
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<text x=\"{}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT + 26.0,
                y + 4.0,
                escaped(&line.name)
            ),
        );
    }
    svg + "</svg>\n"
}

/// Bars from zero, one below the other.
pub(super) fn bars(title: &str, bars: &[(usize, String, f64)]) -> String {
    let most = bars
        .iter()
        .map(|bar| bar.2)
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = open(title, 10.0 + 18.0 * bars.len() as f64);
    for (place, (color, name, value)) in bars.iter().enumerate() {
        let (y, width) = (
            5.0 + 18.0 * place as f64,
            value / most * (WIDTH - BAR_LEFT - 70.0),
        );
        put(
            &mut svg,
            format_args!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                BAR_LEFT - 6.0,
                y + 11.0,
                escaped(name)
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<rect class=\"c{color}\" x=\"{BAR_LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"14\"/>"
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                BAR_LEFT + width + 5.0,
                y + 11.0,
                number(*value)
            ),
        );
    }
    svg + "</svg>\n"
}

fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(title)
    )
}

/// Never equal, so that the axis has a length.
fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::MAX, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low < high {
        (low, high)
    } else {
        (high.max(1.0) / 2.0, high.max(1.0) * 2.0)
    }
}

fn distinct(mut seen: Vec<f64>, value: f64) -> Vec<f64> {
    if !seen.contains(&value) {
        seen.push(value);
    }
    seen
}

/// 1, 2, 5, 10, ... between the two.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let all = (first..first + 12)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    all.filter(|value| (low..=high).contains(value)).collect()
}

fn put(svg: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = writeln!(svg, "{element}");
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 290.0;
const BAR_LEFT: f64 = 130.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_are_at_the_corners() {
        let line = Line {
            color: 0,
            name: "a<b".to_owned(),
            points: vec![(1.0, 1.0), (100.0, 10.0)],
        };
        let svg = lines("t", "x", &[line]);
        assert!(svg.contains("d=\"M56.0 290.0L490.0 14.0\""), "{svg}");
        assert!(svg.contains("a&lt;b"), "{svg}");
    }
}
