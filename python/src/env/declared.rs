//! Graph environments that are declared in Python: their action types, the sizes and classes of their graphs,
//! and rules that are called with batches.

use std::sync::Arc;

use gfn::env::BatchRules;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Attributes, BackwardRule, BatchMove, GraphActionType, GraphEnv, GraphKind,
    GraphRules, GraphSchema, GraphState, GraphStates, MoveMask, Reverse, Scaffold, Semantics, SetEdgeAttr,
    SetNodeAttr,
};
use gfn::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::{Deserialize, Serialize};

use super::Failures;
use super::answers::{Answers, Question};
use super::rules::Rules;
use super::steps::SteppedByPython;
use crate::molecules::Reading;
use crate::references::Object;
use crate::states::{Graphs, whole};

/// The declaration of a graph environment, in the form that Python passes.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphDeclaration {
    actions: Vec<Action>,
    max_nodes: usize,
    directed: bool,
    node_classes: u16,
    edge_classes: u16,
    node_attributes: Vec<u8>,
    edge_attributes: Vec<u8>,
    /// The number of nodes of the initial graph, if no initial graph is given.
    initial: usize,
    /// The treatment of the initial graph's nodes: all different (`Distinct`), or the same if a symmetry maps
    /// them to each other (`Alike`). If the setting is missing, it is `Alike` if the nodes are equal and have
    /// no edges, otherwise `Distinct`.
    scaffold: Option<Nodes>,
    labelled: bool,
    corrects_symmetry: bool,
}

/// The treatment of the initial graph's nodes. With `Distinct` all nodes are different. With `Alike` two
/// nodes are the same if a symmetry of the initial graph maps them to each other.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
enum Nodes {
    Distinct,
    Alike,
}

/// The declaration of one action type.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Action {
    name: String,
    part: Part,
    /// `true` for the reverse of the action type: it removes the part of the graph instead of adding it, or
    /// clears the attribute instead of setting it.
    reversed: bool,
    #[serde(default)]
    attached: bool,
    #[serde(default)]
    max_edges: Option<usize>,
}

/// The part of a graph that an action type changes.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
enum Part {
    Node,
    Edge,
    NodeAttribute,
    EdgeAttribute,
}

impl Action {
    fn is(&self, part: Part, reversed: bool) -> bool {
        (self.part, self.reversed) == (part, reversed)
    }

    /// Returns `actions` with `action_type` added, or with its `Reverse` if `reversed` is `true`.
    fn add(&self, actions: ActionSet, action_type: impl GraphActionType + 'static) -> ActionSet {
        if self.reversed { actions.with(Reverse(action_type)) } else { actions.with(action_type) }
    }
}

impl GraphDeclaration {
    /// Builds the environment without the rules in Python. `has_rules` is `true` if the declaration has such
    /// rules.
    pub(super) fn build(&self, has_rules: bool, initial: Option<&[GraphState]>) -> Result<GraphEnv> {
        let semantics = if self.labelled { Semantics::Labelled } else { Semantics::UpToIsomorphism };
        let kind = if self.directed { GraphKind::Directed } else { GraphKind::Undirected };
        let none_given = || vec![GraphState::with_nodes(kind, self.initial.min(self.max_nodes + 1))];
        let starts = initial.map_or_else(none_given, <[GraphState]>::to_vec);
        if !has_rules {
            self.check_acyclic()?;
        }
        let actions = self.action_set(&starts, semantics)?;
        if self.actions.is_empty() {
            return Err(Error::config("actions", "none", "at least one type of action"));
        }
        let schema = GraphSchema {
            node_classes: self.node_classes.into(),
            edge_classes: self.edge_classes.into(),
            node_attributes: self.node_attributes.clone(),
            edge_attributes: self.edge_attributes.clone(),
            ..GraphSchema::plain(kind, self.max_nodes)
        };
        let Some(start) = starts.first().cloned() else {
            return Err(Error::config(
                "start",
                "empty",
                "at least one graph; each graph is the initial state of an instance",
            ));
        };
        let takes = self.actions.iter().all(|action| action.reversed);
        let left = Left(if takes { starts.clone() } else { Vec::new() });
        let mut env = GraphEnv::new(left, actions, start).and_then(|env| env.with_schema(schema))?;
        if starts.len() > 1 {
            env = env.with_instances(starts)?;
        }
        match self.scaffold {
            None => {}
            Some(Nodes::Distinct) => env = env.with_scaffold(Scaffold::ToldApart)?,
            Some(Nodes::Alike) => env = env.with_scaffold(Scaffold::Alike)?,
        }
        Ok(env.with_symmetry_correction(self.corrects_symmetry))
    }

