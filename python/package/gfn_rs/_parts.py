"""The parts of a trainer besides environment, reward, policy and objective, in the form that the extension
reads."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from . import _gfn
from ._conditions import check_presence
from ._conditions import checked as checked_conditions
from ._settings import plain, variant
from ._envs import Environment, Fragments
from ._objectives import Objective
from ._policies import DiffusionNet, Policy
from ._sources import (
    ChainSource,
    Data,
    FocusInHindsight,
    FreshSource,
    Hindsight,
    Mala,
    Replay,
    Search,
    Source,
    Teacher,
    Thompson,
)
from ._updates import Average


@dataclass
class Parts:
    """The parts of a trainer besides environment, reward, policy and objective. The extension reads each
    attribute."""

    prior: tuple[Policy, list[tuple[str, torch.Tensor]]] | None
    teacher: Teacher | None
    data: tuple[Any, torch.Tensor | None] | None
    source: Source | None
    fresh: FreshSource | Thompson | None
    search: Search | Mala | None
    chains: ChainSource | None
    hindsight: Hindsight | FocusInHindsight | None
    average: Average | None
    intrinsic: tuple[dict[str, Any], Any] | None
    target_network: int | None
    replay: dict[str, Any] | None
    priority: Any
    description: dict[str, Any]


def parts(
    env: Environment,
    policy: Policy,
    objective: Objective,
    n_conditions: int,
    sources: dict[str, Any],
    average: Average | None = None,
) -> Parts:
    """Builds the parts of a trainer, with all checks that Python can make. `sources` holds the sources of
    batches under the names of their roles, such as "replay buffer"."""
    replay = sources.get("replay buffer")
    data = sources.get("data set")
    source = sources.get("source of objects")
    fresh = sources.get("source of fresh trajectories")
    teacher = sources.get("teacher")
    search = sources.get("search")
    chains = sources.get("chains")
    hindsight = sources.get("relabelling of conditions")
    if teacher is not None:
        if _policy_tensors(policy) & _policy_tensors(teacher.policy):
            raise ValueError(
                "Teacher.policy has a module with the same tensors as a module of the policy: expected "
                "another module, such as copy.deepcopy(module)"
            )
        teacher.policy._check_used({"flow": False, "log_z": True}, "a teacher's trajectory balance")
    if source is not None and n_conditions > 0:
        raise ValueError(
            "sources has a Source, and the trainer has conditions: expected no Source, because its objects "
            "have no conditions; use Data or FreshSource"
        )
    if isinstance(search, Search) and n_conditions > 0:
        raise ValueError(
            "sources has a Search, and the trainer has conditions: expected no Search, because it finds "
            "objects without conditions"
        )
    if chains is not None and n_conditions > 0:
        raise ValueError(
            "sources has ChainSource, and the trainer has conditions: expected no ChainSource, as chains "
            "find objects without conditions"
        )
    prior = _prior(objective._prior(), env, n_conditions)
    description = {name: value for name, value in objective._parts().items() if value is not None}
    for name, part in (
        ("average", average),
        ("source", source),
        ("fresh", fresh),
        ("search", search),
        ("chains", chains),
        ("hindsight", hindsight),
    ):
        if part is not None:
            description[name] = part._described()
    if teacher is not None:
        description["teacher"] = [teacher.policy._by_class(), teacher._described()]
    if prior is not None:
        description["prior"] = [prior[0]._by_class(), _fingerprint(prior[1])]
    if data is not None:
        description["data"] = _fingerprint([("objects", data.objects), ("conditions", data.conditions)])
    return Parts(
        prior=prior,
        teacher=teacher,
        data=None if data is None else _given(env, data, n_conditions),
        source=source,
        fresh=fresh,
        search=search,
        chains=chains,
        hindsight=hindsight,
        average=average,
        intrinsic=objective._intrinsic(),
        target_network=getattr(objective, "target_network", None),
        replay=None if replay is None else replay._values(),
        priority=None if replay is None else replay._priority(),
        description=description,
    )


def shares(replay: Replay | None, data: Data | None) -> dict[str, Any]:
    """Returns the share of a batch that comes from the replay buffer, the share that comes from a data set,
    and the way in which trajectories to the objects of both are drawn."""
    if replay is None and data is None:
        return {}
    if replay is not None and data is not None and replay.path != data.path:
        raise ValueError(
            f"Replay.path is {replay.path!r} and Data.path is {data.path!r}: expected the same value for "
            "both"
        )
    replayed = 0.0 if replay is None else plain(replay.share, "Replay.share")
    given = 0.0 if data is None else plain(data.share, "Data.share")
    if replayed + given > 1.0:
        raise ValueError(f"Replay.share is {replayed} and Data.share is {given}: expected a sum of at most 1")
    path = data.path if data is not None else replay.path if replay is not None else ""
    out = {
        "source": {"on_policy": 1.0 - replayed - given, "replay": replayed, "offline": given},
        "replay_path": variant(path),
    }
    return out if replay is None else {**out, "replay_after": plain(replay.after, "Replay.after")}


def _prior(
    prior: Any, env: Environment, n_conditions: int
) -> tuple[Policy, list[tuple[str, torch.Tensor]]] | None:
    """Returns the settings of a prior's policy, and the current values of its parameters if the prior is a
    trainer."""
    if prior is None:
        return None
    if isinstance(prior, Policy):
        return prior, []
    if not _equal(prior.env, env):
        raise ValueError(
            f"prior is a trainer of {prior.env!r}: expected a trainer of the same environment, {env!r}"
        )
    if prior._n_conditions != n_conditions:
        raise ValueError(
            f"prior has {prior._n_conditions} numbers in a condition: expected {n_conditions}, as in the new "
            "trainer"
        )
    if isinstance(prior.policy, DiffusionNet) and prior.policy.langevin_clip is not None:
        raise ValueError(
            "prior is a trainer whose policy uses the gradient of its target "
            f"(langevin_clip={prior.policy.langevin_clip!r}): expected a trainer with langevin_clip=None"
        )
    # The prior gets copies of its modules, because otherwise training would change the prior's modules, too.
    # Only P_F of a prior is used, so that it needs no log F.
    own = prior.policy._own_modules()
    copied = copy.deepcopy({name: module for name, module in own.items() if name != "flow"})
    if any(_tensors(module) & _tensors(own[name]) for name, module in copied.items()):
        raise ValueError(
            "prior has a module that copy.deepcopy doesn't copy, so training would change it, too: expected "
            "a torch.nn.Module that can be copied"
        )
    changes = {**copied, **({"flow": None} if "flow" in own else {})}
    return (replace(prior.policy, **changes) if changes else prior.policy), [
        (name, tensor.detach()) for name, tensor in prior._session.parameters()
    ]


def _tensors(module: Any) -> set[int]:
    """Returns the memory addresses of all parameters and buffers of a module."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return {tensor.data_ptr() for _, tensor in named if tensor.numel() > 0}


