"""Tests of rewards in Python: their arguments, their results, and mistakes in them."""

import threading
import time
import traceback

import gfn_rs as gfn
import numpy as np
import pandas
import pytest
import torch


def trainer(reward, env=gfn.HyperGrid(2, 3), policy=gfn.Mlp((8,)), **settings):
    return gfn.Trainer(env, reward, policy, **{"batch": 8, **settings})


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: np.zeros(n),
        lambda n: np.zeros(n, dtype=np.float32),
        lambda n: np.zeros(n, dtype=np.int64),
        lambda n: np.zeros(2 * n)[::2],
        lambda n: [0.0] * n,
        lambda n: [0] * n,
        lambda n: (0.0,) * n,
        lambda n: torch.zeros(n),
        lambda n: torch.zeros(n, requires_grad=True),
        lambda n: torch.zeros(n, dtype=torch.float64),
        lambda n: torch.zeros(n, dtype=torch.bfloat16),
        lambda n: pandas.Series(np.zeros(n)),
    ],
)
def test_whatever_is_an_array_of_numbers_is_taken(answer):
    assert len(trainer(lambda states: answer(len(states))).fit(2).history["loss"]) == 2


@pytest.mark.parametrize(
    "answer, kind, message",
    [
        (lambda n: np.zeros(n + 1), ValueError, "9 numbers for 8"),
        (lambda n: np.zeros(0), ValueError, "0 numbers for 8"),
        (lambda n: np.zeros((n, 1)), ValueError, "shape"),
        (lambda n: np.zeros((n, n)), ValueError, "shape"),
        (lambda n: 0.0, ValueError, "shape"),
        (lambda n: None, (TypeError, ValueError), "reward gave"),
        (lambda n: "abcdefgh", TypeError, "reward gave a str"),
        (lambda n: ["a"] * n, TypeError, "reward gave a list"),
        (lambda n: [[0.0]] * n, ValueError, "shape"),
        (lambda n: {0: 1.0}, TypeError, "reward gave a dict"),
        (lambda n: [object()] * n, TypeError, "reward gave a list"),
        (lambda n: np.full(n, np.nan), FloatingPointError, "NaN"),
        (lambda n: np.full(n, np.inf), FloatingPointError, "inf"),
        (lambda n: np.full(n, -np.inf), FloatingPointError, "inf"),
        (lambda n: np.zeros(n, dtype=complex) + 1j, TypeError, "log R"),
        (lambda n: torch.zeros(n, dtype=torch.complex64), TypeError, "log R"),
        (lambda n: ["1"] * n, TypeError, "reward gave a list"),
        (lambda n: np.ma.masked_array(np.zeros(n), mask=True), TypeError, "log R"),
        (lambda n: np.zeros(n, dtype="M8[s]"), TypeError, "log R"),
    ],
)
def test_any_other_answer_is_an_error_and_the_trainer_goes_on(answer, kind, message):
    state = {"broken": False}

    def reward(states):
        return answer(len(states)) if state["broken"] else np.zeros(len(states))

    it = trainer(reward, sources=[gfn.Replay(100)]).fit(3)
    state["broken"] = True
    with pytest.raises(kind, match=message):
        it.fit(5)
    state["broken"] = False
    before = it.steps_done
    assert np.isfinite(it.fit(2).history["loss"]).all() and it.steps_done == before + 2


class Own(Exception):
    """An exception type that only these tests raise."""


@pytest.mark.parametrize(
    "error",
    [
        Own("mine"),
        ZeroDivisionError("x"),
        KeyError("key"),
        StopIteration(),
        SystemExit(3),
        KeyboardInterrupt(),
        MemoryError(),
        AssertionError("no"),
    ],
)
def test_exceptions_come_back_as_they_were(error):
    state = {"broken": False}

    def reward(states):
        if state["broken"]:
            raise error
        return np.zeros(len(states))

    it = trainer(reward).fit(1)
    state["broken"] = True
    with pytest.raises(type(error)) as caught:
        it.fit(1)
    assert caught.value is error
    # The traceback must contain the frame of the reward that raised the exception.
    assert any(frame.name == "reward" for frame in traceback.extract_tb(caught.value.__traceback__))
    state["broken"] = False
    assert it.fit(1).steps_done == 2


