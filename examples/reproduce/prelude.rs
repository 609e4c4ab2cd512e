//! The names that most modules of the program use.

pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::ops::ControlFlow;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Instant;

pub(crate) use clap::{Args, ValueEnum};
pub(crate) use gfn::env::{DiscreteEnv, EnumerableEnv, Reals, Rows, Slots, log_rewards};
pub(crate) use gfn::graph::CanonicalKey;
pub(crate) use gfn::metrics::{Correlation, sample_objects as sample};
pub(crate) use gfn::nn::{GraphNetwork, MlpConfig};
pub(crate) use gfn::objective::{Origin, Quantities, Quantity};
pub(crate) use gfn::optim::AdamConfig;
pub(crate) use gfn::policy::UniformPolicy;
pub(crate) use gfn::prelude::*;
pub(crate) use gfn::replay::{DataSource, Draw, Eviction};
pub(crate) use gfn::run::{CountModes, Metrics, Observer, Record};
pub(crate) use gfn::train::{Checkpoint, ReplayPath, TrainEnv};
pub(crate) use gfn::{Error, Result};
pub(crate) use gfn_extras::condition::{ConditionedReward, Conditioning, Encoding, Temperature};
pub(crate) use gfn_gym::hypergrid::{HyperGrid, OriginalReward, RewardKind};
pub(crate) use gfn_gym::ring::{Ring, RingReward};
pub(crate) use gfn_molecules::{Molecule, MoleculeScore};
pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use serde_json::{Value, json};
pub(crate) use tch::{Device, Kind, Tensor};

pub(crate) use crate::Task;
pub(crate) use crate::flags::{
    Build, Choice, Common, Machine, OBJECTIVES, ObjectiveName, Selection, at_least_one, choice, name_of,
    refuse, refuse_replay, refuse_training, refuse_validation, selections,
};
pub(crate) use crate::plot::{Curve, Figure, GraphDrawing, Layout, NodeLabels, Panel, PictureSheet};
pub(crate) use crate::run::files::{print, replace_file, report_file, tell, try_file};
pub(crate) use crate::run::{
    Exact, NEWEST, Recipe, Report, Run, compare, evaluated, heat_maps, jsd, list_states, log_z, members,
    merge, sampled, unmeasured,
};
