"""Tests of estimates from samples and on given objects, by comparison with exact distributions."""

import math
import os
import signal
import threading
import time

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused, trainer, zero

GRID = gfn.HyperGrid(2, 4)


@pytest.fixture(scope="module")
def learned():
    return gfn.Trainer(
        GRID,
        gfn.HyperGridReward(),
        gfn.Mlp((64, 64)),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500)),
    ).fit(500)


def untrained():
    return gfn.Trainer(GRID, gfn.HyperGridReward(), gfn.Mlp((64, 64)), batch=64)


def test_bounds_enclose_the_true_log_z(learned):
    exact = learned.exact()
    for it, gap in ((learned, 0.05), (untrained(), 10.0)):
        sampled = it.evaluate(4000)
        low, high = sampled.interval
        assert low < exact.log_z + 0.01 and high > exact.log_z - 0.01 and low < sampled.log_z < high
        # Objects that are sampled from the target give an upper bound on log Z.
        rng = np.random.default_rng(0)
        objects = exact.states[rng.choice(len(exact.target), size=500, p=exact.target)]
        above = it.evaluate_on(objects, paths=4).upper_bound
        below = sampled.elbo
        assert (
            below.mean - 3 * below.standard_error - 1e-6
            < exact.log_z
            < above.mean + 3 * above.standard_error + 1e-6
        )
        assert above.mean - below.mean < gap
    assert untrained().evaluate(4000).effective_samples < learned.evaluate(4000).effective_samples


def test_log_probabilities_are_those_of_the_exact_distribution(learned):
    for it in (learned, untrained()):
        exact = it.exact()
        tested = it.evaluate_on(exact.states, paths=400)
        assert tested.log_probs == pytest.approx(np.log(exact.probs), abs=0.05)
        assert tested.log_rewards == pytest.approx(exact.log_rewards)
    correlation = learned.evaluate_on(learned.exact().states).correlation
    assert correlation.pearson > 0.98 > untrained().evaluate_on(learned.exact().states).correlation.pearson


def test_symmetric_objects_have_the_probability_of_their_class():
    it = gfn.Trainer(
        gfn.GraphBuilding(3, min_nodes=3),
        lambda graphs: graphs.n_edges.astype(float),
        gfn.GraphNet(embedding=16),
        batch=16,
    ).fit(20)
    exact = it.exact()
    ends = [k for k in range(exact.n_states) if np.isfinite(exact.log_rewards[k])]
    for k in ends:
        assert it.evaluate_on(exact.states[k], paths=400).log_probs[0] == pytest.approx(
            math.log(exact.probs[k]), abs=0.05
        )
    sampled = it.evaluate(2000)
    assert sampled.interval[0] < exact.log_z < sampled.interval[1]
    # Isomorphic graphs must count as the same object, regardless of their labels.
    assert sampled.n_distinct == len(ends) == 4
    assert sampled.modes(lambda graphs: graphs.n_edges == 3) == 1


def test_samples_are_shown_with_what_is_known_of_them(learned):
    sampled = learned.evaluate(300)
    assert sampled.states.shape == (300, 2) and len(sampled) == 300
    assert sampled.log_rewards == pytest.approx(gfn_log_reward(learned, sampled.states))
    assert (sampled.lengths == sampled.states.sum(axis=1) + 1).all() and sampled.mean_len == pytest.approx(
        sampled.lengths.mean()
    )
    first = {tuple(point): k for k, point in reversed(list(enumerate(sampled.states.tolist())))}
    assert sampled.groups.tolist() == [first[tuple(point)] for point in sampled.states.tolist()]
    assert sampled.n_distinct == len(np.unique(sampled.states, axis=0))
    assert sampled.elbo.mean == pytest.approx(sampled.log_weights.mean())
    assert sampled.elbo.standard_error == pytest.approx(sampled.log_weights.std(ddof=1) / math.sqrt(300))
    assert sampled.log_z == pytest.approx(np.log(np.exp(sampled.log_weights).mean()))
    best = sampled.log_rewards.max()
    corners = sampled.states[np.isclose(sampled.log_rewards, best)]
    assert sampled.modes(lambda points: np.isclose(gfn_log_reward(learned, points), best)) == len(
        np.unique(corners, axis=0)
    )


