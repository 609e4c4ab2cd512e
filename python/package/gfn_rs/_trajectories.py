"""Trajectories, and the sampler that draws them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Sequence

import numpy as np
import numpy.typing as npt
import torch

from . import _gfn
from ._checks import check_seed, chosen, count
from ._conditions import checked as checked_conditions
from ._settings import AT_ONCE, check, kind_name
from ._suggestions import suggests_names
from ._exploration import Exploration
from ._steps import Flags, Moves, States, Whole

if TYPE_CHECKING:
    from ._envs import Environment
    from ._networks import Network
    from ._training import Trainer

# The temperature of greedy sampling. If logits are divided by this number, only the most probable move has a
# probability above 0.
_COLD = 1e-9
# The settings of a sampler that doesn't explore.
_UNEXPLORED = {"epsilon": 0.0, "temperature": 1.0, "exit_bias": 0.0, "noise": 0.0}


class Trajectories(Generic[States]):
    """A batch of whole trajectories. The batch's T transitions are stored trajectory by trajectory. An exit
    is the last transition of its trajectory.

    `trajectories[3]`, `trajectories[2:5]` and `trajectories[mask]` are batches of trajectories, and `+` joins
    two batches. When pickled trajectories are loaded, their actions are replayed from the initial states; an
    action that the environment forbids is an error.

    >>> env = gfn.HyperGrid(2, 3)
    >>> paths = gfn.Trajectories.from_actions(env, moves=[0, 1, 2, 2], offsets=[0, 3, 4])
    >>> paths.terminal.tolist(), paths.lengths.tolist()
    ([[1, 1], [0, 0]], [3, 1])
    """

    def __init__(self, env: Environment[States], paths: _gfn.Paths) -> None:
        self._env, self._paths = env, paths

    @staticmethod
    @suggests_names
    def from_actions(
        env: Environment[States],
        moves: npt.ArrayLike,
        offsets: npt.ArrayLike,
        *,
        instance: npt.ArrayLike = 0,
        log_rewards: npt.ArrayLike | None = None,
        conditions: Any = None,
    ) -> Trajectories[States]:
        """Builds trajectories from moves, each of which is checked.

        moves
            The slots of all moves, trajectory by trajectory, `[T]`. In environments of points, a row of
            numbers for each move, as in `actions`.
        offsets
            The index of the first move of each trajectory, and at the end the number of all moves, `[n + 1]`.
        instance
            The index of the initial state of each trajectory, or one index for all trajectories.
        log_rewards, conditions
            log R of each object, `[n]`, and the condition of each trajectory, `[n, width]`, if they are
            known.
        """
        at, of_moves = np.asarray(offsets), np.asarray(moves)
        if at.ndim != 1 or at.dtype.kind not in "iu" or len(at) == 0 or at.min() < 0:
            raise ValueError(
                f"offsets is {offsets!r:.200}: expected a flat array of whole numbers that increase from 0 "
                "to the number of moves, with one more number than there are trajectories"
            )
        n = len(at) - 1
        if of_moves.size and of_moves.dtype.kind not in "iuf":
            raise TypeError(
                f"moves is {moves!r:.200}: expected slots, or rows of numbers for environments of points"
            )
        kind = np.float64 if of_moves.dtype.kind == "f" else np.int64
        known = None if log_rewards is None else np.asarray(log_rewards, dtype=np.float64)
        if known is not None and known.shape != (n,):
            raise ValueError(
                f"log_rewards has shape {list(known.shape)}: expected one number for each of {n} trajectories"
            )
        under = None
        if conditions is not None:
            under = checked_conditions(
                conditions, n, np.shape(conditions)[-1] if np.ndim(conditions) else 1, "conditions is"
            )
        return Trajectories._again(
            env, of_moves.astype(kind), at, np.broadcast_to(np.asarray(instance), n), known, under, None
        )

    @staticmethod
    def _again(
        env: Environment[States],
        moves: npt.NDArray[Any],
        offsets: npt.NDArray[Any],
        instances: npt.NDArray[Any],
        log_rewards: Any,
        conditions: torch.Tensor | None,
        scored: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> Trajectories[States]:
        at, of = (np.ascontiguousarray(values, dtype=np.int64) for values in (offsets, instances))
        known = None if log_rewards is None else list(log_rewards)
        return Trajectories(
            env,
            env._env.replay(torch.from_numpy(np.ascontiguousarray(moves)), at, of, known, conditions, scored),
        )

    def __reduce__(self) -> Any:
        moves, known = self._paths.walked().numpy(), self.log_rewards
        return Trajectories._again, (
            self._env,
            moves,
            self.offsets,
            self._paths.instances(),
            known,
            self.conditions,
            self._paths.log_probs(),
        )

    @property
    def env(self) -> Environment[States]:
        """The environment of the trajectories."""
        return self._env

    @cached_property
    def offsets(self) -> Whole:
        """The offset of each trajectory's transitions, `[n + 1]`. Trajectory k has the transitions from
        `offsets[k]` to `offsets[k + 1] - 1`."""
        return self._paths.offsets()

    @property
    def lengths(self) -> Whole:
        """The number of transitions of each trajectory, including its exit, `[n]`."""
        return np.diff(self.offsets)

    @cached_property
    def trajectory(self) -> Whole:
        """The index of the trajectory of each transition, `[T]`."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def states(self) -> States:
        """The state before each transition, `[T]`."""
        states: States = self._paths.states()
        return states

    @cached_property
    def next_states(self) -> States:
        """The state after each transition, `[T]`; an exit doesn't change the state."""
        states: States = self._paths.next_states()
        return states

    @cached_property
    def terminal(self) -> States:
        """The finished object of each trajectory, `[n]`."""
        objects: States = self._paths.terminal()
        return objects

    @cached_property
    def actions(self) -> torch.Tensor:
        """The forward action of each transition: its slot, `[T]`; in environments of points a row of numbers,
        `[T, k]`."""
        return self._paths.actions(False)

    @cached_property
    def moves(self) -> Moves:
        """The forward move of each transition. Its `state` is an index into the array `states` of these
        trajectories. Only for environments whose moves can be listed."""
        slots = self.actions.numpy()
        if slots.ndim > 1:
            raise ValueError(
                "the environment has points as states, whose moves can't be listed: use `actions`, which has "
                "a row of numbers for each move"
            )
        return self._env._named(self.states, np.arange(len(slots)), slots, False)

    @cached_property
    def reverse(self) -> Whole:
        """The slot of the backward move that undoes each transition, among the backward moves of the state
        after the transition, `[T]`; -1 for exits."""
        slots = self._paths.actions(True).numpy()
        if slots.ndim > 1:
            raise ValueError(
                "the environment has points as states, so its backward moves have no slots: expected an "
                "environment whose moves can be listed"
            )
        return np.where(self.is_exit, -1, slots)

    @cached_property
    def is_exit(self) -> Flags:
        """True for each transition that is an exit, `[T]`."""
        return self._paths.is_exit()

    @cached_property
    def _scored(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        return self._paths.log_probs()

    @property
    def log_pf(self) -> torch.Tensor:
        """log P_F of each transition, `[T]`, without gradient: the log-probability of the action under the
        policy that drew the trajectory, without exploration."""
        return self._of_policy()[0]

    @property
    def log_pb(self) -> torch.Tensor:
        """log P_B of each transition, `[T]`; 0 for exits."""
        return self._of_policy()[1]

    def _of_policy(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._scored is None:
            raise ValueError(
                "no policy has scored these trajectories: call `trainer.score(batch)`, which returns scores "
                "with gradients, or use trajectories of a `Sampler`, which have scores"
            )
        return self._scored

    @cached_property
    def log_rewards(self) -> npt.NDArray[np.float64] | None:
        """log R of each object, `[n]`; None if log R is unknown."""
        return self._paths.log_rewards()

    def with_log_rewards(self, log_rewards: npt.ArrayLike | torch.Tensor) -> Trajectories[States]:
        """Returns the same trajectories with `log_rewards` as log R of each object, `[n]`."""
        if isinstance(log_rewards, torch.Tensor):
            log_rewards = log_rewards.detach().cpu().numpy()
        known = np.asarray(log_rewards, dtype=np.float64)
        if known.shape != (len(self),):
            raise ValueError(
                f"log_rewards has shape {list(known.shape)}: expected one number for each of {len(self)} "
                f"trajectories"
            )
        return Trajectories(self._env, self._paths.with_log_rewards(known.tolist()))

    @cached_property
    def conditions(self) -> torch.Tensor | None:
        """The condition of each trajectory, `[n, C]`; None without conditions."""
        return self._paths.conditions()

    @cached_property
    def n_fresh(self) -> int:
        """The number of trajectories that were newly sampled for a trainer's batch. These trajectories are
        the first ones of the batch."""
        return self._paths.n_fresh()

    def to_transitions(self) -> Transitions[States]:
        """Returns all transitions of the trajectories as one batch."""
        last = np.zeros(len(self.trajectory), dtype=bool)
        last[self.offsets[1:] - 1] = True
        log_rewards = np.full(len(last), np.nan)
        if self.log_rewards is not None:
            log_rewards[last] = self.log_rewards
        return Transitions(self, np.arange(len(last)), last, log_rewards)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Trajectories[States]:
        return Trajectories(self._env, self._paths.select(chosen(index, len(self), "trajectories").tolist()))

    def __add__(self, other: Trajectories[States]) -> Trajectories[States]:
        if not isinstance(other, Trajectories):
            return NotImplemented
        return Trajectories(self._env, self._paths.join(paths_of(other, self._env)))

    def __repr__(self) -> str:
        return f"Trajectories({len(self)} of {type(self._env).__name__}, {len(self.trajectory)} transitions)"


def paths_of(trajectories: Any, env: Environment) -> _gfn.Paths:
    """Returns the object of the extension that holds these trajectories. Raises an error for trajectories of
    another environment."""
    if not isinstance(trajectories, Trajectories):
        raise TypeError(f"trajectories is a {type(trajectories).__name__}: expected Trajectories")
    if trajectories.env is not env and trajectories.env != env:
        raise ValueError(
            f"trajectories belongs to another environment, {trajectories.env!r:.200}: expected trajectories "
            f"of {env!r:.200}"
        )
    return trajectories._paths


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(Generic[States]):
    """A batch of single transitions of trajectories, which can be indexed like an array.

    >>> env = gfn.HyperGrid(2, 3)
    >>> paths = gfn.Trajectories.from_actions(env, moves=[0, 1, 2, 2], offsets=[0, 3, 4])
    >>> transitions = paths.to_transitions()
    >>> transitions[transitions.is_last].states.tolist()
    [[1, 1], [0, 0]]
    """

    trajectories: Trajectories[States]
    """The trajectories that contain the transitions."""
    rows: Whole
    """The index of each of these transitions among all transitions of `trajectories`, `[T]`."""
    is_last: Flags
    """True for the last transition of each trajectory, `[T]`."""
    log_rewards: npt.NDArray[np.float64]
    """log R of the object that each transition finishes, `[T]`. The entry is NaN if the transition isn't the
    last one of its trajectory, or if log R is unknown."""

    @cached_property
    def states(self) -> States:
        """The state before each transition."""
        states: States = self.trajectories.states[self.rows]
        return states

    @cached_property
    def next_states(self) -> States:
        """The state after each transition."""
        states: States = self.trajectories.next_states[self.rows]
        return states

    @cached_property
    def actions(self) -> torch.Tensor:
        """The forward action of each transition."""
        return self.trajectories.actions[torch.from_numpy(self.rows)]

    @cached_property
    def is_exit(self) -> Flags:
        """True for each transition that is an exit."""
        return self.trajectories.is_exit[self.rows]

    @cached_property
    def trajectory(self) -> Whole:
        """The index of each transition's trajectory."""
        return self.trajectories.trajectory[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Transitions[States]:
        some = chosen(index, len(self), "transitions")
        return Transitions(self.trajectories, self.rows[some], self.is_last[some], self.log_rewards[some])

    def __repr__(self) -> str:
        return f"Transitions({len(self)} of {self.trajectories!r})"


class Sampler(Generic[States]):
    """Draws trajectories from a policy. The sampler's settings change the probabilities of the drawn actions.
    `log_pf` of the trajectories doesn't depend on these settings: it is computed by the policy itself.

    policy
        A network that was built from settings (`GraphNet().build(env)`), or a trainer.
    epsilon
        The probability that an action is drawn uniformly from all legal actions, from 0 to 1.
    temperature
        The number that logits are divided by, above 0.
    exit_bias
        A number added to the exit's logit.
    noise
        The standard deviation of noise that is added to Gaussian steps, at least 0.

    >>> env = gfn.HyperGrid(2, 3)
    >>> sampler = gfn.Sampler(env, gfn.Mlp((8,)).build(env), epsilon=0.1)
    >>> sampler.sample(4, seed=0).terminal.shape
    (4, 2)
    """

    @suggests_names
    def __init__(
        self,
        env: Environment[States],
        policy: Network[States] | Trainer[States],
        *,
        epsilon: float = 0.0,
        temperature: float = 1.0,
        exit_bias: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        from ._networks import Network
        from ._training import Trainer

        network = policy.network if isinstance(policy, Trainer) else policy
        if not isinstance(network, Network):
            raise TypeError(
                f"policy is {kind_name(policy)}: expected a built network, such as GraphNet().build(env), or "
                "a Trainer"
            )
        if env is not network.env and env != network.env:
            raise ValueError(
                f"env is {env!r:.200}, but the policy was made for {network.env!r:.200}: expected the "
                "environment of the policy"
            )
        self.env, self.policy = network.env, network
        given = {"epsilon": epsilon, "temperature": temperature, "exit_bias": exit_bias, "noise": noise}
        limits = {each.name: each.metadata.get("bounds") for each in fields(Exploration)}
        for name, value in given.items():
            check(value, name, float, limits[name])
        self._explored = {name: float(value) for name, value in given.items()}

    @suggests_names
    def sample(
        self,
        n: int,
        *,
        conditions: Any = None,
        instances: Sequence[int] | None = None,
        greedy: bool = False,
        seed: int | None = None,
    ) -> Trajectories[States]:
        """Draws `n` trajectories.

        conditions
            The condition of each trajectory, `[n, width]`, if the policy has conditions.
        instances
            The index of the initial state of each trajectory, if the environment has several initial states.
            By default the indices are drawn uniformly.
        greedy
            True takes the most probable action in each state. If several actions are equally probable, one of
            them is drawn.
        seed
            A seed makes the trajectories reproducible. Without a seed, each call draws new trajectories.
        """
        n = count(n, least=1, most=AT_ONCE)
        explored = self._explored
        check(greedy, "greedy", bool)
        if greedy:
            # Reading `move_types` raises an error for environments of points, which have no most probable
            # move.
            self.env.move_types
            if explored != _UNEXPLORED:
                raise ValueError(
                    f"greedy is True, but the sampler explores ({explored}): expected a Sampler without "
                    "epsilon, temperature, exit_bias and noise"
                )
            explored = {**_UNEXPLORED, "temperature": _COLD}
        of = (
            None
            if instances is None
            else [count(instance, "instances", most=self.env.n_instances - 1) for instance in instances]
        )
        if of is not None and len(of) != n:
            raise ValueError(
                f"instances has {len(of)} numbers for {n} trajectories: expected one for each trajectory"
            )
        under, stream = self.policy._conditions(conditions, n), None if seed is None else check_seed(seed)
        return Trajectories(self.env, self.policy._session.draw_paths((n, of), under, explored, stream))

    def backward(
        self, objects: Any, *, conditions: Any = None, seed: int | None = None
    ) -> Trajectories[States]:
        """Draws a trajectory to each of these finished objects, by backward steps of P_B. The transitions of
        the result are in forward order, from the initial state to the object."""
        under, stream = self.policy._conditions(conditions, len(objects)), (
            None if seed is None else check_seed(seed)
        )
        return Trajectories(self.env, self.policy._session.draw_paths(objects, under, _UNEXPLORED, stream))

    def __repr__(self) -> str:
        return f"Sampler({self.env!r}, {self.policy.settings!r})"
