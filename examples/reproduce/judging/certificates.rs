//! Certificates held against the truth: how often their intervals are right, over policies of every quality.

use clap::Parser;
use gfn::env::{EnumerableEnv, Reward, Rows};
use gfn::metrics::certificates::{Budget, Certificate, Finding, certify, subset_distance};
use gfn::metrics::{Correlation, Distances, ExactPolicy, sample_objects};
use gfn::policy::UniformPolicy;
use gfn::rollout::{Acceptance, LocalSearch, Sampler};
use gfn::runtime::Runtime;
use gfn::tensor::log_sum_exp;
use gfn::train::Progress;
use gfn::{Result, Rng};
use serde_json::json;

use super::known::{Known, Listed, Look, TaskArgs};
use super::quality::Blurred;
use crate::run::lines::{print, tell};

/// Hold certificates of policies of every quality against the truth
#[derive(Parser, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
    /// Policies, from uniform to exact
    #[arg(long, default_value_t = 200)]
    policies: usize,
    /// Trajectories of each certificate
    #[arg(long, default_value_t = 4_000)]
    samples: usize,
    /// Paths back from each object
    #[arg(long, default_value_t = 64)]
    paths: usize,
    /// Seed of policies and of samples
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads of rayon and of libtorch
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

/// Subsets that the true flow consistency is a mean over.
const SUBSETS: usize = 4_000;
/// Objects of the local search from which those are drawn.
const SEARCHED: usize = 4_000;
/// Objects of each policy whose log-probabilities are looked at.
const OBJECTS: usize = 24;
/// Exact policies are exact to rounding.
const ROUNDING: f64 = 1e-5;

pub(crate) fn run(args: &Args) -> Result<()> {
    Runtime::new(args.threads, gfn::runtime::DeviceKind::Cpu)?;
    args.task.look(Validated(args))
}

struct Validated<'a>(&'a Args);

/// The number of times that an interval held, of so many.
#[derive(Default)]
struct Held {
    of: usize,
    times: usize,
}

impl Held {
    fn add(&mut self, holds: bool) {
        self.of += 1;
        self.times += usize::from(holds);
    }

    fn json(&self) -> serde_json::Value {
        json!({ "of": self.of, "share": self.times as f64 / self.of.max(1) as f64 })
    }
}

/// The counts over policies.
#[derive(Default)]
struct Counted {
    log_p: Held,
    log_p_wide: usize,
    log_z: Held,
    log_z_at_least: Held,
    log_z_upper: Held,
    consistency: Held,
    tv: Held,
    clean: usize,
    neglected: usize,
    tvs: Vec<f64>,
    fcs: Vec<f64>,
    rows: Vec<serde_json::Value>,
}

impl Look for Validated<'_> {
    fn look<E: EnumerableEnv, R: Reward<E::States>>(self, known: Known<E, R>) -> Result<()> {
        let (args, listed) = (self.0, known.listed()?);
        let (env, graph) = (&known.env, &listed.graph);
        let exact = ExactPolicy::new(graph, env, UniformPolicy, &known.reward)?;
        let mut rng = Rng::seeded(args.seed);
        let target = listed.of_objects(&listed.target.probs);
        let draws = Draws::new(&known, &listed, &mut rng)?;
        let (mut counted, mut progress) = (Counted::default(), Progress::new(args.policies as u64, "policies"));
        for k in 0..args.policies {
            let worse = 1.0 - k as f64 / (args.policies - 1).max(1) as f64;
            let (keep, noise) = match k {
                0 => (0.0, 0.0),
                _ => (1.0 - worse * rng.uniform(), 2.0 * worse * rng.uniform()),
            };
            let policy = Blurred { exact: &exact, graph, keep, noise, seed: args.seed + k as u64 };
            let of_states = graph.terminating_distribution(env, &policy, None)?.probs;
            let probs = listed.of_objects(&of_states);
            let tv = Distances::between(&probs, &target)?.tv;
            let budget = Budget { samples: args.samples, paths: args.paths, ..Budget::default() };
            let ideal = draws.of_target(&known, &listed, args.samples, &mut rng);
            let certificate = certify(env, &policy, &known.reward, Some(&ideal), budget, &mut rng)?;
            counted.add(
                &certificate,
                tv,
                listed.target.log_z,
                draws.consistency(&listed, &probs, budget.size / 3, &mut rng)?,
            );
            counted.tv_alone(&certify(env, &policy, &known.reward, None, budget, &mut rng)?, tv);
            let mut objects = sample_objects(env, &policy, OBJECTS / 2, &mut rng)?;
            objects.append(sample_objects(env, &UniformPolicy, OBJECTS / 2, &mut rng)?);
            let found = gfn::metrics::certificates::log_probs(env, &policy, &objects, args.paths, &mut rng)?;
            for (state, log_prob) in graph.indices(env, &objects).into_iter().zip(found) {
                let p = state.map_or(0.0, |state| probs[listed.of[state]]).ln();
                let of = log_prob.log_p;
                if log_prob.bias > 0.1 {
                    counted.log_p_wide += 1;
                } else {
                    counted.log_p.add(of.low - ROUNDING <= p && p <= of.high + ROUNDING);
                }
            }
            progress.update(k as u64 + 1, tv, None);
        }
        counted.print(args, listed.target.log_z)
    }
}

