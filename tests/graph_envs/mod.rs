//! Graph environments of given parts, for tests that need no more than action types, a schema and a rule or two.

use gfn::graph::{ActionKind, ActionSet, BackwardRule, GraphEnv, GraphSchema, GraphState};

type Restrict = Box<dyn Fn(ActionKind, &GraphState, &mut [bool]) + Send + Sync>;
type Reachable = Box<dyn Fn(&GraphState) -> bool + Send + Sync>;

/// An environment of these parts, which forbids nothing, reaches everything and derives its backward masks unless told otherwise.
pub(crate) struct Given {
    pub(crate) actions: ActionSet,
    pub(crate) schema: GraphSchema,
    pub(crate) initial: GraphState,
    pub(crate) rule: BackwardRule,
    pub(crate) restrict: Restrict,
    pub(crate) reachable: Reachable,
}

impl Given {
    pub(crate) fn new(actions: ActionSet, schema: GraphSchema, initial: GraphState) -> Self {
        let rule = BackwardRule::Derived;
        Self { actions, schema, initial, rule, restrict: Box::new(|_, _, _| {}), reachable: Box::new(|_| true) }
    }

    pub(crate) fn with_rule(self, rule: BackwardRule) -> Self {
        Self { rule, ..self }
    }

    /// With forward slots taken away.
    pub(crate) fn restricted(self, by: impl Fn(ActionKind, &GraphState, &mut [bool]) + Send + Sync + 'static) -> Self {
        Self { restrict: Box::new(by), ..self }
    }

    /// With graphs that can't be.
    pub(crate) fn reaching(self, only: impl Fn(&GraphState) -> bool + Send + Sync + 'static) -> Self {
        Self { reachable: Box::new(only), ..self }
    }
}

impl GraphEnv for Given {
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
        (self.restrict)(kind, graph, mask);
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        (self.reachable)(graph)
    }
    fn backward_rule(&self) -> BackwardRule {
        self.rule
    }
}
