//! What checkpoints of `ring` and `colored-graphs` say of themselves, so that `sample` needs no flags to rebuild a network.

use gfn::graph::GraphKind;
use gfn::nn::GraphNetConfig;
use serde::{Deserialize, Serialize};

/// The run that saved a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "example", rename_all = "snake_case")]
pub(crate) enum Saved {
    Ring { nodes: usize, kind: GraphKind, network: GraphNetConfig },
    ColoredGraphs { max_nodes: usize, network: GraphNetConfig },
}
