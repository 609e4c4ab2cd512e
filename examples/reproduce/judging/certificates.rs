//! A comparison of certificates with the truth. A certificate states bounds and confidence intervals for a
//! policy's log Z and for its distance from the target, computed from samples. The task counts how many of
//! them hold, for policies whose quality ranges from uniform to exact.

use gfn::distribution::GraphActionCategorical;
use gfn::metrics::{Cumulative, ExactPolicy};
use gfn::policy::Evaluation;
use gfn::rollout::{Acceptance, LocalSearch};
use gfn::run::Progress;
use gfn::tensor::log_sum_exp;
use gfn_judge::{Budget, Certificate, Interval, certify, log_probs, subset_distance};

use super::known_task::{KnownTask, ListedTask, TaskArgs, Visit};
use crate::prelude::*;

/// Count how many bounds and intervals of certificates hold, for policies of every quality
#[derive(Args)]
pub(crate) struct Certificates {
    #[command(flatten)]
    task: TaskArgs,
    /// Number of policies, which are of three types in turn. Blurred policies range from uniform to exact.
    /// Ordered policies are exact, but their P_F prefers some paths to an object. Needle policies are exact
    /// except for one object, whose target probability is 1 or 5 %, and which is never sampled
    #[arg(long, default_value_t = 200)]
    policies: usize,
    /// Number of trajectories from which each certificate is computed
    #[arg(long, default_value_t = 4_000)]
    samples: usize,
    /// Seed of the policies and of their samples
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of threads of rayon and of libtorch
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// The number of objects that are drawn from the target. Each policy gets two certificates, and only the
/// second one uses these objects.
const IDEAL: usize = 300;
/// The number of backward trajectories that are sampled from an object to estimate its log-probability.
const PATHS: usize = 64;
/// The number of random subsets of objects from which the true flow consistency of a policy is computed. Flow
/// consistency is the mean distance between policy and target on such subsets.
const SUBSETS: usize = 4_000;
/// The number of objects from which local search starts. Flow consistency uses random subsets of objects, and
/// a third of each subset is drawn from the objects that the search finds.
const SEARCHED: usize = 1_000;
/// The number of objects of each policy whose estimated log-probabilities are compared with exact
/// log-probabilities.
const OBJECTS: usize = 24;
/// The largest bias of an estimated log-probability. Intervals of estimates with a larger bias aren't
/// counted.
const MAX_BIAS: f64 = 0.1;
/// The tolerance in comparisons of bounds with the truth. The tolerance allows for rounding errors of exact
/// policies.
const ROUNDING: f64 = 1e-5;
/// The types of policies that are certified, as the help of `--policies` describes them.
const KINDS: [&str; 3] = ["blurred", "ordered", "needle"];

impl Task for Certificates {
    fn run(&self) -> Result<()> {
        Runtime::new(self.threads, DeviceKind::Cpu)?;
        self.task.visit(self)
    }
}

/// The results for all policies of one type.
#[derive(Default, Serialize)]
struct Counts {
    /// The counts for each bound or interval, by name: how often it was compared with the truth, and how
    /// often it held.
    #[serde(rename = "held")]
    n_held: BTreeMap<&'static str, (usize, usize)>,
    clean: usize,
    limited: usize,
    certificates: usize,
}

impl Visit for &Certificates {
    fn visit<E: EnumerableEnv>(self, known: KnownTask<E>) -> Result<()> {
        let args = self;
        let listed = known.list()?;
        let env = &known.env;
        let graph = &listed.graph;
        let exact = ExactPolicy::new(graph, env, &UniformPolicy, &known.reward)?;
        let mut check = Check { args, env, task: &listed, rng: Rng::seeded(args.seed) };
        let mut progress = Progress::new(args.policies as u64, "policies");
        let mut counts = KINDS.map(|_| Counts::default());
        for k in 0..args.policies {
            let kind = k % KINDS.len();
            let seed = args.seed + k as u64;
            let counted = &mut counts[kind];
            let tv = match KINDS[kind] {
                "blurred" => {
                    let worse = 1.0 - k as f64 / (args.policies - 1).max(1) as f64;
                    let (keep, noise) = match k {
                        0 => (0.0, 0.0),
                        _ => (1.0 - worse * check.rng.uniform(), 2.0 * worse * check.rng.uniform()),
                    };
                    let policy = BlurredPolicy {
                        policy: &exact,
                        direction: Direction::Forward,
                        graph,
                        keep,
                        noise,
                        seed,
                    };
                    check.policy(&policy, known.reward.as_ref(), counted)?
                }
                "ordered" => {
                    let direction = Direction::Backward;
                    let noise = 8.0 * check.rng.uniform();
                    let orders =
                        BlurredPolicy { policy: &UniformPolicy, direction, graph, keep: 1.0, noise, seed };
                    let ordered = ExactPolicy::new(graph, env, &orders, &known.reward)?;
                    let policy =
                        BlurredPolicy { policy: &ordered, direction, graph, keep: 0.0, noise: 0.0, seed };
                    check.policy(&policy, known.reward.as_ref(), counted)?
                }
                _ => {
                    let mass = if k % 2 == 0 { 0.05f64 } else { 0.01 };
                    let needle = check.rng.below(listed.first.len());
                    let of = &listed.object_of;
                    let log_rewards = &listed.target.log_rewards;
                    let others = listed.first.iter().filter(|state| of[**state] != needle);
                    let log_others = log_sum_exp(others.map(|state| log_rewards[*state]).collect::<Vec<_>>());
                    let with_needle = |log_r: f64| {
                        let of_state =
                            move |state: usize| if of[state] == needle { log_r } else { log_rewards[state] };
                        move |states: &E::States, _: Option<&Tensor>| -> Result<Vec<f64>> {
                            let of_index = |index: Option<usize>| index.map_or(f64::NEG_INFINITY, of_state);
                            Ok(graph.indices(env, states).into_iter().map(of_index).collect())
                        }
                    };
                    let policy =
                        ExactPolicy::new(graph, env, &UniformPolicy, &with_needle(log_others - 14.0))?;
                    check.policy(&policy, &with_needle(log_others + (mass / (1.0 - mass)).ln()), counted)?
                }
            };
            progress.update(k as u64 + 1, tv, None);
        }
        let mut line = json!({ "example": "certificates", "task": self.task.name(), "seed": self.seed,
            "samples": self.samples,
            "objects": IDEAL, "threads": self.threads, "policies": self.policies,
            "log_z_true": listed.target.log_z });
        for (name, counted) in KINDS.iter().zip(counts) {
            line[*name] = json!(counted);
        }
        tell(format_args!("{line:#}"));
        if self.json { print(&line) } else { Ok(()) }
    }
}

/// The settings and the exact distribution of a task, for comparisons of certificates with the truth.
struct Check<'a, E: EnumerableEnv> {
    args: &'a Certificates,
    env: &'a E,
    task: &'a ListedTask<E>,
    rng: Rng,
}

