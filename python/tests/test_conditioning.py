"""Tests of conditions with temperatures, preferences and directions of focus."""

import pickle

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import INF, NAN, refused

TWO = gfn.Conditioning(2, temperature=gfn.UniformTemperature(0.5, 3.0), preferences=gfn.Dirichlet())


def first(points):
    return 0.7 * points[:, 0]


def second(points):
    return 0.7 * points[:, 1]


def learner(conditions=TWO, reward=(first, second), policy=gfn.Mlp((64, 64)), **changes):
    settings = dict(batch=64, adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 1500)))
    return gfn.Trainer(
        gfn.HyperGrid(2, 3), list(reward), policy, conditions=conditions, **{**settings, **changes}
    )


def test_one_policy_learns_all_temperatures_and_preferences():
    it = learner()
    assert TWO.width == 3
    asked = [gfn.Condition(beta, [w, 1 - w]) for beta in (0.7, 2.5) for w in (0.1, 0.9)]
    before = max(it.exact(condition=TWO.encode([each])[0]).tv for each in asked)
    it.fit(1500)
    for each in asked:
        exact = it.exact(condition=TWO.encode([each])[0])
        x, y = exact.states[:, 0], exact.states[:, 1]
        expected = each.beta * np.log(
            each.preferences[0] * np.exp(0.7 * x) + each.preferences[1] * np.exp(0.7 * y)
        )
        assert exact.log_rewards == pytest.approx(expected)
        assert exact.tv < 0.06 < before, (each, exact.tv, before)


def test_vectors_are_those_of_conditions():
    marked = gfn.Conditioning(
        2,
        gfn.LogUniformTemperature(1, 64, bins=5),
        gfn.OneOf([[1, 3], [1, 0]], bins=4),
        gfn.Focus(gfn.Dirichlet(bins=3)),
    )
    assert (TWO.width, marked.width) == (3, 5 + 2 * 4 + 2 * 3)
    for of in (TWO, marked):
        drawn = of.draw(20, seed=3)
        assert drawn.shape == (20, of.width) and drawn.dtype == torch.float64
        assert torch.equal(drawn, of.draw(20, seed=3)) and not torch.equal(drawn, of.draw(20, seed=4))
        assert torch.allclose(of.encode(of.decode(drawn)), drawn)
        assert pickle.loads(pickle.dumps(of)) == of and torch.equal(
            pickle.loads(pickle.dumps(of)).draw(5), of.draw(5)
        )
    told = marked.decode(marked.draw(200))
    assert {tuple(each.preferences) for each in told} == {(0.25, 0.75), (1.0, 0.0)}
    assert all(1 <= each.beta <= 64 and np.hypot(*each.focus) == pytest.approx(1) for each in told)
    # The constant temperature is left out of the vector, so the vector has the two preferences only.
    assert gfn.Conditioning(2, 4.0, gfn.Dirichlet()).decode([[0.5, 0.5]]) == [gfn.Condition(4.0, [0.5, 0.5])]
    assert TWO.encode([gfn.Condition(1.0)]).tolist() == [[1.0, 0.5, 0.5]]


@pytest.mark.parametrize(
    "temperature, mean",
    [
        (gfn.UniformTemperature(1, 3), 2.0),
        (gfn.LogUniformTemperature(1, 8), 7 / np.log(8)),
        (gfn.GammaTemperature(2.0, 0.5, 50.0), 1.0),
    ],
)
def test_betas_are_of_their_distributions(temperature, mean):
    beta = gfn.Conditioning(1, temperature).draw(20_000)[:, 0]
    assert float(beta.mean()) == pytest.approx(mean, rel=0.03)


def test_a_single_reward_of_the_library_s_has_a_temperature():
    of = gfn.Conditioning(temperature=gfn.UniformTemperature(0.1, 2.0))
    it = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), conditions=of)
    plain = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,))).exact()
    assert it.exact(condition=[1.5]).log_rewards == pytest.approx(1.5 * plain.log_rewards)


def test_a_focus_is_a_cone():
    of = gfn.Conditioning(2, focus=gfn.Focus(gfn.Dirichlet(), cosine=0.9, limit=0.2, outside=-50.0))
    it = learner(of, policy=gfn.Mlp((8,)))
    exact = it.exact(condition=of.encode([gfn.Condition(focus=[1.0, 1.0])])[0])
    objectives = np.exp(0.7 * exact.states)
    cosine = objectives.sum(axis=1) / np.linalg.norm(objectives, axis=1) / np.sqrt(2)
    factor = np.log(np.minimum(cosine, 1)) * np.log(0.2) / np.log(0.9)
    expected = np.where(cosine >= 0.9, np.log(objectives.mean(axis=1)) + factor, -50.0)
    assert exact.log_rewards == pytest.approx(expected)
    assert (exact.log_rewards == -50.0).any() and (exact.log_rewards > -50.0).any()


