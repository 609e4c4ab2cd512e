//! An order of the states in which parents come before their children.

use super::state_graph::EXIT;
use crate::{Error, Result};

/// Returns `true` if every child has a larger index than its parent. For states in breadth-first order, the
/// result is `true` if all paths to a state have equal length.
pub(super) fn is_topological(move_ptr: &[usize], children: &[u32]) -> bool {
    move_ptr.windows(2).enumerate().all(|(state, ends)| {
        children[ends[0]..ends[1]].iter().all(|&child| child == EXIT || child as usize > state)
    })
}

/// Returns the states in topological order (Kahn's algorithm), beginning with state 0. Returns an error if
/// the moves form a cycle.
pub(crate) fn topological(move_ptr: &[usize], children: &[u32]) -> Result<Vec<usize>> {
    let n = move_ptr.len() - 1;
    let mut parents = vec![0u32; n];
    for &child in children.iter().filter(|&&child| child != EXIT) {
        parents[child as usize] += 1;
    }
    let mut order = Vec::with_capacity(n);
    order.extend((0..n).filter(|&state| parents[state] == 0));
    let mut next = 0;
    while let Some(&state) = order.get(next) {
        next += 1;
        for &child in children[move_ptr[state]..move_ptr[state + 1]].iter().filter(|&&child| child != EXIT) {
            parents[child as usize] -= 1;
            if parents[child as usize] == 0 {
                order.push(child as usize);
            }
        }
    }
    if order.len() < n {
        return Err(Error::contract(
            "no sequence of forward moves leads back to the state where it started",
            format!("{} of {n} states are part of a cycle or follow one", n - order.len()),
        ));
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_and_a_cycle_is_refused() {
        // State 0 has the children 1 and 2, and state 2 has the child 1, so state 1 must come last.
        let move_ptr = vec![0, 2, 3, 4];
        let children = vec![1, 2, EXIT, 1];
        assert!(!is_topological(&move_ptr, &children));
        assert_eq!(topological(&move_ptr, &children).unwrap(), [0, 2, 1]);
        assert!(is_topological(&[0, 2, 3, 3], &[1, 2, 2]));
        // States 1 and 2 are each a child of the other, so no order is topological.
        let error = topological(&[0, 1, 2, 3], &[1, 2, 1]).unwrap_err();
        assert!(error.to_string().contains("2 of 3 states"), "{error}");
    }
}
