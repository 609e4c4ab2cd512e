//! Tests that environments of vectors keep the contract of environments. The numbers of states and Z must
//! equal an independent count.

use crate::enumeration::enumerate;
use gfn::Rng;
use gfn::contract::{Budget, check_env};
use gfn::env::StateGraph;
use gfn::env::{EnumerableEnv, Reward, VectorEnv, VectorStates};
use gfn::metrics::ExactPolicy;
use gfn::objective::Quantity;
use gfn::objective::{
    DetailedBalance, FlowMatching, Objective, SubTrajectoryBalance, TrajectoryBalance, Weighting,
};
use gfn::objective::{Scores, score};
use gfn::policy::{Features, KHot, StateFeatures, UniformPolicy};
use gfn::rollout::Sampler;
use gfn_gym::bit_sequence::{
    BitSequence, HammingReward, NonAutoregressiveBitSequence, PrependAppendBitSequence, motif_tilings,
};
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use gfn_gym::perfect_tree::{PerNode, PerfectBinaryTree};
use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use gfn_gym::toy_dag::{ToyDag, ToyReward};

/// Checks the contract of an environment, the range of its entries, its numbers of states and moves, and log
/// Z.
fn check(
    env: &VectorEnv,
    reward: &impl Reward<VectorStates>,
    features: (usize, usize),
    expected: (u64, u64, f64),
) {
    check_env(env, Budget::thorough().with_walks(40), &mut Rng::seeded(1)).unwrap();
    let (states, moves, log_z) = enumerate(env, reward).unwrap();
    assert_eq!((states as u64, moves as u64), (expected.0, expected.1));
    assert!((log_z - expected.2).abs() < 1e-9, "log Z {log_z}, not {}", expected.2);

    check_objectives(env, reward);

    let graph = StateGraph::build(env, 1 << 17).unwrap();
    assert_eq!((graph.states().width(), env.n_values()), features);
    let k_hot = KHot::from_env(env);
    let largest = graph.states().values().iter().max().unwrap();
    assert_eq!(usize::from(*largest) + 1, features.1);
    assert!(matches!(k_hot.encode(graph.states()),
            Features::Active(c) if c.iter().all(|&c| c < k_hot.width() as i64)));

    // In finished states the partial log-reward must equal the log-reward.
    let ends = gfn::env::Rows::select(graph.states(), &graph.ends());
    if let Some(partial) = reward.partial_log_reward(&ends, None).unwrap() {
        assert_eq!(partial, reward.log_reward(&ends, None).unwrap());
        assert!(
            reward.partial_log_reward(graph.states(), None).unwrap().unwrap().iter().all(|r| r.is_finite())
        );
    }
}

/// Checks that the residuals of all objectives vanish for exact flows, on trajectories sampled in both
/// directions. Callers pass environments with and without an exit action.
fn check_objectives<E: EnumerableEnv>(env: &E, reward: &impl Reward<E::States>) {
    let graph = StateGraph::build(env, 1 << 17).unwrap();
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, reward).unwrap();
    let rng = &mut Rng::seeded(7);
    let forward = Sampler::new(env, &UniformPolicy).forward(32, rng).unwrap();
    let backward = Sampler::new(env, &exact).backward(forward.terminal_states(), rng).unwrap();
    let needs = Quantity::LogFlow | Quantity::LogZ | Quantity::LogInflow;
    for trajectories in [&forward, &backward] {
        let mut scores = score(env, reward, &exact, trajectories, needs).unwrap();
        let objectives: [Box<dyn Objective>; 4] = [
            Box::new(TrajectoryBalance),
            Box::new(DetailedBalance::default()),
            Box::new(FlowMatching::default()),
            Box::new(SubTrajectoryBalance::new(Weighting::Equal).unwrap()),
        ];
        let largest = |scores: &Scores, objective: &dyn Objective| {
            objective.residuals(scores).unwrap().values.abs().max().double_value(&[])
        };
        for objective in &objectives {
            let residual = largest(&scores, objective.as_ref());
            assert!(residual < 1e-5, "{}: {residual}", objective.name());
        }
        // As a negative control, every objective must have a residual if log R is increased by 1, because the
        // flows are those of the original log R.
        scores.log_reward += 1.0;
        for objective in &objectives {
            assert!(largest(&scores, objective.as_ref()) > 0.1, "{}", objective.name());
        }
    }
}

