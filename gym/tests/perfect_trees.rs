//! Tests of perfect binary trees: the conversion between the index of a node and the path from the root to
//! this node.

use gfn_gym::perfect_tree::PerfectBinaryTree;

#[test]
fn nodes_and_states_are_inverse() {
    let env = PerfectBinaryTree::new(4).unwrap();
    let states = env.states_of(0..31).unwrap();
    let nodes: Vec<u64> = states.rows().map(PerfectBinaryTree::node).collect();
    assert_eq!(nodes, (0..31).collect::<Vec<u64>>());
    assert!(env.states_of([31]).unwrap_err().to_string().contains("31"));
    let deep = PerfectBinaryTree::new(62).unwrap();
    let last = deep.states_of([*deep.leaves().end()]).unwrap();
    assert_eq!(PerfectBinaryTree::node(last.row(0)), (1 << 63) - 2);
    assert!(PerfectBinaryTree::new(0).is_err() && PerfectBinaryTree::new(63).is_err());
}
