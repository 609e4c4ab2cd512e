//! The conversion of the library's messages for Python users: Rust names are replaced by Python names.

/// The phrases of the library's messages, each with its replacement in `gfn_rs`. If a phrase contains another
/// phrase, the longer phrase comes first.
const PHRASES: &[(&str, &str)] = &[
    (
        "(if the backward moves of graphs are derived, let `is_reachable` return false for graphs that no \
         forward move builds; if they are masked by type, use action types that never lead to such graphs, \
         such as `AddEdge::keeping_connected`)",
        "(let `is_reachable` return false for graphs that no forward move builds)",
    ),
    (
        "install a PyTorch 2.13 for CUDA, export LIBTORCH_USE_PYTORCH=1 and build again, or use --device cpu",
        "install a build of torch for CUDA, or use device=\"cpu\"",
    ),
    (
        "the libtorch that `make setup` fetches comes without NVIDIA's own libraries: `pip install \
         torch==2.13.0`, export LIBTORCH_USE_PYTORCH=1 and build again, or use --device cpu",
        "install a build of torch for CUDA, or use device=\"cpu\"",
    ),
    ("--device cpu", "device=\"cpu\""),
    ("raise it to a floor (`Clipped`)", "raise it to a floor (`np.maximum(log_rewards, floor)`)"),
    (
        "choose a loss that grows more slowly (`RegressionLoss`), or train in f64",
        "choose a `regression` that grows more slowly, or train with `double=True`",
    ),
    ("; `Instances::distinct` drops repetitions", ""),
    ("use the pruned or sampled metrics", "estimate from samples (`evaluate`)"),
    (
        "call `Runtime::new` once, before anything uses rayon or libtorch",
        "call `set_threads` once, before the first trainer",
    ),
    ("write it with GraphFormat::EdgeList (any extension except g6 and d6)", "use `networkx()`, or pickle"),
    (
        "build it with the feature `descriptors` to get this property",
        "build gfn-rs without `--no-default-features` to get this property",
    ),
    ("give `DiffusionPolicy::new` the target", "use a target of the library's"),
    ("give the policy one (`Policy::log_z`)", "use a policy with parameters"),
    ("`VarStore::new(device)`, `to_kind`", "`device` and `double` of the trainer"),
    ("`Reward::partial_log_reward`", "`partial_log_reward`"),
    ("`Reward::log_reward_change`", "`log_reward_change`"),
    ("`ChainConfig::score_changes` to false", "`ChainSource.score_changes` to False"),
    ("`contract::check_env` (for graphs `contract::check_graph_env`)", "`check` of the environment"),
    ("`contract::check_env`", "`check` of the environment"),
    (
        "give the trainer a companion that supplies them (`Intrinsic` of gfn-extras), or set them by hand \
         (`Scores::set`)",
        "train by `fit`, which has them",
    ),
    ("`KlEstimator::Sampled`", "`divergence=\"sampled\"`"),
    (
        "`Returns`, or an advantage that needs log F (`Baseline`, `Gae`)",
        "`returns`, or an advantage that needs log F (`baseline`, `gae`)",
    ),
    ("`MlpPolicyConfig::heads`", "`Mlp(heads=)`"),
    ("`with_average`", "`Adam(average=Average())`"),
    ("`with_target_network`", "`target_network`"),
    ("`Trainer::with_conditions`", "`conditions`"),
    ("`with_conditions`", "`conditions`"),
    ("`Trainer::with_fresh`", "`FreshSource`"),
    ("`with_replay`", "`sources=[Replay()]`"),
    ("`with_data`", "`Data`"),
    ("`TrainerConfig::source`", "`share`"),
    ("updates_per_draw", "updates"),
    ("`TrainerConfig::replay_path`", "`Replay.path`"),
    ("`TrainerConfig::chunk`", "`Adam.chunk`"),
    ("`TrainerConfig::transitions`", "`Adam.transitions`"),
    ("`TrainerConfig::lr_scale`", "`Adam.schedule`"),
    (
        "`RolloutPlace::Measured` or `RolloutPlace::Device`",
        "`rollouts=\"measured\"` or `rollouts=\"device\"`",
    ),
    ("`TrainerConfig::", "`"),
    ("`EstimatorsConfig::", "`"),
    ("`AdamConfig::", "`"),
    ("`Schedule::", "`"),
    (
        "(`Scaffold::ToldApart`)",
        "(`scaffold=\"distinct\"` of a `GraphEnv`, `told_apart=True` of `Molecules`)",
    ),
    (
        "(`Auto`, `Gine`, `Gat`, `Gps` or `Transformer`), or `ablation: true` to ignore them on purpose",
        "(\"auto\", \"gine\", \"gat\", \"gps\" or \"transformer\")",
    ),
    ("with `conv` `Transformer`", "with `conv` \"transformer\""),
    ("`Layer` and `Last`, because", "\"layer\" and \"last\", because"),
    ("`Auto` or `Ignored`, because", "\"auto\" or \"ignored\", because"),
    ("such as `UniformPolicy`", "such as `Uniform`"),
    (
        "`SetNodeAttr`, or distinguish nodes by their labels, `Semantics::Labelled`",
        "`SetNodeAttribute`, or distinguish nodes by their labels, `labelled=True`",
    ),
    (
        "(the format is described at `GraphState`'s `Serialize`)",
        "(`Graphs.json` returns this format, which `from_json` describes)",
    ),
    // The names of types of moves, which `Moves.types` has, too.
    ("remove_node_attr", "clear_node_attribute"),
    ("remove_edge_attr", "clear_edge_attribute"),
    ("set_node_attr", "set_node_attribute"),
    ("set_edge_attr", "set_edge_attribute"),
    ("`ReplayPath::Stored`", "\"stored\""),
    ("`ReplayPath::PolicyBackward`", "\"policy_backward\""),
    ("`tch::no_grad`", "`torch.no_grad`"),
    ("`TensorEnv::n_values`", "`values`"),
];

/// Replaces the Rust phrases in a message by Python phrases.
pub(crate) fn in_python(message: &str) -> String {
    PHRASES.iter().fold(message.to_owned(), |text, (rust, python)| text.replace(rust, python))
}
