//! Tests of phylogenetic trees: counting, writing and reading trees, and the parsimony score.

use std::collections::HashSet;

use gfn::env::{Direction, DiscreteEnv, Env, Reward, Rows, Slots, VectorRules, VectorStates};
use gfn::{Error, Rng};
use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};

#[test]
fn all_trees_are_different() {
    for (n, trees) in [(2, 1), (3, 3), (4, 15), (5, 105), (6, 945)] {
        let rules = PhyloTree::new(n).unwrap();
        let all = rules.all_trees().unwrap();
        let texts: HashSet<String> = all.rows().map(|row| rules.newick(row)).collect();
        assert_eq!((texts.len() as u64, Some(trees)), (trees, rules.n_terminal()));
        assert!(all.rows().all(|row| rules.can_end(row)));
    }
    assert!(PhyloTree::new(9).unwrap().all_trees().is_none());
}

/// Checks that the search for the root of a tree ends if the state, which a user may have passed, contains a
/// cycle.
#[test]
fn circles_have_an_end() {
    let rules = PhyloTree::new(4).unwrap();
    let env = rules.env();
    let reward = ParsimonyReward::dna(&rules, &["A", "C", "G", "T"], 0.0, 1.0).unwrap();
    let mut states = VectorStates::from_rows([[1u16; 7]]);
    assert!(matches!(reward.parsimony(&states), Err(Error::Contract { .. })));
    // The first backward step removes the cycle. Afterwards no two species are joined, so all other backward
    // steps must be refused.
    let split = |slot| env.step(Direction::Backward, &mut states, &Slots(vec![slot])).is_ok();
    assert_eq!([0, 1, 2, 3].map(split), [true, false, false, false]);
}

#[test]
fn sizes_do_not_overflow() {
    let counts: Vec<Option<u64>> = (2..8).map(|n| PhyloTree::new(n).unwrap().n_states()).collect();
    assert_eq!(counts, [2, 7, 37, 266, 2431, 27_007].map(Some));
    assert_eq!(
        (PhyloTree::new(27).unwrap().n_terminal(), PhyloTree::new(27).unwrap().n_states()),
        (None, None)
    );
    assert!(PhyloTree::new(1).is_err() && PhyloTree::new(1001).is_err());
}

#[test]
fn slots_name_pairs() {
    let rules = PhyloTree::new(7).unwrap();
    let env = rules.env();
    for slot in 0..21 {
        let mut states = env.initial(&[0]);
        env.step(Direction::Forward, &mut states, &Slots(vec![slot])).unwrap();
        let text = rules.newick(states.row(0));
        let (_, pair) = text.split_once('(').unwrap();
        let (a, b) = pair.split_once(')').unwrap().0.split_once(',').unwrap();
        let (a, b): (u32, u32) = (a.parse().unwrap(), b.parse().unwrap());
        assert!(a < b && PhyloTree::join_slot(a, b) == slot && PhyloTree::join_slot(b, a) == slot, "{text}");
    }
    let mut states = env.initial(&[0]);
    env.step(Direction::Forward, &mut states, &Slots(vec![0])).unwrap();
    let message = env.step(Direction::Forward, &mut states, &Slots(vec![2])).unwrap_err().to_string();
    assert!(message.contains("join the trees of 1 and 2 of (0,1); 2;"), "{message}");
    assert!(env.step(Direction::Backward, &mut states, &Slots(vec![1])).is_err());
}

#[test]
fn trees_come_back_from_their_text() {
    for n in 2..=6 {
        let rules = PhyloTree::new(n).unwrap();
        for row in rules.all_trees().unwrap().rows() {
            assert_eq!(rules.read_newick(&rules.newick(row)).unwrap(), row);
        }
    }
}

#[test]
fn invalid_trees_are_refused_with_a_reason() {
    let rules = PhyloTree::new(3).unwrap();
    let cases = [
        ("((0,1),2", "((0,1),2"),
        ("(0,1,2);", "an inner node that joins 3 trees"),
        ("((0,1),1);", "species 1 twice"),
        ("((0,1),3);", "the species \"3\""),
        ("(0,1);", "without species 2"),
        ("((0,1),2);((0,2),1);", "more than one tree"),
        ("((0,1),2),;", "((0,1),2),;"),
        ("((0 1),2);", "the species \"0 1\""),
        ("((0,1)(2,0));", "((0,1)(2,0));"),
        (")", ")"),
        ("", "without species 0"),
    ];
    for (text, says) in cases {
        let message = rules.read_newick(text).unwrap_err().to_string();
        assert!(message.contains(says), "{text}: {message}");
    }
}

/// Computes the parsimony by brute force: the smallest number of mutations over all assignments of bases to
/// inner nodes, summed over sites.
fn brute_force_mutations(env: &PhyloTree, row: &[u16], sequences: &[Vec<u8>]) -> u64 {
    let n = env.n();
    let edges: Vec<(usize, usize)> = (0..env.entries())
        .filter(|&node| row[node] > 0)
        .map(|node| (node, n - 1 + usize::from(row[node])))
        .collect();
    let of_site = |site: usize| {
        let assignments = 0..1usize << (2 * env.entries());
        let base = |assignment: usize, node: usize| assignment >> (2 * node) & 3;
        let possible =
            |assignment: &usize| (0..n).all(|i| sequences[i][site] >> base(*assignment, i) & 1 == 1);
        let changes = |a: usize| edges.iter().filter(|(x, y)| base(a, *x) != base(a, *y)).count() as u64;
        assignments.filter(possible).map(changes).min().unwrap()
    };
    (0..sequences[0].len()).map(of_site).sum()
}

