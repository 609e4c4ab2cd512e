//! Searches without a policy, with which the policy is compared at an equal number of scored molecules:
//! random trees of fragments, and a genetic algorithm on such trees.

use gfn::graph::{Attributes, Edge, canonical_key};
use gfn_molecules::fragments::Fragments;

use super::RecordedProxy;
use crate::prelude::*;

/// A search that ends after it has scored a given number of molecules.
pub(super) type Search = fn(&Fragments, &RecordedProxy, usize, &mut Rng) -> Result<()>;

/// The number of best trees of fragments that the genetic algorithm keeps. Parents are drawn from these
/// trees.
const PARENTS: usize = 100;
/// The number of new trees of fragments in each generation of the genetic algorithm.
const CHILDREN: usize = 64;
/// The probability that a new tree, which is joined from parts of two parents, is mutated, too.
const MUTATED: f64 = 0.5;
/// The largest number of fragments that a mutation removes, and the largest number that it then adds.
const CHANGED: usize = 3;

type Tree = GraphState;

fn score(env: &Fragments, proxy: &RecordedProxy, trees: &[Tree]) -> Result<Vec<f64>> {
    let molecules: Vec<Molecule> =
        trees.iter().map(|tree| env.library().molecule(tree)).collect::<Result<_>>()?;
    let scores = proxy.log_scores(&molecules)?;
    proxy.finish_step(None)?;
    Ok(scores)
}

/// Scores `calls` trees of fragments, which are built by uniform random actions.
pub(super) fn random(env: &Fragments, proxy: &RecordedProxy, calls: usize, rng: &mut Rng) -> Result<()> {
    let mut left = calls;
    while left > 0 {
        let n = left.min(CHILDREN);
        score(env, proxy, sample(env.env(), &UniformPolicy, n, rng)?.graphs())?;
        left -= n;
    }
    Ok(())
}

/// Runs a genetic algorithm on trees of fragments, in the manner of Jensen (2019), until `calls` trees are
/// scored. Parents are drawn by rank among the best trees. One bond of each parent is cut, and a part of one
/// parent is joined to a part of the other.
pub(super) fn genetic(env: &Fragments, proxy: &RecordedProxy, calls: usize, rng: &mut Rng) -> Result<()> {
    let mut trees: Vec<Tree> = sample(env.env(), &UniformPolicy, PARENTS.min(calls), rng)?.graphs().to_vec();
    let mut best: BTreeMap<CanonicalKey, (f64, Tree)> = BTreeMap::new();
    let mut left = calls;
    loop {
        let scores = score(env, proxy, &trees)?;
        left -= trees.len();
        best.extend(trees.into_iter().zip(scores).map(|(tree, score)| (canonical_key(&tree), (score, tree))));
        if left == 0 {
            return Ok(());
        }
        let mut ranked: Vec<_> = best.iter().map(|(key, (score, _))| (*score, key.clone())).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, key) in ranked.iter().skip(PARENTS) {
            _ = best.remove(key);
        }
        ranked.truncate(PARENTS);
        let parent = |rng: &mut Rng| {
            // The best tree has rank 0. The smaller of two uniform random ranks is used, which makes better
            // trees more likely as parents.
            let rank = rng.below(ranked.len()).min(rng.below(ranked.len()));
            &best[&ranked[rank].1].1
        };
        trees = Vec::new();
        for _ in 0..left.min(CHILDREN) {
            let one = parent(rng);
            let other = parent(rng);
            let child = crossed(env, one, other, rng)?;
            let changed = child.is_none() || rng.uniform() < MUTATED;
            let child = child.unwrap_or_else(|| one.clone());
            trees.push(if changed { mutated(env, child, rng)? } else { child });
        }
    }
}

/// Cuts a random bond of each tree, and joins a part of `one` to a part of `other`. Returns `None` if a tree
/// has no bond, if the new tree has too many fragments, or if it isn't a state of the environment.
fn crossed(env: &Fragments, one: &Tree, other: &Tree, rng: &mut Rng) -> Result<Option<Tree>> {
    let mut side = |tree: &Tree| {
        let arcs: Vec<(u32, u32)> = tree.edges().collect();
        (!arcs.is_empty()).then(|| arcs[rng.below(arcs.len())])
    };
    let (Some((a, without_a)), Some((b, without_b))) = (side(one), side(other)) else { return Ok(None) };
    let kept = part(one, a, without_a);
    let taken = part(other, b, without_b);
    if kept.len() + taken.len() > env.max_fragments() {
        return Ok(None);
    }
    let mut child = one.induced(&kept);
    let second = other.induced(&taken);
    let first = child.n_nodes() as u32;
    for node in second.nodes() {
        _ = child.add_node(node);
    }
    for (a, b) in second.edges() {
        child.add_edge(first + a, first + b, second.edge(a, b).unwrap_or_default())?;
    }
    // A stem is an atom at which a fragment can be bonded to another fragment. The cut bonds have left a free
    // stem in each part, and the new bond joins these two stems. Node 0 of each part is the fragment with
    // this stem.
    let stem = |tree: &Tree, from, to| tree.edge(from, to).map_or(0, |arc| arc.attributes.get(0));
    let stems = [stem(one, a, without_a), stem(other, b, without_b)];
    child.add_edge(0, first, Edge { class: 0, attributes: Attributes::new(&stems)? })?;
    child.add_edge(first, 0, Edge { class: 0, attributes: Attributes::new(&[stems[1], stems[0]])? })?;
    env.state(&child).map(Some)
}

/// Returns the nodes (fragments) of the part of the tree that contains `from` after its bond to `without` is
/// cut.
fn part(tree: &Tree, from: u32, without: u32) -> Vec<u32> {
    let mut part = vec![from];
    let mut next = 0;
    while let Some(&node) = part.get(next) {
        let beside = tree.adjacency().neighbours(node as usize).map(|b| b as u32);
        let new: Vec<u32> = beside.filter(|b| *b != without && !part.contains(b)).collect();
        part.extend(new);
        next += 1;
    }
    part
}

/// Removes up to `CHANGED` random leaves of a tree, and then adds up to `CHANGED` random fragments.
fn mutated(env: &Fragments, tree: Tree, rng: &mut Rng) -> Result<Tree> {
    let env = env.env();
    let mut states = GraphStates::from(vec![tree]);
    for (direction, moves) in
        [(Direction::Backward, rng.below(CHANGED + 1)), (Direction::Forward, 1 + rng.below(CHANGED))]
    {
        for _ in 0..moves {
            if direction == Direction::Backward && states.graphs()[0].n_nodes() < 2 {
                break;
            }
            let masks = env.masks(direction, &states);
            let legal: Vec<u32> = masks.legal_slots(0).filter(|&slot| !masks.is_exit(0, slot)).collect();
            if legal.is_empty() {
                break;
            }
            env.step(direction, &mut states, &Slots(vec![legal[rng.below(legal.len())]]))?;
        }
    }
    Ok(states.graphs()[0].clone())
}
