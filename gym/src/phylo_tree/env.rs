use gfn::env::{Direction, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};

/// Forests of rooted binary trees over `n` species: each action joins two trees under a new root, and a
/// trajectory ends with a single tree.
///
/// Species are numbered from 0, and a tree is identified by its smallest species. An inner node is named
/// after the larger of its two children's smallest species; no other inner node of the forest has this name.
/// Two forests are equal if and only if their states are equal.
///
/// * *States.* A state has `2 n - 1` entries of `n` values, and the input layer of a network is
///   `KHot::new(env.entries(), env.n())`. First come the names of the parents of the species `0..n`, then the
///   names of the parents of the inner nodes `1..n`. An entry is 0 for a root, and for an inner node that
///   doesn't exist.
/// * *Forward slots.* Slot `b (b - 1) / 2 + a` joins the trees whose smallest species are `a < b`.
/// * *Backward slots.* Slot `a` in `0..n` removes the root of the tree whose smallest species is `a`.
/// * *End.* There is no exit action: the last join ends the trajectory.
///
/// In gfnx a state depends on the order of joins, because nodes are numbered in this order. Here all orders
/// of joins that give the same forest lead to the same state.
///
/// ```
/// use gfn::env::{Direction, Env, Slots};
/// use gfn_gym::phylo_tree::PhyloTree;
/// let rules = PhyloTree::new(4)?;
/// let env = rules.env();
/// let mut states = env.initial(&[0]);
/// for (a, b) in [(1, 3), (0, 2), (0, 1)] {
///     env.step(Direction::Forward, &mut states, &Slots(vec![PhyloTree::join_slot(a, b)]))?;
/// }
/// assert_eq!(rules.newick(states.row(0)), "((0,2),(1,3));");
/// assert_eq!(rules.n_terminal(), Some(15));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhyloTree {
    n: usize,
}

impl PhyloTree {
    /// The largest number of species for which all trees are listed. There are 135,135 trees over 8 species.
    const MAX_LISTED: usize = 8;

    /// Builds the rules for trees over `n` species.
    ///
    /// # Errors
    /// [`Error::Config`] for an `n` outside `2..=1000`.
    pub fn new(n: usize) -> Result<Self> {
        if !(2..=1000).contains(&n) {
            return Err(Error::config("n", n, "2 to 1,000 species"));
        }
        Ok(Self { n })
    }

    /// Returns the number of species that the trees have.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The number of entries of a state, `2 n - 1`.
    #[must_use]
    pub fn entries(&self) -> usize {
        2 * self.n - 1
    }

    /// The number of states, `sum over k < n of (n - 1 + k)! / ((n - 1 - k)! k! 2^k)` (OEIS A001515); `None`
    /// if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        // The number y(m) of states for m + 1 species satisfies y(m) = (2 m - 1) y(m - 1) + y(m - 2).
        let mut before = 1u64;
        let mut now = 1u64;
        for m in 1..self.n as u64 {
            (before, now) = (now, now.checked_mul(2 * m - 1)?.checked_add(before)?);
        }
        Some(now)
    }

    /// Returns the number of trees over all species, `(2 n - 3)!!`; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_terminal(&self) -> Option<u64> {
        (2..self.n as u64).try_fold(1u64, |product, k| product.checked_mul(2 * k - 1))
    }

    /// Returns the forward slot that joins the trees whose smallest species are `a` and `b`.
    #[must_use]
    pub fn join_slot(a: u32, b: u32) -> u32 {
        let low = a.min(b);
        let high = a.max(b);
        high * high.saturating_sub(1) / 2 + low
    }

    /// Lists all trees. Each species in turn is attached to every edge of every tree of the earlier species.
    /// Returns `None` for more than 8 species.
    #[must_use]
    pub fn all_trees(&self) -> Option<VectorStates> {
        if self.n > Self::MAX_LISTED {
            return None;
        }
        // The list begins with the only tree over species 0 alone, which has no inner node.
        let mut trees = vec![vec![0u16; self.entries()]];
        for species in 1..self.n {
            let mut grown = Vec::new();
            for tree in &trees {
                // The new inner node becomes the parent of `node`, which is a species or an inner node.
                // Attaching species k creates the inner node k, so `tree` has the inner nodes 1 to
                // `species - 1`.
                for node in (0..species).chain((1..species).map(|name| self.inner(name))) {
                    let mut tree = tree.clone();
                    tree[self.inner(species)] = tree[node];
                    (tree[node], tree[species]) = (species as u16, species as u16);
                    grown.push(tree);
                }
            }
            trees = grown;
        }
        VectorStates::from_flat(self.entries(), trees.concat()).ok()
    }

    /// Returns the trees of a state as Newick text, ordered by their smallest species. Species are written as
    /// their numbers. A row that isn't a state is written as the list of its entries.
    #[must_use]
    pub fn newick(&self, row: &[u16]) -> String {
        let Some(children) = self.children(row) else { return format!("{row:?}") };
        let roots =
            (0..self.n).filter(|&species| is_smallest(row, species)).map(|species| self.root(row, species));
        let trees: Vec<String> = roots.map(|root| self.text(&children, root) + ";").collect();
        trees.join(" ")
    }

    fn text(&self, children: &[Vec<usize>], node: usize) -> String {
        match self.name(node) {
            None => node.to_string(),
            Some(name) => {
                let parts: Vec<String> =
                    children[name].iter().map(|&child| self.text(children, child)).collect();
                format!("({})", parts.join(","))
            }
        }
    }

    /// Returns the index of the entry that a state has for the inner node with this name.
    fn inner(&self, name: usize) -> usize {
        self.n - 1 + name
    }

    /// Returns the name of the inner node whose entry has index `node`; `None` if this is the entry of a
    /// species.
    pub(super) fn name(&self, node: usize) -> Option<usize> {
        (node >= self.n).then(|| node + 1 - self.n)
    }

    /// Returns the root of the tree that contains a species, as the index of the root's entry in the state
    /// `row`.
    pub(super) fn root(&self, row: &[u16], species: usize) -> usize {
        let mut node = species;
        // No path in a forest is longer than `n`. The loop is bounded, because a row that isn't a forest may
        // contain a cycle.
        for _ in 0..self.n {
            match row[node] {
                0 => break,
                name => node = self.inner(usize::from(name)),
            }
        }
        node
    }

    /// Returns for each inner node, indexed by its name, the indices in `row` of the entries of its two
    /// children. The child whose smallest species is smaller comes first. Returns `None` for a row that isn't
    /// a forest of binary trees with correct names: an inner node must have the name of the larger of its
    /// children's smallest species.
    pub(super) fn children(&self, row: &[u16]) -> Option<Vec<Vec<usize>>> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.n];
        let mut first = vec![0; self.n];
        // The loop follows the parents of each species in turn, up to the first node that an earlier species
        // reached. Species are visited in ascending order. Therefore, of the two children of a node, the one
        // whose smallest species is smaller is added first.
        for species in 0..self.n {
            let mut node = species;
            loop {
                let parent = usize::from(row[node]);
                if parent == 0 {
                    break;
                }
                let below = children.get_mut(parent)?;
                below.push(node);
                match below.len() {
                    1 => first[parent] = species,
                    2 if first[parent] < species && species == parent => break,
                    _ => return None,
                }
                node = self.inner(parent);
            }
        }
        let is_complete = |name: usize| match children[name].len() {
            0 => row[self.inner(name)] == 0,
            n => n == 2,
        };
        (1..self.n).all(is_complete).then_some(children)
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self)
    }
}