    fn action_set(&self, starts: &[GraphState], semantics: Semantics) -> Result<ActionSet> {
        let node_classes = self.node_classes;
        let edge_classes = self.edge_classes;
        let adds_edges = self.actions.iter().any(|action| action.is(Part::Edge, false));
        let grown = self.actions.iter().any(|action| action.is(Part::Node, false) && action.attached);
        if adds_edges && grown && (self.directed || !starts.iter().all(is_connected)) {
            let got = "AddNode(attached=True) and AddEdge, with directed graphs or with a start that isn't \
                connected";
            let expected = "undirected graphs and a connected start, so that backward moves can keep graphs \
                connected; otherwise use AddNode(attached=False), and rules that forbid graphs that aren't \
                connected";
            return Err(Error::config("actions", got, expected));
        }
        let mut actions = ActionSet::new(semantics);
        for action in &self.actions {
            actions = match action.part {
                Part::Node if action.attached => {
                    if !action.reversed {
                        actions = actions.with(AddNode::first(node_classes));
                    }
                    action.add(actions, AddNode::attached(node_classes, edge_classes, self.max_nodes))
                }
                Part::Node => action.add(actions, AddNode::free(node_classes, self.max_nodes)),
                Part::Edge => action.add(actions, self.edges(action, grown && !action.reversed)?),
                Part::NodeAttribute => action.add(actions, SetNodeAttr::new(&self.node_attributes)?),
                Part::EdgeAttribute => action.add(actions, SetEdgeAttr::new(&self.edge_attributes)?),
            };
        }
        Ok(actions)
    }

    /// Returns the action type that adds edges. `grown` is `true` if each new node is added with an edge. In
    /// this case graphs are connected, no backward move may cut a graph in two, and `max_edges` is an error.
    fn edges(&self, action: &Action, grown: bool) -> Result<AddEdge> {
        let edge = AddEdge::new(self.edge_classes);
        match action.max_edges {
            Some(most) if grown => {
                let expected = "None if AddNode(attached=True) is an action, because max_edges doesn't count \
                    the edges of new nodes: limit edges by rules";
                Err(Error::config("max_edges", most, expected))
            }
            Some(most) => Ok(edge.at_most(most)),
            None if grown => Ok(edge.keeping_connected()),
            None => Ok(edge),
        }
    }

    /// Returns an error if an action type and its reverse are both declared. This check is for environments
    /// without rules in Python, whose states would then form cycles.
    fn check_acyclic(&self) -> Result<()> {
        for action in &self.actions {
            if let Some(other) = self.actions.iter().find(|other| other.is(action.part, !action.reversed)) {
                let got = format!("{} and {}", action.name, other.name);
                let expected = "only one of the two, because each undoes the other, so that a trajectory \
                    could return to an earlier state; otherwise give rules that prevent that";
                return Err(Error::config("actions", got, expected));
            }
        }
        Ok(())
    }
}

/// The initial graph of each instance, if all moves remove parts of the graph or clear attributes. The list
/// is empty if a move adds a part or sets an attribute.
struct Left(Vec<GraphState>);

impl GraphRules for Left {
    /// Returns `true` if all parts of the graph are parts of its initial graph, or if the list of initial
    /// graphs is empty. If forward moves remove parts, backward moves add parts. Without this check they
    /// would also add parts that the initial graph doesn't have.
    fn is_reachable(&self, graph: &GraphState) -> bool {
        self.0.is_empty() || self.0.get(graph.instance() as usize).is_some_and(|start| is_part(graph, start))
    }
}

/// Returns `true` if `whole` has all nodes, edges and attributes of `graph`, under the same node labels.
fn is_part(graph: &GraphState, whole: &GraphState) -> bool {
    let keeps = |now: Attributes, then: Attributes| {
        now.values().iter().zip(then.values()).all(|(now, then)| *now == 0 || now == then)
    };
    let mut nodes = graph.nodes().zip(whole.nodes());
    graph.n_nodes() <= whole.n_nodes()
        && nodes.all(|(now, then)| now.class == then.class && keeps(now.attributes, then.attributes))
        && graph.edges().all(|(a, b)| {
            let both = graph.edge(a, b).zip(whole.edge(a, b));
            both.is_some_and(|(now, then)| now.class == then.class && keeps(now.attributes, then.attributes))
        })
}

