//! Graph environments as settings, and from settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rules::FREE;
use super::{BackwardRule, Free, GraphEnv, GraphSchema, Scaffold};
use crate::graph::action::LibraryType;
use crate::graph::{ActionSet, GraphState, GraphStates, Semantics};
use crate::{Error, Result};

/// The largest number of nodes in the schema of settings. An environment has a list of this length.
const MAX_NODES: usize = 1 << 20;
/// The largest number of nodes and edges of all initial graphs together in settings.
const MAX_SIZE: usize = 100_000;

/// The settings of a graph environment.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    semantics: Semantics,
    /// The action types except the exit.
    actions: Vec<ActionSettings>,
    /// The settings of the rules; null for custom rules without settings.
    rules: Value,
    schema: GraphSchema,
    initial_graphs: GraphStates,
    scaffold: Scaffold,
    backward: BackwardRule,
    corrects_symmetry: bool,
}

/// The name and the settings of an action type. The settings of a custom type may be null.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionSettings {
    name: String,
    settings: Value,
}

/// Returns the settings of an environment; null if its initial graphs are so large that they would be the
/// larger part of a checkpoint.
pub(super) fn settings(env: &GraphEnv) -> Value {
    if total_size(&env.initial) > MAX_SIZE {
        return Value::Null;
    }
    let types = env.actions.types().filter(|(_, action_type)| !action_type.is_exit());
    let actions = types.map(|(_, action_type)| ActionSettings {
        name: action_type.name().to_owned(),
        settings: action_type.settings(),
    });
    let settings = Settings {
        semantics: env.actions.semantics(),
        actions: actions.collect(),
        rules: env.rules.settings(),
        schema: env.schema.clone(),
        initial_graphs: env.initial.clone().into(),
        scaffold: env.scaffold(),
        backward: env.backward,
        corrects_symmetry: env.corrects_symmetry,
    };
    serde_json::to_value(settings).unwrap_or_default()
}

/// Returns the number of nodes and edges of all graphs together.
fn total_size(graphs: &[GraphState]) -> usize {
    graphs.iter().map(|graph| graph.n_nodes() + graph.n_edges()).sum()
}

/// Builds an action type from its settings, and adds it to a set.
///
/// # Errors
/// [`Error::Config`] for a custom type, for settings that can't be read, and for the settings of a type with
/// another name.
fn add_type(actions: ActionSet, saved: ActionSettings) -> Result<ActionSet> {
    const EXPECTED: &str = "one of the library's action types";
    let ActionSettings { name, settings } = saved;
    let refuse = |problem: String| Error::config("an action type", format!("`{name}`, {problem}"), EXPECTED);
    if settings.is_null() {
        return Err(refuse("which is a custom type".to_owned()));
    }
    let unreadable = |error| refuse(format!("whose settings can't be read ({error})"));
    let action_type = LibraryType::deserialize(settings).map_err(unreadable)?;
    let twice = || refuse("which is the reverse of a reversed type".to_owned());
    let actions = action_type.add_to(actions).ok_or_else(twice)?;
    let last = actions.types().filter(|(_, action_type)| !action_type.is_exit()).last();
    let built = last.map_or("", |(_, action_type)| action_type.name());
    if built != name {
        return Err(refuse(format!("whose settings are those of `{built}`")));
    }
    Ok(actions)
}

impl GraphEnv {
    /// Builds the environment that has these settings ([`Env::settings`](crate::env::Env::settings)).
    ///
    /// # Errors
    /// [`Error::Config`] for custom rules or custom action types, and for settings that can't be read; the
    /// errors of [`new`](Self::new), [`with_instances`](Self::with_instances),
    /// [`with_scaffold`](Self::with_scaffold) and [`with_schema`](Self::with_schema).
    pub(crate) fn from_settings(settings: &Value) -> Result<Self> {
        let unreadable = |error: serde_json::Error| {
            Error::config(
                "the settings of a graph environment",
                error,
                "the settings that this library writes",
            )
        };
        let settings = Settings::deserialize(settings).map_err(unreadable)?;
        if settings.rules != FREE {
            let got = format!("custom rules with the settings {}", settings.rules);
            return Err(Error::config(
                "the environment's rules",
                got,
                "`Free`, which needs no code of a program",
            ));
        }
        let mut actions = ActionSet::new(settings.semantics);
        for saved in settings.actions {
            actions = add_type(actions, saved)?;
        }
        if settings.schema.max_nodes > MAX_NODES {
            let n = settings.schema.max_nodes;
            return Err(Error::config("the largest number of nodes in a schema", n, "at most 1048576"));
        }
        let initial = settings.initial_graphs.into_graphs();
        let size = total_size(&initial);
        if size > MAX_SIZE {
            return Err(Error::config("the nodes and edges of all initial graphs", size, "at most 100000"));
        }
        let Some(first) = initial.first() else {
            return Err(Error::config("initial graphs", "none", "one initial graph for each instance"));
        };
        let env = Self::new(Free, actions, first.clone())?.with_instances(initial)?;
        let env = env.with_scaffold(settings.scaffold)?.with_schema(settings.schema)?;
        Ok(env.with_backward(settings.backward).with_symmetry_correction(settings.corrects_symmetry))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::graph::{AddEdge, AddNode};

    /// Returns the message of the error for settings that `edit` has changed.
    fn refuse(edit: impl FnOnce(&mut Value)) -> String {
        let actions =
            ActionSet::new(Semantics::Labelled).with(AddNode::attached(1, 1, 4)).with(AddEdge::new(1));
        let env = GraphEnv::free(actions, GraphState::undirected(2)).unwrap();
        let mut settings = settings(&env);
        assert_eq!(super::settings(&GraphEnv::from_settings(&settings).unwrap()), settings);
        edit(&mut settings);
        GraphEnv::from_settings(&settings).unwrap_err().to_string()
    }

    /// Checks that an action type that wraps one of the library's types, and returns the settings of that
    /// type, isn't loaded as that type.
    #[test]
    fn settings_of_a_type_with_another_name_are_refused() {
        let message = refuse(|settings| settings["actions"][1]["name"] = json!("rare_edge"));
        assert!(message.contains("`rare_edge`, whose settings are those of `add_edge`"), "{message}");
    }

    #[test]
    fn only_types_without_settings_are_custom() {
        let message = refuse(|settings| settings["actions"][1]["settings"] = Value::Null);
        assert!(message.contains("`add_edge`, which is a custom type"), "{message}");
        let message = refuse(|settings| settings["actions"][1]["settings"]["AddEdge"]["colour"] = json!(1));
        assert!(
            message.contains("whose settings can't be read") && message.contains("`colour`"),
            "{message}"
        );
    }

    #[test]
    fn large_initial_graphs_are_refused() {
        let graphs = vec![json!({ "directed": false, "nodes": 10_000, "edges": [] }); 11];
        let message = refuse(|settings| settings["initial_graphs"] = graphs.into());
        assert!(message.contains("110000") && message.contains("at most 100000"), "{message}");
    }
}
