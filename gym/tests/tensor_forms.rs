//! Tests that the tensor forms of environments and of rewards agree with the forms on the host, on 10,000
//! random trajectories of each family. Forms with one wrong detail must be refused.

use gfn::contract::check_tensors;
use gfn::env::{Direction, Env, Reward, TensorEnv, TensorForm, VectorEnv, VectorStates};
use gfn::tensor::to_host;
use gfn::{Result, Rng};
use gfn_gym::bit_sequence::{
    BitSequence, HammingReward, NonAutoregressiveBitSequence, PrependAppendBitSequence, Words, noisy_modes,
};
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward, Preset, RewardKind};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use tch::{Device, Tensor};

fn form(env: &VectorEnv) -> &TensorForm<VectorStates> {
    env.tensor_form().unwrap()
}

/// Checks an environment and a reward, which must have a tensor form, on `n` random trajectories. `n_steps`
/// is the number of actions of all trajectories, if it is always the same.
fn check(env: &VectorEnv, reward: &impl Reward<VectorStates>, n_steps: Option<usize>, n: usize) {
    assert!(reward.on_tensors().is_some());
    assert_eq!(form(env).env().n_steps(), n_steps);
    check_tensors(env, reward, n, &mut Rng::seeded(0)).unwrap();
}

#[test]
fn grids_and_all_their_rewards() {
    let small = HyperGrid::new(3, 16).unwrap();
    for kind in RewardKind::ALL {
        check(&small.env(), &kind.standard(&small).unwrap(), None, 500);
    }
    let original = OriginalReward::standard(&small).unwrap();
    check(&small.env(), &original, None, 500);
    assert!(ConditionalReward::new(original).on_tensors().is_none());
    // All presets of a grid of 10 dimensions.
    let large = HyperGrid::new(10, 16).unwrap();
    let all = RewardKind::ALL.into_iter().flat_map(|kind| Preset::ALL.map(|preset| (kind, preset)));
    let rewards: Vec<_> = all.filter_map(|(kind, preset)| kind.preset(&large, preset).ok()).collect();
    assert_eq!(rewards.len(), 58);
    for reward in rewards {
        check(&large.env(), &reward, None, 100);
    }
}

/// Points whose index is 2^63 or more have a negative index as a tensor. Their hash must be the same.
#[test]
fn hashes_of_large_indices() {
    let grid = HyperGrid::new(4, 65_535).unwrap();
    let reward = RewardKind::UniformRandom.standard(&grid).unwrap().with_corruption(0.5, 3).unwrap();
    let points = VectorStates::from_rows((0..2_000u16).map(|k| [65_534 - k, 32 * k, 65_000 - 7 * k, k]));
    assert!(points.rows().all(|point| grid.index(point) > i64::MAX as u64));
    let tensor = form(&grid.env()).to_tensor(&points, Device::Cpu);
    let got = to_host(&reward.on_tensors().unwrap().log_rewards(&tensor).unwrap());
    let expected = reward.log_reward(&points, None).unwrap();
    assert!(got.iter().zip(&expected).all(|(got, expected)| (got - expected).abs() < 1e-12));
    assert!(expected.iter().any(|value| *value != expected[0]));
}

#[test]
fn spins_and_words_in_any_order() {
    let mut rng = Rng::seeded(1);
    for n in [1usize, 4, 16] {
        let couplings: Vec<f64> = (0..n * n).map(|_| rng.normal()).collect();
        let env = DiscreteEbm::new(n).unwrap().env();
        check(&env, &IsingReward::new(n, &couplings, 0.7).unwrap(), Some(n), 1_000);
    }
    for side in [2, 3, 6] {
        let env = DiscreteEbm::new(side * side).unwrap().env();
        check(&env, &IsingReward::lattice(side, -0.3, 0.5).unwrap(), Some(side * side), 1_000);
    }
    let free = IsingReward::lattice(2, 0.0, 1.0).unwrap();
    check(&DiscreteEbm::new(4).unwrap().env(), &free, Some(4), 1_000);
    for (word_size, seq_size) in [(1, 6), (2, 8), (3, 12)] {
        let rules = NonAutoregressiveBitSequence::new(word_size, seq_size).unwrap();
        check(&rules.env(), &hamming(rules.words(), 5), Some(seq_size / word_size), 1_000);
    }
}

