use gfn::condition::ConditionSource;
use gfn::tensor::{from_host, to_host};
use gfn::{Error, Result, Rng};
use serde::Serialize;
use tch::{Device, Tensor};

use super::encoding::Codec;
use super::{Directions, Encoding, Temperature};

/// The relative tolerance for condition vectors that were stored in single precision.
const ROUNDING_TOLERANCE: f64 = 1e-4;

/// A condition as plain numbers, before it is encoded as the vector that the network receives.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The exponent beta of the reward.
    pub beta: f64,
    /// The weight of each reward; the weights sum to 1.
    pub preferences: Vec<f64>,
    /// The goal direction in the space of objectives, a vector of length 1; `None` for a conditioning
    /// without a cone of goals.
    pub focus: Option<Vec<f64>>,
}

/// A cone of goals in the space of objectives. Objects outside of the cone get a fixed low log-reward (Roy
/// et al., *Goal-conditioned GFlowNets for Controllable Multi-Objective Molecular Design*, 2023).
///
/// Let c be the cosine of the angle between an object's vector of objectives and the goal direction. Inside
/// of the cone, c is at least `cosine`, and the reward is multiplied by `c^g`. The exponent g is chosen so
/// that this factor is `limit` on the cone's surface. Outside of the cone, the log-reward is `outside`.
///
/// On the cone's surface, the log-reward `beta * (ln R + ln limit)` must be above `outside` for the reward R
/// of every object. Otherwise, objects outside of the cone can have a larger reward than objects inside. With
/// the settings of [`new`](Self::new) and R below 1, beta must therefore be below 32. All objects outside of
/// the cone have the same log-reward, so the policy learns nothing until a sample is inside. If that takes
/// too long, begin with a wider cone. The cosine `cosine^k` and the limit `limit^k`, with k above 1, give a
/// wider cone with the same exponent g.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Focus {
    /// The distribution that goal directions are drawn from.
    pub directions: Directions,
    /// The cosine of the cone's half angle, above 0 and below 1.
    pub cosine: f64,
    /// The factor of the reward on the cone's surface, above 0 and at most 1.
    pub limit: f64,
    /// The log-reward of objects outside of the cone.
    pub outside: f64,
}

impl Focus {
    /// Creates a cone with the settings of recursionpharma/gflownet: a cosine of 0.98, a factor of 0.1 on
    /// the cone's surface, and a log-reward of -75 outside of the cone.
    #[must_use]
    pub fn new(directions: Directions) -> Self {
        Self { directions, cosine: 0.98, limit: 0.1, outside: -75.0 }
    }

    fn check(&self, n: usize) -> Result<()> {
        self.directions.check(n)?;
        let refuse = |setting, got: f64, expected| Err(Error::config(setting, got, expected));
        match () {
            () if !(self.cosine > 0.0 && self.cosine < 1.0) => {
                refuse("the cosine of a focus", self.cosine, "a number above 0 and below 1")
            }
            () if !(self.limit > 0.0 && self.limit <= 1.0) => {
                refuse("the factor on a focus' surface", self.limit, "a number above 0 and at most 1")
            }
            () if !self.outside.is_finite() => refuse(
                "the log-reward outside of a focus",
                self.outside,
                "a finite log-reward, because residuals must be finite",
            ),
            () => Ok(()),
        }
    }

    /// Returns the logarithm of the factor that multiplies an object's reward, or `None` if the object is
    /// outside of the cone. `cosine` is the cosine of the angle between the object's objectives and the
    /// goal direction.
    #[must_use]
    pub fn log_factor(&self, cosine: f64) -> Option<f64> {
        (cosine >= self.cosine).then(|| cosine.min(1.0).ln() * self.limit.ln() / self.cosine.ln())
    }
}

/// The distribution of the conditions of trajectories, and the encoding of a condition as a vector for a
/// network. The vector consists of beta (the exponent of the reward), the preferences (the weight of each
/// reward) and the goal direction of a [`Focus`], in this order. A part of the condition that is constant
/// has no entries in the vector.
///
/// By default, beta is 1 and the preferences are equal. The [module](super) has an example.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Conditioning {
    n_rewards: usize,
    temperature: (Temperature, Codec),
    preferences: (Directions, Codec),
    focus: Option<(Focus, Codec)>,
}

