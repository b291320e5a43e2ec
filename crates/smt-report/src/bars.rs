// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bars from zero, one below the other, as SVG.

use crate::number;
use crate::svg::Svg;

/// Values that are compared.
#[derive(Clone, Debug)]
pub struct Bars {
    /// A description of the bars, for readers who cannot see them.
    pub title: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The name of the bar, in few letters.
    pub name: String,
    /// Which of the page's colours it has.
    pub color: usize,
    /// Its length, not negative.
    pub value: f64,
}

impl Bars {
    /// The element.
    pub fn svg(&self) -> String {
        let values = self.bars.iter().map(|bar| bar.value);
        let most = values.fold(f64::MIN_POSITIVE, f64::max);
        let height = 2.0 * MARGIN + PITCH * self.bars.len() as f64;
        let mut svg = Svg::new(WIDTH, height, &self.title);
        for (place, bar) in self.bars.iter().enumerate() {
            let top = MARGIN + PITCH * place as f64;
            let width = bar.value / most * (WIDTH - LEFT - VALUE_WIDTH);
            svg.text((LEFT - 6.0, top + 11.0), "end", &bar.name);
            let class = format!("c{}", bar.color);
            svg.rectangle(&class, (LEFT, top), (width, THICKNESS));
            let value = number(bar.value);
            svg.text((LEFT + width + 5.0, top + 11.0), "start", &value);
        }
        svg.end()
    }
}

const WIDTH: f64 = 640.0;
/// Names stand left of it.
const LEFT: f64 = 160.0;
/// A value at the end of a bar.
const VALUE_WIDTH: f64 = 70.0;
const MARGIN: f64 = 5.0;
/// From a bar to the next.
const PITCH: f64 = 18.0;
const THICKNESS: f64 = 14.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_takes_all_room_and_the_others_their_share() {
        let bar = |value| Bar { name: "a<b".to_owned(), color: 1, value };
        let bars = Bars { title: "t".to_owned(), bars: vec![bar(50.0), bar(100.0), bar(0.0)] };
        let svg = bars.svg();
        for width in ["\"205.0\"", "\"410.0\"", "\"0.0\""] {
            assert!(svg.contains(&format!("width={width}")), "{svg}");
        }
        assert!(svg.contains("a&lt;b") && svg.contains("class=\"c1\""), "{svg}");
    }
}