def gfn_log_reward(it, points):
    exact = it.exact()
    table = {tuple(state): log_reward for state, log_reward in zip(exact.states.tolist(), exact.log_rewards)}
    return np.asarray([table[tuple(point)] for point in points.tolist()])


def test_the_best_objects_and_their_diversity(learned):
    sampled = learned.evaluate(100)
    order = np.argsort(-sampled.log_rewards, kind="stable")[:7]
    apart = lambda points: np.abs(points[:, None] - points[None]).sum(axis=2)
    top = sampled.top_k(7, apart)
    assert top.rows.tolist() == order.tolist() and (top.states == sampled.states[order]).all()
    assert top.mean_log_reward == pytest.approx(sampled.log_rewards[order].mean())
    assert top.mean_reward == pytest.approx(np.exp(sampled.log_rewards[order]).mean())
    assert top.diversity == pytest.approx(apart(sampled.states[order]).sum() / (7 * 6))
    # The distance of an object to itself must not be included in the mean distance.
    assert sampled.top_k(2, lambda points: np.full((2, 2), 3.0)).diversity == 3.0
    assert (
        sampled.top_k(7).diversity is None
        and math.copysign(1, sampled.top_k(1, apart).diversity) == 1
        and sampled.top_k(1, apart).diversity == 0
    )


def test_estimates_under_conditions():
    reward = lambda points, conditions: conditions[:, 0].numpy() * points[:, 0]
    draw = lambda n, rng: rng.uniform(-2, 2, size=(n, 1))
    settings = dict(
        conditions=gfn.Conditions(draw, 1), batch=64, adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 600))
    )
    it = gfn.Trainer(gfn.HyperGrid(2, 3), reward, gfn.Mlp((64, 64)), **settings).fit(600)
    for c in (-1.5, 1.5):
        exact, sampled = it.exact(condition=[c]), it.evaluate(2000, condition=[c])
        assert sampled.log_z == pytest.approx(exact.log_z, abs=0.1)
        tested = it.evaluate_on(exact.states, paths=100, condition=[c])
        assert (
            tested.log_probs == pytest.approx(np.log(exact.probs), abs=0.1)
            and tested.correlation.pearson > 0.9
        )
    refused(lambda: it.evaluate(10), ValueError, "no conditions")
    refused(lambda: untrained().evaluate(10, condition=[0.0]), ValueError, "conditions for a trainer with 0")


def test_an_upper_bound_has_the_error_of_its_mean():
    """Computes the upper bound from its definition: each object has a single path, so its log w is log R -
    log p. The mean and the standard error that the library returns must equal those of these numbers."""
    it = gfn.Trainer(
        gfn.HyperGrid(1, 4), lambda points: 1.5 * points[:, 0], gfn.Mlp((8,)), batch=8, double=True
    ).fit(3)
    tested = it.evaluate_on([[0], [1], [3]], paths=1)
    weights = tested.log_rewards - tested.log_probs
    assert tested.upper_bound.mean == pytest.approx(weights.mean())
    assert tested.upper_bound.standard_error == pytest.approx(weights.std(ddof=1) / math.sqrt(3))


def test_continuous_objects_are_evaluated():
    target = gfn.GaussianTarget([0.5, -0.5], 0.7)
    it = gfn.Trainer(
        gfn.Diffusion(2, 16),
        target,
        gfn.DiffusionNet(langevin_clip=100.0),
        batch=128,
        adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, 400)),
    )
    it.fit(400)
    sampled = it.evaluate(2000)
    assert abs(sampled.log_z) < 0.1 and sampled.n_distinct == 2000
    points = np.random.default_rng(0).normal([0.5, -0.5], 0.7, size=(400, 2))
    tested = it.evaluate_on(points, paths=20)
    assert tested.log_probs.mean() == pytest.approx(tested.log_rewards.mean(), abs=0.1)
    assert sampled.elbo.mean - 0.02 < 0 < tested.upper_bound.mean + 0.02 and tested.correlation.pearson > 0.9


def test_molecules_are_evaluated_by_their_smiles():
    it = gfn.Trainer(
        gfn.Molecules(2, elements=["C", "O"]), gfn.MoleculeReward(), gfn.GraphNet(embedding=16), batch=16
    )
    exact = it.exact()
    ends = [k for k in range(exact.n_states) if np.isfinite(exact.log_rewards[k])]
    tested = it.evaluate_on([exact.states[k].smiles[0] for k in ends], paths=200)
    assert tested.log_probs == pytest.approx(np.log(exact.probs[ends]), abs=0.1)
    refused(lambda: it.evaluate_on(["CCC"]), ValueError, "row 0, .CCC.: .*it has 3 heavy atoms")
    refused(lambda: it.evaluate_on(["C1"]), ValueError, "row 0, .C1.: .*a ring isn't closed")


