"""Tests that bad settings raise an exception of a fitting type, whose message names the value and the
expected values."""

import dataclasses
import os

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import INF, NAN, graph_trainer, refused, trainer, zero

WRONG = (TypeError, ValueError)
# Valid values for the settings of each class. The tests replace them by invalid values one by one.
GOOD = {
    gfn.Ring: {"n_nodes": 3},
    gfn.Triangle: {},
    gfn.ColoredGraphs: {"max_nodes": 3},
    gfn.GraphBuilding: {"max_nodes": 3},
    gfn.Molecules: {"max_atoms": 3},
    gfn.Fragments: {"max_fragments": 2},
    gfn.HyperGrid: {"ndim": 2, "height": 3},
    gfn.BitSequence: {"word_size": 1, "seq_size": 4},
    gfn.PrependAppendBitSequence: {"word_size": 1, "seq_size": 4},
    gfn.NonAutoregressiveBitSequence: {"word_size": 1, "seq_size": 4},
    gfn.TokenSequence: {"n_tokens": 3, "length": 3},
    gfn.DiscreteEbm: {"n": 3},
    gfn.SetAddition: {"n_items": 4, "max_items": 2},
    gfn.PerfectBinaryTree: {"depth": 3},
    gfn.PhyloTree: {"n": 4},
    gfn.BayesianStructure: {"nodes": 3},
    gfn.Box: {},
    gfn.Line: {},
    gfn.Diffusion: {"dim": 2},
    gfn.GraphNet: {},
    gfn.EdgeMlp: {},
    gfn.Mlp: {},
    gfn.SequenceNet: {},
    gfn.EdgeTransformer: {},
    gfn.BoxNet: {},
    gfn.LineNet: {},
    gfn.DiffusionNet: {},
    gfn.RingReward: {},
    gfn.TriangleReward: {},
    gfn.ColoredGraphReward: {},
    gfn.MoleculeReward: {},
    gfn.ExternalReward: {"command": ["true"]},
    gfn.CachedReward: {"reward": zero},
    gfn.HyperGridReward: {},
    gfn.HammingReward: {"modes": ["01"]},
    gfn.WeightReward: {"base": 1.0, "weights": [1.0]},
    gfn.ParsimonyReward: {"sequences": ["A", "C"], "offset": 1.0},
    gfn.TableReward: {"alphabet": "AC", "path": "table"},
    gfn.ToyReward: {"rewards": [1.0] * 6},
    gfn.BoxReward: {},
    gfn.LineReward: {"modes": [(0.0, 1.0)]},
    gfn.GaussianTarget: {"mean": [0.0]},
    gfn.MixtureTarget: {},
    gfn.FunnelTarget: {},
    gfn.ManyWellTarget: {},
    gfn.DetailedBalance: {},
    gfn.SubTrajectoryBalance: {},
    gfn.PolicyGradient: {},
    gfn.ProximalPolicy: {},
    gfn.TrajectoryBalance: {},
    gfn.LogPartitionVariance: {},
    gfn.LogPartitionDeviation: {},
    gfn.AlphaDivergence: {"alpha": 0.5},
    gfn.ModifiedDetailedBalance: {},
    gfn.RelativeTrajectoryBalance: {"prior": gfn.Uniform()},
    gfn.RelativeLogPartitionVariance: {"prior": gfn.Uniform()},
    gfn.TrustPcl: {"prior": gfn.Uniform()},
    gfn.AugmentedTrajectoryBalance: {"edges": 1.0},
    gfn.AugmentedDetailedBalance: {"edges": 1.0},
    gfn.RandomDistillation: {},
    gfn.Replay: {},
    gfn.ChainSource: {},
    gfn.Data: {"objects": [[0, 0]]},
    gfn.LocalSearch: {"max_back": 1},
    gfn.TransitionBatches: {"size": 4},
    gfn.Teacher: {"policy": gfn.Mlp((8,))},
    gfn.Search: {"function": zero},
    gfn.Mala: {},
    gfn.Source: {"function": zero},
    gfn.Hindsight: {"function": zero},
    gfn.Average: {},
    gfn.Adam: {},
    gfn.Exploration: {},
    gfn.Thompson: {"share": 0.5},
    gfn.Conditions: {"function": zero, "width": 1},
    gfn.Linear: {"from_": 1.0, "to": 0.0, "steps": 10},
    gfn.Constant: {"value": 1.0},
}
BAD = {
    "int": [-1, 2**70, -(2**70), True, 3.5, NAN, "3", [3], None, np.float64(3), object()],
    "float": ["1", NAN, INF, -INF, [1.0], None, True, 1j, torch.zeros(2)],
    "bool": ["yes", 2, None, 0.0, []],
    "Literal": ["nobody", 3, None, ["uniform"], b"gin", ""],
    "Sequence[int]": [3, "12", [1.5], [True], [[1]], None, [2**70], np.zeros((2, 2))],
    "Sequence[float]": [3.0, "12", ["1"], [NAN], [[1.0]], None, [INF]],
    "Sequence[str]": ["01", [1], 3, None, [None]],
    "str": [3, b"AC", None, ["A"]],
}


