//! The axis of a chart, which computes the positions of values, and the ticks with their labels.

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scale {
    /// A linear scale, on which equal differences have equal distances.
    #[default]
    Linear,
    /// A logarithmic scale, on which equal ratios have equal distances. Values of 0 or less aren't drawn.
    Log,
}

impl Scale {
    /// Returns the coordinate of a value on this scale: the value or its logarithm. Returns `None` if the
    /// scale can't show the value.
    pub(crate) fn coordinate(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => value.is_finite().then(|| value.clamp(-f64::MAX / 4.0, f64::MAX / 4.0)),
            // Values below 1e-300 aren't shown, because a power of ten that is much smaller is rounded to 0.
            Self::Log => (value.is_finite() && value >= 1e-300).then(|| value.log10()),
        }
    }
}

/// An axis that shows a range of values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    /// The low end of the range, as a coordinate: the value, or its logarithm on a logarithmic scale.
    low: f64,
    /// The high end of the range, as a coordinate: the value, or its logarithm on a logarithmic scale.
    high: f64,
    /// `true` if the values are whole numbers, such as counts. All ticks are then at whole numbers.
    is_whole: bool,
}

/// A tick of an axis with its label. `place` is its position, from 0 at the low end of the axis to 1 at the
/// high end.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tick {
    pub(crate) place: f64,
    pub(crate) label: String,
}

impl Axis {
    /// Creates an axis whose range includes all values that the scale can show. If `padded`, the range gets a
    /// margin.
    pub(crate) fn over(scale: Scale, values: impl Iterator<Item = f64>, padded: bool) -> Self {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        let mut is_whole = true;
        for c in values.filter_map(|value| scale.coordinate(value)) {
            (low, high, is_whole) = (low.min(c), high.max(c), is_whole && c.fract() == 0.0);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // Values that are all 0 or 1 may be shares instead of counts. Ticks are therefore at whole numbers
        // only if the range is at least 2.
        is_whole &= high - low >= 2.0;
        // If there is only one value, or if the range is too narrow for f64, the range is made wider, in
        // proportion to the size of the value.
        let size = low.abs().max(high.abs());
        if high - low <= 1e-9 * size.max(1e-290) {
            let half = if scale == Scale::Log { 0.5 } else { 0.05 * size.max(1e-290) };
            (low, high) = if size == 0.0 { (-1.0, 1.0) } else { (low - half, high + half) };
        }
        let room = if padded { 0.05 * (high - low) } else { 0.0 };
        Self { scale, low: low - room, high: high + room, is_whole }
    }

    /// Returns the position of a value, from 0 at the low end of the axis to 1 at the high end. Returns
    /// `None` if the scale can't show the value.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        Some((self.scale.coordinate(value)? - self.low) / self.length())
    }

    /// Returns the length of the range in coordinates: the difference of its ends, or of their logarithms on
    /// a logarithmic scale.
    pub(crate) fn length(&self) -> f64 {
        self.high - self.low
    }

    /// Returns about six labelled ticks at round values within the range.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        let values: Vec<(f64, String)> = match self.scale {
            Scale::Linear => self.multiples(self.low, self.high),
            Scale::Log if self.length() < 1.0 => self.multiples(10f64.powf(self.low), 10f64.powf(self.high)),
            Scale::Log => {
                let labelled: &[f64] = if self.length() < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let every = (self.length() / 6.0).ceil() as i32;
                let decades =
                    (self.low.floor() as i32..=self.high as i32).filter(|decade| decade % every == 0);
                let values = decades.flat_map(|decade| labelled.iter().map(move |m| m * 10f64.powi(decade)));
                values.map(|value| (value, label(value, value, value))).collect()
            }
        };
        let ticks =
            values.into_iter().filter_map(|(value, label)| Some(Tick { place: self.place(value)?, label }));
        ticks.filter(|tick| (-1e-9..=1.0 + 1e-9).contains(&tick.place)).collect()
    }

    /// Returns the multiples of a round step within a range, with their labels.
    fn multiples(&self, low: f64, high: f64) -> Vec<(f64, String)> {
        // The step is the largest of 1, 2 and 5 times a power of ten that divides the range into at least
        // four pieces. For whole numbers the step is at least 1.
        let rough = (high - low) / 4.0;
        let power = 10f64.powf(rough.log10().floor());
        let factor = [5.0, 2.0].into_iter().find(|factor| factor * power <= rough).unwrap_or(1.0);
        let step = (factor * power).max(if self.is_whole { 1.0 } else { 0.0 });
        let first = (low / step - 1e-9).ceil();
        // This step gives at most ten multiples. The clamp is needed only for ranges near the limits of f64.
        let n = ((high / step + 1e-9).floor() - first).clamp(0.0, 20.0) as u32;
        // Adding 0 turns -0 into 0, so that no label is "-0".
        let values = (0..=n).map(|i| (first + f64::from(i)) * step + 0.0);
        values.map(|value| (value, label(value, step, low.abs().max(high.abs())))).collect()
    }
}