def test_a_reward_cannot_use_its_own_trainer():
    held = []

    def reward(states):
        held[0].sample(1)
        return np.zeros(len(states))

    it = trainer(lambda states: reward(states) if held else np.zeros(len(states)))
    held.append(it)
    for use in (lambda: it.fit(1), lambda: it.sample_with_rewards(1), lambda: it.exact()):
        with pytest.raises(RuntimeError, match="trainer is in use"):
            use()


def test_a_trainer_is_used_from_one_thread_at_a_time():
    started, go = threading.Event(), threading.Event()

    def reward(states):
        started.set()
        go.wait(10)
        return np.zeros(len(states))

    it = trainer(reward)
    thread = threading.Thread(target=lambda: it.fit(1))
    thread.start()
    assert started.wait(10)
    with pytest.raises(RuntimeError, match="trainer is in use"):
        it.sample(1)
    go.set()
    thread.join(10)
    # After the other thread has ended, this thread must be able to use the trainer.
    assert it.fit(1).steps_done == 2


def test_other_threads_of_python_run_meanwhile():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    it = gfn.Trainer(gfn.Ring(5), gfn.RingReward(), gfn.GraphNet(), batch=64).fit(1)
    thread = threading.Thread(target=tick)
    thread.start()
    began = time.perf_counter()
    it.fit(10)
    took = time.perf_counter() - began
    stop.set()
    thread.join()
    during = [t for t in ticks if began < t < began + took]
    assert len(during) > 5 and max(np.diff(during)) < 0.5 * took


def test_control_c_ends_a_run_within_a_step():
    import _thread
    import signal

    # A process that was started in the background ignores Ctrl-C, and its children inherit this. So the
    # handler is set here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    it = gfn.Trainer(gfn.Ring(5), gfn.RingReward(), gfn.GraphNet(), batch=64).fit(1)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        it.fit(1_000_000)
    assert time.perf_counter() - began < 3
    done = it.steps_done
    assert done > 1 and len(it.history["loss"]) == done
    assert it.fit(1).steps_done == done + 1


def log_density(target, points, dim=2):
    it = gfn.Trainer(gfn.Diffusion(dim, 4), target, gfn.DiffusionNet(), batch=4, double=True)
    return it.evaluate_on(points, paths=1).log_rewards


def test_a_posterior_is_a_ratio_of_mixtures():
    points = np.random.default_rng(0).normal(0, 5, size=(50, 2))
    nine, prior = (
        log_density(gfn.MixtureTarget(name), points) for name in ("nine_modes", "twenty_five_modes")
    )
    assert log_density(gfn.PosteriorTarget(), points) == pytest.approx(nine - prior)
    assert np.abs(nine - prior).max() > 1
    # With `langevin_clip`, a policy uses the gradient of the target's density. Training must work.
    led = gfn.Trainer(
        gfn.Diffusion(2, 4, sigma=5.0), gfn.PosteriorTarget(), gfn.DiffusionNet(langevin_clip=100.0), batch=4
    )
    assert led.fit(2).steps_done == 2


def test_a_cox_process_is_the_posterior_of_log_intensities():
    side, n = 3, 9
    at = np.stack(np.divmod(np.arange(n), side), axis=1)
    covariance = 1.91 * np.exp(-np.linalg.norm(at[:, None] - at[None], axis=2) * 33 / side)
    mean = np.log(126) - 1.91 / 2

    def without_counts(points):
        """Returns the part of the target's log-density that doesn't depend on the observed counts, for each
        row x of `points`. It is log N(x; mean, covariance) minus the number of events that x predicts."""
        away = points - mean
        prior = -0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        return (
            prior
            - 0.5 * (np.linalg.slogdet(covariance)[1] + n * np.log(2 * np.pi))
            - np.exp(points).sum(axis=1) / n
        )

    points = np.concatenate([np.zeros((1, n)), np.eye(n)])
    counts = {}
    for seed in (0, 1):
        rest = log_density(gfn.CoxTarget(side, seed), points, n) - without_counts(points)
        assert rest[0] == pytest.approx(0, abs=1e-9)
        counts[seed] = rest[1:]
        assert (
            counts[seed] == pytest.approx(np.round(counts[seed]), abs=1e-6)
            and counts[seed].min() > -1e-6
            and counts[seed].sum() > 1
        )
    # Another seed must give other observed points.
    assert (counts[0] != counts[1]).any()
    led = gfn.Trainer(gfn.Diffusion(16, 4), gfn.CoxTarget(4), gfn.DiffusionNet(langevin_clip=100.0), batch=4)
    assert led.fit(2).sample(3).shape == (3, 16)


