"""Generative Flow Networks: policies that build objects step by step, and that sample objects in proportion
to a reward.

>>> import gfn_rs as gfn
>>> trainer = gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=16), batch=16)
>>> _ = trainer.fit(10)
>>> len(trainer.sample(5))
5
"""

import atexit as _atexit
import mmap as _mmap
import os as _os
import re as _re
import time as _time
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version
from importlib.util import find_spec as _find_spec

# torch is imported before the extension, because the extension is linked to torch's libraries. A process must
# have only one libtorch.
import torch as _torch


def _linked() -> str:
    """Returns the version of torch that the extension was built with, such as "2.13". The version is read
    from the extension's file, because the extension can't be loaded with another version of torch."""
    spec = _find_spec("gfn_rs._gfn")
    if spec is None or spec.origin is None:
        raise ImportError(
            "the extension gfn_rs._gfn wasn't found: install gfn-rs, in a checkout by pip install ./python"
        )
    with open(spec.origin, "rb") as file, _mmap.mmap(file.fileno(), 0, access=_mmap.ACCESS_READ) as whole:
        # `find` is fast for a large file. A regular expression would be slower.
        at = whole.find(b"gfn-rs is linked to torch ")
        found = _re.match(rb"\D+(\d+\.\d+);", whole[at : at + 40]) if at >= 0 else None
    if found is None:
        raise ImportError(
            f"{spec.origin} doesn't say with which version of torch it was built: build gfn-rs again, in a "
            "checkout by pip install ./python"
        )
    return found.group(1).decode()


# The pattern matches releases only. Pre-releases (2.13.0a0, 2.13.0.dev20260101) are refused, because their
# symbols and the layout of their objects may differ.
_release = _re.fullmatch(r"(\d+\.\d+)\.\d+(\.post\d+)?(\+.*)?", _torch.__version__)
if _release is None or _release.group(1) != _linked():
    raise ImportError(
        f"gfn-rs was built with torch {_linked()}, but torch {_torch.__version__} is "
        f"installed{'' if _release else ', which is not a release'}: run pip install 'torch=={_linked()}.*', "
        "or build gfn-rs again with the installed torch"
    )

