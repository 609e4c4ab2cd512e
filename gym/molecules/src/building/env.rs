use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphRules, GraphState, MoveMask, Semantics,
    SetEdgeAttr, SetNodeAttr,
};
use gfn::{Error, Result};

use super::scaffold::Fixed;
use super::signs::{MarkedState, SetSign};
use super::{MoleculeCodec, MoleculeConfig};
use crate::molecule::small_rings_span;
use crate::{BondOrder, Molecule};

/// An environment of molecules that grow atom by atom, up to isomorphism.
///
/// *States.* A state is a connected undirected graph of heavy atoms and bonds: a Kekule form of a valid
/// molecule. Hydrogens aren't nodes: each atom has as many as its valence leaves room for.
/// [`MoleculeCodec`] converts states into molecules and back.
/// *Actions.* An action adds the first atom, attaches a new atom to another by a single bond, closes a ring
/// by a single bond, sets the charge (or, if allowed, a higher valence) of an atom, or makes a bond double
/// or triple. Each attribute is set once. Every state but the empty graph can be finished.
/// *Limits.* The configuration limits the numbers of atoms and rings, and the sizes of rings: the molecule
/// must have a smallest set of rings in which each ring has at most `max_ring_size` atoms.
///
/// The masks are exact in both directions. Every finished state is a valid molecule, and every molecule
/// within the limits can be built in any order of its atoms. (The library recursionpharma/gflownet allows
/// backward steps that no forward action reverses: a ring bond can be removed together with its order. It
/// checks finished molecules with RDKit.)
///
/// *Stereochemistry* is optional ([`MoleculeConfig::stereo`]). Without it, a molecule represents all of its
/// stereoisomers. With it, a molecule can only be finished after each of its stereo elements (centres and
/// double bonds) has a sign. Signs are set last, one by one and in any order, and a molecule with a sign
/// can't grow. Neighbours of a stereo element can therefore not become equal after its sign is set, which
/// would make the sign meaningless. Each finished state is one stereoisomer. A sign is stored as a few
/// nodes of the state. The nodes are joined so that the symmetries of the graph are the symmetries of the
/// stereoisomer, which makes |Aut| and the comparison of states exact. Stereoisomers that are impossible
/// for lack of space (in, out isomers of small bicycles) are built, too.
///
/// *Kekule forms.* A molecule with several Kekule forms (o-xylene has two) is several states. The
/// environment's measure over states ([`Symmetry::log_multiplicity`](gfn::env::Symmetry::log_multiplicity))
/// gives each form an equal share of the molecule's reward, for any reward function, so molecules are sampled
/// in proportion to their reward.
///
/// *Scaffolds.* With [`MoleculeConfig::scaffold`], growth starts from a molecule, at its stems (the atoms
/// that may get new bonds). An object is then a decoration of the scaffold: a molecule that contains the
/// scaffold in several places is several objects. Two decorations are equal if a symmetry of the scaffold
/// maps one to the other. This comparison doesn't distinguish single from double bonds in aromatic rings of
/// the scaffold. With a scaffold, the codec can't convert molecules into states.
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::Sampler, Rng};
/// use gfn_molecules::{Molecule, MoleculeConfig, MoleculeEnv};
/// let molecules = MoleculeEnv::new(MoleculeConfig::new(9))?;
/// let samples = Sampler::new(molecules.env(), &UniformPolicy).forward(16, &mut Rng::seeded(0))?;
/// for graph in samples.terminal_states().graphs() {
///     let molecule = molecules.codec().molecule(graph)?;
///     assert_eq!(Molecule::from_smiles(&molecule.smiles())?.key(), molecule.key());
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MoleculeEnv {
    env: GraphEnv,
    codec: MoleculeCodec,
}

/// The rules that restrict the graph environment to molecules: valences, rings and signs of stereo
/// elements.
struct Chemistry {
    codec: MoleculeCodec,
    /// The chemical meaning of each action type, in the order of the environment's action types.
    roles: Vec<Role>,
}

