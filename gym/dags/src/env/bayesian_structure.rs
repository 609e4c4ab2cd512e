use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step};
use gfn::graph::{GraphKind, GraphSchema};
use gfn::{Error, Result};
use smallvec::SmallVec;

use super::closure::Layout;
use super::mask::BoolWriter;
use super::{Dag, DagStates, StructureConfig};

/// Directed acyclic graphs on labelled nodes, built from the required edges by adding one edge at a time; any of them can be
/// finished.
///
/// *Forward slots.* `source * n + target` adds that edge, `n * n` is the exit. *Backward slots.* `source * n + target` removes
/// that edge: a move and its reverse have the same number. Edges that would close a cycle aren't legal, so every state is acyclic.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn_dags::{BayesianStructure, StructureConfig};
/// let env = BayesianStructure::new(StructureConfig { forbidden: vec![(0, 2)], ..StructureConfig::new(3) })?;
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![1]))?;
/// // Left: 1 -> 2, 2 -> 0, 2 -> 1 and the exit; 1 -> 0 would close a cycle.
/// let masks = env.masks(Direction::Forward, &states);
/// assert_eq!(masks.legal_slots(0).collect::<Vec<_>>(), [5, 6, 7, 9]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BayesianStructure {
    config: StructureConfig,
    layout: Layout,
    schema: GraphSchema,
    initial: DagStates,
    /// The targets that each node may get an edge to, as rows of bits.
    allowed: Vec<u64>,
    /// Parents that a node may have, where that is fewer than all others.
    max_parents: Option<usize>,
}

impl BayesianStructure {
    /// An environment of these nodes and this knowledge.
    ///
    /// # Errors
    /// [`Error::Config`] for no node or more than [`MAX_NODES`](super::MAX_NODES), and for knowledge that contradicts itself: required
    /// edges that form a cycle, are forbidden, or are more than a node may have.
    pub fn new(config: StructureConfig) -> Result<Self> {
        let initial = config.initial()?;
        let layout = initial.layout;
        let mut allowed = vec![0; layout.matrix()];
        for a in 0..layout.n {
            for b in (0..layout.n).filter(|&b| b != a) {
                allowed[a * layout.stride + b / 64] |= 1 << (b % 64);
            }
        }
        for &(a, b) in &config.forbidden {
            allowed[a as usize * layout.stride + b as usize / 64] &= !(1 << (b % 64));
        }
        let max_parents = config.max_parents.filter(|&most| most < layout.n.saturating_sub(1));
        let schema = GraphSchema::plain(GraphKind::Directed, layout.n);
        Ok(Self { config, layout, schema, initial, allowed, max_parents })
    }

    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &StructureConfig {
        &self.config
    }

