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
    let x = Axis::over(points().map(|point| point.0), (LEFT, WIDTH - RIGHT));
    let y = Axis::over(points().map(|point| point.1), (BOTTOM, TOP));
    let mut svg = open(title, HEIGHT);
    let ticks = points().map(|point| point.0).fold(Vec::new(), distinct);
    draw_grid(&mut svg, (&x, ticks), &y);
    let (middle, bottom) = ((LEFT + WIDTH - RIGHT) / 2.0, BOTTOM + 30.0);
    draw_text(&mut svg, (middle, bottom), "middle", x_label);
    for (place, line) in lines.iter().enumerate() {
        let path = line
            .points
            .iter()
            .map(|point| format!("{:.1} {:.1}", x.at(point.0), y.at(point.1)));
        let (color, path) = (line.color, path.collect::<Vec<_>>().join("L"));
        put(
            &mut svg,
            format_args!("<path class=\"line c{color}\" d=\"M{path}\"/>"),
        );
        let (left, top) = (WIDTH - RIGHT + 8.0, TOP + 13.0 * place as f64);
        put(
            &mut svg,
            format_args!("<path class=\"line c{color}\" d=\"M{left} {top:.1}h14\"/>"),
        );
        draw_text(&mut svg, (left + 18.0, top + 4.0), "start", &line.name);
    }
    svg + "</svg>\n"
}

/// A logarithmic axis, and where it begins and ends on the page.
struct Axis {
    low: f64,
    high: f64,
    ends: (f64, f64),
}

impl Axis {
    /// Never without a length.
    fn over(values: impl Iterator<Item = f64>, ends: (f64, f64)) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let (low, high) = positive.fold((f64::MAX, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low < high {
            (low, high)
        } else {
            (high.max(1.0) / 2.0, high.max(1.0) * 2.0)
        };
        Self { low, high, ends }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.ends.0 + part * (self.ends.1 - self.ends.0)
    }

    /// 1, 2, 5, 10, ... on the axis.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let first = self.low.log10().floor() as i32;
        let all = (first..first + 12)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        all.filter(|value| (self.low..=self.high).contains(value))
    }
}

fn draw_grid(svg: &mut String, (x, x_ticks): (&Axis, Vec<f64>), y: &Axis) {
    for value in x_ticks {
        let at = x.at(value);
        put(
            svg,
            format_args!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"),
        );
        draw_text(svg, (at, BOTTOM + 14.0), "middle", &number(value));
    }
    for value in y.ticks() {
        let (at, right) = (y.at(value), WIDTH - RIGHT);
        put(
            svg,
            format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>"),
        );
        draw_text(svg, (LEFT - 5.0, at + 4.0), "end", &number(value));
    }
}

fn draw_text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = escaped(text);
    put(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"),
    );
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
        draw_text(&mut svg, (BAR_LEFT - 6.0, y + 11.0), "end", name);
        put(
            &mut svg,
            format_args!(
                "<rect class=\"c{color}\" x=\"{BAR_LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"14\"/>"
            ),
        );
        draw_text(
            &mut svg,
            (BAR_LEFT + width + 5.0, y + 11.0),
            "start",
            &number(*value),
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

fn distinct(mut seen: Vec<f64>, value: f64) -> Vec<f64> {
    if !seen.contains(&value) {
        seen.push(value);
    }
    seen
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
