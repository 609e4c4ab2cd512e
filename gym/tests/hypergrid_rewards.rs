//! Tests of the hyper-grid's rewards: closed forms compared with an enumeration of points, rules, presets,
//! and invalid settings. Some rewards have tiers: conditions that increase the reward of a point. Conditions
//! may depend on the point's rule.

use gfn::Error;
use gfn::env::{Env, Reward, VectorStates};
use gfn::tensor::to_host;
use gfn_gym::hypergrid::{
    BitwiseXor, ConditionalMultiscale, CoprimeTier, GridReward, HyperGrid, LcmTarget, MultiplicativeCoprime,
    MultiscaleTier, OriginalReward, Preset, REWARD_FLOOR, RewardKind,
};
use proptest::prelude::*;
use tch::Device;

fn grid(ndim: usize, height: usize) -> HyperGrid {
    HyperGrid::new(ndim, height).unwrap()
}

fn points(grid: &HyperGrid) -> VectorStates {
    grid.states_of(0..grid.n_states()).unwrap()
}

/// Checks a reward's closed forms and its tensor form by visiting every point. Returns `true` if the reward
/// has closed forms of log Z and of the number of modes.
fn agrees_with_enumeration(reward: &GridReward) -> bool {
    let totals = reward.totals(1 << 16).unwrap();
    let log_z = reward.log_z();
    let n_modes = reward.n_modes();
    assert!(
        log_z.is_none_or(|log_z| (log_z - totals.log_z).abs() < 1e-10),
        "{log_z:?} {totals:?} {reward:?}"
    );
    assert!(n_modes.is_none_or(|n_modes| n_modes == totals.n_modes), "{n_modes:?} {totals:?} {reward:?}");
    let states = points(reward.grid());
    for (mode, value) in reward.is_mode(&states).into_iter().zip(reward.reward(&states)) {
        assert!(!mode || value >= reward.mode_threshold() * (1.0 - 1e-9), "{value} {reward:?}");
        assert!(value >= reward.base() && value >= REWARD_FLOOR, "{value} {reward:?}");
    }
    tensor_form_agrees(reward, &states);
    log_z.is_some() && n_modes.is_some()
}

/// Compares the log-rewards of a reward's tensor form with those of the reward.
fn tensor_form_agrees(reward: &GridReward, points: &VectorStates) {
    let tensor = reward.grid().env().tensor_form().unwrap().to_tensor(points, Device::Cpu);
    let log_rewards = to_host(&reward.on_tensors().unwrap().log_rewards(&tensor).unwrap());
    for ((got, expected), point) in log_rewards.into_iter().zip(reward.reward(points)).zip(points.rows()) {
        assert!((got - expected.ln()).abs() < 1e-12, "{got} {expected} {point:?} {reward:?}");
    }
}