fn log_sum(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::exp).sum::<f64>().ln()
}

#[test]
fn discrete_ebms() {
    let mut rng = Rng::seeded(3);
    for n in [1usize, 2, 4, 6] {
        let j: Vec<f64> = (0..n * n).map(|_| rng.normal()).collect();
        let ebm = DiscreteEbm::new(n).unwrap();
        let env = ebm.env();
        let reward = IsingReward::new(n, &j, 0.5).unwrap();
        let spin = |x: usize, i: usize| if x >> i & 1 == 1 { 1.0 } else { -1.0 };
        let energy = |x: usize| (0..n * n).map(|k| 0.5 * j[k] * spin(x, k / n) * spin(x, k % n)).sum::<f64>();
        let log_z = log_sum((0..1 << n).map(energy));
        // An action sets one of n coordinates to one of two values, and the other coordinates have 3^(n - 1)
        // settings.
        let moves = 2 * n as u64 * 3u64.pow(n as u32 - 1);
        check(&env, &reward, (n, 3), (3u64.pow(n as u32), moves, log_z));
        assert_eq!(ebm.n_states(), Some(3u64.pow(n as u32)));
        assert!((reward.log_z().unwrap() - log_z).abs() < 1e-9);
    }
    let lattice = IsingReward::lattice(3, 0.3, 1.0).unwrap();
    let log_z = lattice.log_z().unwrap();
    check(&DiscreteEbm::new(9).unwrap().env(), &lattice, (9, 3), (19_683, 18 * 6561, log_z));
}

#[test]
fn bit_sequences() {
    let mut rng = Rng::seeded(4);
    let motifs = [vec![false, true], vec![true, true], vec![true, false]];
    for (word_size, seq_size) in [(1, 4), (2, 4), (3, 6), (2, 2)] {
        let modes = motif_tilings(seq_size, 2, &motifs, &mut rng).unwrap();
        let n_words = seq_size / word_size;
        let words = 1u64 << word_size;
        let distance = |x: usize| {
            let differ = |mode: &Vec<bool>| (0..seq_size).filter(|&i| mode[i] != (x >> i & 1 == 1)).count();
            modes.iter().map(differ).min().unwrap() as f64
        };
        let log_z = log_sum((0..1 << seq_size).map(|x| -distance(x) / 0.8));
        let prefixes: u64 = (0..n_words as u32).map(|k| words.pow(k)).sum();
        let all = prefixes + words.pow(n_words as u32);
        let features = (n_words, words as usize + 1);

        let rules = BitSequence::new(word_size, seq_size).unwrap();
        let env = rules.env();
        let reward = HammingReward::with_temperature(rules.words(), &modes, 0.8).unwrap();
        assert!((reward.log_z().unwrap() - log_z).abs() < 1e-12);
        check(&env, &reward, features, (all, all - 1, log_z));
        assert_eq!(rules.n_states(), Some(all));

        let env = PrependAppendBitSequence::new(word_size, seq_size).unwrap().env();
        check(&env, &reward, features, (all, 2 * words * prefixes, log_z));

        let rules = NonAutoregressiveBitSequence::new(word_size, seq_size).unwrap();
        let env = rules.env();
        let moves = n_words as u64 * words * (words + 1).pow(n_words as u32 - 1);
        check(&env, &reward, features, ((words + 1).pow(n_words as u32), moves, log_z));
        assert_eq!(rules.n_states(), Some((words + 1).pow(n_words as u32)));
    }
}