/// Formats the label of a tick. The label has enough digits to distinguish the tick from the next tick, which
/// is `step` away. `largest` is the largest size of a value on the axis.
fn label(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if largest >= 1e5 || step < 1.5e-4 {
        let digits = (largest.log10().floor() - step.log10().floor()).clamp(0.0, 16.0) as usize;
        let written = format!("{value:.digits$e}");
        let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let short = mantissa.trim_end_matches('0').trim_end_matches('.');
        return format!("{}e{exponent}", if mantissa.contains('.') { short } else { mantissa });
    }
    let digits = (-step.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64], padded: bool) -> Vec<String> {
        let axis = Axis::over(scale, values.iter().copied(), padded);
        axis.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_stand_at_round_values() {
        assert_eq!(labels(Scale::Linear, &[0.0, 1.0], false), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(Scale::Linear, &[0.0, 5000.0], false),
            ["0", "1000", "2000", "3000", "4000", "5000"]
        );
        assert_eq!(labels(Scale::Linear, &[-1.0, 6.4], true), ["0", "2", "4", "6"]);
        assert_eq!(labels(Scale::Linear, &[1.0, 4.0], true), ["1", "2", "3", "4"], "whole numbers");
        assert_eq!(labels(Scale::Linear, &[0.0, 2e6], false), ["0", "5e5", "1e6", "1.5e6", "2e6"]);
        assert_eq!(labels(Scale::Log, &[1e-4, 1e3], false), ["1e-4", "0.01", "1", "100"]);
        assert_eq!(
            labels(Scale::Log, &[0.01, 1.0], false),
            ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
        );
        assert_eq!(
            labels(Scale::Log, &[0.25, 0.95], false),
            ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]
        );
    }

    #[test]
    fn values_that_cannot_be_shown_are_left_out() {
        let axis =
            Axis::over(Scale::Log, [0.0, -1.0, f64::NAN, f64::INFINITY, 10.0, 1000.0].into_iter(), false);
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.place(f64::NAN), None);
        assert!((axis.place(100.0).unwrap() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn any_range_has_a_few_ticks_in_order() {
        let cases: &[&[f64]] = &[
            &[],
            &[0.0],
            &[3.0],
            &[-7e300, 8e300],
            &[f64::MIN, f64::MAX],
            &[1e-300, 2e-300],
            &[1.0, 1.0 + 1e-12],
            &[1e9, 1e9 + 1.0],
            &[0.3, 0.31],
            &[f64::NAN],
            &[5e-324],
        ];
        for values in cases {
            for scale in [Scale::Linear, Scale::Log] {
                for padded in [false, true] {
                    let axis = Axis::over(scale, values.iter().copied(), padded);
                    let ticks = axis.ticks();
                    assert!((1..=40).contains(&ticks.len()), "{values:?} {scale:?}: {ticks:?}");
                    assert!(ticks.is_sorted_by(|a, b| a.place < b.place), "{values:?} {scale:?}: {ticks:?}");
                    assert!(
                        ticks.len() <= 11 && ticks.windows(2).all(|w| w[0].label != w[1].label),
                        "{ticks:?}"
                    );
                }
            }
        }
    }
}
