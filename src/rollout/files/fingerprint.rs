use crate::Result;
use crate::env::{Direction, DiscreteEnv, Slots};
use crate::io::Hash;

/// The maximum number of steps on each of the two paths through an environment that [`fingerprint`] follows.
const MAX_STEPS: usize = 1000;
/// The maximum number of instances of an environment in which [`fingerprint`] follows paths.
const MAX_INSTANCES: u32 = 16;

/// Returns a hash that identifies the meaning of an environment's actions. The function follows two paths in
/// each of the first instances (at most 16), and hashes the legal slots of every state on these paths, in
/// both directions. The first path always takes the first legal action that isn't the exit; the second path
/// always takes the last such action.
///
/// Two environments whose actions have different meanings may still have the same hash. Therefore every
/// action of a file is checked, too.
pub(crate) fn fingerprint<E: DiscreteEnv>(env: &E) -> Result<String> {
    let mut hash = Hash::new();
    let first = 0..env.n_instances().clamp(1, MAX_INSTANCES);
    for (instance, takes_last) in first.flat_map(|instance| [(instance, false), (instance, true)]) {
        let mut states = env.initial(&[instance]);
        for _ in 0..MAX_STEPS {
            for direction in [Direction::Forward, Direction::Backward] {
                let masks = env.masks(direction, &states);
                for block in &masks.blocks {
                    hash.number(block.width);
                    hash.number(block.rows());
                }
                hash.add(&masks.legal.iter().map(|&legal| u8::from(legal)).collect::<Vec<_>>());
            }
            let masks = env.masks(Direction::Forward, &states);
            let mut slots: Vec<u32> = masks.legal_slots(0).collect();
            if masks.has_exit {
                slots.retain(|&slot| slot as usize + 1 != masks.legal.len());
            }
            let Some(&slot) = (if takes_last { slots.last() } else { slots.first() }) else { break };
            if env.step(Direction::Forward, &mut states, &Slots(vec![slot]))?.done[0] {
                break;
            }
        }
    }
    Ok(hash.hex())
}
