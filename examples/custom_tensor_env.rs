//! Defines a custom environment and its reward by tensor operations alone, so that a roll-out can stay on a
//! GPU: `cargo run --release --example custom_tensor_env -- --device cuda`. The objects are the permutations
//! of `custom_vector_env.rs`: log R is the number of items whose number is equal to their position.

use gfn::env::{PerTensor, TensorEnv};
use gfn::prelude::*;

/// Permutations of `N` items, written item by item. Entry `k` of a state is the number of the item at
/// position `k`. Items are numbered from 1, and the entry of an empty position is 0.
struct Permutations;
const N: i64 = 5;

/// Returns the number of items in each state, `[n, 1]`.
fn lengths(states: &Tensor) -> Tensor {
    states.gt(0).sum_dim_intlist(1, true, Kind::Int64)
}

/// Returns the numbers from 1 to `N`.
fn items(device: Device) -> Tensor {
    Tensor::arange(N, (Kind::Int64, device)) + 1
}

impl TensorEnv for Permutations {
    fn width(&self) -> usize {
        N as usize
    }
    fn n_values(&self) -> usize {
        N as usize + 1
    }
    // A forward action appends one of `N` items. The only backward action removes the last item.
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { N as usize } else { 1 }
    }
    // A trajectory ends by itself when the permutation is complete, without an exit action.
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, states: &Tensor) -> Tensor {
        states.gt(0).all_dim(1, false)
    }
    fn n_steps(&self) -> Option<usize> {
        Some(N as usize)
    }
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        match direction {
            Direction::Forward => {
                states.unsqueeze(2).eq_tensor(&items(states.device())).any_dim(1, false).logical_not()
            }
            Direction::Backward => lengths(states).gt(0),
        }
    }
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        match direction {
            // Complete permutations get an item, too, which is ignored. Its position is clamped.
            Direction::Forward => {
                states.scatter(1, &lengths(states).clamp_max(N - 1), &(moves + 1).unsqueeze(1))
            }
            Direction::Backward => states.scatter_value(1, &(lengths(states) - 1).clamp_min(0), 0),
        }
    }
    fn reverse(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        match direction {
            Direction::Forward => moves.zeros_like(),
            Direction::Backward => {
                states.gather(1, &(lengths(states) - 1).clamp_min(0), false).squeeze_dim(1) - 1
            }
        }
    }
}

fn main() -> gfn::Result<()> {
    let device = std::env::args().skip_while(|argument| argument != "--device").nth(1);
    let runtime = Runtime::new(1, device.as_deref().unwrap_or("cpu").parse()?)?;
    let env = VectorEnv::from_tensors(Permutations)?;
    check_env(&env, Budget::thorough(), &mut Rng::seeded(0))?;
    let reward = PerTensor(|states: &Tensor| {
        Ok(states.eq_tensor(&items(states.device())).sum_dim_intlist(1, false, Kind::Double))
    });
    let trained = Experiment::new(env, reward).steps(1_000).runtime(runtime).train()?;
    let exact = trained.exact(1_000)?;
    let n = exact.space.ends().len();
    println!("Total variation {:.4} over {n} permutations.", exact.distances.tv);
    // Z is the sum of n! / k! (e - 1)^k over all k.
    let falling = |k: i64| (k + 1..=N).product::<i64>() as f64;
    let z: f64 = (0..=N).map(|k| falling(k) * (1f64.exp() - 1.0).powi(k as i32)).sum();
    println!("log Z is {:.4}, and {:.4} in closed form.", exact.target.log_z, z.ln());
    Ok(())
}
