"""Policies: the settings of networks, and of their estimates of log Z and of state flows. If the objective
needs state flows, the head for them is added automatically.

In a trainer with conditions, all networks read the vector of the condition. `logit_scale` lists the widths of
the hidden layers of a perceptron. The perceptron maps the condition to a factor on the logits of P_F. So the
same network can be sharp at one temperature and flat at another (Kim et al. 2024).

`initial_log_z` is the initial value of log Z, in a trainer without conditions. With None, the initial value
is estimated from the first batch.

With conditions log Z depends on the condition. By default it is a perceptron of the condition. `log_z`
replaces it by a custom `torch.nn.Module`, which maps conditions `[n, C]` to log Z, `[n]` or `[n, 1]`. Its
learning rate is `Adam.log_z_lr`, as for the library's own log Z.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Literal, Sequence

import torch

from . import _gfn
from ._settings import Settings, needs, plain, variant
from ._suggestions import suggests_names

if TYPE_CHECKING:
    from ._envs import Environment
    from ._networks import Network
    from ._steps import States

Backward = Literal["uniform", "shared_torso", "separate"]
Activation = Literal["relu", "leaky_relu", "gelu", "silu", "tanh", "elu"]


class Policy(Settings):
    """The base class of policies, which are the settings of networks.

    >>> network = gfn.Mlp((16,)).build(gfn.HyperGrid(2, 3), seed=1)
    >>> isinstance(network, torch.nn.Module)
    True
    """

    def _own_modules(self) -> dict[str, Any]:
        """Returns the custom torch modules of this policy, by the names of their settings."""
        held = {name: getattr(self, name, None) for name in ("module", "backward", "flow", "log_z")}
        return {name: value for name, value in held.items() if not isinstance(value, (str, type(None)))}

    def _check_used(self, used: dict[str, bool], user: str) -> None:
        """Raises an error for a module of log F or log Z that `user`, an objective, doesn't use."""
        for name, words, example in (
            ("flow", "log F of states", "DetailedBalance()"),
            ("log_z", "log Z", "TrajectoryBalance()"),
        ):
            if name in self._own_modules() and not used[name]:
                raise ValueError(
                    f"{type(self).__name__}.{name} is a module, but {user} doesn't use {words}: expected "
                    f"None, or an objective that uses {words}, such as {example}"
                )

    @suggests_names
    def build(
        self,
        env: Environment[States],
        seed: int = 0,
        *,
        flow: bool = False,
        n_conditions: int = 0,
        device: str | torch.device = "cpu",
        double: bool = False,
    ) -> Network[States]:
        """Builds the network of this policy for an environment, as a `torch.nn.Module`.

        seed
            The seed of the initial parameters.
        flow
            True if the network is to estimate log F of states.
        n_conditions
            The width of a condition's vector; 0 without conditions.
        device, double
            The device, and True for double precision.
        """
        from ._networks import Network

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


def _backward(policy: Any) -> str:
    """Returns the variant of P_B. A custom module of P_B is a separate network."""
    return variant(policy.backward) if isinstance(policy.backward, str) else "Separate"


def _perceptron(policy: Any) -> dict[str, Any]:
    noise = plain(getattr(policy, "weight_noise", None), "weight_noise")
    mlp = _layers(
        plain(policy.hidden, "hidden"), policy.activation, plain(policy.layer_norm, "layer_norm"), noise
    )
    return {"mlp": mlp, "backward": variant(policy.backward), "estimators": _estimators(policy)}


class _Graphs(Policy):
    """The base class of the settings of networks whose inputs are graphs."""

    def _described(self) -> Any:
        # Older checkpoints lack the settings in this list. A setting that has the value in this list is left
        # out of the description that is stored in checkpoints. The description then equals that of an older
        # checkpoint.
        before = [
            ("symmetry", variant("ignored")),
            ("degrees", False),
            ("norm", variant("layer")),
            ("jumping", variant("last")),
            ("unit", 1.0),
        ]
        before.append(("closed_walks", None))
        return {name: value for name, value in self._values().items() if (name, value) not in before}


