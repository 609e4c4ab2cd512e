"""Policies: networks, with what they estimate. An objective that needs a state flow gets one without being asked.

Under conditions all networks get the condition's vector. With `logit_scale`, the layers of a perceptron, P_F's logits are multiplied by a
function of it besides, so that one network is sharp at one temperature and flat at another (Kim et al. 2024).

`initial_log_z` is where the estimate of log Z starts; without a number it is estimated from the first batch.
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
    """What the policies share."""

    def _module(self) -> Any:
        """A network in Python."""
        return None

    def _parts(self) -> tuple[dict[str, Any], Any]:
        """Returns the policy as the extension reads it: its settings, and its module if it has one."""
        return self._named(), self._module()

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
        """The network of these settings for an environment: a `torch.nn.Module`. With `flow` it estimates log F of states, too; with
        `n_conditions` it is told of so many numbers; `double` is double precision."""
        from .networks import Network

        return Network.build(env, self, seed, flow=flow, n_conditions=n_conditions, device=device, double=double)


def _layers(hidden: Any, activation: str = "relu", layer_norm: Any = False, noise: Any = None) -> dict[str, Any]:
    return {"hidden": hidden, "activation": activation, "layer_norm": layer_norm, "noise": noise}


def _estimators(policy: Any) -> dict[str, Any]:
    scale = getattr(policy, "logit_scale", None)
    return {
        "initial_log_z": plain(policy.initial_log_z, "initial_log_z"),
        "logit_scale": None if scale is None else _layers(plain(scale, "logit_scale")),
    }


def _perceptron(policy: Any) -> dict[str, Any]:
    noise = plain(getattr(policy, "weight_noise", None), "weight_noise")
    mlp = _layers(plain(policy.hidden, "hidden"), policy.activation, plain(policy.layer_norm, "layer_norm"), noise)
    return {"mlp": mlp, "backward": variant(policy.backward), "estimators": _estimators(policy)}


class _Graphs(Policy):
    """What the networks of graphs share."""

    def _described(self) -> Any:
        # Checkpoints from before the setting are of networks that aren't told, and name nothing.
        before = [("symmetry", variant("unseen")), ("degrees", False), ("norm", variant("layer")), ("jumping", variant("last")), ("unit", 1.0)]
        before.append(("closed_walks", None))
        return {name: value for name, value in self._values().items() if (name, value) not in before}


@dataclass(frozen=True)
class GraphNet(_Graphs):
    """Messages along edges, then a head for each type of action.

    `conv` is chosen by what the environment's graphs are made of, unless named; `transformer`, `gat` (GATv2) and `gps` have `heads` heads
    of attention along edges, `gps` to the whole graph instead, beside messages along edges. `degrees`: nodes are told their degree and the
    size of their graph. `norm` after each round: `graph` is GraphNorm, over the nodes of the same graph. `jumping`: the rounds that nodes and
    pooled graphs read, as in PyTorch Geometric's `JumpingKnowledge` (`concat` with a linear map behind it); `norm` and `jumping` aren't for
    `transformer`. `identity`: nodes know their label, where labels mean something. `pair_walks` gives heads of pairs the number of walks of so
    many lengths between the two. `global_`: after the last round each node is told of the whole graph. `symmetry`: the network is told
    how many automorphisms a graph has and how each move changes that, by count (`seen`) or by an upper bound that colour refinement gives
    in polynomial time (`refined`; `auto`: up to isomorphism, of at most 256 slots of moves, `seen` up to 8 nodes and `refined` beyond).
    Graphs up to isomorphism are learned many times closer with it. `closed_walks`: nodes are told the numbers of walks back to them of so
    many lengths from 2. `unit` is a factor of all logits and of log F, for
    rewards so sharp that their logarithms are in the hundreds.
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
        conv: Any = {variant(self.conv): {"heads": self.heads}} if self.conv in ("transformer", "gat", "gps") else variant(self.conv)
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
    """A perceptron on the adjacency matrix: the plain baseline for labelled graphs."""

    hidden: Sequence[int] = (256, 256)
    activation: Activation = "relu"
    layer_norm: bool = False
    backward: Backward = "uniform"
    initial_log_z: float | None = None
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        return _perceptron(self)


