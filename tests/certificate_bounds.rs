//! Bounds of certificates are compared with the true values from enumeration, for two misleading sorts of
//! policies. The first are exact, but prefer one order of building an object. The second are exact except
//! for one rare object. All random numbers have fixed seeds.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Reward, Rows, Slots, StateGraph, VectorStates};
use gfn::graph::GraphKind;
use gfn::metrics::{Distances, ExactPolicy};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, Policy, UniformPolicy};
use gfn::{Result, Rng};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::hypergrid::HyperGrid;
use gfn_gym::ring::{Ring, RingReward};
use gfn_gym::set_addition::SetAddition;
use gfn_judge::{Budget, Certificate, Limit, certify};
use tch::Tensor;

use crate::certificates::draw_objects;

const BUDGET: Budget = Budget { samples: 1_000, subsets: 16, size: 12, paths: 32 };
/// The tolerance for exact metrics in single precision.
const ROUNDING: f64 = 1e-5;

/// A P_B that prefers some parents. The logit of the step from a state to a parent is `scale` times a number
/// between 0 and 1, which is a hash of the two states.
struct OrderedBackward<'a, E: EnumerableEnv> {
    graph: &'a StateGraph<E>,
    scale: f64,
    seed: u64,
}

impl<E: EnumerableEnv> Policy<E> for OrderedBackward<'_, E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let masks = env.masks(Direction::Backward, states);
        let from = self.graph.indices(env, states);
        let mut logits = Vec::new();
        for (row, here) in from.iter().enumerate() {
            for slot in 0..masks.row(row).len() {
                let mut logit = 0.0;
                if masks.row(row)[slot] {
                    let mut parent = states.select(&[row]);
                    env.step(Direction::Backward, &mut parent, &Slots(vec![slot as u32]))?;
                    let to = self.graph.indices(env, &parent)[0].unwrap() as u64;
                    let pair = Rng::mix64(here.unwrap() as u64 ^ Rng::mix64(to ^ self.seed));
                    logit = self.scale * Rng::seeded(pair).uniform();
                }
                logits.push(logit as f32);
            }
        }
        let pb = Some(GraphActionCategorical::on_host(masks, logits)?);
        Ok(Evaluation { pb, ..Evaluation::default() })
    }
}

/// A policy with the P_F of the wrapped policy and a uniform P_B.
struct WithUniformBackward<P>(P);

impl<E, P> Policy<E> for WithUniformBackward<P>
where
    E: DiscreteEnv,
    P: Policy<E>,
    UniformPolicy: Policy<E>,
{
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut out = UniformPolicy.evaluate(env, states, conditions, wants)?;
        if wants.has(Quantity::LogPf) {
            out.pf = self.0.evaluate(env, states, conditions, Quantities::PF)?.pf;
        }
        Ok(out)
    }
}

/// The exact values of the certified quantities, the number of checked bounds, and the number of false
/// bounds.
struct Truth {
    tv: f64,
    log_z: f64,
    bounds: usize,
    wrong: usize,
}

impl Truth {
    fn new<E, R>(env: &E, graph: &StateGraph<E>, policy: &dyn Policy<E>, reward: &R) -> Self
    where
        E: EnumerableEnv,
        R: Reward<E::States>,
    {
        let target = graph.target_distribution(reward, None).unwrap();
        let probs = graph.terminating_distribution(env, policy, None).unwrap().probs;
        let tv = Distances::between(&probs, &target.probs).unwrap().tv;
        Self { tv, log_z: target.log_z, bounds: 0, wrong: 0 }
    }

    /// Counts the false bounds of a certificate. A conditional bound counts as true if its condition is
    /// false.
    fn check(&mut self, certificate: &Certificate) {
        let Certificate { log_z, tv, .. } = certificate;
        let supposed = tv.if_log_z_at_most.is_some_and(|most| self.log_z <= most);
        let hold = [
            log_z.from_found_objects <= self.log_z + ROUNDING,
            log_z.at_least <= self.log_z + ROUNDING,
            log_z.at_most.is_none_or(|most| self.log_z <= most + ROUNDING),
            tv.at_least <= self.tv + ROUNDING,
            self.tv <= tv.at_most + ROUNDING,
            !supposed || tv.at_most_by_importance.is_none_or(|most| self.tv <= most + ROUNDING),
        ];
        self.bounds += hold.len();
        self.wrong += hold.iter().filter(|holds| !**holds).count();
        // The estimate of log Z must not contradict the bounds.
        if let Some(estimate) = log_z.estimate {
            assert!(estimate.high + 1e-4 >= log_z.at_least, "{certificate}");
            assert!(log_z.at_most.is_none_or(|most| estimate.low - 1e-4 <= most), "{certificate}");
        }
    }
}

