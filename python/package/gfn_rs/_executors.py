"""Rewards and samplers whose computations run on an executor: a pool of processes, Dask, MPI, Ray, or any
other object with a method `submit`."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from ._checks import count
from ._gfn import Graphs
from ._settings import Bounds, check, kind_name
from ._suggestions import suggests_names
from ._conditioning import Conditioning, Conditions
from ._rewards import CachedReward
from ._sources import FreshObjects, BatchRequest
from ._trajectories import Sampler, Trajectories

if TYPE_CHECKING:
    from ._training import Trainer

# The number of seconds between two checks while waiting for results. Each check looks for Ctrl-C and for
# overdue results, and updates the display of progress.
_LOOK = 0.2
# The number of seconds after which a batch shows its progress on a terminal.
_SLOW = 2.0
# The number of seconds that workers may take to start and to return results, in addition to the time limits
# of all objects of a chunk.
_GRACE = 60.0

# The bounds of a time limit in seconds.
_SECONDS = Bounds(above=0.0, what="seconds")

Numbers = npt.NDArray[np.float64]


class ParallelReward:
    """A reward that the workers of an executor compute, for rewards that take milliseconds or more per
    object.

    function
        A reward: a function of states, and of their conditions in a trainer with conditions, that returns log
        R of each. A method `partial_log_reward` of the function is computed by the workers in the same way.
    executor
        Any `concurrent.futures.Executor`, such as `ProcessPoolExecutor(8,
        mp_context=multiprocessing.get_context("spawn"))`, Dask's `client.get_executor()` or mpi4py's
        `MPIPoolExecutor`. The caller shuts it down.
    chunk
        The number of states per call of a worker. Use more than one if an object takes less than a
        millisecond.
    retries
        The number of further attempts for an object whose computation failed.
    timeout
        The largest number of seconds per object. The time allowed for a call is this number times the number
        of states of the call. In a worker's main thread, a call that takes longer is interrupted. A call in
        another thread or in C can't be interrupted. In this case an error is raised if no answer arrives
        within the time allowed for a chunk plus a minute.
    on_failure
        log R of objects whose computation failed; `failed` counts these objects. With None, a failed object
        is an error, whose message names the object. If all of several objects fail, an error is raised in any
        case, because then the function can't run in the workers.

    If a chunk fails, its objects are computed one by one, so that one failure affects no other object. The
    result depends neither on the number of workers nor on the order of their answers: a training run is equal
    to a run with `function` itself as the reward.

    >>> import gfn_rs as gfn
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def reward(states):
    ...     return -0.5 * states.sum(axis=1)
    >>> with ThreadPoolExecutor(2) as executor:
    ...     parallel = gfn.ParallelReward(reward, executor, chunk=4)
    ...     trainer = gfn.Trainer(gfn.HyperGrid(2, 4), parallel, gfn.Mlp((16,)), batch=16).fit(3)
    >>> parallel.failed
    0
    """

    @suggests_names
    def __init__(
        self,
        function: Callable[..., Any],
        executor: Executor,
        *,
        chunk: int = 1,
        retries: int = 0,
        timeout: float | None = None,
        on_failure: float | None = None,
    ) -> None:
        if isinstance(function, CachedReward):
            raise TypeError(
                "function is a CachedReward: expected a function of states; put the cache around the "
                "parallel reward, CachedReward(ParallelReward(function, executor))"
            )
        if isinstance(function, type) or not callable(function):
            raise TypeError(
                f"function is {kind_name(function)}: expected a function of states that gives log R of each"
            )
        self.function = function
        self.executor = executor
        self.chunk = count(chunk, "chunk", least=1)
        self.retries = count(retries, "retries")
        check(timeout, "timeout", float | None, _SECONDS)
        check(on_failure, "on_failure", float | None)
        self.timeout, self.on_failure = timeout, on_failure
        self.failed = 0
        """The number of objects so far whose computation failed and whose log R is therefore `on_failure`."""
        self._calls = itertools.count()

    @property
    def partial_log_reward(self) -> Callable[..., Numbers]:
        """A function that computes the method `partial_log_reward` of `function` in the workers. Raises an
        `AttributeError` if `function` has no such method."""
        if not callable(getattr(self.function, "partial_log_reward", None)):
            raise AttributeError(
                f"{type(self.function).__name__} has no method `partial_log_reward`: expected that method "
                "for objectives that use rewards of unfinished states"
            )
        return partial(self._compute, "partial_log_reward")

    @property
    def executor(self) -> Executor:
        """The executor whose workers compute the function. If it broke, assign another executor and continue
        training."""
        return self._executor

    @executor.setter
    def executor(self, executor: Executor) -> None:
        self._executor = _check_executor(executor)

    def __call__(self, states: Any, conditions: Any = None) -> Numbers:
        return self._compute("__call__", states, conditions)

    def _compute(self, method: str, states: Any, conditions: Any = None) -> Numbers:
        """Computes log R of all states in the workers, by the method `method` of the function."""
        n = len(states)
        given = None if conditions is None else torch.as_tensor(conditions).detach().cpu().numpy()
        out = np.empty(n)
        asked: dict[Future[Numbers], tuple[int, int, int]] = {}

        def ask(first: int, end: int, tries: int) -> None:
            some = None if given is None else given[first:end]
            asked[self._submit(method, states[first:end], some)] = first, end, tries

        began = heard = time.monotonic()
        shown, failed = False, 0
        try:
            for first in range(0, n, self.chunk):
                ask(first, min(first + self.chunk, n), 0)
            while asked:
                ended, _ = wait(asked, timeout=_LOOK, return_when=FIRST_COMPLETED)
                now = time.monotonic()
                heard = now if ended else heard
                for future in ended:
                    first, end, tries = asked.pop(future)
                    error = _error_of(future)
                    if error is None:
                        out[first:end] = future.result()
                    elif isinstance(error, BrokenExecutor):
                        raise _broken_executor("reward", self._executor, error) from error
                    elif end - first > 1:
                        for one in range(first, end):
                            ask(one, one + 1, 0)
                    elif tries < self.retries:
                        ask(first, end, tries + 1)
                    elif self.on_failure is None or failed + 1 == n > 1:
                        raise RuntimeError(_failure_message(states, first, tries + 1, error)) from error
                    else:
                        failed += 1
                        out[first] = self.on_failure
                if self.timeout is not None and now - heard > self.timeout * self.chunk + _GRACE:
                    first = min(first for first, _, _ in asked.values())
                    raise TimeoutError(
                        f"no worker has answered for {now - heard:.0f} s. {len(asked)} calls are open, the "
                        f"first for object {first} of {n}: {_show_state(states, first)}. Stop the workers, "
                        "set `executor` to a new executor, and continue training"
                    )
                if now - began > _SLOW and sys.stderr.isatty():
                    shown = True
                    left = sum(end - first for first, end, _ in asked.values())
                    sys.stderr.write(f"\rreward: {n - left} of {n} objects".ljust(40))
                    sys.stderr.flush()
        finally:
            # After an error or Ctrl-C, the calls that haven't begun are cancelled.
            for future in asked:
                future.cancel()
            if shown:
                sys.stderr.write("\r" + 40 * " " + "\r")
        self.failed += failed
        return out

    def _submit(self, method: str, states: Any, conditions: Any) -> Future[Numbers]:
        try:
            # Each call has a different number, because Dask would answer a repeated call with equal arguments
            # by the failure of the earlier call.
            return self._executor.submit(
                _compute_chunk, self.function, method, states, conditions, self.timeout, next(self._calls)
            )
        except RuntimeError as error:
            raise _broken_executor("reward", self._executor, error) from error


@dataclass(frozen=True)
class _Walks:
    """Trajectories that a worker sends to the trainer's process. Only the moves are sent, without states,
    because the trainer's process replays the moves."""

    moves: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]
    instances: npt.NDArray[np.int64]
    log_rewards: Numbers
    conditions: Any