def _policy_tensors(policy: Policy) -> set[int]:
    """Returns the memory addresses of the tensors of all custom modules of a policy."""
    return set().union(*(_tensors(module) for module in policy._own_modules().values()))


def _equal(one: Environment, other: Environment) -> bool:
    """Returns True if two environments are equal. Custom rules are equal only if they are the same object."""
    rules = getattr(one, "rules", None) is getattr(other, "rules", None)
    return type(one) is type(other) and rules and one._described() == other._described()


def _given(env: Environment, data: Data, n_conditions: int) -> tuple[Any, torch.Tensor | None]:
    """Returns the checked objects of a data set, and the conditions of these objects."""
    check_presence(data.conditions, n_conditions, "{} of given objects for a trainer")
    conditions = None
    if data.conditions is not None:
        conditions = checked_conditions(
            data.conditions, len(data.objects), n_conditions, "Data.conditions is"
        )
    if not isinstance(env, Fragments) or isinstance(data.objects, _gfn.Graphs):
        return data.objects, conditions
    trees = env._shared(data.objects)
    return trees.graphs, None if conditions is None else conditions[torch.from_numpy(trees.molecule)]


def _fingerprint(named: list[tuple[str, Any]]) -> str:
    """Returns a hash of named arrays, tensors and graphs. A run can be resumed only if its hash equals the
    hash in the checkpoint."""
    digest = hashlib.sha256()

    def take(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().numpy()
        if isinstance(value, _gfn.Graphs):
            for part in (value.n_nodes, value.edges, value.edge_ptr, value.node_classes, value.edge_classes):
                take(part)
            take(value.node_attributes)
            take(value.edge_attributes)
        elif (array := _array(value)) is not None:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        elif isinstance(value, (list, tuple)):
            digest.update(f"{len(value)}".encode())
            for item in value:
                take(item)
        else:
            digest.update(repr(value).encode())

    for name, value in named:
        digest.update(name.encode())
        take(value)
    return digest.hexdigest()


def _array(value: Any) -> npt.NDArray[Any] | None:
    """Converts a value to an array of numbers or texts. Returns None if this isn't possible. `_fingerprint`
    hashes this array instead of its `repr`, because the `repr` leaves out the middle of a long array."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    return None if array.dtype == object else array