/// The chemical meaning of an action type.
#[derive(Clone, Copy)]
enum Role {
    First,
    Attach,
    Close,
    NodeAttribute,
    BondOrder,
    Sign,
}

impl MoleculeEnv {
    /// Creates the environment that a configuration describes.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) for invalid settings: no atom, no element, an element or a
    /// charge that is listed twice or has no valence, a charge of an element that isn't listed, rings of
    /// fewer than three atoms, a scaffold beyond the limits, or a scaffold together with stereochemistry.
    pub fn new(config: MoleculeConfig) -> Result<Self> {
        config.check()?;
        let codec = MoleculeCodec::new(config);
        let rules = codec.rules();
        let config = &rules.config;
        let classes = config.elements.len() as u16;
        let scaffold = rules.scaffold.as_ref();
        let start = scaffold.map_or_else(|| Ok(GraphState::undirected(0)), Fixed::graph)?;
        if !rules.rings_within(&start) {
            let got =
                format!("a molecule with a ring of more than {} atoms", config.max_ring_size.unwrap_or(0));
            return Err(Error::config(
                "scaffold",
                got,
                "a scaffold whose rings have at most `max_ring_size` atoms",
            ));
        }
        let mut actions = ActionSet::new(Semantics::UpToIsomorphism);
        let mut roles = Vec::new();
        if scaffold.is_none() {
            roles.push(Role::First);
            actions = actions.with(AddNode::first(classes));
        }
        if config.max_atoms > 1 {
            roles.push(Role::Attach);
            actions = actions.with(AddNode::attached(classes, 1, config.max_atoms));
        }
        if config.max_atoms > 2 && config.max_rings != Some(0) {
            roles.push(Role::Close);
            actions = actions.with(AddEdge::new(1).keeping_connected());
        }
        let node_attributes = rules.node_attributes();
        if !node_attributes.is_empty() {
            roles.push(Role::NodeAttribute);
            actions = actions.with(SetNodeAttr::new(&node_attributes)?);
        }
        if config.max_atoms > 1 && config.max_order > BondOrder::Single {
            roles.push(Role::BondOrder);
            actions = actions.with(SetEdgeAttr::new(&[config.max_order.value() - 1])?);
        }
        if config.stereo {
            for of_bonds in [false, true] {
                roles.push(Role::Sign);
                actions = actions.with(SetSign { codec: codec.clone(), of_bonds });
            }
        }
        let corrects_symmetry = config.corrects_symmetry;
        let treatment = scaffold.map(|_| config.scaffold_atoms);
        let mut env = GraphEnv::new(Chemistry { roles, codec: codec.clone() }, actions, start)?;
        if let Some(treatment) = treatment {
            env = env.with_scaffold(treatment)?;
        }
        let env = env.with_backward(BackwardRule::ByType).with_symmetry_correction(corrects_symmetry);
        Ok(Self { env, codec })
    }

    /// Returns a reference to the graph environment, which trainers and samplers take.
    #[must_use]
    pub fn env(&self) -> &GraphEnv {
        &self.env
    }

    /// Returns the graph environment by value.
    #[must_use]
    pub fn into_env(self) -> GraphEnv {
        self.env
    }

    /// Returns the codec, which converts states into molecules and molecules into states.
    #[must_use]
    pub fn codec(&self) -> &MoleculeCodec {
        &self.codec
    }

    /// Returns the configuration that the environment was created from.
    #[must_use]
    pub fn config(&self) -> &MoleculeConfig {
        self.codec.config()
    }
}

impl Chemistry {
    /// Returns the molecule of a state, including its signs of stereo elements. The Kekule forms of this
    /// molecule are the states that represent the same object as the given state.
    fn with_forms(&self, graph: &GraphState) -> Result<Molecule> {
        let rules = self.codec.rules();
        match &rules.scaffold {
            Some(scaffold) => scaffold.molecule_with_marks(rules, graph),
            None => Ok(self.codec.marked_state(graph)?.molecule),
        }
    }

