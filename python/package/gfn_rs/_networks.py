"""Networks that are built from the settings of a policy. A network is a torch module. Its policy is held by a
session, the object of the extension that also holds an environment and a trainer."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable, Generic

import numpy as np
import torch
from typing_extensions import Self

from . import _gfn
from ._checks import check_seed, count
from ._conditions import check_presence
from ._conditions import checked as checked_conditions
from ._parts import parts
from ._settings import LARGEST_SIZE, check, kind_name
from ._objectives import DetailedBalance, LogPartitionVariance, Objective, TrajectoryBalance
from ._policies import Policy, Uniform
from ._steps import Moves, States
from ._trajectories import Trajectories, paths_of

if TYPE_CHECKING:
    from ._envs import Environment


class Evaluation:
    """A policy's log-probabilities and flows for a batch of states, as tensors with gradients.
    Log-probabilities have one number per legal move, and flows one number per state.

    >>> env = gfn.HyperGrid(2, 3)
    >>> evaluation = gfn.Mlp((8,)).build(env)(env.initial())
    >>> evaluation.moves.describe(), round(float(evaluation.log_pf.detach().exp().sum()), 4)
    (['move(0, 0, 0)', 'move(0, 0, 1)', 'exit(0, 0, 2)'], 1.0)
    """

    def __init__(self, env: Environment, states: Any, said: Any) -> None:
        self._env, self._states = env, states
        self._forward, self._backward, log_flow, log_z = said
        self.log_flow: torch.Tensor | None = log_flow
        """log F of each state, `[n]`. None if the network was built without `flow`."""
        self.log_z: torch.Tensor | None = log_z
        """log Z, `[1]`; with conditions, log Z under the condition of each state, `[n]`. None if the policy
        doesn't estimate log Z."""

    @property
    def log_pf(self) -> torch.Tensor:
        """log P_F of each move in `moves`."""
        log_pf: torch.Tensor = self._forward[2]
        return log_pf

    @property
    def log_pb(self) -> torch.Tensor:
        """log P_B of each move in `backward_moves`."""
        log_pb: torch.Tensor = self._backward[2]
        return log_pb

    @cached_property
    def moves(self) -> Moves:
        """The legal moves, as `env.moves(states)` returns them."""
        return self._named(self._forward, False)

    @cached_property
    def backward_moves(self) -> Moves:
        """The legal backward moves, as `env.moves(states, backward=True)` returns them."""
        return self._named(self._backward, True)

    def _named(self, listed: Any, backward: bool) -> Moves:
        ptr, slots, _ = listed
        rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        return self._env._named(self._states, rows, slots.numpy(), backward)

    def __repr__(self) -> str:
        return (f"Evaluation({len(self._forward[0]) - 1} states, {len(self.log_pf)} moves, "
                f"{len(self.log_pb)} "
            f"back)")


class _Scope(torch.nn.Module):
    """A module that holds the parameters whose names have the same prefix."""


