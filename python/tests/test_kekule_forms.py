"""Tests of molecules with several Kekule forms, which have several states. With any reward, the target
probability of a molecule must be in proportion to its reward, regardless of its number of states."""

import collections
import math

import gfn_rs as gfn
import numpy as np
import pytest

# The environment has rings of six atoms with alternating bonds, among other molecules. Each atom of a ring is
# of one of two elements, which gives 13 such rings. Three of them have two Kekule forms that aren't
# isomorphic, so the rings have 16 states.
SIX = gfn.Molecules(6, elements=["N", "P"], charges=False, max_rings=1, max_bond_order=2, max_ring_size=6)
TWO_FORMS, ONE_FORM = ["Cc1ccccc1C", "Cc1ccccc1O"], ["CCc1ccccc1", "CCO"]


def zeros(molecules):
    return [0.0] * len(molecules)


def of(env, reward, policy=None):
    return gfn.Trainer(env, reward, policy or gfn.Uniform(), batch=4)


@pytest.fixture(scope="module")
def exact():
    return of(SIX, zeros).exact()


def test_each_molecule_has_an_equal_share_of_a_function_s_reward(exact):
    ends = np.flatnonzero(np.isfinite(exact.log_rewards))
    shares, forms = collections.Counter(), collections.Counter()
    for text, share in zip(exact.states[ends].smiles, exact.target[ends]):
        shares[text] += share
        forms[text] += 1
    assert sum(n - 1 for n in forms.values()) == 16 - 13
    assert max(shares.values()) == pytest.approx(min(shares.values()), rel=1e-9)
    assert exact.log_z == pytest.approx(math.log(len(shares)))
    # The number of objects is larger by one than the number of molecules, because the initial state without
    # atoms is an object.
    assert (
        exact.n_objects == len(shares) + 1
        and len(np.unique(exact.groups)) == exact.n_objects < exact.n_states
    )


def test_distances_between_molecules_take_their_states_together(exact):
    gap = np.zeros(exact.n_states)
    np.add.at(gap, exact.groups, exact.probs - exact.target)
    assert exact.of_objects.l1 == pytest.approx(np.abs(gap).sum())
    assert exact.of_objects.tv == pytest.approx(exact.of_objects.l1 / 2) and exact.of_objects.tv < exact.tv
    assert "tv=" in repr(exact.of_objects)
    grid = of(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,))).exact()
    assert grid.of_objects.tv == grid.tv and grid.n_objects == grid.n_states


@pytest.mark.parametrize(
    "reward",
    [
        gfn.CachedReward(zeros),
        gfn.MoleculeReward("constant"),
        gfn.CachedReward(gfn.MoleculeReward("constant")),
    ],
)
def test_functions_are_rewards_like_the_library_s(exact, reward):
    # `exact` was computed with an uncached Python function as the reward. A cached reward and a reward of the
    # library must be divided among a molecule's states exactly once, too, so the targets must be equal.
    other = of(SIX, reward).exact()
    assert other.log_rewards == pytest.approx(exact.log_rewards) and other.target == pytest.approx(
        exact.target
    )
    tested = [
        of(gfn.Molecules(8), it).evaluate_on(TWO_FORMS + ONE_FORM, paths=1).log_rewards
        for it in (reward, zeros)
    ]
    assert tested[0] == pytest.approx(tested[1]) and tested[1] == pytest.approx(0.0)


def test_log_probabilities_are_of_the_molecule(exact):
    probs = np.zeros(exact.n_states)
    np.add.at(probs, exact.groups, exact.probs)
    several = np.flatnonzero(np.bincount(exact.groups, minlength=exact.n_states) > 1)
    tested = of(SIX, zeros).evaluate_on(exact.states[several], paths=300)
    assert np.allclose(tested.log_probs, np.log(probs[several]), atol=0.25)
    # If a molecule is given in another Kekule form, the estimate must be the same.
    other = np.array([np.flatnonzero(exact.groups == first)[-1] for first in several])
    assert (other != several).all()
    assert np.allclose(
        of(SIX, zeros).evaluate_on(exact.states[other], paths=300).log_probs,
        np.log(probs[several]),
        atol=0.25,
    )
    counted = []
    it = of(gfn.Molecules(8), lambda molecules: counted.append(len(molecules)) or zeros(molecules))
    it.evaluate_on(TWO_FORMS, paths=3)
    assert counted == [2], "a reward may cost something: it is asked about a molecule once"


def test_samples_of_one_molecule_are_one():
    sampled = of(SIX, zeros).evaluate(3000)
    assert sampled.n_distinct == len(set(sampled.states.smiles))