/// Returns a reward of `n` random modes.
fn hamming(words: &Words, n: usize) -> HammingReward {
    let modes = noisy_modes(&[vec![true; words.seq_size()]], n, &mut Rng::seeded(2));
    HammingReward::with_temperature(words, &modes, 0.7).unwrap()
}

/// Returns a table with a different reward for each of the given sequences of the characters `a`, `b`, `c`.
fn table(sequence: &TokenSequence, listed: impl Iterator<Item = usize>, floor: Option<f64>) -> TableReward {
    let mut text = String::from("sequence,reward\n");
    for number in listed {
        let len = sequence.entries() as u32;
        let tokens: String = (0..len).map(|k| ["a", "b", "c"][number / 3usize.pow(k) % 3]).collect();
        text += &format!("{tokens},{}\n", number + 1);
    }
    TableReward::parse(sequence, &Alphabet::new("abc").unwrap(), &text, floor).unwrap()
}

#[test]
fn sequences() {
    let words = TokenSequence::fixed(3, 5).unwrap();
    let complete = table(&words, 0..243, None);
    check(&words.env(), &complete, Some(5), 1_000);
    // The tables on the device of a reward aren't those of the reward before it was raised to a power.
    check(&words.env(), &complete.with_exponent(2.0).unwrap(), Some(5), 1_000);
    let with_floor = table(&words, (0..243).step_by(7), Some(0.1));
    check(&words.env(), &with_floor, Some(5), 1_000);
    check(&words.env(), &table(&words, 0..0, Some(0.1)), Some(5), 1_000);
    for min_len in [0, 1, 3] {
        let sequence = TokenSequence::variable(3, min_len, 3).unwrap();
        check(&sequence.env(), &table(&sequence, (0..27).step_by(2), Some(0.1)), None, 1_000);
    }
    let dna = TokenSequence::tf_bind_8();
    let text = "sequence,reward\nACGTACGT,2\n";
    let reward = TableReward::parse(&dna, &Alphabet::dna(), text, Some(0.5)).unwrap();
    check(&dna.env(), &reward, Some(8), 1_000);
    for (word_size, seq_size) in [(1, 1), (1, 6), (3, 12)] {
        let words = Words::new(word_size, seq_size).unwrap();
        let env = BitSequence::new(word_size, seq_size).unwrap().env();
        check(&env, &hamming(&words, 4), Some(words.n_words()), 500);
        let env = PrependAppendBitSequence::new(word_size, seq_size).unwrap().env();
        check(&env, &hamming(&words, 4), Some(words.n_words()), 500);
    }
    // A sequence of 40 DNA letters has no number below 2^63 by which a table could be searched.
    let long = TokenSequence::fixed(4, 40).unwrap();
    let reward = TableReward::parse(&long, &Alphabet::dna(), "sequence,reward\n", Some(0.5)).unwrap();
    assert!(reward.on_tensors().is_none());
}

#[test]
fn sets() {
    for (max_items, fixed) in [(1, false), (3, false), (6, false), (1, true), (3, true), (6, true)] {
        let rules = SetAddition::new(6, max_items, fixed).unwrap();
        let reward = WeightReward::new(&rules, 0.2, &[0.5, 2.0, 0.0, 1.0, 3.0, 0.7]).unwrap();
        check(&rules.env(), &reward, fixed.then_some(max_items), 1_700);
    }
}

/// The detail of a tensor form that is wrong.
#[derive(Clone, Copy)]
enum Fault {
    None,
    /// All forward moves are legal, also those that leave the grid.
    Mask,
    /// A backward move changes nothing.
    Step,
    /// The move that undoes a move is that of the next entry.
    Reverse,
    /// A trajectory can end in no state.
    End,
    /// All trajectories have three steps.
    Length,
}