    /// Returns `true` if an atom is part of the scaffold.
    fn is_fixed(&self, atom: u32) -> bool {
        self.codec.rules().scaffold.as_ref().is_some_and(|scaffold| scaffold.has(atom))
    }

    /// Returns the role of the action type whose moves are in `moves`. Returns `None` if the caller has
    /// nothing to restrict: for moves that set signs of stereo elements, and for all other moves of a state
    /// that has a sign, because this function itself forbids them.
    fn role(&self, graph: &GraphState, moves: &mut MoveMask<'_>) -> Option<Role> {
        let role = self.roles.get(moves.kind().0).copied().filter(|role| !matches!(role, Role::Sign))?;
        if self.codec.rules().is_marked(graph) {
            moves.forbid_all();
            return None;
        }
        Some(role)
    }

    /// Returns one flag per atom: `true` if the atom has room for another single bond.
    fn room(&self, graph: &GraphState) -> Vec<bool> {
        let rules = self.codec.rules();
        rules.atoms(graph).into_iter().map(|atom| rules.has_room(atom, 1)).collect()
    }

    /// Forbids moves that close a ring at an atom without room for another bond, and moves that make too
    /// many rings or a ring that is too large.
    fn restrict_closing(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        let rules = self.codec.rules();
        let n = graph.n_nodes();
        if let Some(scaffold) = rules.scaffold.as_ref().filter(|_| moves.any()) {
            let branch = scaffold.branches(graph);
            moves.retain(|action| {
                let a = branch[action.a as usize];
                let b = branch[action.b as usize];
                a.is_some() && a == b
            });
        }
        if rules.config.max_rings.is_some_and(|most| graph.n_edges() + 1 >= n + most) {
            moves.forbid_all();
            return;
        }
        let room = self.room(graph);
        // A cache with the first atom of the latest move, and one flag per atom: `true` if a bond from the
        // first atom to this atom would close a ring within the size limit. Consecutive moves with the same
        // first atom share these flags.
        let mut near: Option<(u32, Vec<bool>)> = None;
        moves.retain(|action| {
            let a = action.a as usize;
            let b = action.b as usize;
            let Some(size) = rules.config.max_ring_size.filter(|_| room[a] && room[b]) else {
                return room[a] && room[b];
            };
            if near.as_ref().is_none_or(|(of, _)| *of != action.a) {
                near = Some((action.a, within(graph, a, size - 1)));
            }
            near.as_ref().is_some_and(|(_, near)| near[b])
        });
    }
}

/// Returns one flag per node: `true` if the node is at most `steps` edges away from the node `from`.
fn within(graph: &GraphState, from: usize, steps: usize) -> Vec<bool> {
    let mut near = vec![false; graph.n_nodes()];
    near[from] = true;
    let mut outer = vec![from];
    for _ in 0..steps {
        let beyond = outer.iter().flat_map(|&a| graph.adjacency().neighbours(a));
        outer = beyond.filter(|&b| !std::mem::replace(&mut near[b], true)).collect();
    }
    near
}

/// Returns `false` if the graph has no ring or fewer than two double bonds. Such a molecule has only one
/// Kekule form.
fn may_have_other_forms(graph: &GraphState) -> bool {
    let bonds = graph.as_undirected().map_or(&[][..], |graph| graph.raw_edges());
    graph.n_nodes() > 0
        && bonds.len() >= graph.n_nodes()
        && bonds.iter().filter(|bond| bond.weight.attributes.get(0) == 1).count() >= 2
}

fn too_many(molecule: &Molecule) -> Error {
    let expected = "a molecule with at most 65,536 placements of the double bonds of its rings that can be \
        found within the limit of the search (keep molecules small by `max_atoms` and `max_rings`)";
    Error::config("a molecule among whose Kekule forms its reward is divided", molecule.smiles(), expected)
}

