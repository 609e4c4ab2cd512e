"""Records of all that training draws."""

import sqlite3

import gfn_rs as gfn
import networkx
import numpy as np
import pytest


def trainer(env=gfn.HyperGrid(2, 4), policy=gfn.Mlp((8,)), **settings):
    return gfn.Trainer(env, settings.pop("reward", lambda states: np.arange(len(states)) / 4.0), policy, batch=4, **settings)


def test_all_that_is_drawn_is_there(tmp_path):
    seen = []

    def reward(states):
        values = np.arange(len(states)) / 4.0
        seen.extend(zip((" ".join(map(str, row)) for row in states.tolist()), values))
        return values

    it = trainer(reward=reward).fit(2)
    assert it.record(tmp_path / "run.sqlite") is it
    seen.clear()
    it.fit(5)
    it.fit(5)
    frame = gfn.read_record(tmp_path / "run.sqlite")
    assert list(zip(frame.text, frame.log_reward)) == seen and len(seen) == 40
    assert frame.step.tolist() == sorted([*range(3, 13)] * 4) and set(frame.run) == {1}
    assert it.record(None).fit(3).steps_done == 15
    assert len(gfn.read_record(tmp_path / "run.sqlite")) == 40


@pytest.mark.parametrize(
    "env, policy",
    [
        (gfn.Molecules(3), gfn.GraphNet(embedding=4)),
        (gfn.GraphBuilding(3), gfn.GraphNet(embedding=4)),
        (gfn.BayesianStructure(3), gfn.Mlp((4,))),
        (gfn.Box(), gfn.BoxNet((4,), components=1)),
        (gfn.Line(), gfn.LineNet((4,))),
        (gfn.Diffusion(dim=2, steps=3), gfn.DiffusionNet()),
        (gfn.BitSequence(2, 4), gfn.Mlp((4,))),
    ],
    ids=lambda part: type(part).__name__,
)
def test_every_kind_of_states_is_written(tmp_path, env, policy):
    shown = []

    def reward(states):
        shown.append(states)
        return np.zeros(len(states))

    it = gfn.Trainer(env, reward, policy, batch=4)
    it.record(tmp_path / "run.sqlite").fit(1)
    frame = gfn.read_record(tmp_path / "run.sqlite")
    # Up to isomorphism some are shown again, under other labels.
    assert len(frame) == 4 and len(shown[0]) == 4 and len(shown) <= 2
    if isinstance(env, gfn.Molecules):
        assert frame.text.tolist() == shown[0].smiles
    elif isinstance(env, gfn.GraphBuilding):
        assert all(text.startswith("graph undirected ") for text in frame.text)
        edges = [text.count("; edge ") for text in frame.text]
        assert edges == shown[0].n_edges.tolist()
    elif isinstance(env, gfn.BayesianStructure):
        for text, matrix in zip(frame.text, shown[0]):
            assert sorted(text.split()) == sorted(f"{a}>{b}" for a, b in np.argwhere(matrix))
    else:
        read = np.array([[float(word) for word in text.split()] for text in frame.text])
        assert np.array_equal(read, shown[0])


def test_isomorphic_graphs_have_one_key(tmp_path):
    shown = []

    def reward(graphs):
        shown.append(graphs.networkx())
        return np.zeros(len(graphs))

    it = gfn.Trainer(gfn.GraphBuilding(3, node_classes=2), reward, gfn.GraphNet(embedding=4), batch=64)
    it.record(tmp_path / "run.sqlite").fit(1)
    frame = gfn.read_record(tmp_path / "run.sqlite")
    same = networkx.algorithms.isomorphism.categorical_node_match("class", 0)
    pairs = [(a, b) for a in range(0, 64, 4) for b in range(a)]
    equal = [networkx.is_isomorphic(shown[0][a], shown[0][b], node_match=same) for a, b in pairs]
    assert equal == [frame.key[a] == frame.key[b] for a, b in pairs] and 0 < sum(equal) < len(equal)


def test_a_run_that_goes_on_has_each_step_once(tmp_path):
    path = tmp_path / "run.sqlite"
    it = trainer(reward=gfn.HyperGridReward()).record(path).fit(5)
    it.save(tmp_path / "checkpoint")
    it.fit(5)
    uninterrupted = gfn.read_record(path)
    again = trainer(reward=gfn.HyperGridReward()).record(path).resume(tmp_path / "checkpoint").fit(5)
    assert again.steps_done == 10
    frame = gfn.read_record(path)
    assert frame.equals(uninterrupted) and frame.step.is_monotonic_increasing and set(frame.run) == {1}
    # Another run in the same file.
    trainer().record(path).fit(2)
    assert set(gfn.read_record(path).run) == {1, 2}
    assert len(gfn.read_record(path, run=2)) == 8


def test_files_that_are_something_else_are_refused(tmp_path):
    (tmp_path / "text").write_text("not a database, and long enough to be read as one" * 50)
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE things (name TEXT)")
    other.close()
    for name in ("text", "other"):
        with pytest.raises(ValueError, match="no record"):
            gfn.read_record(tmp_path / name)
        with pytest.raises((OSError, ValueError), match="record|database"):
            trainer().record(tmp_path / name).fit(1)
    with pytest.raises(FileNotFoundError):
        gfn.read_record(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no folder"):
        trainer().record(tmp_path / "no folder" / "run")
    trainer().record(tmp_path / "run").fit(1)
    for wrong, error in ((3, ValueError), (True, TypeError), ("1", TypeError)):
        with pytest.raises(error):
            gfn.read_record(tmp_path / "run", run=wrong)


def test_a_trainer_goes_on_after_a_record_that_failed(tmp_path):
    it = trainer().record(tmp_path)
    with pytest.raises(ValueError, match="database"):
        it.fit(1)
    assert it.record(None).fit(3).steps_done == 3