def test_targets_that_cannot_be():
    for call, message in (
        (lambda: log_density(gfn.CoxTarget(1), np.zeros((1, 1)), 1), "grid's side is 1"),
        (lambda: log_density(gfn.CoxTarget(65), np.zeros((1, 2))), "grid's side is 65"),
        (lambda: log_density(gfn.CoxTarget(3), np.zeros((1, 2))), "dimension|shape"),
        (lambda: log_density(gfn.PosteriorTarget(), np.zeros((1, 3)), 3), "dimension|shape"),
        (lambda: gfn.CoxTarget(-1), "side is -1"),
        (lambda: gfn.CoxTarget(3, seed=2**64), "seed is"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    # The largest possible seed must be accepted.
    assert np.isfinite(log_density(gfn.CoxTarget(2, 2**64 - 1), np.zeros((1, 4)), 4)).all()


def test_gradients_stay_out_of_rewards():
    seen = []

    def reward(states):
        seen.append((type(states), states.shape, states.dtype, torch.is_grad_enabled()))
        return np.zeros(len(states))

    trainer(reward).fit(1)
    assert seen[0] == (np.ndarray, (8, 2), np.int64, False) and torch.is_grad_enabled()


def test_states_may_be_kept_and_changed():
    kept = []

    def reward(states):
        kept.append(states)
        states[:] = 99
        return np.zeros(len(states))

    it = trainer(reward).fit(5)
    # The reward changes the array that it gets. The change must not affect the trainer, which has a copy of
    # the array.
    assert it.sample(20).max() <= 2 and all((states == 99).all() for states in kept)


class Counted:
    """A reward that counts the objects that it is called with. At each call its results increase by
    `drift`."""

    def __init__(self, drift=0.0):
        self.asked, self.calls, self.drift, self.seen = 0, 0, drift, set()

    def __call__(self, states):
        self.calls += 1
        self.asked += len(states)
        self.seen |= {tuple(row) for row in states.tolist()}
        return states.sum(axis=1) * 0.5 + self.calls * self.drift

    def partial_log_reward(self, states):
        return self(states)


def test_a_cached_reward_is_asked_about_an_object_once_and_trains_the_same():
    plain, counted = trainer(Counted(), seed=3).fit(30), Counted()
    cached = trainer(gfn.CachedReward(counted), seed=3).fit(30)
    # The reward may get each of the environment's 9 objects once. The cache also asks up to 16 times for the
    # log R of a cached object, to check that it hasn't changed.
    assert len(counted.seen) <= 9 and counted.asked <= len(counted.seen) + 16
    assert np.array_equal(plain.history["loss"], cached.history["loss"])
    before = counted.calls
    states, log_rewards = cached.sample_with_rewards(50)
    assert np.array_equal(log_rewards, states.sum(axis=1) * 0.5)
    assert counted.calls <= before + 9 - len(counted.seen) + 1
    assert plain.reward_calls == cached.reward_calls


def test_graphs_up_to_isomorphism_are_asked_about_once():
    seen = []

    def edges(graphs):
        seen.extend(graphs.graph6())
        return np.zeros(len(graphs))

    env = gfn.GraphEnv([gfn.AddNode(), gfn.AddEdge()], 4)
    gfn.Trainer(env, gfn.CachedReward(edges), gfn.Uniform(), gfn.LogPartitionVariance(), batch=64).fit(10)
    # Up to isomorphism, there are 1, 1, 2, 4 and 11 graphs of 0 to 4 nodes. The reward may get each of these
    # graphs once. It may get 16 graphs again, to check their cached log R.
    assert len(seen) <= 1 + 1 + 2 + 4 + 11 + 16
    seen.clear()
    gfn.Trainer(env, edges, gfn.Uniform(), gfn.LogPartitionVariance(), batch=64).fit(10)
    assert len(seen) > 300


@pytest.mark.parametrize("reward", [gfn.HyperGridReward(), gfn.HyperGridReward("cosine")])
def test_rewards_of_the_library_are_cached_too(reward):
    one, other = trainer(gfn.CachedReward(reward, capacity=4), seed=1).fit(5), trainer(reward, seed=1).fit(5)
    assert np.array_equal(one.history["loss"], other.history["loss"])


def test_partial_answers_are_kept_apart():
    counted = Counted()
    objective = gfn.SubTrajectoryBalance(forward_looking=True)
    it = trainer(gfn.CachedReward(counted), policy=gfn.Mlp((8,)), objective=objective).fit(20)
    assert counted.asked <= 2 * (9 + 16) and np.isfinite(it.history["loss"]).all()


def test_a_cached_reward_that_changes_its_mind_is_refused():
    with pytest.raises((RuntimeError, ValueError), match="returns the same value each time"):
        trainer(gfn.CachedReward(Counted(drift=0.5)), batch=2).fit(20)


def test_what_a_cached_reward_raises_is_raised_and_not_kept():
    broken = [True]

    def reward(states):
        if broken[0]:
            raise KeyError("not yet")
        return np.zeros(len(states))

    it = trainer(gfn.CachedReward(reward))
    with pytest.raises(KeyError, match="not yet"):
        it.fit(1)
    broken[0] = False
    assert len(it.fit(3).history["loss"]) == 3


@pytest.mark.parametrize(
    "make, kind, message",
    [
        (lambda: gfn.CachedReward(3), TypeError, "reward is 3"),
        (lambda: gfn.CachedReward([np.sum]), TypeError, "reward"),
        (lambda: gfn.CachedReward(gfn.RingReward), TypeError, "an object like"),
        (lambda: gfn.CachedReward(gfn.CachedReward(np.sum)), TypeError, "an object like"),
        (lambda: gfn.CachedReward(np.sum, capacity=1), ValueError, "at least 2"),
        (lambda: trainer(gfn.CachedReward(gfn.RingReward())), TypeError, "RingReward"),
        (
            lambda: trainer(
                gfn.CachedReward(lambda points: points[:, 0]), env=gfn.Box(2), policy=gfn.BoxNet()
            ),
            ValueError,
            "points",
        ),
        (
            lambda: trainer(
                gfn.CachedReward(lambda s, c: 0),
                conditions=gfn.Conditions(lambda n, rng: rng.random((n, 1)), 1),
            ),
            ValueError,
            "doesn't depend on the condition",
        ),
    ],
)
def test_what_cannot_be_cached_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_the_step_is_told_in_the_middle_of_one():
    seen = []
    it = trainer(lambda states: seen.append(it.steps_done) or np.zeros(len(states)))
    it.fit(3)
    assert seen[-3:] == [0, 1, 2] and it.steps_done == 3


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: trainer(lambda states: np.full(len(states), np.inf)).fit(1), "np.maximum"),
        (
            lambda: trainer(lambda states: np.zeros(len(states)), env=gfn.HyperGrid(4, 8)).exact(limit=10),
            "`evaluate`",
        ),
        (lambda: trainer(lambda states: np.zeros(len(states)), device="cuda:4000"), "device=.cpu."),
        (
            lambda: gfn.Trainer(
                gfn.BayesianStructure(4),
                gfn.StructureReward(np.random.default_rng(0).normal(size=(2, 4))),
                gfn.Mlp((8,)),
            ),
            "as many observations as variables",
        ),
    ],
)
def test_messages_name_what_there_is_in_python(call, message):
    with pytest.raises((ValueError, FloatingPointError, RuntimeError), match=message) as caught:
        call()
    words = ("Clipped", "RegressionLoss", "Runtime", "--device", "pruned", "LIBTORCH")
    assert not any(word in str(caught.value) for word in words)


def test_a_device_of_torch_is_taken():
    assert trainer(lambda states: np.zeros(len(states)), device=torch.device("cpu")).fit(1).steps_done == 1


def test_a_reward_that_changes_is_warned_of_where_old_values_are_replayed():
    shift = [0.0]
    it = trainer(lambda points: points.sum(axis=1) + shift[0], batch=32, sources=[gfn.Replay(1000, after=1)])
    it.fit(50)
    shift[0] = 3.0
    with pytest.warns(
        gfn.TrainingWarning,
        match="step 100: the reward has changed: log R of .* mix two targets.*`reward_exponent`",
    ):
        it.fit(60)
