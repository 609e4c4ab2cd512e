//! Exact distributions, flows and distances on grids are compared with numbers that another program
//! computed by dynamic programming in float64 (`golden/exact_distributions.json`).

use gfn::Result;
use gfn::contract::{Budget, check_env};
use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::objective::Quantities;
use gfn::policy::{Evaluation, Policy};
use serde::Deserialize;
use tch::{Kind, Tensor};

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[allow(non_snake_case)]
struct Case {
    ndim: usize,
    height: u32,
    logits: Vec<Vec<f64>>,
    temperature: f64,
    epsilon: f64,
    terminating_distribution: Vec<f64>,
    visit_probability: Vec<f64>,
    expected_n_actions: f64,
    true_distribution: Vec<f64>,
    log_Z: f64,
    l1: f64,
    jsd: f64,
    kl_target_to_policy: f64,
    kl_policy_to_target: f64,
    backward_logits: Vec<Vec<f64>>,
    optimal_log_flow: Vec<f64>,
    optimal_forward_policy: Vec<Vec<f64>>,
}

/// The environment of a grid. A state is the index of a cell, and the last coordinate changes fastest.
/// Action `j` increments coordinate `j`.
struct Grid {
    ndim: usize,
    height: u32,
}

impl Grid {
    fn stride(&self, j: usize) -> u32 {
        self.height.pow((self.ndim - 1 - j) as u32)
    }
    fn coordinate(&self, cell: u32, j: usize) -> u32 {
        cell / self.stride(j) % self.height
    }
}

impl Env for Grid {
    type States = Slots;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn initial(&self, instances: &[u32]) -> Slots {
        Slots(vec![0; instances.len()])
    }
    fn step(&self, direction: Direction, states: &mut Slots, actions: &Slots) -> Result<Step<Slots>> {
        let exit: Vec<bool> = actions.0.iter().map(|&a| a as usize == self.ndim).collect();
        for ((cell, &action), exit) in states.0.iter_mut().zip(&actions.0).zip(&exit) {
            match direction {
                _ if *exit => {}
                Direction::Forward => *cell += self.stride(action as usize),
                Direction::Backward => *cell -= self.stride(action as usize),
            }
        }
        let done = match direction {
            Direction::Forward => exit.clone(),
            Direction::Backward => self.is_initial(states),
        };
        Ok(Step { reverse: actions.clone(), exit, done })
    }
    fn is_initial(&self, states: &Slots) -> Vec<bool> {
        states.0.iter().map(|&cell| cell == 0).collect()
    }
    fn exit_actions(&self, states: &Slots) -> Option<Slots> {
        Some(Slots(vec![self.ndim as u32; states.len()]))
    }
}

impl DiscreteEnv for Grid {
    fn masks(&self, direction: Direction, states: &Slots) -> Masks {
        let forward = direction == Direction::Forward;
        let mut legal = Vec::new();
        for &cell in &states.0 {
            let of = |j| self.coordinate(cell, j);
            legal.extend((0..self.ndim).map(|j| if forward { of(j) + 1 < self.height } else { of(j) > 0 }));
            legal.extend(forward.then_some(true));
        }
        Masks::dense(direction, self.ndim + usize::from(forward), legal, forward).unwrap()
    }
    fn describe(&self, _: Direction, _: &Slots, _: usize, slot: u32) -> String {
        format!("coordinate {slot}")
    }
}

impl EnumerableEnv for Grid {
    type Key = u32;
    fn keys(&self, states: &Slots) -> Vec<u32> {
        states.0.clone()
    }
}

