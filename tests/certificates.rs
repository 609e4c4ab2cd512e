//! Certificates and judgements are compared with the truth. Bounds must be valid, intervals must cover the
//! true values, and a bad policy must not get a clean report.

use gfn::env::{EnumerableEnv, Env, Reward, Rows, StateGraph, VectorEnv, VectorStates};
use gfn::examples::Triangles;
use gfn::metrics::{Distances, ExactPolicy, NoiseFloor};
use gfn::policy::UniformPolicy;
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_judge::{Budget, Finding, Judgement, Limit, certify, log_probs, subset_distance};
use tch::Tensor;

const BUDGET: Budget = Budget { samples: 2_000, subsets: 32, size: 12, paths: 64 };

/// Builds the environment of a grid with four modes, its state graph and its reward.
fn grid() -> (VectorEnv, StateGraph<VectorEnv>, OriginalReward) {
    let grid = HyperGrid::new(2, 8).unwrap();
    let env = grid.env();
    let reward = OriginalReward::new(&grid, 0.01, 0.5, 2.0).unwrap();
    let graph = StateGraph::build(&env, 100).unwrap();
    (env, graph, reward)
}

/// Draws `n` objects from a distribution over the states of a graph. Returns the indices of their states.
pub(crate) fn draw_objects<E: EnumerableEnv>(
    graph: &StateGraph<E>,
    probs: &[f64],
    n: usize,
    rng: &mut Rng,
) -> Vec<usize> {
    let draw = |u: f64| {
        let mut rest = u;
        (0..graph.len()).find(|&state| {
            rest -= probs[state];
            rest < 0.0
        })
    };
    (0..n).map(|_| draw(rng.uniform()).unwrap_or_default()).collect()
}

#[test]
fn an_exact_policy_gets_a_clean_report() {
    let (env, graph, reward) = grid();
    let exact = ExactPolicy::new(&graph, &env, &UniformPolicy, &reward).unwrap();
    let log_z = graph.target_distribution(&reward, None).unwrap().log_z;
    let certificate = certify(&env, &exact, &reward, None, BUDGET, &mut Rng::seeded(0)).unwrap();
    assert!(certificate.is_clean() && certificate.limits.is_empty(), "{certificate}");
    // The policy's own samples give no unconditional upper bounds. They give only an upper bound on the total
    // variation under the condition that log Z isn't above a stated value.
    assert!(certificate.tv.at_most == 1.0 && certificate.log_z.at_most.is_none());
    assert!(certificate.tv.at_most_by_importance.unwrap() < 0.01 && certificate.tv.at_least < 1e-4);
    assert!((certificate.log_z.estimate.unwrap().estimate - log_z).abs() < 1e-5);
    assert!(certificate.log_z.at_least <= log_z + 1e-6 && certificate.consistency.unwrap().fcs.high < 1e-4);
    assert!(certificate.to_string().contains("Nothing was found against the policy"));
    // A certificate must stay the same if it is serialised and read again.
    let text = serde_json::to_string(&certificate).unwrap();
    let read: gfn_judge::Certificate = serde_json::from_str(&text).unwrap();
    assert_eq!((read.findings, read.log_z), (certificate.findings, certificate.log_z));

    // Objects sampled from the target give upper bounds for total variation and log Z. The bounds are as
    // tight as the number of objects allows.
    let target = graph.target_distribution(&reward, None).unwrap().probs;
    let given = graph.states().select(&draw_objects(&graph, &target, 2_000, &mut Rng::seeded(1)));
    let certificate = certify(&env, &exact, &reward, Some(&given), BUDGET, &mut Rng::seeded(2)).unwrap();
    let most = certificate.log_z.at_most.unwrap();
    assert!(log_z <= most && most < log_z + 5.5 / 2_000.0 && certificate.tv.at_most < 0.01, "{certificate}");
}