impl Counted {
    /// A certificate that was given samples of the target.
    fn add(&mut self, certificate: &Certificate, tv: f64, log_z: f64, fcs: f64) {
        let bounds = &certificate.log_z;
        if let Some(estimate) = bounds.estimate {
            self.log_z.add(estimate.low - ROUNDING <= log_z && log_z <= estimate.high + ROUNDING);
        }
        self.log_z_at_least.add(bounds.at_least <= log_z + ROUNDING);
        self.log_z_upper.add(bounds.upper.high >= log_z - ROUNDING);
        let found = certificate.consistency.fcs;
        self.consistency.add(found.low - ROUNDING <= fcs && fcs <= found.high + ROUNDING);
        self.tv.add(certificate.tv.at_least <= tv + ROUNDING && tv <= certificate.tv.at_most + ROUNDING);
        self.clean += usize::from(certificate.is_clean());
        let neglects = |finding: &Finding| matches!(finding, Finding::Neglected { .. });
        self.neglected += usize::from(certificate.findings.iter().any(neglects));
        self.tvs.push(tv);
        self.fcs.push(found.estimate);
        self.rows.push(json!({ "tv": tv, "tv_bounds": [certificate.tv.at_least, certificate.tv.at_most], "fcs": found, "fcs_true": fcs, "log_z": bounds.estimate,
            "effective_samples": certificate.effective_samples, "findings": certificate.findings }));
    }

    /// One by the policy's own samples: its bound on total variation says what it assumes.
    fn tv_alone(&mut self, certificate: &Certificate, tv: f64) {
        if let Some(row) = self.rows.last_mut() {
            row["tv_bounds_alone"] = json!([certificate.tv.at_least, certificate.tv.at_most]);
            row["holds_alone"] =
                json!(certificate.tv.at_least <= tv + ROUNDING && tv <= certificate.tv.at_most + ROUNDING);
        }
    }

    fn print(&self, args: &Args, log_z: f64) -> Result<()> {
        let alone = self.rows.iter().filter(|row| row["holds_alone"] == true).count();
        let line = json!({ "example": "certificates", "task": args.task.name(), "seed": args.seed, "samples": args.samples, "threads": args.threads,
            "policies": args.policies, "log_z_true": log_z, "log_p": self.log_p.json(), "log_p_too_uncertain": self.log_p_wide,
            "log_z": self.log_z.json(), "log_z_at_least": self.log_z_at_least.json(), "log_z_upper": self.log_z_upper.json(),
            "fcs": self.consistency.json(), "tv": self.tv.json(), "tv_alone": alone as f64 / self.rows.len().max(1) as f64,
            "fcs_against_tv": Correlation::between(&self.fcs, &self.tvs)?.spearman, "clean": self.clean, "neglected": self.neglected });
        if let serde_json::Value::Object(figures) = &line {
            figures.iter().for_each(|(name, value)| tell(format_args!("{name:<22}{value}")));
        }
        if args.json {
            let mut line = line;
            line["of_policies"] = json!(self.rows);
            print(&line)?;
        }
        Ok(())
    }
}

/// The distributions that objects are drawn from, by their places.
struct Draws {
    uniform: Vec<f64>,
    target: Vec<f64>,
    searched: Vec<usize>,
}

impl Draws {
    fn new<E: EnumerableEnv, R: Reward<E::States>>(
        known: &Known<E, R>,
        listed: &Listed<E>,
        rng: &mut Rng,
    ) -> Result<Self> {
        let (env, graph) = (&known.env, &listed.graph);
        let uniform = listed.of_objects(&graph.terminating_distribution(env, &UniformPolicy, None)?.probs);
        // As certificates search.
        let search = LocalSearch { rounds: 8, max_back: 4, acceptance: Acceptance::MetropolisHastings };
        let starts = sample_objects(env, &UniformPolicy, SEARCHED, rng)?;
        let (found, _) = Sampler::new(env, &UniformPolicy).local_search(search, &starts, &known.reward, rng)?;
        let searched = graph.indices(env, &found).into_iter().flatten().map(|state| listed.of[state]).collect();
        Ok(Self { uniform, target: listed.of_objects(&listed.target.probs), searched })
    }

    /// Objects drawn from the target.
    fn of_target<E: EnumerableEnv, R>(
        &self,
        _: &Known<E, R>,
        listed: &Listed<E>,
        n: usize,
        rng: &mut Rng,
    ) -> E::States {
        let sums = sums(&self.target);
        let states: Vec<usize> = (0..n).map(|_| listed.first[draw(&sums, rng)]).collect();
        listed.graph.states().select(&states)
    }

    /// The mean distance of subsets, by exact probabilities.
    fn consistency<E: EnumerableEnv>(
        &self,
        listed: &Listed<E>,
        probs: &[f64],
        share: usize,
        rng: &mut Rng,
    ) -> Result<f64> {
        let (own, uniform) = (sums(probs), sums(&self.uniform));
        let mut total = 0.0;
        for _ in 0..SUBSETS {
            let mut subset: Vec<usize> = (0..share).map(|_| draw(&own, rng)).collect();
            subset.extend((0..share).map(|_| draw(&uniform, rng)));
            subset.extend((0..share).map(|_| self.searched[rng.below(self.searched.len())]));
            subset.sort_unstable();
            subset.dedup();
            let log_p: Vec<f64> = subset.iter().map(|&object| probs[object].ln()).collect();
            let of = |object: usize| listed.target.log_rewards[listed.first[object]];
            let log_r: Vec<f64> = subset.iter().map(|&object| of(object)).collect();
            debug_assert!(log_sum_exp(log_r.iter().copied()).is_finite());
            total += subset_distance(&log_p, &log_r)?;
        }
        Ok(total / SUBSETS as f64)
    }
}

fn sums(probs: &[f64]) -> Vec<f64> {
    let mut total = 0.0;
    let add = |p: &f64| {
        total += p;
        total
    };
    probs.iter().map(add).collect()
}

fn draw(sums: &[f64], rng: &mut Rng) -> usize {
    let u = rng.uniform() * sums.last().copied().unwrap_or_default();
    sums.partition_point(|&sum| sum <= u).min(sums.len() - 1)
}