def settings_cases():
    for kind, good in GOOD.items():
        for field in dataclasses.fields(kind):
            for hint, values in BAD.items():
                choice = field.type.split(" | ")[0] in (
                    "Backward",
                    "Activation",
                    "Advantage",
                    "Critic",
                    "KlEstimator",
                    "Path",
                    "Regression",
                )
                fits = field.type.startswith(hint) or (hint == "Literal" and choice)
                for value in values if fits else []:
                    # Values that are valid for a setting are skipped. For example, a list of lines is valid
                    # instead of a file, and a list of names instead of a number of nodes.
                    if (
                        value is None
                        and "None" in field.type
                        or hint == "str"
                        and isinstance(value, list)
                        and "Sequence[str]" in field.type
                        or isinstance(value, list)
                        and "Iterable" in field.type
                    ):
                        continue
                    yield pytest.param(
                        kind,
                        {**good, field.name: value},
                        field.name,
                        id=f"{kind.__name__}-{field.name}-{value!r:.20}",
                    )


@pytest.mark.parametrize("kind, values, name", list(settings_cases()))
def test_settings_name_the_value_that_is_wrong(kind, values, name):
    refused(lambda: kind(**values), WRONG, rf"(?s){kind.__name__}\.{name} is .*: expected")


# Invalid settings of environments: the call, the expected type of the exception, and a text in its message.
ENVIRONMENTS = [
    (lambda: gfn.Ring(), TypeError, "n_nodes"),
    (lambda: gfn.Ring(3, True, 4), TypeError, "positional"),
    (lambda: gfn.Ring(nodes=3), TypeError, "Ring has no setting `nodes`: did you mean `n_nodes`"),
    (lambda: gfn.Ring(0), ValueError, "nodes is 0, expected 2 to 20"),
    (lambda: gfn.Ring(10**12), ValueError, "n_nodes is 1000000000000"),
    (lambda: gfn.Triangle(0), ValueError, "node classes is 0"),
    (lambda: gfn.ColoredGraphs(0), ValueError, "max_nodes is 0, expected 1 to 64"),
    (lambda: gfn.ColoredGraphs(1000), ValueError, "max_nodes is 1000, expected 1 to 64"),
    (lambda: gfn.GraphBuilding(0), ValueError, "max_nodes is 0"),
    (lambda: gfn.GraphBuilding(10**6), ValueError, "number of slots"),
    (lambda: gfn.GraphBuilding(3, min_nodes=4), ValueError, "min_nodes is 4, although max_nodes is 3"),
    (lambda: gfn.GraphBuilding(3, min_nodes=10**12), ValueError, "min_nodes is 1000000000000"),
    (lambda: gfn.GraphBuilding(4, min_nodes=4, max_edges=1, attached=True), ValueError, "min_nodes is 4"),
    (lambda: gfn.GraphBuilding(3, node_classes=0), ValueError, "node_classes is 0"),
    (lambda: gfn.GraphBuilding(3, edge_classes=0), ValueError, "edge_classes is 0"),
    (lambda: gfn.GraphBuilding(3, node_attributes=[0]), ValueError, "one to seven attributes"),
    (lambda: gfn.GraphBuilding(3, node_attributes=[1] * 8), ValueError, "one to seven attributes"),
    (lambda: gfn.GraphBuilding(3, edge_attributes=[-1]), ValueError, "edge_attributes is -1"),
    (lambda: gfn.Molecules(0), ValueError, "max_atoms is 0"),
    (lambda: gfn.Molecules(10**6), ValueError, "number of slots"),
    (lambda: gfn.Molecules(3, elements=[]), ValueError, "elements is .*one or more"),
    (lambda: gfn.Molecules(3, elements=["C", "C"]), ValueError, "elements is .*each listed once"),
    (lambda: gfn.Molecules(3, elements=["Xx"]), ValueError, "elements is Xx, expected symbols"),
    (lambda: gfn.Molecules(3, elements=["c"]), ValueError, "elements is c, expected symbols"),
    (lambda: gfn.Molecules(3, elements=["H"]), ValueError, "elements is H, expected symbols"),
    (lambda: gfn.Molecules(3, max_bond_order=0), ValueError, "max_bond_order is 0, expected 1, 2 or 3"),
    (lambda: gfn.Molecules(3, max_bond_order=4), ValueError, "max_bond_order is 4, expected 1, 2 or 3"),
    (lambda: gfn.Molecules(3, max_ring_size=2), ValueError, "max_ring_size"),
    (
        lambda: gfn.Molecules(8, scaffold="c1ccc([*:1])cc1", stereo=True),
        ValueError,
        "stereo is set together with a scaffold, expected stereochemistry",
    ),
    (lambda: gfn.Fragments(0), ValueError, "max_fragments is 0"),
    (lambda: gfn.Fragments(10**12), ValueError, "max_fragments is 1000000000000"),
    (lambda: gfn.Fragments(2, library="/nowhere/fragments"), FileNotFoundError, "/nowhere/fragments"),
    (lambda: gfn.Fragments(2, library=os.path.dirname(__file__)), IsADirectoryError, "tests"),
    (lambda: gfn.Fragments(2, library=__file__), ValueError, "line 1: .*expected a SMILES"),
    (lambda: gfn.HyperGrid(0, 8), ValueError, "ndim is 0"),
    (lambda: gfn.HyperGrid(2, 1), ValueError, "height is 1, expected 2 to 65,536"),
    (lambda: gfn.HyperGrid(10**12, 8), ValueError, "ndim is 1000000000000"),
    (lambda: gfn.HyperGrid(8, 10**12), ValueError, "height is 1000000000000"),
    (lambda: gfn.BitSequence(0, 4), ValueError, "word_size is 0"),
    (lambda: gfn.BitSequence(3, 4), ValueError, "seq_size is 4 .*multiple"),
    (lambda: gfn.BitSequence(64, 64), ValueError, "word_size is 64"),
    (lambda: gfn.TokenSequence(0, 3), ValueError, "n_tokens is 0"),
    (lambda: gfn.TokenSequence(10**12, 3), ValueError, "n_tokens is 1000000000000"),
    (lambda: gfn.TokenSequence(3, 0), ValueError, "length of sequences is 0"),
    (lambda: gfn.TokenSequence(3, 3, 4), ValueError, "length of sequences is 4 to 3"),
    (lambda: gfn.DiscreteEbm(0), ValueError, "n is 0"),
    (lambda: gfn.SetAddition(4, 5), ValueError, "max_items is 5, but there are 4 items"),
    (lambda: gfn.SetAddition(4, 0), ValueError, "max_items is 0, but there are 4 items"),
    (lambda: gfn.PerfectBinaryTree(0), ValueError, "depth is 0"),
    (lambda: gfn.PerfectBinaryTree(10**12), ValueError, "depth is 1000000000000"),
    (lambda: gfn.PhyloTree(1), ValueError, "n is 1, expected 2 to 1,000"),
    (lambda: gfn.PhyloTree(10**12), ValueError, "n is 1000000000000"),
    (lambda: gfn.BayesianStructure(0), ValueError, "nodes is 0"),
    (lambda: gfn.BayesianStructure(10**12), ValueError, "nodes is 1000000000000"),
    (
        lambda: gfn.BayesianStructure(3, forbidden=[(0, 3)]),
        ValueError,
        "variable 3: expected indices from 0 to 2",
    ),
    (lambda: gfn.BayesianStructure(3, forbidden=[(0, 0)]), ValueError, r"edge \(0, 0\) doesn't join"),
    (lambda: gfn.BayesianStructure(3, forbidden=[(0, -1)]), ValueError, "forbidden is -1"),
    (lambda: gfn.BayesianStructure(3, required=[(0, 1), (1, 0)]), ValueError, "directed cycle"),
    (
        lambda: gfn.BayesianStructure(3, required=[(0, 1)], forbidden=[(0, 1)]),
        ValueError,
        "both required and forbidden",
    ),
    (lambda: gfn.BayesianStructure(3, required=[(0,)]), TypeError, "required is .*expected a list"),
    (lambda: gfn.BayesianStructure(3, required=[0, 1]), TypeError, "required is .*expected a list"),
    (lambda: gfn.BayesianStructure(3, required="ab"), TypeError, "required is 'ab'"),
    (lambda: gfn.Box(0), ValueError, "number of axes is 0"),
    (lambda: gfn.Box(3, polar=True), ValueError, "polar box is 3, expected 2"),
    (lambda: gfn.Box(2, 0.0), ValueError, "delta is 0"),
    (lambda: gfn.Box(2, -0.1), ValueError, "delta is -0.1"),
    (lambda: gfn.Box(2, 1.5), ValueError, "delta is 1.5"),
    (lambda: gfn.Line(0), ValueError, "number of steps is 0"),
    (lambda: gfn.Line(10**12), ValueError, "n_steps is 1000000000000"),
    (lambda: gfn.Diffusion(0), ValueError, "dimension is 0"),
    (lambda: gfn.Diffusion(2, 0), ValueError, "number of steps is 0"),
    (lambda: gfn.Diffusion(2, 10**12), ValueError, "number of steps is 1000000000000"),
    (lambda: gfn.Diffusion(2, sigma=0.0), ValueError, "sigma is 0"),
    (lambda: gfn.Diffusion(2, sigma=-1.0), ValueError, "sigma is -1"),
    (lambda: gfn.ToyDag(3), TypeError, "positional"),
]