class Actors:
    """Workers that sample objects and compute their reward while the trainer trains, for rewards that are
    slow or take uneven times. Pass an `Actors` to the trainer as its fresh source, with a replay buffer that
    fills batches while no new objects arrive:

        actors = gfn.Actors(make, executor, tasks=8)
        trainer = gfn.Trainer(env, reward, policy, sources=[gfn.FreshSource(actors), gfn.Replay(10_000)])

    make
        `make(seed)` returns a trainer with the environment, reward and policy of the main trainer. Each
        worker makes one trainer, and loads the parameters that come with each call.
    executor
        Any `concurrent.futures.Executor`.
    tasks, batch
        The number of calls that run or wait in the executor at a time, and the number of objects per call.
    epsilon
        The share of uniform actions in the workers' samples. A list of numbers is used by the calls in turn,
        so that some calls explore more than others.
    max_staleness
        The largest age, in training steps, of the parameters with which an object was sampled. Objects that
        were sampled with older parameters are dropped and counted in `stale`.
    max_reuse
        The largest average number of times that the trainer learns from an object, at least 1. The trainer
        waits for new objects if this number would be exceeded.
    timeout
        The number of seconds that the trainer waits without an answer before it raises an error.

    Workers send whole trajectories. The trainer checks each move, and learns from the actions that the worker
    took. Conditions are drawn in the trainer's process, from the trainer's `conditions`, and sent with each
    call. A run with `Actors` isn't reproducible, because the time at which objects arrive depends on the
    workers. A step raises the errors of `make` and of the reward; a reward that may fail has to retry by
    itself. A call that is lost because its worker ended is counted in `lost`. `close` cancels calls that
    haven't begun.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> env, reward, net = gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,))
    >>> make = lambda seed: gfn.Trainer(env, reward, net, batch=8, seed=seed)
    >>> with ThreadPoolExecutor(1) as executor:
    ...     actors = gfn.Actors(make, executor, tasks=2, batch=8)
    ...     trainer = gfn.Trainer(env, reward, net, batch=8, sources=[gfn.FreshSource(actors)]).fit(2)
    ...     actors.close()
    >>> actors.received > 0
    True
    """

    @suggests_names
    def __init__(
        self,
        make: Callable[[int], "Trainer"],
        executor: Executor,
        *,
        tasks: int,
        batch: int = 16,
        epsilon: float | Sequence[float] = 0.0,
        max_staleness: int = 100,
        max_reuse: float = 8.0,
        timeout: float | None = None,
    ) -> None:
        self.tasks, self.batch = count(tasks, "tasks", least=1), count(batch, "batch", least=1)
        several = isinstance(epsilon, (Sequence, np.ndarray)) and not isinstance(epsilon, str)
        shares: Any = list(epsilon) if several else [epsilon]  # type: ignore[arg-type]
        self.epsilon: list[float] = shares
        for share in self.epsilon:
            check(share, "epsilon", float, Bounds(0.0, 1.0))
        if not self.epsilon:
            raise ValueError(
                "epsilon is an empty list: expected a number from 0 to 1, or a list of at least one such "
                "number"
            )
        self.max_staleness = count(max_staleness, "max_staleness")
        check(max_reuse, "max_reuse", float, Bounds(least=1.0))
        check(timeout, "timeout", float | None, _SECONDS)
        self.max_reuse, self.timeout = max_reuse, timeout
        self.received = self.used = self.stale = self.lost = 0
        self._open_calls: set[Future[Any]] = set()
        self._ready: list[tuple[int, Trajectories]] = []
        self._env: Any = None
        self.make, self.executor = make, executor
        self._seeds = itertools.count(1)
        self._parameters: list[tuple[str, torch.Tensor]] | None = None
        self._conditions: Callable[[int], npt.NDArray[Any]] | None = None
        self._trained = self._step = 0

    @property
    def make(self) -> Callable[[int], "Trainer"]:
        """The function that makes a worker's trainer. If it failed, assign another function and continue
        training."""
        return self._make

    @make.setter
    def make(self, make: Callable[[int], "Trainer"]) -> None:
        if isinstance(make, type) or not callable(make):
            raise TypeError(
                f"make is {make!r:.200}: expected a function that takes a seed and returns a trainer"
            )
        self.close()
        # A worker makes a new trainer if `_run` differs from the value in the worker's last call.
        self._make, self._run = make, uuid.uuid4().hex

    @property
    def executor(self) -> Executor:
        """The executor of the workers. If it broke, assign another executor and continue training."""
        return self._executor

    @executor.setter
    def executor(self, executor: Executor) -> None:
        executor = _check_executor(executor)
        self.close()
        self._executor = executor

    def close(self) -> None:
        """Cancels the calls that haven't begun. If the trainer continues, it makes new calls."""
        for future in self._open_calls:
            future.cancel()
        self._open_calls, self._in_a_row = set(), 0

    def _check_free(self, n_conditions: int, conditions: Any) -> None:
        if self._parameters is not None:
            raise ValueError(
                "the actors already sample for another trainer: expected new Actors for each trainer"
            )
        if n_conditions > 0 and conditions is None:
            raise ValueError(
                "the trainer of the actors draws its conditions inside the library, where actors can't draw "
                "them: expected a function that draws them, `conditions=Conditions(function, width)`"
            )

    def _attach(
        self, trainer: "Trainer", batch: int, n_conditions: int, conditions: Conditions | Conditioning | None
    ) -> None:
        """Registers the trainer for which the workers sample from now on."""
        self._check_free(n_conditions, conditions)
        rng = np.random.default_rng()
        if isinstance(conditions, Conditioning):
            self._conditions = lambda n: conditions.draw(n, int(rng.integers(1 << 53))).numpy()
        elif conditions is not None:
            self._conditions = lambda n: np.asarray(conditions.function(n, rng))
        self._parameters, self._trained, self._env = list(trainer.named_parameters()), batch, trainer.env

    def __call__(self, request: BatchRequest, rng: np.random.Generator) -> FreshObjects | None:
        self._step += 1
        try:
            taken = self._wait_for_objects(request)
        except BaseException:
            # The training step failed, so `_step` doesn't count it.
            self._step -= 1
            raise
        if not taken:
            return None
        drawn = taken[0]
        for some in taken[1:]:
            drawn = drawn + some
        self.used += len(drawn)
        return FreshObjects(drawn)

    def _wait_for_objects(self, request: BatchRequest) -> list[Trajectories]:
        """Waits until enough trajectories for a batch have arrived, and returns them. If the request allows
        more trajectories than the batch needs, all trajectories that arrived are returned."""
        # The number of objects that must arrive before the trainer can continue without using objects more
        # than `max_reuse` times on average.
        owed = int(self._step * self._trained / self.max_reuse) - self.used
        enough = max(request.min, owed) if request.allow_more else request.min
        heard = time.monotonic()
        while True:
            before = self.received + self.lost
            self._collect()
            have = sum(len(some) for _, some in self._ready)
            self._refill(have, request.max)
            if have >= enough:
                return self._take(have if request.allow_more else request.max)
            now = time.monotonic()
            heard = now if self.received + self.lost > before else heard
            if self.timeout is not None and now - heard > self.timeout:
                raise TimeoutError(
                    f"no actor has answered for {now - heard:.0f} s, and {len(self._open_calls)} calls are "
                    "open: stop the workers, set `actors.executor` to a new executor, and continue training"
                )
            wait(self._open_calls, timeout=_LOOK, return_when=FIRST_COMPLETED)

    def _collect(self) -> None:
        """Collects the trajectories of the calls that have finished, and counts lost calls. Drops
        trajectories whose parameters are older than `max_staleness` steps."""
        for future in [future for future in self._open_calls if future.done()]:
            self._open_calls.discard(future)
            error = _error_of(future)
            if isinstance(error, BrokenExecutor):
                raise _broken_executor("actors", self._executor, error) from error
            if error is not None:
                self.lost += 1
                self._in_a_row += 1
                if self._in_a_row > 2 * self.tasks:
                    message = (
                        f"{self._in_a_row} calls of actors failed in a row, the last with "
                        f"{type(error).__name__}: {error}. Check the workers and the executor"
                    )
                    self.close()
                    raise RuntimeError(message) from error
                continue
            self._in_a_row = 0
            step, walks = future.result()
            if isinstance(walks, str):
                self.close()
                raise RuntimeError(
                    f"an actor failed with {walks}. Correct the function `make`, set it by `actors.make = "
                    "...`, and continue training"
                )
            try:
                some = Trajectories._again(
                    self._env,
                    walks.moves,
                    walks.offsets,
                    walks.instances,
                    walks.log_rewards,
                    walks.conditions,
                    None,
                )
            except (ValueError, IndexError) as refused:
                self.close()
                message = (
                    "an actor sampled a trajectory that is illegal in the trainer's environment: let `make` "
                    "return a trainer of the same environment"
                )
                raise RuntimeError(f"{message} ({refused})") from refused
            self.received += len(some)
            self._ready.append((step, some))
        old = self._step - self.max_staleness
        self.stale += sum(len(some) for step, some in self._ready if step < old)
        self._ready = [one for one in self._ready if one[0] >= old]

    def _refill(self, have: int, most: int) -> None:
        """Makes new calls until `tasks` calls are open. No call is made if the trajectories that wait for the
        trainer (`have`) are at least a full batch (`most`) plus the results of `tasks` calls. This limits how
        many trajectories wait."""
        if self._parameters is None:
            raise RuntimeError(
                "the actors have no trainer: pass them to a trainer by `sources=[gfn.FreshSource(actors)]`"
            )
        if len(self._open_calls) == self.tasks or have >= most + self.tasks * self.batch:
            return
        values = [(name, tensor.detach().cpu().numpy().copy()) for name, tensor in self._parameters]
        while len(self._open_calls) < self.tasks:
            conditions = None if self._conditions is None else self._conditions(self.batch)
            number = next(self._seeds)
            given = (
                self.make,
                self._run,
                self._step,
                values,
                self.batch,
                conditions,
                self.epsilon[number % len(self.epsilon)],
                number,
            )
            try:
                self._open_calls.add(self._executor.submit(_draw_in_worker, *given))
            except RuntimeError as error:
                raise _broken_executor("actors", self._executor, error) from error

    def _take(self, most: int) -> list[Trajectories]:
        """Removes at most `most` trajectories from those that have arrived, oldest first, and returns
        them."""
        taken: list[Trajectories] = []
        while most > 0 and self._ready:
            step, some = self._ready.pop(0)
            if len(some) > most:
                self._ready.insert(0, (step, some[most:]))
            taken.append(some[:most])
            most -= len(taken[-1])
        return taken