#[test]
fn rows_that_are_no_forest_are_refused() {
    let rules = PhyloTree::new(3).unwrap();
    let env = rules.env();
    let reward = ParsimonyReward::dna(&rules, &["A", "C", "G"], 0.0, 1.0).unwrap();
    // A row lists the name (a number) of each node's parent. These rows aren't forests: they have cycles,
    // parents that don't exist, a parent with a single child, or an inner node with the wrong name.
    for row in
        [[1; 5], [9; 5], [2, 1, 0, 1, 0], [1, 0, 0, 0, 0], [0, 0, 2, 0, 0], [0, 0, 0, 2, 0], [2, 2, 0, 0, 0]]
    {
        let states = VectorStates::from_flat(5, row.to_vec()).unwrap();
        let error = reward.parsimony(&states).unwrap_err();
        assert!(matches!(error, Error::Contract { .. }), "{row:?}: {error}");
    }
    // Every state of a backward trajectory must be a forest, so its parsimony must be defined.
    let mut states = rules.all_trees().unwrap();
    assert_eq!(reward.parsimony(&states).unwrap().len(), 3);
    let back = env.masks(Direction::Backward, &states);
    let slots = (0..states.len()).map(|row| back.legal_slots(row).next().unwrap()).collect();
    env.step(Direction::Backward, &mut states, &Slots(slots)).unwrap();
    assert_eq!(reward.parsimony(&states).unwrap().len(), 3);
}

#[test]
fn fitch_equals_brute_force() {
    let rules = PhyloTree::new(4).unwrap();
    let mut rng = Rng::seeded(2);
    let sequences: Vec<Vec<u8>> = (0..4).map(|_| (0..6).map(|_| 1 + rng.below(15) as u8).collect()).collect();
    let reward = ParsimonyReward::new(&rules, &sequences, 3.0, 2.0).unwrap();
    let mut states = rules.all_trees().unwrap();
    let log_rewards = reward.log_reward(&states, None).unwrap();
    assert_eq!(reward.partial_log_reward(&states, None).unwrap().unwrap(), log_rewards);
    // An unfinished forest is added to the states. In it, species 0 and 2 are the children of inner node 2.
    states.append(VectorStates::from_rows([[2, 0, 2, 0, 0, 0, 0]]));
    let parsimony = reward.parsimony(&states).unwrap();
    for (row, &mutations) in states.rows().zip(&parsimony) {
        assert_eq!(mutations, brute_force_mutations(&rules, row, &sequences), "{}", rules.newick(row));
    }
    assert!(
        parsimony.iter().zip(&log_rewards).all(|(&m, log_r)| (log_r - (3.0 - m as f64) / 2.0).abs() < 1e-12)
    );
    let message = reward.log_reward(&states, None).unwrap_err().to_string();
    assert!(message.contains("(0,2); 1; 3;"), "{message}");
    let z: f64 = log_rewards.iter().map(|r| r.exp()).sum();
    assert!((reward.log_z().unwrap() - z.ln()).abs() < 1e-12);
}

#[test]
fn letters_are_sets_of_bases() {
    let rules = PhyloTree::new(2).unwrap();
    let of_letter =
        |letter: char| ParsimonyReward::dna(&rules, &[letter.to_string(), "A".to_owned()], 0.0, 1.0);
    let is = |letter, set: u8| {
        of_letter(letter).unwrap() == ParsimonyReward::new(&rules, &[[set], [1]], 0.0, 1.0).unwrap()
    };
    let bits = |bases: &str| bases.chars().map(|c| 1u8 << "ACGT".find(c).unwrap()).sum::<u8>();
    assert!("ACGT".chars().all(|base| is(base, bits(&base.to_string()))));
    assert!(is('n', bits("ACGT")) && bits("ACGT") == 15);
    for (letter, bases) in [('R', "AG"), ('Y', "CT"), ('S', "CG"), ('W', "AT"), ('K', "GT"), ('M', "AC")] {
        assert!(is(letter, bits(bases)), "{letter}");
    }
    for (letter, without) in [('B', "A"), ('D', "C"), ('H', "G"), ('V', "T")] {
        assert!(is(letter, 15 - bits(without)), "{letter}");
    }
    assert!(of_letter('X').is_err());
}

#[test]
fn senseless_sequences_are_refused() {
    let rules = PhyloTree::new(2).unwrap();
    let message =
        |sequences: &[&str]| ParsimonyReward::dna(&rules, sequences, 0.0, 1.0).unwrap_err().to_string();
    assert!(message(&["A"]).contains("one sequence per species"));
    assert!(message(&["A", "AC"]).contains("all of one length"));
    assert!(message(&["A", "1"]).contains("'1'"));
    assert!(message(&["", ""]).contains("shape [2, 0], expected [2, 1]"));
    let message = ParsimonyReward::new(&rules, &[[1, 1], [1, 0]], 0.0, 1.0).unwrap_err().to_string();
    assert!(message.contains("species 1 at site 1"), "{message}");
    assert!(ParsimonyReward::dna(&rules, &["A", "C"], f64::NAN, 1.0).is_err());
    assert!(ParsimonyReward::dna(&rules, &["A", "C"], 0.0, 0.0).is_err());
    let reward = ParsimonyReward::dna(&rules, &["A", "C"], 0.0, 1.0).unwrap();
    assert!(matches!(reward.log_reward(&VectorStates::filled(5, 1, 0), None), Err(Error::Shape { .. })));
}
