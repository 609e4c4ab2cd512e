"""Tests of `FreshSource`, and of replay buffers whose draws follow a custom function."""

import math

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused

GRID = gfn.HyperGrid(2, 4)


def learner(reward=gfn.HyperGridReward(), **changes):
    settings = {"batch": 64, "adam": gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500)), **changes}
    return gfn.Trainer(
        GRID, reward, settings.pop("policy", gfn.Mlp((64, 64))), settings.pop("objective", None), **settings
    )


def at_random(wanted, rng):
    return rng.integers(4, size=(wanted.max, 2))


def test_a_policy_learns_from_objects_that_others_draw():
    it = learner(sources=[gfn.FreshSource(at_random)])
    before = it.exact().tv
    exact = it.fit(500).exact()
    assert exact.tv < 0.06 < before, (before, exact.tv)
    assert it.reward_calls == 500 * 64


def test_what_is_wanted_is_told():
    seen = []

    def given(wanted, rng):
        seen.append(wanted)
        # After the third request, the function returns no objects. Batches are then filled from the replay
        # buffer, which has enough objects.
        return at_random(wanted, rng) if len(seen) < 4 else None

    it = learner(sources=[gfn.FreshSource(given), gfn.Replay(1000, share=0.25, after=2)]).fit(5)
    wanted = [(each.min, each.max, each.allow_more) for each in seen]
    assert wanted == [(64, 64, True)] * 2 + [(0, 48, True)] * 3
    assert it.reward_calls == 64 + 64 + 48 and it.replay_len == 64 + 64 + 48
    alone = []
    learner(
        sources=[gfn.FreshSource(lambda wanted, rng: alone.append(wanted) or at_random(wanted, rng))]
    ).fit(1)
    assert alone == [gfn.BatchRequest(64, 64, False)]


def test_more_than_is_wanted_goes_into_the_buffer():
    many = lambda wanted, rng: rng.integers(4, size=(100, 2))
    it = learner(sources=[gfn.FreshSource(many), gfn.Replay(1000)]).fit(1)
    assert (it.reward_calls, it.replay_len) == (100, 100)


def test_rewards_that_are_given_along_are_not_asked():
    def never(points):
        raise AssertionError("asked")

    def drawn(wanted, rng):
        points = at_random(wanted, rng)
        return gfn.FreshObjects(points, 2.0 * points[:, 0])

    it = learner(never, sources=[gfn.FreshSource(drawn)]).fit(400)
    assert it.reward_calls == 400 * 64
    # The policy must learn the log R that the source returned, which is twice the first coordinate.
    first = it.sample(4000)[:, 0]
    expected = np.exp(2.0 * np.arange(4)) / np.exp(2.0 * np.arange(4)).sum()
    assert np.bincount(first, minlength=4) / 4000 == pytest.approx(expected, abs=0.05)


def test_a_run_goes_on_bit_for_bit(tmp_path):
    make = lambda **changes: learner(sources=[gfn.FreshSource(at_random)], **changes)
    whole = make().fit(8)
    make().fit(4).save(tmp_path / "half")
    rest = make().resume(tmp_path / "half").fit(4)
    assert rest.history["loss"].tolist() == whole.history["loss"].tolist()
    # The random generator must give different numbers in each step, and with each seed.
    drawn = []
    keep = gfn.FreshSource(lambda wanted, rng: drawn.append(rng.integers(1 << 60)) or at_random(wanted, rng))
    for seed in (0, 0, 1):
        learner(sources=[keep], seed=seed).fit(3)
    assert drawn[:3] == drawn[3:6] and len(set(drawn)) == 6