_WORKER = threading.local()


def _draw_in_worker(
    make: Callable[[int], "Trainer"],
    run: str,
    step: int,
    values: list[tuple[str, Any]],
    n: int,
    conditions: Any,
    epsilon: float,
    number: int,
) -> tuple[int, _Walks | str]:
    """Samples trajectories in a worker, with these parameters. Returns the training step that the parameters
    are from, and the trajectories with log R, or the text of an error."""
    try:
        if getattr(_WORKER, "run", None) != run:
            _WORKER.trainer, _WORKER.run = make(number), run
        parameters = dict(_WORKER.trainer.named_parameters())
        theirs, mine = [(name, value.shape) for name, value in values], [
            (name, tuple(p.shape)) for name, p in parameters.items()
        ]
        if sorted(theirs) != sorted(mine):
            raise ValueError(
                f"make gave a trainer with the parameters {mine}: expected the parameters of the trainer "
                f"that uses the actors, {theirs}"
            )
        with torch.no_grad():
            for name, value in values:
                parameters[name].copy_(torch.tensor(value))
        trainer = _WORKER.trainer
        # Each call has a different seed, so that no two calls draw the same trajectories.
        drawn = trainer.rewarded(
            Sampler(trainer.env, trainer, epsilon=epsilon).sample(n, conditions=conditions, seed=number)
        )
        under = None if drawn.conditions is None else drawn.conditions
        walks = _Walks(
            drawn._paths.walked().numpy(), drawn.offsets, drawn._paths.instances(), drawn.log_rewards, under
        )
    except Exception as error:
        # The error is sent as text, because not every error can be pickled.
        return step, f"{type(error).__name__}: {error}"
    return step, walks