SETTINGS = [
    (lambda: gfn.Trainer(), TypeError, "env"),
    (lambda: gfn.Trainer(gfn.Ring(3)), TypeError, "reward"),
    (lambda: gfn.Trainer(gfn.Ring(3), gfn.RingReward()), TypeError, "policy"),
    (lambda: trainer(None), TypeError, "env is NoneType"),
    (lambda: trainer("ring"), TypeError, "env is str"),
    (lambda: trainer(gfn.Ring), TypeError, "env is Ring: expected .*object"),
    (lambda: trainer(gfn.Mlp()), TypeError, "env is Mlp"),
    (lambda: trainer(gfn.Environment()), TypeError, "env is Environment"),
    (lambda: trainer(policy=None), TypeError, "policy is NoneType"),
    (lambda: trainer(policy=gfn.Mlp), TypeError, "policy is Mlp"),
    (lambda: trainer(policy=gfn.Policy()), TypeError, "policy is Policy"),
    (lambda: trainer(policy=torch.nn.Linear(2, 2)), TypeError, "policy is Linear"),
    (lambda: trainer(objective="TB"), TypeError, "objective is str"),
    (lambda: trainer(objective=gfn.DetailedBalance), TypeError, "objective is DetailedBalance"),
    (lambda: trainer(objective=gfn.Objective()), TypeError, "objective is Objective"),
    (lambda: trainer(objective=torch.nn.MSELoss()), TypeError, "objective is MSELoss"),
    (lambda: trainer(reward=None), TypeError, "reward is NoneType"),
    (lambda: trainer(reward=3), TypeError, "reward is int"),
    (lambda: trainer(reward="ring"), TypeError, "reward is str"),
    (
        lambda: trainer(reward=[zero, zero]),
        ValueError,
        "number of rewards of a trainer is 2, expected one reward, or a `Conditioning`",
    ),
    (lambda: trainer(reward=[]), ValueError, "number of rewards of a trainer is 0"),
    (lambda: trainer(reward=[zero, 3]), TypeError, "reward is int"),
    (lambda: trainer(reward=gfn.HyperGridReward), TypeError, "reward is HyperGridReward"),
    (lambda: trainer(reward=gfn.Reward()), TypeError, "reward is Reward"),
    (lambda: trainer(unknown=3), TypeError, "unknown"),
    (lambda: trainer(batch=0), ValueError, "batch is 0"),
    (lambda: trainer(batch=-1), ValueError, "batch is -1"),
    (lambda: trainer(batch="8"), TypeError, "batch is '8'"),
    (lambda: trainer(batch=True), TypeError, "batch is True"),
    (lambda: trainer(batch=3.5), TypeError, "batch is 3.5"),
    (lambda: trainer(batch=None), TypeError, "batch is None"),
    (lambda: trainer(batch=2**70), ValueError, "batch is 1180591620717411303424"),
    (lambda: trainer(adam=gfn.Adam(lr=-1.0)), ValueError, "lr is -1"),
    (lambda: trainer(adam=gfn.Adam(lr=NAN)), ValueError, "lr is nan"),
    (lambda: trainer(adam=gfn.Adam(lr="x")), TypeError, "lr is 'x'"),
    (lambda: trainer(adam=gfn.Adam(log_z_lr=-1.0)), ValueError, "log_z_lr is -1"),
    (lambda: trainer(adam=gfn.Adam(log_z_lr=INF)), ValueError, "log_z_lr is inf"),
    (lambda: trainer(adam=gfn.Adam(weight_decay=-1.0)), ValueError, "weight_decay is -1"),
    (lambda: trainer(adam=gfn.Adam(max_norm=0.0)), ValueError, "max_norm is 0"),
    (lambda: trainer(adam=gfn.Adam(max_norm="1")), TypeError, "max_norm is '1'"),
    (lambda: trainer(exploration=gfn.Exploration(epsilon=1.5)), ValueError, "epsilon is 1.5"),
    (lambda: trainer(exploration=gfn.Exploration(epsilon=-0.1)), ValueError, "epsilon is -0.1"),
    (lambda: trainer(exploration=gfn.Exploration(epsilon=gfn.Linear)), TypeError, "epsilon is .*Linear"),
    (
        lambda: trainer(exploration=gfn.Exploration(epsilon=gfn.Linear(0.5, -0.5, 10))).fit(20),
        ValueError,
        "epsilon is -",
    ),
    (lambda: trainer(exploration=gfn.Exploration(temperature=0.0)), ValueError, "temperature is 0"),
    (lambda: trainer(exploration=gfn.Exploration(temperature=None)), TypeError, "temperature is None"),
    (
        lambda: trainer(exploration=gfn.Exploration(temperature=gfn.Linear(1, 0, 5))).fit(10),
        ValueError,
        "temperature is 0",
    ),
    (lambda: trainer(exploration=gfn.Exploration(exit_bias=NAN)), ValueError, "exit_bias is nan"),
    (lambda: trainer(exploration=gfn.Exploration(noise=-1.0)), ValueError, "noise is -1"),
    (lambda: trainer(exploration=gfn.Exploration(noise=1.0)).fit(1), ValueError, "noise is 1, expected 0"),
    (lambda: trainer(adam=gfn.Adam(schedule=-1.0)), ValueError, "Adam.schedule is -1"),
    (lambda: trainer(adam=gfn.Adam(schedule=gfn.Exponential(1, 0, 10))), ValueError, "exponential schedule"),
    (lambda: trainer(adam=gfn.Adam(schedule=gfn.InverseRoot(1, 0))), ValueError, "inverse root"),
    (
        lambda: trainer(objective=gfn.TrajectoryBalance(regression="cubed")),
        ValueError,
        "regression is 'cubed'",
    ),
    (lambda: trainer(adam=gfn.Adam(chunk=0)), ValueError, "chunk is 0"),
    (lambda: trainer(adam=gfn.Adam(chunk="all")), TypeError, "chunk is 'all'"),
    (lambda: trainer(exploration=gfn.Exploration(max_steps=0)).fit(1), RuntimeError, "within 0 steps"),
    (lambda: trainer(exploration=gfn.Exploration(max_steps=-1)), ValueError, "max_steps is -1"),
    (lambda: trainer(seed=-1), ValueError, "seed is -1"),
    (lambda: trainer(seed=2**64), ValueError, "seed is 18446744073709551616"),
    (lambda: trainer(seed=1.0), TypeError, "seed is 1.0"),
    (lambda: trainer(seed=None), TypeError, "seed is None"),
    (lambda: trainer(device="tpu"), ValueError, "device is `tpu`, expected cpu, cuda"),
    (lambda: trainer(device=""), ValueError, "device is ``"),
    (lambda: trainer(device="cuda:99"), ValueError, "cuda:99"),
    (lambda: trainer(device=None), TypeError, "device is None"),
    (lambda: trainer(device=torch.device("meta")), ValueError, "device is `meta`, expected cpu, cuda"),
    (lambda: trainer(double="yes"), TypeError, "double is 'yes'"),
    (
        lambda: trainer(sources=gfn.Replay()),
        TypeError,
        r"sources is Replay\(.*expected a list of objects like Replay\(\)",
    ),
    (lambda: trainer(sources=[gfn.Replay]), TypeError, "sources has .*Replay"),
    (lambda: trainer(sources=[100]), TypeError, "sources has 100"),
    (
        lambda: trainer(sources=[gfn.Replay(), gfn.Replay()]),
        ValueError,
        "has Replay and Replay: expected at most one replay buffer, remove",
    ),
    (
        lambda: trainer(sources=[gfn.Search(zero), gfn.Mala()]),
        ValueError,
        "has Search and Mala: expected at most one search, remove",
    ),
    (
        lambda: trainer(sources=[gfn.Hindsight(zero), gfn.FocusInHindsight()]),
        ValueError,
        "has Hindsight and FocusInHindsight: expected at most one relabelling of conditions",
    ),
    (
        lambda: trainer(sources=[gfn.FreshSource(zero), gfn.Thompson(0.5)]),
        ValueError,
        "has FreshSource and Thompson: expected at most one source of fresh trajectories",
    ),
    (lambda: trainer(adam=0.1), TypeError, r"adam is 0.1: expected Adam\(...\)"),
    (lambda: trainer(adam=torch.optim.Adam), TypeError, r"adam is .*: expected Adam\(...\)"),
    (lambda: trainer(exploration=0.1), TypeError, r"exploration is 0.1: expected Exploration\(...\)"),
    (lambda: trainer(sources=[gfn.Replay(0)]), ValueError, "capacity is 0"),
    (lambda: trainer(sources=[gfn.Replay(share=1.5)]), ValueError, "share"),
    (
        lambda: trainer(gfn.Box(), policy=gfn.BoxNet((8,)), sources=[gfn.Replay(distinct=True)]),
        ValueError,
        "distinct is true",
    ),
    (
        lambda: trainer(sources=[gfn.Replay()], objective=gfn.PolicyGradient()).fit(15),
        ValueError,
        "replay and other sources",
    ),
]

