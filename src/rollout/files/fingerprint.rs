use crate::Result;
use crate::env::{Direction, DiscreteEnv, Slots};
use crate::io::Hash;

/// Steps that the longest fingerprint takes.
const MAX_STEPS: usize = 1000;

/// A hash that tells environments apart whose actions mean something else: of the legal slots, both ways, of every state on the
/// path that takes the first legal action, and on the one that takes the last but the exit.
///
/// Environments that agree on those may still differ; every action of a file is checked on top.
pub(crate) fn fingerprint<E: DiscreteEnv>(env: &E) -> Result<String> {
    let mut hash = Hash::new();
    for from_the_end in [false, true] {
        let mut states = env.initial(1);
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
            let Some(&slot) = (if from_the_end { slots.last() } else { slots.first() }) else { break };
            if env.step(Direction::Forward, &mut states, &Slots(vec![slot]))?.done[0] {
                break;
            }
        }
    }
    Ok(hash.hex())
}
