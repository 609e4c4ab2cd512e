//! Tests of rings: they are recognised among all graphs, counted, and rewarded.

use std::collections::HashSet;

use gfn::env::{Direction, DiscreteEnv, Env, Reward, Rows};
use gfn::graph::{Edge, GraphKind, GraphState};
use gfn_gym::ring::{Ring, RingReward};

#[test]
fn every_ring_has_its_index() {
    for (kind, sizes) in [(GraphKind::Directed, 2..=7), (GraphKind::Undirected, 3..=7)] {
        for n in sizes {
            let env = Ring::new(n, kind).unwrap();
            let rings = env.rings().unwrap().into_graphs();
            assert_eq!(rings.len() as u64, env.n_rings());
            for (i, ring) in rings.iter().enumerate() {
                assert!(env.is_ring(ring));
                assert_eq!(env.ring_index(ring), Some(i), "{kind:?} {n}");
            }
            assert_eq!(rings.iter().collect::<HashSet<_>>().len(), rings.len());
        }
    }
}

/// Compares `is_ring` with the definition for every graph of four nodes: the edges must be those of a cyclic
/// order of the nodes.
#[test]
fn rings_are_found_among_all_graphs() {
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        let ring = Ring::new(4, kind).unwrap();
        let rings: HashSet<GraphState> = ring.rings().unwrap().into_graphs().into_iter().collect();
        let pairs: Vec<(u32, u32)> = (0..4u32)
            .flat_map(|a| (0..4u32).map(move |b| (a, b)))
            .filter(|&(a, b)| a < b || (a > b && kind == GraphKind::Directed))
            .collect();
        let mut n_rings = 0;
        for bits in 0..1u32 << pairs.len() {
            let mut graph = GraphState::with_nodes(kind, 4);
            for (k, &(a, b)) in pairs.iter().enumerate() {
                if bits >> k & 1 == 1 {
                    graph.add_edge(a, b, Edge::default()).unwrap();
                }
            }
            assert_eq!(ring.is_ring(&graph), rings.contains(&graph));
            n_rings += u64::from(ring.is_ring(&graph));
        }
        assert_eq!(n_rings, ring.n_rings());
        assert_eq!(f64::from(1u32 << pairs.len()), ring.n_states());
    }
}

#[test]
fn two_separate_cycles_are_no_ring() {
    let ring = Ring::new(6, GraphKind::Undirected).unwrap();
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, 6);
    for (a, b) in [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)] {
        graph.add_edge(a, b, Edge::default()).unwrap();
    }
    assert!(!ring.is_ring(&graph));
    assert_eq!(ring.ring_index(&graph), None);
    let other = Ring::new(5, GraphKind::Undirected).unwrap();
    assert!(!other.is_ring(&ring.rings().unwrap().graphs()[0]));
}

#[test]
fn impossible_sizes_are_refused() {
    for (n, kind) in [
        (0, GraphKind::Directed),
        (1, GraphKind::Directed),
        (2, GraphKind::Undirected),
        (21, GraphKind::Directed),
    ] {
        let message = Ring::new(n, kind).unwrap_err().to_string();
        assert!(message.contains(&format!("nodes is {n}")), "{message}");
    }
    assert!(
        Ring::new(9, GraphKind::Directed).unwrap().rings().unwrap_err().to_string().contains("at most 8")
    );
}

#[test]
fn a_bare_start_has_every_edge_and_the_exit() {
    let env = Ring::new(5, GraphKind::Undirected).unwrap().into_env();
    let start = env.initial(&[0]);
    assert_eq!(env.masks(Direction::Forward, &start).n_legal(0), 10 + 1);
    assert_eq!(env.masks(Direction::Backward, &start).n_legal(0), 0);
    assert_eq!(env.is_initial(&start), [true]);
}

#[test]
fn log_z_is_the_sum_over_all_graphs() {
    let known = [
        (4, GraphKind::Directed, 1e-6, 6.39694),
        (5, GraphKind::Undirected, 1e-6, 7.09008),
        (5, GraphKind::Directed, 1e-6, 7.78366),
        (6, GraphKind::Directed, 1e-9, 9.39275),
    ];
    for (n, kind, floor, log_z) in known {
        let reward = RingReward::new(100.0, floor).unwrap();
        let got = reward.log_z(&Ring::new(n, kind).unwrap());
        assert!((got - log_z).abs() < 5e-6, "{n} {kind:?}: {got}");
    }
}

#[test]
fn rings_stand_out() {
    let ring = Ring::new(4, GraphKind::Directed).unwrap();
    let mut states = ring.rings().unwrap();
    states.append(vec![GraphState::with_nodes(GraphKind::Directed, 4)].into());
    let log_rewards = RingReward::default().log_reward(&states, None).unwrap();
    assert!(log_rewards[..6].iter().all(|&r| r == 100f64.ln()));
    assert_eq!(log_rewards[6], 1e-6f64.ln());
}

#[test]
fn senseless_values_of_rings_are_refused() {
    for (ring, floor) in [(100.0, 0.0), (1.0, 2.0), (f64::NAN, 1.0), (f64::INFINITY, 1.0), (1.0, f64::NAN)] {
        assert!(RingReward::new(ring, floor).unwrap_err().to_string().contains("two values"));
    }
}
