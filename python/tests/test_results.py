"""Results go through pickle and `copy` as they are; a trainer doesn't, and says what to do."""

import copy
import pickle

import gfn_rs as gfn
import numpy as np
import pytest


@pytest.fixture(scope="module")
def trainers():
    grid = gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((16,)), batch=16).fit(3)
    graphs = gfn.Trainer(gfn.GraphBuilding(3), lambda graphs: graphs.n_edges.astype(float), gfn.GraphNet(embedding=8), batch=8).fit(3)
    return grid, graphs


def shown(result):
    """All that a result shows, but its methods."""
    names = [name for name in dir(result) if not name.startswith("_")]
    return {name: getattr(result, name) for name in names if not callable(getattr(result, name))}


def equal(one, other):
    assert type(one) is type(other)
    if isinstance(one, (float, int, str, tuple, type(None), gfn.Graphs)):
        assert one == other or one != one
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and np.array_equal(one, other)
    else:
        # Something is there to be lost.
        assert len(shown(one)) >= 2 and repr(one) == repr(other)
        for name, value in shown(one).items():
            equal(value, shown(other)[name])


def misaligned(data):
    """The same objects, from buffers that begin at odd addresses."""
    buffers = []
    text = pickle.dumps(data, protocol=5, buffer_callback=buffers.append)
    assert buffers, "nothing went out of band"
    return pickle.loads(text, buffers=[memoryview(bytearray(b"x" + bytes(buffer.raw())))[1:] for buffer in buffers])


def test_results_are_pickled(trainers):
    for trainer in trainers:
        sampled, exact = trainer.evaluate(20), trainer.exact()
        objects = exact.states[np.isfinite(exact.log_rewards)]
        tested = trainer.evaluate_on(objects)
        floor = gfn.noise_floor(exact.target, 100)
        results = [exact, sampled, sampled.elbo, sampled.top_k(3), tested, tested.correlation, tested.upper_bound, floor]
        results += [trainer.evaluate_on(objects[:1]), sampled.top_k(3, lambda best: np.ones((3, 3)))]
        for result in results:
            for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
                equal(result, again)
        equal(exact, misaligned(exact))
        # What is asked of it afterwards, too.
        again = pickle.loads(pickle.dumps(sampled))
        equal(sampled.top_k(5), again.top_k(5))
        every = lambda states: np.ones(len(states), dtype=bool)
        assert again.modes(every) == sampled.modes(every) == sampled.n_distinct and len(again) == 20


def test_results_that_do_not_fit_together_are_refused(trainers):
    parts = trainers[0].evaluate(5).__getnewargs_ex__()[1]
    for name in ("log_weights", "lengths", "groups"):
        with pytest.raises(ValueError, match="5 objects"):
            gfn.Sampled(**{**parts, name: parts[name][:3]})
    with pytest.raises(TypeError, match="states"):
        gfn.Sampled(**{name: value for name, value in parts.items() if name != "states"})


def test_a_trainer_is_saved_and_not_pickled_or_copied(trainers):
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="`save"):
            copied(trainers[0])
    assert trainers[0].steps_done == 3


def test_graphs_of_misaligned_buffers():
    graphs = gfn.Graphs.from_graph6(["C~", "Dhc"])
    assert misaligned(graphs) == graphs
