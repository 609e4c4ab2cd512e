//! Torsos of policies on vectors: perceptrons and custom networks.

use std::ops::Range;

use tch::Tensor;

use super::dense::StackedNetwork;
use super::vectors::{EncodedVectors, HostNetwork, Inputs, Network};
use crate::nn::Linear;
use crate::{Error, Result};

/// A custom network that maps the vectors of states to embeddings.
/// [`MlpPolicy::with_torso`](super::MlpPolicy::with_torso) adds a linear layer with the heads, and an
/// estimator of log Z.
///
/// ```
/// use gfn::{nn::{Linear, Scope}, policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, VectorTorso}};
/// use gfn::{Result, Rng, env::Env, objective::Quantities, examples::word_env};
/// use tch::{Device, Kind, Tensor};
/// /// One hidden layer on the one-hot entries of a word of five letters, three values each.
/// #[derive(Debug)]
/// struct Hidden(Linear);
/// impl VectorTorso for Hidden {
///     fn width(&self) -> i64 {
///         8
///     }
///     fn embed(&self, columns: &Tensor, _: Option<&Tensor>) -> Result<Tensor> {
///         let zeros = Tensor::zeros([columns.size()[0], 15], (Kind::Float, Device::Cpu));
///         Ok(self.0.forward(&zeros.scatter_value(1, columns, 1.0)).relu())
///     }
/// }
/// let (env, mut rng) = (word_env(2, 5), Rng::seeded(0));
/// let torso = |scope: &mut Scope<'_>| Hidden(Linear::new(scope, 15, 8));
/// let config = MlpPolicyConfig::default();
/// let (features, device, kind) = (KHot::new(5, 3), Device::Cpu, Kind::Float);
/// let policy = MlpPolicy::with_torso(&env, features, torso, config, device, kind, &mut rng)?;
/// let evaluation = policy.evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.map(|pf| pf.masks().len()), Some(2));
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait VectorTorso: std::fmt::Debug + Send {
    /// Returns the number of entries of an embedding.
    fn width(&self) -> i64;

    /// Returns the embeddings of `n >= 1` states, `[n, width]`, in the dtype of the parameters. If the
    /// features are [dense](super::Features::Dense), `states` is `[n, features]` in the dtype of the
    /// parameters. If the features are [active](super::Features::Active), `states` is `[n, k]` (i64) and
    /// holds the indices of the entries that are 1. If the policy takes conditions, `conditions` is `[n, C]`
    /// in the dtype of the parameters.
    ///
    /// # Errors
    /// Any error of the torso.
    fn embed(&self, states: &Tensor, conditions: Option<&Tensor>) -> Result<Tensor>;
}

/// The network of an [`MlpPolicy`](super::MlpPolicy), from states to the outputs of its heads.
#[derive(Debug)]
pub(super) enum Torso {
    /// A perceptron. The heads are its last layer.
    Layers(Box<Network>),
    /// A custom torso, followed by a linear layer with the heads.
    Custom(Box<dyn VectorTorso>, Linear),
    /// The perceptrons of several policies, with stacked parameters.
    Stacked(StackedNetwork),
}

impl Torso {
    /// Computes the outputs of all heads, `[states, outputs]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if a custom torso returns another shape than `[states, width]`; the errors of the
    /// torso; [`Error::Config`] for a condition that isn't the index of a stacked policy.
    pub(super) fn forward(&self, inputs: &Inputs) -> Result<Tensor> {
        let (torso, heads) = match self {
            Self::Layers(network) => return Ok(network.forward(inputs)),
            Self::Stacked(network) => return network.forward(inputs),
            Self::Custom(torso, heads) => (torso, heads),
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
            let remedy = "let the torso return one row per state, of the width that `VectorTorso::width` \
                returns";
            Err(Error::shape("the embeddings of a torso", expected, embedded.size(), remedy))
        }
    }

    /// Returns `true` for a table and `false` for a perceptron with bias; `None` for a custom torso and for
    /// stacked perceptrons.
    pub(super) fn is_table(&self) -> Option<bool> {
        match self {
            Self::Layers(network) => Some(network.is_table()),
            Self::Custom(..) | Self::Stacked(_) => None,
        }
    }

    /// Returns a copy of the network on the host that computes only the outputs with the indices `outputs`
    /// ([`Network::on_host`]); `None` for a custom torso and for stacked perceptrons.
    pub(super) fn on_host(&self, outputs: Range<i64>) -> Option<HostNetwork> {
        match self {
            Self::Layers(network) => network.on_host(outputs),
            Self::Custom(..) | Self::Stacked(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::env::{Direction, Env, VectorEnv, VectorStates};
    use crate::examples::word_env;
    use crate::nn::{BackwardPolicy, Scope};
    use crate::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
    use crate::quantity::Quantity;

    /// A torso that returns zeros in a wrong shape: `extra_rows` more rows than states, and `actual_width`
    /// columns instead of 4.
    #[derive(Debug)]
    struct Zeros {
        extra_rows: i64,
        actual_width: i64,
    }

    impl VectorTorso for Zeros {
        fn width(&self) -> i64 {
            4
        }
        fn embed(&self, states: &Tensor, _: Option<&Tensor>) -> Result<Tensor> {
            assert_eq!((states.size().as_slice(), states.kind()), ([3, 5].as_slice(), Kind::Int64));
            Ok(Tensor::zeros(
                [states.size()[0] + self.extra_rows, self.actual_width],
                (Kind::Float, Device::Cpu),
            ))
        }
    }

    #[test]
    fn torso_embeddings_of_a_wrong_shape_are_refused() {
        let env = word_env(2, 5);
        for (extra_rows, actual_width) in [(0, 4), (1, 4), (0, 3)] {
            for backward in [BackwardPolicy::Uniform, BackwardPolicy::SharedTorso, BackwardPolicy::Separate] {
                let config = MlpPolicyConfig { backward, ..MlpPolicyConfig::default() };
                let torso = |_: &mut Scope<'_>| Zeros { extra_rows, actual_width };
                let rng = &mut Rng::seeded(0);
                let features = KHot::new(5, 3);
                let policy =
                    MlpPolicy::with_torso(&env, features, torso, config, Device::Cpu, Kind::Float, rng)
                        .unwrap();
                let evaluate = |states: &VectorStates| {
                    policy.evaluate(&env, states, None, Quantity::LogPf | Quantity::LogPb).map(|_| ())
                };
                assert!(Policy::<VectorEnv>::on_host(&policy, Direction::Forward).is_none());
                // The torso isn't called for an empty batch, so its wrong shape causes no error.
                evaluate(&env.initial(&[])).unwrap();
                match (extra_rows, actual_width) {
                    (0, 4) => evaluate(&env.initial(&[0; 3])).unwrap(),
                    _ => {
                        let message = evaluate(&env.initial(&[0; 3])).unwrap_err().to_string();
                        assert!(message.contains("VectorTorso::width"), "{message}");
                    }
                }
            }
        }
    }
}
