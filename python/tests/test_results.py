"""Tests that results can be pickled and copied, and that the error for pickling a trainer names what to do
instead."""

import copy
import dataclasses
import pickle

import gfn_rs as gfn
import numpy as np
import pytest


@pytest.fixture(scope="module")
def trainers():
    grid = gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((16,)), batch=16).fit(3)
    graphs = gfn.Trainer(
        gfn.GraphBuilding(3), lambda graphs: graphs.n_edges.astype(float), gfn.GraphNet(embedding=8), batch=8
    ).fit(3)
    return grid, graphs


def equal(one, other):
    """Asserts that two results have equal fields. Arrays are compared entry by entry, and numbers must have
    the same type."""
    assert one == other and repr(one) == repr(other) and type(one) is type(other)
    for field in dataclasses.fields(one):
        kinds = [getattr(getattr(result, field.name), "dtype", None) for result in (one, other)]
        assert kinds[0] == kinds[1], field.name


def another(value):
    """Returns a value that has the same type as `value` but isn't equal to it."""
    if isinstance(value, np.ndarray):
        other = value.copy()
        other.flat[-1] = not value.flat[-1]
        return other
    if isinstance(value, (tuple, gfn.Graphs)):
        return value[::-1]
    return 7 if value is None else None


def misaligned(data):
    """Returns copies of buffers, with their data at odd memory addresses."""
    buffers = []
    text = pickle.dumps(data, protocol=5, buffer_callback=buffers.append)
    assert buffers, "nothing went out of band"
    return pickle.loads(
        text, buffers=[memoryview(bytearray(b"x" + bytes(buffer.raw())))[1:] for buffer in buffers]
    )


def test_results_are_pickled(trainers):
    for trainer in trainers:
        sampled, exact = trainer.evaluate(20), trainer.exact()
        objects = exact.states[np.isfinite(exact.log_rewards)]
        tested = trainer.evaluate_on(objects)
        floor = gfn.noise_floor(exact.target, 100)
        results = [
            exact,
            sampled,
            sampled.elbo,
            sampled.top_k(3),
            tested,
            tested.correlation,
            tested.upper_bound,
            floor,
        ]
        results += [trainer.evaluate_on(objects[:1]), sampled.top_k(3, lambda best: np.ones((3, 3)))]
        for result in results:
            for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
                equal(result, again)
        equal(exact, misaligned(exact))
        # The methods of the unpickled copy must return equal results, too.
        again = pickle.loads(pickle.dumps(sampled))
        equal(sampled.top_k(5), again.top_k(5))
        every = lambda states: np.ones(len(states), dtype=bool)
        assert again.modes(every) == sampled.modes(every) == sampled.n_distinct and len(again) == 20


def test_results_are_equal_where_all_of_them_is(trainers):
    for trainer in trainers:
        sampled, exact = trainer.evaluate(20), trainer.exact()
        tested = trainer.evaluate_on(exact.states[np.isfinite(exact.log_rewards)])
        for result in (
            exact,
            exact.of_objects,
            sampled,
            sampled.elbo,
            sampled.top_k(3),
            tested,
            tested.correlation,
            gfn.noise_floor(exact.target, 9),
        ):
            values = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
            assert result != values and type(result)(**values) == result
            for name, value in values.items():
                assert dataclasses.replace(result, **{name: another(value)}) != result, name
                with pytest.raises(dataclasses.FrozenInstanceError):
                    setattr(result, name, value)
    # An `Exact` and its `of_objects` have different types. The two results must not be equal, even if their
    # numbers are equal.
    exact = trainers[0].exact()
    assert exact != exact.of_objects and exact.of_objects == gfn.Distances(
        **{name: getattr(exact, name) for name in vars(exact.of_objects)}
    )


def test_results_hold_arrays_and_numbers(trainers):
    exact, sampled = trainers[0].exact(), trainers[0].evaluate(20)
    for result, names in (
        (exact, ("probs", "target", "log_rewards")),
        (sampled, ("log_rewards", "log_weights")),
    ):
        assert all(getattr(result, name).dtype == np.float64 for name in names)
    assert (
        exact.groups.dtype
        == sampled.groups.dtype
        == sampled.lengths.dtype
        == sampled.top_k(2).rows.dtype
        == np.int64
    )
    assert (
        type(exact.n_states) is type(exact.n_objects) is int
        and type(exact.tv) is type(sampled.top_k(2).mean_reward) is float
    )
    assert isinstance(sampled.interval, tuple) and isinstance(exact, gfn.Distances)


def test_results_that_do_not_fit_together_are_refused(trainers):
    sampled = trainers[0].evaluate(5)
    for name in ("states", "log_weights", "lengths", "groups"):
        with pytest.raises(ValueError, match="5 objects"):
            dataclasses.replace(sampled, **{name: getattr(sampled, name)[:3]})
    with pytest.raises(ValueError, match="5 objects"):
        dataclasses.replace(sampled, groups=sampled.groups + 5)
    with pytest.raises(TypeError, match="states"):
        gfn.SampleEvaluation(**{name: value for name, value in vars(sampled).items() if name != "states"})


def test_a_trainer_is_saved_and_not_pickled_or_copied(trainers):
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="`save"):
            copied(trainers[0])
    assert trainers[0].steps_done == 3


def test_graphs_of_misaligned_buffers():
    graphs = gfn.Graphs.from_graph6(["C~", "Dhc"])
    assert misaligned(graphs) == graphs