def test_structures_are_read_as_they_are_shown():
    it = gfn.Trainer(
        gfn.BayesianStructure(3), lambda dags: dags.sum(axis=(1, 2)).astype(float), gfn.Mlp((16,)), batch=16
    ).fit(3)
    exact = it.exact()
    assert it.evaluate_on(exact.states, paths=200).log_probs == pytest.approx(np.log(exact.probs), abs=0.2)
    ring = np.zeros((1, 3, 3), bool)
    ring[0, [0, 1, 2], [1, 2, 0]] = True
    refused(lambda: it.evaluate_on(ring), ValueError, "cycle")


def test_looking_changes_nothing_that_is_trained():
    plain, looked = untrained(), untrained()
    for _ in range(3):
        plain.fit(2)
        looked.fit(2).evaluate(20)
        looked.evaluate_on([[1, 1]])
    assert plain.history["loss"].tolist() == looked.history["loss"].tolist()


def test_a_signal_ends_an_evaluation():
    it = gfn.Trainer(gfn.HyperGrid(4, 32), gfn.HyperGridReward(), gfn.Mlp((256, 256)), batch=8)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for evaluate in (
            lambda: it.evaluate(2**24),
            lambda: it.evaluate_on(np.full((4096, 4), 31), paths=2**12),
        ):
            timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            started = time.perf_counter()
            with pytest.raises(KeyboardInterrupt):
                evaluate()
            timer.join()
            assert time.perf_counter() - started < 20
    finally:
        signal.signal(signal.SIGINT, before)
    assert it.fit(1).steps_done == 1


WRONG = [
    (lambda it: it.evaluate(0), ValueError, "n is 0"),
    (lambda it: it.evaluate("many"), TypeError, "n is 'many'"),
    (lambda it: it.evaluate(10).top_k(0), ValueError, "k is 0: expected a number from 1 to 10"),
    (lambda it: it.evaluate(10).top_k(-1), ValueError, "k is -1"),
    (lambda it: it.evaluate(10).top_k(2**70), ValueError, "k is 1180591620717411303424"),
    (lambda it: it.evaluate(10).top_k(2.0), TypeError, "k is 2.0"),
    (lambda it: it.evaluate(10).top_k(11), ValueError, "k is 11: expected a number from 1 to 10"),
    (
        lambda it: it.evaluate(10).top_k(3, lambda points: np.zeros((2, 2))),
        ValueError,
        r"`distance` gave an array of shape \[2, 2\]",
    ),
    (
        lambda it: it.evaluate(10).top_k(3, lambda points: "far"),
        TypeError,
        "`distance` gave something that isn't an array",
    ),
    (lambda it: it.evaluate(10).top_k(3, lambda points: np.full((3, 3), np.nan)), ValueError, "finite"),
    (lambda it: it.evaluate(10).top_k(3, lambda points: 1 / 0), ZeroDivisionError, "division"),
    (lambda it: it.evaluate(10).top_k(3, 4), TypeError, "callable"),
    (lambda it: it.evaluate(10).modes(lambda points: np.ones(len(points))), TypeError, "array of float64"),
    (lambda it: it.evaluate_on([[1, 1]], paths=0), ValueError, "paths is 0"),
    (lambda it: it.evaluate_on(np.zeros((0, 2), int)), ValueError, "the list of objects is empty"),
    (lambda it: it.evaluate_on([]), (TypeError, ValueError), "objects"),
    (lambda it: it.evaluate_on(None), TypeError, "objects is a NoneType: expected an array of int64"),
    (lambda it: it.evaluate_on("all"), TypeError, "objects is a str"),
    (lambda it: it.evaluate_on([[1.0, 1.0]]), TypeError, "array of float64: expected an array of int64"),
    (lambda it: it.evaluate_on([[1, 1, 1]]), ValueError, r"shape \[1, 3\]: expected \[n, 2\]"),
    (lambda it: it.evaluate_on([1, 1]), ValueError, r"shape \[2\]: expected \[n, 2\]"),
    (lambda it: it.evaluate_on([[1, 4]]), ValueError, "entry of objects is 4: expected 0 to 3"),
    (lambda it: it.evaluate_on([[1, -1]]), ValueError, "entry of objects is -1"),
    (lambda it: it.evaluate_on([[1], [1, 1]]), (TypeError, ValueError), "objects"),
    (
        lambda it: it.evaluate_on(gfn.Graphs.from_graph6(["C~"])),
        TypeError,
        "objects is a Graphs: expected an array of int64",
    ),
]


