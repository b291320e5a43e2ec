// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An axis of a plot: from values to places, and where its ticks are.

use crate::number;

/// An axis of a [`Plot`](crate::Plot).
#[derive(Clone, Debug)]
pub struct Axis {
    pub(crate) label: String,
    /// Values and their labels, ascending.
    pub(crate) ticks: Vec<(f64, String)>,
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// From 0 to at least `most`, which is not negative.
    pub fn linear(label: &str, most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = step(most / 5.0);
        let count = (most / step).ceil();
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let tick = |number: u32| {
            let value = f64::from(number) * step;
            (value, format!("{value:.decimals$}"))
        };
        Self {
            label: label.to_owned(),
            ticks: (0..=count as u32).map(tick).collect(),
            low: 0.0,
            high: count * step,
            is_logarithmic: false,
        }
    }

    /// From at most `least` to at least `most`, by factors: both ends are 1, 2 or 5 times a power
    /// of ten.
    pub fn logarithmic(label: &str, least: f64, most: f64) -> Self {
        // From a thousandth to beyond any rate there is.
        let powers = (-3..=12).map(|exponent| 10_f64.powi(exponent));
        let values: Vec<f64> =
            powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * power)).collect();
        let first = values.iter().rposition(|value| *value <= least);
        let values = &values[first.unwrap_or(0)..];
        let last = values.iter().skip(1).position(|value| *value >= most);
        let values = &values[..last.map_or(values.len(), |last| last + 2)];
        let (low, high) = (values[0], values[values.len() - 1]);
        // Three ticks a decade are too many for more than three decades.
        let is_told = |value: f64| high <= 1_000.0 * low || value.log10().fract() == 0.0;
        let told = values.iter().copied().filter(|value| is_told(*value));
        Self {
            label: label.to_owned(),
            ticks: told.map(|value| (value, tick_name(value))).collect(),
            low,
            high,
            is_logarithmic: true,
        }
    }

    /// By factors over these values, with a tick at each of them.
    pub fn logarithmic_over(label: &str, values: &[f64]) -> Self {
        let mut told: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
        told.sort_by(f64::total_cmp);
        told.dedup();
        let (low, high) = match told[..] {
            [low, .., high] => (low, high),
            // Never without a length.
            [alone] => (alone / 2.0, alone * 2.0),
            [] => (0.5, 2.0),
        };
        Self {
            label: label.to_owned(),
            ticks: told.into_iter().map(|value| (value, number(value))).collect(),
            low,
            high,
            is_logarithmic: true,
        }
    }

    /// From 0 to 1, with these ticks.
    pub fn shares(label: &str, ticks: Vec<(f64, String)>) -> Self {
        Self { label: label.to_owned(), ticks, low: 0.0, high: 1.0, is_logarithmic: false }
    }

    /// The place of a value, 0 at the beginning of the axis and 1 at its end; a value beyond is at
    /// the end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = match self.is_logarithmic {
            false => (value - self.low) / (self.high - self.low),
            true => (value / self.low).log10() / (self.high / self.low).log10(),
        };
        if place.is_nan() {
            return 0.0;
        }
        place.clamp(0.0, 1.0)
    }
}

/// The label at a tick of a logarithmic axis, which is a round number.
fn tick_name(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", value / 1e6),
        1e5.. => format!("{}k", value / 1e3),
        _ => format!("{value}"),
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(steps[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_cover_the_most() {
        for (most, expected) in [
            (10.0, &["0", "2", "4", "6", "8", "10"][..]),
            (7.1, &["0", "2", "4", "6", "8"]),
            (0.31, &["0.0", "0.1", "0.2", "0.3", "0.4"]),
            (43.0, &["0", "10", "20", "30", "40", "50"]),
            (0.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ] {
            let axis = Axis::linear("", most);
            assert_eq!(names(&axis), expected, "{most}");
            assert!(axis.high >= most);
        }
    }

    #[test]
    fn logarithmic_ticks_go_by_factors() {
        assert_eq!(names(&Axis::logarithmic("", 1.0, 1.5)), ["1", "2"]);
        assert_eq!(names(&Axis::logarithmic("", 1.0, 13.0)), ["1", "2", "5", "10", "20"]);
        assert_eq!(names(&Axis::logarithmic("", 1.0, 3_000.0)), ["1", "10", "100", "1000"]);
        assert_eq!(Axis::logarithmic("", 1.0, 3_000.0).high, 5_000.0);
        assert_eq!(names(&Axis::logarithmic("", 0.34, 3.0)), ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(Axis::logarithmic("", 0.0, 3.0).low, 0.001);
    }

    #[test]
    fn an_axis_over_values_has_a_tick_at_each() {
        let axis = Axis::logarithmic_over("", &[64.0, 1.0, 64.0, 0.0, 1_024.0]);
        assert_eq!(names(&axis), ["1", "64", "1024"]);
        assert_eq!((axis.low, axis.high), (1.0, 1_024.0));
        let alone = Axis::logarithmic_over("", &[64.0]);
        assert_eq!((alone.low, alone.high), (32.0, 128.0));
        assert!(Axis::logarithmic_over("", &[]).ticks.is_empty());
    }

    #[test]
    fn large_ticks_have_short_names() {
        assert_eq!(
            names(&Axis::logarithmic("", 80_000.0, 3e6)),
            ["50000", "100k", "200k", "500k", "1M", "2M", "5M"]
        );
    }

    #[test]
    fn values_have_their_places_and_none_is_outside() {
        let linear = Axis::linear("", 10.0);
        assert_eq!(
            [0.0, 5.0, 10.0, 20.0, -1.0].map(|value| linear.place(value)),
            [0.0, 0.5, 1.0, 1.0, 0.0]
        );
        let logarithmic = Axis::logarithmic("", 1.0, 100.0);
        assert_eq!(
            [1.0, 10.0, 100.0, 0.5, 0.0].map(|value| logarithmic.place(value)),
            [0.0, 0.5, 1.0, 0.0, 0.0]
        );
        assert_eq!(logarithmic.place(f64::NAN), 0.0);
    }
}