#[test]
fn token_sequences() {
    let alphabet = Alphabet::new("abc").unwrap();
    let table = "sequence,reward\nab,2\nc,5\ncc,0.5\n";
    // There are 3 + 9 sequences of lengths 1 and 2. With the empty sequence there are 1 + 3 + 9 states.
    let sequence = TokenSequence::variable(3, 1, 2).unwrap();
    let env = sequence.env();
    let reward = TableReward::parse(&sequence, &alphabet, table, Some(0.1)).unwrap();
    let log_z = (2.0 + 5.0 + 0.5 + 9.0 * 0.1f64).ln();
    check(&env, &reward, (2, 4), (13, 12 + 12, log_z));
    assert!((reward.log_z() - log_z).abs() < 1e-12);

    let sequence = TokenSequence::variable(3, 0, 2).unwrap();
    let env = sequence.env();
    let squared =
        TableReward::parse(&sequence, &alphabet, table, Some(0.1)).unwrap().with_exponent(2.0).unwrap();
    let log_z = (4.0 + 25.0 + 0.25 + 10.0 * 0.01f64).ln();
    check(&env, &squared, (2, 4), (13, 12 + 13, log_z));
    assert!((squared.log_z() - log_z).abs() < 1e-12);
    let always_two = TokenSequence::variable(3, 2, 2).unwrap();
    let reward = TableReward::parse(&always_two, &alphabet, "sequence,reward\nab,2\n", Some(1.0)).unwrap();
    check(&always_two.env(), &reward, (2, 4), (13, 12 + 9, 10f64.ln()));
}

/// Reads a table of rewards of DNA of length 8, as in TFBind8, from a file. Every sequence has a different
/// reward.
#[test]
fn a_table_of_dna_is_read_from_a_file() {
    let sequence = TokenSequence::tf_bind_8();
    let env = sequence.env();
    let dna = Alphabet::dna();
    let mut table = String::from("sequence,reward\n");
    let mut rng = Rng::seeded(5);
    let mut z = 0.0;
    for x in 0..1u32 << 16 {
        let tokens: Vec<u16> = (0..8).map(|i| (x >> (2 * i) & 3) as u16).collect();
        let reward = 0.01 + rng.uniform();
        table += &format!("{},{reward}\n", dna.decode(&tokens).unwrap());
        z += reward.powi(3);
    }
    let path = std::env::temp_dir().join(format!("gfn-dna-table-{}.csv", std::process::id()));
    std::fs::write(&path, &table).unwrap();
    let reward = TableReward::read(&sequence, &dna, &path, None);
    let last_line = table.trim_end().rfind('\n').unwrap();
    std::fs::write(&path, &table[..last_line]).unwrap();
    let cut = TableReward::read(&sequence, &dna, &path, None);
    std::fs::remove_file(&path).unwrap();

    let reward = reward.unwrap().with_exponent(3.0).unwrap();
    assert_eq!(reward.n_listed(), 65_536);
    assert!((reward.log_z() - z.ln()).abs() < 1e-9);
    check(&env, &reward, (8, 5), (87_381, 87_380, z.ln()));
    let message = cut.unwrap_err().to_string();
    assert!(
        message.contains("gfn-dna-table") && message.contains("in the table is 65535 of 65536"),
        "{message}"
    );
}

#[test]
fn perfect_binary_trees() {
    for depth in [1, 2, 5, 10] {
        let rules = PerfectBinaryTree::new(depth).unwrap();
        let env = rules.env();
        let n = rules.n_states();
        let log_z = rules.leaves().map(|leaf| (leaf as f64 + 1.0).sqrt()).sum::<f64>().ln();
        check(&env, &PerNode::SQRT, (depth, 3), (n, n - 1, log_z));
        assert!((PerNode::SQRT.log_z(&rules).unwrap() - log_z).abs() < 1e-12);
    }
}

#[test]
fn set_additions() {
    let weights = [0.5, 2.0, 0.0, 1.0, 3.0];
    for (max_items, fixed_length) in [(1, false), (3, false), (5, false), (1, true), (3, true), (5, true)] {
        let rules = SetAddition::new(5, max_items, fixed_length).unwrap();
        let env = rules.env();
        let reward = WeightReward::new(&rules, 0.2, &weights).unwrap();
        let sets: Vec<u32> = (0..32u32).filter(|set| set.count_ones() as usize <= max_items).collect();
        let finished = |set: &&u32| !fixed_length || set.count_ones() as usize == max_items;
        let worth = |set: &u32| 0.2 + (0..5).filter(|i| set >> i & 1 == 1).map(|i| weights[i]).sum::<f64>();
        let log_z = sets.iter().filter(finished).map(worth).sum::<f64>().ln();
        let exits = if fixed_length { 0 } else { sets.len() };
        // Any item of a set may have been added last, so the number of moves into a set is the number of its
        // items.
        let moves = sets.iter().map(|set| u64::from(set.count_ones())).sum::<u64>() + exits as u64;
        check(&env, &reward, (5, 2), (sets.len() as u64, moves, log_z));
        assert_eq!(rules.n_states(), Some(sets.len() as u64));
        assert_eq!(rules.n_terminal(), Some(sets.iter().filter(finished).count() as u64));
        assert!((reward.log_z() - log_z).abs() < 1e-12);
    }
}