class _OwnNetwork(Policy):
    """What policies around a module share: the module is a `torch.nn.Module`, or any function with parameters of its own."""

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
    """A network of your own: a `torch.nn.Module` (or any function, with `parameters` of its own) from a `GraphBatch` to embeddings of
    nodes `[N, node_width]` and of graphs `[B, graph_width]`. The library adds the heads, trains the module's parameters and saves them.

    What a state gets must depend neither on its batch mates nor on chance: no batch normalisation in training mode, no dropout. Up to
    isomorphism the module must not read `node_labels`. A trainer refuses such modules. Buffers of whole numbers aren't saved.
    `symmetry`: what the library's heads are told, as in `GraphNet`.

    What classes and attributes stand for is the environment's: of molecules and fragments `env.encoding` says it by name. Where graphs
    without nodes are asked of alone, a graph of one node is asked of with them, and what it gets is left away: no batch is without nodes.
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
    """A network of your own for `BayesianStructure`, of `v` variables: a `torch.nn.Module` from adjacency matrices `[n, v, v]`, 1 at
    `[k, i, j]` where graph `k` has the edge from `i` to `j` and else 0, to embeddings of nodes `[n, v, node_width]` and of graphs
    `[n, graph_width]`. Under conditions it gets those of each graph, `[n, C]`, as a second argument.

    The matrices are of the trainer's kind and on its device; the embeddings must be, too. The library adds the heads: an edge's logit is
    made of the embeddings of both its nodes and of the graph. Otherwise as `GraphModule`; variables aren't alike, so the module may tell
    them apart.
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
    """A network of your own for environments of vectors: a `torch.nn.Module` from `n` states to their embeddings `[n, width]`. The
    library adds the heads, a linear layer, as the last layer of `Mlp` is, trains the module's parameters and saves them.

    What the module is shown of states is chosen by `inputs`: `one_hot`, for each entry a block of numbers that are 0 but for a 1 at the
    entry's value, `[n, entries * values]`, in the trainer's kind; `entries`, the entries themselves, `[n, entries]`, as int64, for
    embeddings. Under conditions it gets those of each state, `[n, C]`, as a second argument.

    What a state gets must depend neither on its batch mates nor on chance, as with `GraphModule`. `heads`: as those of `Mlp`.
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
    """A perceptron on the entries of a vector, one-hot; of acyclic graphs, on the adjacency matrix. With several `heads` of P_F, the
    trainer's `thompson` samples by them. `weight_noise` is the amplitude at first of noise on all weights, which learn how much of it is
    of use (Fortunato et al. 2018): exploration, which samples and evaluations are without."""

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
    """A network that reads what is written so far, for sequences that are written from left to right."""

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
    """A network of your own for sequences that are written from left to right: a `torch.nn.Module` from tokens `[n, length]`, which are
    0 where nothing is written yet, and the numbers of tokens that are written `[n]`, both int64, to embeddings `[n, width]` of what is
    written. Under conditions it gets those of each sequence, `[n, C]`, as a third argument.

    Each state is read from its start: it is `VectorModule` with `inputs="entries"`, told of lengths besides, and `SequenceNet`, which
    keeps what it has read, is the faster of the two for long sequences. There is one way back from each state, so P_B has nothing to learn.
    """

    _takes = "tokens and lengths"

    module: Callable[..., Any]
    width: int
    initial_log_z: float | None = None
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        width = plain(self.width, "width")
        return {"width": width, "inputs": "prefixes", "backward": "Uniform", "heads": 1, "estimators": _estimators(self)}


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
    """A perceptron that gives mixtures of Beta distributions, for the unit box."""

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
    """A perceptron that gives mixtures of normal distributions, for the line."""

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
    """A network of the drift of a diffusion; with `langevin_clip`, led by the target's gradient.

    With `log_variance_range` the deviation of steps is learned, too, up to a factor of e to half of it; with `backward_range`, so is P_B,
    which shifts and scales the process's own by up to so many deviations.
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
            "backward": {"learned": {"range": plain(self.backward_range, "backward_range")}} if learned else "fixed",
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class Uniform(Policy):
    """Every legal action alike, nothing to train."""
