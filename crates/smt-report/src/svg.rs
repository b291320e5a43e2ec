// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An SVG element as text, by which plots and bars draw.

use std::fmt::{Arguments, Write};

use crate::page::escaped;

/// An element that is being drawn.
pub(crate) struct Svg(String);

impl Svg {
    /// Begins an element of this size; `title` tells what it shows.
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Self {
        let title = escaped(title);
        Self(format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n"
        ))
    }

    /// A path from where `after_move` begins.
    pub(crate) fn path(&mut self, class: &str, after_move: Arguments<'_>) {
        self.put(format_args!("<path class=\"{class}\" d=\"M{after_move}\"/>"));
    }

    /// A rectangle.
    pub(crate) fn rectangle(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
    ) {
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\"/>"
        ));
    }

    /// Words that begin, end or have their middle at a place, as `anchor` says.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escaped(text);
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// The element.
    pub(crate) fn end(self) -> String {
        self.0 + "</svg>\n"
    }

    fn put(&mut self, element: Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "{element}");
    }
}
