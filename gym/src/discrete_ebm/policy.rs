use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, Rows, TensorForm, VectorEnv, VectorStates};
use gfn::nn::{Estimators, EstimatorsConfig, Mlp, MlpConfig, Parameters};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, Policy, TensorPolicy};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

use super::DiscreteEbm;
use crate::continuous::check_no_conditions;

/// The choice of the backward policy of an [`EbmPolicy`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EbmBackward {
    /// The uniform distribution over the set coordinates.
    #[default]
    Uniform,
    /// A softmax over the set coordinates, whose logits come from the torso of P_F.
    Learned,
}

/// The policy of EB-GFN (Zhang et al., *Generative Flow Networks for Discrete Probabilistic Modeling*, 2022):
/// the next coordinate is chosen uniformly, and only its value is learned.
///
/// The input of a perceptron is the spins (-1, 1, and 0 for unset coordinates). The outputs of the perceptron
/// are two logits `l_i0` and `l_i1` per coordinate for P_F, and a third logit for P_B: `P_F(set i to b | s) =
/// softmax(l_i)_b / (number of unset coordinates)`. Together with a uniform P_B this policy can sample any
/// distribution. If the uniform order makes learning hard, use an [`MlpPolicy`](gfn::policy::MlpPolicy),
/// which has one softmax over all `2 n` actions.
///
/// ```
/// use gfn::{Rng, env::Env, nn::MlpConfig, objective::Quantities, policy::Policy};
/// use gfn_gym::discrete_ebm::{DiscreteEbm, EbmBackward, EbmPolicy};
/// let ebm = DiscreteEbm::new(3)?;
/// let env = ebm.env();
/// let (device, kind) = (tch::Device::Cpu, tch::Kind::Float);
/// let policy =
///     EbmPolicy::new(&ebm, &MlpConfig::default(), EbmBackward::Uniform, device, kind, &mut Rng::seeded(0))?;
/// let pf = policy.evaluate(&env, &env.initial(&[0]), None, Quantities::PF)?.pf.unwrap();
/// let p: Vec<f64> = pf.host_log_probs()?.iter().map(|log_p| log_p.exp()).collect();
/// // Coordinate 0, set to 0 or to 1.
/// assert!((p[0] + p[3] - 1.0 / 3.0).abs() < 1e-6);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct EbmPolicy {
    n: i64,
    backward: EbmBackward,
    torso: Mlp,
    estimators: Estimators,
    parameters: Parameters,
}

impl EbmPolicy {
    /// Builds a network with weights drawn from `rng`, and a log Z that starts at 0.
    ///
    /// # Errors
    /// [`gfn::Error::Config`] for hidden layers whose width is below 1.
    pub fn new(
        env: &DiscreteEbm,
        mlp: &MlpConfig,
        backward: EbmBackward,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        let n = env.n() as i64;
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let torso = Mlp::new(&mut scope.sub("torso"), n, 3 * n, mlp);
        let estimators = Estimators::new(&mut scope, &EstimatorsConfig::default(), None)?;
        parameters.check()?;
        Ok(Self { n, backward, torso, estimators, parameters })
    }

    /// Computes the logits of each state, `[states, 3 n]`, from its spins, `[states, n]`. The first n logits
    /// are those of setting a coordinate to 0, the next n those of setting it to 1, and the last n those of
    /// unsetting it.
    fn logits(&self, spins: &Tensor) -> Tensor {
        self.torso.forward(&spins.to_device(self.parameters.device()).to_kind(self.parameters.kind()))
    }

    /// Evaluates states with these spins. `dist` creates the distribution of a direction from its logits, or
    /// the uniform distribution if there are none.
    fn evaluate_spins(
        &self,
        spins: impl FnOnce() -> Tensor,
        wants: Quantities,
        dist: impl Fn(Direction, Option<&Tensor>) -> Result<GraphActionCategorical>,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let learned = wants.has(Quantity::LogPb) && self.backward == EbmBackward::Learned;
        let logits = (wants.has(Quantity::LogPf) || learned).then(|| self.logits(&spins()));
        let mut out = Evaluation::default();
        if let (true, Some(logits)) = (wants.has(Quantity::LogPf), &logits) {
            // The two logits of each coordinate are normalised, so that their exponentials add up to 1. The
            // later softmax over all legal actions then divides by the number of unset coordinates.
            let values = logits.narrow(1, 0, 2 * self.n).view([-1, 2, self.n]).log_softmax(1, logits.kind());
            out.pf = Some(dist(Direction::Forward, Some(&values.view([-1, 2 * self.n])))?);
        }
        if wants.has(Quantity::LogPb) {
            let logits = logits.filter(|_| learned).map(|logits| logits.narrow(1, 2 * self.n, self.n));
            out.pb = Some(dist(Direction::Backward, logits.as_ref())?);
        }
        Ok(out)
    }
}

impl Policy<VectorEnv> for EbmPolicy {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        check_no_conditions(conditions)?;
        let n = states.len() as i64;
        let width = states.width() as i64;
        if width != self.n {
            let remedy = "give states of the environment that the policy was built for";
            return Err(Error::shape("the spins", [n, self.n], [n, width], remedy));
        }
        let spins = || {
            let spin = |&x: &u16| match x {
                0 => 0.0f32,
                1 => -1.0,
                _ => 1.0,
            };
            let spins: Vec<f32> = states.values().iter().map(spin).collect();
            Tensor::from_slice(&spins).view([n, self.n])
        };
        self.evaluate_spins(spins, wants, |direction, logits| {
            let masks = env.masks(direction, states);
            match logits {
                Some(logits) => GraphActionCategorical::new(masks, std::slice::from_ref(logits)),
                None => Ok(GraphActionCategorical::uniform(masks)),
            }
        })
    }

    fn on_tensors(&self, form: &TensorForm<VectorStates>) -> Option<&dyn TensorPolicy<VectorEnv>> {
        (form.env().width() as i64 == self.n).then_some(self)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }
}

impl TensorPolicy<VectorEnv> for EbmPolicy {
    fn evaluate_tensors(
        &self,
        form: &TensorForm<VectorStates>,
        states: &Tensor,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        check_no_conditions(conditions)?;
        let spins = || states.eq(2).to_kind(Kind::Float) - states.eq(1).to_kind(Kind::Float);
        self.evaluate_spins(spins, wants, |direction, logits| form.distribution(direction, states, logits))
    }
}
