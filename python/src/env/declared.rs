//! Graph environments that are declared in Python: action types, what graphs are made of, and rules that are asked about batches.

use gfn::env::BatchRules;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BatchMove, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState, GraphStates,
    Semantics, SetEdgeAttr, SetNodeAttr,
};
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;

use super::answers::{Answers, Question};
use super::asked::Rules;
use super::erased::any_graphs;
use super::{AnyGraphEnv, Failures};
use crate::kept::Object;
use crate::states::Graphs;

/// What a declared environment is made of.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    actions: Vec<Action>,
    max_nodes: usize,
    directed: bool,
    node_classes: u16,
    edge_classes: u16,
    node_attributes: Vec<u8>,
    edge_attributes: Vec<u8>,
    /// Nodes at the start, where no graph is given for it.
    initial: usize,
    labelled: bool,
    corrects_symmetry: bool,
}

/// An action type of the library's.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
enum Action {
    AddNode { attached: bool },
    AddEdge { max_edges: Option<usize> },
    SetNodeAttribute {},
    SetEdgeAttribute {},
}

impl Declared {
    /// The environment; `rules` is asked what is forbidden.
    pub(super) fn build(
        &self,
        rules: Option<Object>,
        initial: Option<GraphState>,
        failures: &Failures,
    ) -> Result<AnyGraphEnv> {
        let semantics = if self.labelled { Semantics::Labelled } else { Semantics::UpToIsomorphism };
        let kind = if self.directed { GraphKind::Directed } else { GraphKind::Undirected };
        let (node_classes, edge_classes) = (self.node_classes, self.edge_classes);
        let start = initial.unwrap_or_else(|| GraphState::with_nodes(kind, self.initial.min(self.max_nodes + 1)));
        let adds_edges = self.actions.iter().any(|action| matches!(action, Action::AddEdge { .. }));
        let grown = self.actions.iter().any(|action| matches!(action, Action::AddNode { attached: true }));
        if adds_edges && grown && (self.directed || !is_connected(&start)) {
            let got = "AddNode(attached=True) and AddEdge in directed graphs, or from a start of several parts";
            let expected = "undirected graphs that start connected, where no move back may cut a graph in two; else nodes that \
                            aren't attached, and rules";
            return Err(Error::config("actions", got, expected));
        }
        let mut actions = ActionSet::new(semantics);
        for action in &self.actions {
            actions = match action {
                Action::AddNode { attached: true } => {
                    let first = actions.with(AddNode::first(node_classes));
                    first.with(AddNode::attached(node_classes, edge_classes, self.max_nodes))
                }
                Action::AddNode { attached: false } => actions.with(AddNode::free(node_classes, self.max_nodes)),
                Action::AddEdge { max_edges: Some(most) } if grown => {
                    let expected = "None where nodes come with an edge, which it wouldn't count: limit edges by rules";
                    return Err(Error::config("max_edges", most, expected));
                }
                Action::AddEdge { max_edges } => {
                    let edge = AddEdge::new(edge_classes);
                    let edge = max_edges.map_or(edge, |most| edge.at_most(most));
                    // Where nodes come with an edge, no move back may cut a graph in two.
                    actions.with(if grown { edge.keeping_connected() } else { edge })
                }
                Action::SetNodeAttribute {} => actions.with(SetNodeAttr::new(&self.node_attributes)?),
                Action::SetEdgeAttribute {} => actions.with(SetEdgeAttr::new(&self.edge_attributes)?),
            };
        }
        if self.actions.is_empty() {
            return Err(Error::config("actions", "none", "at least one type of action"));
        }
        let schema = GraphSchema {
            node_classes: node_classes.into(),
            edge_classes: edge_classes.into(),
            node_attributes: self.node_attributes.clone(),
            edge_attributes: self.edge_attributes.clone(),
            ..GraphSchema::plain(kind, self.max_nodes)
        };
        let names = actions.types().map(|(_, action_type)| action_type.name().to_owned()).collect();
        let rules = Rules { object: rules, failures: failures.clone() };
        let rules = AskedRules { rules, names, answers: Answers::default() };
        let env = GraphEnv::new(rules, actions, start).and_then(|env| env.with_schema(schema))?;
        Ok(any_graphs(env.with_symmetry_correction(self.corrects_symmetry)))
    }
}

/// `true` if there is a way between any two nodes.
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

/// Rules in Python, asked once about each graph.
struct AskedRules {
    rules: Rules,
    names: Vec<String>,
    answers: Answers,
}

impl AskedRules {
    fn of_graphs(&self, method: &str, question: Question, states: &GraphStates) -> Vec<bool> {
        let questions: Vec<_> = states.graphs().iter().map(|graph| (graph, question)).collect();
        self.answers.to(&questions, |graphs, new| {
            self.rules.told(method, new.len(), |function| {
                let graphs = Bound::new(function.py(), Graphs::new(graphs.clone(), None))?;
                Ok(function.call1((graphs,))?.unbind())
            })
        })
    }

    /// `gfn_rs.Moves` of these.
    fn moves<'py>(&self, py: Python<'py>, moves: &[BatchMove]) -> PyResult<Bound<'py, PyAny>> {
        let column = |of: fn(&BatchMove) -> usize| {
            moves.iter().map(|each| of(each) as i64).collect::<Vec<_>>().into_pyarray(py).into_any()
        };
        let columns = (
            column(|each| each.row),
            py.None(),
            column(|each| each.kind.0),
            column(|each| each.action.a as usize),
            column(|each| each.action.b as usize),
            column(|each| each.action.class as usize),
            PyTuple::new(py, &self.names)?,
        );
        py.import("gfn_rs.steps")?.getattr("Moves")?.call1(columns)
    }
}

impl BatchRules<GraphStates, BatchMove> for AskedRules {
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
            self.rules.told("restrict", new.len(), |function| {
                let py = function.py();
                let graphs = Bound::new(py, Graphs::new(graphs.clone(), None))?;
                Ok(function.call1((graphs, self.moves(py, &new)?))?.unbind())
            })
        })
    }

    fn can_end(&self, states: &GraphStates) -> Vec<bool> {
        self.of_graphs("can_exit", Question::Exit, states)
    }

    fn is_reachable(&self, states: &GraphStates) -> Vec<bool> {
        self.of_graphs("is_reachable", Question::Reachable, states)
    }
}

impl GraphRules for AskedRules {
    fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
        self.rules.object.as_ref().map(|_| self as &dyn BatchRules<GraphStates, BatchMove>)
    }
}