PAIRS = [
    (lambda: trainer(policy=gfn.GraphNet()), TypeError, "GraphNet isn't a policy for vectors"),
    (lambda: trainer(policy=gfn.SequenceNet()), ValueError, "left to right"),
    (lambda: graph_trainer(policy=gfn.Mlp()), TypeError, "Mlp isn't a policy for graphs"),
    (lambda: graph_trainer(policy=gfn.SequenceNet()), TypeError, "SequenceNet isn't a policy for graphs"),
    (
        lambda: graph_trainer(policy=gfn.EdgeTransformer()),
        TypeError,
        "EdgeTransformer isn't a policy for graphs",
    ),
    (lambda: graph_trainer(policy=gfn.EdgeMlp()), ValueError, "fixed number of nodes"),
    (lambda: trainer(gfn.Box(), policy=gfn.Mlp()), TypeError, "expected BoxNet"),
    (lambda: trainer(gfn.Box(), policy=gfn.Uniform()), TypeError, "expected BoxNet"),
    (lambda: trainer(gfn.Line(), policy=gfn.BoxNet()), TypeError, "expected LineNet"),
    (lambda: trainer(gfn.Diffusion(2), policy=gfn.Mlp()), TypeError, "expected DiffusionNet"),
    (
        lambda: trainer(gfn.BayesianStructure(3), policy=gfn.EdgeMlp()),
        TypeError,
        "EdgeMlp isn't a policy for acyclic graphs",
    ),
    (lambda: trainer(policy=gfn.Mlp((0,))), ValueError, r"sizes of at least 1"),
    (lambda: graph_trainer(policy=gfn.GraphNet(embedding=0)), ValueError, "embedding is 0"),
    (lambda: graph_trainer(policy=gfn.GraphNet(closed_walks=0)), ValueError, "closed_walks is 0"),
    (lambda: graph_trainer(policy=gfn.GraphNet(conv="transformer", heads=3)), ValueError, "heads is 3"),
    (
        lambda: graph_trainer(policy=gfn.GraphNet(conv="transformer", norm="graph")),
        ValueError,
        'with `conv` "transformer", expected "layer" and "last"',
    ),
    (
        lambda: graph_trainer(gfn.Molecules(5), policy=gfn.GraphNet(conv="gin")),
        ValueError,
        r'expected a convolution that reads them \("auto", "gine", "gat", "gps" or "transformer"\)$',
    ),
    (
        lambda: graph_trainer(
            gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True), policy=gfn.GraphNet(symmetry="exact")
        ),
        ValueError,
        'in an environment of labelled graphs, expected "auto" or "ignored"',
    ),
    (lambda: trainer(gfn.BitSequence(1, 4), policy=gfn.SequenceNet(width=0)), ValueError, "0 wide"),
    (lambda: trainer(gfn.BitSequence(1, 4), policy=gfn.SequenceNet(heads=3)), ValueError, "heads is 3"),
    (
        lambda: trainer(gfn.BayesianStructure(3), policy=gfn.EdgeTransformer(heads=0)),
        ValueError,
        "heads is 64 and 0",
    ),
    (lambda: trainer(gfn.Box(), policy=gfn.BoxNet(components=0)), ValueError, "components is 0"),
    (lambda: trainer(gfn.Line(), policy=gfn.LineNet(components=0)), ValueError, "components is 0"),
    (
        lambda: trainer(gfn.Diffusion(2), policy=gfn.DiffusionNet(network={"nope": 3})),
        ValueError,
        "network.nope",
    ),
    (
        lambda: trainer(gfn.Diffusion(2), policy=gfn.DiffusionNet(network={"a": object()})),
        TypeError,
        "network.* is a object",
    ),
    (
        lambda: trainer(gfn.Diffusion(2), policy=gfn.DiffusionNet(langevin_clip=9.0)),
        ValueError,
        "langevin_clip",
    ),
    (lambda: trainer(reward=gfn.RingReward()), TypeError, "RingReward isn't a reward for vectors"),
    (
        lambda: trainer(reward=gfn.HammingReward(["01"])),
        TypeError,
        "HammingReward isn't a reward for the vectors of this",
    ),
    (
        lambda: graph_trainer(reward=gfn.MoleculeReward()),
        TypeError,
        "MoleculeReward isn't a reward for graphs other than molecules",
    ),
    (
        lambda: graph_trainer(reward=gfn.HyperGridReward()),
        TypeError,
        "HyperGridReward isn't a reward for graphs",
    ),
    (lambda: graph_trainer(gfn.Ring(3), gfn.ColoredGraphReward()).fit(1), ValueError, "undirected graph"),
    (
        lambda: graph_trainer(gfn.Triangle(2), gfn.MoleculeReward()),
        TypeError,
        "MoleculeReward isn't a reward for graphs other than molecules",
    ),
    (
        lambda: trainer(gfn.BayesianStructure(3), gfn.BoxReward()),
        TypeError,
        "isn't a reward for acyclic graphs",
    ),
    (
        lambda: trainer(gfn.Box(), gfn.LineReward([(0.0, 1.0)]), gfn.BoxNet()),
        TypeError,
        "isn't a reward for points of the unit box",
    ),
    (
        lambda: trainer(gfn.Line(), gfn.BoxReward(), gfn.LineNet()),
        TypeError,
        "isn't a reward for points of the line",
    ),
    (
        lambda: trainer(gfn.Diffusion(2), gfn.BoxReward(), gfn.DiffusionNet()),
        TypeError,
        "isn't a reward for points of a diffusion",
    ),
    (
        lambda: trainer(gfn.Diffusion(2), gfn.GaussianTarget([0.0] * 3), gfn.DiffusionNet()).fit(1),
        ValueError,
        "target's dimension",
    ),
    (
        lambda: trainer(gfn.Diffusion(4), gfn.ManyWellTarget(3), gfn.DiffusionNet()),
        ValueError,
        "is 3, expected an even",
    ),
    (
        lambda: trainer(gfn.Diffusion(2), gfn.GaussianTarget([0.0] * 2, 0.0), gfn.DiffusionNet()),
        ValueError,
        "standard deviations",
    ),
    (lambda: graph_trainer(gfn.Ring(3), gfn.RingReward(ring=-1.0)), ValueError, "-1 for objects"),
    (lambda: graph_trainer(gfn.Ring(3), gfn.RingReward(floor=0.0)), ValueError, "0 for all others"),
    (
        lambda: graph_trainer(gfn.Molecules(3), gfn.MoleculeReward(beta=1e308)).fit(1),
        FloatingPointError,
        "inf",
    ),
    (lambda: trainer(reward=gfn.HyperGridReward(preset="k1")), ValueError, "preset is k1"),
    (lambda: trainer(gfn.BitSequence(1, 4), gfn.HammingReward(["01"])), ValueError, "expected .4."),
    (lambda: trainer(gfn.BitSequence(1, 4), gfn.HammingReward([])), ValueError, "at least one mode"),
    (lambda: trainer(gfn.BitSequence(1, 4), gfn.HammingReward(["01a1"])), ValueError, "modes is 01a1"),
    (
        lambda: trainer(gfn.BitSequence(1, 4), gfn.HammingReward(["0101"], 0.0)),
        ValueError,
        "temperature is 0",
    ),
    (lambda: trainer(gfn.DiscreteEbm(3), gfn.IsingReward(np.zeros((2, 2)))), ValueError, "coupling"),
    (lambda: gfn.IsingReward(np.zeros(9)), ValueError, r"couplings has shape \(9,\)"),
    (lambda: gfn.IsingReward(np.full((3, 3), NAN)), ValueError, "couplings .*finite"),
    (lambda: gfn.IsingReward("abc"), TypeError, "couplings .*expected an array of numbers"),
    (lambda: trainer(gfn.SetAddition(4, 2), gfn.WeightReward(1.0, [1.0])), ValueError, "one weight per item"),
    (lambda: trainer(gfn.SetAddition(4, 2), gfn.WeightReward(-1.0, [1.0] * 4)), ValueError, "base is -1"),
    (lambda: trainer(gfn.SetAddition(4, 2), gfn.WeightReward(1.0, [-5.0] * 4)), ValueError, "weight is -5"),
    (
        lambda: trainer(gfn.PhyloTree(3), gfn.ParsimonyReward(["A", "C"], 1.0)),
        ValueError,
        "one sequence per species",
    ),
    (
        lambda: trainer(gfn.PhyloTree(3), gfn.ParsimonyReward(["A", "C", "GG"], 1.0)),
        ValueError,
        "all of one length",
    ),
    (
        lambda: trainer(gfn.TokenSequence(2, 2), gfn.TableReward("AC", "/nowhere")),
        FileNotFoundError,
        "/nowhere",
    ),
    (
        lambda: trainer(gfn.TokenSequence(2, 2), gfn.TableReward("AC", __file__)),
        ValueError,
        "line 1: .*expected a line",
    ),
    (
        lambda: trainer(gfn.TokenSequence(2, 2), gfn.TableReward("AA", __file__)),
        ValueError,
        "different characters",
    ),
    (lambda: gfn.ToyReward([1.0] * 5), ValueError, "5 numbers: expected 6"),
    (
        lambda: trainer(gfn.ToyDag(), gfn.ToyReward([0.0] * 6)),
        ValueError,
        "is 0, expected a finite number above 0",
    ),
    (
        lambda: gfn.StructureReward(np.zeros(3)),
        ValueError,
        r"shape \(3,\): expected \[observations, variables\]",
    ),
    (lambda: gfn.StructureReward(np.full((9, 3), NAN)), ValueError, "data has 9 missing values of 9"),
    (lambda: gfn.StructureReward([["a", "b"]]), TypeError, "column 'x0' of data has texts"),
    (lambda: gfn.StructureReward(np.zeros((9, 3)), "aic"), ValueError, "score is 'aic'"),
    (
        lambda: trainer(gfn.BayesianStructure(3), gfn.StructureReward(np.zeros((0, 3)))),
        ValueError,
        "at least one row",
    ),
    (
        lambda: trainer(gfn.BayesianStructure(3), gfn.StructureReward(np.zeros((1, 3)))),
        ValueError,
        "number of observations is 1",
    ),
    (
        lambda: trainer(gfn.BayesianStructure(3), gfn.StructureReward(np.zeros((9, 4)))).fit(1),
        ValueError,
        "one column for each node",
    ),
    (lambda: trainer(gfn.Box(), gfn.BoxReward(r0=0.0), gfn.BoxNet()), ValueError, "R0 > 0"),
    (lambda: trainer(gfn.Line(), gfn.LineReward([]), gfn.LineNet()), ValueError, "at least one"),
    (
        lambda: trainer(gfn.Line(), gfn.LineReward([(0.0, 0.0)]), gfn.LineNet()),
        ValueError,
        "standard deviation 0",
    ),
    (lambda: trainer(objective=gfn.SubTrajectoryBalance(lambda_=0.0)), ValueError, "lambda is 0"),
    (lambda: trainer(objective=gfn.SubTrajectoryBalance(lambda_=1.5)), ValueError, "lambda is 1.5"),
    (lambda: trainer(objective=gfn.PolicyGradient(gae_lambda=2.0)), ValueError, "lambda is 2"),
    (lambda: trainer(objective=gfn.ProximalPolicy(clip=0.0)).fit(1), ValueError, "clip is 0"),
    (lambda: trainer(objective=gfn.ProximalPolicy(epochs=0)).fit(1), ValueError, "epochs is 0"),
    (lambda: trainer(objective=gfn.ProximalPolicy(n_minibatches=0)).fit(1), ValueError, "n_minibatches is 0"),
    (
        lambda: trainer(objective=gfn.PolicyGradient("total", critic="lambda_returns")).fit(1),
        ValueError,
        "expected `returns`, or an advantage",
    ),
    (lambda: trainer(objective=gfn.DetailedBalance(True)).fit(1), ValueError, "partial states"),
    (lambda: trainer(objective=gfn.ModifiedDetailedBalance()).fit(1), ValueError, "partial states"),
    (
        lambda: trainer(gfn.PhyloTree(4), objective=gfn.ModifiedDetailedBalance()).fit(1),
        ValueError,
        "every state to be terminating",
    ),
    (
        lambda: graph_trainer(objective=gfn.TrajectoryBalance("maximum_entropy")).fit(1),
        ValueError,
        "backward policy that is learned",
    ),
    (
        lambda: trainer(gfn.Box(), policy=gfn.BoxNet((8,)), objective=gfn.FlowMatching()).fit(1),
        ValueError,
        "finite number of actions",
    ),
    (lambda: trainer(policy=gfn.Uniform()).fit(1), ValueError, "log Z estimator"),
    (
        lambda: trainer(policy=gfn.Uniform(), objective=gfn.DetailedBalance()).fit(1),
        ValueError,
        "state-flow estimator",
    ),
]


@pytest.mark.parametrize("call, kind, message", ENVIRONMENTS)
def test_environments_that_cannot_be(call, kind, message):
    refused(call, kind, message)


@pytest.mark.parametrize("call, kind, message", SETTINGS)
def test_settings_that_no_trainer_can_have(call, kind, message):
    refused(call, kind, message)


@pytest.mark.parametrize("call, kind, message", PAIRS)
def test_parts_that_do_not_go_together(call, kind, message):
    refused(call, kind, message)
