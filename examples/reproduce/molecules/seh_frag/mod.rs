//! Molecules that are built from fragments to bind strongly to soluble epoxide hydrolase (sEH), the standard
//! benchmark of molecular GFlowNets. Results are reported as a function of the number of reward calls.

mod baseline;
pub(super) mod focus;
pub(crate) mod moo;
mod scored_table;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gfn_extras::condition::Condition;
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::{Fingerprint, SehProxy};

use super::atoms::SharedScore;
use super::directions::{diversity, read_all};
use super::outputs;
use crate::prelude::*;
use scored_table::ScoredTable;

/// Train a policy on the published proxy of binding to sEH, or run a search without a policy
///
/// The published settings of recursionpharma/gflownet, except for its network, are `--objective tb --replay 0
/// --beta-from 32 --lr 1e-4 --log-z-lr 1e-3 --lr-end 1 --epsilon 0 --backward uniform --ema 0.99
/// --ema-sampling`. At these learning rates add `--unit 16`, because the policy hardly learns without it.
/// With --out or --run, every scored molecule is written to `scored.csv`.
#[derive(Args)]
#[command(mut_arg("objective", |objective| objective.default_value("subtb")))]
pub(crate) struct Seh {
    /// File with the proxy's weights: `mols/data/pretrained_proxy/best_params.pkl.gz` of
    /// github.com/GFNOrg/gflownet, or the arrays of that file as `.npz`
    #[arg(long)]
    weights: PathBuf,
    /// Method that searches for molecules
    #[arg(long, value_parser = choice(METHODS), default_value = "policy")]
    by: Selection<Option<baseline::Search>>,
    /// Use the reduced list of 18 fragments instead of the full list of 72
    #[arg(long)]
    reduced: bool,
    /// Exponent of the reward in the first step. The exponent rises to 32 over half of the steps; a value of
    /// 32 makes the exponent constant
    #[arg(long)]
    beta_from: Option<f64>,
    /// Train one policy for all exponents between --beta-from (by default 0.5) and 32. The exponent is an
    /// input of the policy
    #[arg(long)]
    any_beta: bool,
    /// Factor on the logits and on log F of the policy. It doesn't change the untrained policy, but updates
    /// have more effect, which a low learning rate needs
    #[arg(long, default_value_t = 4.0)]
    unit: f64,
    /// Number of molecules that are sampled after training
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

const METHODS: &[Choice<Option<baseline::Search>>] = &[
    ("policy", None, "A policy that is trained"),
    ("random", Some(baseline::random), "Uniform random moves"),
    ("genetic", Some(baseline::genetic), "A genetic algorithm on trees"),
];

/// The largest number of fragments in a molecule.
pub(crate) const MAX_FRAGMENTS: usize = 9;
/// The exponent of the reward. The reward is this power of the score, which is the proxy's output divided by
/// 8, and at least 1e-4.
const BETA: f64 = 32.0;
/// The exponent of the reward in the first step, for a policy that doesn't take the exponent as input. A
/// policy that begins with 32 collapses onto the first good molecule.
const FIRST_BETA: f64 = 4.0;
/// The default lower end of the range of exponents on which `--any-beta` trains a policy: the published
/// value.
const LEAST_BETA: f64 = 0.5;
/// The number of points of the curves that show the best scores and the number of modes as functions of the
/// number of scored molecules.
const POINTS: usize = 50;
/// The largest number of molecules that are sampled in one batch.
const AT_ONCE: usize = 250;

/// Returns the published fragments, or the reduced set of them.
pub(crate) fn fragment_library(reduced: bool) -> Result<FragmentLibrary> {
    if reduced { FragmentLibrary::bengio2021_reduced() } else { FragmentLibrary::bengio2021() }
}

impl Task for Seh {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        refuse_validation()?;
        let library = fragment_library(self.reduced)?;
        let fragments = Fragments::new(&library, MAX_FRAGMENTS)?;
        let recipe =
            Recipe { steps: 2_500, lr: 1e-3, replay: 2_000, exact_up_to: 0, samples: 0, ..Recipe::default() };
        let run = Run::begin(common, recipe)?;
        let calls = run.steps() * run.config.batch;
        let table =
            common.out().filter(|_| members::is_first()).map(|out| ScoredTable::new(out.join("scored.csv")));
        let proxy = Arc::new(RecordedProxy::new(
            SehProxy::load(&self.weights, run.device)?,
            (calls / POINTS).max(1),
            table,
        ));
        let Some(search) = self.by.value else { return self.train(run, fragments, &proxy) };
        refuse(
            &["--beta-from", "--any-beta", "--unit", "--samples"],
            "a command without this flag, or with --by policy, because a search without a policy doesn't \
             have it",
        )?;
        let mut report = run.search(|| search(&fragments, &proxy, calls, &mut run.rng()))?;
        report.set("reward_calls", calls);
        self.report(&proxy, &mut report);
        run.print(report)
    }
}

