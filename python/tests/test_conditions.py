"""Tests of policies that learn a family of rewards, with one reward per condition."""

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused


def uniform(n, rng):
    return rng.uniform(-2.0, 2.0, size=(n, 1))


def tilted(points, conditions):
    """Returns log R of points, which is the condition times the first coordinate. So each condition has a
    different target."""
    return conditions[:, 0].numpy() * points[:, 0]


def trainer(**changes):
    settings = dict(
        conditions=gfn.Conditions(uniform, 1),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 800)),
    )
    settings.update(changes)
    return gfn.Trainer(
        gfn.HyperGrid(2, 3),
        settings.pop("reward", tilted),
        gfn.Mlp((64, 64)),
        settings.pop("objective", None),
        **settings
    )


def test_one_policy_learns_a_family_of_rewards():
    it = trainer()
    before = [it.exact(condition=[c]).tv for c in (-1.5, 0.0, 1.5)]
    it.fit(800)
    for c, start in zip((-1.5, 0.0, 1.5), before):
        exact = it.exact(condition=[c])
        assert exact.tv < 0.05, (c, exact.tv)
        expected = np.log(3 * np.exp(c * np.arange(3)).sum())
        assert exact.log_z == pytest.approx(expected)
    # Samples under two conditions must have different distributions, close to the targets of these
    # conditions.
    low, high = (it.sample(2000, conditions=np.full((2000, 1), c))[:, 0].mean() for c in (-1.5, 1.5))
    assert low < 0.6 and high > 1.4
    assert max(before) > 0.2


def test_each_batch_has_conditions_of_its_own():
    seen = []
    draw = lambda n, rng: seen.append(rng.integers(1 << 60)) or uniform(n, rng)
    trainer(conditions=gfn.Conditions(draw, 1)).fit(3)
    assert len(seen) >= 3 and len(set(seen[-3:])) == 3


def test_a_run_under_conditions_goes_on_bit_for_bit(tmp_path):
    whole, half = trainer().fit(8), trainer().fit(4)
    half.save(tmp_path / "half")
    rest = trainer().resume(tmp_path / "half").fit(4)
    assert rest.history["loss"].tolist() == whole.history["loss"].tolist()


def test_conditions_and_what_needs_them_come_together():
    it = trainer()
    for use in (lambda: it.sample(3), lambda: it.exact(), lambda: it.sample(3, conditions=np.zeros((2, 1)))):
        with pytest.raises(ValueError, match="condition"):
            use()
    with pytest.raises(ValueError, match="finite"):
        it.sample(1, conditions=[[np.nan]])
    with pytest.raises(TypeError, match="numbers"):
        it.sample(1, conditions="high")
    refused = (
        lambda: gfn.Conditions(uniform, 0),
        lambda: gfn.Conditions(uniform, -1),
        lambda: trainer(reward=gfn.HyperGridReward()),
    )
    for call in refused:
        with pytest.raises(ValueError):
            call()
    for conditions in ([1.0], uniform, gfn.Conditions):
        with pytest.raises(TypeError, match=r"conditions is \w+: expected Conditions\(function, width\)"):
            trainer(conditions=conditions)
    # In a trainer without conditions, the reward is called without conditions, so it must fail.
    with pytest.raises(TypeError):
        trainer(conditions=None).fit(1)
    plain = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)))
    with pytest.raises(ValueError, match="condition"):
        plain.sample(1, conditions=[[0.0]])


@pytest.mark.parametrize(
    "draw, kind",
    [
        (lambda n, rng: np.zeros((n, 2)), ValueError),
        (lambda n, rng: np.zeros(n), ValueError),
        (lambda n, rng: None, (TypeError, ValueError)),
        (lambda n, rng: np.full((n, 1), np.inf), ValueError),
        (lambda n, rng: 1 / 0, ZeroDivisionError),
        (lambda n: np.zeros((n, 1)), TypeError),
    ],
)
def test_mistakes_in_conditions_are_raised(draw, kind):
    with pytest.raises(kind):
        trainer(conditions=gfn.Conditions(draw, 1)).fit(1)


def test_graphs_under_conditions():
    def reward(graphs, conditions):
        return conditions[:, 0].numpy() * graphs.n_edges

    it = gfn.Trainer(
        gfn.GraphBuilding(3, min_nodes=3),
        reward,
        gfn.GraphNet(embedding=32),
        conditions=gfn.Conditions(uniform, 1),
        batch=64,
        adam=gfn.Adam(lr=3e-3),
    )
    assert it.fit(200).exact(condition=[1.0]).tv < 0.15


def test_samples_under_a_condition_are_of_the_instance():
    # No move changes the second entry, which shows the initial state of a trajectory.
    changes = [(0, value, value + 1) for value in range(3)]
    env = gfn.VectorEnv(2, 4, changes, start=[[0, 0], [0, 1], [0, 2]])
    it = gfn.Trainer(
        env,
        lambda states, conditions: states[:, 0] * conditions[:, 0].numpy(),
        gfn.Mlp((8,)),
        gfn.DetailedBalance(),
        batch=8,
        conditions=gfn.Conditions(uniform, 1),
    ).fit(2)
    assert set(it.sample(60, conditions=np.full((60, 1), 0.5))[:, 1].tolist()) == {0, 1, 2}
    for instance in range(3):
        samples = it.evaluate(60, condition=[0.5], instance=instance).states
        assert set(samples[:, 1].tolist()) == {instance} and len(set(samples[:, 0].tolist())) > 1


def test_log_z_of_conditions_has_no_initial_value():
    policy, conditions = gfn.Mlp((8,), initial_log_z=1.0), gfn.Conditions(uniform, 1)
    refused(
        lambda: gfn.Trainer(gfn.HyperGrid(2, 3), tilted, policy, conditions=conditions),
        ValueError,
        "initial_log_z is 1, expected no value with conditions",
    )
