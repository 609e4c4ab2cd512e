//! A torso that was brought, of a policy of vectors.

use std::ops::Range;

use tch::Tensor;

use super::vectors::{EncodedVectors, HostNetwork, Inputs, Network};
use crate::nn::Linear;
use crate::{Error, Result};

/// From the vectors of states to embeddings: bring your own to an [`MlpPolicy`](super::MlpPolicy)
/// ([`with_torso`](super::MlpPolicy::with_torso)), which adds a linear layer of heads and log Z.
///
/// ```
/// use gfn::{nn::{Linear, Scope}, policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, VectorTorso}};
/// use gfn::{Result, Rng, env::Env, objective::Quantities, testing::word_env};
/// use tch::{Device, Kind, Tensor};
/// /// One hidden layer on the one-hot entries of a word of five letters, three values each.
/// #[derive(Debug)]
/// struct Hidden(Linear);
/// impl VectorTorso for Hidden {
///     fn width(&self) -> i64 {
///         8
///     }
///     fn embed(&self, columns: &Tensor, _: Option<&Tensor>) -> Result<Tensor> {
///         let ones = Tensor::zeros([columns.size()[0], 15], (Kind::Float, Device::Cpu)).scatter_value(1, columns, 1.0);
///         Ok(self.0.forward(&ones).relu())
///     }
/// }
/// let (env, mut rng) = (word_env(2, 5), Rng::seeded(0));
/// let torso = |scope: &mut Scope<'_>| Hidden(Linear::new(scope, 15, 8));
/// let config = MlpPolicyConfig::default();
/// let policy = MlpPolicy::with_torso(&env, KHot::new(5, 3), torso, config, Device::Cpu, Kind::Float, &mut rng)?;
/// assert_eq!(policy.evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?.pf.map(|pf| pf.masks().len()), Some(2));
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait VectorTorso: std::fmt::Debug + Send {
    /// The width of an embedding.
    fn width(&self) -> i64;

    /// The embeddings of `n` states, `[n, width]`, under conditions `[n, C]`, if the policy takes any, in the
    /// parameters' kind. States are numbers of that kind, `[n, features]`, where features are
    /// [dense](super::Features::Dense), and whole numbers, the columns that are 1, `[n, k]`, where they are
    /// [active](super::Features::Active). There is at least one.
    ///
    /// # Errors
    /// Whatever the torso finds wrong.
    fn embed(&self, states: &Tensor, conditions: Option<&Tensor>) -> Result<Tensor>;
}

/// What an [`MlpPolicy`](super::MlpPolicy) computes its heads with.
#[derive(Debug)]
pub(super) enum Torso {
    /// A perceptron, whose last layer the heads are.
    Layers(Box<Network>),
    /// One that was brought, and the layer of the heads.
    Own(Box<dyn VectorTorso>, Linear),
}

impl Torso {
    /// `[states, outputs]`.
    pub(super) fn forward(&self, inputs: &Inputs) -> Result<Tensor> {
        let (torso, heads) = match self {
            Self::Layers(network) => return Ok(network.forward(inputs)),
            Self::Own(torso, heads) => (torso, heads),
        };
        let states = match &inputs.vectors {
            EncodedVectors::Dense(values) => values.shallow_clone(),
            EncodedVectors::Active { columns, offsets } => {
                let n = offsets.size()[0];
                columns.view([n, columns.size()[0] / n.max(1)])
            }
        };
        let expected = [states.size()[0], torso.width()];
        if expected[0] == 0 {
            let options = (heads.weight().kind(), heads.weight().device());
            return Ok(heads.forward(&Tensor::zeros(expected, options)));
        }
        let embedded = torso.embed(&states, inputs.conditions.as_ref())?;
        if embedded.size() == expected {
            Ok(heads.forward(&embedded))
        } else {
            let remedy = "give a row per state, as wide as `VectorTorso::width` says";
            Err(Error::shape("what a torso embeds", expected, embedded.size(), remedy))
        }
    }

    /// [`Network::on_host`] of a perceptron; none of a torso that was brought.
    pub(super) fn on_host(&self, outputs: Range<i64>) -> Option<HostNetwork> {
        match self {
            Self::Layers(network) => network.on_host(outputs),
            Self::Own(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::env::{Direction, Env, VectorEnv, VectorStates};
    use crate::nn::{BackwardPolicy, Scope};
    use crate::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
    use crate::quantity::Quantity;
    use crate::testing::word_env;

    /// What a torso is to be: zeros of so many rows more than there are states, and of this width, which it
    /// says is 4.
    #[derive(Debug)]
    struct Zeros(i64, i64);

    impl VectorTorso for Zeros {
        fn width(&self) -> i64 {
            4
        }
        fn embed(&self, states: &Tensor, _: Option<&Tensor>) -> Result<Tensor> {
            assert_eq!((states.size().as_slice(), states.kind()), ([3, 5].as_slice(), Kind::Int64));
            Ok(Tensor::zeros([states.size()[0] + self.0, self.1], (Kind::Float, Device::Cpu)))
        }
    }

    #[test]
    fn a_torso_gives_a_row_of_its_width_per_state() {
        let env = word_env(2, 5);
        for (more, width) in [(0, 4), (1, 4), (0, 3)] {
            for backward in [BackwardPolicy::Uniform, BackwardPolicy::SharedTorso, BackwardPolicy::Separate] {
                let config = MlpPolicyConfig { backward, ..MlpPolicyConfig::default() };
                let (torso, rng) = (|_: &mut Scope<'_>| Zeros(more, width), &mut Rng::seeded(0));
                let features = KHot::new(5, 3);
                let policy =
                    MlpPolicy::with_torso(&env, features, torso, config, Device::Cpu, Kind::Float, rng).unwrap();
                let ask = |states: &VectorStates| {
                    policy.evaluate(&env, states, None, Quantity::LogPf | Quantity::LogPb).map(|_| ())
                };
                assert!(Policy::<VectorEnv>::on_host(&policy, Direction::Forward).is_none());
                // No state is asked of.
                ask(&env.initial(&[])).unwrap();
                match (more, width) {
                    (0, 4) => ask(&env.initial(&[0; 3])).unwrap(),
                    _ => {
                        let message = ask(&env.initial(&[0; 3])).unwrap_err().to_string();
                        assert!(message.contains("VectorTorso::width"), "{message}");
                    }
                }
            }
        }
    }
}