/// The policy of a test case. Its probabilities in a cell are the softmax of the cell's logits, divided by a
/// temperature, mixed with the uniform distribution.
impl Policy<Grid> for Case {
    fn evaluate(
        &self,
        env: &Grid,
        states: &Slots,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let block = |direction, table: &[Vec<f64>], temperature: f64, epsilon: f64| {
            let masks = env.masks(direction, states);
            let width = masks.blocks[0].width;
            let mut logits = vec![0.0; masks.legal.len()];
            for (row, &cell) in states.0.iter().enumerate() {
                let legal: Vec<usize> = masks.legal_slots(row).map(|slot| slot as usize).collect();
                let weight = |slot: usize| (table[cell as usize][slot] / temperature).exp();
                let total: f64 = legal.iter().map(|&slot| weight(slot)).sum();
                for &slot in &legal {
                    let prob = (1.0 - epsilon) * weight(slot) / total + epsilon / legal.len() as f64;
                    logits[row * width + slot] = prob.ln();
                }
            }
            let logits = Tensor::from_slice(&logits).to_kind(Kind::Double).view([-1, width as i64]);
            GraphActionCategorical::new(masks, &[logits])
        };
        let pf = block(Direction::Forward, &self.logits, self.temperature, self.epsilon)?;
        let pb = block(Direction::Backward, &self.backward_logits, 1.0, 0.0)?;
        Ok(Evaluation { pf: Some(pf), pb: Some(pb), ..Evaluation::default() })
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found} {expected}");
}

#[test]
fn grids_agree_with_dynamic_programming() {
    let golden: Golden = serde_json::from_str(include_str!("golden/exact_distributions.json")).unwrap();
    assert_eq!(golden.cases.len(), 6);
    for case in golden.cases {
        let env = Grid { ndim: case.ndim, height: case.height };
        check_env(&env, Budget::thorough().with_walks(10), &mut gfn::Rng::seeded(0)).unwrap();
        let graph = StateGraph::build(&env, 1000).unwrap();
        assert_eq!(graph.len(), case.logits.len());
        // The array `index` maps cells to indices of states in the state graph.
        let cells = Slots((0..graph.len() as u32).collect());
        let index: Vec<usize> = graph.indices(&env, &cells).into_iter().map(Option::unwrap).collect();
        let by_cell = |values: &[f64]| index.iter().map(|&state| values[state]).collect::<Vec<_>>();

        let sampled = graph.terminating_distribution(&env, &case, None).unwrap();
        for (a, b) in by_cell(&sampled.probs).iter().zip(&case.terminating_distribution) {
            close(*a, *b);
        }
        for (a, b) in by_cell(&sampled.visits).iter().zip(&case.visit_probability) {
            close(*a, *b);
        }
        close(sampled.mean_len, case.expected_n_actions);

        let reward = |states: &Slots, _: Option<&Tensor>| -> Result<Vec<f64>> {
            let log_r = |&cell: &u32| case.true_distribution[cell as usize].ln() + case.log_Z;
            Ok(states.0.iter().map(log_r).collect())
        };
        let target = graph.target_distribution(&reward, None).unwrap();
        close(target.log_z, case.log_Z);
        for (a, b) in by_cell(&target.probs).iter().zip(&case.true_distribution) {
            close(*a, *b);
        }
        let distances = Distances::between(&sampled.probs, &target.probs).unwrap();
        close(distances.l1, case.l1);
        close(distances.tv, case.l1 / 2.0);
        close(distances.jsd, case.jsd);
        close(distances.kl_target_policy, case.kl_target_to_policy);
        close(distances.kl_policy_target, case.kl_policy_to_target);

        let flows = graph.exact_flows(&env, &case, &reward, None).unwrap();
        for (a, b) in by_cell(&flows.log_flow).iter().zip(&case.optimal_log_flow) {
            close(*a, *b);
        }
        close(flows.log_z, case.log_Z);
        let exact = ExactPolicy::new(&graph, &env, &case, &reward).unwrap();
        let pf = exact.evaluate(&env, &cells, None, Quantities::PF).unwrap().pf.unwrap();
        for (cell, expected) in case.optimal_forward_policy.iter().enumerate() {
            let range = pf.legal_offsets()[cell]..pf.legal_offsets()[cell + 1];
            for k in range {
                close(pf.host_log_probs().unwrap()[k].exp(), expected[pf.legal_slots()[k] as usize]);
            }
        }
        let sampled = graph.terminating_distribution(&env, &exact, None).unwrap();
        assert!(Distances::between(&sampled.probs, &target.probs).unwrap().l1 < 1e-12);
    }
}