impl Conditioning {
    /// Creates a conditioning for `n_rewards` rewards. Beta and the preferences are constant until
    /// distributions are set.
    ///
    /// # Errors
    /// [`Error::Config`] if `n_rewards` is 0.
    pub fn new(n_rewards: usize) -> Result<Self> {
        if n_rewards == 0 {
            return Err(Error::config("rewards to be conditioned", "0", "at least 1"));
        }
        let plain = Codec::new(Encoding::Number, 0.0, 1.0)?;
        Ok(Self {
            n_rewards,
            temperature: (Temperature::Constant(1.0), plain),
            preferences: (Directions::Constant(vec![1.0; n_rewards]), plain),
            focus: None,
        })
    }

    /// Sets the distribution that beta is drawn from, and the encoding of beta. With `Encoding::Thermometer`,
    /// the range of the thermometer is the range of the distribution.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid distribution or thermometer.
    pub fn temperature(mut self, distribution: Temperature, encoding: Encoding) -> Result<Self> {
        let (least, most) = distribution.range()?;
        let encoding = if least < most { encoding } else { Encoding::Number };
        self.temperature = (distribution, Codec::new(encoding, least, most)?);
        Ok(self)
    }

    /// Sets the distribution that preferences are drawn from, and the encoding of their entries. A drawn
    /// vector is divided by its sum. With `Encoding::Thermometer`, the range of the thermometer is 0 to 1.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid distribution or thermometer.
    pub fn preferences(mut self, distribution: Directions, encoding: Encoding) -> Result<Self> {
        distribution.check(self.n_rewards)?;
        self.preferences = (distribution, Codec::new(encoding, 0.0, 1.0)?);
        Ok(self)
    }

    /// Adds a cone of goals, and sets the encoding of the entries of its goal direction. A drawn direction is
    /// divided by its length. With `Encoding::Thermometer`, the range of the thermometer is 0 to 1.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid cone or thermometer.
    pub fn focus(mut self, focus: Focus, encoding: Encoding) -> Result<Self> {
        focus.check(self.n_rewards)?;
        self.focus = Some((focus, Codec::new(encoding, 0.0, 1.0)?));
        Ok(self)
    }

    /// Returns the number of rewards.
    #[must_use]
    pub fn n_rewards(&self) -> usize {
        self.n_rewards
    }

    /// Returns the number of entries in a condition vector. Set a network's `n_conditions` to this number.
    #[must_use]
    pub fn width(&self) -> usize {
        self.widths().iter().sum()
    }

    /// Returns the settings of the cone of goals, if the conditioning has a cone.
    pub(super) fn cone(&self) -> Option<&Focus> {
        self.focus.as_ref().map(|(focus, _)| focus)
    }

    /// Returns how many entries of the condition vector encode beta, the preferences and the goal direction,
    /// as one number for each of the three.
    fn widths(&self) -> [usize; 3] {
        let width_of = |(distribution, codec): (&Directions, &Codec)| {
            if distribution.varies() { self.n_rewards * codec.width() } else { 0 }
        };
        let (temperature, codec) = &self.temperature;
        let varies = !matches!(temperature, Temperature::Constant(_));
        [
            if varies { codec.width() } else { 0 },
            width_of((&self.preferences.0, &self.preferences.1)),
            self.focus.as_ref().map_or(0, |(focus, codec)| width_of((&focus.directions, codec))),
        ]
    }

    /// Draws `n` conditions. Each part of a condition is drawn from its own distribution.
    #[must_use]
    pub fn conditions(&self, n: usize, rng: &mut Rng) -> Vec<Condition> {
        let one = |_| Condition {
            beta: self.temperature.0.draw(rng),
            preferences: divide_by_sum(&self.preferences.0.draw(self.n_rewards, rng)),
            focus: self.cone().map(|focus| normalize(&focus.directions.draw(self.n_rewards, rng))),
        };
        (0..n).map(one).collect()
    }