from . import _gfn  # noqa: E402
from ._gfn import GraphBatch, Graphs, Scores, set_threads  # noqa: E402
from ._conditioning import (  # noqa: E402
    Condition,
    Conditioning,
    Conditions,
    Dirichlet,
    Directions,
    Focus,
    GammaTemperature,
    LogUniformTemperature,
    OneOf,
    Temperature,
    UniformTemperature,
)
from ._declared import (  # noqa: E402
    AddEdge,
    AddNode,
    ClearEdgeAttribute,
    ClearNodeAttribute,
    Env,
    EnvRules,
    GraphEnv,
    GraphRules,
    RemoveEdge,
    RemoveNode,
    SetEdgeAttribute,
    SetNodeAttribute,
    VectorEnv,
    VectorMoves,
    VectorRules,
)
from ._envs import (  # noqa: E402
    BayesianStructure,
    BitSequence,
    Box,
    Clique,
    ColoredGraphs,
    Coverage,
    Cut,
    Diffusion,
    DiscreteEbm,
    DominatingSet,
    Encoding,
    Environment,
    Fragments,
    GraphBuilding,
    GraphProblem,
    HyperGrid,
    IndependentSet,
    Line,
    Molecules,
    NonAutoregressiveBitSequence,
    PerfectBinaryTree,
    PhyloTree,
    PrependAppendBitSequence,
    Ring,
    SetAddition,
    TokenSequence,
    ToyDag,
    Trees,
    Triangle,
)
from ._executors import Actors, ParallelReward  # noqa: E402
from ._exploration import EPSILON, Exploration  # noqa: E402
from ._judging import judge  # noqa: E402
from ._loading import load  # noqa: E402
from ._metrics import (
    hypervolume,
    maximum_mean_discrepancy,
    noise_floor,
    pareto_front,
    wasserstein2,
)  # noqa: E402
from ._molecules import (  # noqa: E402
    Factor,
    MoleculeScore,
    MoleculesRead,
    Ranking,
    canonical_smiles,
    read_molecules,
)
from ._objectives import (  # noqa: E402
    AlphaDivergence,
    AugmentedDetailedBalance,
    AugmentedTrajectoryBalance,
    DetailedBalance,
    FlowMatching,
    LogPartitionDeviation,
    LogPartitionVariance,
    MaximumLikelihood,
    ModifiedDetailedBalance,
    Objective,
    OwnObjective,
    PolicyGradient,
    ProximalPolicy,
    RandomDistillation,
    RelativeLogPartitionVariance,
    RelativeTrajectoryBalance,
    SubTrajectoryBalance,
    TrajectoryBalance,
    TrustPcl,
)
from ._policies import (  # noqa: E402
    BoxNet,
    DagModule,
    DiffusionNet,
    EdgeMlp,
    EdgeTransformer,
    GraphModule,
    GraphNet,
    LineNet,
    Mlp,
    Policy,
    SequenceModule,
    SequenceNet,
    Uniform,
    VectorModule,
)
from ._results import (  # noqa: E402
    Correlation,
    Detection,
    Distances,
    EdgeComparison,
    Estimate,
    Exact,
    HeldOut,
    NoiseFloor,
    ObjectEvaluation,
    OrderSamples,
    SampleEvaluation,
    StructureMarginals,
    TopK,
)
from ._rewards import (  # noqa: E402
    BoxReward,
    CachedReward,
    ColoredGraphReward,
    ConditionalGridReward,
    CoxTarget,
    ExternalReward,
    FunnelTarget,
    GaussianTarget,
    HammingReward,
    HyperGridReward,
    IsingReward,
    LineReward,
    ManyWellTarget,
    MixtureTarget,
    MoleculeReward,
    ParsimonyReward,
    PosteriorTarget,
    Reward,
    RingReward,
    SizeReward,
    TableReward,
    ToyReward,
    TriangleReward,
    WeightReward,
)
from ._schedules import Constant, Cosine, Exponential, InverseRoot, Linear, Schedule  # noqa: E402
from ._sources import (  # noqa: E402
    BatchRequest,
    ChainSource,
    Data,
    FocusInHindsight,
    FreshObjects,
    FreshSource,
    Hindsight,
    LocalSearch,
    Mala,
    Replay,
    Search,
    Source,
    Teacher,
    Thompson,
)
from ._networks import Evaluation, Network  # noqa: E402
from ._solving import Progress, Solution, solve  # noqa: E402
from ._steps import Masks, Moves, Step  # noqa: E402
from ._structures import (  # noqa: E402
    EdgePenalty,
    ErdosRenyiPrior,
    FairPrior,
    StructureReward,
    compare_structures,
    draw_structures,
    edge_marginals,
    order_mcmc,
    structure_marginals,
    structure_report,
)
from ._tensors import TensorEnv, TensorReward, TensorRules  # noqa: E402
from ._training import BufferContents, Trainer, TrainingWarning  # noqa: E402
from ._trajectories import Sampler, Trajectories, Transitions  # noqa: E402
from ._updates import LR_SCALE, Adam, Average, TransitionBatches  # noqa: E402

# The largest number of seconds that the Python interpreter waits for daemon threads before it ends.
_PATIENCE = 10.0


def _end() -> None:
    """Waits, before the Python interpreter ends, until daemon threads have returned from the library. A
    thread that returned later, to an interpreter that has ended, would abort the process."""
    _gfn.end()
    until = _time.monotonic() + _PATIENCE
    while _gfn.calls() and _time.monotonic() < until:
        _time.sleep(0.005)


_atexit.register(_end)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_gfn.forked)

try:
    __version__ = _version("gfn-rs")
except _PackageNotFoundError:
    __version__ = "unknown"