@dataclass(frozen=True)
class GraphNet(_Graphs):
    """A graph neural network: rounds of messages along edges, then a head for each type of action.

    layers, embedding
        The number of rounds of messages, and the width of embeddings.
    conv
        The type of the layers. With `auto` it depends on the classes and attributes of the environment's
        graphs. `transformer` and `gat` (GATv2) have attention along edges. `gps` has attention over the whole
        graph, in addition to messages along edges.
    heads
        The number of attention heads of `transformer`, `gat` and `gps`.
    identity
        True if the label of a node is a feature of the node, in environments of labelled graphs.
    pair_walks
        The heads of actions on two nodes get the number of walks between these nodes, for each of
        `pair_walks` lengths of walks: 2, 3, and so on. None for no such features.
    global_
        True if each node's embedding gets a summary of the graph after the last round.
    backward
        P_B: `uniform`, or learned with the torso of P_F (`shared_torso`) or a separate torso (`separate`).
    symmetry
        A further input of the network: the number of automorphisms of a graph, and the change of this number
        by each move. The number is exact (`exact`), replaced by an upper bound that colour refinement finds
        in polynomial time (`refined`), or left out (`ignored`). In environments of graphs up to isomorphism
        with at most 256 slots, `auto` means `exact` for up to 8 nodes and `refined` for more nodes. In all
        other environments `auto` means `ignored`. Policies of graphs up to isomorphism are much more accurate
        with this input.
    degrees
        True if the features of a node include its degree and the number of nodes of its graph.
    norm
        The normalisation after each round of messages. `graph` is GraphNorm, which normalises over the nodes
        of a graph. `transformer` has no such setting.
    jumping
        The rounds of messages from which the embeddings of nodes and graphs are computed, as in PyTorch
        Geometric's `JumpingKnowledge`. `concat` is followed by a linear map. `transformer` has no such
        setting.
    unit
        A factor on all logits and on log F, for rewards with log R in the hundreds. It doesn't change an
        untrained policy, but updates change logits and log F by more.
    closed_walks
        The features of a node include the number of closed walks through the node, for each of `closed_walks`
        lengths of walks: 2, 3, and so on. None for no such features.
    initial_exit_bias
        The initial bias of the exit's logit. A larger bias makes the first trajectories shorter.
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.
    log_z
        A module that maps conditions `[n, C]` to log Z, `[n]` or `[n, 1]`. Only for trainers with conditions.

    >>> net = gfn.GraphNet(layers=3, embedding=32, conv="gat", heads=2)
    >>> env = gfn.GraphBuilding(max_nodes=3, node_classes=2)
    >>> round(float(net.build(env)(env.initial()).log_pf.detach().exp().sum()), 4)
    1.0
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
    symmetry: Literal["auto", "exact", "refined", "ignored"] = "auto"
    degrees: bool = False
    norm: Literal["layer", "graph", "none"] = "layer"
    jumping: Literal["last", "concat", "max"] = "last"
    unit: float = 1.0
    closed_walks: int | None = None
    log_z: torch.nn.Module | None = None

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
    """A perceptron on the adjacency matrix, as a baseline for environments of labelled graphs with a fixed
    number of nodes.

    hidden, activation, layer_norm
        The widths of the hidden layers, their activation, and True for normalisation of layers.
    backward
        P_B: `uniform` (the default), or learned with the torso of P_F (`shared_torso`) or a separate
        torso (`separate`).
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.
    log_z
        A module that maps conditions `[n, C]` to log Z, `[n]` or `[n, 1]`. Only for trainers with conditions.

    >>> gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.EdgeMlp((16,)), batch=8).fit(2).steps_done
    2
    """

    hidden: Sequence[int] = (256, 256)
    activation: Activation = "relu"
    layer_norm: bool = False
    backward: Backward = "uniform"
    initial_log_z: float | None = None
    logit_scale: Sequence[int] | None = None
    log_z: torch.nn.Module | None = None

    def _values(self) -> dict[str, Any]:
        return _perceptron(self)


class _OwnNetwork(Policy):
    """The base class of policies around custom modules. `module` is a `torch.nn.Module`, or any callable with
    `named_parameters`. The other modules are `torch.nn.Module`s."""

    _takes: str
    module: Callable[..., Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        module = self.module
        if isinstance(module, type) or not (callable(module) and hasattr(module, "named_parameters")):
            raise TypeError(f"module is {module!r:.200}: expected a torch.nn.Module that takes {self._takes}")


@dataclass(frozen=True)
class GraphModule(_OwnNetwork, _Graphs):
    """A network around a custom `torch.nn.Module` (or any callable with `named_parameters`). The module maps
    a `GraphBatch` to embeddings of nodes `[N, node_width]` and of graphs `[B, graph_width]`. The library adds
    the heads, and trains and saves the module's parameters.

    The output for a state must depend neither on the other states of the batch nor on chance, so the module
    can't have batch normalisation in training mode or dropout. If states are graphs up to isomorphism, the
    module must not read `node_labels`. A trainer raises an error for modules that break these rules. Buffers
    of whole numbers aren't saved. `symmetry` is an input of the library's heads, as in `GraphNet`.

    `env.encoding` has the names of the classes and attributes of molecules and fragments. The module's input
    always has at least one node: if all graphs of a batch are empty, a graph with one node is added, and the
    output for this graph is dropped.

    `backward`, `flow` and `log_z` may be modules. The library trains, saves and copies these modules, too,
    and the rules for `module` apply to them.

    backward
        P_B: `uniform`, learned from the embeddings of `module` (`shared_torso`), or a separate module with
        the arguments and the results of `module`. The library adds the heads of P_B.
    flow
        A module with the arguments of `module` that computes log F of each graph, `[B]` or `[B, 1]`, for
        objectives that use state flows. None for a head on the embeddings of `module`.
    log_z
        A module that maps conditions `[n, C]` to log Z, `[n]` or `[n, 1]`. Only for trainers with conditions.
    pair_walks
        The heads of actions on two nodes get the number of walks between these nodes, for each of
        `pair_walks` lengths of walks: 2, 3, and so on. None for no such features.
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    initial_exit_bias
        The initial bias of the exit's logit. A larger bias makes the first trajectories shorter.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.

    >>> import gfn_rs as gfn, torch
    >>> class Degrees(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.node, self.graph = torch.nn.Linear(1, 16), torch.nn.Linear(1, 16)
    ...     def forward(self, batch):
    ...         degrees = torch.bincount(batch.edge_index[0], minlength=len(batch.batch)).float()
    ...         sums = torch.zeros(batch.n_graphs).index_add(0, batch.batch, degrees)
    ...         return self.node(degrees[:, None]), self.graph(sums[:, None])
    >>> policy = gfn.GraphModule(Degrees(), 16, 16, backward=Degrees())
    >>> trainer = gfn.Trainer(gfn.GraphBuilding(3), lambda graphs: graphs.n_edges / 4, policy, batch=8)
    >>> trainer.fit(2).steps_done
    2
    """

    _takes = "a GraphBatch"

    module: Callable[[_gfn.GraphBatch], Any]
    node_width: int
    graph_width: int
    backward: Literal["uniform", "shared_torso"] | torch.nn.Module = "uniform"
    flow: torch.nn.Module | None = None
    log_z: torch.nn.Module | None = None
    pair_walks: int | None = None
    initial_log_z: float | None = None
    initial_exit_bias: float = 0.0
    logit_scale: Sequence[int] | None = None
    symmetry: Literal["auto", "exact", "refined", "ignored"] = "auto"

    def _values(self) -> dict[str, Any]:
        return {
            "node_width": plain(self.node_width, "node_width"),
            "graph_width": plain(self.graph_width, "graph_width"),
            "backward": _backward(self),
            "pair_walks": plain(self.pair_walks, "pair_walks"),
            "symmetry": variant(self.symmetry),
            "initial_exit_bias": plain(self.initial_exit_bias, "initial_exit_bias"),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class DagModule(_OwnNetwork):
    """A network for `BayesianStructure` of `v` variables, around a custom `torch.nn.Module`. The module maps
    adjacency matrices `[n, v, v]` to embeddings of nodes `[n, v, node_width]` and of graphs `[n,
    graph_width]`. The entry `[k, i, j]` is 1 if graph `k` has the edge from `i` to `j`, and 0 otherwise. In a
    trainer with conditions, the condition of each graph, `[n, width]`, is a second argument.

    Matrices have the trainer's dtype and device, and so must the embeddings. The library adds the heads: the
    logit of an edge depends on the embeddings of both nodes and of the graph. In all other respects a
    `DagModule` is like a `GraphModule`, except that modules may distinguish nodes, because variables are
    different from each other. `backward`, `flow` and `log_z` are the settings of `GraphModule`.

    module
        The custom module.
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    initial_exit_bias
        The initial bias of the exit's logit. A larger bias makes the first trajectories shorter.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.

    >>> class Degrees(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.node = torch.nn.Linear(2, 8)
    ...     def forward(self, adjacency):
    ...         nodes = self.node(torch.stack([adjacency.sum(1), adjacency.sum(2)], dim=2))
    ...         return nodes, nodes.mean(1)
    >>> policy = gfn.DagModule(Degrees(), node_width=8, graph_width=8)
    >>> reward = lambda graphs: graphs.sum(axis=(1, 2))
    >>> gfn.Trainer(gfn.BayesianStructure(3), reward, policy, batch=8).fit(2).steps_done
    2
    """

    _takes = "adjacency matrices"

    module: Callable[..., Any]
    node_width: int
    graph_width: int
    backward: Literal["uniform", "shared_torso"] | torch.nn.Module = "uniform"
    flow: torch.nn.Module | None = None
    log_z: torch.nn.Module | None = None
    initial_log_z: float | None = None
    initial_exit_bias: float = 0.0
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        return {
            "node_width": plain(self.node_width, "node_width"),
            "graph_width": plain(self.graph_width, "graph_width"),
            "backward": _backward(self),
            "initial_exit_bias": plain(self.initial_exit_bias, "initial_exit_bias"),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class VectorModule(_OwnNetwork):
    """A network for environments of vectors, around a custom `torch.nn.Module`. The module maps `n` states to
    embeddings `[n, width]`. The library adds the heads, a linear layer like the last layer of `Mlp`, and
    trains and saves the module's parameters.

    In a trainer with conditions, the conditions of the states, `[n, C]`, are a second argument. The output
    for a state must depend neither on the other states of the batch nor on chance, as in `GraphModule`.
    `backward`, `flow` and `log_z` may be modules, which the library trains, saves and copies, too.

    inputs
        The input of the module. `one_hot` is a tensor `[n, entries * values]` in the trainer's dtype, with a
        block for each entry of a state and a 1 at the entry's value. `entries` is an int64 tensor `[n,
        entries]` of the entries themselves, for modules with embedding tables.
    backward
        P_B: `uniform`, learned from the embeddings of `module` (`shared_torso`, the default), or a separate
        module with the arguments and the results of `module`. The library adds the heads of P_B.
    flow
        A module with the arguments of `module` that computes log F of each state, `[n]` or `[n, 1]`, for
        objectives that use state flows. None for a head on the embeddings of `module`.
    log_z
        A module that maps conditions `[n, C]` to log Z, `[n]` or `[n, 1]`. Only for trainers with conditions.
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    heads
        The number of heads of P_F, from which `Thompson` samples.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.

    >>> import gfn_rs as gfn, torch
    >>> net = lambda n: torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, n))
    >>> policy = gfn.VectorModule(net(32), 32, backward=net(32), flow=net(1))
    >>> trainer = gfn.Trainer(
    ...     gfn.HyperGrid(2, 4), gfn.HyperGridReward(), policy, gfn.DetailedBalance(), batch=16
    ... )
    >>> trainer.fit(2).steps_done
    2
    """

    _takes = "states"

    module: Callable[..., Any]
    width: int
    inputs: Literal["one_hot", "entries"] = "one_hot"
    backward: Literal["uniform", "shared_torso"] | torch.nn.Module = "shared_torso"
    flow: torch.nn.Module | None = None
    log_z: torch.nn.Module | None = None
    initial_log_z: float | None = None
    heads: int = 1
    logit_scale: Sequence[int] | None = None

    def _values(self) -> dict[str, Any]:
        return {
            "width": plain(self.width, "width"),
            "inputs": self.inputs,
            "backward": _backward(self),
            "heads": plain(self.heads, "heads"),
            "estimators": _estimators(self),
        }


@dataclass(frozen=True)
class Mlp(Policy):
    """A perceptron, whose input is the one-hot encoding of a vector's entries, or the adjacency matrix of an
    acyclic graph.

    hidden, activation, layer_norm
        The widths of the hidden layers, their activation, and True for normalisation of layers.
    backward
        P_B: `uniform`, or learned with the torso of P_F (`shared_torso`, the default) or a separate torso
        (`separate`).
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    heads
        The number of heads of P_F, from which `Thompson` samples.
    weight_noise
        The initial amplitude of random noise on all weights, for exploration (Fortunato et al. 2018).
        Training adapts the amplitude. `sample` and evaluations have no noise.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.
    log_z
        A module that maps conditions `[n, C]` to log Z, `[n]` or `[n, 1]`. Only for trainers with conditions.

    >>> network = gfn.Mlp((64, 64), backward="uniform").build(gfn.HyperGrid(2, 8))
    >>> network.get_parameter("log_z").shape
    torch.Size([1])
    """

    hidden: Sequence[int] = (256, 256)
    activation: Activation = "relu"
    layer_norm: bool = False
    backward: Backward = "shared_torso"
    initial_log_z: float | None = None
    heads: int = 1
    weight_noise: float | None = None
    logit_scale: Sequence[int] | None = None
    log_z: torch.nn.Module | None = None

    def _values(self) -> dict[str, Any]:
        return {**_perceptron(self), "heads": plain(self.heads, "heads")}


@dataclass(frozen=True)
class SequenceNet(Policy):
    """A network whose input is the tokens written so far, for sequences that are written from left to right.

    kind
        The type of the layers: `lstm`, `gru`, or `transformer` (the default).
    width, layers, heads
        The width of embeddings, the number of layers, and the number of attention heads of `transformer`.
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.
    log_z
        A module that maps conditions `[n, C]` to log Z, `[n]` or `[n, 1]`. Only for trainers with conditions.

    In a trainer with conditions, a linear map of the condition is added to the embedding of each token.
    Sampling is slower with conditions, because each step reads the sequences from their start.

    >>> net = gfn.SequenceNet("gru", width=16, layers=1)
    >>> reward = lambda tokens: (tokens == 1).sum(axis=1)
    >>> gfn.Trainer(gfn.TokenSequence(3, 4), reward, net, batch=8).fit(2).steps_done
    2
    """

    kind: Literal["lstm", "gru", "transformer"] = "transformer"
    width: int = 64
    layers: int = 2
    heads: int = field(default=4, metadata=needs("kind", "transformer"))
    initial_log_z: float | None = None
    logit_scale: Sequence[int] | None = None
    log_z: torch.nn.Module | None = None

    def _values(self) -> dict[str, Any]:
        kind: Any = {"transformer": {"heads": self.heads}} if self.kind == "transformer" else self.kind
        net = {"kind": kind, "width": plain(self.width, "width"), "layers": plain(self.layers, "layers")}
        return {"net": net, "estimators": _estimators(self)}


@dataclass(frozen=True)
class SequenceModule(_OwnNetwork):
    """A network for sequences that are written from left to right, around a `torch.nn.Module`. The module's
    arguments are two int64 tensors: the tokens `[n, length]`, which are 0 at unwritten positions, and the
    number of written tokens `[n]`. In a trainer with conditions, the conditions of the sequences, `[n, C]`,
    are a third argument. The result is the embedding of each sequence, `[n, width]`.

    The module gets all tokens of a sequence in each call, like the module of a `VectorModule` with
    `inputs="entries"`. `SequenceNet` is faster for long sequences, because it keeps its hidden state between
    tokens. Each state has only one backward move, so P_B isn't learned, and there is no setting `backward`.
    `flow` and `log_z` are the settings of `VectorModule`.

    module
        The custom module.
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.
    logit_scale
        The widths of the hidden layers of a perceptron from a condition to a factor on the logits of P_F.
        None for no such factor.

    >>> class LastToken(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.token = torch.nn.Embedding(4, 8)
    ...     def forward(self, tokens, lengths):
    ...         last = tokens[torch.arange(len(tokens)), (lengths - 1).clamp(min=0)]
    ...         return self.token(last)
    >>> policy = gfn.SequenceModule(LastToken(), width=8)
    >>> reward = lambda tokens: (tokens == 1).sum(axis=1)
    >>> gfn.Trainer(gfn.TokenSequence(3, 4), reward, policy, batch=8).fit(2).steps_done
    2
    """

    _takes = "tokens and lengths"

    module: Callable[..., Any]
    width: int
    flow: torch.nn.Module | None = None
    log_z: torch.nn.Module | None = None
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
    """A transformer with linear attention between all pairs of nodes of an acyclic graph, as in DAG-GFlowNet
    (Deleu et al. 2022), for `BayesianStructure`.

    embedding, heads, layers
        The width of embeddings, the number of attention heads, and the number of layers.
    head_layers
        The number of additional layers of each head.
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.

    >>> reward = lambda graphs: graphs.sum(axis=(1, 2))
    >>> net = gfn.EdgeTransformer(embedding=8, heads=2)
    >>> gfn.Trainer(gfn.BayesianStructure(3), reward, net, batch=8).fit(2).steps_done
    2
    """

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
    """A perceptron that parametrises mixtures of Beta distributions, for `Box`.

    hidden, activation, layer_norm
        The widths of the hidden layers, their activation, and True for normalisation of layers.
    components
        The number of components of a mixture.
    backward
        P_B: `uniform`, or learned with the torso of P_F (`shared_torso`, the default) or a separate torso
        (`separate`).
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.

    >>> net = gfn.BoxNet((32, 32), components=4)
    >>> gfn.Trainer(gfn.Box(), gfn.BoxReward(), net, batch=8).fit(2).steps_done
    2
    """

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
    """A perceptron that parametrises mixtures of normal distributions, for `Line`.

    hidden, activation, layer_norm
        The widths of the hidden layers, their activation, and True for normalisation of layers.
    components
        The number of components of a mixture.
    backward
        P_B: `uniform`, or learned with the torso of P_F (`shared_torso`, the default) or a separate torso
        (`separate`).
    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.

    >>> net = gfn.LineNet((16,), components=3)
    >>> gfn.Trainer(gfn.Line(2), gfn.LineReward([(0.0, 1.0)]), net, batch=8).fit(2).steps_done
    2
    """

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
    """A network that computes the drift of a diffusion.

    langevin_clip
        The value at which the gradient of the target's log-density is clamped. The gradient times a learned
        function of time is added to the drift. With None, the gradient isn't used.
    network
        The sizes of the network's layers, by name.
    log_variance_range
        The largest change of the log-variance of a step, if this variance is to be learned. The standard
        deviation changes by a factor of at most exp(`log_variance_range` / 2). With None, the variance isn't
        learned.
    backward_range
        The largest change of P_B, if P_B is to be learned. The learned P_B is the P_B of the diffusion
        process, with its mean shifted by at most this number of standard deviations, and its standard
        deviation changed by a factor of at most exp(`backward_range`). With None, P_B isn't learned.

    initial_log_z
        The initial value of log Z, without conditions. None, the default, estimates it from the first batch.

    >>> net = gfn.DiffusionNet(langevin_clip=100.0, network={"hidden": 32})
    >>> gfn.Trainer(gfn.Diffusion(2, steps=5), gfn.MixtureTarget(), net, batch=8).fit(2).steps_done
    2
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
    """The uniform policy over legal actions, without parameters. It is used as a prior, as a baseline, and
    for evaluations that need no policy.

    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Uniform(), batch=8)
    >>> trainer.exact().tv > 0.1
    True
    """
