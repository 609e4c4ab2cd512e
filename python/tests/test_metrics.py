"""Tests of metrics that need no trainer, by comparison with values that were computed by hand."""

import itertools

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import NAN, refused


def test_the_best_pairing_of_points():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    costs = [((a - b[list(order)]) ** 2).sum(axis=1).mean() for order in itertools.permutations(range(5))]
    assert gfn.wasserstein2(a, torch.tensor(b)) == pytest.approx(np.sqrt(min(costs)))
    assert gfn.wasserstein2(a, a + [3.0, 4.0]) == pytest.approx(5.0) and gfn.wasserstein2(a, a[::-1]) == 0.0


def test_the_discrepancy_of_two_samples():
    rng = np.random.default_rng(0)
    a, b, far = rng.normal(size=(300, 1)), rng.normal(size=(400, 1)), rng.normal(1.0, size=(400, 1))
    assert abs(gfn.maximum_mean_discrepancy(a, b)) < 0.02 < 0.1 < gfn.maximum_mean_discrepancy(a, far)
    width = np.median([abs(x - y) for (x,), (y,) in itertools.combinations(b[:7], 2)])
    kernel = lambda x, y: np.exp(-((x - y.T) ** 2) / (2 * width**2))
    within = lambda x: (kernel(x, x).sum() - len(x)) / (len(x) * (len(x) - 1))
    expected = within(a[:6]) + within(b[:7]) - 2 * kernel(a[:6], b[:7]).mean()
    assert gfn.maximum_mean_discrepancy(a[:6], b[:7]) == pytest.approx(expected)


def test_the_noise_floor_is_that_of_samples_of_the_target():
    target = np.asarray([0.5, 0.3, 0.2])
    floor = gfn.noise_floor(target, 1000, rounds=200)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(1000, target, size=2000) / 1000
    tv = np.abs(drawn - target).sum(axis=1) / 2
    assert floor.tv == pytest.approx(tv.mean(), rel=0.1) and floor.tv_sd == pytest.approx(tv.std(), rel=0.2)
    assert 0 < floor.jsd < floor.tv and gfn.noise_floor(target, 1000, rounds=200).tv == floor.tv
    assert gfn.noise_floor(target, 1000, rounds=200, seed=1).tv != floor.tv


def test_fronts_and_what_they_dominate():
    objectives = [[1, 3], [2, 2], [1, 2], [3, 0], [2, 2]]
    assert gfn.pareto_front(objectives).tolist() == [0, 1, 3]
    # The point [1, 3] dominates an area of 1 times 3 above [0, 0]. The point [2, 2] adds an area of 1 times
    # 2, and [3, 0] adds nothing, because its area has the height 0.
    assert (
        gfn.hypervolume(objectives, [0, 0]) == 3.0 + 2.0
        and gfn.hypervolume(objectives, [0, -1]) == 3.0 + 2.0 + 3.0
    )


WRONG = [
    (lambda: gfn.wasserstein2([[0.0]], [[0.0], [1.0]]), ValueError, "sets of points to be paired"),
    (lambda: gfn.wasserstein2([[0.0]], [[0.0, 1.0]]), ValueError, "sets of points to be paired"),
    (lambda: gfn.wasserstein2([[NAN]], [[0.0]]), FloatingPointError, "coordinate"),
    (lambda: gfn.wasserstein2([0.0], [0.0]), ValueError, r"a has shape \[1\]"),
    (lambda: gfn.wasserstein2("ab", "cd"), TypeError, "a is an array of"),
    (lambda: gfn.wasserstein2(np.zeros((30_000, 1)), np.zeros((30_000, 1))), ValueError, "at most 20000"),
    (lambda: gfn.maximum_mean_discrepancy([[0.0]], [[0.0], [1.0]]), ValueError, "points to be compared"),
    (
        lambda: gfn.maximum_mean_discrepancy(np.zeros((0, 2)), np.zeros((2, 2))),
        ValueError,
        r"a has shape \[0, 2\]",
    ),
    (lambda: gfn.noise_floor([0.5, 0.6], 10), ValueError, "sums to 1.1"),
    (lambda: gfn.noise_floor([0.5, 0.5], 0), ValueError, "n is 0"),
    (lambda: gfn.noise_floor([0.5, 0.5], 10, rounds=0), ValueError, "rounds is 0"),
    (lambda: gfn.noise_floor([[0.5, 0.5]], 10), ValueError, "target has shape"),
    (lambda: gfn.noise_floor([NAN, 0.5], 10), ValueError, "target distribution"),
    (lambda: gfn.pareto_front([[NAN, 1.0]]), FloatingPointError, "objective"),
    (lambda: gfn.pareto_front(None), TypeError, "objectives is an array of object"),
    (lambda: gfn.hypervolume([[1.0, 2.0]], [0.0]), ValueError, "reference"),
]


@pytest.mark.parametrize("call, kind, message", WRONG)
def test_what_has_no_figure(call, kind, message):
    refused(call, kind, message)
