"""Policies that were built: torch modules that say what they make of states."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable

import numpy as np
import torch

from . import _gfn
from ._checks import count
from ._checks import seed as checked_seed
from ._conditions import checked as checked_conditions
from ._parts import parts
from ._settings import LARGEST_SIZE
from .objectives import DetailedBalance, LogPartitionVariance, Objective, TrajectoryBalance
from .policies import Policy, Uniform
from .steps import Moves
from .trajectories import Trajectories, paths_of

if TYPE_CHECKING:
    from .envs import Environment


class Evaluation:
    """What a policy says of a batch of states: tensors with gradients, one number for each legal move, or for each state."""

    def __init__(self, env: Environment, states: Any, said: dict[str, Any]) -> None:
        self._env, self._states = env, states
        self._forward, self._backward = said["forward"], said["backward"]
        self.log_flow: torch.Tensor | None = said["log_flow"]
        """log F of each state, `[n]`; None unless the policy was built with `flow`."""
        self.log_z: torch.Tensor | None = said["log_z"]
        """log Z, `[1]`; under conditions that of each, `[n]`. None of a policy without."""

    @property
    def log_pf(self) -> torch.Tensor:
        """log P_F of each of `moves`."""
        log_pf: torch.Tensor = self._forward[2]
        return log_pf

    @property
    def log_pb(self) -> torch.Tensor:
        """log P_B of each of `backward_moves`."""
        log_pb: torch.Tensor = self._backward[2]
        return log_pb

    @cached_property
    def moves(self) -> Moves:
        """The legal moves, as `env.moves(states)` gives them."""
        return self._named(self._forward, False)

    @cached_property
    def backward_moves(self) -> Moves:
        """The legal moves back, as `env.moves(states, backward=True)` gives them."""
        return self._named(self._backward, True)

    def _named(self, listed: Any, backward: bool) -> Moves:
        ptr, slots, _ = listed
        rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        return self._env._named(self._states, rows, slots.numpy(), backward)

    def __repr__(self) -> str:
        return f"Evaluation({len(self._forward[0]) - 1} states, {len(self.log_pf)} moves, {len(self.log_pb)} back)"


class _Scope(torch.nn.Module):
    """Parameters under a common name."""


class Network(torch.nn.Module):
    """A policy for one environment, as a module of torch: `GraphNet(embedding=64).build(env, seed=0)`.

    Its parameters are the library's own tensors, so any optimizer trains them. Called with states it says what it makes of each move
    (`Evaluation`), with gradients unless torch's are off; a `Sampler` draws trajectories of it, and `score` says what it makes of those.
    A `Trainer` takes it in place of settings, and trains the same tensors. A policy whose network is a module of your own has that
    module as `module`.

    `to` another device or kind of numbers builds it anew there: make optimizers afterwards, as of any module. Noise on weights
    (`weight_noise`) stands as it was drawn last, by a trainer's step; a `Sampler` draws without it.
    """

    def __init__(self, env: Environment, settings: Policy, session: _gfn.Session, made: dict[str, Any]) -> None:
        super().__init__()
        self.env, self.settings = env, settings
        self._made = made
        # True once a trainer has it.
        self._trained = False
        self._fixed: set[str] = set()
        self._take(session)

    @staticmethod
    def build(
        env: Environment,
        settings: Policy,
        seed: int = 0,
        *,
        flow: bool = False,
        paths: bool = False,
        n_conditions: int = 0,
        device: Any = "cpu",
        double: bool = False,
    ) -> Network:
        """A network of these settings, as `Policy.build` makes it."""
        from .envs import Environment

        if not isinstance(env, Environment) or type(env) is Environment:
            kind = env.__name__ if isinstance(env, type) else type(env).__name__
            raise TypeError(f"env is {kind}: expected one of the library's, an object of a class like Ring(4)")
        for name, value in (("flow", flow), ("double", double)):
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"{name} is {value!r:.200}: expected True or False")
        if flow and isinstance(settings, Uniform):
            raise ValueError("a uniform policy estimates no flow of states: expected flow=False")
        if not isinstance(device, (str, torch.device)):
            raise TypeError(f"device is {device!r:.200}: expected a text like \"cpu\", or a torch.device")
        made: dict[str, Any] = {"seed": checked_seed(seed), "flow": bool(flow), "paths": paths, "double": bool(double), "device": str(device)}
        made["n_conditions"] = count(n_conditions, "n_conditions", most=LARGEST_SIZE)
        return Network(env, settings, _session(env, settings, made), made)

    def _take(self, session: _gfn.Session) -> None:
        """Shows the parameters of a session as this module's."""
        self._session = session
        for name in list(self._modules):
            delattr(self, name)
        self._parameters.clear()
        self._buffers.clear()
        own = self.settings._module()
        known: set[int] = set()
        if isinstance(own, torch.nn.Module):
            self.module = own
            known = {id(tensor) for tensors in (own.parameters(), own.buffers()) for tensor in tensors}
        self._shown: list[tuple[dict[str, Any], str, torch.Tensor]] = []
        tensors = session.parameters()
        if not self._fixed:
            # Noise, as long as nobody has frozen anything; "" is the name of none.
            self._fixed = {path for path, tensor in tensors if not tensor.requires_grad} | {""}
        for path, tensor in tensors:
            if id(tensor) in known:
                continue
            *scopes, name = path.split(".")
            holder: torch.nn.Module = self
            for scope in scopes:
                if scope not in holder._modules:
                    holder.add_module(scope, _Scope())
                holder = holder.get_submodule(scope)
            self._shown.append((holder._buffers if path in self._fixed else holder._parameters, name, tensor))
            if path not in self._fixed:
                # The library's own tensor, and no copy of it: torch takes what is marked so for a parameter.
                tensor._is_param = True
                holder.register_parameter(name, tensor)  # type: ignore[arg-type]
            else:
                holder.register_buffer(name, tensor)

    def _check_own(self) -> None:
        """Refuses tensors that were put in the place of the library's own, which it wouldn't compute with."""
        for held, name, tensor in self._shown:
            if held.get(name) is not tensor:
                raise ValueError(
                    f"`{name}` is another tensor now, and the library computes with its own: write values into it (`load_state_dict` without "
                    "`assign=True`, `parameter.copy_(values)` under `torch.no_grad()`)"
                )

    def _given(self, take: Callable[[_gfn.Session], _gfn.Session]) -> _gfn.Session:
        """What a trainer makes of the policy; it stays here where none is made of it."""
        values = {name: value.detach().clone() for name, value in self._session.parameters()}
        try:
            return take(self._session)
        except BaseException:
            session = _session(self.env, self.settings, self._made)
            with torch.no_grad():
                for name, parameter in session.parameters():
                    parameter.copy_(values[name])
            self._take(session)
            raise

    def forward(self, states: Any, conditions: Any = None) -> Evaluation:
        """What the policy makes of states, as `env.initial` or `Sampler` gives them; under a condition each, `[n, C]`, if it has some."""
        under = self._conditions(conditions, len(states))
        self._check_own()
        return Evaluation(self.env, states, self._session.evaluate(states, under, self.has_flow, torch.is_grad_enabled()))

    def score(self, trajectories: Trajectories) -> _gfn.Scores:
        """What the policy makes of trajectories, with gradients: log P_F and log P_B of each transition, log Z, log F; and log R with the
        environment's correction for symmetry, of the log R that the trajectories know (`with_log_rewards`)."""
        paths = paths_of(trajectories, self.env)
        if trajectories.log_rewards is None:
            raise ValueError("nobody has asked a reward about these trajectories: expected log R of each, trajectories.with_log_rewards(values)")
        self._check_own()
        return self._session.score(paths, torch.is_grad_enabled())

    @property
    def has_flow(self) -> bool:
        """True if it estimates log F of states."""
        return bool(self._made["flow"])

    @property
    def n_conditions(self) -> int:
        """Numbers of a condition; 0 without."""
        return int(self._made["n_conditions"])

    def _conditions(self, conditions: Any, n: int) -> torch.Tensor | None:
        if (conditions is None) != (self.n_conditions == 0):
            there = "no conditions" if conditions is None else "conditions"
            raise ValueError(f"{there} for a policy with {self.n_conditions} numbers of them: expected them where it has some")
        return None if conditions is None else checked_conditions(conditions, n, self.n_conditions, "conditions is")

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Network:
        kind = torch.float64 if self._made["double"] else torch.float32
        before = torch.empty(0, dtype=kind, device=self._made["device"])
        after = fn(before)
        if (after.dtype, after.device) == (before.dtype, before.device):
            return self
        if self._trained:
            raise RuntimeError("a trainer's policy stays where it is: make the trainer with another `device` or `double`")
        if after.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"a policy of {after.dtype}: expected torch.float32 or torch.float64")
        if after.device.type not in ("cpu", "cuda"):
            raise TypeError(f"a policy on {after.device}: expected cpu or cuda")
        frozen = self._frozen()
        own = self.settings._module()
        if isinstance(own, torch.nn.Module):
            own._apply(fn)  # type: ignore[no-untyped-call]
        values = {name: value.detach().clone() for name, value in self._session.parameters()}
        made = self._made | {"double": after.dtype == torch.float64, "device": str(after.device)}
        session = _session(self.env, self.settings, made)
        with torch.no_grad():
            for name, parameter in session.parameters():
                parameter.copy_(values[name])
        self._made = made
        self._take(session)
        _freeze(self, frozen)
        return self

    def _frozen(self) -> list[str]:
        return [name for name, parameter in self.named_parameters() if not parameter.requires_grad]

    def share_memory(self) -> Network:
        raise TypeError("the tensors of a policy are the library's own, which no other process has: send the network, or its state_dict")

    def __copy__(self) -> Network:
        return copy.deepcopy(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        values = {name: value.detach().cpu() for name, value in self.state_dict().items()}
        return _again, (self.env, self.settings, self._made, values, self._frozen(), self.training)

    def extra_repr(self) -> str:
        return f"{self.settings!r}, {self.env!r}"


def _again(
    env: Environment, settings: Policy, made: dict[str, Any], values: dict[str, torch.Tensor], frozen: list[str], training: bool
) -> Network:
    """A network that was pickled or copied."""
    network = Network(env, settings, _session(env, settings, made), made)
    network.load_state_dict(values)
    _freeze(network, frozen)
    network.training = training
    return network


def _freeze(network: Network, names: list[str]) -> None:
    for name in names:
        network.get_parameter(name).requires_grad_(False)


def _nothing(states: Any, conditions: Any = None) -> Any:
    """log R of whoever has no reward."""
    return np.zeros(len(states))


def _session(env: Environment, settings: Policy, made: dict[str, Any]) -> _gfn.Session:
    """A policy on its own: nothing trains it, and its reward is never asked for more than a look."""
    backward: Any = "maximum_entropy" if made.get("paths") else None
    objective: Objective = DetailedBalance(backward=backward) if made["flow"] else TrajectoryBalance(backward=backward)
    if isinstance(settings, Uniform):
        # It has no log Z.
        objective = LogPartitionVariance()
    session: dict[str, Any] = {
        "rewards": [(None, _nothing, None)],
        "policy": settings._parts(),
        "objective": (objective._named(), None),
        "conditions": None,
        "n_conditions": made["n_conditions"],
        "training": {},
        "replay": None,
        "parts": parts(env, settings, objective, made["n_conditions"], {}),
        "description": {},
        "note": None,
        "seed": made["seed"],
        "device": made["device"],
        "double": made["double"],
    }
    return _gfn.Session(env._env, session)
