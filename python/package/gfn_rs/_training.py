"""The trainer of policies, and the records of its steps."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings as _warnings
import weakref
from dataclasses import replace
from inspect import signature
from typing import Any, Callable, Generic, Iterator, Literal, NoReturn, Sequence

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import NamedTuple, Self

from . import _envs, _gfn, _results
from ._checks import (
    check_kind,
    check_seed,
    condition_source,
    count,
    describe,
    existing_path,
    reward_arguments,
)
from ._conditions import check_presence
from ._conditions import checked as checked_conditions
from ._parts import parts, shares
from ._progress import Line
from ._settings import AT_ONCE, check, kind_name, plain, variant
from ._suggestions import suggests_names
from ._conditioning import Conditioning, Conditions
from ._envs import Environment
from ._executors import Actors
from ._exploration import Exploration
from ._loading import note_settings
from ._networks import Network
from ._objectives import Objective, TrajectoryBalance
from ._policies import Policy
from ._rewards import Reward, SizeReward
from ._sources import FreshSource, SourceSettings, sort_sources
from ._steps import States
from ._trajectories import Sampler, Trajectories, paths_of
from ._updates import Adam

RewardFunction = Callable[[States], Any] | Callable[[States, torch.Tensor], Any]


class TrainingWarning(UserWarning):
    """A warning about training that goes wrong without an error.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gfn.TrainingWarning)
    ...     trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8).fit(2)
    >>> trainer.warnings
    []
    """


# The places where trajectories are sampled.
Rollouts = Literal["measured", "host", "device"]
Columns = dict[str, npt.NDArray[Any]]

# The names of the numbers in a step's record, in the order in which the extension returns these numbers.
FIGURES = ("step", "loss", "log_z", "mean_len", "grad_norm", "seconds", "reward_calls")

# The modules for which a warning was issued because their results have no gradients, each with the warning.
_DETACHED: list[tuple[weakref.ref[Any], str]] = []


def _warn_of_detached(module: Any, setting: str, name: str) -> None:
    """Warns that a module's results have no gradients, so that training doesn't change the module. The
    extension calls this function. `name` names the module in the warning."""
    trained = "only the heads are" if setting in ("module", "backward") else "it isn't"
    message = (
        f"the results of {name} have no gradients, so {trained} trained: don't detach the results, and don't "
        "compute them under torch.no_grad()"
    )
    _DETACHED[:] = [one for one in _DETACHED if one[0]() is not None]
    # Two trainers may share the module. Its warning is stored once.
    is_new = not any(one() is module and text == message for one, text in _DETACHED)
    if is_new:
        with contextlib.suppress(TypeError):
            _DETACHED.append((weakref.ref(module), message))
    _warnings.warn(message, TrainingWarning, stacklevel=2)


def _check_policy(policy: Any, env: Environment) -> None:
    """Raises an error for an object that isn't a policy. For a torch module, the error names the policy class
    that takes a module in this environment."""
    if not isinstance(policy, torch.nn.Module):
        check_kind("policy", policy, Policy, "GraphNet()")
        return
    name = kind_name(policy)
    if isinstance(env, (_envs.Box, _envs.Line, _envs.Diffusion)):
        raise TypeError(
            f"policy is {name}, a torch module: expected BoxNet(), LineNet() or DiffusionNet(), because a "
            "policy of points can't have a custom module; train the module by a custom loop over `env.step`"
        )
    wrapper = "VectorModule(module, width)"
    if isinstance(env, _envs.BayesianStructure):
        wrapper = "DagModule(module, node_width, graph_width)"
    elif isinstance(env.initial(1), _gfn.Graphs):
        wrapper = "GraphModule(module, node_width, graph_width)"
    elif isinstance(env, (_envs.BitSequence, _envs.TokenSequence)):
        wrapper += " or SequenceModule(module, width)"
    raise TypeError(
        f"policy is {name}, a torch module: expected a policy around the module, {wrapper}, to which the "
        "library adds the heads for the moves"
    )


# A trainer warns when this number of batches has been drawn from it without a call of `advance` in between.
_NEVER_ADVANCED = 3


def _index(instance: int | None) -> int | None:
    """Returns the index of an initial state unchanged. Raises an error for a number that can't be an
    index."""
    return None if instance is None else count(instance, "instance", most=2**32 - 1)


class BufferContents(NamedTuple, Generic[States]):
    """The contents of a replay buffer.

    >>> sources = [gfn.Replay(100, after=1)]
    >>> env, net = gfn.HyperGrid(2, 3), gfn.Mlp((8,))
    >>> trainer = gfn.Trainer(env, gfn.HyperGridReward(), net, batch=8, sources=sources).fit(2)
    >>> len(trainer.buffer.objects) == len(trainer.buffer.log_rewards) == trainer.replay_len
    True
    """

    objects: States
    """The objects in the buffer, as a batch of states like the one that `Trainer.sample` returns."""
    log_rewards: npt.NDArray[np.float64]
    """log R of each object."""
    conditions: torch.Tensor | None
    """The condition of each object, `[n, C]`; None without conditions."""


def _numbered_device(device: str) -> torch.device:
    """Returns the torch device of this name, with an index: "cuda" becomes "cuda:0"."""
    placed = torch.device(device)
    return torch.device(placed.type, 0) if placed.type == "cuda" and placed.index is None else placed


def _check_built(
    network: Network, env: Environment, n_conditions: int, device: str, double: bool, heads: dict[str, bool]
) -> None:
    """Raises an error if another trainer already trains the network, or if the network was built for other
    settings than the settings of this trainer."""
    if network._trained:
        raise ValueError(
            "policy is another trainer's network: expected a network that no other trainer uses, such as "
            "copy.deepcopy(policy)"
        )
    if network.env is not env and network.env != env:
        raise ValueError(f"policy was built for {network.env!r:.200}: expected a policy for {env!r:.200}")
    for name, built, asked in (
        ("n_conditions", network.n_conditions, n_conditions),
        ("device", torch.device(network._build_settings["device"]), _numbered_device(device)),
        ("double", network._build_settings["double"], double),
    ):
        if _numbered_device(str(built)) != asked if name == "device" else built != asked:
            raise ValueError(
                f"policy was built with {name}={built!r}, but the trainer has {name}={asked!r}: expected the "
                "same value for both"
            )
    if heads["paths"] and not network._build_settings.get("paths"):
        raise ValueError(
            "policy is a network without a head for numbers of paths, which the objective estimates: "
            "expected the settings of the policy, such as GraphNet(), from which the trainer builds the "
            "network"
        )
    if heads["flow"] and not network.has_flow:
        raise ValueError(
            "policy was built without state flows, which the objective needs: expected a policy built by "
            "build(env, flow=True)"
        )


class Trainer(Generic[States]):
    """Trains a policy. Each step draws a batch of trajectories, computes the loss and its gradient, and
    updates the parameters.

    env
        The environment, for example `Ring(4)`.
    reward
        A reward of the library, for example `RingReward()`, or a function of a batch of states that returns
        log R of each state. With a `Conditioning` it may be a list of rewards.
    policy
        The settings of a network, for example `GraphNet()`, or a network that was built from such settings.
        Two trainers around the same custom module train the same parameters: pass `copy.deepcopy(module)` to
        one of them.
    objective
        The objective, whose loss is minimised; `TrajectoryBalance()` by default.
    batch
        The number of trajectories per step, at least 1.
    adam
        The settings of the optimizer, for example `Adam(lr=1e-3)`.
    exploration
        The exploration in sampling, for example `Exploration(epsilon=0.1)`.
    sources
        The sources of a batch besides the policy's own trajectories, a list with at most one entry from each
        of these lines:

        * `Replay()`, a buffer of objects;
        * `Data(objects)`, your own objects, or `Source(function)`, objects that a function returns for
          each batch;
        * `FreshSource(function)` or `Thompson(share)`, which replace the policy's own trajectories;
        * `LocalSearch(max_back)`, a search from each new object;
        * `Teacher(policy)`, a second policy that explores;
        * `Search(function)` or `Mala()`, a search from objects of the buffer;
        * `ChainSource()`, Markov chains that search for objects of high reward;
        * `Hindsight(function)` or `FocusInHindsight()`, new conditions for replayed objects.
    conditions
        The distribution of conditions, if one policy learns a family of rewards. `Conditions(function,
        width)` needs a reward that is a function of states and conditions. A `Conditioning` has temperatures,
        preferences among several rewards and directions of focus; its rewards are functions of states alone.
    seed
        The seed of all random numbers, from 0 to 2**64 - 1.
    device
        "cpu", "cuda" or "cuda:1", or a `torch.device`.
    double
        True for double precision.
    rollouts
        The place where trajectories are sampled: "host" for a copy of the policy on the host, or "device" for
        tensors on `device`. Tables and policies in double precision, with conditions or with a torch module
        have no copy on the host. With "measured", the default, a trainer on a GPU measures both
        places at its first step, prints the faster one and then uses it. On the CPU, "measured" is the host
        if the policy has a copy.

    These settings are attributes of the trainer, which can't be changed. The attribute of the setting `batch`
    is `batch_size`.

    The library uses one thread, which is fastest for small networks. The first trainer sets torch to one
    thread, too, unless a number of threads was set before (by `set_threads`, `torch.set_num_threads` or
    OMP_NUM_THREADS).

    >>> env = gfn.GraphBuilding(max_nodes=3, attached=True)
    >>> trainer = gfn.Trainer(env, lambda graphs: graphs.n_edges, gfn.GraphNet(embedding=16), batch=16)
    >>> trainer.fit(10).steps_done, len(trainer.sample(5))
    (10, 5)
    """

    @suggests_names
    def __init__(
        self,
        env: Environment[States],
        reward: Reward | RewardFunction[States] | Sequence[Reward | RewardFunction[States]],
        policy: Policy | Network[States],
        objective: Objective | None = None,
        *,
        batch: int = 128,
        adam: Adam = Adam(),
        exploration: Exploration = Exploration(),
        sources: Sequence[SourceSettings] = (),
        conditions: Conditions | Conditioning | None = None,
        seed: int = 0,
        device: str | torch.device = "cpu",
        double: bool = False,
        rollouts: Rollouts = "measured",
    ) -> None:
        objective = TrajectoryBalance() if objective is None else objective
        built = policy if isinstance(policy, Network) else None
        policy = policy.settings if isinstance(policy, Network) else policy
        check_kind("env", env, Environment, "Ring(4)")
        _check_policy(policy, env)
        check_kind("objective", objective, Objective, "TrajectoryBalance()")
        of_rewards = reward_arguments(reward)
        of_sizes = all(
            isinstance(one, SizeReward) for one in (reward if isinstance(reward, (list, tuple)) else [reward])
        )
        if getattr(env, "for_size", False) and not of_sizes:
            raise ValueError(
                f"for_size of {type(env).__name__} is True, but the reward isn't a SizeReward: expected a "
                "SizeReward, or for_size=False"
            )
        for name, value, hint in (
            ("batch", batch, int),
            ("adam", adam, Adam),
            ("exploration", exploration, Exploration),
            ("device", device, str | torch.device),
            ("double", double, bool),
            ("rollouts", rollouts, Rollouts),
        ):
            check(value, name, hint)
        seed = check_seed(seed)
        by_role = sort_sources(sources)
        replay, data = by_role.get("replay buffer"), by_role.get("data set")
        local_search, fresh = by_role.get("local search"), by_role.get("source of fresh trajectories")
        function = fresh.function if isinstance(fresh, FreshSource) else None
        actors = function if isinstance(function, Actors) else None
        drawn_from, n_conditions = condition_source(conditions, reward)
        training: dict[str, Any] = {
            "batch": plain(batch, "batch"),
            "regression": objective._regression_json(),
            "rollouts": variant(rollouts),
            **adam._training(),
            **exploration._training(),
            **shares(replay, data),
        }
        if local_search is not None:
            training["local_search"] = local_search._json()
        others = parts(env, policy, objective, n_conditions, by_role, adam.average)
        description: dict[str, Any] = {"gfn_rs": describe(env, policy, reward)}
        if others.description:
            description["parts"] = others.description
        self.env, self.reward, self.policy, self.objective = env, reward, policy, objective
        # The setting `batch` is stored as `batch_size`, because a method is called `batch`.
        self.batch_size = batch
        self.adam, self.exploration, self.sources, self.conditions = (
            adam,
            exploration,
            tuple(sources),
            conditions,
        )
        self.seed, self.device, self.double, self.rollouts = seed, device, double, rollouts
        self._warned = 0
        # The warnings that this class itself issued, in addition to the warnings of the extension, which
        # `_session` stores.
        self._own_warnings: list[str] = []
        self._n_conditions = n_conditions
        self._history: dict[str, list[Any]] = {}
        made = {"seed": seed, "n_conditions": n_conditions, "double": bool(double)}
        session: dict[str, Any] = {
            "rewards": of_rewards,
            "policy": policy,
            "objective": (objective._by_class(), objective._loss(), objective._own_regression()),
            "conditions": drawn_from,
            "n_conditions": n_conditions,
            "training": training,
            "adam": adam._rates(),
            "parts": others,
            "description": description,
            # The extension adds two flags to `made`: True if the objective needs a head for log F, and True
            # if it needs a head for the number of paths from the initial state to a state.
            "note": {"env": note_settings(env), "policy": note_settings(policy), "made": made},
            "seed": seed,
            "device": str(device),
            "double": bool(double),
        }
        new_session = _gfn.Session(env._env, session)
        used = new_session.heads()
        policy._check_used(used, type(objective).__name__)
        self._network: Network[States] | None = None
        self._drawn, self._began = 0, time.perf_counter()
        self._of_scores: tuple[_gfn.Scores, float] | None = None
        if built is not None:
            # All checks of settings come before `_lend_policy`, because this call takes the policy away from
            # the trainer or network that uses it now.
            _check_built(built, env, n_conditions, str(device), bool(double), used)
            if actors is not None:
                actors._check_free(n_conditions, conditions)
            new_session = built._lend_policy(lambda policy: _gfn.Session(env._env, session, policy))
            built._show_parameters(new_session)
            built._trained = True
            self._network = built
        if not new_session.explores():
            self.exploration = replace(exploration, epsilon=0.0)
        # After this assignment, `__setattr__` raises an error for changes of settings.
        self._session = new_session
        if actors is not None:
            actors._attach(self, batch, n_conditions, conditions)
        if isinstance(env, _envs.GraphProblem) and env.n_instances > 1 and getattr(policy, "identity", False):
            self._warn(
                f"identity of {type(policy).__name__} is True for {env.n_instances} input graphs, so the "
                "policy distinguishes nodes by their numbers and doesn't generalise to other graphs: pass "
                "identity=False"
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if "_session" in vars(self) and not name.startswith("_"):
            if name in vars(self) and (name == "batch_size" or name in signature(Trainer).parameters):
                raise AttributeError(
                    f"{name} of a trainer can't be set after the trainer was made, because that would have "
                    "no effect: make a new trainer with other settings, and load the parameters from a "
                    "checkpoint by `restore`"
                )
            # A subclass may set attributes of its own, but no attribute of this class.
            ours = [kind for kind in type(self).__mro__ if kind.__module__.partition(".")[0] == __package__]
            if type(self) in ours or any(name in vars(kind) for kind in ours):
                raise AttributeError(
                    f"a trainer has no attribute {name} that can be set: pass settings to Trainer(...) "
                    "instead"
                )
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a trainer can't be copied or pickled: write a checkpoint by `save(path)`, and continue from it "
            "by `resume(path)` of a trainer with the same settings; the results of `exact` and of "
            "evaluations can be pickled"
        )

    def __repr__(self) -> str:
        parts = f"{self.env!r}, {self.objective!r}, {self.policy!r}, batch={self.batch_size!r}"
        return f"{type(self).__name__}({parts}, adam={self.adam!r}, exploration={self.exploration!r})"

    def step(self) -> dict[str, Any]:
        """Makes one training step. Returns its record: the numbers of the step under the names that `history`
        has."""
        self._check_learning()
        records, failed = self._session.advance(1)
        self._keep(records, warn=failed is None)
        if failed is not None:
            raise failed
        return dict(zip(FIGURES, records[-1]))

    def fit(
        self,
        steps: int,
        *,
        callback: Callable[["Trainer[States]", dict[str, Any]], Any] | None = None,
        every: int = 100,
        progress: bool | None = None,
        tensorboard: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Makes `steps` more steps and returns the trainer.

        callback, every
            `callback(trainer, record)` is called after every `every` steps and at the end, with the record of
            the last step. The callback may use the trainer, for example to sample, evaluate or save. Training
            ends early if the callback returns True.
        progress
            True shows a line of progress; None shows it on a terminal only.
        tensorboard
            A folder in which a new event file gets the numbers of each step (loss, log Z, mean length, norm
            of the gradient, seconds), which `tensorboard --logdir FOLDER` shows. The library writes the file
            itself. Use a separate folder for each run, and the same folder when a run is resumed.
        """
        steps, every = count(steps, "steps"), count(every, "every", least=1)
        if callback is not None and not callable(callback):
            raise TypeError(
                f"callback is a {type(callback).__name__}: expected a function that takes the trainer and a "
                "record"
            )
        check(progress, "progress", bool | None)
        check(tensorboard, "tensorboard", str | os.PathLike[str] | None)
        self._check_learning()
        try:
            if tensorboard is not None:
                self._session.write_events(os.fsdecode(tensorboard))
            line = Line(steps, sys.stderr.isatty() if progress is None else progress)
            try:
                self._make_steps(steps, callback, every, line)
            finally:
                line.close()
        finally:
            if tensorboard is not None:
                self._session.write_events(None)
        self._session.look_at_end()
        self._keep([], warn=True)
        return self

    def _make_steps(
        self, left: int, callback: Callable[["Trainer", dict[str, Any]], Any] | None, every: int, line: Line
    ) -> None:
        """Makes `left` steps, or fewer if the callback returns True, and shows them in the line of progress.
        Raises the error of a step that fails."""
        while left > 0:
            until = min(left, every) if callback is not None else left
            record: dict[str, Any] = {}
            while until > 0:
                # Each call of the extension makes only a few steps, so that the line of progress is updated
                # often. A call costs only microseconds.
                part = min(until, line.steps_at_once())
                records, failed = self._session.advance(part)
                self._keep(records, warn=failed is None)
                until, left = until - part, left - part
                if records:
                    record = dict(zip(FIGURES, records[-1]))
                    line.show(len(records), record)
                if failed is not None:
                    raise failed
            if callback is not None:
                answer = callback(self, record)
                if isinstance(answer, (bool, np.bool_)) and answer:
                    return

    def _warn(self, message: str, stacklevel: int = 4) -> None:
        if message not in self._own_warnings:
            self._own_warnings.append(message)
        _warnings.warn(message, TrainingWarning, stacklevel=stacklevel)

    def _check_learning(self) -> None:
        if self._session.n_parameters() == 0 and any(True for _ in self.named_parameters()):
            message = (
                "no parameter is trained, because requires_grad is False for all of them: set it to True for "
                "the parameters that should be trained"
            )
            self._warn(message)

    def _keep(self, records: Sequence[tuple[Any, ...]], warn: bool) -> None:
        for name, values in zip(FIGURES, zip(*records)):
            self._history.setdefault(name, []).extend(values)
        if warn:
            warned = self._session.warnings()
            new, self._warned = warned[self._warned :], len(warned)
            for message in new:
                _warnings.warn(message, TrainingWarning, stacklevel=3)

    @property
    def history(self) -> Columns:
        """The records of all steps, an array with an entry per step for each of these names: step, loss,
        log_z, mean_len, grad_norm, seconds, reward_calls. Checkpoints store them, so that a resumed trainer
        has the records of the whole run."""
        return {name: np.asarray(values) for name, values in self._history.items()}

    def frame(self) -> Any:
        """Returns `history` as a pandas data frame with a row per step."""
        import pandas

        return pandas.DataFrame(self.history).set_index("step") if self._history else pandas.DataFrame()

    def sample(
        self, n: int, conditions: Any = None, instance: int | Sequence[int] | None = None
    ) -> States:
        """Draws `n` finished objects from the policy, without exploration. Each call draws new objects.
        `conditions` has a condition for each object, `[n, width]`, in a trainer with conditions. `instance`
        is the index of the initial state, or a list of `n` indices, in an environment with several initial
        states; by default the indices are drawn uniformly.
        """
        n = count(n, least=1, most=AT_ONCE)
        if instance is not None:
            instances: Any = [instance] * n if np.ndim(instance) == 0 else instance
            return Sampler(self.env, self).sample(n, conditions=conditions, instances=instances).terminal
        states: States
        states, _ = self._session.sample(n, self._conditions(conditions, n), False)
        return states

    def sample_with_rewards(self, n: int, conditions: Any = None) -> tuple[States, npt.NDArray[np.float64]]:
        """Draws `n` finished objects from the policy, without exploration, and returns these objects and
        log R of each object, `[n]`. `conditions` has a condition for each object, `[n, width]`, in a trainer
        with conditions."""
        states, log_rewards = self._session.sample(
            count(n, least=1, most=AT_ONCE), self._conditions(conditions, n), True
        )
        return states, np.asarray(log_rewards, dtype=np.float64)

    def exact(
        self, limit: int = 1_000_000, condition: Any = None, instance: int | None = None
    ) -> _results.Exact[States]:
        """Computes the policy's distribution over all states, and compares it with the target distribution.
        An environment with more than `limit` states is an error.

        `condition` is a single condition, `[width]`, in a trainer with conditions. `instance` is the index of
        the initial state, in an environment with several initial states (`env.n_instances`): each has its own
        distribution.
        """
        values = self._session.exact(count(limit, "limit"), self._condition(condition), _index(instance))
        return _results.Exact(**_results.from_values(values))

    def evaluate(
        self, n: int = 1000, condition: Any = None, instance: int | None = None
    ) -> _results.SampleEvaluation[States]:
        """Evaluates the policy on `n` samples, for environments whose states can't be listed. The result has
        estimates of log Z, and finds the best objects and the modes among the samples.

        `condition` and `instance` are as in `exact`. In an environment with several initial states, evaluate
        them one by one: `[trainer.evaluate(instance=k) for k in range(env.n_instances)]`.
        """
        samples = count(n, least=1, most=AT_ONCE)
        values = self._session.sampled(samples, self._condition(condition), _index(instance))
        return _results.SampleEvaluation(**_results.from_values(values))

    def evaluate_on(
        self, objects: Any, paths: int = 20, condition: Any = None, instance: int | None = None
    ) -> _results.ObjectEvaluation:
        """Estimates the log-probability of given objects, such as a test set, and its correlation with the
        reward.

        objects
            Objects, as a batch of states like the one that `sample` returns; for molecules also SMILES.
        paths
            The number of backward paths per object.
        condition
            A single condition, `[width]`, in a trainer with conditions.
        instance
            The index of the initial state from which all objects are built, in an environment with several
            initial states.
        """
        n_paths = count(paths, "paths", least=1, most=AT_ONCE)
        values = self._session.tested(objects, n_paths, self._condition(condition), _index(instance))
        return _results.ObjectEvaluation(**_results.from_values(values))

    def certify(
        self, samples: int = 10_000, subsets: int = 64, size: int = 12, paths: int = 64
    ) -> _results.Certificate:
        """Certifies the policy from samples, for environments whose states can't be listed. `print` shows the
        result as a table.

        The certificate has bounds on log Z and on the total variation to the target, an estimate of flow
        consistency (the mean total variation within subsets of objects), and reasons to distrust the policy.
        The lower bounds are valid for any policy. Upper bounds aren't possible, because samples of the policy
        can't show which objects the policy misses.

        samples
            The number of trajectories of the policy, and of uniform random walks, at least 2.
        subsets, size
            The number of subsets, at least 2, and the number of objects in each subset, at least 3. A third
            of each subset comes from the policy, a third from random walks, and a third from a local search
            for rewards.
        paths
            The number of backward paths per object, at least 8.
        """
        given = (
            count(samples, "samples", least=2, most=AT_ONCE),
            count(subsets, "subsets", least=2, most=AT_ONCE),
            count(size, "size", least=3, most=AT_ONCE),
            count(paths, "paths", least=8, most=AT_ONCE),
        )
        return _results.Certificate(**self._session.certified(given))

    def judge(
        self, objects: Any, limit: int = 1_000_000, instance: int | None = None
    ) -> _results.Judgement[States]:
        """Compares samples of any sampler with the exact target of this trainer's reward. The policy isn't
        used. `objects` is a batch of states like the one that `sample` returns; for molecules also SMILES. An
        environment with more than `limit` states is an error. `instance` is as in `evaluate_on`.
        """
        figures, missing = self._session.judge_samples(objects, count(limit, "limit"), _index(instance))
        return _results.Judgement(**figures, missing_states=missing)

    def take_average(self) -> Self:
        """Replaces the policy's parameters by their running average, which `Adam(average=Average())`
        computes. Call this method after training."""
        self._session.take_average()
        return self

    def _conditions(self, conditions: Any, n: int) -> torch.Tensor | None:
        check_presence(conditions, self._n_conditions, "{} for a trainer")
        return (
            None
            if conditions is None
            else checked_conditions(conditions, n, self._n_conditions, "conditions is")
        )

    def _condition(self, condition: Any) -> torch.Tensor | None:
        if isinstance(condition, torch.Tensor):
            condition = condition.detach().cpu().numpy()
        return self._conditions(None if condition is None else np.reshape(condition, (1, -1)), 1)

    def prefill(self, n: int) -> int:
        """Offers the objects of `n` uniform random walks to the replay buffer, and returns the number of
        objects that the buffer accepted."""
        return self._session.prefill(count(n, most=AT_ONCE))

    @property
    def network(self) -> Network[States]:
        """The policy as a torch module. The module computes the log-probabilities of the moves of states. A
        `Sampler` draws trajectories from this module."""
        if self._network is None:
            made = {
                "seed": self.seed,
                "n_conditions": self._n_conditions,
                "device": str(self.device),
                "double": bool(self.double),
            }
            made |= {name: self._session.heads()[name] for name in ("flow", "paths")}
            self._network = Network(self.env, self.policy, self._session, made)
            self._network._trained = True
        return self._network

    def batch(self) -> Trajectories[States]:
        """Draws the batch of the next step from all sources: trajectories of the policy, replayed
        trajectories, and trajectories to objects of data and searches. Use it with `score`, `loss` and
        `advance` for a step of a custom loop and optimizer:

            batch = trainer.batch()
            scores = trainer.score(batch)
            loss = trainer.loss(scores)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            trainer.advance(batch, scores)

        In a custom loop, clipping, weight decay and learning rates (`lr_factor`) are up to you. With
        `Thompson`, each head of the policy learns from a share of the batch, and the scores contain the
        shares of all heads, one after another.
        """
        self._check_learning()
        self._drawn, self._began = self._drawn + 1, time.perf_counter()
        if self._drawn == _NEVER_ADVANCED:
            message = (
                "batches are drawn, but no step is counted: call `advance(batch, scores)` after each step, "
                "because otherwise schedules, priorities and averages don't change"
            )
            self._warn(message, stacklevel=3)
        return Trajectories(self.env, self._session.draw_batch())

    def score(self, trajectories: Trajectories[States]) -> _gfn.Scores:
        """Computes all numbers that the objective needs, such as log-probabilities and rewards of
        trajectories, with gradients. The trajectories are a batch of the trainer, a part of such a batch, or
        any other trajectories of the environment.
        """
        return self._session.score(paths_of(trajectories, self.env), torch.is_grad_enabled())

    def loss(self, scores: _gfn.Scores | None = None) -> torch.Tensor:
        """Computes the objective's loss from scores, with gradients. Without scores, it draws the batch of
        the next step and computes the loss of this batch."""
        if scores is None:
            scores = self.score(self.batch())
        if not isinstance(scores, _gfn.Scores):
            raise TypeError(
                f"scores is a {type(scores).__name__}: expected the scores that `score(batch)` returned"
            )
        loss = self._session.loss(scores)
        self._of_scores = (scores, float(loss.detach()))
        return loss

    def advance(
        self,
        trajectories: Trajectories[States],
        scores: _gfn.Scores,
        loss: float | torch.Tensor | None = None,
    ) -> dict[str, Any]:
        """Ends a step of a custom loop: increases the number of steps, updates replay priorities, the teacher
        and averages, and advances schedules. `history` stores the number `loss`, which may be left out if the
        last call of the method `loss` was for these scores. Returns the record of the step.
        """
        if not isinstance(scores, _gfn.Scores):
            raise TypeError(
                f"scores is a {type(scores).__name__}: expected the scores that `score(batch)` returned"
            )
        if loss is None:
            if self._of_scores is None or self._of_scores[0] is not scores:
                raise ValueError(
                    "loss is None, and `loss(scores)` wasn't called for these scores: expected a number, or "
                    "a call of `loss(scores)` before `advance`"
                )
            loss = self._of_scores[1]
        number = float(loss.detach() if isinstance(loss, torch.Tensor) else loss)
        records, failed = self._session.end_step(paths_of(trajectories, self.env), scores, number)
        if records:
            self._drawn, self._of_scores = 0, None
        # The library measured only the seconds of `end_step`. The time since the call of `batch` replaces
        # this number.
        seconds = time.perf_counter() - self._began
        records = [
            (*record[: FIGURES.index("seconds")], seconds, *record[FIGURES.index("seconds") + 1 :])
            for record in records
        ]
        self._keep(records, warn=failed is None)
        if failed is not None:
            raise failed
        return dict(zip(FIGURES, records[-1]))

    def rewarded(self, trajectories: Trajectories[States]) -> Trajectories[States]:
        """Returns the same trajectories with log R of their objects. `reward_calls` doesn't count these calls
        of the reward."""
        return Trajectories(self.env, self._session.rewarded(paths_of(trajectories, self.env)))

    @property
    def lr_factor(self) -> float:
        """The value of `Adam.schedule` at the next step, by which a custom optimizer can multiply its
        learning rates."""
        return self._session.lr_factor()

    @property
    def buffer(self) -> BufferContents[States] | None:
        """The contents of the replay buffer, oldest object first; None without a buffer."""
        stored = self._session.buffer_content()
        return None if stored is None else BufferContents(*stored)

    def remember(self, trajectories: Trajectories[States]) -> int:
        """Offers trajectories to the replay buffer, and returns the number of trajectories that the buffer
        accepted. The reward is computed for trajectories without log R."""
        return self._session.remember(paths_of(trajectories, self.env))

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields the policy's parameters by name: the tensors themselves, not copies. The names of the
        parameters of log Z begin with `log_z`. Don't use these tensors or their gradients while another
        thread trains, because torch doesn't lock tensors.
        """
        yield from self._session.parameters()

    def parameters(self) -> Iterator[torch.Tensor]:
        """Yields the parameters that training changes, for example as the argument of an optimizer."""
        return (tensor for _, tensor in self.named_parameters() if tensor.requires_grad)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, a folder from which `resume` continues bit for bit."""
        columns = [np.asarray(self._history.get(name, ()), dtype=np.float64) for name in FIGURES]
        # The records are stored as the bits of their numbers, because a checkpoint accepts no NaN.
        bits = torch.from_numpy(np.stack(columns)).view(torch.int64)
        self._session.save(os.fsdecode(path), bits)

    def resume(self, path: str | os.PathLike[str]) -> Self:
        """Loads a checkpoint of a trainer with the same settings, from which training continues. `history`
        has the records of all steps before the checkpoint, unless the checkpoint is from Rust or from an
        earlier version, which stored none."""
        bits = self._session.resume(existing_path(path))
        self._drawn, self._of_scores = 0, None
        columns = [] if bits is None else bits.view(torch.float64).tolist()
        whole = ("step", "reward_calls")
        self._history = {
            name: [int(value) for value in values] if name in whole else values
            for name, values in zip(FIGURES, columns)
        }
        return self

    def restore(self, path: str | os.PathLike[str]) -> Self:
        """Loads the parameters of a checkpoint, and nothing else. The checkpoint may be from Rust, or
        from a trainer with other settings but the same network.
        """
        self._session.restore(existing_path(path))
        return self

    @property
    def steps_done(self) -> int:
        """The number of training steps made so far."""
        return self._session.steps_done()

    @property
    def reward_calls(self) -> int:
        """The number of new objects whose reward was computed. Replayed objects aren't counted."""
        return self._session.reward_calls()

    @property
    def n_parameters(self) -> int:
        """The number of scalar parameters that are trained."""
        return self._session.n_parameters()

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings that this trainer has issued so far."""
        modules = [id(module) for module in self.policy._own_modules().values()]
        detached = [message for module, message in _DETACHED if id(module()) in modules]
        return [*self._session.warnings(), *self._own_warnings, *detached]

    @property
    def replay_len(self) -> int | None:
        """The number of objects in the buffer; None without a buffer."""
        return self._session.replay_len()