def test_a_focus_in_hindsight_is_replayed():
    of = gfn.Conditioning(2, focus=gfn.Focus(gfn.OneOf([[1, 0], [0, 1]]), cosine=0.95))
    settings = dict(policy=gfn.Mlp((16,)), sources=[gfn.Replay(100, after=1)], seed=2)
    plain, other = learner(of, **settings).fit(5), learner(
        of, **{**settings, "sources": [*settings["sources"], gfn.FocusInHindsight(1.0)]}
    ).fit(5)
    again = learner(of, **{**settings, "sources": [*settings["sources"], gfn.FocusInHindsight(1.0)]}).fit(5)
    assert plain.history["loss"].tolist() != other.history["loss"].tolist() == again.history["loss"].tolist()
    # `FocusInHindsight` replaces the direction of focus by the direction of the replayed object's own
    # rewards. The object is then inside of the cone around this direction. Only outside of the cone log R is
    # very low, so losses must be smaller than in the run without this source.
    assert other.history["loss"][2:].mean() < plain.history["loss"][2:].mean()


def test_a_run_goes_on_bit_for_bit(tmp_path):
    whole = learner().fit(8)
    learner().fit(4).save(tmp_path / "half")
    rest = learner().resume(tmp_path / "half").fit(4)
    assert rest.history["loss"].tolist() == whole.history["loss"].tolist()