#[test]
fn the_toy_dag() {
    let reward = ToyReward::default();
    check(&ToyDag.env(), &reward, (1, 11), (11, 13 + 6, 112f64.ln()));
    assert_eq!(ToyDag::parents(9).collect::<Vec<u16>>(), [7, 8]);
    assert!(ToyReward::new([1.0, 1.0, 1.0, 0.0, 1.0, 1.0]).is_err());
    assert!(reward.log_reward(&VectorStates::from_rows([[5]]), None).is_err());
}

/// Lists all trees over a set of species. For each tree, site and base, returns the smallest number of
/// mutations if the root has this base (Sankoff's algorithm).
fn costs_of_trees(species: u32, sequences: &[&str]) -> Vec<Vec<[u64; 4]>> {
    let lowest = species & species.wrapping_neg();
    if species == lowest {
        let sites = sequences[species.trailing_zeros() as usize].chars();
        return vec![
            sites.map(|c| ['A', 'C', 'G', 'T'].map(|base| if base == c { 0 } else { 1 << 20 })).collect(),
        ];
    }
    let mut trees = Vec::new();
    // A tree is split at its root into the subtree with the lowest species, which is `left`, and the other
    // subtree.
    for left in (1..species).filter(|left| left & !species == 0 && left & lowest > 0) {
        let rights = costs_of_trees(species & !left, sequences);
        for a in costs_of_trees(left, sequences) {
            for b in &rights {
                let from = |below: &[u64; 4], base: usize| {
                    (0..4).map(|other| below[other] + u64::from(other != base)).min().unwrap()
                };
                let site =
                    |(a, b): (&[u64; 4], &[u64; 4])| [0, 1, 2, 3].map(|base| from(a, base) + from(b, base));
                trees.push(a.iter().zip(b).map(site).collect());
            }
        }
    }
    trees
}

#[test]
fn phylogenetic_trees() {
    let sequences = ["ACGTACGT", "ACGTTCGA", "TCGTACCA", "TCATGCCA", "GCATGCTT"];
    for (n, states, moves, trees) in [(2, 2, 1, 1), (3, 7, 6, 3), (4, 37, 39, 15), (5, 266, 310, 105)] {
        let rules = PhyloTree::new(n).unwrap();
        let env = rules.env();
        assert_eq!((rules.n_states(), rules.n_terminal()), (Some(states), Some(trees)));
        let reward = ParsimonyReward::dna(&rules, &sequences[..n], 10.0, 4.0).unwrap();
        let costs = costs_of_trees((1 << n) - 1, &sequences[..n]);
        assert_eq!(costs.len() as u64, trees);
        let parsimony =
            |tree: &Vec<[u64; 4]>| tree.iter().map(|site| *site.iter().min().unwrap()).sum::<u64>();
        let log_z = log_sum(costs.iter().map(|tree| (10.0 - parsimony(tree) as f64) / 4.0));
        check(&env, &reward, (2 * n - 1, n), (states, moves, log_z));
        assert!((reward.log_z().unwrap() - log_z).abs() < 1e-12);
        let graph = StateGraph::build(&env, 1000).unwrap();
        assert_eq!(graph.ends().len() as u64, trees);
        let listed = graph.indices(&env, &rules.all_trees().unwrap());
        assert!(listed.iter().all(|state| state.is_some_and(|state| graph.can_end(state))));
    }
    // Trees over 12 species have too many states to list, but the contract can be checked on random
    // trajectories.
    check_env(&PhyloTree::new(12).unwrap().env(), Budget::thorough().with_walks(20), &mut Rng::seeded(6))
        .unwrap();
}