/// Returns `true` if the graph is connected.
fn is_connected(graph: &GraphState) -> bool {
    let n = graph.n_nodes() as u32;
    let mut part: Vec<u32> = (0..n.min(1)).collect();
    let mut next = 0;
    while let Some(&a) = part.get(next) {
        next += 1;
        let others = (0..n).filter(|&b| graph.has_edge(a, b) || graph.has_edge(b, a));
        let new: Vec<u32> = others.filter(|b| !part.contains(b)).collect();
        part.extend(new);
    }
    part.len() == n as usize
}

/// Returns the environment `env` with only the moves that the rules in Python allow.
pub(super) fn restrict_by_rules(
    env: GraphEnv,
    object: Object,
    failures: &Failures,
    reading: Option<Reading>,
) -> GraphEnv {
    let names = env.move_types();
    let rules = Rules { object: Some(object), failures: failures.clone() };
    let restrict = |base| PyRules { base, rules, names, reading, answers: Answers::default() };
    // The backward masks of the action types ignore the rules in Python. So backward moves are derived from
    // forward moves.
    env.with_rules(restrict).with_backward(BackwardRule::Derived)
}

/// Rules in Python that restrict an environment's moves, in addition to the rules `base`. The answers of the
/// rules in Python are cached by graph, so that the rules are called only once for a graph and a move, unless
/// the cache was cleared.
struct PyRules {
    base: Arc<dyn GraphRules>,
    rules: Rules,
    names: Vec<String>,
    /// The conversion of graphs to molecules. If this conversion is set, the graphs that the rules in Python
    /// get have SMILES.
    reading: Option<Reading>,
    answers: Answers,
}

impl PyRules {
    fn ask_graphs(&self, method: &str, question: Question, states: &GraphStates) -> Vec<bool> {
        let questions: Vec<_> = states.graphs().iter().map(|graph| (graph, question)).collect();
        self.answers.to(&questions, |graphs, new| {
            self.rules.try_ask(method, new.len(), |function| {
                let graphs = Bound::new(function.py(), Graphs::new(graphs.clone(), self.reading.clone()))?;
                function.call1((graphs,))
            })
        })
    }

    /// Converts moves to an object of the Python class `gfn_rs.Moves`.
    fn moves<'py>(&self, py: Python<'py>, moves: &[BatchMove]) -> PyResult<Bound<'py, PyAny>> {
        let column = |of: fn(&BatchMove) -> usize| whole(moves.iter().map(of));
        let columns = (
            column(|each| each.row),
            py.None(),
            column(|each| each.kind.0),
            column(|each| each.action.a as usize),
            column(|each| each.action.b as usize),
            column(|each| each.action.class as usize),
            PyTuple::new(py, &self.names)?,
        );
        py.import("gfn_rs._steps")?.getattr("Moves")?.call1(columns)
    }
}

impl BatchRules<GraphStates, BatchMove> for PyRules {
    fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
        let question = |m: &BatchMove| (&states.graphs()[m.row], Question::Move(m.kind, m.action));
        let questions: Vec<_> = moves.iter().map(question).collect();
        self.answers.to(&questions, |graphs, new| {
            let new: Vec<BatchMove> = new
                .iter()
                .filter_map(|&(row, question)| match question {
                    Question::Move(kind, action) => Some(BatchMove { row, kind, action }),
                    Question::Exit | Question::Reachable => None,
                })
                .collect();
            self.rules.try_ask("restrict", new.len(), |function| {
                let py = function.py();
                let graphs = Bound::new(py, Graphs::new(graphs.clone(), self.reading.clone()))?;
                function.call1((graphs, self.moves(py, &new)?))
            })
        })
    }

    fn can_end(&self, states: &GraphStates) -> Vec<bool> {
        self.ask_graphs("can_exit", Question::Exit, states)
    }

    fn is_reachable(&self, states: &GraphStates) -> Vec<bool> {
        self.ask_graphs("is_reachable", Question::Reachable, states)
    }
}

impl GraphRules for PyRules {
    fn name(&self, graph: &GraphState) -> Option<String> {
        self.base.name(graph)
    }
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        self.base.restrict(graph, moves);
    }
    fn restrict_backward(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        self.base.restrict_backward(graph, moves);
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        self.base.can_exit(graph)
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        self.base.is_reachable(graph)
    }
    fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
        Some(self)
    }
    fn log_automorphisms(&self, graph: &GraphState, n_fixed: usize) -> Result<f64> {
        self.base.log_automorphisms(graph, n_fixed)
    }
    fn log_multiplicity(&self, graph: &GraphState) -> Result<f64> {
        self.base.log_multiplicity(graph)
    }
    fn forms(&self, graph: &GraphState) -> Result<Option<Vec<GraphState>>> {
        self.base.forms(graph)
    }
}