/// Returns `true` if a species is the smallest of its tree, that is, if no inner node is named after it.
pub(super) fn is_smallest(row: &[u16], species: usize) -> bool {
    species == 0 || !row.contains(&(species as u16))
}

impl VectorRules for PhyloTree {
    fn width(&self) -> usize {
        self.entries()
    }
    fn n_values(&self) -> usize {
        self.n
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { self.n * (self.n - 1) / 2 } else { self.n }
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        // In a single tree every node except the root has a parent.
        row.iter().filter(|&&x| x > 0).count() == 2 * (self.n - 1)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let mut smallest = vec![true; self.n];
        for &x in row.iter().filter(|&&x| x > 0) {
            smallest[usize::from(x)] = false;
        }
        match direction {
            Direction::Forward => {
                let mut slot = 0;
                for b in 1..self.n {
                    for a in 0..b {
                        legal[slot] = smallest[a] && smallest[b];
                        slot += 1;
                    }
                }
            }
            Direction::Backward => {
                for (a, legal) in legal.iter_mut().enumerate() {
                    *legal = smallest[a] && row[a] > 0;
                }
            }
        }
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        match direction {
            Direction::Forward => {
                let (a, b) = self.pair(slot)?;
                if !(is_smallest(row, a) && is_smallest(row, b)) {
                    return None;
                }
                for root in [self.root(row, a), self.root(row, b)] {
                    row[root] = b as u16;
                }
                Some(a)
            }
            Direction::Backward => {
                let a = Some(slot).filter(|&a| a < self.n && is_smallest(row, a))?;
                let b = self.name(self.root(row, a))?;
                for x in row.iter_mut().filter(|x| usize::from(**x) == b) {
                    *x = 0;
                }
                Some(Self::join_slot(a as u32, b as u32) as usize)
            }
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match (direction, self.pair(slot)) {
            (Direction::Forward, Some((a, b))) => {
                format!("join the trees of {a} and {b} of {}", self.newick(row))
            }
            (Direction::Forward, None) => format!("there is no pair {slot} of {}", self.newick(row)),
            (Direction::Backward, _) => format!("split the tree of {slot} of {}", self.newick(row)),
        }
    }
}

impl PhyloTree {
    /// Returns the two species `a < b` for a forward slot, which joins the trees whose smallest species are
    /// `a` and `b`. Returns `None` for a slot that is too large.
    fn pair(&self, slot: usize) -> Option<(usize, usize)> {
        let b = (1..self.n).find(|b| slot < b * (b + 1) / 2)?;
        Some((slot - b * (b - 1) / 2, b))
    }
}