def test_fresh_objects_have_conditions():
    tilted = lambda points, conditions: conditions[:, 0].numpy() * points[:, 0]
    settings = dict(conditions=gfn.Conditions(lambda n, rng: rng.uniform(-2, 2, size=(n, 1)), 1))

    def drawn(wanted, rng):
        return gfn.FreshObjects(at_random(wanted, rng), conditions=rng.uniform(-2, 2, size=(wanted.max, 1)))

    it = learner(
        tilted,
        sources=[gfn.FreshSource(drawn)],
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 800)),
        **settings,
    ).fit(800)
    for c in (-1.5, 1.5):
        assert it.exact(condition=[c]).tv < 0.06
    refused(
        lambda: learner(tilted, sources=[gfn.FreshSource(at_random)], **settings).fit(1),
        ValueError,
        "gave no conditions to a trainer with 1",
    )
    wide = lambda wanted, rng: gfn.FreshObjects(at_random(wanted, rng), conditions=np.zeros((64, 2)))
    refused(
        lambda: learner(tilted, sources=[gfn.FreshSource(wide)], **settings).fit(1),
        ValueError,
        "conditions of the fresh source are",
    )


@pytest.mark.parametrize(
    "parts",
    [
        dict(sources=[gfn.FreshSource(lambda wanted, rng: np.tile([1, 0, 0, 0], (wanted.max, 1)))]),
        dict(sources=[gfn.Source(lambda n, rng: np.tile([1, 0, 0, 0], (n, 1)))]),
        dict(sources=[gfn.Search(lambda sets, rng: [[1, 0, 0, 0]], every=1), gfn.Replay(100, after=0)]),
    ],
    ids=lambda parts: next(iter(parts)),
)
def test_objects_that_are_not_finished_are_refused(parts):
    it = gfn.Trainer(
        gfn.SetAddition(4, 2, fixed_length=True),
        lambda sets: np.zeros(len(sets)),
        gfn.Mlp((8,)),
        batch=4,
        **parts,
    )
    refused(lambda: it.fit(3), ValueError, "terminal state")


def test_a_copy_of_the_parameters_is_at_hand():
    norms = []

    def given(wanted, rng):
        norms.append(sum(float(tensor.abs().sum()) for tensor in tensors))
        return at_random(wanted, rng)

    it = learner(sources=[gfn.FreshSource(given)])
    tensors = list(it.parameters())
    it.fit(3)
    assert len(set(norms)) == 3


def test_a_rule_of_one_s_own_draws_what_it_says():
    """Sets a function for `Replay.draw` that gives all weight to one corner of the grid, the only point with
    log R = 1. Only this corner may be replayed."""
    seen = []

    def corner(log_reward, loss):
        seen.append((log_reward, loss))
        return 0.0 if log_reward > 0.5 else -1e3

    drawn = []
    far = lambda points: 1.0 * (points == 3).all(axis=1)
    found = gfn.Search(lambda points, rng: drawn.append(points) or points, every=1, objects=50)
    replay = gfn.Replay(10_000, share=0.5, after=1, draw=corner)
    learner(far, sources=[replay, found], exploration=gfn.Exploration(epsilon=1.0), batch=256).fit(4)
    assert len(drawn) == 3 and all((points == 3).all() for points in drawn)
    losses = [loss for _, loss in seen]
    assert {type(loss) for loss in losses} == {float, type(None)} and min(
        loss for loss in losses if loss is not None
    ) >= 0
    assert {log_reward for log_reward, _ in seen} == {0.0, 1.0}
    # As a negative control, uniform draws must also replay objects other than the corner.
    others = []
    found = gfn.Search(lambda points, rng: others.append(points) or points, every=1, objects=50)
    learner(
        far,
        sources=[gfn.Replay(10_000, share=0.5, after=1), found],
        exploration=gfn.Exploration(epsilon=1.0),
        batch=256,
    ).fit(4)
    assert not (np.concatenate(others) == 3).all()


def test_a_rule_goes_with_distinct_and_diverse_buffers_and_goes_on(tmp_path):
    rule = lambda log_reward, loss: log_reward + math.log(1.0 if loss is None else 1e-3 + loss)
    for settings in (dict(distinct=True), dict(diverse=1.0), dict(objects_alone=True)):
        make = lambda: learner(batch=16, sources=[gfn.Replay(50, after=1, draw=rule, **settings)])
        whole = make().fit(8)
        make().fit(4).save(tmp_path / "half")
        rest = make().resume(tmp_path / "half").fit(4)
        assert rest.history["loss"].tolist() == whole.history["loss"].tolist()
        assert not settings.get("distinct") or whole.replay_len <= 16
