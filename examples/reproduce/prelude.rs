//! The names that most tasks use.

pub(crate) use std::ops::ControlFlow;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::sync::Arc;

pub(crate) use clap::Args;
pub(crate) use gfn::env::{EnumerableEnv, Env, Reals, Reward, Rows, StateGraph, VectorEnv, VectorStates, log_rewards};
pub(crate) use gfn::graph::{GraphEnv, GraphKind, GraphState, GraphStates};
pub(crate) use gfn::metrics::{Correlation, Distances, sample_objects as sample};
pub(crate) use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig, GraphNetwork, MlpConfig};
pub(crate) use gfn::objective::{Objective, Quantity};
pub(crate) use gfn::optim::Schedule;
pub(crate) use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
pub(crate) use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
pub(crate) use gfn::rollout::Sampler;
pub(crate) use gfn::run::{CountModes, Metrics, Observer, Record};
pub(crate) use gfn::runtime::{DeviceKind, Runtime};
pub(crate) use gfn::train::{Checkpoint, ReplayPath, Trainer, TrainerConfig};
pub(crate) use gfn::{Error, Result, Rng};
pub(crate) use serde_json::{Value, json};
pub(crate) use tch::{Device, Kind, Tensor};

pub(crate) use crate::Task;
pub(crate) use crate::flags::{
    Choice, Common, Selection, at_least_one, choice, refuse, refuse_replay, refuse_validation,
};
pub(crate) use crate::plot::{Curve, Figure, GraphDrawing, Layout, NodeLabels, Panel};
pub(crate) use crate::run::files::{print, tell, try_file, written};
pub(crate) use crate::run::{
    Exact, NEWEST, Recipe, Report, Run, TrainingStats, heat_maps, jsd, listed, members, merge, number, sampled, table,
};
