use gfn::{Error, Result};
use serde::Serialize;

/// An encoding of a number from a range as a row of numbers between 0 and 1, like the function
/// `thermometer` of recursionpharma/gflownet. Evenly spaced marks divide the range into intervals, and the
/// row has an entry for each mark. The entry is the fraction of the interval from this mark to the next
/// mark that lies below the encoded number.
///
/// No interval starts at the last mark, so its entry is always 0. [`decode`](Self::decode) computes the
/// encoded number from a row.
///
/// ```
/// use gfn_extras::condition::Thermometer;
/// let thermometer = Thermometer::new(5, 0.0, 1.0)?;
/// let row = thermometer.encode(0.3);
/// assert!(row.iter().zip([1.0, 0.2, 0.0, 0.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-12));
/// assert!((thermometer.decode(&row) - 0.3).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Thermometer {
    bins: usize,
    least: f64,
    most: f64,
}

impl Thermometer {
    /// Creates a thermometer with `bins` marks over the range from `least` to `most`.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than 2 marks, and unless `least` is below `most` and both are finite.
    pub fn new(bins: usize, least: f64, most: f64) -> Result<Self> {
        if bins < 2 {
            return Err(Error::config("a thermometer's marks", bins, "at least 2 marks"));
        }
        if least < most && (most - least).is_finite() {
            Ok(Self { bins, least, most })
        } else {
            Err(Error::config(
                "a thermometer's range",
                format!("{least} to {most}"),
                "two finite numbers, the smaller one first",
            ))
        }
    }

    /// Returns the number of marks that divide the thermometer's range, which is also the number of entries
    /// of an encoded number's row.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins
    }

    fn gap(&self) -> f64 {
        (self.most - self.least) / (self.bins - 1) as f64
    }

    /// Encodes a number as a row with an entry for each mark on the thermometer's range. A number outside of
    /// the thermometer's range is clamped first.
    #[must_use]
    pub fn encode(&self, value: f64) -> Vec<f64> {
        let filled = (value.clamp(self.least, self.most) - self.least) / self.gap();
        (0..self.bins).map(|mark| (filled - mark as f64).clamp(0.0, 1.0)).collect()
    }

    /// Returns the number that a row encodes.
    #[must_use]
    pub fn decode(&self, row: &[f64]) -> f64 {
        self.least + row.iter().sum::<f64>() * self.gap()
    }
}

/// The encoding of a number for a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Encoding {
    /// The number itself, unchanged.
    Number,
    /// A row of numbers, as [`Thermometer::encode`] returns it. The thermometer's range is that of the
    /// number's distribution.
    Thermometer {
        /// The number of marks that divide the thermometer's range, which is also the number of entries of
        /// the row.
        bins: usize,
    },
}

/// An encoding of numbers: a thermometer together with its range, or `None` if numbers aren't changed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Codec(Option<Thermometer>);

impl Codec {
    pub(super) fn new(encoding: Encoding, least: f64, most: f64) -> Result<Self> {
        match encoding {
            Encoding::Number => Ok(Self(None)),
            Encoding::Thermometer { bins } => {
                Thermometer::new(bins, least, most).map(|thermometer| Self(Some(thermometer)))
            }
        }
    }

    pub(super) fn width(&self) -> usize {
        self.0.map_or(1, |thermometer| thermometer.bins())
    }

    pub(super) fn push(&self, value: f64, out: &mut Vec<f64>) {
        match self.0 {
            None => out.push(value),
            Some(thermometer) => out.extend(thermometer.encode(value)),
        }
    }

    pub(super) fn read(&self, row: &[f64]) -> f64 {
        self.0.map_or_else(|| row[0], |thermometer| thermometer.decode(row))
    }
}