class Network(torch.nn.Module, Generic[States]):
    """A policy for one environment, as a torch module: `GraphNet(embedding=64).build(env, seed=0)`.

    The parameters of a network are the library's own tensors, so any optimizer can train them. A call with
    states returns an `Evaluation`, with gradients unless torch's gradients are off. A `Sampler` draws
    trajectories from the network, and `score` computes their log-probabilities. A `Trainer` accepts the
    network instead of a policy's settings, and trains the network's own parameters. The custom modules of the
    policy are submodules under the names of their settings: `module`, `backward`, `flow` and `log_z`.

    `to` with another device or dtype replaces the parameters, so create optimizers after this call, as for
    any module. Only a trainer's steps use noise on weights (`weight_noise`); a `Sampler` draws without noise.

    >>> env = gfn.HyperGrid(2, 3)
    >>> network = gfn.Mlp((8,)).build(env, seed=0)
    >>> network(env.initial(2)).log_pf.shape
    torch.Size([6])
    """

    def __init__(
        self,
        env: Environment[States],
        settings: Policy,
        session: _gfn.Session,
        build_settings: dict[str, Any],
    ) -> None:
        super().__init__()
        self.env, self.settings = env, settings
        self._build_settings = build_settings
        # True once a trainer has trained this network.
        self._trained = False
        self._fixed_names: set[str] = set()
        self._show_parameters(session)

    @staticmethod
    def build(
        env: Environment[States],
        settings: Policy,
        seed: int = 0,
        *,
        flow: bool = False,
        paths: bool = False,
        n_conditions: int = 0,
        device: Any = "cpu",
        double: bool = False,
    ) -> Network[States]:
        """Builds a network from settings, as `Policy.build` does."""
        from ._envs import Environment

        if not isinstance(env, Environment) or type(env) is Environment:
            raise TypeError(
                f"env is {kind_name(env)}: expected an environment of the library, such as Ring(4)"
            )
        check(flow, "flow", bool)
        check(double, "double", bool)
        if not flow and "flow" in settings._own_modules():
            raise ValueError(
                f"flow is False, but {kind_name(settings)}.flow is a module: expected flow=True, or a policy "
                "without a module of log F"
            )
        if flow and isinstance(settings, Uniform):
            raise ValueError(
                "flow is True for a uniform policy, which estimates no state flows: expected flow=False"
            )
        if not isinstance(device, (str, torch.device)):
            raise TypeError(f"device is {device!r:.200}: expected a text like \"cpu\", or a torch.device")
        build_settings: dict[str, Any] = {
            "seed": check_seed(seed),
            "flow": bool(flow),
            "paths": paths,
            "double": bool(double),
            "device": str(device),
        }
        build_settings["n_conditions"] = count(n_conditions, "n_conditions", most=LARGEST_SIZE)
        return Network(env, settings, _new_session(env, settings, build_settings), build_settings)

    def _show_parameters(self, session: _gfn.Session) -> None:
        """Registers the parameters of the policy in `session` (an object of the extension) as parameters of
        this torch module."""
        self._session = session
        for name in list(self._modules):
            delattr(self, name)
        self._parameters.clear()
        self._buffers.clear()
        known: set[int] = set()
        for name, own in self._torch_modules():
            self.add_module(name, own)
            known |= {id(tensor) for tensors in (own.parameters(), own.buffers()) for tensor in tensors}
        self._registered: list[tuple[dict[str, Any], str, torch.Tensor]] = []
        tensors = session.parameters()
        if not self._fixed_names:
            # The user can't have frozen a parameter yet, so the tensors without gradient are the noise of
            # noisy layers. An empty set would mean that their names aren't known yet, so the name "" is
            # added, which belongs to no tensor.
            self._fixed_names = {path for path, tensor in tensors if not tensor.requires_grad} | {""}
        for path, tensor in tensors:
            if id(tensor) in known:
                continue
            *scopes, name = path.split(".")
            holder: torch.nn.Module = self
            for scope in scopes:
                # torch refuses a submodule with the name of a method of its modules, such as `to`.
                scope += "_" * hasattr(torch.nn.Module, scope)
                if scope not in holder._modules:
                    holder.add_module(scope, _Scope())
                holder = holder.get_submodule(scope)
            self._registered.append(
                (holder._buffers if path in self._fixed_names else holder._parameters, name, tensor)
            )
            if path not in self._fixed_names:
                # The attribute `_is_param` makes torch accept the library's own tensor as a parameter,
                # without a copy.
                tensor._is_param = True
                holder.register_parameter(name, tensor)  # type: ignore[arg-type]
            else:
                holder.register_buffer(name, tensor)

    def _torch_modules(self) -> list[tuple[str, torch.nn.Module]]:
        own = self.settings._own_modules()
        return [(name, module) for name, module in own.items() if isinstance(module, torch.nn.Module)]

    def _check_own(self) -> None:
        """Raises an error if other tensors have replaced the library's own parameters, because the library
        wouldn't compute with these tensors."""
        for held, name, tensor in self._registered:
            if held.get(name) is not tensor:
                raise ValueError(
                    f"parameter `{name}` was replaced by another tensor: expected the tensor that the "
                    "library made, because the library computes with it; write values into that tensor "
                    "(`load_state_dict` without `assign=True`, or `parameter.copy_(values)` under "
                    "`torch.no_grad()`)"
                )

    def _lend_policy(self, take: Callable[[_gfn.Session], _gfn.Session]) -> _gfn.Session:
        """Calls `take` with the session (the object of the extension) that holds the policy. `take` moves the
        policy to a new session and returns the new session. If `take` fails, the policy is built again."""
        values = {name: value.detach().clone() for name, value in self._session.parameters()}
        try:
            return take(self._session)
        except BaseException:
            session = _new_session(self.env, self.settings, self._build_settings)
            with torch.no_grad():
                for name, parameter in session.parameters():
                    parameter.copy_(values[name])
            self._show_parameters(session)
            raise

    if TYPE_CHECKING:

        def __call__(self, states: Any, conditions: Any = None) -> Evaluation: ...

    def forward(self, states: Any, conditions: Any = None) -> Evaluation:
        """Computes the log-probabilities of the moves of a batch of states, such as `env.initial` or a
        `Sampler` returns.

        If the policy has conditions, `conditions` has a row for each state, `[n, width]`.
        """
        under = self._conditions(conditions, len(states))
        self._check_own()
        return Evaluation(
            self.env, states, self._session.evaluate(states, under, self.has_flow, torch.is_grad_enabled())
        )

    def score(self, trajectories: Trajectories[States]) -> _gfn.Scores:
        """Computes log P_F and log P_B of each transition of trajectories, log Z and log F, with gradients.

        The trajectories must have log R (`with_log_rewards`). The scores contain log R including the
        environment's correction for symmetry.
        """
        paths = paths_of(trajectories, self.env)
        if trajectories.log_rewards is None:
            raise ValueError(
                "the trajectories have no log R: expected log R of each trajectory; add it by "
                "trajectories.with_log_rewards(values)"
            )
        self._check_own()
        return self._session.score(paths, torch.is_grad_enabled())

    @property
    def has_flow(self) -> bool:
        """True if the network estimates log F of states."""
        return bool(self._build_settings["flow"])

    @property
    def n_conditions(self) -> int:
        """The width of a condition's vector; 0 without conditions."""
        return int(self._build_settings["n_conditions"])

    def _conditions(self, conditions: Any, n: int) -> torch.Tensor | None:
        check_presence(conditions, self.n_conditions, "{} for a policy")
        return (
            None
            if conditions is None
            else checked_conditions(conditions, n, self.n_conditions, "conditions is")
        )

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        kind = torch.float64 if self._build_settings["double"] else torch.float32
        before = torch.empty(0, dtype=kind, device=self._build_settings["device"])
        after = fn(before)
        if (after.dtype, after.device) == (before.dtype, before.device):
            return self
        if self._trained:
            raise RuntimeError(
                "the policy of a trainer can't be moved or converted: make a trainer with another `device` "
                "or `double`"
            )
        if after.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"the dtype of the policy is {after.dtype}: expected torch.float32 or torch.float64"
            )
        if after.device.type not in ("cpu", "cuda"):
            raise TypeError(f"the device of the policy is {after.device}: expected cpu or cuda")
        frozen = self._frozen_names()
        for _, own in self._torch_modules():
            own._apply(fn)  # type: ignore[no-untyped-call]
        values = {name: value.detach().clone() for name, value in self._session.parameters()}
        build_settings = self._build_settings | {
            "double": after.dtype == torch.float64,
            "device": str(after.device),
        }
        session = _new_session(self.env, self.settings, build_settings)
        with torch.no_grad():
            for name, parameter in session.parameters():
                parameter.copy_(values[name])
        self._build_settings = build_settings
        self._show_parameters(session)
        _freeze(self, frozen)
        return self

    def _frozen_names(self) -> list[str]:
        return [name for name, parameter in self.named_parameters() if not parameter.requires_grad]

    def share_memory(self) -> Self:
        raise TypeError(
            "the tensors of a policy can't be shared between processes, because the library manages their "
            "memory: send the network, or its state_dict"
        )

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        values = {name: value.detach().cpu() for name, value in self.state_dict().items()}
        return _restore_network, (
            self.env,
            self.settings,
            self._build_settings,
            values,
            self._frozen_names(),
            self.training,
        )

    def extra_repr(self) -> str:
        return f"{self.settings!r}, {self.env!r}"