def _check_executor(executor: Any) -> Executor:
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor is {kind_name(executor)}: expected a concurrent.futures.Executor, such as "
            f"ProcessPoolExecutor(8)"
        )
    return executor  # type: ignore[no-any-return]


def _broken_executor(whose: str, executor: Executor, error: BaseException) -> RuntimeError:
    kind = type(executor).__name__
    return RuntimeError(
        f"the executor, a {kind}, accepts no more calls ({error}): a worker was killed or ran out of memory, "
        f"or the executor was shut down. Set a new executor, `{whose}.executor = {kind}(...)`, and continue "
        "training: this step isn't counted"
    )


def _error_of(future: Future[Any]) -> BaseException | None:
    """Returns the exception of a finished or cancelled call; None if it succeeded."""
    try:
        return future.exception()
    except CancelledError as error:
        return error


def _show_state(states: Any, at: int) -> str:
    one = states[at : at + 1]
    try:
        # Graphs that aren't molecules have no SMILES, which is a `TypeError`.
        shown = one.smiles[0] if isinstance(states, Graphs) else str(getattr(one, "tolist", lambda: one)())
    except TypeError:
        shown = str(one)
    return shown if len(shown) <= 200 else shown[:200] + "..."


def _failure_message(states: Any, at: int, tries: int, error: BaseException) -> str:
    often = "" if tries == 1 else f", computed {tries} times,"
    what = f"the reward of object {at} of {len(states)}{often} failed with {type(error).__name__}: {error}"
    if isinstance(error, PicklingError) or "pickle" in str(error):
        return (
            f"{what}. The executor sends the function to other processes by pickle: define the function at "
            "the top level of a module, instead of as a lambda or inside of a function"
        )
    return (
        f"{what}. The object is {_show_state(states, at)}. Correct the function, or set `on_failure` to the "
        "log R of objects whose reward fails"
    )


