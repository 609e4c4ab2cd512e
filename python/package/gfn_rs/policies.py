"""Policies: the settings of networks, and of their estimators. An objective that needs a state flow adds it
automatically.

All networks read the condition's vector in a trainer with conditions. With `logit_scale`, the layers of a
perceptron, P_F's logits are also multiplied by a function of the condition, so that one network is sharp at
one temperature and flat at another (Kim et al. 2024).

`initial_log_z` is the first estimate of log Z; without a number it is estimated from the first batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Literal, Sequence

import torch

from . import _gfn
from ._settings import Settings, needs, plain, variant
from ._suggestions import suggests_names

if TYPE_CHECKING:
    from .envs import Environment
    from .networks import Network

Backward = Literal["uniform", "shared_torso", "separate"]
Activation = Literal["relu", "leaky_relu", "gelu", "silu", "tanh", "elu"]


class Policy(Settings):
    """The base class of policies, which are the settings of networks."""

    def _module(self) -> Any:
        """Returns the custom torch module in this policy; None if it has none."""
        return None

    @suggests_names
    def build(
        self,
        env: Environment,
        seed: int = 0,
        *,
        flow: bool = False,
        n_conditions: int = 0,
        device: str | torch.device = "cpu",
        double: bool = False,
    ) -> Network:
        """Builds the network for an environment, a `torch.nn.Module`.

        seed
            The seed of the first parameters.
        flow
            True if the network is to estimate log F of states.
        n_conditions
            The number of numbers in a condition; 0 without conditions.
        device, double
            The device, and True for double precision.
        """
        from .networks import Network

        return Network.build(
            env, self, seed, flow=flow, n_conditions=n_conditions, device=device, double=double
        )


def _layers(
    hidden: Any, activation: str = "relu", layer_norm: Any = False, noise: Any = None
) -> dict[str, Any]:
    return {"hidden": hidden, "activation": activation, "layer_norm": layer_norm, "noise": noise}


def _estimators(policy: Any) -> dict[str, Any]:
    scale = getattr(policy, "logit_scale", None)
    return {
        "initial_log_z": plain(policy.initial_log_z, "initial_log_z"),
        "logit_scale": None if scale is None else _layers(plain(scale, "logit_scale")),
    }


def _perceptron(policy: Any) -> dict[str, Any]:
    noise = plain(getattr(policy, "weight_noise", None), "weight_noise")
    mlp = _layers(
        plain(policy.hidden, "hidden"), policy.activation, plain(policy.layer_norm, "layer_norm"), noise
    )
    return {"mlp": mlp, "backward": variant(policy.backward), "estimators": _estimators(policy)}


class _Graphs(Policy):
    """The base class of the settings of networks of graphs."""

    def _described(self) -> Any:
        # The settings in this list are left out of a description if they have these values, so that
        # checkpoints from before the settings fit.
        before = [
            ("symmetry", variant("unseen")),
            ("degrees", False),
            ("norm", variant("layer")),
            ("jumping", variant("last")),
            ("unit", 1.0),
        ]
        before.append(("closed_walks", None))
        return {name: value for name, value in self._values().items() if (name, value) not in before}


@dataclass(frozen=True)
class GraphNet(_Graphs):
    """A network of graphs: messages along edges, then a head for each type of action.

    layers, embedding
        The number of rounds of messages, and the width of embeddings.
    conv
        The layer; by default it is chosen by the classes and attributes of the environment's graphs.
        `transformer`, `gat` (GATv2) and `gps` have `heads` heads of attention: along edges, or for `gps` over
        the whole graph, in addition to messages along edges.
    heads
        The number of heads of attention.
    identity
        True if nodes know their label, in environments of labelled graphs.
    pair_walks
        The number of walk lengths for which the heads of pairs get the number of walks between two nodes.
    global_
        True if each node gets a summary of the graph after the last round.
    backward
        P_B: `uniform`, or learned with the torso of P_F (`shared_torso`) or a separate torso (`separate`).
    symmetry
        The number of automorphisms of a graph, and its change by each move, as an input: counted (`seen`),
        as an upper bound by colour refinement in polynomial time (`refined`), or left out (`unseen`).
        `auto`: up to isomorphism, with at most 256 slots of moves, `seen` up to 8 nodes and `refined` beyond.
        Policies of graphs up to isomorphism are much more accurate with this input.
    degrees
        True if nodes get their degree and the size of their graph.
    norm
        The normalisation after each round; `graph` is GraphNorm, over the nodes of a graph. Not for
        `transformer`.
    jumping
        The rounds that nodes and pooled graphs read, as in PyTorch Geometric's `JumpingKnowledge` (`concat`
        followed by a linear map). Not for `transformer`.
    unit
        A factor on all logits and on log F, for rewards whose logarithms are in the hundreds.
    closed_walks
        The number of lengths, from 2 on, for which nodes get the number of closed walks.
    initial_exit_bias
        A number added to the exit's logit at first.
    """

    layers: int = 2
    embedding: int = 128
    conv: Literal["auto", "gin", "gin_virtual", "gine", "directed", "transformer", "gat", "gps"] = "auto"
    heads: int = field(default=4, metadata=needs("conv", "transformer", "gat", "gps"))
    identity: bool = True
    pair_walks: int | None = None
    global_: bool = True
    backward: Backward = "uniform"
    initial_log_z: float | None = None
    initial_exit_bias: float = 0.0
    logit_scale: Sequence[int] | None = None
    symmetry: Literal["auto", "seen", "refined", "unseen"] = "auto"
    degrees: bool = False
    norm: Literal["layer", "graph", "none"] = "layer"
    jumping: Literal["last", "concat", "max"] = "last"
    unit: float = 1.0
    closed_walks: int | None = None

    def _values(self) -> dict[str, Any]:
        conv: Any = (
            {variant(self.conv): {"heads": self.heads}}
            if self.conv in ("transformer", "gat", "gps")
            else variant(self.conv)
        )
        return {
            "layers": plain(self.layers, "layers"),
            "embedding": plain(self.embedding, "embedding"),
            "conv": conv,
            "degrees": plain(self.degrees, "degrees"),
            "closed_walks": plain(self.closed_walks, "closed_walks"),
            "norm": variant(self.norm),
            "jumping": variant(self.jumping),
            "identity": plain(self.identity, "identity"),
            "pair_walks": plain(self.pair_walks, "pair_walks"),
            "global": plain(self.global_, "global_"),
            "backward": variant(self.backward),
            "symmetry": variant(self.symmetry),
            "unit": plain(self.unit, "unit"),
            "initial_exit_bias": plain(self.initial_exit_bias, "initial_exit_bias"),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class EdgeMlp(Policy):
    """A perceptron on the adjacency matrix: the baseline for labelled graphs."""

    hidden: Sequence[int] = (256, 256)
    activation: Activation = "relu"
    layer_norm: bool = False
    backward: Backward = "uniform"
    initial_log_z: float | None = None
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        return _perceptron(self)


class _OwnNetwork(Policy):
    """The base class of policies around a custom module: a `torch.nn.Module`, or any callable with
    `named_parameters`."""

    _takes: str

    def __post_init__(self) -> None:
        super().__post_init__()
        module = self._module()
        if isinstance(module, type) or not (callable(module) and hasattr(module, "named_parameters")):
            raise TypeError(f"module is {module!r:.200}: expected a torch.nn.Module that takes {self._takes}")

    def _module(self) -> Any:
        return getattr(self, "module")


@dataclass(frozen=True)
class GraphModule(_OwnNetwork, _Graphs):
    """A network around a `torch.nn.Module` (or any callable with `named_parameters`) from a `GraphBatch` to
    embeddings of nodes `[N, node_width]` and of graphs `[B, graph_width]`. The library adds the heads, trains
    the module's parameters and saves them.

    The output for a state must depend neither on the rest of the batch nor on chance: no batch normalisation
    in training mode, no dropout. Up to isomorphism the module must not read `node_labels`. A trainer refuses
    such modules. Buffers of whole numbers aren't saved. `symmetry` is an input of the library's heads, as in
    `GraphNet`.

    `env.encoding` names the classes and attributes of molecules and fragments. A batch always has a node: if
    all its graphs are empty, a graph with one node is added, and the output for it is dropped.
    """

    _takes = "a GraphBatch"

    module: Callable[[_gfn.GraphBatch], Any]
    node_width: int
    graph_width: int
    backward: Literal["uniform", "shared_torso"] = "uniform"
    pair_walks: int | None = None
    initial_log_z: float | None = None
    initial_exit_bias: float = 0.0
    logit_scale: Sequence[int] | None = None
    symmetry: Literal["auto", "seen", "refined", "unseen"] = "auto"

    def _values(self) -> dict[str, Any]:
        return {
            "node_width": plain(self.node_width, "node_width"),
            "graph_width": plain(self.graph_width, "graph_width"),
            "backward": variant(self.backward),
            "pair_walks": plain(self.pair_walks, "pair_walks"),
            "symmetry": variant(self.symmetry),
            "initial_exit_bias": plain(self.initial_exit_bias, "initial_exit_bias"),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class DagModule(_OwnNetwork):
    """A network for `BayesianStructure` of `v` variables around a `torch.nn.Module` from adjacency matrices
    `[n, v, v]`, 1 at `[k, i, j]` if graph `k` has the edge from `i` to `j` and else 0, to embeddings of nodes
    `[n, v, node_width]` and of graphs `[n, graph_width]`. In a trainer with conditions, the condition of each
    graph, `[n, width]`, is a second argument.

    Matrices have the trainer's dtype and device, and so must the embeddings. The library adds the heads: the
    logit of an edge depends on the embeddings of both nodes and of the graph. Otherwise it is like
    `GraphModule`; variables are different, so the module may distinguish them.
    """

    _takes = "adjacency matrices"

    module: Callable[..., Any]
    node_width: int
    graph_width: int
    backward: Literal["uniform", "shared_torso"] = "uniform"
    initial_log_z: float | None = None
    initial_exit_bias: float = 0.0
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        return {
            "node_width": plain(self.node_width, "node_width"),
            "graph_width": plain(self.graph_width, "graph_width"),
            "backward": variant(self.backward),
            "initial_exit_bias": plain(self.initial_exit_bias, "initial_exit_bias"),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class VectorModule(_OwnNetwork):
    """A network for environments of vectors around a `torch.nn.Module` from `n` states to their embeddings
    `[n, width]`. The library adds the heads, a linear layer like the last layer of `Mlp`, trains the module's
    parameters and saves them.

    inputs
        The form of states: `one_hot`, `[n, entries * values]`, a block for each entry with a 1 at its value,
        in the trainer's dtype; `entries`, `[n, entries]`, the entries themselves as int64, for embeddings.
    heads
        The number of heads of P_F, as in `Mlp`.

    The conditions of the states, `[n, width]`, are a second argument in a trainer with conditions. The output
    for a state must depend neither on the rest of the batch nor on chance, as in `GraphModule`.
    """

    _takes = "states"

    module: Callable[..., Any]
    width: int
    inputs: Literal["one_hot", "entries"] = "one_hot"
    backward: Literal["uniform", "shared_torso"] = "shared_torso"
    initial_log_z: float | None = None
    heads: int = 1
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        return {
            "width": plain(self.width, "width"),
            "inputs": self.inputs,
            "backward": variant(self.backward),
            "heads": plain(self.heads, "heads"),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class Mlp(Policy):
    """A perceptron on the entries of a vector, one-hot; for acyclic graphs, on the adjacency matrix.

    heads
        The number of heads of P_F, from which `Thompson` samples.
    weight_noise
        The initial amplitude of noise on all weights, for exploration; the useful amplitude is learned
        (Fortunato et al. 2018). Samples and evaluations have no noise.
    """

    hidden: Sequence[int] = (256, 256)
    activation: Activation = "relu"
    layer_norm: bool = False
    backward: Backward = "shared_torso"
    initial_log_z: float | None = None
    heads: int = 1
    weight_noise: float | None = None
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        return {**_perceptron(self), "heads": plain(self.heads, "heads")}


@dataclass(frozen=True)
class SequenceNet(Policy):
    """A network that reads the tokens written so far, for sequences that are written from left to right."""

    kind: Literal["lstm", "gru", "transformer"] = "transformer"
    width: int = 64
    layers: int = 2
    heads: int = field(default=4, metadata=needs("kind", "transformer"))
    initial_log_z: float | None = None

    def _values(self) -> dict[str, Any]:
        kind: Any = {"transformer": {"heads": self.heads}} if self.kind == "transformer" else self.kind
        net = {"kind": kind, "width": plain(self.width, "width"), "layers": plain(self.layers, "layers")}
        return {"net": net, "estimators": _estimators(self)}


@dataclass(frozen=True)
class SequenceModule(_OwnNetwork):
    """A network for sequences that are written from left to right, around a `torch.nn.Module`. The module
    maps tokens `[n, length]`, 0 if unwritten, and the numbers of written tokens `[n]`, both int64, to
    embeddings `[n, width]`. The conditions of the sequences, `[n, C]`, are a third argument in a trainer with
    conditions.

    Each state is read from its start, as by `VectorModule` with `inputs="entries"`; `SequenceNet`, which
    keeps its state between tokens, is faster for long sequences. There is one backward move from each state,
    so P_B has nothing to learn.
    """

    _takes = "tokens and lengths"

    module: Callable[..., Any]
    width: int
    initial_log_z: float | None = None
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        width = plain(self.width, "width")
        return {
            "width": width,
            "inputs": "prefixes",
            "backward": "Uniform",
            "heads": 1,
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class EdgeTransformer(Policy):
    """Linear attention between the pairs of nodes of an acyclic graph, as in DAG-GFlowNet."""

    embedding: int = 64
    heads: int = 4
    layers: int = 1
    head_layers: int = 1
    initial_log_z: float | None = None

    def _values(self) -> dict[str, Any]:
        sizes = {name: getattr(self, name) for name in ("embedding", "heads", "layers", "head_layers")}
        return {**sizes, "estimators": _estimators(self)}


@dataclass(frozen=True)
class BoxNet(Policy):
    """A perceptron that parametrises mixtures of Beta distributions, for the unit box."""

    hidden: Sequence[int] = (128, 128, 128, 128)
    activation: Activation = "relu"
    layer_norm: bool = False
    components: int = 32
    backward: Backward = "shared_torso"
    initial_log_z: float | None = None

    def _values(self) -> dict[str, Any]:
        return {**_perceptron(self), "mixtures": {"components": self.components}}


@dataclass(frozen=True)
class LineNet(Policy):
    """A perceptron that parametrises mixtures of normal distributions, for the line."""

    hidden: Sequence[int] = (64, 64, 64)
    activation: Activation = "elu"
    layer_norm: bool = False
    components: int = 2
    backward: Backward = "shared_torso"
    initial_log_z: float | None = None

    def _values(self) -> dict[str, Any]:
        return {**_perceptron(self), "mixtures": {"components": self.components}}


@dataclass(frozen=True)
class DiffusionNet(Policy):
    """A network of the drift of a diffusion.

    langevin_clip
        The value at which the gradient of the target is clamped; the gradient, times a learned factor of the
        time, is added to the drift. None doesn't use it.
    network
        Sizes of the network by name.
    log_variance_range
        The range of the log-variance of steps, which is learned then: the standard deviation changes by a
        factor of at most e to half of it.
    backward_range
        The range of P_B, which is learned then: it shifts and scales the process's own P_B by at most this
        number of deviations.
    """

    langevin_clip: float | None = None
    initial_log_z: float | None = None
    network: dict[str, Any] = field(default_factory=dict)
    log_variance_range: float | None = None
    backward_range: float | None = None

    def _values(self) -> dict[str, Any]:
        learned = self.backward_range is not None
        return {
            "langevin_clip": plain(self.langevin_clip, "langevin_clip"),
            "network": plain(self.network, "network"),
            "log_variance_range": plain(self.log_variance_range, "log_variance_range"),
            "backward": (
                {"learned": {"range": plain(self.backward_range, "backward_range")}} if learned else "fixed"
            ),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class Uniform(Policy):
    """The uniform policy over legal actions, without parameters."""