impl<E: EnumerableEnv> Check<'_, E> {
    /// Certifies a policy twice: without objects drawn from the target, and with such objects. Counts the
    /// bounds and intervals that hold. Returns the policy's total variation.
    fn policy(
        &mut self,
        policy: &dyn Policy<E>,
        reward: &dyn Reward<E::States>,
        counted: &mut Counts,
    ) -> Result<f64> {
        let Self { args, env, task: listed, rng } = self;
        let target = listed.graph.target_distribution(reward, None)?;
        let log_z = target.log_z;
        let wanted = listed.object_probs(&target.probs);
        let probs = listed.object_probs(&listed.graph.terminating_distribution(*env, policy, None)?.probs);
        let tv = Distances::between(&probs, &wanted)?.tv;
        let budget = Budget { samples: args.samples, paths: PATHS, ..Budget::default() };
        let alone = certify(*env, policy, reward, None, budget, rng)?;
        counted.add(&alone, tv, log_z);
        let perfect = Cumulative::new(&wanted);
        let states: Vec<usize> = (0..IDEAL).map(|_| listed.first[perfect.draw(rng)]).collect();
        let ideal = listed.graph.states().select(&states);
        counted.add(&certify(*env, policy, reward, Some(&ideal), budget, rng)?, tv, log_z);
        if let Some(known) = alone.consistency {
            let truth = true_consistency(*env, reward, listed, &probs, budget.size / 3, rng)?;
            counted.interval("fcs", known.fcs, truth);
        }
        let mut objects = sample(*env, policy, OBJECTS / 2, rng)?;
        objects.append(sample(*env, &UniformPolicy, OBJECTS / 2, rng)?);
        let found = log_probs(*env, policy, &objects, PATHS, rng)?;
        for (state, log_prob) in listed.graph.indices(env, &objects).into_iter().zip(found) {
            if log_prob.bias <= MAX_BIAS {
                let p = state.map_or(0.0, |state| probs[listed.object_of[state]]).ln();
                counted.interval("log_p", log_prob.log_p, p);
            }
        }
        Ok(tv)
    }
}