    /// The number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.layout.n
    }

    /// What the graphs are made of, as [`GraphBatch`](gfn::graph::GraphBatch) wants to know it.
    #[must_use]
    pub fn schema(&self) -> &GraphSchema {
        &self.schema
    }

    /// The edge `(source, target)` that a slot adds or removes; `None` for the exit.
    #[must_use]
    pub fn edge_of(&self, slot: u32) -> Option<(usize, usize)> {
        let (slot, n) = (slot as usize, self.layout.n);
        (slot < n * n).then_some((slot / n, slot % n))
    }

    fn mark_forward(&self, words: &[u64], legal: &mut [bool]) {
        let layout = self.layout;
        let (children, ancestors) = (layout.children(words), layout.ancestors(words));
        // Nodes that have all the parents that they may have.
        let mut full = [0u64; super::NodeSet::WORDS];
        if let Some(most) = self.max_parents {
            (0..layout.n).for_each(|i| full[i / 64] |= u64::from(self.is_full(words, i, most)) << (i % 64));
        }
        let mut out = BoolWriter::new(legal);
        for k in 0..layout.matrix() {
            let column = k % layout.stride;
            let open = self.allowed[k] & !(children[k] | ancestors[k] | full[column]);
            out.push(open, (layout.n - 64 * column).min(64));
        }
        out.push(1, 1);
        out.finish();
    }

    fn mark_backward(&self, words: &[u64], legal: &mut [bool]) {
        let required = self.layout.children(self.initial.dag(0).words);
        let mut out = BoolWriter::new(legal);
        for (k, (row, required)) in self.layout.children(words).iter().zip(required).enumerate() {
            out.push(row & !required, (self.layout.n - 64 * (k % self.layout.stride)).min(64));
        }
        out.finish();
    }

    /// Takes one step if the graph and the knowledge permit it.
    fn apply(&self, direction: Direction, words: &mut [u64], slot: u32) -> Option<()> {
        let (a, b) = self.edge_of(slot)?;
        match direction {
            Direction::Forward if self.permits(words, a, b) && self.layout.can_add(words, a, b) => {
                self.layout.add(words, a, b);
            }
            Direction::Backward if !self.is_required(a, b) && self.layout.get(self.layout.children(words), a, b) => {
                self.layout.remove(words, a, b);
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether a graph may have an edge, as far as that isn't about cycles.
    fn permits(&self, words: &[u64], a: usize, b: usize) -> bool {
        self.layout.get(&self.allowed, a, b) && self.max_parents.is_none_or(|most| !self.is_full(words, b, most))
    }

    fn is_full(&self, words: &[u64], node: usize, most: usize) -> bool {
        let parents = self.layout.row(self.layout.parents(words), node);
        parents.iter().map(|word| word.count_ones() as usize).sum::<usize>() >= most
    }

    fn is_required(&self, a: usize, b: usize) -> bool {
        self.layout.get(self.layout.children(&self.initial.words), a, b)
    }

    fn is_start(&self, words: &[u64]) -> bool {
        self.layout.children(words) == self.layout.children(&self.initial.words)
    }

    fn check(&self, states: &DagStates, actions: usize) -> Result<()> {
        if (states.layout, states.len()) == (self.layout, actions) {
            return Ok(());
        }
        Err(Error::shape(
            "states",
            [actions as i64, self.layout.n as i64],
            [states.len() as i64, states.n_nodes() as i64],
            "give one action per state, and states of this environment",
        ))
    }

    fn illegal(&self, direction: Direction, states: &DagStates, row: usize, slot: u32) -> Error {
        let masks = self.masks(direction, &states.select(&[row]));
        Error::IllegalAction {
            row,
            direction,
            slot: slot as usize,
            n_slots: masks.row(0).len(),
            n_legal: masks.n_legal(0),
            detail: self.describe(direction, states, row, slot),
        }
    }
}

impl Env for BayesianStructure {
    type States = DagStates;
    type Actions = Slots;

    fn initial(&self, instances: &[u32]) -> DagStates {
        DagStates { layout: self.layout, words: self.initial.words.repeat(instances.len()) }
    }

    fn step(&self, direction: Direction, states: &mut DagStates, actions: &Slots) -> Result<Step<Slots>> {
        let n = actions.len();
        self.check(states, n)?;
        let forward = direction == Direction::Forward;
        let exit_slot = (self.layout.n * self.layout.n) as u32;
        let mut step = Step { reverse: actions.clone(), exit: vec![false; n], done: vec![false; n] };
        let mut illegal = None;
        for (i, (words, &slot)) in states.rows_mut().zip(&actions.0).enumerate() {
            if forward && slot == exit_slot {
                (step.exit[i], step.done[i], step.reverse.0[i]) = (true, true, 0);
            } else if self.apply(direction, words, slot).is_some() {
                step.done[i] = !forward && self.is_start(words);
            } else {
                illegal = Some((i, slot));
                break;
            }
        }
        match illegal {
            None => Ok(step),
            Some((row, slot)) => Err(self.illegal(direction, states, row, slot)),
        }
    }

    fn is_initial(&self, states: &DagStates) -> Vec<bool> {
        states.dags().map(|dag| self.is_start(dag.words)).collect()
    }

    fn exit_actions(&self, states: &DagStates) -> Option<Slots> {
        Some(Slots(vec![(self.layout.n * self.layout.n) as u32; states.len()]))
    }
}

impl DiscreteEnv for BayesianStructure {
    fn masks(&self, direction: Direction, states: &DagStates) -> Masks {
        let forward = direction == Direction::Forward;
        let width = self.layout.n * self.layout.n + usize::from(forward);
        let mut legal = vec![false; states.len() * width];
        for (dag, legal) in states.dags().zip(legal.chunks_exact_mut(width)) {
            match direction {
                Direction::Forward => self.mark_forward(dag.words, legal),
                Direction::Backward => self.mark_backward(dag.words, legal),
            }
        }
        Masks::of_rows(direction, states.len(), width, legal, forward)
    }

    fn describe(&self, direction: Direction, states: &DagStates, row: usize, slot: u32) -> String {
        if row >= states.len() {
            return format!("there is no state {row}");
        }
        let dag = states.dag(row);
        let verb = if direction == Direction::Forward { "add" } else { "remove" };
        match self.edge_of(slot) {
            None => format!("exit with {} edges", dag.n_edges()),
            Some((a, b)) => format!("{verb} edge {a} -> {b}, {}", self.circumstances(dag, (a, b))),
        }
    }
}

impl BayesianStructure {
    /// What a message should say of an edge.
    fn circumstances(&self, dag: Dag<'_>, (a, b): (usize, usize)) -> &'static str {
        match (dag.has_edge(a, b), dag.has_path(b, a) || a == b) {
            (true, _) if self.is_required(a, b) => "which is required and there",
            (true, _) => "which is there",
            (false, true) => "which would close a cycle",
            (false, false) if !self.layout.get(&self.allowed, a, b) => "which is forbidden",
            (false, false) if !self.permits(dag.words, a, b) => "into a node that has all the parents that it may have",
            (false, false) => "which isn't there",
        }
    }
}

impl EnumerableEnv for BayesianStructure {
    /// The adjacency matrix, row by row, a bit per entry.
    type Key = SmallVec<[u64; 2]>;

    fn keys(&self, states: &DagStates) -> Vec<Self::Key> {
        states.dags().map(|dag| key(&dag)).collect()
    }

    fn child_keys(&self, states: &DagStates, rows: &[usize], slots: &Slots) -> Result<Vec<Self::Key>> {
        let child = |(&row, &slot): (&usize, &u32)| {
            let mut key = key(&states.dag(row));
            if self.edge_of(slot).is_none() {
                return Err(self.illegal(Direction::Forward, states, row, slot));
            }
            // Slots are numbered like the entries of the matrix.
            key[slot as usize / 64] |= 1 << (slot % 64);
            Ok(key)
        };
        rows.iter().zip(&slots.0).map(child).collect()
    }
}

fn key(dag: &Dag<'_>) -> SmallVec<[u64; 2]> {
    let n = dag.n_nodes();
    let mut out = SmallVec::from_elem(0, (n * n).div_ceil(64));
    for (a, b) in dag.edges() {
        let bit = a as usize * n + b as usize;
        out[bit / 64] |= 1 << (bit % 64);
    }
    out
}