/// Certifies exact policies that prefer one order of building an object, with and without objects sampled
/// from the target. Returns the number of certificates that reported this preference.
fn certify_ordered<E, R>(name: &str, env: &E, reward: &R, scales: &[f64]) -> usize
where
    E: EnumerableEnv,
    UniformPolicy: Policy<E>,
    R: Reward<E::States>,
{
    let graph = StateGraph::build(env, 10_000).unwrap();
    let mut noticed = 0;
    for (k, &scale) in scales.iter().enumerate() {
        let backward = OrderedBackward { graph: &graph, scale, seed: k as u64 };
        let policy = WithUniformBackward(ExactPolicy::new(&graph, env, &backward, reward).unwrap());
        let mut truth = Truth::new(env, &graph, &policy, reward);
        assert!(truth.tv < 1e-6, "{name}: {}", truth.tv);
        let target = graph.target_distribution(reward, None).unwrap().probs;
        for seed in 0..2 {
            let rng = &mut Rng::seeded(seed);
            let given = graph.states().select(&draw_objects(&graph, &target, 200, rng));
            for objects in [None, Some(&given)] {
                let certificate = certify(env, &policy, reward, objects, BUDGET, rng).unwrap();
                truth.check(&certificate);
                assert!(certificate.is_clean(), "{name}, preference {scale}, seed {seed}: {certificate}");
                noticed +=
                    usize::from(certificate.limits.iter().any(|l| matches!(l, Limit::PathsDisagree { .. })));
            }
        }
        assert!(
            truth.wrong == 0,
            "{name}, preference {scale}: {} of {} bounds are false",
            truth.wrong,
            truth.bounds
        );
    }
    noticed
}

const SCALES: [f64; 5] = [0.5, 2.0, 5.0, 10.0, 30.0];

fn waves(states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    let wave = |row: &[u16]| {
        row.iter().enumerate().map(|(i, &x)| (f64::from(x) * 0.7 + i as f64 * 0.37).sin()).sum()
    };
    Ok(states.rows().map(wave).collect())
}

#[test]
fn exact_policies_that_prefer_an_order_are_not_accused_on_grids() {
    assert!(certify_ordered("grid", &HyperGrid::new(2, 8).unwrap().env(), &waves, &SCALES) >= 8);
}

#[test]
fn exact_policies_that_prefer_an_order_are_not_accused_on_sets() {
    assert!(certify_ordered("sets", &SetAddition::new(8, 4, true).unwrap().env(), &waves, &SCALES) >= 8);
}

#[test]
fn exact_policies_that_prefer_an_order_are_not_accused_on_rings() {
    let reward = RingReward::new(100.0, 1e-2).unwrap();
    assert!(
        certify_ordered("rings", &Ring::new(3, GraphKind::Directed).unwrap().into_env(), &reward, &SCALES)
            >= 8
    );
}

#[test]
fn exact_policies_that_prefer_an_order_are_not_accused_on_coloured_graphs() {
    certify_ordered(
        "coloured graphs",
        &ColoredGraphs::new(4).unwrap().into_env(),
        &ColoredGraphReward::Count,
        &SCALES,
    );
}

/// Certifies a policy that is exact except that it almost never samples one object. The target probability of
/// this object is `mass`, which is also the total variation. Certificates get `objects` objects sampled from
/// the target. Returns the number of bounds and the number of false bounds.
fn certify_needle(mass: f64, objects: usize, seeds: u64) -> (usize, usize) {
    let env = HyperGrid::new(3, 6).unwrap().env();
    let is_needle = |row: &[u16]| row.iter().all(|&x| x == 5);
    let log_needle = (215f64 * mass / (1.0 - mass)).ln();
    let reward = |log_r: f64| {
        move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(states.rows().map(|row| if is_needle(row) { log_r } else { 0.0 }).collect())
        }
    };
    let with = reward(log_needle);
    let without = reward(-14.0);
    let graph = StateGraph::build(&env, 1_000).unwrap();
    let policy = ExactPolicy::new(&graph, &env, &UniformPolicy, &without).unwrap();
    let mut truth = Truth::new(&env, &graph, &policy, &with);
    assert!((truth.tv - mass).abs() < 1e-5);
    let target = graph.target_distribution(&with, None).unwrap().probs;
    for seed in 0..seeds {
        let rng = &mut Rng::seeded(seed);
        let given = graph.states().select(&draw_objects(&graph, &target, objects, rng));
        let certificate = certify(&env, &policy, &with, Some(&given), BUDGET, rng).unwrap();
        truth.check(&certificate);
        assert!(certificate.log_z.at_most.is_some());
    }
    (truth.bounds, truth.wrong)
}

#[test]
fn bounds_hold_for_policies_that_miss_a_needle() {
    for mass in [0.05, 0.01] {
        for objects in [1, 5, 20, 100, 300] {
            let (bounds, wrong) = certify_needle(mass, objects, 4);
            assert!(wrong == 0, "needle of {mass}, {objects} objects: {wrong} of {bounds} bounds are false");
        }
    }
}