/// Tests a policy that is exact except that it never samples one of four modes. Its own samples look
/// perfect.
#[test]
fn a_policy_that_misses_a_mode_gets_no_clean_report() {
    let (env, graph, reward) = grid();
    let without = |points: &VectorStates, conditions: Option<&Tensor>| -> Result<Vec<f64>> {
        let log_rewards = reward.log_reward(points, conditions)?;
        let missed = points.rows().map(|point| point.iter().all(|&x| x > 3));
        Ok(log_rewards
            .into_iter()
            .zip(missed)
            .map(|(log_r, missed)| if missed { log_r - 12.0 } else { log_r })
            .collect())
    };
    let policy = ExactPolicy::new(&graph, &env, &UniformPolicy, &without).unwrap();
    let target = graph.target_distribution(&reward, None).unwrap();
    let probs = graph.terminating_distribution(&env, &policy, None).unwrap().probs;
    let tv = Distances::between(&probs, &target.probs).unwrap().tv;
    assert!((tv - 0.25).abs() < 0.01, "{tv}");
    let certificate = certify(&env, &policy, &reward, None, BUDGET, &mut Rng::seeded(0)).unwrap();
    // The effective sample size doesn't reveal the missing mode, because the importance weights of the
    // policy's samples are nearly equal.
    assert!(certificate.effective_samples > 1_900.0);
    let found = |wanted: fn(&Finding) -> bool| certificate.findings.iter().any(wanted);
    assert!(
        found(|finding| matches!(finding, Finding::Neglected { mass, .. } if *mass > 0.1)),
        "{certificate}"
    );
    assert!(found(|finding| matches!(finding, Finding::TotalVariation { .. })), "{certificate}");
    assert!(0.1 < certificate.tv.at_least && certificate.tv.at_least <= tv);
    // The samples' interval for log Z contradicts the rewards of the objects that were found. The certificate
    // must therefore contain no estimate of log Z.
    assert!(
        matches!(certificate.limits[..], [Limit::LogZContradicted { .. }])
            && certificate.log_z.estimate.is_none()
    );

    // With objects sampled from the target, the upper bounds are valid for this policy, too.
    let states = draw_objects(&graph, &target.probs, 4_000, &mut Rng::seeded(1));
    let given = graph.states().select(&states);
    let certificate = certify(&env, &policy, &reward, Some(&given), BUDGET, &mut Rng::seeded(2)).unwrap();
    assert!(
        certificate.log_z.at_most.unwrap() > target.log_z && certificate.tv.at_most > tv,
        "{certificate}"
    );
}

/// Tests objects that weren't sampled from the target. Such objects make the upper bounds false, but the
/// certificate must not report defects of an exact policy.
#[test]
fn a_false_upper_bound_is_no_less_than_the_lower_one() {
    let (env, graph, reward) = grid();
    let exact = ExactPolicy::new(&graph, &env, &UniformPolicy, &reward).unwrap();
    let target = graph.target_distribution(&reward, None).unwrap().probs;
    let best = (0..target.len()).max_by(|&a, &b| target[a].total_cmp(&target[b])).unwrap();
    for given in [vec![best; 4_000], graph.ends()] {
        let given = graph.states().select(&given);
        let certificate = certify(&env, &exact, &reward, Some(&given), BUDGET, &mut Rng::seeded(0)).unwrap();
        assert!(certificate.log_z.at_most.unwrap() >= certificate.log_z.at_least, "{certificate}");
        assert!(certificate.is_clean() && certificate.tv.at_least == 0.0, "{certificate}");
    }
}

/// Tests 40 certificates of a mediocre policy. The intervals must cover the true values as often as they
/// claim.
#[test]
fn intervals_cover_the_truth() {
    let env = Triangles::env();
    let graph = StateGraph::build(&env, 100).unwrap();
    let reward = |states: &gfn::graph::GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.graphs().iter().map(|graph| graph.n_edges() as f64 * 0.7).collect())
    };
    let target = graph.target_distribution(&reward, None).unwrap();
    let uniform = graph.terminating_distribution(&env, &UniformPolicy, None).unwrap().probs;
    let tv = Distances::between(&uniform, &target.probs).unwrap().tv;
    let ends = graph.ends();
    let objects = graph.states().select(&ends);
    let mut of_log_p = 0;
    let mut of_log_z = 0;
    let mut of_tv = 0;
    for seed in 0..40 {
        let rng = &mut Rng::seeded(seed);
        let certificate =
            certify(&env, &UniformPolicy, &reward, None, Budget { samples: 1_500, ..BUDGET }, rng).unwrap();
        match certificate.log_z.estimate {
            Some(estimate) => of_log_z += usize::from(estimate.contains(target.log_z)),
            None => {
                assert!(matches!(certificate.limits[..], [Limit::LogZContradicted { .. }]), "{certificate}")
            }
        }
        // The conditional upper bound must be valid if its condition is true.
        let is_condition_true = certificate.tv.if_log_z_at_most.is_some_and(|most| target.log_z <= most);
        let at_most = if is_condition_true { certificate.tv.at_most_by_importance.unwrap() } else { 1.0 };
        of_tv += usize::from(certificate.tv.at_least <= tv && tv <= at_most);
        assert!(certificate.log_z.at_least <= target.log_z && !certificate.is_clean());
        let found = log_probs(&env, &UniformPolicy, &objects, 40, rng).unwrap();
        let covers = ends.iter().zip(found).filter(|(state, found)| {
            let p = uniform[**state].ln();
            // The estimate for an object to which a single path leads is exact, and its interval has no
            // width. The tolerance allows for rounding.
            found.log_p.low - 1e-6 <= p && p <= found.log_p.high + 1e-6
        });
        of_log_p += covers.count();
    }
    assert!(of_log_z >= 36 && of_tv == 40, "log Z {of_log_z}, TV {of_tv} of 40");
    let share = of_log_p as f64 / (40 * ends.len()) as f64;
    assert!(share > 0.9, "log p(x) in {share}");
}

