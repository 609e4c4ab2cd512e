//! One policy for a family of rewards: the grid's reward under a condition between 0 (flat) and 1 (the
//! original).

use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward};

use crate::prelude::*;

/// Train a perceptron that takes the condition as input
#[derive(Args)]
pub(crate) struct ConditionalGrid {
    #[command(flatten)]
    common: Common,
}

/// Points along each of two dimensions.
const HEIGHT: usize = 8;
/// The conditions under which the policy is compared with the target.
const CONDITIONS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

type GridTrainer = Trainer<VectorEnv>;

fn condition(c: f64) -> Tensor {
    Tensor::from_slice(&[c as f32]).view([1, 1])
}

impl Task for ConditionalGrid {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        let title = format!("conditional grid of {HEIGHT}^2");
        let recipe = Recipe { steps: 2_000, exact_up_to: 10_000, ..Recipe::default() };
        let run = Run::begin(common, "conditional_hypergrid", title, recipe)?;
        let grid = HyperGrid::new(2, HEIGHT)?;
        let (env, reward) = (grid.env(), ConditionalReward::new(OriginalReward::standard(&grid)?));
        let mut rng = run.rng();
        let mut network = common.perceptron(BackwardPolicy::Uniform);
        network.estimators.n_conditions = 1;
        let description = run.describe(json!({}), &network);
        let features = KHot::new(2, HEIGHT);
        let policy = MlpPolicy::new(&env, features, network, run.device, Kind::Float, &mut rng)?;
        let graph = if members::is_first() { listed(run.recipe.exact_up_to, &env)? } else { None };
        let conditions = reward.clone();
        let trainer = run
            .trainer(env, reward.clone(), policy, rng, &description)?
            .with_conditions(move |n: usize, rng: &mut Rng| Ok(conditions.sample_conditions(n, rng)));
        let exact = |trainer: &GridTrainer, c: f64| -> Result<Option<Distances>> {
            let (Some(graph), condition) = (&graph, condition(c)) else { return Ok(None) };
            let target = graph.target_distribution(&reward, Some(&condition))?;
            let learned = graph.terminating_distribution(trainer.env(), trainer.policy(), Some(&condition))?;
            Distances::between(&learned.probs, &target.probs).map(Some)
        };
        let measure = |trainer: &GridTrainer| Ok(jsd(exact(trainer, 1.0)?.map(|distances| distances.jsd)));
        let Some((trainer, mut report)) = run.train(trainer, measure, Vec::new())? else { return Ok(()) };

        let (mut rows, mut all) = (Vec::new(), Vec::new());
        let (mut learned, mut truth) = (Vec::new(), Vec::new());
        for c in CONDITIONS {
            let (distances, log_z_true) = (exact(&trainer, c)?, reward.log_z(c)?);
            let log_z = Policy::<VectorEnv>::log_z(trainer.policy(), Some(&condition(c)), 1);
            let log_z = log_z.map(|z| z.double_value(&[0]));
            learned.push((c, log_z.unwrap_or(f64::NAN)));
            truth.push((c, log_z_true));
            let l1 = distances.map(|d| d.l1);
            rows.push(json!({ "condition": c, "l1": l1, "log_z": log_z, "log_z_true": log_z_true }));
            all.extend(distances);
        }
        let panel = Panel::new("log Z by condition").labels("condition", "");
        report.panels.push(panel.curve(Curve::new("learned", learned)).curve(Curve::new("true", truth)));
        if all.is_empty() {
            report.not_listed(&run);
        } else {
            report.exact_mean(&all);
        }
        report.set("conditions", rows);
        run.print(report)
    }
}