impl GraphRules for Chemistry {
    fn name(&self, graph: &GraphState) -> Option<String> {
        Some(self.codec.molecule(graph).ok()?.smiles())
    }

    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        let rules = self.codec.rules();
        match self.role(graph, moves) {
            None | Some(Role::First | Role::Sign) => {}
            Some(Role::Attach) => {
                let room = self.room(graph);
                moves.retain(|action| room[action.a as usize] && rules.attaches(action.class as usize));
            }
            Some(Role::Close) => self.restrict_closing(graph, moves),
            Some(Role::NodeAttribute) => {
                let mut columns: Vec<(usize, usize)> = Vec::new();
                for (place, most) in rules.node_attributes().into_iter().enumerate() {
                    columns.extend((1..=usize::from(most)).map(|value| (place, value)));
                }
                let atoms = rules.atoms(graph);
                moves.retain(|action| {
                    let (place, value) = columns[action.class as usize];
                    rules.permits(atoms[action.a as usize], place, value)
                });
            }
            Some(Role::BondOrder) => {
                let atoms = rules.atoms(graph);
                moves.retain(|action| {
                    let ends = [action.a, action.b];
                    let has_room = |&end: &u32| rules.has_room(atoms[end as usize], action.class as u8 + 1);
                    !ends.iter().all(|&end| self.is_fixed(end)) && ends.iter().all(has_room)
                });
            }
        }
    }
    fn restrict_backward(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        let rules = self.codec.rules();
        let Some(role) = self.role(graph, moves) else { return };
        if rules.scaffold.is_some() && moves.any() {
            // Backward moves must not remove parts of the scaffold. (A move that concerns a single atom has
            // this atom as both `a` and `b`.)
            moves.retain(|action| !(self.is_fixed(action.a) && self.is_fixed(action.b)));
        }
        match (role, rules.config.max_ring_size) {
            // The remaining rings must be within the size limit after the bond is removed.
            (Role::Close, Some(size)) => {
                moves.retain(|action| small_rings_span(graph, size, Some((action.a, action.b))));
            }
            // The atom must still have room for its bonds after its charge or its higher valence is removed.
            (Role::NodeAttribute, _) if moves.any() => {
                let atoms = rules.atoms(graph);
                moves.retain(|action| rules.permits(atoms[action.a as usize], action.class as usize, 0));
            }
            _ => {}
        }
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        let complete =
            |state: MarkedState| state.molecule.stereo_elements().len() == state.molecule.marks().len();
        graph.n_nodes() > 0
            && (!self.codec.config().stereo || self.codec.marked_state(graph).is_ok_and(complete))
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        let rules = self.codec.rules();
        if rules.is_marked(graph) {
            let whole = |state: MarkedState| {
                state.n_nodes() == graph.n_nodes() && rules.rings_within(&graph.induced(&state.names))
            };
            return self.codec.marked_state(graph).is_ok_and(whole);
        }
        let connected = graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) <= 1);
        connected
            && rules.atoms(graph).into_iter().all(|atom| rules.valence(atom).is_some())
            && rules.rings_within(graph)
    }
    fn log_multiplicity(&self, graph: &GraphState) -> Result<f64> {
        if !may_have_other_forms(graph) {
            return Ok(0.0);
        }
        let molecule = self.with_forms(graph)?;
        let forms = molecule.n_kekule_forms().ok_or_else(|| too_many(&molecule))?;
        Ok((forms as f64).ln())
    }
    fn forms(&self, graph: &GraphState) -> Result<Option<Vec<GraphState>>> {
        if !may_have_other_forms(graph) {
            return Ok(None);
        }
        let molecule = self.with_forms(graph)?;
        let forms = molecule.kekule_forms().ok_or_else(|| too_many(&molecule))?;
        let of_form = |form| match &self.codec.rules().scaffold {
            None => self.codec.graph_as_marked(form),
            Some(scaffold) => scaffold.with_form(graph, form),
        };
        forms.iter().map(of_form).collect::<Result<_>>().map(Some)
    }
}