def _compute_chunk(
    function: Any, method: str, states: Any, conditions: Any, timeout: float | None, _number: int
) -> Numbers:
    """Computes log R of a chunk of states, in a worker."""
    called = function if method == "__call__" else getattr(function, method)
    more = () if conditions is None else (torch.tensor(conditions),)
    with _time_limit(None if timeout is None else timeout * len(states)):
        given = called(states, *more)
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
        given = (given.double() if given.is_floating_point() else given).numpy()
    array = np.asarray(given)
    # Only numbers and bools are accepted. numpy would convert a complex number to its real part, and a text
    # to the number that it spells.
    if isinstance(given, np.ma.MaskedArray) or array.dtype.kind not in "biuf":
        what = f"a {type(given).__name__} with elements of type {array.dtype}"
        raise TypeError(
            f"the reward returned {what}, expected real numbers: return an array of log R, one number per "
            f"state"
        )
    if array.shape != (len(states),):
        what = f"an array of shape {list(array.shape)} for {len(states)} states"
        raise ValueError(
            f"the reward returned {what}, expected shape [{len(states)}]: return log R of each state"
        )
    return array.astype(np.float64)


class _TooLong(BaseException):
    """The exception that interrupts a function after its time limit. This class isn't a subclass of
    `Exception`, so that `except Exception` in the function doesn't catch the interruption."""


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupts the code of the `with` block after `seconds`, if the code runs in the main thread and the
    system has alarm signals."""
    if (
        seconds is None
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def over(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TooLong:
        raise TimeoutError(
            f"the reward took longer than {seconds:g} s: raise `timeout`, or make the reward faster"
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # The previous handler is None if it was set outside of Python. In this case the default handler
        # replaces it.
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
