"""Generative Flow Networks: policies that build an object step by step, trained so that objects come out in proportion to a reward.

>>> import gfn_rs as gfn
>>> trainer = gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=16), batch=16)
>>> _ = trainer.fit(10)
>>> len(trainer.sample(5))
5
"""

import atexit as _atexit
import os as _os
import time as _time
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

# First: its libraries are those that the extension is linked to. There must be one libtorch in a process.
import torch as _torch


def _wanted() -> str:
    """The minor version of torch that the extension was built with; it can't say so itself, as it doesn't load beside another."""
    return "2.13"


if _torch.__version__.split("+")[0].split(".")[:2] != _wanted().split("."):
    raise ImportError(
        f"gfn-rs is linked to the libraries of torch {_wanted()}, and this is torch {_torch.__version__}: "
        f"pip install 'torch=={_wanted()}.*'"
    )

from . import _gfn  # noqa: E402
from ._gfn import GraphBatch, Graphs, Scores, VectorMoves, set_threads  # noqa: E402
from .conditioning import (  # noqa: E402
    Condition,
    Conditioning,
    Dirichlet,
    Directions,
    Focus,
    GammaTemperature,
    LogUniformTemperature,
    OneOf,
    Temperature,
    UniformTemperature,
)
from .declared import (  # noqa: E402
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
    VectorRules,
)
from .envs import (  # noqa: E402
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
    Triangle,
)
from .executors import Actors, ParallelReward  # noqa: E402
from .loading import load  # noqa: E402
from .metrics import hypervolume, maximum_mean_discrepancy, noise_floor, pareto_front, wasserstein2  # noqa: E402
from .objectives import (  # noqa: E402
    AugmentedDetailedBalance,
    AugmentedTrajectoryBalance,
    DetailedBalance,
    FlowMatching,
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
from .policies import (  # noqa: E402
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
from .records import read_record  # noqa: E402
from .results import Correlation, Distances, Estimate, Exact, NoiseFloor, Sampled, Tested, TopK  # noqa: E402
from .rewards import (  # noqa: E402
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
    StructureReward,
    TableReward,
    ToyReward,
    TriangleReward,
    WeightReward,
)
from .schedules import Constant, Cosine, Exponential, InverseRoot, Linear, Schedule  # noqa: E402
from .sources import (  # noqa: E402
    Average,
    Data,
    Drawn,
    FocusInHindsight,
    FreshSource,
    Hindsight,
    LocalSearch,
    Mala,
    Replay,
    Search,
    Source,
    Teacher,
    Wanted,
)
from .networks import Evaluation, Network  # noqa: E402
from .steps import Masks, Moves, Step  # noqa: E402
from .training import EPSILON, LR_SCALE, Stored, Trainer, TrainingWarning  # noqa: E402
from .trajectories import Sampler, Trajectories, Transitions  # noqa: E402

# Seconds that the end of Python waits for what daemon threads do in the library.
_PATIENCE = 10.0


def _end() -> None:
    """Daemon threads leave the library before Python ends: one that came back to it later would end the process by an abort."""
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

__all__ = [name for name, value in list(globals().items()) if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith("gfn_rs")]