@pytest.mark.parametrize("call, kind, message", WRONG)
def test_what_cannot_be_evaluated(learned, call, kind, message):
    refused(lambda: call(learned), kind, message)


def test_modes_refuses_another_number_of_values(learned):
    asked = []

    def is_mode(points):
        asked.append(len(points))
        return np.ones(99, bool)

    with pytest.raises(ValueError) as refusal:
        learned.evaluate(10).modes(is_mode)
    assert len(asked) == 1
    assert f"gave 99 values: expected {asked[0]}, one for each object" in str(refusal.value)


REFUSED = "terminal state|no legal backward action|not legal|is not possible|lie in the box|initial state"


@pytest.mark.parametrize(
    "env, policy, good, bad",
    [
        # In the following cases, the states in the last list (`bad`) aren't finished or can't be reached.
        (gfn.SetAddition(4, 2, fixed_length=True), gfn.Mlp((8,)), [1, 1, 0, 0], [[1, 0, 0, 0], [1, 1, 1, 0]]),
        (gfn.TokenSequence(3, 3), gfn.SequenceNet(width=8), [1, 2, 3], [[1, 2, 0], [1, 0, 2]]),
        (gfn.BitSequence(1, 4), gfn.SequenceNet(width=8), [1, 1, 2, 1], [[1, 1, 2, 0], [0, 1, 1, 1]]),
        (gfn.PrependAppendBitSequence(1, 3), gfn.Mlp((8,)), [1, 2, 1], [[0, 1, 1], [1, 1, 0]]),
        (gfn.DiscreteEbm(3), gfn.Mlp((8,)), [1, 2, 1], [[0, 1, 1]]),
        (gfn.PerfectBinaryTree(3), gfn.Mlp((8,)), [1, 2, 1], [[1, 2, 0], [0, 1, 1]]),
        (
            gfn.PhyloTree(3),
            gfn.Mlp((8,)),
            [1, 1, 2, 2, 0],
            [[1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [0, 2, 2, 1, 0]],
        ),
        (gfn.ToyDag(), gfn.Mlp((8,)), [3], [[0]]),
        (gfn.Box(), gfn.BoxNet((8,)), [0.3, 0.7], [[0.3, 1.7], [0.0, 0.0]]),
        (gfn.Line(3), gfn.LineNet((8,)), [0.3, 3.0], [[0.3, 1.0], [0.3, 2.5]]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, gfn.Environment) else "",
)
def test_what_is_no_finished_object_is_refused(env, policy, good, bad):
    it = gfn.Trainer(env, zero, policy, batch=4)
    assert len(it.evaluate_on([good])) == 1
    for row in bad:
        refused(lambda: it.evaluate_on([row]), ValueError, REFUSED)
    # A batch with one invalid object must be an error, too. After the error, the trainer must still work.
    refused(lambda: it.evaluate_on([good, bad[0]]), ValueError, "trajectory 1|state [01]|row 1")
    assert it.fit(1).steps_done == 1


def test_graphs_of_other_environments_are_refused():
    graphs = gfn.Trainer(gfn.GraphBuilding(3), zero, gfn.GraphNet(embedding=8), batch=4)
    for line in ("C~", "&B?_"):
        refused(
            lambda: graphs.evaluate_on(gfn.Graphs.from_graph6([line])),
            ValueError,
            "within the limits of the environment's schema",
        )
    refused(lambda: graphs.evaluate_on(["C~"]), TypeError, "objects is a list: expected Graphs")
    trees = gfn.Trainer(gfn.Fragments(2), zero, gfn.GraphNet(embedding=8), batch=4)
    refused(
        lambda: trees.evaluate_on(gfn.Graphs.from_graph6(["A_"])),
        ValueError,
        "within the limits of the environment.s schema",
    )