#[test]
fn samples_are_judged_by_what_their_sampler_is() {
    let (_, graph, reward) = grid();
    let target = graph.target_distribution(&reward, None).unwrap().probs;
    let rng = &mut Rng::seeded(3);
    let judged = Judgement::new(&target, &draw_objects(&graph, &target, 3_000, rng), rng).unwrap();
    assert!(judged.like_perfect && judged.tv.low < 1e-9 && judged.modes_found == judged.modes, "{judged:?}");
    let floor = NoiseFloor::simulate(&target, 3_000, 200, rng).unwrap();
    assert!((judged.tv_floor.estimate - floor.tv).abs() < 0.1 * floor.tv);
    assert!((judged.consistency.fcs.estimate - judged.consistency.floor).abs() < 0.05);

    // One of these 3,000 samples is an object with probability 0 in the target. A perfect sampler never draws
    // this object.
    let padded: Vec<f64> = target.iter().copied().chain([0.0]).collect();
    let foreign: Vec<usize> =
        draw_objects(&graph, &target, 2_999, rng).into_iter().chain([target.len()]).collect();
    assert!(!Judgement::new(&padded, &foreign, rng).unwrap().like_perfect);

    // This sampler moves a quarter of the probability to the most probable object.
    let moved: Vec<f64> = target.iter().map(|p| 0.75 * p).collect();
    let first = (0..target.len()).max_by(|&a, &b| target[a].total_cmp(&target[b])).unwrap();
    let worse: Vec<f64> =
        moved.iter().enumerate().map(|(k, p)| if k == first { p + 0.25 } else { *p }).collect();
    let tv = Distances::between(&worse, &target).unwrap().tv;
    let mut covers = 0;
    for _ in 0..40 {
        let judged = Judgement::new(&target, &draw_objects(&graph, &worse, 500, rng), rng).unwrap();
        covers += usize::from(judged.tv.contains(tv));
        assert!(!judged.like_perfect && judged.tv.low > 0.0, "{:?}", judged.tv);
    }
    assert!(covers >= 38, "{covers} of 40");

    // The samples lack the most probable object. The judgement must list this object.
    let rest: Vec<usize> =
        draw_objects(&graph, &target, 3_000, rng).into_iter().filter(|&state| state != first).collect();
    let judged = Judgement::new(&target, &rest, rng).unwrap();
    assert!(judged.missing[0].object == first && judged.missing[0].by_chance < 1e-9 && !judged.like_perfect);
}

#[test]
fn invalid_samples_are_refused() {
    let rng = &mut Rng::seeded(0);
    assert!(matches!(Judgement::new(&[0.5, 0.4], &[0, 1], rng), Err(Error::Config { .. })));
    assert!(matches!(Judgement::new(&[0.5, 0.5], &[0], rng), Err(Error::Config { .. })));
    assert!(matches!(Judgement::new(&[0.5, 0.5], &[0, 2], rng), Err(Error::OutOfRange { index: 2, len: 2 })));
    assert!(matches!(subset_distance(&[0.0], &[0.0, 0.0]), Err(Error::Shape { .. })));
    assert!(subset_distance(&[f64::NEG_INFINITY], &[0.0]).unwrap() == 1.0);
    let (env, _, reward) = grid();
    for bad in [Budget { samples: 1, ..BUDGET }, Budget { size: 2, ..BUDGET }, Budget { paths: 7, ..BUDGET }]
    {
        assert!(matches!(certify(&env, &UniformPolicy, &reward, None, bad, rng), Err(Error::Config { .. })));
    }
    let none = env.initial(&[]);
    assert!(matches!(
        certify(&env, &UniformPolicy, &reward, Some(&none), BUDGET, rng),
        Err(Error::Config { .. })
    ));
}