impl Seh {
    fn train(&self, mut run: Run<'_>, fragments: Fragments, proxy: &Arc<RecordedProxy>) -> Result<()> {
        let library = fragments.library().clone();
        let law = Temperature::Uniform { least: self.beta_from.unwrap_or(LEAST_BETA), most: BETA };
        let conditioning = || Conditioning::new(1)?.temperature(law, Encoding::Thermometer { bins: 32 });
        let conditioning = self.any_beta.then(conditioning).transpose()?;
        let network = GraphNetConfig { unit: self.unit, ..network(&self.common, conditioning.as_ref()) };
        let score: SharedScore = proxy.clone();
        let task = json!({ "reduced": self.reduced, "conditioning": conditioning });
        let trainer = match &conditioning {
            Some(conditioning) => {
                let rewards = vec![Arc::new(FragmentReward::new(&library, score)) as _];
                let reward = ConditionedReward::<GraphStates>::new(conditioning.clone(), rewards)?;
                run.graph_trainer(fragments.into_env(), reward, network, task)?
                    .with_conditions(conditioning.clone())
            }
            None => {
                let from = self.beta_from.unwrap_or(FIRST_BETA);
                let steps = run.steps().div_ceil(2);
                run.config.reward_exponent = Schedule::Linear { from: from / BETA, to: 1.0, steps };
                let reward = FragmentReward::new(&library, score.to_the(BETA)?);
                run.graph_trainer(fragments.into_env(), reward, network, task)?
            }
        };
        let mut write_scored = |_: &Trainer<GraphEnv>, record: &mut Record| {
            proxy.finish_step(Some(record.step))?;
            Ok(ControlFlow::Continue(()))
        };
        run.finish(trainer, unmeasured, vec![&mut write_scored], |trainer, report| {
            // If no training step was made, the molecules that filled the replay buffer before training are
            // only now written to the table.
            proxy.finish_step(Some(trainer.steps_done() + 1))?;

            let encode = |conditioning: &Conditioning| {
                conditioning.encode(&[Condition { beta: BETA, preferences: vec![1.0], focus: None }])
            };
            let condition = conditioning.as_ref().map(encode).transpose()?;
            let molecules = self.sample(trainer, condition.as_ref(), &library)?;
            let log_scores = proxy.proxy.log_scores(&molecules)?;
            self.report(proxy, report);
            report.extend(outputs::describe_samples(&molecules, &log_scores));
            let n = molecules.len().max(1) as f64;
            report.set("mean_score", log_scores.iter().map(|log| log.exp()).sum::<f64>() / n);
            if molecules.len() > 1 {
                report.set("internal_diversity", diversity(&molecules)?);
            }
            outputs::write(&self.common, &molecules, &log_scores, None)?;
            Ok(())
        })
    }

    /// Samples molecules from the trained policy. A policy that takes the exponent as input gets the largest
    /// exponent.
    fn sample(
        &self,
        trainer: &Trainer<GraphEnv>,
        condition: Option<&Tensor>,
        library: &FragmentLibrary,
    ) -> Result<Vec<Molecule>> {
        let sampler = Sampler::new(trainer.env(), trainer.policy());
        let rng = &mut trainer.evaluation_rng();
        let mut molecules = Vec::new();
        while molecules.len() < self.samples {
            let n = (self.samples - molecules.len()).min(AT_ONCE);
            let trajectories = match condition {
                Some(vector) => sampler.forward_conditional(&vector.expand([n as i64, -1], false), rng)?,
                None => sampler.forward(n, rng)?,
            };
            molecules.extend(read_all(trajectories.terminal_states(), |graph| library.molecule(graph))?);
        }
        Ok(molecules)
    }

    /// Reports the best scores and the modes among all scored molecules, and draws their curves.
    fn report(&self, proxy: &RecordedProxy, report: &mut Report) {
        let record = proxy.record();
        let last = record.point();
        report.extend(json!({ "by": self.by.name, "beta": BETA, "scored": last.reward_calls,
            "mean_last_1000": last.mean, "top_100": last.top_100, "modes": last.modes,
            "distinct_scored": last.distinct, "curve": record.curve,
            "why_not_exact": "there are more trees than can be listed" }));
        let mut panel = |title: &str, of: fn(&Point) -> f64| {
            let points = record.curve.iter().map(|point| (point.reward_calls as f64, of(point)));
            report.panels.push(Panel::new(title).labels("reward calls", "").curve(Curve::new(title, points)));
        };
        panel("mean score of the last 1,000", |point| point.mean);
        panel("mean score of the best 100", |point| point.top_100);
        panel("modes", |point| point.modes as f64);
    }
}

