"""Tests of user-defined objects, modules and data that could cause wrong results without an exception."""

import gfn_rs as gfn
import numpy as np
import pandas
import pytest
import torch
from test_modules import Messages, module_trainer


def grid(**parts):
    parts = {"objective": None, **parts}
    return gfn.Trainer(
        gfn.HyperGrid(2, 4),
        lambda states: np.zeros(len(states)),
        gfn.Mlp((4,)),
        parts.pop("objective"),
        batch=8,
        **parts,
    )


@pytest.mark.parametrize("n_nodes", [np.full(10**6, 65_535), np.full(100, 65_535), np.full(2**25, 1)])
def test_more_graphs_than_memory_are_refused(n_nodes):
    with pytest.raises(ValueError, match="all of them are kept in memory"):
        gfn.Graphs.from_arrays(
            n_nodes, np.zeros((0, 2), int), np.zeros(len(n_nodes) + 1, int), directed=False
        )


def test_places_beyond_signed_numbers_are_no_places():
    graphs = gfn.Graphs.from_graph6(["C~", "Bw"])
    with pytest.raises(IndexError):
        graphs[np.array([2**64 - 1], dtype=np.uint64)]
    assert len(graphs[np.array([1], dtype=np.uint64)]) == 1


def test_a_prior_that_cannot_be_copied_is_refused():
    """Uses a function as the prior's module. `deepcopy` of a function returns the same function, so training
    would change the prior's parameters. A trainer must raise an error for such a module."""
    inner = Messages()

    def called(batch):
        return inner(batch)

    called.named_parameters, called.named_buffers = inner.named_parameters, inner.named_buffers
    with pytest.raises(ValueError, match="copy.deepcopy doesn't copy"):
        module_trainer(Messages(), objective=gfn.RelativeTrajectoryBalance(module_trainer(called)))
    # As a control, the prior's network is a module. A module is copied, so training must not change the
    # original.
    prior = module_trainer(inner)
    before = [tensor.detach().clone() for tensor in inner.parameters()]
    module_trainer(Messages(), objective=gfn.RelativeTrajectoryBalance(prior)).fit(3)
    assert all(torch.equal(*pair) for pair in zip(before, inner.parameters()))


@pytest.mark.parametrize("of", [pandas.DataFrame, lambda rows: rows, list, lambda rows: rows.tolist()])
def test_other_data_are_other_runs(of, tmp_path):
    """Resumes a run with data that differ in the middle of a long table. The difference must be noticed,
    although the text of a long table leaves out its middle."""
    rows = np.zeros((2_000, 2), dtype=int)
    grid(sources=[gfn.Data(of(rows), share=0.5)]).fit(1).save(tmp_path / "run")
    assert grid(sources=[gfn.Data(of(rows.copy()), share=0.5)]).resume(tmp_path / "run").steps_done == 1
    rows[1_000] = 1
    with pytest.raises(ValueError):
        grid(sources=[gfn.Data(of(rows), share=0.5)]).resume(tmp_path / "run")


def test_a_search_may_find_nothing():
    it = grid(sources=[gfn.Search(lambda states, rng: [], every=1), gfn.Replay(10, after=0)]).fit(2)
    assert it.steps_done == 2


def test_what_does_not_go_together_is_told_at_once():
    with pytest.raises(ValueError, match="no Search, because it finds objects without conditions"):
        grid(
            sources=[gfn.Search(lambda states, rng: states)],
            conditions=gfn.Conditions(lambda n, rng: np.zeros((n, 1)), 1),
        )
    with pytest.raises(ValueError, match="a sum of at most 1"):
        grid(sources=[gfn.Data([[0, 0]], share=0.7), gfn.Replay(share=0.7)])