impl Counts {
    fn bound(&mut self, name: &'static str, holds: bool) {
        let (number, times) = self.n_held.entry(name).or_default();
        *number += 1;
        *times += usize::from(holds);
    }

    fn interval(&mut self, name: &'static str, interval: Interval, truth: f64) {
        self.bound(name, interval.low - ROUNDING <= truth && truth <= interval.high + ROUNDING);
    }

    fn add(&mut self, certificate: &Certificate, tv: f64, log_z: f64) {
        let Certificate { log_z: of_log_z, tv: of_tv, .. } = certificate;
        if let Some(estimate) = of_log_z.estimate {
            self.interval("log_z", estimate, log_z);
        }
        self.bound("log_z_at_least", of_log_z.at_least <= log_z + ROUNDING);
        if let Some(most) = of_log_z.at_most {
            self.bound("log_z_at_most", log_z <= most + ROUNDING);
        }
        self.bound("tv_at_least", of_tv.at_least <= tv + ROUNDING);
        self.bound("tv_at_most", tv <= of_tv.at_most + ROUNDING);
        if let (Some(most), true) =
            (of_tv.at_most_by_importance, of_tv.if_log_z_at_most.is_some_and(|z| log_z <= z))
        {
            self.bound("tv_at_most_by_importance", tv <= most + ROUNDING);
        }
        self.clean += usize::from(certificate.is_clean());
        self.limited += usize::from(!certificate.limits.is_empty());
        self.certificates += 1;
    }
}

/// Returns the true flow consistency of a policy, computed from exact probabilities. Flow consistency is the
/// mean distance between the policy and the target on random subsets of objects. For each subset, `share`
/// objects are drawn from each of three sources: the policy, uniform random trajectories, and local search.
fn true_consistency<E: EnumerableEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    listed: &ListedTask<E>,
    probs: &[f64],
    share: usize,
    rng: &mut Rng,
) -> Result<f64> {
    let graph = &listed.graph;
    let uniform = Cumulative::new(
        &listed.object_probs(&graph.terminating_distribution(env, &UniformPolicy, None)?.probs),
    );
    let own = Cumulative::new(probs);
    // Certificates use local search with the same settings.
    let search = LocalSearch { rounds: 8, max_back: 4, acceptance: Acceptance::MetropolisHastings };
    let starts = sample(env, &UniformPolicy, SEARCHED, rng)?;
    let (found, _) = Sampler::new(env, &UniformPolicy).local_search(search, &starts, reward, rng)?;
    let searched: Vec<usize> =
        graph.indices(env, &found).into_iter().flatten().map(|state| listed.object_of[state]).collect();
    let log_rewards = reward.log_reward(&graph.states().select(&listed.first), None)?;
    let mut total = 0.0;
    for _ in 0..SUBSETS {
        let mut subset: Vec<usize> = (0..share).map(|_| own.draw(rng)).collect();
        subset.extend((0..share).map(|_| uniform.draw(rng)));
        subset.extend((0..share).map(|_| searched[rng.below(searched.len())]));
        subset.sort_unstable();
        subset.dedup();
        let log_p: Vec<f64> = subset.iter().map(|&object| probs[object].ln()).collect();
        let log_r: Vec<f64> = subset.iter().map(|&object| log_rewards[object]).collect();
        total += subset_distance(&log_p, &log_r)?;
    }
    Ok(total / SUBSETS as f64)
}