/// Returns the settings of the policy's network. A condition is an input of the network, and also scales the
/// logits. `Gin` can't be used, because it ignores the attributes of edges. An edge joins two fragments, and
/// its attributes are their stems, the atoms that the bond connects.
fn network(common: &Common, conditioning: Option<&Conditioning>) -> GraphNetConfig {
    let mut network =
        GraphNetConfig { conv: ConvKind::Gine, ..common.graph_net(4, 128, BackwardPolicy::SharedTorso) };
    if let Some(conditioning) = conditioning {
        network.estimators.n_conditions = conditioning.width() as i64;
        let hidden = vec![network.embedding];
        network.estimators.logit_scale = Some(MlpConfig { hidden, ..MlpConfig::default() });
    }
    network
}

/// The smallest score of a molecule that counts as a mode (Bengio et al. 2021).
const MODE_SCORE: f64 = 7.0 / 8.0;
/// A molecule is a new mode if its Tanimoto similarity to each earlier mode is below this number.
const MODE_SIMILARITY: f64 = 0.7;
/// The number of most recently scored molecules over which the reported mean score is taken.
const LAST: usize = 1_000;
/// The number of best distinct molecules over which the reported mean score is taken.
const BEST: usize = 100;

/// A point of the curves that show the best scores and the number of modes as functions of the number of
/// scored molecules.
#[derive(Clone, Serialize)]
struct Point {
    reward_calls: usize,
    /// The mean score of the last 1,000 molecules. The score is the proxy's output divided by 8.
    mean: f64,
    /// The mean score of the best 100 distinct molecules.
    top_100: f64,
    modes: usize,
    distinct: usize,
}

#[derive(Default)]
struct SearchRecord {
    calls: usize,
    last: VecDeque<f64>,
    keys: BTreeSet<CanonicalKey>,
    /// The scores of the best distinct molecules, the best first. The first entry of a key sorts by score,
    /// and the second entry distinguishes molecules of equal score.
    best: BTreeMap<(u64, CanonicalKey), f64>,
    modes: Vec<Fingerprint>,
    curve: Vec<Point>,
    every: usize,
    table: Option<ScoredTable>,
}

impl SearchRecord {
    fn note(&mut self, molecule: &Molecule, score: f64) {
        self.calls += 1;
        if let Some(table) = &mut self.table {
            table.push(molecule.smiles(), score);
        }
        self.last.push_back(score);
        if self.last.len() > LAST {
            self.last.pop_front();
        }
        let key = molecule.key();
        if self.keys.insert(key.clone()) {
            // Keys sort the best score first. f64 has no total order, but the bit patterns of positive
            // numbers, read as integers, have the same order as the numbers.
            self.best.insert((u64::MAX - score.to_bits(), key), score);
            if self.best.len() > BEST {
                self.best.pop_last();
            }
            if score >= MODE_SCORE {
                let print = Fingerprint::from_molecule(molecule);
                if self.modes.iter().all(|mode| mode.tanimoto(&print) < MODE_SIMILARITY) {
                    self.modes.push(print);
                }
            }
        }
        if self.calls.is_multiple_of(self.every.max(1)) {
            let point = self.point();
            self.curve.push(point);
        }
    }

    fn point(&self) -> Point {
        let mean = |sum: f64, n: usize| sum / n.max(1) as f64;
        Point {
            reward_calls: self.calls,
            mean: mean(self.last.iter().sum(), self.last.len()),
            top_100: mean(self.best.values().sum(), self.best.len()),
            modes: self.modes.len(),
            distinct: self.keys.len(),
        }
    }
}

/// The sEH proxy, with a record of the molecules that it scored.
struct RecordedProxy {
    proxy: SehProxy,
    record: Mutex<SearchRecord>,
}

impl RecordedProxy {
    /// Builds the proxy with an empty record. The curves get a new point after every `every` scored
    /// molecules. If there is a `table`, it gets a row for each scored molecule.
    fn new(proxy: SehProxy, every: usize, table: Option<ScoredTable>) -> Self {
        Self { proxy, record: Mutex::new(SearchRecord { every, table, ..SearchRecord::default() }) }
    }

    /// Writes rows to the table for the molecules that were scored since the last call, with this step
    /// number. For `None`, the rows get the number of the step that follows the last written step.
    fn finish_step(&self, step: Option<usize>) -> Result<()> {
        self.record().table.as_mut().map_or(Ok(()), |table| table.finish_step(step))
    }

    fn record(&self) -> MutexGuard<'_, SearchRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MoleculeScore for RecordedProxy {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let logs = self.proxy.log_scores(molecules)?;
        let mut record = self.record();
        for (molecule, log) in molecules.iter().zip(&logs) {
            record.note(molecule, log.exp());
        }
        Ok(logs)
    }
}
