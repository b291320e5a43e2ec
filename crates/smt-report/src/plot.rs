// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A plot as SVG: axes, grid, lines and their names. Colours are the page's: they follow its
//! light or darkness.

use crate::axis::Axis;
use crate::svg::Svg;

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// A description of the plot, for readers who cannot see it.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// Drawn in this order.
    pub lines: Vec<Line>,
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name of the line, in few letters.
    pub name: String,
    /// Which of the page's colours it has.
    pub color: usize,
    /// Its corners.
    pub points: Vec<(f64, f64)>,
}

impl Plot {
    /// The element.
    pub fn svg(&self) -> String {
        let is_legend_above = self.lines.len() <= NAMES_ABOVE_MAX;
        let (width, height) = match is_legend_above {
            true => (WIDTH, HEIGHT),
            false => (WIDTH + LEGEND_WIDTH, HEIGHT.max(name_y(self.lines.len()))),
        };
        let mut svg = Svg::new(width, height, &self.title);
        self.draw_grid(&mut svg);
        for (place, line) in self.lines.iter().enumerate() {
            self.draw_line(line, &mut svg);
            match is_legend_above {
                true => draw_name_above(place, line, &mut svg),
                false => draw_name_beside(place, line, &mut svg),
            }
        }
        svg.end()
    }

    fn draw_grid(&self, svg: &mut Svg) {
        for (value, name) in &self.x.ticks {
            let x = self.x_of(*value);
            svg.path("grid", format_args!("{x:.1} {TOP}V{DOWN}"));
            svg.text((x, DOWN + 14.0), "middle", name);
        }
        for (value, name) in &self.y.ticks {
            let y = self.y_of(*value);
            svg.path("grid", format_args!("{LEFT} {y:.1}H{ACROSS}"));
            svg.text((LEFT - 5.0, y + 4.0), "end", name);
        }
        svg.path("frame", format_args!("{LEFT} {TOP}V{DOWN}H{ACROSS}"));
        let middle = (LEFT + ACROSS) / 2.0;
        svg.text((middle, HEIGHT - 6.0), "middle", &self.x.label);
        svg.text((LEFT, 12.0), "start", &self.y.label);
    }

    fn draw_line(&self, line: &Line, svg: &mut Svg) {
        let place = |(x, y): &(f64, f64)| format!("{:.1} {:.1}", self.x_of(*x), self.y_of(*y));
        let points: Vec<String> = line.points.iter().map(place).collect();
        if !points.is_empty() {
            let class = format!("line c{}", line.color);
            svg.path(&class, format_args!("{}", points.join("L")));
        }
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (ACROSS - LEFT)
    }

    fn y_of(&self, value: f64) -> f64 {
        DOWN - self.y.place(value) * (DOWN - TOP)
    }
}

/// At the right, above the plot, the first name outermost.
fn draw_name_above(place: usize, line: &Line, svg: &mut Svg) {
    let ends = ACROSS - NAME_WIDTH * place as f64;
    let begins = ends - 18.0;
    let class = format!("line c{}", line.color);
    svg.path(&class, format_args!("{begins:.1} 8H{ends:.1}"));
    svg.text((begins - 4.0, 12.0), "end", &line.name);
}

/// At the right of the plot, the first name uppermost.
fn draw_name_beside(place: usize, line: &Line, svg: &mut Svg) {
    let (left, y) = (ACROSS + 8.0, name_y(place));
    let class = format!("line c{}", line.color);
    svg.path(&class, format_args!("{left} {y:.1}h14"));
    svg.text((left + 18.0, y + 4.0), "start", &line.name);
}

/// Where a name beside the plot is.
fn name_y(place: usize) -> f64 {
    TOP + 4.0 + 13.0 * place as f64
}

/// Width of a plot without names at its right.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 280.0;
/// Where the axes begin, and where they end.
const LEFT: f64 = 52.0;
const ACROSS: f64 = WIDTH - 20.0;
const TOP: f64 = 24.0;
const DOWN: f64 = HEIGHT - 40.0;
/// More names than these stand at the right of the plot.
const NAMES_ABOVE_MAX: usize = 3;
/// A name above the plot, and its line.
const NAME_WIDTH: f64 = 84.0;
/// Names at the right of the plot.
const LEGEND_WIDTH: f64 = 160.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> String {
        let line = Line { name: "a<b".to_owned(), color: 0, points };
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
        // Left and bottom, right and top; a value above the axis is at its end.
        assert!(svg.contains("d=\"M52.0 240.0L460.0 24.0L256.0 24.0\""), "{svg}");
    }

    #[test]
    fn many_names_stand_beside_the_plot_and_few_above_it() {
        let line = |color| Line { name: format!("n{color}"), color, points: vec![(1.0, 1.0)] };
        let with = |count| {
            let plot = Plot {
                title: String::new(),
                x: Axis::linear("x", 10.0),
                y: Axis::linear("y", 10.0),
                lines: (0..count).map(line).collect(),
            };
            plot.svg()
        };
        assert!(with(3).contains("viewBox=\"0 0 480 280\""), "{}", with(3));
        assert!(with(4).contains("viewBox=\"0 0 640 280\""), "{}", with(4));
        assert!(with(4).contains(">n3</text>"));
        assert!(with(29).contains("viewBox=\"0 0 640 405\""), "{}", with(29));
    }

    #[test]
    fn texts_cannot_become_elements() {
        let svg = plot(Vec::new());
        assert!(svg.contains("a&lt;b") && svg.contains("&quot;t&quot;"), "{svg}");
        assert!(!svg.contains("d=\"M\""), "{svg}");
    }
}
