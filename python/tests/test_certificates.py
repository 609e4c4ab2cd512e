"""Tests of certificates of policies, and of judgements of samples of any sampler."""

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused

GRID, REWARD = gfn.HyperGrid(2, 8), gfn.HyperGridReward()


def trainer(policy=None, env=GRID, reward=REWARD, **more):
    return gfn.Trainer(env, reward, policy or gfn.Mlp((32,)), batch=16, **more)


def test_a_certificate_bounds_what_is_known():
    it = trainer().fit(300)
    exact = it.exact()
    certificate = it.certify(samples=1000, subsets=16, paths=16)
    assert certificate.tv["at_least"] <= exact.tv <= certificate.tv["at_most"]
    assert certificate.log_z["from_found_objects"] <= certificate.log_z["at_least"] <= exact.log_z + 1e-6
    # Samples of the policy alone give no upper bound on log Z, and therefore no upper bound below 1 on the
    # total variation.
    assert certificate.log_z["at_most"] is None and certificate.tv["at_most"] == 1
    supposed = certificate.tv["if_log_z_at_most"]
    assert supposed is None or supposed < exact.log_z or exact.tv <= certificate.tv["at_most_by_importance"]
    assert all(isinstance(limit, str) for limit in certificate.limits)
    assert {"policy", "uniform", "search"} >= {probe["source"] for probe in certificate.probes}
    assert "flow consistency" in str(certificate) and str(len(certificate.findings)) in repr(certificate)
    assert certificate.is_clean == (certificate.findings == [])
    untrained = trainer(gfn.Uniform()).certify(samples=500, subsets=8, paths=16)
    assert not untrained.is_clean and untrained.tv["at_least"] > 0.3


def test_samples_are_judged_whoever_drew_them():
    it = trainer()
    exact = it.exact()
    rng = np.random.default_rng(0)
    perfect = exact.states[rng.choice(len(exact.states), 3000, p=exact.target / exact.target.sum())]
    judged = gfn.judge(GRID, REWARD, perfect)
    assert judged.like_perfect and judged.modes_found == judged.modes == 4
    assert judged.log_z == pytest.approx(exact.log_z)
    # A quarter of the grid is removed from the samples. The judgement must report that one of the four modes,
    # which is in this quarter, isn't found.
    rest = perfect[~(perfect > 3).all(axis=1)]
    judged = it.judge(rest)
    assert not judged.like_perfect and judged.modes_found == 3
    assert judged.tv["low"] > 0.1 and (np.asarray(judged.missing_states[:1]) > 3).all()
    shares = np.array([(rest == state).all(axis=1).mean() for state in exact.states])
    assert judged.tv["estimate"] == pytest.approx(np.abs(shares - exact.target).sum() / 2)


def test_molecules_are_judged_as_smiles():
    env = gfn.Molecules(2, elements=["C", "O"], charges=False)
    judged = gfn.judge(
        env, gfn.MoleculeReward("constant"), ["C", "O", "CO", "C=O", "CC", "C=C", "C#C", "OO"] * 50
    )
    assert judged.objects == 9 and judged.missing_states.smiles == ["O=O"]


def test_what_cannot_be_judged_is_refused():
    refused(lambda: gfn.judge(GRID, REWARD, [[9, 9]] * 3), ValueError, "expected 0 to 7")
    refused(lambda: gfn.judge(GRID, REWARD, [[0, 0]]), ValueError, "at least two")
    refused(lambda: trainer().judge([[0, 0]] * 5, limit=10), RuntimeError, "more than 10 states")
    refused(lambda: trainer().certify(paths=7), ValueError, "paths")
    refused(lambda: trainer().certify(samples=1), ValueError, "samples")
    box = gfn.Trainer(gfn.Box(), gfn.BoxReward(), gfn.BoxNet((8,)), batch=4)
    refused(box.certify, ValueError, "continuous")