/// A policy with changed logits in one direction, forward or backward: each log-probability of `policy` is
/// multiplied by `keep`, and then a standard normal number times `noise` is added. The normal number depends
/// only on the state and the next state, so that moves to isomorphic states stay equally probable.
struct BlurredPolicy<'a, E: EnumerableEnv> {
    policy: &'a dyn Policy<E>,
    direction: Direction,
    graph: &'a StateGraph<E>,
    keep: f64,
    noise: f64,
    seed: u64,
}

impl<E: EnumerableEnv> BlurredPolicy<'_, E> {
    /// Returns the noise of a move: the standard normal number for the states `from` and `to`. For the exit,
    /// `to` is `None`.
    fn noise(&self, from: usize, to: Option<usize>) -> f64 {
        let to = to.map_or(0, |to| 1 + to as u64);
        Rng::seeded(Rng::mix64(self.seed ^ Rng::mix64(from as u64 ^ Rng::mix64(to)))).normal()
    }

    fn blurred(
        &self,
        env: &E,
        states: &E::States,
        dist: &GraphActionCategorical,
    ) -> Result<GraphActionCategorical> {
        let masks = dist.masks().clone();
        let from = self.graph.indices(env, states);
        let log_probs = dist.host_log_probs()?;
        let offsets = dist.legal_offsets();
        let legal = dist.legal_slots();
        // The lists `rows`, `slots` and `places` have an entry for each legal move that isn't an exit: the
        // index of its state, its slot, and its index in `logits`.
        let mut rows = Vec::new();
        let mut slots = Vec::new();
        let mut places = Vec::new();
        let mut logits = Vec::new();
        let mut first = 0;
        for row in 0..masks.len() {
            let own = masks.row(row).len();
            logits.resize(first + own, 0.0f32);
            for k in offsets[row]..offsets[row + 1] {
                let place = first + legal[k] as usize;
                logits[place] = (self.keep * log_probs[k]) as f32;
                if masks.is_exit(row, legal[k]) {
                    logits[place] += (self.noise * self.noise(from[row].unwrap_or_default(), None)) as f32;
                } else {
                    rows.push(row);
                    slots.push(legal[k]);
                    places.push(place);
                }
            }
            first += own;
        }
        let slots = Slots(slots);
        let neighbours = if self.direction == Direction::Forward {
            env.child_keys(states, &rows, &slots)?
        } else {
            let mut parents = states.select(&rows);
            env.step(Direction::Backward, &mut parents, &slots)?;
            env.keys(&parents)
        };
        for ((row, key), place) in rows.into_iter().zip(neighbours).zip(places) {
            let to = self.graph.index_of_key(&key);
            logits[place] += (self.noise * self.noise(from[row].unwrap_or_default(), to)) as f32;
        }
        GraphActionCategorical::on_host(masks, logits)
    }
}

impl<E: EnumerableEnv> Policy<E> for BlurredPolicy<'_, E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut evaluation = self.policy.evaluate(env, states, conditions, wants)?;
        let dist = if self.direction == Direction::Forward { &mut evaluation.pf } else { &mut evaluation.pb };
        *dist = dist.take().map(|dist| self.blurred(env, states, &dist)).transpose()?;
        Ok(evaluation)
    }
}
