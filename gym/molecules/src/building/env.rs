use std::collections::VecDeque;

use gfn::Result;
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphKind, GraphSchema, GraphState, Semantics,
    SetEdgeAttr, SetNodeAttr,
};

use super::action::Guarded;
use super::{MoleculeCodec, MoleculeConfig};

/// Molecules that grow atom by atom, up to isomorphism.
///
/// *States.* Connected undirected graphs of heavy atoms and bonds, each a Kekule form of a valid molecule; hydrogens are what fills
/// the valences up. [`MoleculeCodec`] reads them.
/// *Actions.* A first atom; an atom joined to one that is there by a single bond; a single bond that closes a ring; a charge (and,
/// if allowed, a higher valence) of an atom; a bond made double or triple. Each attribute is set once, and any state but the empty
/// one can be finished.
/// *Limits.* Atoms, rings, and ring sizes: the rings of a smallest set have at most `max_ring_size` atoms.
///
/// The masks are exact both ways: what they let exit is a valid molecule, and a molecule within the limits can be built in
/// any order of its atoms. (recursionpharma/gflownet lets a bond of a ring be taken away with its order, though no
/// action brings both back; its molecules are checked by RDKit when they are finished.)
///
/// A molecule with several Kekule forms is several states: [`MoleculeReward`](crate::MoleculeReward) divides its reward
/// between them.
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::Sampler, Rng};
/// use gfn_molecules::{Molecule, MoleculeConfig, MoleculeEnv};
/// let env = MoleculeEnv::new(MoleculeConfig::new(9))?;
/// let samples = Sampler::new(&env, &UniformPolicy).forward(16, &mut Rng::seeded(0))?;
/// for graph in samples.terminal_states().graphs() {
///     let molecule = env.codec().molecule(graph)?;
///     assert_eq!(Molecule::from_smiles(&molecule.smiles())?.key(), molecule.key());
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct MoleculeEnv {
    codec: MoleculeCodec,
    actions: ActionSet,
    schema: GraphSchema,
    initial: GraphState,
    kinds: Kinds,
}

/// The places of the action types.
#[derive(Debug)]
struct Kinds {
    attach: Option<ActionKind>,
    close: Option<ActionKind>,
    node_attr: Option<ActionKind>,
    edge_attr: Option<ActionKind>,
}

impl MoleculeEnv {
    /// An environment of this make.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) for settings that make no sense: no atom, no element, an element or a charge without
    /// a valence, rings of fewer than three atoms.
    pub fn new(config: MoleculeConfig) -> Result<Self> {
        config.check()?;
        let codec = MoleculeCodec::new(config);
        let rules = codec.rules();
        let config = &rules.config;
        let classes = config.elements.len() as u16;
        let mut actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::first(classes));
        let mut kinds = Kinds { attach: None, close: None, node_attr: None, edge_attr: None };
        // The place of the type that is added next, before the exit.
        let next = |actions: &ActionSet| Some(ActionKind(actions.types().len() - 1));
        if config.max_atoms > 1 {
            kinds.attach = next(&actions);
            actions = actions.with(AddNode::attached(classes, 1, config.max_atoms));
        }
        if config.max_atoms > 2 && config.max_rings != Some(0) {
            kinds.close = next(&actions);
            let inner = AddEdge::new(1).keeping_connected();
            actions = match config.max_ring_size {
                None => actions.with(inner),
                Some(_) => actions.with(Guarded { inner, codec: codec.clone(), keeps: keeps_small_rings }),
            };
        }
        let node_attributes = rules.node_attributes();
        if !node_attributes.is_empty() {
            kinds.node_attr = next(&actions);
            let inner = SetNodeAttr::new(&node_attributes)?;
            actions = actions.with(Guarded { inner, codec: codec.clone(), keeps: keeps_valence });
        }
        let orders = config.max_order.value() - 1;
        let edge_attributes = if config.max_atoms > 1 && orders > 0 { vec![orders] } else { Vec::new() };
        if !edge_attributes.is_empty() {
            kinds.edge_attr = next(&actions);
            actions = actions.with(SetEdgeAttr::new(&edge_attributes)?);
        }
        let schema = GraphSchema {
            node_classes: usize::from(classes),
            node_attributes,
            edge_attributes,
            ..GraphSchema::plain(GraphKind::Undirected, config.max_atoms)
        };
        Ok(Self { actions, schema, initial: GraphState::new(GraphKind::Undirected), kinds, codec })
    }

    /// Reads states as molecules and writes molecules as states.
    #[must_use]
    pub fn codec(&self) -> &MoleculeCodec {
        &self.codec
    }

    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &MoleculeConfig {
        self.codec.config()
    }

    /// Takes away bonds that an atom has no room for, or that close one ring too many or too large a one.
    fn restrict_closing(&self, graph: &GraphState, mask: &mut [bool]) {
        let (rules, n) = (self.codec.rules(), graph.n_nodes());
        if rules.config.max_rings.is_some_and(|most| graph.n_edges() + 1 >= n + most) {
            mask.fill(false);
            return;
        }
        let room: Vec<bool> = rules.atoms(graph).into_iter().map(|atom| rules.has_room(atom, 1)).collect();
        for a in 0..n {
            let row = &mut mask[a * n..(a + 1) * n];
            if !room[a] {
                row.fill(false);
                continue;
            }
            let near = match rules.config.max_ring_size {
                Some(size) if row.contains(&true) => Some(within(graph, a, size - 1)),
                _ => None,
            };
            for (b, legal) in row.iter_mut().enumerate() {
                *legal &= room[b] && near.as_ref().is_none_or(|near| near[b]);
            }
        }
    }
}