# Type checkers need a literal list. A test compares it with the names that are imported above.
__all__ = [
    "Actors",
    "Adam",
    "AddEdge",
    "AddNode",
    "AlphaDivergence",
    "AugmentedDetailedBalance",
    "AugmentedTrajectoryBalance",
    "Average",
    "BatchRequest",
    "BayesianStructure",
    "BitSequence",
    "Box",
    "BoxNet",
    "BoxReward",
    "BufferContents",
    "CachedReward",
    "ChainSource",
    "ClearEdgeAttribute",
    "ClearNodeAttribute",
    "Clique",
    "ColoredGraphReward",
    "ColoredGraphs",
    "Condition",
    "ConditionalGridReward",
    "Conditioning",
    "Conditions",
    "Constant",
    "Correlation",
    "Cosine",
    "Coverage",
    "CoxTarget",
    "Cut",
    "DagModule",
    "Data",
    "DetailedBalance",
    "Detection",
    "Diffusion",
    "DiffusionNet",
    "Directions",
    "Dirichlet",
    "DiscreteEbm",
    "Distances",
    "DominatingSet",
    "EPSILON",
    "EdgeComparison",
    "EdgeMlp",
    "EdgePenalty",
    "EdgeTransformer",
    "Encoding",
    "Env",
    "EnvRules",
    "Environment",
    "ErdosRenyiPrior",
    "Estimate",
    "Evaluation",
    "Exact",
    "Exploration",
    "Exponential",
    "ExternalReward",
    "Factor",
    "FairPrior",
    "FlowMatching",
    "Focus",
    "FocusInHindsight",
    "Fragments",
    "FreshObjects",
    "FreshSource",
    "FunnelTarget",
    "GammaTemperature",
    "GaussianTarget",
    "GraphBatch",
    "GraphBuilding",
    "GraphEnv",
    "GraphModule",
    "GraphNet",
    "GraphProblem",
    "GraphRules",
    "Graphs",
    "HammingReward",
    "HeldOut",
    "Hindsight",
    "HyperGrid",
    "HyperGridReward",
    "IndependentSet",
    "InverseRoot",
    "IsingReward",
    "LR_SCALE",
    "Line",
    "LineNet",
    "LineReward",
    "Linear",
    "LocalSearch",
    "LogPartitionDeviation",
    "LogPartitionVariance",
    "LogUniformTemperature",
    "Mala",
    "ManyWellTarget",
    "Masks",
    "MaximumLikelihood",
    "MixtureTarget",
    "Mlp",
    "ModifiedDetailedBalance",
    "MoleculeReward",
    "MoleculeScore",
    "Molecules",
    "MoleculesRead",
    "Moves",
    "Network",
    "NoiseFloor",
    "NonAutoregressiveBitSequence",
    "ObjectEvaluation",
    "Objective",
    "OneOf",
    "OrderSamples",
    "OwnObjective",
    "ParallelReward",
    "ParsimonyReward",
    "PerfectBinaryTree",
    "PhyloTree",
    "Policy",
    "PolicyGradient",
    "PosteriorTarget",
    "PrependAppendBitSequence",
    "Progress",
    "ProximalPolicy",
    "RandomDistillation",
    "Ranking",
    "RelativeLogPartitionVariance",
    "RelativeTrajectoryBalance",
    "RemoveEdge",
    "RemoveNode",
    "Replay",
    "Reward",
    "Ring",
    "RingReward",
    "SampleEvaluation",
    "Sampler",
    "Schedule",
    "Scores",
    "Search",
    "SequenceModule",
    "SequenceNet",
    "SetAddition",
    "SetEdgeAttribute",
    "SetNodeAttribute",
    "SizeReward",
    "Solution",
    "Source",
    "Step",
    "StructureMarginals",
    "StructureReward",
    "SubTrajectoryBalance",
    "TableReward",
    "Teacher",
    "Temperature",
    "TensorEnv",
    "TensorReward",
    "TensorRules",
    "Thompson",
    "TokenSequence",
    "TopK",
    "ToyDag",
    "ToyReward",
    "Trainer",
    "TrainingWarning",
    "Trajectories",
    "TrajectoryBalance",
    "TransitionBatches",
    "Transitions",
    "Trees",
    "Triangle",
    "TriangleReward",
    "TrustPcl",
    "Uniform",
    "UniformTemperature",
    "VectorEnv",
    "VectorModule",
    "VectorMoves",
    "VectorRules",
    "WeightReward",
    "canonical_smiles",
    "compare_structures",
    "draw_structures",
    "edge_marginals",
    "hypervolume",
    "judge",
    "load",
    "maximum_mean_discrepancy",
    "noise_floor",
    "order_mcmc",
    "pareto_front",
    "read_molecules",
    "set_threads",
    "solve",
    "structure_marginals",
    "structure_report",
    "wasserstein2",
]
