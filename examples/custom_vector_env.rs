//! Defines a custom environment on vectors. The objects are permutations, which are written item by item. log
//! R is the number of items whose number is equal to their position.

use gfn::prelude::*;

/// The rules of permutations of `N` items. Entry `k` of a state is the number of the item at position `k`.
/// Items are numbered from 1, and the entry of an empty position is 0.
struct Permutations;
const N: usize = 5;

impl VectorRules for Permutations {
    fn width(&self) -> usize {
        N
    }
    fn n_values(&self) -> usize {
        N + 1
    }
    // A forward action appends one of `N` items. The only backward action removes the last item.
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { N } else { 1 }
    }
    // A trajectory ends by itself when the permutation is complete, without an exit action.
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        row[N - 1] > 0
    }
    fn apply(&self, direction: Direction, row: &mut [u16], item: usize) -> Option<usize> {
        let length = row.iter().filter(|&&item| item > 0).count();
        match direction {
            Direction::Forward if length < N && !row.contains(&(item as u16 + 1)) => {
                row[length] = item as u16 + 1
            }
            Direction::Backward if length > 0 => {
                return Some(usize::from(std::mem::take(&mut row[length - 1])) - 1);
            }
            _ => return None,
        }
        Some(0)
    }
}

fn main() -> gfn::Result<()> {
    let env = VectorEnv::new(Permutations);
    check_env(&env, Budget::thorough(), &mut Rng::seeded(0))?;
    let reward =
        PerVector(|row: &[u16]| row.iter().zip(1..).filter(|(item, place)| *item == place).count() as f64);
    let trained = Experiment::new(env, reward).steps(1_000).train()?;
    let exact = trained.exact(1_000)?;
    let n = exact.space.ends().len();
    println!("Total variation {:.4} over {n} permutations.", exact.distances.tv);
    Ok(())
}