/// Which nodes are at most `steps` edges away.
fn within(graph: &GraphState, from: usize, steps: usize) -> Vec<bool> {
    let mut near = vec![false; graph.n_nodes()];
    near[from] = true;
    let mut open = VecDeque::from([(from, 0)]);
    while let Some((a, distance)) = open.pop_front() {
        for b in graph.adjacency().ones(a) {
            if distance < steps && !std::mem::replace(&mut near[b], true) {
                open.push_back((b, distance + 1));
            }
        }
    }
    near
}

/// Without the bond, the rings are small still.
fn keeps_small_rings(codec: &MoleculeCodec, graph: &GraphState, action: gfn::graph::Move) -> bool {
    let size = codec.config().max_ring_size;
    size.is_none_or(|size| super::small_rings::small_rings_span(graph, size, Some((action.a, action.b))))
}

/// Without the charge, the atom has no more bonds than it can have.
fn keeps_valence(codec: &MoleculeCodec, graph: &GraphState, action: gfn::graph::Move) -> bool {
    let rules = codec.rules();
    rules.atoms(graph).get(action.a as usize).is_some_and(|atom| rules.permits(*atom, action.class as usize, 0))
}

impl GraphEnv for MoleculeEnv {
    fn actions(&self) -> &ActionSet {
        &self.actions
    }
    fn schema(&self) -> &GraphSchema {
        &self.schema
    }
    fn initial_graph(&self) -> &GraphState {
        &self.initial
    }
    fn restrict(&self, kind: ActionKind, graph: &GraphState, mask: &mut [bool]) {
        let rules = self.codec.rules();
        if Some(kind) == self.kinds.attach {
            let classes = rules.config.elements.len();
            for (row, atom) in mask.chunks_exact_mut(classes).zip(rules.atoms(graph)) {
                let room = rules.has_room(atom, 1);
                row.iter_mut().enumerate().for_each(|(class, legal)| *legal &= room && rules.attaches(class));
            }
        } else if Some(kind) == self.kinds.close {
            self.restrict_closing(graph, mask);
        } else if Some(kind) == self.kinds.node_attr {
            let values = &self.schema.node_attributes;
            let columns: Vec<(usize, usize)> = values
                .iter()
                .enumerate()
                .flat_map(|(place, &most)| (1..=usize::from(most)).map(move |value| (place, value)))
                .collect();
            for (row, atom) in mask.chunks_exact_mut(columns.len()).zip(rules.atoms(graph)) {
                let permitted = columns.iter().map(|&(place, value)| rules.permits(atom, place, value));
                row.iter_mut().zip(permitted).for_each(|(legal, permitted)| *legal &= permitted);
            }
        } else if Some(kind) == self.kinds.edge_attr {
            let atoms = rules.atoms(graph);
            let width = usize::from(rules.config.max_order.value()) - 1;
            for (row, (a, b)) in mask.chunks_exact_mut(width).zip(graph.edges()) {
                for (more, legal) in (1..).zip(row) {
                    *legal &= [a, b].into_iter().all(|end| rules.has_room(atoms[end as usize], more));
                }
            }
        }
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() > 0
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        let rules = self.codec.rules();
        let connected = graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) <= 1);
        connected
            && rules.atoms(graph).into_iter().all(|atom| rules.valence(atom).is_some())
            && rules.rings_within(graph)
    }
    fn backward_rule(&self) -> BackwardRule {
        BackwardRule::ByType
    }
    fn corrects_symmetry(&self) -> bool {
        self.config().corrects_symmetry
    }
}
