//! Tests of regression losses: the laws, and custom losses in training, settings and checkpoints.

use gfn::contract::check_regression;
use gfn::env::VectorStates;
use gfn::examples::word_env;
use gfn::objective::{
    DetailedBalance, FDivergence, FlowMatching, LogPartitionDeviation, Objective, Quantity, Regression,
    RegressionLoss, Scores, SubTrajectoryBalance, TrajectoryBalance, Weighting, WithRegression,
};
use gfn::prelude::*;
use serde_json::json;
use tch::{Kind, Tensor};

use crate::trainers::Folder;

pub(crate) const DIVERGENCES: [FDivergence; 8] = [
    FDivergence::ReverseKl,
    FDivergence::ForwardKl,
    FDivergence::JensenShannon,
    FDivergence::Hellinger,
    FDivergence::ChiSquared,
    FDivergence::Alpha { alpha: -0.5 },
    FDivergence::Alpha { alpha: 1.0 },
    FDivergence::Alpha { alpha: 1.5 },
];

/// A loss that is defined by a function of tensors.
#[derive(Debug)]
pub(crate) struct Custom(&'static str, fn(&Tensor) -> Tensor);

impl RegressionLoss for Custom {
    fn name(&self) -> &str {
        self.0
    }
    fn apply(&self, residuals: &Tensor) -> gfn::Result<Tensor> {
        Ok((self.1)(residuals))
    }
}

pub(crate) const LOG_COSH: Custom = Custom("log-cosh", |t| t.cosh().log());

/// The log-weights of five objects. Each object is the only one of its trajectory of one action.
pub(crate) const LOG_WEIGHTS: [f64; 5] = [0.3, 1.2, -0.8, 2.0, -1.5];
pub(crate) const LOGITS: [f64; 5] = [0.5, -0.3, 0.2, 0.1, -0.9];

/// Returns the scores of one trajectory to each object, with log Z, and the leaf of logits.
pub(crate) fn enumerated(logits: &[f64], log_weights: &[f64], log_z: f64) -> (Scores, Tensor) {
    let n = logits.len();
    let leaf = Tensor::from_slice(logits).set_requires_grad(true);
    let zeros = Tensor::zeros([n as i64], (Kind::Double, Device::Cpu));
    let log_pf = leaf.log_softmax(0, Kind::Double);
    let mut scores = Scores::new((0..=n).collect(), log_pf, zeros, Tensor::from_slice(log_weights));
    scores.set(Quantity::LogZ, Tensor::full([n as i64], log_z, (Kind::Double, Device::Cpu))).unwrap();
    (scores, leaf)
}

#[test]
fn all_losses_of_the_library_obey_the_laws() {
    let linex = Regression::Linex { alpha: -2.0 };
    let huber = Regression::Huber { delta: 0.5 };
    let plain = [Regression::Squared, Regression::HalfSquared, Regression::ShiftedCosh, Regression::Absolute];
    let divergences = DIVERGENCES.map(Regression::from);
    for loss in plain.into_iter().chain([linex, huber, Regression::custom(LOG_COSH)]).chain(divergences) {
        check_regression(&loss).unwrap();
    }
}

/// A squared loss whose `costs` are wrong.
#[derive(Debug)]
struct WrongCost(fn(f64) -> (f64, f64));

impl RegressionLoss for WrongCost {
    fn name(&self) -> &str {
        "wrong cost"
    }
    fn apply(&self, residuals: &Tensor) -> gfn::Result<Tensor> {
        Ok(residuals.square())
    }
    fn costs(&self, residuals: &[f64]) -> gfn::Result<(Vec<f64>, Vec<f64>)> {
        Ok(residuals.iter().map(|&t| (self.0)(t)).unzip())
    }
}

#[test]
fn each_broken_law_is_named_with_the_loss() {
    let broken: [(Box<dyn RegressionLoss>, &str); 9] = [
        (Box::new(Custom("cube", |t| t.pow_tensor_scalar(3))), "positive at any other residual"),
        (Box::new(Custom("shifted", |t| t.square() + 0.1)), "0 at the residual 0"),
        (Box::new(Custom("zero", |t| t * 0.0)), "positive at any other residual"),
        (Box::new(Custom("root", |t| t.abs().sqrt())), "finite slope"),
        (Box::new(Custom("sum", |t| t.square().sum(Kind::Double))), "the shape and the dtype"),
        (Box::new(Custom("single", |t| t.square().to_kind(Kind::Float))), "the shape and the dtype"),
        (Box::new(Custom("detached", |t| t.detach().square())), "has a gradient"),
        (Box::new(WrongCost(|t| (0.5 * t * t, t))), "`apply` and `costs`"),
        (
            Box::new(WrongCost(|t| (if t == t as f32 as f64 { t * t } else { 2.0 }, 2.0 * t))),
            "is its derivative",
        ),
    ];
    for (loss, law) in broken {
        let message = check_regression(loss.as_ref()).unwrap_err().to_string();
        assert!(message.contains(law) && message.contains(loss.name()), "{message} instead of {law}");
    }
    let alpha = FDivergence::Alpha { alpha: f64::NAN };
    assert!(check_regression(&alpha).unwrap_err().to_string().contains("alpha is NaN"));
}

/// Builds a trainer on words of three of two letters, whose log-reward is the number of ones.
fn trainer(
    objective: impl Into<Box<dyn Objective>>,
    regression: Regression,
    steps: usize,
) -> gfn::Result<Trainer<VectorEnv>> {
    let env = word_env(2, 3);
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![32], ..MlpConfig::default() },
        estimators: EstimatorsConfig::with_flow(true),
        ..MlpPolicyConfig::default()
    };
    let mut rng = Rng::seeded(0);
    let policy = MlpPolicy::new(&env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 16,
        regression,
        adam: AdamConfig { lr: 1e-2, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps },
        ..TrainerConfig::default()
    };
    Trainer::new(env, ones, policy, objective, config, rng)
}

