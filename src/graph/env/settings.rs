//! Graph environments as settings, and from settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rules::FREE;
use super::{BackwardRule, Free, GraphEnv, GraphSchema, Scaffold};
use crate::graph::action::LibraryType;
use crate::graph::{ActionSet, GraphStates, Semantics};
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
    let size: usize = env.initial.iter().map(|graph| graph.n_nodes() + graph.n_edges()).sum();
    if size > MAX_SIZE {
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
        for ActionSettings { name, settings } in settings.actions {
            let action_type = LibraryType::deserialize(settings).ok();
            let Some(with_type) = action_type.and_then(|action_type| action_type.add_to(actions)) else {
                let got = format!("`{name}`, which is a custom type");
                return Err(Error::config("an action type", got, "one of the library's action types"));
            };
            actions = with_type;
        }
        if settings.schema.max_nodes > MAX_NODES {
            let n = settings.schema.max_nodes;
            return Err(Error::config("the largest number of nodes in a schema", n, "at most 1048576"));
        }
        let initial = settings.initial_graphs.into_graphs();
        let Some(first) = initial.first() else {
            return Err(Error::config("initial graphs", "none", "one initial graph for each instance"));
        };
        let env = Self::new(Free, actions, first.clone())?.with_instances(initial)?;
        let env = env.with_scaffold(settings.scaffold)?.with_schema(settings.schema)?;
        Ok(env.with_backward(settings.backward).with_symmetry_correction(settings.corrects_symmetry))
    }
}
