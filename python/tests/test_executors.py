"""Tests of rewards and samplers on executors: their results, failures and running times."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import torch

import gfn_rs as gfn


def reward(points):
    return -0.3 * np.abs(points - 3).sum(axis=1)


def of_graphs(graphs):
    return np.array([-0.2 * len(graphs[k].edges) for k in range(len(graphs))])


def of_conditions(points, conditions):
    return reward(points) * conditions[:, 0].numpy()


def slow(points):
    time.sleep(0.01 * len(points))
    return reward(points)


def fails_at_three(points):
    if (points.sum(axis=1) == 3).any():
        raise LookupError("three is not in the table")
    return reward(points)


FAILED = []


def fails_once(points):
    if not FAILED:
        FAILED.append(1)
        raise ConnectionError("the service is busy")
    return reward(points)


def hangs_at_three(points):
    if (points.sum(axis=1) == 3).any():
        time.sleep(60)
    return reward(points)


def kills_its_worker(points):
    os.kill(os.getpid(), signal.SIGKILL)


def wide(points):
    return np.zeros((len(points), 2))


class Partial:
    def __call__(self, points):
        return reward(points)

    def partial_log_reward(self, points):
        return reward(points)


def pool(n):
    # New processes are spawned, because the threads of libtorch don't survive a fork.
    return ProcessPoolExecutor(n, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def processes():
    with pool(2) as executor:
        yield executor


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as executor:
        yield executor


def grid(log_reward, **changes):
    return gfn.Trainer(gfn.HyperGrid(2, 4), log_reward, gfn.Mlp((16,)), batch=16, **changes)


POINTS = np.array([[a, b] for a in range(4) for b in range(4)])


@pytest.mark.parametrize("chunk", [1, 5, 100])
def test_a_run_on_processes_is_the_run_of_the_function_itself(processes, chunk):
    own = grid(reward).fit(10)
    there = grid(gfn.ParallelReward(reward, processes, chunk=chunk)).fit(10)
    for name in ("loss", "log_z"):
        assert own.history[name].tolist() == there.history[name].tolist()
    assert (own.exact().probs == there.exact().probs).all()


def test_graphs_go_to_processes_and_back(processes):
    make = lambda it: gfn.Trainer(gfn.GraphBuilding(3), it, gfn.GraphNet(embedding=8), batch=8).fit(3)
    own, there = make(of_graphs), make(gfn.ParallelReward(of_graphs, processes, chunk=3))
    assert own.history["loss"].tolist() == there.history["loss"].tolist()


def test_conditions_go_with_their_states(processes):
    draw = lambda n, rng: rng.uniform(0.5, 2.0, (n, 1))
    own, there = (
        gfn.Trainer(
            gfn.HyperGrid(2, 4), it, gfn.Mlp((16,)), batch=16, conditions=gfn.Conditions(draw, 1)
        ).fit(5)
        for it in (of_conditions, gfn.ParallelReward(of_conditions, processes, chunk=3))
    )
    assert own.history["loss"].tolist() == there.history["loss"].tolist()


def test_partial_rewards_are_asked_for_there(threads):
    assert not hasattr(gfn.ParallelReward(reward, threads), "partial_log_reward")
    parallel = gfn.ParallelReward(Partial(), threads, chunk=2)
    assert parallel.partial_log_reward(POINTS).tolist() == reward(POINTS).tolist()
    looking = gfn.DetailedBalance(forward_looking=True)
    own, there = grid(Partial(), objective=looking).fit(3), grid(parallel, objective=looking).fit(3)
    assert own.history["loss"].tolist() == there.history["loss"].tolist()


def test_answers_that_come_in_another_order_are_those_of_their_objects(threads):
    def uneven(points):
        time.sleep(0.02 * (points[0, 0] == 0))
        return reward(points)

    assert gfn.ParallelReward(uneven, threads)(POINTS).tolist() == reward(POINTS).tolist()
    tensor = gfn.ParallelReward(lambda points: torch.from_numpy(reward(points)), threads, chunk=4)
    assert tensor(POINTS).tolist() == reward(POINTS).tolist()


@pytest.mark.parametrize("chunk", [1, 4, 16])
def test_an_object_that_fails_is_named_and_costs_no_other(threads, chunk):
    with pytest.raises(
        RuntimeError,
        match=(r"object (3|6|9|12) of 16 failed with LookupError: three is not in the table.*\[\[(0, 3|1, "
            r"2|2, 1|3, 0)\]\]"),
    ):
        gfn.ParallelReward(fails_at_three, threads, chunk=chunk)(POINTS)
    lenient = gfn.ParallelReward(fails_at_three, threads, chunk=chunk, on_failure=-50.0)
    given = lenient(POINTS)
    failed = POINTS.sum(axis=1) == 3
    assert (given[failed] == -50).all() and (given[~failed] == reward(POINTS)[~failed]).all()
    assert lenient.failed == failed.sum() == 4


def test_an_object_is_asked_for_again(threads):
    calls = []

    def flaky(points):
        calls.append(len(points))
        if len(calls) <= 2:
            raise ConnectionError("the service is busy")
        return reward(points)

    assert gfn.ParallelReward(flaky, threads, retries=2)(POINTS[:1]).tolist() == reward(POINTS[:1]).tolist()
    calls.clear()
    with pytest.raises(RuntimeError, match="computed 2 times, failed with ConnectionError"):
        gfn.ParallelReward(flaky, threads, retries=1)(POINTS[:1])


def test_an_object_is_asked_for_again_by_engines_that_keep_answers():
    class Pure(Executor):
        """An executor that returns the same result for equal calls, as Dask does."""

        def __init__(self):
            self.known = {}

        def submit(self, function, *given):
            key = pickle.dumps((function, given))
            if key not in self.known:
                self.known[key] = Future()
                try:
                    self.known[key].set_result(function(*given))
                except Exception as error:
                    self.known[key].set_exception(error)
            return self.known[key]

    FAILED.clear()
    assert (
        gfn.ParallelReward(fails_once, Pure(), retries=1)(POINTS[:1]).tolist() == reward(POINTS[:1]).tolist()
    )


def test_what_takes_too_long_is_interrupted(processes):
    began = time.monotonic()
    lenient = gfn.ParallelReward(hangs_at_three, processes, chunk=4, timeout=0.25, on_failure=-9.0)
    given = lenient(POINTS)
    assert lenient.failed == 4 and (given[POINTS.sum(axis=1) == 3] == -9).all()
    assert time.monotonic() - began < 20
    with pytest.raises(RuntimeError, match="TimeoutError: the reward took longer than 0.2 s"):
        gfn.ParallelReward(hangs_at_three, processes, timeout=0.2)(POINTS)
    # After slow calls were interrupted, the same workers must still compute rewards.
    assert gfn.ParallelReward(reward, processes, timeout=0.2)(POINTS).tolist() == reward(POINTS).tolist()


def test_workers_that_never_answer_are_an_error(monkeypatch):
    class Silent(Executor):
        def submit(self, *_):
            return Future()

    monkeypatch.setattr("gfn_rs._executors._GRACE", 0.3)
    with pytest.raises(TimeoutError, match="no worker has answered"):
        gfn.ParallelReward(reward, Silent(), timeout=0.1)(POINTS)


def test_a_killed_worker_is_an_error_after_which_a_run_goes_on():
    broken = pool(1)
    parallel = gfn.ParallelReward(kills_its_worker, broken)
    trainer = grid(parallel)
    with pytest.raises(
        RuntimeError, match=r"accepts no more calls.*reward.executor = ProcessPoolExecutor\(\.\.\.\)"
    ):
        trainer.fit(2)
    with pytest.raises(RuntimeError, match="accepts no more calls"):
        trainer.fit(2)
    broken.shutdown()
    parallel.function = reward
    with ThreadPoolExecutor(2) as executor:
        parallel.executor = executor
        assert trainer.fit(3).steps_done == 3
    with pytest.raises(RuntimeError, match="shut down"):
        trainer.fit(1)


def test_control_c_ends_a_slow_batch(threads):
    import _thread

    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = []

    def very_slow(points):
        asked.append(1)
        time.sleep(0.2)
        return reward(points)

    trainer = grid(gfn.ParallelReward(very_slow, threads))
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(100)
    assert time.monotonic() - began < 3
    # Calls that hadn't begun must have been cancelled, so fewer than all 16 objects were computed.
    time.sleep(0.5)
    assert len(asked) < 16


def test_progress_of_a_slow_batch_is_shown_on_a_terminal_alone(threads, monkeypatch, capsys):
    monkeypatch.setattr("gfn_rs._executors._SLOW", 0.0)
    parallel = gfn.ParallelReward(slow, threads)
    parallel(POINTS)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    parallel(POINTS)
    shown = capsys.readouterr().err
    assert "of 16 objects" in shown and shown.endswith("\r")


@pytest.mark.parametrize(
    "given", [np.ma.masked_array(np.zeros(16), np.arange(16) == 3), ["-1.5"] * 16, np.full(16, 1j)]
)
def test_what_a_reward_may_not_give_is_refused_from_a_worker_too(threads, given):
    for it in (
        lambda points: given[: len(points)],
        gfn.ParallelReward(lambda points: given[: len(points)], threads, chunk=100),
    ):
        with pytest.raises((TypeError, RuntimeError), match="expected"):
            grid(it).fit(1)


def test_tensors_of_any_kind_are_log_rewards(threads):
    half = gfn.ParallelReward(
        lambda points: torch.tensor(reward(points), dtype=torch.bfloat16, requires_grad=True),
        threads,
        chunk=16,
    )
    assert half(POINTS) == pytest.approx(reward(POINTS), rel=1e-2)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda it: gfn.ParallelReward(3, it), TypeError, "function is int"),
        (lambda it: gfn.ParallelReward(Partial, it), TypeError, "function is Partial"),
        (
            lambda it: gfn.ParallelReward(gfn.CachedReward(reward), it),
            TypeError,
            r"CachedReward\(ParallelReward\(function, executor\)\)",
        ),
        (
            lambda it: gfn.ParallelReward(wide, it)(gfn.Molecules(3).states(["OCC"])),
            RuntimeError,
            "The object is CCO",
        ),
        (
            lambda it: gfn.ParallelReward(reward, 8),
            TypeError,
            "executor is int: expected a concurrent.futures.Executor",
        ),
        (
            lambda it: gfn.ParallelReward(reward, ThreadPoolExecutor),
            TypeError,
            "executor is ThreadPoolExecutor",
        ),
        (lambda it: gfn.ParallelReward(reward, it, chunk=0), ValueError, "chunk is 0"),
        (lambda it: gfn.ParallelReward(reward, it, chunk=1.5), TypeError, "chunk is 1.5"),
        (lambda it: gfn.ParallelReward(reward, it, retries=-1), ValueError, "retries is -1"),
        (
            lambda it: gfn.ParallelReward(reward, it, timeout=0),
            ValueError,
            "timeout is 0: expected seconds above 0",
        ),
        (lambda it: gfn.ParallelReward(reward, it, timeout="1"), TypeError, "timeout is '1'"),
        (
            lambda it: gfn.ParallelReward(reward, it, on_failure=float("-inf")),
            ValueError,
            "on_failure is -inf",
        ),
        (
            lambda it: gfn.ParallelReward(wide, it, chunk=4)(POINTS),
            RuntimeError,
            r"returned an array of shape \[1, 2\] for 1 states",
        ),
    ],
)
def test_what_is_refused(threads, make, kind, words):
    with pytest.raises(kind, match=words):
        make(threads)


def test_a_function_that_no_process_can_have_says_so(processes):
    with pytest.raises(RuntimeError, match=r"object \d+ of 16 failed with .*(pickle|local).*top level"):
        gfn.ParallelReward(lambda points: reward(points), processes)(POINTS)
    # The call fails for all objects, because the function can't be pickled. If all of them got the log R of
    # `on_failure`, the reward would be constant, so an error is expected instead.
    with pytest.raises(RuntimeError, match="(pickle|local)"):
        gfn.ParallelReward(lambda points: reward(points), processes, on_failure=-1.0)(POINTS)


def make(seed, **changes):
    return gfn.Trainer(gfn.HyperGrid(2, 4), reward, gfn.Mlp((32,)), seed=seed, **{"batch": 16, **changes})


def make_wider(seed):
    return gfn.Trainer(gfn.HyperGrid(2, 4), reward, gfn.Mlp((64,)), seed=seed)


def make_graphs(seed, **changes):
    return gfn.Trainer(
        gfn.GraphBuilding(3), of_graphs, gfn.GraphNet(embedding=8), batch=8, seed=seed, **changes
    )


def of_betas(points, conditions):
    return reward(points) * np.asarray(conditions)[:, 0]


def betas(n, rng):
    return rng.choice([0.5, 2.0], (n, 1))


def make_conditional(seed, **changes):
    settings = {"batch": 32, "conditions": gfn.Conditions(betas, 1), "adam": gfn.Adam(lr=3e-3), **changes}
    return gfn.Trainer(gfn.HyperGrid(2, 4), of_betas, gfn.Mlp((32, 32)), seed=seed, **settings)


def make_tempered(seed, **changes):
    conditioning = gfn.Conditioning(temperature=gfn.UniformTemperature(0.5, 2.0))
    return gfn.Trainer(
        gfn.HyperGrid(2, 4), reward, gfn.Mlp((16,)), batch=8, conditions=conditioning, seed=seed, **changes
    )


def make_library_s(seed, **changes):
    return gfn.Trainer(
        gfn.HyperGrid(2, 4), gfn.ConditionalGridReward(), gfn.Mlp((16,)), batch=8, seed=seed, **changes
    )


def make_failing(seed):
    return gfn.Trainer(gfn.HyperGrid(2, 4), fails_at_three, gfn.Mlp((32,)), batch=16, seed=seed)


def make_slow(seed, **changes):
    def slower(points):
        time.sleep(0.2)
        return reward(points)

    return gfn.Trainer(gfn.HyperGrid(2, 4), slower, gfn.Mlp((32,)), seed=seed, **{"batch": 16, **changes})


def make_that_dies(seed):
    os.kill(os.getpid(), signal.SIGKILL)


def learner(actors, make=make, **changes):
    return make(0, sources=[gfn.FreshSource(actors), gfn.Replay(2000, share=0.5, after=2)], **changes)


def test_actors_on_processes_train_to_the_distribution_of_one_process(processes):
    actors = gfn.Actors(make, processes, tasks=3, batch=16)
    steps = dict(adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0.01, 1500)))
    it = learner(actors, **steps).fit(1500)
    alone = make(0, sources=[gfn.Replay(2000, share=0.5, after=2)], **steps).fit(1500)
    untrained = make(0).exact().tv
    assert alone.exact().tv < 0.02 and it.exact().tv < 0.02 < 0.1 < untrained
    assert it.steps_done == 1500
    # The trainer learned from 1,500 batches of 16 trajectories. Each used object may be the source of at most
    # 8 of these trajectories on average, because the default of `max_reuse` is 8.
    assert actors.used * 8 >= 1500 * 16 and actors.received >= actors.used
    assert actors.lost == 0


def test_actors_draw_graphs(processes):
    actors = gfn.Actors(make_graphs, processes, tasks=2, batch=5)
    it = learner(actors, make_graphs).fit(20)
    assert it.steps_done == 20 and actors.used >= 20


def test_actors_draw_under_the_conditions_of_the_trainer(processes):
    it = learner(
        gfn.Actors(make_conditional, processes, tasks=2, batch=32),
        make_conditional,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0.01, 1500)),
    ).fit(1500)
    for beta in (0.5, 2.0):
        exact = it.exact(condition=torch.tensor([beta]))
        other = it.exact(condition=torch.tensor([2.5 - beta]))
        # The policy must depend on the condition: it is close to the target of its own condition and far from
        # the target of another condition.
        assert exact.tv < 0.05 < 0.5 * np.abs(exact.probs - other.target).sum()
    assert (
        learner(gfn.Actors(make_tempered, processes, tasks=2, batch=5), make_tempered).fit(10).steps_done
        == 10
    )


def test_actors_draw_with_the_parameters_of_the_trainer(threads):
    drawn = []

    def noted(points):
        drawn.append(points)
        return reward(points)

    def sharp(seed):
        it = gfn.Trainer(gfn.HyperGrid(2, 4), noted, gfn.Mlp((32,)), seed=seed)
        assert seed > 0
        return it

    actors = gfn.Actors(sharp, threads, tasks=1, batch=64)
    it = learner(actors)
    with torch.no_grad():
        # The first three of the network's five outputs are the logits of P_F. Their biases are set so that
        # the exit has almost all probability.
        for name, tensor in it.named_parameters():
            if tensor.numel() == 5:
                tensor[:3] = torch.tensor([-50.0, -50.0, 50.0])
    drawn.clear()
    it.fit(1)
    of_actors = [points for points in drawn if len(points) == 64]
    assert of_actors and (of_actors[0] == 0).all()


def test_what_is_too_old_is_dropped():
    class Late(Executor):
        """An executor that holds each result back until the test releases it."""

        def __init__(self):
            self.asked = []

        def submit(self, function, *given):
            self.asked.append((Future(), function, given))
            return self.asked[-1][0]

        def answer(self):
            for future, function, given in self.asked:
                future.set_result(function(*given))
            self.asked = []

    late = Late()
    actors = gfn.Actors(make, late, tasks=1, batch=4, max_staleness=1, max_reuse=1e9)
    make(0, sources=[gfn.FreshSource(actors)])
    rng, some = np.random.default_rng(0), gfn.BatchRequest(min=0, max=16, allow_more=False)
    ask = lambda: actors(some, rng)
    assert ask() is None
    late.answer()
    assert len(ask().objects) == 4
    late.answer()
    # The objects of this call were sampled with the parameters of step 2, and are used in step 3.
    assert len(ask().objects) == 4 and actors.stale == 0
    assert ask() is None and ask() is None
    late.answer()
    # The objects of this call were sampled with the parameters of step 3. In step 6 they are too old.
    assert ask() is None and actors.stale == 4
    assert (actors.received, actors.used, actors.lost) == (12, 8, 0)


class Losing(ThreadPoolExecutor):
    """An executor that loses some calls, like an executor one of whose machines fails."""

    def __init__(self, which):
        super().__init__(2)
        self.which, self.calls = which, 0

    def submit(self, *given):
        self.calls += 1
        if not self.which(self.calls):
            return super().submit(*given)
        lost = Future()
        lost.set_exception(OSError("the machine has gone"))
        return lost


def test_calls_that_an_engine_loses_are_counted_and_in_a_row_an_error():
    with Losing(lambda call: call == 2) as executor:
        actors = gfn.Actors(make, executor, tasks=1)
        assert learner(actors).fit(3).steps_done == 3 and actors.lost == 1
    with Losing(lambda call: True) as executor:
        with pytest.raises(
            RuntimeError,
            match="5 calls of actors failed in a row, the last with OSError: the machine has gone",
        ):
            learner(gfn.Actors(make, executor, tasks=2)).fit(1)


def test_an_actor_that_fails_can_be_mended(threads):
    actors = gfn.Actors(make_wider, threads, tasks=2)
    it = learner(actors)
    with pytest.raises(
        RuntimeError, match="an actor failed with ValueError: make gave a trainer with the parameters"
    ):
        it.fit(1)
    actors.make = make
    assert it.fit(3).steps_done == 3 and actors.lost == 0
    # The reward fails for one object. The step must raise an error: the object must not be dropped silently.
    failing = gfn.Actors(make_failing, threads, tasks=1, batch=64)
    with pytest.raises(RuntimeError, match="three is not in the table"):
        learner(failing).fit(20)


def test_no_object_is_used_more_often_than_it_may_be_and_none_is_drawn_in_vain(threads):
    # In this run, the workers are slower than the trainer, so objects are reused, each at most twice on
    # average (`max_reuse`).
    actors = gfn.Actors(make_slow, threads, tasks=2, max_reuse=2.0)
    it = make(0, sources=[gfn.FreshSource(actors), gfn.Replay(2000, share=0.9, after=2)]).fit(20)
    assert it.steps_done == 20 and actors.used >= 20 * 16 / 2
    # In this run, the trainer is slower than the workers, and each step receives all objects that have
    # arrived.
    idle = gfn.Actors(make, threads, tasks=2)
    learner(idle).fit(60, callback=lambda *_: time.sleep(0.02), every=1)
    assert idle.stale == 0 and idle.received == idle.used
    # Without a buffer, a step receives only one batch, so the workers must wait.
    alone = gfn.Actors(make, threads, tasks=2)
    make(0, sources=[gfn.FreshSource(alone)]).fit(40, callback=lambda *_: time.sleep(0.02), every=1)
    assert alone.used == 640 and alone.stale == 0 and alone.received <= 640 + 16 + 4 * 16


def test_actors_that_are_closed_are_waited_for_no_longer():
    began = time.monotonic()
    with ThreadPoolExecutor(1) as executor:
        actors = gfn.Actors(make_slow, executor, tasks=40, batch=4)
        it = learner(actors).fit(1)
        actors.close()
    assert time.monotonic() - began < 5
    with ThreadPoolExecutor(1) as executor:
        actors.executor = executor
        assert it.fit(1).steps_done == 2
        actors.close()


def test_actors_that_never_answer_are_an_error():
    class Silent(Executor):
        def submit(self, *_):
            return Future()

    with pytest.raises(TimeoutError, match="no actor has answered"):
        learner(gfn.Actors(make, Silent(), tasks=1, timeout=0.3)).fit(1)


def test_actors_whose_worker_was_killed_go_on_elsewhere(threads):
    with pool(1) as broken:
        actors = gfn.Actors(make_that_dies, broken, tasks=1)
        it = learner(actors)
        with pytest.raises(
            RuntimeError, match=r"accepts no more calls.*actors.executor = ProcessPoolExecutor"
        ):
            it.fit(1)
    actors.make, actors.executor = make, threads
    assert it.fit(2).steps_done == 2


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda it: gfn.Actors(3, it, tasks=1), TypeError, "make is 3"),
        (lambda it: gfn.Actors(make, None, tasks=1), TypeError, "executor is NoneType"),
        (lambda it: gfn.Actors(make, it, tasks=0), ValueError, "tasks is 0"),
        (lambda it: gfn.Actors(make, it, tasks=1, batch=0), ValueError, "batch is 0"),
        (lambda it: gfn.Actors(make, it, tasks=1, max_staleness=-1), ValueError, "max_staleness is -1"),
        (lambda it: gfn.Actors(make, it, tasks=1, max_reuse=0.5), ValueError, "max_reuse is 0.5"),
        (
            lambda it: gfn.Actors(make, it, tasks=1)(gfn.BatchRequest(1, 1, False), None),
            RuntimeError,
            "no trainer",
        ),
        (
            lambda it: [learner(actors) for actors in [gfn.Actors(make, it, tasks=1)] * 2],
            ValueError,
            "another trainer",
        ),
        (
            lambda it: learner(gfn.Actors(make, it, tasks=1), make_library_s),
            ValueError,
            "where actors can't draw them",
        ),
    ],
)
def test_what_actors_refuse(threads, wrong, kind, words):
    with pytest.raises(kind, match=words):
        wrong(threads)


def test_eight_workers_do_eight_times_the_work():
    points = POINTS[np.arange(128) % 16]
    with pool(8) as executor:
        parallel = gfn.ParallelReward(slow, executor)
        parallel(points)
        best = min(timed(parallel, points) for _ in range(3))
    # The computation of each of 128 objects takes 10 ms. Together that is 1.28 s in one process, or 0.16 s on
    # eight workers of an idle machine.
    assert best < 1.28 / 3


def timed(function, points):
    began = time.perf_counter()
    function(points)
    return time.perf_counter() - began


class Here(Executor):
    """An executor that runs each call immediately, in the calling thread."""

    def __init__(self, change=lambda answer: answer):
        self.change = change

    def submit(self, function, *given):
        future = Future()
        future.set_result(self.change(function(*given)))
        return future


def test_actors_send_the_way_that_they_took():
    actors = gfn.Actors(make, Here(), tasks=2, batch=8, epsilon=[0.0, 1.0])
    trainer = make(0, sources=[gfn.FreshSource(actors)], batch=16)
    drawn = actors(gfn.BatchRequest(min=16, max=16, allow_more=False), np.random.default_rng(0)).objects
    assert isinstance(drawn, gfn.Trajectories) and len(drawn) == 16 and drawn.log_rewards is not None
    before = trainer.rewarded(drawn).log_rewards
    assert np.allclose(before, drawn.log_rewards)
    batch = trainer.batch()
    # The trainer must learn from the actions that the worker took.
    assert batch.n_fresh == len(batch) == 16 and batch.log_rewards is not None


def test_some_calls_explore_more_than_others():
    def lengths(epsilon, calls):
        actors = gfn.Actors(make, Here(), tasks=1, batch=200, epsilon=epsilon)
        trainer = make(0, sources=[gfn.FreshSource(actors)])
        with torch.no_grad():
            for name, values in trainer.named_parameters():
                values.zero_()
                if values.shape == (5,):
                    # The exit's bias is set so that almost all trajectories exit immediately.
                    values[2] = 50.0
        ask = lambda: actors(
            gfn.BatchRequest(200, 200, False), np.random.default_rng(0)
        ).objects.lengths.mean()  # noqa: E731
        return [ask() for _ in range(calls)]

    assert lengths(0.0, 1) == [1.0] and lengths(1.0, 1)[0] > 2
    mixed = lengths([0.0, 1.0], 4)
    assert mixed[0] == mixed[2] == 1.0 < 2 < min(mixed[1], mixed[3]) or mixed[1] == mixed[3] == 1.0 < 2 < min(
        mixed[0], mixed[2]
    )


def test_an_actor_of_another_environment_is_an_error_that_can_be_mended():
    actors = gfn.Actors(
        lambda seed: gfn.Trainer(gfn.HyperGrid(2, 9), gfn.HyperGridReward(), gfn.Mlp((8,))), Here(), tasks=1
    )
    trainer = make(0, sources=[gfn.FreshSource(actors)])
    with pytest.raises(RuntimeError, match="make gave a trainer with the parameters"):
        trainer.fit(1)

    def wrong(answer):
        step, walks = answer
        walks.moves[:] = 0
        return step, walks

    actors.make, actors.executor = make, Here(wrong)
    with pytest.raises(RuntimeError, match="illegal in the trainer's environment"):
        trainer.fit(1)
    actors.executor = Here()
    assert trainer.fit(2).steps_done == 2