@pytest.mark.parametrize(
    "env, rewards, policy",
    [
        (gfn.GraphBuilding(3), [lambda g: g.n_edges, lambda g: g.n_nodes], gfn.GraphNet(embedding=8)),
        (
            gfn.BayesianStructure(3),
            [lambda d: d.sum(axis=(1, 2)), lambda d: -d.sum(axis=(1, 2))],
            gfn.Mlp((8,)),
        ),
        (
            gfn.DiscreteEbm(3),
            [gfn.IsingReward(np.ones((3, 3)) - np.eye(3)), lambda s: s[:, 0]],
            gfn.Mlp((8,)),
        ),
        (gfn.Molecules(2), [gfn.MoleculeReward("rings"), gfn.MoleculeReward()], gfn.GraphNet(embedding=8)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, gfn.Environment) else "",
)
def test_each_kind_of_states_has_them(env, rewards, policy):
    it = gfn.Trainer(env, rewards, policy, conditions=TWO, batch=8).fit(2)
    assert len(it.sample(5, conditions=TWO.draw(5))) == 5


@pytest.mark.parametrize(
    "policy",
    [
        gfn.Mlp((16,), logit_scale=(8,)),
        gfn.GraphNet(embedding=8, logit_scale=(8,)),
        gfn.EdgeMlp((8,), logit_scale=(8,)),
    ],
)
def test_logits_are_scaled_by_the_condition(policy):
    graphs = not isinstance(policy, gfn.Mlp)
    env = gfn.Ring(3) if graphs else gfn.HyperGrid(2, 3)
    reward = (lambda g: 1.0 * g.n_edges) if graphs else first
    it = gfn.Trainer(
        env, reward, policy, conditions=gfn.Conditioning(temperature=gfn.UniformTemperature(0.5, 2)), batch=8
    )
    scale = {name: tensor.clone() for name, tensor in it.named_parameters() if "logit_scale" in name}
    assert scale
    it.fit(3)
    assert any(
        not torch.equal(scale[name], tensor) for name, tensor in it.named_parameters() if name in scale
    )


WRONG = [
    (lambda: gfn.Conditioning(0), ValueError, "rewards to be conditioned"),
    (lambda: gfn.Conditioning("two"), TypeError, "n_rewards is 'two'"),
    (lambda: gfn.Conditioning(1, "hot"), TypeError, "temperature is 'hot'"),
    (lambda: gfn.Conditioning(1, -1.0), ValueError, "distribution of the temperature"),
    (
        lambda: gfn.Conditioning(1, gfn.UniformTemperature(2, 2)),
        ValueError,
        "distribution of the temperature",
    ),
    (
        lambda: gfn.Conditioning(1, gfn.LogUniformTemperature(0, 2)),
        ValueError,
        "distribution of the temperature",
    ),
    (lambda: gfn.UniformTemperature(1, INF), ValueError, "most is inf"),
    (
        lambda: gfn.Conditioning(1, gfn.GammaTemperature(-1, 1, 2)),
        ValueError,
        "distribution of the temperature",
    ),
    (
        lambda: gfn.Conditioning(1, gfn.UniformTemperature(1, 2, bins=1)),
        ValueError,
        "thermometer's marks is 1",
    ),
    (lambda: gfn.Conditioning(2, preferences=[1.0]), ValueError, "preferences or directions"),
    (lambda: gfn.Conditioning(2, preferences=[0, 0]), ValueError, "preferences or directions"),
    (lambda: gfn.Conditioning(2, preferences=gfn.Dirichlet(0.0)), ValueError, "preferences or directions"),
    (lambda: gfn.Conditioning(2, preferences=gfn.OneOf([])), ValueError, "preferences or directions"),
    (
        lambda: gfn.Conditioning(2, focus=gfn.Focus(gfn.Dirichlet(), cosine=1.0)),
        ValueError,
        "cosine of a focus is 1",
    ),
    (
        lambda: gfn.Conditioning(2, focus=gfn.Focus(gfn.Dirichlet(), limit=0.0)),
        ValueError,
        "factor on a focus' surface is 0",
    ),
    (lambda: gfn.Focus(gfn.Dirichlet(), outside=NAN), ValueError, "outside is nan"),
    (lambda: gfn.Conditioning(2, focus=[1, 1]), TypeError, r"focus is \[1, 1\]"),
    (lambda: TWO.draw(-1), ValueError, "n is -1"),
    (lambda: TWO.draw(3, seed=-1), ValueError, "seed is -1"),
    (lambda: TWO.encode([gfn.Condition(beta=9.0)]), ValueError, "beta is within the range"),
    (lambda: TWO.encode([gfn.Condition(1.0, [1.0])]), ValueError, "preferences or directions"),
    (lambda: TWO.encode([(1.0, [1.0, 1.0])]), TypeError, "expected Condition"),
    (lambda: TWO.decode([[1.0, 0.5]]), ValueError, "condition vectors has shape"),
    (lambda: TWO.decode([[9.0, 0.5, 0.5]]), ValueError, "a condition vector is a vector with 9"),
    (
        lambda: learner().sample(1, conditions=[[9.0, 0.5, 0.5]]),
        ValueError,
        "a condition vector is a vector with 9",
    ),
    (lambda: learner().exact(condition=[1.0, 0.9, 0.9]), ValueError, "condition vector is a vector with 0.9"),
    (
        lambda: learner().evaluate(5, condition=[9.0, 0.5, 0.5]),
        ValueError,
        "a condition vector is a vector with 9",
    ),
    (
        lambda: learner().evaluate_on([[0, 0]], condition=[9.0, 0.5, 0.5]),
        ValueError,
        "a condition vector is a vector with 9",
    ),
    (
        lambda: learner(sources=[gfn.Data([[0, 0]], conditions=[[9.0, 0.5, 0.5]])]),
        ValueError,
        "a condition vector is a vector with 9",
    ),
    (lambda: learner().sample(1), ValueError, "no conditions"),
    (lambda: learner(reward=(first,)), ValueError, "rewards to be conditioned is 1"),
    (lambda: learner(reward=(first, second, first)), ValueError, "rewards to be conditioned is 3"),
    (
        lambda: learner(n_conditions=2),
        TypeError,
        "Trainer has no setting `n_conditions`: did you mean `conditions`",
    ),
    (lambda: learner(gfn.Conditioning(2)), ValueError, "every part is fixed"),
    (lambda: learner(gfn.Conditioning), TypeError, "conditions is"),
    (
        lambda: learner(policy=gfn.Uniform(), objective=gfn.LogPartitionVariance()).fit(1),
        ValueError,
        "condition|parameters",
    ),
    (lambda: learner(conditions=None), ValueError, "rewards of a trainer is 2"),
    (
        lambda: gfn.Trainer(gfn.HyperGrid(2, 3), first, gfn.Mlp((8,), logit_scale=(8,))),
        ValueError,
        "logit_scale",
    ),
]


@pytest.mark.parametrize("call, kind, message", WRONG)
def test_conditionings_that_cannot_be(call, kind, message):
    refused(call, kind, message)