/// The tensor form of an environment with one wrong detail.
struct Faulty(VectorEnv, Fault);

impl Faulty {
    fn right(&self) -> &dyn TensorEnv {
        form(&self.0).env()
    }
}

impl TensorEnv for Faulty {
    fn width(&self) -> usize {
        self.right().width()
    }
    fn n_values(&self) -> usize {
        self.right().n_values()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        self.right().n_moves(direction)
    }
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        let legal = self.right().legal(direction, states);
        let is_wrong = matches!(self.1, Fault::Mask) && direction == Direction::Forward;
        if is_wrong { legal.ones_like() } else { legal }
    }
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        if matches!(self.1, Fault::Step) && direction == Direction::Backward {
            return states.shallow_clone();
        }
        self.right().step(direction, states, moves)
    }
    fn reverse(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        let reverse = self.right().reverse(direction, states, moves);
        if matches!(self.1, Fault::Reverse) { (reverse + 1).remainder(2) } else { reverse }
    }
    fn has_exit(&self) -> bool {
        self.right().has_exit()
    }
    fn can_end(&self, states: &Tensor) -> Tensor {
        let ends = self.right().can_end(states);
        if matches!(self.1, Fault::End) { ends.zeros_like() } else { ends }
    }
    fn n_steps(&self) -> Option<usize> {
        if matches!(self.1, Fault::Length) { Some(3) } else { self.right().n_steps() }
    }
}

/// A reward whose tensor form is that of another reward.
struct Mixed<A, B>(A, B);

impl<A: Reward<VectorStates>, B: Reward<VectorStates>> Reward<VectorStates> for Mixed<A, B> {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.0.log_reward(states, conditions)
    }
    fn on_tensors(&self) -> Option<&dyn gfn::env::TensorReward> {
        self.1.on_tensors()
    }
}

#[test]
fn wrong_forms_are_refused() {
    let grid = HyperGrid::new(2, 4).unwrap();
    let reward = OriginalReward::standard(&grid).unwrap();
    let set = SetAddition::new(4, 2, true).unwrap();
    let weights = WeightReward::new(&set, 0.2, &[0.5, 2.0, 1.0, 3.0]).unwrap();
    let found = |env: VectorEnv, reward: &dyn Reward<VectorStates>, fault: Fault| {
        let faulty = Faulty(env.clone(), fault);
        let result = check_tensors(&env.with_tensors(faulty), reward, 100, &mut Rng::seeded(0));
        result.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(found(grid.env(), &reward, Fault::None), "");
    assert_eq!(found(set.env(), &weights, Fault::None), "");
    for (fault, of_grid, of_set) in [
        (Fault::Mask, "the legal forward slots", "the legal forward slots"),
        (Fault::Step, "the parents", "the parents"),
        (Fault::Reverse, "the moves that undo forward moves", "the moves that undo forward moves"),
        (Fault::End, "the legal forward slots", "the ends of trajectories"),
        (Fault::Length, "the number of actions", "the number of actions"),
    ] {
        let messages = [found(grid.env(), &reward, fault), found(set.env(), &weights, fault)];
        assert!(messages[0].contains(of_grid) && messages[1].contains(of_set), "{messages:?}");
    }
    // The tensor form belongs to a table whose rows are off by one.
    let words = TokenSequence::fixed(3, 3).unwrap();
    let text = |shift: usize| {
        let line = |n: usize| format!("{}{}{},{}\n", n / 9, n / 3 % 3, n % 3, (n + shift) % 27 + 1);
        (0..27).map(line).fold(String::from("sequence,reward\n"), |text, line| text + &line)
    };
    let digits = Alphabet::new("012").unwrap();
    let read = |shift| TableReward::parse(&words, &digits, &text(shift), None).unwrap();
    assert_eq!(found(words.env(), &Mixed(read(0), read(0)), Fault::None), "");
    let message = found(words.env(), &Mixed(read(0), read(1)), Fault::None);
    assert!(message.contains("the log-reward of the tensor form"), "{message}");
}