fn ones(words: &VectorStates, _: Option<&Tensor>) -> gfn::Result<Vec<f64>> {
    Ok(words.rows().map(|word| word.iter().filter(|&&letter| letter == 1).count() as f64).collect())
}

/// Trains a policy on words and returns its exact total variation from the target.
pub(crate) fn train(objective: impl Into<Box<dyn Objective>>, regression: Regression, steps: usize) -> f64 {
    tch::set_num_threads(1);
    let mut trainer = trainer(objective, regression, steps).unwrap();
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let space = StateGraph::build(trainer.env(), 100).unwrap();
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    let target = space.target_distribution(&ones, None).unwrap();
    Distances::between(&learned.probs, &target.probs).unwrap().tv
}

/// Checks that a custom loss trains with each kind of objective, also with one that needs the cost of single
/// residuals.
#[test]
fn a_custom_loss_trains_with_every_kind_of_balance() {
    let subtb = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let objectives: [Box<dyn Objective>; 5] = [
        Box::new(TrajectoryBalance),
        Box::new(DetailedBalance::default()),
        Box::new(subtb),
        Box::new(FlowMatching::default()),
        Box::new(LogPartitionDeviation),
    ];
    for objective in objectives {
        let name = objective.name();
        let tv = train(objective, Regression::custom(LOG_COSH), 300);
        assert!(tv < 0.03, "{name}: {tv}");
    }
}

#[test]
fn a_trainer_refuses_a_broken_loss() {
    const CUBE: Custom = Custom("cube", |t| t.pow_tensor_scalar(3));
    let direct = trainer(TrajectoryBalance, Regression::custom(CUBE), 1).unwrap_err();
    let own = WithRegression::new(TrajectoryBalance, FDivergence::Hellinger);
    let ignored = trainer(own, Regression::Absolute, 1).unwrap_err().to_string();
    assert!(ignored.contains("regression is absolute"), "{ignored}");
    let fixed = WithRegression::new(TrajectoryBalance, Regression::custom(CUBE));
    let fixed = trainer(fixed, Regression::Squared, 1).unwrap_err();
    for error in [direct, fixed] {
        assert!(
            matches!(error, gfn::Error::Contract { .. }) && error.to_string().contains("cube"),
            "{error}"
        );
    }
}

#[test]
fn settings_name_the_loss() {
    let written =
        |regression| serde_json::to_value(TrainerConfig { regression, ..Default::default() }).unwrap();
    let divergence = written(FDivergence::Alpha { alpha: 0.5 }.into());
    assert_eq!(divergence["regression"], json!({ "FDivergence": { "Alpha": { "alpha": 0.5 } } }));
    let read: TrainerConfig = serde_json::from_value(divergence).unwrap();
    assert_eq!(read.regression, Regression::FDivergence(FDivergence::Alpha { alpha: 0.5 }));
    let custom = written(Regression::custom(LOG_COSH));
    assert_eq!(custom["regression"]["Custom"]["name"], "log-cosh");
    assert!(serde_json::from_value::<TrainerConfig>(custom).is_err());
    assert_eq!(Regression::custom(LOG_COSH), Regression::custom(LOG_COSH));
    assert_ne!(Regression::custom(LOG_COSH), Regression::custom(Custom("other", |t| t.square())));
}

/// Checks that a run that resumes with another custom loss gets a warning, and none with the same loss.
#[test]
fn a_checkpoint_remembers_the_custom_loss() {
    let folder = Folder::new("custom_loss");
    let mut first = trainer(TrajectoryBalance, Regression::custom(LOG_COSH), 4).unwrap();
    first.step().unwrap();
    first.save(folder.join("run")).unwrap();
    let warning = |loss| {
        let mut resumed = trainer(TrajectoryBalance, Regression::custom(loss), 4).unwrap();
        resumed.resume(folder.join("run")).unwrap();
        resumed.resume_warning().map(ToString::to_string)
    };
    assert_eq!(warning(LOG_COSH), None);
    let other = warning(Custom("other", |t| t.square())).unwrap();
    assert!(other.contains("log-cosh") && other.contains("other"), "{other}");
}

/// A squared loss that refuses residuals above a bound in absolute value.
#[derive(Debug)]
struct Bounded(f64);

impl RegressionLoss for Bounded {
    fn name(&self) -> &str {
        "bounded"
    }
    fn apply(&self, residuals: &Tensor) -> gfn::Result<Tensor> {
        let largest = residuals.abs().max().double_value(&[]);
        if largest > self.0 {
            return Err(gfn::Error::config("residual", largest, "a residual of at most the bound"));
        }
        Ok(residuals.square())
    }
}

/// Checks that an error of a custom loss reaches the caller, also from objectives that call `costs`.
#[test]
fn errors_of_a_custom_loss_are_returned() {
    let (mut scores, _) = enumerated(&LOGITS, &LOG_WEIGHTS, 0.0);
    scores.set(Quantity::LogFlow, scores.log_pf.zeros_like()).unwrap();
    let subtb = SubTrajectoryBalance::new(Weighting::Equal).unwrap();
    for objective in [&subtb as &dyn Objective, &LogPartitionDeviation] {
        let loss = |bound| objective.loss(&scores, &Bounded(bound));
        assert!(loss(50.0).unwrap().double_value(&[]).is_finite());
        let message = loss(0.1).unwrap_err().to_string();
        assert!(message.contains("at most the bound"), "{}: {message}", objective.name());
    }
}