    /// Encodes conditions as vectors. Returns a tensor of doubles on the CPU, of shape `[n, width]`.
    /// Constant parts of a condition are ignored.
    ///
    /// # Errors
    /// [`Error::Config`] for a beta outside of its distribution's range; for preferences or a direction
    /// unless they have one number of 0 or more for each reward and aren't all 0; and for a condition
    /// without a goal direction if the conditioning has a cone of goals.
    pub fn encode(&self, conditions: &[Condition]) -> Result<Tensor> {
        let mut values = Vec::with_capacity(conditions.len() * self.width());
        let (least, most) = self.temperature.0.range()?;
        for condition in conditions {
            let refuse = |expected| Err(Error::config("a condition", format!("{condition:?}"), expected));
            let [beta, preferences, focus] = self.widths().map(|width| width > 0);
            if beta {
                if !(least..=most).contains(&condition.beta) {
                    return refuse("a condition whose beta is within the range of its distribution");
                }
                self.temperature.1.push(condition.beta, &mut values);
            }
            if preferences {
                Directions::Constant(condition.preferences.clone()).check(self.n_rewards)?;
                for x in divide_by_sum(&condition.preferences).into_iter() {
                    self.preferences.1.push(x, &mut values);
                }
            }
            if let (Some((_, codec)), true) = (&self.focus, focus) {
                let Some(direction) = &condition.focus else {
                    return refuse("a condition with a direction of focus");
                };
                Directions::Constant(direction.clone()).check(self.n_rewards)?;
                for x in normalize(direction).into_iter() {
                    codec.push(x, &mut values);
                }
            }
        }
        let size = [conditions.len() as i64, self.width() as i64];
        Ok(from_host(&values, tch::Kind::Double, Device::Cpu).view(size))
    }

    /// Decodes condition vectors of shape `[n, width]`. Apart from rounding, this is the inverse of
    /// [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`Error::Shape`] for a tensor of another shape than `[n, width]`.
    pub fn decode(&self, conditions: &Tensor) -> Result<Vec<Condition>> {
        let size = conditions.size();
        let width = self.width();
        let n = match size[..] {
            [n, w] if w == width as i64 => n as usize,
            _ => {
                return Err(Error::shape(
                    "condition vectors",
                    [size.first().copied().unwrap_or(0), width as i64],
                    size,
                    "give one row per object, of the width of this conditioning",
                ));
            }
        };
        let values = to_host(conditions);
        let (least, most) = self.temperature.0.range()?;
        let [of_beta, of_preferences, of_focus] = self.widths();
        let vector = |row: &[f64], (distribution, codec): (&Directions, &Codec)| match distribution {
            Directions::Constant(one) => one.clone(),
            // Rounding in single precision may cause small negative numbers, which are replaced by 0.
            _ => row.chunks_exact(codec.width()).map(|entry| codec.read(entry).max(0.0)).collect(),
        };
        let one = |k: usize| {
            let (beta, rest) = values[k * width..(k + 1) * width].split_at(of_beta);
            let (preferences, direction) = rest.split_at(of_preferences);
            Condition {
                beta: match self.temperature.0 {
                    Temperature::Constant(beta) => beta,
                    // Rounding may have moved beta beyond the range of its distribution. Such a beta
                    // couldn't be encoded again, so it is clamped.
                    _ => self.temperature.1.read(beta).clamp(least, most),
                },
                preferences: divide_by_sum(&vector(preferences, (&self.preferences.0, &self.preferences.1))),
                focus: self.focus.as_ref().map(|(focus, codec)| {
                    normalize(&vector(&direction[..of_focus], (&focus.directions, codec)))
                }),
            }
        };
        Ok((0..n).map(one).collect())
    }
}

impl ConditionSource for Conditioning {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<Tensor> {
        self.encode(&self.conditions(n, rng))
    }

    /// Returns an error for a vector that isn't the encoding of any condition. Apart from rounding in single
    /// precision, decoding a valid vector and encoding it again must give the same vector.
    fn check(&self, conditions: &Tensor) -> Result<()> {
        let again = self.encode(&self.decode(conditions)?)?;
        let off = |(got, meant): (f64, f64)| (got - meant).abs() > ROUNDING_TOLERANCE * meant.abs().max(1.0);
        let odd = to_host(conditions).into_iter().zip(to_host(&again)).find(|&pair| off(pair));
        odd.map_or(Ok(()), |(got, meant)| {
            let expected =
                "a vector that this conditioning encodes: the nearest one has another number there";
            Err(Error::config(
                "a condition vector",
                format!("a vector with {got} instead of {meant}"),
                expected,
            ))
        })
    }
}

/// Divides a vector by the sum of its entries.
fn divide_by_sum(vector: &[f64]) -> Vec<f64> {
    let sum: f64 = vector.iter().sum();
    vector.iter().map(|x| x / sum).collect()
}

/// Divides a vector by its Euclidean length.
pub(super) fn normalize(vector: &[f64]) -> Vec<f64> {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    vector.iter().map(|x| x / length).collect()
}