def _restore_network(
    env: Environment,
    settings: Policy,
    build_settings: dict[str, Any],
    values: dict[str, torch.Tensor],
    frozen: list[str],
    training: bool,
) -> Network[Any]:
    """Builds a pickled or copied network again, from its settings and the values of its parameters."""
    network = Network(env, settings, _new_session(env, settings, build_settings), build_settings)
    network.load_state_dict(values)
    _freeze(network, frozen)
    network.training = training
    return network


def _freeze(network: Network, names: list[str]) -> None:
    for name in names:
        network.get_parameter(name).requires_grad_(False)


def _no_reward(states: Any, conditions: Any = None) -> Any:
    """Returns 0 as log R of each state."""
    return np.zeros(len(states))


def _new_session(env: Environment, settings: Policy, build_settings: dict[str, Any]) -> _gfn.Session:
    """Builds a session, the extension's object that holds a policy. The session also has a trainer and a
    reward, because the extension needs them, but they aren't used."""
    backward: Any = "maximum_entropy" if build_settings.get("paths") else None
    objective: Objective = (
        DetailedBalance(backward=backward) if build_settings["flow"] else TrajectoryBalance(backward=backward)
    )
    if isinstance(settings, Uniform):
        # This objective needs no log Z, which the uniform policy doesn't estimate.
        objective = LogPartitionVariance()
    session: dict[str, Any] = {
        "rewards": [(None, _no_reward, None)],
        "policy": settings,
        "objective": (objective._by_class(), None, None),
        "conditions": None,
        "n_conditions": build_settings["n_conditions"],
        "training": {},
        "adam": {},
        "parts": parts(env, settings, objective, build_settings["n_conditions"], {}),
        "description": {},
        "note": None,
        "seed": build_settings["seed"],
        "device": build_settings["device"],
        "double": build_settings["double"],
    }
    return _gfn.Session(env._env, session)
