"""Tests of what users of graph networks do: several input graphs, event files for TensorBoard, resumed runs,
and short custom environments."""

import struct

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import refused

networkx = pytest.importorskip("networkx")

GRAPHS = [networkx.gnp_random_graph(6, 0.35, seed=seed) for seed in range(3)]


def trainer(graphs, **more):
    env = gfn.IndependentSet(gfn.Graphs.from_networkx(graphs))
    net = gfn.GraphNet(embedding=16, layers=2, identity=False)
    return gfn.Trainer(env, gfn.SizeReward(2.0), net, gfn.DetailedBalance(), batch=16, **more)


def independent_sets(graph):
    """Lists all maximal independent sets of a graph."""
    return [frozenset(nodes) for nodes in networkx.find_cliques(networkx.complement(graph))]


def sets_of(states):
    rows = np.split(states.node_attributes[:, 0], states.node_ptr[1:-1])
    return [frozenset(np.flatnonzero(row == 1).tolist()) for row in rows]


def test_each_input_graph_is_evaluated_by_itself(tmp_path):
    it = trainer(GRAPHS).fit(30)
    it.save(tmp_path / "run")
    for k, graph in enumerate(GRAPHS):
        alone = trainer([graph]).restore(tmp_path / "run")
        exact, own = it.exact(instance=k), alone.exact()
        # The objects and log Z are those of a list of all independent sets, and the policy's distribution is
        # the one that a trainer of this graph alone has.
        known = independent_sets(graph)
        ends = exact.target > 0
        assert sorted(map(sorted, sets_of(exact.states[np.flatnonzero(ends)]))) == sorted(map(sorted, known))
        assert exact.log_z == pytest.approx(np.logaddexp.reduce([2.0 * len(one) for one in known]))
        assert (exact.tv, exact.n_states) == (pytest.approx(own.tv, abs=1e-5), own.n_states)
        sampled = it.evaluate(400, instance=k)
        assert set(sets_of(sampled.states)) <= set(known)
        assert abs(sampled.log_z - exact.log_z) < 0.5
        objects = exact.states[np.flatnonzero(ends)]
        tested = it.evaluate_on(objects, paths=50, instance=k)
        assert tested.log_probs == pytest.approx(np.log(exact.probs[ends]), abs=0.3)
        judged = it.judge(objects, instance=k)
        assert judged.objects == len(known)
        assert gfn.judge(it.env, it.reward, objects, instance=k).log_z == judged.log_z
        other = (k + 1) % 3
        message = f"row 0 is built from initial state {k}, but `instance` is {other}"
        refused(lambda: it.evaluate_on(objects, instance=other), ValueError, message)
        refused(lambda: it.judge(objects, instance=other), ValueError, message)


