//! Fuzz tests of the categorical distribution, which is compared with its definition in double precision.

use crate::attack::{Runs, wait_for_turn};
use gfn::distribution::{Distribution, Exploration, GraphActionCategorical};
use gfn::env::{Block, Direction, Masks, Slots};
use gfn::{Error, Rng};
use tch::{Kind, Tensor};

/// Draws random masks with one to three action types. For each action type, a state has up to three rows of
/// slots. Also draws a logit for each slot, listed per action type.
fn draw_case(rng: &mut Rng) -> (Masks, Vec<Vec<f32>>) {
    let n = 1 + rng.below(5);
    let spread = [0.0, 0.1, 1.0, 30.0, 1e4][rng.below(5)];
    let mut blocks = Vec::new();
    let mut legal = vec![Vec::new(); n];
    let mut logits = Vec::new();
    for k in 0..1 + rng.below(3) {
        let width = 1 + rng.below(3);
        let mut row_ptr = vec![0];
        for own in &mut legal {
            let rows = rng.below(4);
            row_ptr.push(row_ptr.last().unwrap() + rows);
            own.extend((0..rows * width).map(|_| rng.below(3) > 0));
        }
        let total = row_ptr.last().unwrap() * width;
        logits.push((0..total).map(|_| (spread * rng.normal()) as f32).collect());
        blocks.push(Block { name: format!("type {k}"), width, row_ptr });
    }
    let slot_ptr = std::iter::once(0).chain(legal.iter().scan(0, |sum, own| {
        *sum += own.len();
        Some(*sum)
    }));
    let slot_ptr = slot_ptr.collect();
    (
        Masks { direction: Direction::Forward, blocks, slot_ptr, legal: legal.concat(), has_exit: false },
        logits,
    )
}

/// Returns the logits of each state's slots, in the order of the slots.
fn logits_by_state(masks: &Masks, logits: &[Vec<f32>]) -> Vec<Vec<f64>> {
    let of = |state: usize| {
        let blocks = masks.blocks.iter().zip(logits);
        let rows = blocks.flat_map(|(block, logits)| {
            &logits[block.row_ptr[state] * block.width..block.row_ptr[state + 1] * block.width]
        });
        rows.map(|&logit| f64::from(logit)).collect()
    };
    (0..masks.len()).map(of).collect()
}

/// Returns the log-probabilities of a state's slots. Illegal slots have minus infinity.
fn log_softmax(logits: &[f64], legal: &[bool]) -> Vec<f64> {
    let legal_logits = || logits.iter().zip(legal).filter(|(_, legal)| **legal).map(|(logit, _)| *logit);
    let most = legal_logits().fold(f64::NEG_INFINITY, f64::max);
    let sum = most + legal_logits().map(|logit| (logit - most).exp()).sum::<f64>().ln();
    logits
        .iter()
        .zip(legal)
        .map(|(logit, &legal)| if legal { logit - sum } else { f64::NEG_INFINITY })
        .collect()
}

fn host(tensor: &Tensor) -> Vec<f64> {
    Vec::<f64>::try_from(tensor.to_kind(Kind::Double).contiguous().view(-1)).unwrap()
}

fn close(got: f64, expected: f64, scale: f64) -> bool {
    got == expected || (got - expected).abs() <= 1e-5 * expected.abs().max(scale).max(1.0)
}

#[test]
fn log_probabilities_are_those_of_the_definition() {
    let _turn = wait_for_turn();
    let mut runs = Runs::begin(7_000);
    while let Some(mut rng) = runs.next() {
        let (masks, logits) = draw_case(&mut rng);
        let blocks: Vec<Tensor> = masks
            .blocks
            .iter()
            .zip(&logits)
            .map(|(block, logits)| Tensor::from_slice(logits).view([-1, block.width as i64]))
            .collect();
        let on_device = GraphActionCategorical::new(masks.clone(), &blocks).unwrap();
        let on_host = GraphActionCategorical::from_host_blocks(masks.clone(), &logits).unwrap();
        let has_all = (0..masks.len()).all(|state| masks.n_legal(state) > 0);
        let entropies = host(&on_device.entropy());
        for (state, logits) in logits_by_state(&masks, &logits).into_iter().enumerate() {
            let expected = log_softmax(&logits, masks.row(state));
            let context = || format!("execution {}, {masks:?}, {logits:?}", runs.done);
            let scale = logits.iter().fold(0.0f64, |most, logit| most.max(logit.abs()));
            let legal: Vec<u32> = masks.legal_slots(state).collect();
            if legal.is_empty() {
                let none = on_host.sample(&[state], &Exploration::on_policy(), &mut rng).unwrap_err();
                assert!(matches!(none, Error::NoLegalAction { .. }), "{}", context());
                continue;
            }
            let rows = vec![state; legal.len()];
            for dist in [&on_device, &on_host] {
                let got = host(&dist.log_prob(&rows, &Slots(legal.clone())).unwrap());
                let all_close =
                    legal.iter().zip(got).all(|(&slot, got)| close(got, expected[slot as usize], scale));
                assert!(all_close, "{}", context());
                let slots = dist.sample(&[state; 8], &Exploration::on_policy(), &mut rng).unwrap();
                assert!(slots.0.iter().all(|&slot| expected[slot as usize] > -110.0), "{}", context());
                let likeliest =
                    legal.iter().map(|&slot| expected[slot as usize]).fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(dist.argmax().is_ok(), has_all, "{}", context());
                if let Ok(best) = dist.argmax() {
                    assert!(close(expected[best.0[state] as usize], likeliest, scale), "{}", context());
                }
            }
            if let Some(slot) = (0..expected.len() as u32).find(|slot| !legal.contains(slot)) {
                assert!(
                    matches!(
                        on_host.log_prob(&[state], &Slots(vec![slot])),
                        Err(Error::IllegalAction { .. })
                    ),
                    "{}",
                    context()
                );
            }
            let entropy: f64 =
                expected.iter().filter(|log_p| log_p.is_finite()).map(|log_p| -log_p * log_p.exp()).sum();
            assert!(
                (entropies[state] - entropy).abs() < 1e-4 * scale.max(1.0),
                "{} instead of {entropy}, {}",
                entropies[state],
                context()
            );
        }
    }
    println!("categoricals: {} executions", runs.done - 1);
}
