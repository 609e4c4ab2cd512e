use super::partition::{Labelled, Partition};

/// Nodes that may be copied before a search is given up: about a second.
const BUDGET: usize = 1 << 25;

/// A canonical order of a graph, and its automorphisms.
pub(in crate::molecule) struct Symmetry {
    /// The nodes in canonical order.
    pub(in crate::molecule) order: Vec<u32>,
    /// Labels and edges in this order: equal for isomorphic graphs, different for others.
    pub(super) certificate: Vec<u32>,
    /// Permutations that generate all automorphisms.
    generators: Vec<Vec<u32>>,
    /// Sizes whose product is the number of automorphisms.
    pub(super) orbits: Vec<u64>,
}

impl Symmetry {
    /// Searches a graph; `None` where that takes too long.
    pub(super) fn new(graph: &Labelled) -> Option<Self> {
        let mut search = Search { graph, work: 0 };
        let Found { best, generators, orbits, .. } = search.explore(&Partition::new(graph))?;
        Some(Self { order: best.order, certificate: best.certificate, generators, orbits })
    }

    /// The number of automorphisms, if it is at most `most`.
    pub(in crate::molecule) fn group_order(&self, most: u64) -> Option<u64> {
        let product = self.orbits.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
        product.filter(|&product| product <= most)
    }

    /// All automorphisms, `group[g][a]` being what `a` is mapped to; `None` where there are more than `most`.
    pub(in crate::molecule) fn group(&self, most: u64) -> Option<Vec<Vec<u32>>> {
        self.group_order(most)?;
        let identity: Vec<u32> = (0..self.order.len() as u32).collect();
        let mut seen = std::collections::BTreeSet::from([identity.clone()]);
        let mut group = vec![identity];
        let mut next = 0;
        while next < group.len() {
            for generator in &self.generators {
                let product: Vec<u32> = group[next].iter().map(|&a| generator[a as usize]).collect();
                if seen.insert(product.clone()) {
                    group.push(product);
                }
            }
            next += 1;
        }
        Some(group)
    }
}

/// A way to tell all nodes apart.
#[derive(Clone)]
struct Leaf {
    order: Vec<u32>,
    certificate: Vec<u32>,
}

/// What is known of all leaves below a partition.
struct Found {
    /// The one that is met first.
    first: Leaf,
    /// The one with the smallest certificate.
    best: Leaf,
    generators: Vec<Vec<u32>>,
    orbits: Vec<u64>,
}

struct Search<'a> {
    graph: &'a Labelled,
    /// Nodes copied so far.
    work: usize,
}

impl Search<'_> {
    fn individualised(&mut self, partition: &Partition, node: u32) -> Option<Partition> {
        self.work += partition.order().len();
        (self.work <= BUDGET).then(|| partition.individualised(self.graph, node))
    }

    fn leaf(&self, partition: &Partition) -> Leaf {
        let order = partition.order().to_vec();
        let mut place = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&a, k)| place[a as usize] = k);
        let mut certificate = vec![order.len() as u32];
        for (&a, k) in order.iter().zip(0u32..) {
            certificate.push(self.graph.labels[a as usize]);
            let begin = certificate.len();
            let back = self.graph.beside[a as usize].iter().map(|&(b, class)| (place[b as usize], class));
            certificate.extend(back.filter(|&(b, _)| b < k).map(|(b, class)| b << 2 | u32::from(class)));
            certificate[begin..].sort_unstable();
            // Ends the list: no edge has this number.
            certificate.push(u32::MAX);
        }
        Leaf { order, certificate }
    }

    /// The leaf that is met first.
    fn descend(&mut self, mut partition: Partition) -> Option<Leaf> {
        while let Some(&node) = partition.target().and_then(<[u32]>::first) {
            partition = self.individualised(&partition, node)?;
        }
        Some(self.leaf(&partition))
    }

    fn explore(&mut self, partition: &Partition) -> Option<Found> {
        let Some((&start, others)) = partition.target().and_then(<[u32]>::split_first) else {
            let leaf = self.leaf(partition);
            return Some(Found { first: leaf.clone(), best: leaf, generators: Vec::new(), orbits: Vec::new() });
        };
        let below = self.individualised(partition, start)?;
        let Found { first, best, mut generators, mut orbits } = self.explore(&below)?;
        // Nodes whose leaves are known, and these leaves.
        let mut known = vec![(start, first, best)];
        let mut alike = Orbits::new(self.graph.labels.len());
        generators.iter().for_each(|generator| alike.join(generator));
        for &node in others {
            if known.iter().any(|&(other, ..)| alike.same(node, other)) {
                continue;
            }
            let below = self.individualised(partition, node)?;
            let leaf = self.descend(below.clone())?;
            let twin = known.iter().flat_map(|(_, first, best)| [first, best]).find_map(|leaves| leaves.onto(&leaf));
            if let Some(automorphism) = twin {
                alike.join(&automorphism);
                generators.push(automorphism);
                continue;
            }
            let found = self.explore(&below)?;
            let twin = known.iter().find_map(|(.., best)| best.onto(&found.best));
            for automorphism in found.generators.into_iter().chain(twin) {
                alike.join(&automorphism);
                generators.push(automorphism);
            }
            known.push((node, found.first, found.best));
        }
        orbits.push(1 + others.iter().filter(|&&node| alike.same(node, start)).count() as u64);
        let first = known[0].1.clone();
        let best = known.into_iter().map(|(.., best)| best).min_by(|a, b| a.certificate.cmp(&b.certificate))?;
        Some(Found { first, best, generators, orbits })
    }
}

impl Leaf {
    /// The automorphism that takes this leaf to another, if there is one.
    fn onto(&self, other: &Self) -> Option<Vec<u32>> {
        if self.certificate != other.certificate {
            return None;
        }
        let mut map = vec![0; self.order.len()];
        self.order.iter().zip(&other.order).for_each(|(&a, &b)| map[a as usize] = b);
        Some(map)
    }
}

/// Which nodes some automorphisms take to one another.
struct Orbits(petgraph::unionfind::UnionFind<u32>);

impl Orbits {
    fn new(n: usize) -> Self {
        Self(petgraph::unionfind::UnionFind::new(n))
    }

    fn join(&mut self, automorphism: &[u32]) {
        for (&to, from) in automorphism.iter().zip(0..) {
            self.0.union(from, to);
        }
    }

    fn same(&self, a: u32, b: u32) -> bool {
        self.0.equiv(a, b)
    }
}