def test_several_input_graphs_are_asked_for_one_by_one():
    it = trainer(GRAPHS)
    expected = "instance is None in an environment with 3 initial states, expected .*`instance=k`"
    for evaluate in (it.exact, it.evaluate, lambda **k: it.evaluate_on(it.sample(3), **k)):
        refused(evaluate, ValueError, expected)
        refused(lambda: evaluate(instance=3), ValueError, "instance is 3 in an environment with 3 initial")
        refused(lambda: evaluate(instance=-1), ValueError, "instance is -1")
        refused(lambda: evaluate(instance="a"), TypeError, "instance is 'a'")
    refused(it.certify, ValueError, "initial states of an environment whose policy is certified is 3")
    one = trainer(GRAPHS[:1])
    assert one.exact(instance=0) == one.exact()


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data):
    """Yields the number and the value of each field of a protocol buffer message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def scalars(file):
    """Reads an event file of TensorBoard: a dictionary from the tag and the step to the number."""
    data, at, found = file.read_bytes(), 0, {}
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        event = dict(fields(data[at + 12 : at + 12 + size]))
        at += 12 + size + 4
        for _, value in fields(event.get(5, b"")):
            parts = dict(fields(value))
            found[parts[1].decode(), event[2]] = struct.unpack("<f", parts[2])[0]
    return found


def grid(**more):
    return gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((16,)), batch=8, **more)


def test_event_files_have_the_numbers_of_all_steps(tmp_path):
    it = grid().fit(2)
    it.fit(5, tensorboard=tmp_path / "events", callback=lambda trainer, record: None, every=2)
    it.fit(2)
    files = list((tmp_path / "events").iterdir())
    assert len(files) == 1
    found, history = scalars(files[0]), it.history
    assert {step for _, step in found} == {3, 4, 5, 6, 7}
    for name in ("loss", "log_z", "mean_len", "grad_norm", "reward_calls"):
        for step in range(3, 8):
            assert found[name, step] == np.float32(history[name][step - 1]), (name, step)
    it.fit(1, tensorboard=str(tmp_path / "events"))
    assert len(list((tmp_path / "events").iterdir())) == 2
    # The numbers of a run don't depend on the file.
    assert it.history["loss"].tolist() == grid().fit(10).history["loss"].tolist()
    (tmp_path / "file").write_text("")
    refused(lambda: it.fit(1, tensorboard=tmp_path / "file"), OSError, "exists|file")
    it.fit(1)
    refused(lambda: it.fit(1, tensorboard=3), TypeError, "tensorboard is 3: expected")
    refused(
        lambda: it.fit(1, callback=lambda *_: 1 / 0, tensorboard=tmp_path / "e"),
        ZeroDivisionError,
        "division",
    )
    n = len(scalars(next((tmp_path / "e").iterdir())))
    it.fit(1)
    assert len(scalars(next((tmp_path / "e").iterdir()))) == n > 0


def test_a_resumed_run_has_the_records_of_all_steps(tmp_path):
    whole = grid().fit(30)
    grid().fit(20).save(tmp_path / "run")
    again = grid().resume(tmp_path / "run")
    assert len(again.history["loss"]) == 20
    again.fit(10)
    for name in ("step", "loss", "log_z", "mean_len", "grad_norm", "reward_calls"):
        assert again.history[name].tolist() == whole.history[name].tolist(), name
        assert again.history[name].dtype == whole.history[name].dtype
    assert list(again.frame().index) == list(range(1, 31))
    # Resuming replaces the records of steps that a trainer made before.
    assert len(again.resume(tmp_path / "run").history["loss"]) == 20
    # A resumed run can be saved and resumed again, and so can a run without steps.
    again.fit(1).save(tmp_path / "run")
    assert len(grid().resume(tmp_path / "run").history["loss"]) == 21
    grid().save(tmp_path / "empty")
    assert len(grid().fit(3).resume(tmp_path / "empty").frame()) == 0
    # Variance objectives have no log Z, so its record is NaN, which a checkpoint must not refuse.
    variance = lambda: gfn.Trainer(
        gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((16,)), gfn.LogPartitionVariance(), batch=8
    )
    first = variance().fit(2)
    first.save(tmp_path / "variance")
    read = variance().resume(tmp_path / "variance").history["log_z"]
    assert np.array_equal(read, first.history["log_z"], equal_nan=True)


class TriangleFree(gfn.GraphRules):
    """Rules that join two nodes by an edge only if they have no neighbour in common."""

    def restrict(self, graphs, moves):
        nets, allowed = graphs.networkx(), np.ones(len(moves), dtype=bool)
        for k in np.flatnonzero(np.array(moves.types)[moves.kind] == "add_edge"):
            net = nets[moves.graph[k]]
            allowed[k] = not set(net[moves.a[k]]) & set(net[moves.b[k]])
        return allowed


def test_a_short_environment_builds_exactly_the_triangle_free_graphs():
    env = gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge()], max_nodes=5, rules=TriangleFree())
    env.check()
    reward = lambda graphs: 0.5 * graphs.n_edges
    exact = gfn.Trainer(env, reward, gfn.Uniform(), batch=8).exact()
    atlas = [
        graph
        for graph in networkx.graph_atlas_g()
        if graph.number_of_nodes() <= 5
        and not sum(networkx.triangles(graph).values())
        and (graph.number_of_nodes() == 0 or networkx.is_connected(graph))
    ]
    edges = sorted(graph.number_of_edges() for graph in atlas)
    assert sorted(exact.states.n_edges.tolist()) == edges and exact.n_states == len(edges)
    weights = [0.5 * n for n in edges]
    # The empty graph is the initial state, in which a trajectory may end, too.
    assert exact.log_z == pytest.approx(np.logaddexp.reduce(weights))


def test_a_checkpoint_with_other_records_changes_nothing(tmp_path):
    it = grid().fit(2)
    it._session.save(str(tmp_path / "run"), torch.zeros(3, dtype=torch.int64))
    other = grid()
    before = [parameter.clone() for parameter in other.parameters()]
    message = r"records of steps have the shape \[3\] and the dtype Int64: expected \[7, steps\] and Int64"
    refused(lambda: other.resume(tmp_path / "run"), (ValueError, OSError), message)
    assert other.steps_done == 0
    assert all(torch.equal(one, two) for one, two in zip(before, other.parameters()))
    # The loss of scores that were computed before `resume` isn't used for a step after it.
    it.save(tmp_path / "run")
    batch = other.batch()
    scores = other.score(batch)
    other.loss(scores)
    other.resume(tmp_path / "run")
    refused(lambda: other.advance(batch, scores), ValueError, "loss is None")