/// Compares counts of points with an enumeration. For each set of the reward's tiers, the points that meet
/// the conditions of all these tiers are counted, separately for each rule that may apply to a point.
fn counts_agree(reward: &GridReward) {
    let tiers = reward.tiered().unwrap();
    for set in 0..1u32 << tiers.weights.len() {
        let mut counts = vec![0; tiers.n_rules()];
        for point in points(reward.grid()).rows().filter(|point| tiers.passed_tiers(point) & set == set) {
            counts[tiers.rule(point)] += 1;
        }
        assert_eq!(tiers.counts_of_tiers(set), Some(counts), "{set:b} {reward:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn simple_rewards(ndim in 1usize..4, height in 2usize..13, r0 in 0.0..0.5, r1 in 0.0..2.0,
        r2 in 2.0..4.0, gamma in 0.1..1.0) {
        let grid = grid(ndim, height);
        prop_assert!(agrees_with_enumeration(OriginalReward::new(&grid, r0, r1, r2).unwrap().grid_reward()));
        prop_assert!(agrees_with_enumeration(&GridReward::deceptive(&grid, r0, r1, r2).unwrap()));
        prop_assert!(agrees_with_enumeration(&GridReward::sparse(&grid)));
        let cosine = GridReward::cosine(&grid, r0, r1, gamma).unwrap();
        agrees_with_enumeration(&cosine);
        prop_assert!(cosine.log_z().is_some());
        prop_assert_eq!(cosine.n_modes().is_some(), cosine.totals(1 << 16).unwrap().n_modes == 0);
    }

    /// Tests rewards with random parity checks: some points must pass all tiers. With several rules, some
    /// points of each rule must pass all tiers.
    #[test]
    fn parity(ndim in 2usize..5, log_height in 1u32..4, n_dims in 1usize..5, n_rules in 1usize..7,
        seed in any::<u64>()) {
        let grid = grid(ndim, 1 << log_height);
        let xor = BitwiseXor::random(&grid, n_dims.min(ndim), &[1, 2], seed).unwrap();
        let reward = xor.build(&grid).unwrap();
        prop_assert!(agrees_with_enumeration(&reward));
        prop_assert!(reward.n_modes().unwrap() > 0);
        counts_agree(&reward);
        if let Ok(xor) = xor.with_random_rules(&grid, 1000.0, n_rules, 1, (0, 0), seed) {
            let reward = xor.build(&grid).unwrap();
            prop_assert!(agrees_with_enumeration(&reward));
            counts_agree(&reward);
            let of_rules = reward.tiered().unwrap().counts(3).unwrap();
            prop_assert!(of_rules.len() == n_rules && of_rules.iter().all(|&n| n > 0), "{:?}", of_rules);
        }
    }

    #[test]
    fn primes(
        ndim in 1usize..5,
        height in 2usize..10,
        caps in proptest::collection::vec((0u32..4, 0usize..4), 1..4),
        pairs in proptest::collection::vec((0usize..4, 0usize..4), 0..5),
        pairs_from in 0usize..3,
        rules in proptest::collection::vec(0usize..5, 0..4),
    ) {
        let grid = grid(ndim, height);
        let pairs = pairs.into_iter().filter(|&(a, b)| a != b && a < ndim && b < ndim).collect();
        let lcms = [LcmTarget::Any, LcmTarget::Full, LcmTarget::Of(2), LcmTarget::Of(4)];
        let tiers = caps.into_iter().map(|(cap, lcm)| CoprimeTier { weight: 2.0, cap,
            lcm: lcms[lcm] }).collect();
        let targets = [None, Some(1), Some(2), Some(4), Some(8)];
        let coprime = MultiplicativeCoprime {
            tiers, pairs, pairs_from, rules: rules.into_iter().map(|r| targets[r]).collect(),
            ..MultiplicativeCoprime::standard(&grid)
        };
        let reward = coprime.build(&grid).unwrap();
        prop_assert!(agrees_with_enumeration(&reward));
        counts_agree(&reward);
    }

    /// Tests rewards whose tiers are conditions on the digits of coordinates, with several rules. A tier may
    /// also require that the sum of its digits is a multiple of a number that doesn't divide the digits'
    /// base.
    #[test]
    fn digits(
        shape in prop_oneof![Just((2usize, 3u32, 3u32)), Just((2, 4, 2)), Just((3, 3, 2)), Just((3, 2, 3)),
            Just((2, 2, 4))],
        filter in 1u32..4,
        n_dims in 1usize..4,
        shifts in [0u32..5, 0..5],
        mods in [proptest::option::of(2u32..4), proptest::option::of(2u32..4)],
        coefficients in proptest::collection::vec(0u32..6, 1..5),
    ) {
        let (ndim, base, digits) = shape;
        let grid = grid(ndim, base.pow(digits) as usize);
        let tier = |t: usize| MultiscaleTier { weight: 1.0, shift: shifts[t], cross_mod: mods[t] };
        let multiscale = ConditionalMultiscale {
            r0: 0.01, dims: (0..n_dims.min(ndim)).rev().collect(), base, filter_width: filter.min(base),
            tiers: vec![tier(0), tier(1)],
            coefficients: coefficients.into_iter().map(|a| vec![vec![], vec![a]]).collect(),
        };
        match multiscale.build(&grid) {
            Ok(reward) => {
                prop_assert!(agrees_with_enumeration(&reward));
                counts_agree(&reward);
            }
            // With several rules, `build` may refuse settings if the allowed digits have fewer combinations
            // than there are rules, or if a rule applies to no point that passes the first tier.
            Err(error) => prop_assert!(error.to_string().starts_with("the \
                rules") && multiscale.coefficients.len() > 1),
        }
    }
}

/// Tests a height that isn't a power of 2. Some solutions of the parity equations lie outside the grid, so
/// the number of modes has no closed form.
#[test]
fn parity_is_counted_on_powers_of_two_only() {
    let grid = grid(2, 6);
    let reward = BitwiseXor::standard(&grid).build(&grid).unwrap();
    assert_eq!((reward.n_modes(), reward.log_z()), (None, None));
    // The modes are the points with x = y, which are 6 of the 36 points.
    assert_eq!(reward.totals(36).unwrap().n_modes, 6);
    reward.check_modes().unwrap();
}

#[test]
fn every_preset_of_every_reward() {
    let grid = grid(3, 16);
    for kind in RewardKind::ALL {
        for preset in Preset::LEVELS {
            let reward = kind.preset(&grid, preset).unwrap();
            assert_eq!((reward.kind(), reward.grid()), (kind, &grid));
            let known = agrees_with_enumeration(&reward);
            let expected =
                !matches!(kind, RewardKind::Corrupted | RewardKind::UniformRandom | RewardKind::Cosine);
            assert!(known == expected || kind == RewardKind::Cosine, "{kind} {preset}");
            assert!(reward.log_reward(&points(&grid), None).unwrap().iter().all(|log| log.is_finite()));
        }
        agrees_with_enumeration(&kind.standard(&grid).unwrap());
    }
    for (kind, preset, problem) in [
        (RewardKind::Cosine, Preset::K1, "k1 for the cosine reward"),
        (RewardKind::MultiplicativeCoprime, Preset::K64, "k64 for the multiplicative_coprime reward"),
        (RewardKind::BitwiseXor, Preset::K16, "needs 10 dimensions, on a grid of 3"),
        (RewardKind::ConditionalMultiscale, Preset::K64Matched, "needs 24 dimensions"),
    ] {
        let message = kind.preset(&grid, preset).unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
    }
}

/// Checks that presets have the numbers of modes that torchgfn's program states for them.
#[test]
fn presets_have_the_modes_that_they_promise() {
    let modes = |kind: RewardKind, ndim, height, preset| {
        let reward = kind.preset(&grid(ndim, height), preset).unwrap();
        let tiered = reward.tiered().unwrap();
        let of_rules = tiered.counts(tiered.weights.len()).unwrap();
        assert!(of_rules.iter().all(|&n| n > 0), "{kind} {preset}");
        assert!(reward.log_z().unwrap().is_finite());
        (of_rules.len(), of_rules.iter().sum::<u64>())
    };
    let xor = RewardKind::BitwiseXor;
    for (preset, expected) in [
        (Preset::Easy, 1 << 32),
        (Preset::Medium, 1 << 24),
        (Preset::Hard, 1 << 16),
        (Preset::Challenging, 1 << 12),
        (Preset::Impossible, 1 << 4),
    ] {
        assert_eq!(modes(xor, 10, 16, preset), (1, expected), "{preset}");
    }
    for (n_rules, preset, matched) in [
        (1, Preset::K1, Preset::K1Matched),
        (16, Preset::K16, Preset::K16Matched),
        (64, Preset::K64, Preset::K64Matched),
    ] {
        assert_eq!(modes(xor, 10, 16, preset), (n_rules, 1 << 20));
        assert_eq!(modes(xor, 10, 16, matched), (n_rules, 1 << 18));
        assert_eq!(modes(RewardKind::ConditionalMultiscale, 6, 64, preset), (n_rules, 1 << 16));
        // At height 4 a coordinate is one digit, and modes may have three of its values, so 3^24 points
        // remain. A third of them has a sum of digits that is a multiple of 3, as modes must have.
        assert_eq!(modes(RewardKind::ConditionalMultiscale, 24, 4, matched), (n_rules, 3u64.pow(23)));
    }
    let coprime = RewardKind::MultiplicativeCoprime;
    assert_eq!(modes(coprime, 6, 64, Preset::K1).0, 1);
    assert_eq!(modes(coprime, 6, 64, Preset::K16).0, 16);
    let one = modes(coprime, 10, 64, Preset::K1Matched);
    assert_eq!(modes(coprime, 10, 64, Preset::K64Matched), (64, one.1));
    assert!(one.1 > 0);
    let multiscale = RewardKind::ConditionalMultiscale;
    assert_eq!(modes(multiscale, 4, 256, Preset::Medium), (1, 1 << 20));
    assert_eq!(modes(multiscale, 6, 64, Preset::Hard), (1, 1 << 16));
}

/// Checks that counting doesn't overflow on grids of nearly 2^64 points.
#[test]
fn the_largest_grids_are_counted() {
    for (ndim, height) in [(63, 2), (31, 4), (15, 16), (40, 3), (9, 128), (4, 65_535), (3, 65_536)] {
        let grid = grid(ndim, height);
        let n = grid.n_states() as f64;
        for kind in RewardKind::ALL {
            let Ok(reward) = kind.standard(&grid) else {
                assert!(
                    matches!(kind, RewardKind::ConditionalMultiscale | RewardKind::Corrupted),
                    "{kind} {height}"
                );
                continue;
            };
            // Every point has at least the base reward. No point has a reward above `mode_threshold` (the
            // smallest reward of a mode) plus 200. This gives a lower and an upper bound on log Z.
            let low = (reward.base() * n).ln();
            let high = ((reward.mode_threshold() + 200.0) * n).ln();
            assert!(
                reward.log_z().is_none_or(|log_z| log_z >= low && log_z <= high),
                "{kind} {ndim} {height}"
            );
            assert!(reward.n_modes().is_none_or(|modes| modes <= grid.n_states()), "{kind} {ndim} {height}");
            let last = grid.states_of([0, grid.n_states() - 1]).unwrap();
            assert!(reward.log_reward(&last, None).unwrap().iter().all(|log| log.is_finite()));
            assert!(matches!(reward.totals(1 << 16), Err(Error::TooManyStates { limit: 65_536 })));
        }
    }
}

#[test]
fn a_reward_without_a_mode_is_a_typed_error() {
    let missing = |reward: &GridReward| reward.check_modes().unwrap_err().to_string();
    let message = missing(OriginalReward::standard(&grid(2, 4)).unwrap().grid_reward());
    assert!(
        message.contains("not found among 16 points of the original reward at height 4 in 2 dimensions"),
        "{message}"
    );
    missing(&RewardKind::Deceptive.standard(&grid(3, 11)).unwrap());
    missing(&RewardKind::Cosine.standard(&grid(2, 8)).unwrap());
    // The grid has 100 points, each of which is a mode with a probability of one in a million, so the check
    // must find no mode.
    missing(&GridReward::uniform_random(&grid(2, 10), 0.1, 2.0, 1e-6, 0).unwrap());
    // The grid has too many points to visit all. One point in a thousand is a mode, so a million random
    // points must contain modes.
    GridReward::uniform_random(&grid(10, 64), 0.1, 2.0, 1e-3, 0).unwrap().check_modes().unwrap();
}

/// Checks that presets with 1, 16 and 64 rules have the same first rules, so that their rewards can be
/// compared.
#[test]
fn first_rules_are_shared() {
    let grid = grid(6, 64);
    let of = |preset| ConditionalMultiscale::preset(&grid, preset).unwrap().coefficients;
    assert_eq!(of(Preset::K1)[..], of(Preset::K64)[..1]);
    assert_eq!(of(Preset::K16)[..], of(Preset::K64)[..16]);
    let targets = |preset| MultiplicativeCoprime::preset(&grid, preset).unwrap().rules;
    assert_eq!(targets(Preset::K1)[..], targets(Preset::K16)[..1]);
}

/// Checks that the corruption of a reward with a rate of 0 changes nothing. With 0.1, about a tenth of the
/// points that pass each tier must be replaced by other points, with about the same number of modes.
#[test]
fn corruption_moves_the_share_it_says() {
    let grid = grid(4, 16);
    let base = ConditionalMultiscale::random(&grid, 2, 2, &[1.0, 10.0].map(MultiscaleTier::new), 1, 3);
    let base = base.build(&grid).unwrap();
    let same = base.clone().with_corruption(0.0, 1).unwrap();
    let states = points(&grid);
    assert_eq!(same.reward(&states), base.reward(&states));
    assert_eq!((same.n_modes(), same.log_z()), (base.n_modes(), base.log_z()));

    let tenth = |reward: &GridReward| {
        let corrupted = reward.clone().with_corruption(0.1, 1).unwrap();
        assert_eq!((corrupted.n_modes(), corrupted.log_z()), (None, None));
        let before = reward.is_mode(&states);
        let after = corrupted.is_mode(&states);
        let n_before = before.iter().filter(|mode| **mode).count() as f64;
        let kept = before.iter().zip(&after).filter(|(b, a)| **b && **a).count() as f64;
        let n_after = after.iter().filter(|mode| **mode).count() as f64;
        let other = reward.clone().with_corruption(0.1, 2).unwrap();
        assert_ne!(other.is_mode(&states), after);
        (kept / n_before, n_after / n_before)
    };
    // This reward has a single tier. Of its 4,096 modes 90 % must stay modes, within five standard errors,
    // and about as many new modes must appear as are lost.
    let one = BitwiseXor::random(&grid, 4, &[1], 0).unwrap().build(&grid).unwrap();
    assert_eq!(one.n_modes(), Some(4096));
    let (kept, total) = tenth(&one);
    assert!((kept - 0.9).abs() < 5.0 * (0.09f64 / 4096.0).sqrt(), "{kept}");
    assert!((total - 1.0).abs() < 0.05, "{total}");
    // This reward has no tiers, so its corruption replaces modes as if they were the points of a single tier.
    let random = GridReward::uniform_random(&grid, 0.1, 2.0, 0.1, 4).unwrap();
    let (kept, total) = tenth(&random);
    assert!((kept - 0.9).abs() < 5.0 * (0.09f64 / 6553.0).sqrt(), "{kept}");
    assert!((total - 1.0).abs() < 0.05, "{total}");
    // The modes of `base` need two tiers, and a point stays in each tier with probability 0.9. Therefore a
    // mode stays a mode with probability 0.81.
    let (kept, _) = tenth(&base);
    assert!((kept - 0.81).abs() < 5.0 * (0.154f64 / 4096.0).sqrt(), "{kept}");
}

/// Checks that the reward of a point doesn't depend on the other points of the batch.
#[test]
fn rewards_do_not_depend_on_the_batch() {
    let grid = grid(2, 16);
    let states = points(&grid);
    for kind in RewardKind::ALL {
        let reward = kind.standard(&grid).unwrap();
        let together = reward.reward(&states);
        for (key, expected) in (0..grid.n_states()).zip(together) {
            assert_eq!(reward.reward(&grid.states_of([key]).unwrap()), [expected], "{kind}");
        }
    }
}

#[test]
fn senseless_parameters_are_typed_errors() {
    let grid = grid(2, 8);
    let message = |error: Error| match error {
        Error::Config { setting, .. } => setting,
        other => panic!("{other}"),
    };
    assert_eq!(message(GridReward::cosine(&grid, 0.1, 0.5, 1.1).unwrap_err()), "r1, gamma");
    assert_eq!(message(GridReward::cosine(&grid, f64::NAN, 0.5, 0.9).unwrap_err()), "r0");
    assert_eq!(message(GridReward::deceptive(&grid, 0.1, -0.5, 0.9).unwrap_err()), "r0, r1, r2");
    assert_eq!(message(GridReward::uniform_random(&grid, 0.1, 2.0, 0.0, 0).unwrap_err()), "bonus, mode_prob");
    let base = || GridReward::sparse(&grid);
    assert_eq!(message(base().with_corruption(1.0, 0).unwrap_err()), "the rate of corruption");

    let xor = || BitwiseXor::standard(&grid);
    let build = |xor: BitwiseXor| message(xor.build(&grid).unwrap_err());
    assert_eq!(build(BitwiseXor { dims: vec![0, 0], ..xor() }), "the constrained dimensions");
    assert_eq!(build(BitwiseXor { dims: vec![2], ..xor() }), "the constrained dimensions");
    assert_eq!(build(BitwiseXor { dims: vec![1], ..xor() }), "a parity check");
    assert_eq!(build(BitwiseXor { tiers: vec![], ..xor() }), "the tiers");
    let rules = |n_rules, n_checks, planes| xor().with_random_rules(&grid, 1.0, n_rules, n_checks, planes, 0);
    // A point has 6 bits. The first three tiers demand the same three equations, one per place value. This
    // leaves 3 bits free to choose a point's rule, so there can be 8 rules, but not 16.
    assert_eq!(rules(8, 1, (0, 2)).unwrap().tiers[3].checks.len(), 8);
    for refused in [rules(16, 1, (0, 2)), rules(0, 1, (0, 2)), rules(2, 3, (0, 2)), rules(2, 1, (0, 3))] {
        assert_eq!(message(refused.unwrap_err()), "the parity rules");
    }
    assert_eq!(build(BitwiseXor { selector: vec![], ..rules(8, 1, (0, 2)).unwrap() }), "the parity rules");

    let coprime = || MultiplicativeCoprime::standard(&grid);
    let build = |coprime: MultiplicativeCoprime| message(coprime.build(&grid).unwrap_err());
    assert_eq!(build(MultiplicativeCoprime { primes: vec![11], ..coprime() }), "the primes");
    assert_eq!(build(MultiplicativeCoprime { primes: vec![4], ..coprime() }), "the primes");
    assert_eq!(build(MultiplicativeCoprime { primes: vec![2, 2], ..coprime() }), "the primes");
    assert_eq!(build(MultiplicativeCoprime { pairs: vec![(0, 2)], ..coprime() }), "the coprime pairs");
    assert_eq!(build(MultiplicativeCoprime { rules: vec![Some(7)], ..coprime() }), "a least common multiple");
    assert_eq!(message(coprime().with_random_rules(&grid, 2, 0).unwrap_err()), "the number of rules");

    let wide = HyperGrid::new(2, 16).unwrap();
    let multiscale = || ConditionalMultiscale::standard(&wide);
    let build = |multiscale: ConditionalMultiscale| message(multiscale.build(&wide).unwrap_err());
    assert_eq!(message(multiscale().build(&grid).unwrap_err()), "the digits' base");
    assert_eq!(build(ConditionalMultiscale { base: 3, ..multiscale() }), "the digits' base");
    assert_eq!(build(ConditionalMultiscale { base: 16, ..multiscale() }), "the tiers");
    assert_eq!(build(ConditionalMultiscale { filter_width: 5, ..multiscale() }), "the filter");
    assert_eq!(
        build(ConditionalMultiscale { coefficients: vec![], ..multiscale() }),
        "the rules' coefficients"
    );
    let rules = vec![multiscale().coefficients[0].clone(); 5];
    assert_eq!(
        build(ConditionalMultiscale { coefficients: rules, ..multiscale() }),
        "the rules' coefficients"
    );
}
