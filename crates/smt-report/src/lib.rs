// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reports: measurements and simulations, as one page for readers.
//!
//! 1. A [`Plot`] has two [`Axis`]es and [`Line`]s; [`Bars`] compare values; both become SVG.
//! 2. A [`Table`] has texts, in HTML or Markdown.
//! 3. A [`Page`] holds all of it in one HTML file, which needs no network and no script;
//!    [`svg_file`] makes a file of a plot alone.
//!
//! Not here: the measurements, and the choice of those that are shown.

#![forbid(unsafe_code)]

mod axis;
mod bars;
mod page;
mod plot;
mod svg;
mod table;

pub use axis::Axis;
pub use bars::{Bar, Bars};
pub use page::{Figure, Page, svg_file};
pub use plot::{Line, Plot};
pub use table::{Table, number};
