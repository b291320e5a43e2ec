// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A plot as SVG: axes, grid, lines and their names. Colours are the page's: they follow its light or darkness.

use std::fmt::Write;

use super::axis::Axis;
use super::page::escaped;

/// A plot.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// What it shows, for those who cannot see it.
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

impl Plot {
    /// The element.
    pub(super) fn svg(&self) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(&self.title)
        );
        self.draw_grid(&mut svg);
        for (number, line) in self.lines.iter().enumerate() {
            self.draw_line(number, line, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_grid(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, name) in &self.x.ticks {
            let x = self.x_of(*value);
            put(
                svg,
                format_args!("<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/>"),
            );
            let y = bottom + 14.0;
            put(
                svg,
                format_args!(
                    "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                    escaped(name)
                ),
            );
        }
        for (value, name) in &self.y.ticks {
            let y = self.y_of(*value);
            put(
                svg,
                format_args!("<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>"),
            );
            let (x, y) = (LEFT - 5.0, y + 4.0);
            put(
                svg,
                format_args!(
                    "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>",
                    escaped(name)
                ),
            );
        }
        put(
            svg,
            format_args!("<path class=\"frame\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>"),
        );
        let (x, y) = ((LEFT + right) / 2.0, HEIGHT - 6.0);
        put(
            svg,
            format_args!(
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                escaped(&self.x.label)
            ),
        );
        put(
            svg,
            format_args!(
                "<text x=\"{LEFT}\" y=\"12\">{}</text>",
                escaped(&self.y.label)
            ),
        );
    }

    fn draw_line(&self, number: usize, line: &Line, svg: &mut String) {
        let place = |(x, y): &(f64, f64)| format!("{:.1} {:.1}", self.x_of(*x), self.y_of(*y));
        let points: Vec<String> = line.points.iter().map(place).collect();
        if !points.is_empty() {
            put(
                svg,
                format_args!(
                    "<path class=\"line c{number}\" d=\"M{}\"/>",
                    points.join("L")
                ),
            );
        }
        // Names stand at the right, above the plot, the first one outermost.
        let x = WIDTH - RIGHT - NAME_WIDTH * number as f64;
        let begins = x - 18.0;
        put(
            svg,
            format_args!("<path class=\"line c{number}\" d=\"M{begins:.1} 8H{x:.1}\"/>"),
        );
        let x = begins - 4.0;
        put(
            svg,
            format_args!(
                "<text x=\"{x:.1}\" y=\"12\" text-anchor=\"end\">{}</text>",
                escaped(&line.name)
            ),
        );
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - RIGHT - LEFT)
    }

    fn y_of(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - BOTTOM - TOP)
    }
}

fn put(svg: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = writeln!(svg, "{element}");
}

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 40.0;
/// A name and its line.
const NAME_WIDTH: f64 = 84.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> String {
        let line = Line {
            name: "a<b".to_owned(),
            points,
        };
        let plot = Plot {
            title: "\"t\"".to_owned(),
            x: Axis::linear("x", 10.0),
            y: Axis::linear("y", 10.0),
            lines: vec![line],
        };
        plot.svg()
    }

    #[test]
    fn corners_are_at_the_corners() {
        let svg = plot(vec![(0.0, 0.0), (10.0, 10.0), (5.0, 99.0)]);
        // Left and bottom, right and top; what is above the axis is at its end.
        assert!(
            svg.contains("d=\"M52.0 240.0L460.0 24.0L256.0 24.0\""),
            "{svg}"
        );
    }

    #[test]
    fn texts_cannot_become_elements() {
        let svg = plot(Vec::new());
        assert!(
            svg.contains("a&lt;b") && svg.contains("&quot;t&quot;"),
            "{svg}"
        );
        assert!(!svg.contains("d=\"M\""), "{svg}");
    }
}
