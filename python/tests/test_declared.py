"""Tests of environments and objectives that are declared in Python."""

import math
import pickle

import gfn_rs as gfn
import numpy as np
import pytest
import torch


def count_edges(graphs):
    return graphs.n_edges.astype(float)


class Thin(gfn.GraphRules):
    """Rules that allow at most two edges at each node, and no finished object with exactly one edge."""

    def restrict(self, graphs, moves):
        degrees = np.bincount(graphs.edge_index.ravel(), minlength=graphs.node_ptr[-1])
        first = graphs.node_ptr[moves.graph]
        return np.maximum(degrees[first + moves.a], degrees[first + moves.b]) < 2

    def can_exit(self, graphs):
        return graphs.n_edges != 1


def thin(n=4, **settings):
    return gfn.GraphEnv([gfn.AddEdge()], n, start=n, labelled=True, rules=Thin(), **settings)


def test_a_declared_environment_has_the_states_that_its_rules_allow():
    exact = gfn.Trainer(thin(), count_edges, gfn.GraphNet(embedding=16)).exact()
    graphs = exact.states
    degrees = [max((d for _, d in g.degree), default=0) for g in graphs.networkx()]
    # There are 41 labelled graphs of four nodes with degrees of at most two: 1 without edges, 6 with one
    # edge, 15 with two, 16 with three and 3 with four edges.
    assert exact.n_states == 41 and max(degrees) == 2
    ends = np.isfinite(exact.log_rewards)
    assert (ends == (graphs.n_edges != 1)).all()
    counts = np.bincount(graphs.n_edges)
    assert counts.tolist() == [1, 6, 15, 16, 3]
    assert exact.log_z == pytest.approx(
        math.log(sum(c * math.exp(k) for k, c in enumerate(counts) if k != 1))
    )


def test_a_declared_environment_is_learned_exactly():
    trainer = gfn.Trainer(
        thin(),
        count_edges,
        gfn.GraphNet(embedding=64),
        batch=64,
        adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, 400)),
    )
    before = trainer.exact().tv
    after = trainer.fit(400).exact().tv
    assert after < 0.03 and after < before / 5, (before, after)


def test_a_declared_environment_is_its_twin_of_the_library():
    """Declares an environment that is equal to the library's `Ring`. Training runs in both environments must
    be equal bit for bit."""
    own = gfn.GraphEnv([gfn.AddEdge()], 3, directed=True, start=3, labelled=True)
    runs = [
        gfn.Trainer(env, gfn.RingReward(), gfn.GraphNet(embedding=16), batch=16, seed=7)
        .fit(10)
        .history["loss"]
        .tolist()
        for env in (gfn.Ring(3), own)
    ]
    assert runs[0] == runs[1]


def test_types_of_actions_and_scaffolds():
    start = gfn.Graphs.from_arrays(
        np.array([3]), np.array([[0, 1], [1, 2]]), np.array([0, 2]), directed=False
    )
    env = gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge()], 5, start=start)
    graphs = gfn.Trainer(
        env, lambda graphs: np.zeros(len(graphs)), gfn.Uniform(), gfn.LogPartitionVariance()
    ).sample(200)
    assert graphs.n_nodes.min() >= 3 and graphs.n_nodes.max() == 5 and graphs.n_edges.max() > 4
    assert all(g.has_edge(0, 1) and g.has_edge(1, 2) for g in graphs.networkx())
    colours = gfn.GraphEnv([gfn.SetNodeAttribute()], 2, start=2, labelled=True, node_attributes=[3])
    exact = gfn.Trainer(colours, lambda graphs: np.zeros(len(graphs)), gfn.GraphNet(embedding=8)).exact()
    assert exact.n_states == 16
    edges = gfn.GraphEnv(
        [gfn.AddEdge(), gfn.SetEdgeAttribute()], 2, start=2, labelled=True, edge_attributes=[2]
    )
    assert (
        gfn.Trainer(edges, lambda graphs: np.zeros(len(graphs)), gfn.GraphNet(embedding=8)).exact().n_states
        == 4
    )


def test_moves_say_what_they_are():
    seen = []

    class Look(gfn.GraphRules):
        def restrict(self, graphs, moves):
            seen.append((len(graphs), moves))
            return np.ones(len(moves), dtype=bool)

    env = gfn.GraphEnv([gfn.AddNode(), gfn.AddEdge()], 4, node_classes=3, start=2, rules=Look())
    gfn.Trainer(env, count_edges, gfn.Uniform(), gfn.LogPartitionVariance()).sample(6)
    graphs, moves = seen[0]
    assert moves.types == ("add_node", "add_edge", "exit") and len(moves) == len(moves.a)
    assert set(moves.kind.tolist()) == {0, 1} and moves.graph.max() < graphs
    assert moves.column[moves.kind == 0].max() == 2 and moves.column[moves.kind == 1].max() == 0
    assert "Moves(" in repr(moves)


@pytest.mark.parametrize(
    "answer, kind, message",
    [
        (lambda n: np.ones(n + 1, dtype=bool), ValueError, "gave"),
        (lambda n: np.ones(n), TypeError, "float64"),
        (lambda n: [True] * n, TypeError, "list"),
        (lambda n: None, TypeError, "NoneType"),
        (lambda n: np.ones((n, 1), dtype=bool), TypeError, "shape"),
        (lambda n: 1 / 0, ZeroDivisionError, "division"),
    ],
)
@pytest.mark.parametrize("method", ["restrict", "can_exit", "is_reachable"])
def test_mistakes_in_rules_are_raised(answer, kind, message, method):
    broken = {"now": False}

    class Broken(gfn.GraphRules):
        pass

    def asked(self, graphs, moves=None):
        n = len(graphs) if moves is None else len(moves)
        return answer(n) if broken["now"] else np.ones(n, dtype=bool)

    setattr(Broken, method, asked)
    # The environment is so large that each step has new graphs, for which the rules are called. P_B is
    # learned, so that the rules are called about backward moves, too.
    env = gfn.GraphEnv([gfn.AddEdge()], 8, start=8, labelled=True, rules=Broken())
    trainer = gfn.Trainer(env, count_edges, gfn.GraphNet(embedding=8, backward="shared_torso"), batch=4).fit(
        1
    )
    broken["now"] = True
    with pytest.raises(kind, match=message):
        trainer.fit(1)
    broken["now"] = False
    assert np.isfinite(trainer.fit(1).history["loss"][-1])


def test_rules_are_asked_once_about_each_graph():
    asked = {"restrict": [], "can_exit": [], "is_reachable": []}

    class Counted(Thin):
        def restrict(self, graphs, moves):
            lines = graphs.graph6()
            asked["restrict"] += [(lines[g], a, b) for g, a, b in zip(moves.graph, moves.a, moves.b)]
            return super().restrict(graphs, moves)

        def can_exit(self, graphs):
            asked["can_exit"] += graphs.graph6()
            return super().can_exit(graphs)

        def is_reachable(self, graphs):
            asked["is_reachable"] += graphs.graph6()
            return np.ones(len(graphs), dtype=bool)

    def run(rules):
        env = gfn.GraphEnv([gfn.AddEdge()], 4, start=4, labelled=True, rules=rules)
        return gfn.Trainer(
            env, count_edges, gfn.GraphNet(embedding=8, backward="shared_torso"), batch=16, seed=3
        ).fit(20)

    trainer = run(Counted())
    assert trainer.exact().n_states == 41
    for method, questions in asked.items():
        assert len(set(questions)) == len(questions) > 0, method
    # `can_exit` must be called only once for each of the environment's 41 graphs, because answers are cached.
    assert len(asked["can_exit"]) == 41
    # The cached answers must be correct, including the answers about moves. A run with the rules `Thin`,
    # which are the same rules without a record of their calls, must have equal losses.
    assert trainer.history["loss"].tolist() == run(Thin()).history["loss"].tolist()


def test_answers_of_rules_that_failed_are_not_kept():
    class Once(Thin):
        fails = True

        def restrict(self, graphs, moves):
            if self.fails:
                raise KeyError("not yet")
            return super().restrict(graphs, moves)

    rules = Once()
    rules.fails = False
    # When the trainer is built, it checks a few of the environment's 1,858 graphs. The rules' answers for
    # these few graphs are cached. So `exact` must call the rules for all other graphs.
    env = gfn.GraphEnv([gfn.AddEdge()], 6, start=6, labelled=True, rules=rules)
    trainer = gfn.Trainer(env, count_edges, gfn.Uniform(), gfn.LogPartitionVariance())
    rules.fails = True
    with pytest.raises(KeyError, match="not yet"):
        trainer.exact()
    rules.fails = False
    assert trainer.exact().n_states == 1858


@pytest.mark.parametrize(
    "name, meant",
    [
        ("canexit", "can_exit"),
        ("can_end", "can_exit"),
        ("Restrict", "restrict"),
        ("is_reachabel", "is_reachable"),
    ],
)
def test_misspelt_methods_of_rules_are_refused(name, meant):
    wrong = type("Rules", (gfn.GraphRules,), {name: lambda self, graphs: np.ones(len(graphs), dtype=bool)})
    with pytest.raises(TypeError, match=f"`{name}`.*`{meant}`"):
        gfn.GraphEnv([gfn.AddEdge()], 4, start=4, rules=wrong())
    # Rules with additional methods, whose names aren't similar to the names of the library's methods, must be
    # accepted.
    own = type(
        "Rules", (gfn.GraphRules,), {f"_{name}": None, "planar": lambda self, graph: True, "restricted": 3}
    )
    assert gfn.GraphEnv([gfn.AddEdge()], 4, start=4, labelled=True, rules=own()).max_nodes == 4
    vectors = type(
        "Rules", (gfn.VectorRules,), {"can_exit": lambda self, states: np.ones(len(states), dtype=bool)}
    )
    with pytest.raises(TypeError, match="`can_exit`.*`can_end`"):
        gfn.VectorEnv(1, 2, [(0, 0, 1)], rules=vectors())


def test_moves_have_the_columns_that_their_docs_tell():
    seen = set()

    class Look(gfn.GraphRules):
        def restrict(self, graphs, moves):
            seen.update(zip((moves.types[k] for k in moves.kind), moves.column.tolist()))
            return np.ones(len(moves), dtype=bool)

    types = [gfn.AddNode(attached=True), gfn.SetNodeAttribute()]
    env = gfn.GraphEnv(
        types, 3, node_classes=2, edge_classes=3, node_attributes=[2, 3], labelled=True, rules=Look()
    )
    gfn.Trainer(env, count_edges, gfn.Uniform(), gfn.LogPartitionVariance()).sample(50)
    columns = {name: sorted(column for of, column in seen if of == name) for name, _ in seen}
    # `columns` has the indices of the variants of each type of move. The first node has 2 classes. An
    # attached node has 2 classes times the 3 classes of its edge. The two attributes have 2 and 3 values.
    assert columns == {
        "add_first_node": [0, 1],
        "add_attached_node": list(range(6)),
        "set_node_attribute": list(range(5)),
    }
    only = gfn.GraphEnv(
        types, 2, node_classes=2, edge_classes=3, node_attributes=[2, 3], labelled=True, rules=Only()
    )
    graphs = gfn.Trainer(only, count_edges, gfn.Uniform(), gfn.LogPartitionVariance()).sample(50)
    two = graphs[graphs.n_nodes == 2]
    assert len(two) > 0 and set(two.node_classes.reshape(-1, 2)[:, 1]) == {1} and set(two.edge_classes) == {2}
    assert set(graphs.node_attributes[:, 0]) == {0} and set(graphs.node_attributes[:, 1]) == {0, 3}


class Only(gfn.GraphRules):
    """Rules that allow one variant of each type of move. `moves.column` is the index of the variant. The
    first node must have class 0 (column 0). An attached node must have class 1, and its edge class 2 of the 3
    edge classes (column 1 * 3 + 2). Only the second attribute may be set, to 3. Its columns come after the 2
    columns of the first attribute, so this is column 2 + 3 - 1."""

    def restrict(self, graphs, moves):
        wanted = {"add_first_node": 0, "add_attached_node": 5, "set_node_attribute": 4}
        return moves.column == np.array([wanted.get(name, -1) for name in moves.types])[moves.kind]


def test_rules_that_allow_nothing_are_named():
    class Nothing(gfn.GraphRules):
        def restrict(self, graphs, moves):
            return np.zeros(len(moves), dtype=bool)

        def can_exit(self, graphs):
            return np.zeros(len(graphs), dtype=bool)

    env = gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True, rules=Nothing())
    with pytest.raises(ValueError, match="no legal"):
        gfn.Trainer(env, count_edges, gfn.GraphNet(embedding=8)).fit(1)


def trajectory_balance(scores):
    """Returns the loss of trajectory balance, computed in Python."""
    b = len(scores.log_reward)
    difference = torch.zeros(b).index_add(0, scores.trajectory, scores.log_pf - scores.log_pb)
    return (scores.log_z + difference - scores.log_reward).square().mean()


def test_an_objective_of_one_s_own_is_the_library_s():
    def run(objective):
        return (
            gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((32,)), objective, batch=16)
            .fit(20)
            .history["loss"]
        )

    own, theirs = run(gfn.OwnObjective(trajectory_balance)), run(gfn.TrajectoryBalance())
    assert own == pytest.approx(theirs, rel=1e-4)


def test_an_objective_with_flows_is_the_library_s():
    def detailed_balance(scores):
        last = torch.as_tensor(scores.offsets[1:] - 1)
        following = torch.cat([scores.log_flow[1:], scores.log_flow[:1]])
        following = following.index_copy(0, last, scores.log_reward)
        return (scores.log_flow + scores.log_pf - scores.log_pb - following).square().mean()

    def run(objective):
        return (
            gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((32,)), objective, batch=16)
            .fit(10)
            .history["loss"]
        )

    own = run(gfn.OwnObjective(detailed_balance, log_z=False, flow=True))
    assert own == pytest.approx(run(gfn.DetailedBalance()), rel=1e-4)


@pytest.mark.parametrize(
    "loss, kind, message",
    [
        (lambda scores: 0.0, TypeError, "float"),
        (lambda scores: None, TypeError, "NoneType"),
        (lambda scores: scores.log_pf, ValueError, "shape"),
        (lambda scores: torch.zeros(()), ValueError, "gradient"),
        (lambda scores: scores.log_pf.sum().detach(), ValueError, "gradient"),
        (lambda scores: scores.log_pf.sum() * math.nan, FloatingPointError, "NaN"),
        (lambda scores: scores.log_flow.sum(), AttributeError, "None"),
        (lambda scores: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_mistakes_in_objectives_are_raised(loss, kind, message):
    trainer = gfn.Trainer(
        gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), gfn.OwnObjective(loss), batch=4
    )
    with pytest.raises(kind, match=message):
        trainer.fit(1)


def test_what_is_declared_wrongly_is_refused():
    for make, kind in (
        (lambda: gfn.GraphEnv([], 3), ValueError),
        (lambda: gfn.GraphEnv([gfn.AddEdge], 3), TypeError),
        (lambda: gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge(max_edges=2)], 3), ValueError),
        (lambda: gfn.GraphEnv([gfn.AddEdge()], 3, rules=Thin), TypeError),
        (lambda: gfn.GraphEnv([gfn.AddEdge()], 3, rules=3), TypeError),
        (lambda: gfn.GraphEnv([gfn.AddEdge()], 3, start=4), ValueError),
        (lambda: gfn.GraphEnv([gfn.AddEdge()], 3, start=10**9), ValueError),
        (
            lambda: gfn.GraphEnv([gfn.AddEdge()], 3, directed=True, start=gfn.Graphs.from_graph6(["B?"])),
            ValueError,
        ),
        (lambda: gfn.OwnObjective(3)._loss(), TypeError),
    ):
        with pytest.raises(kind):
            make()


class Once(gfn.GraphRules):
    """Rules that raise an exception in one call, after a number of successful calls."""

    def __init__(self, error, at):
        self.error, self.left = error, at

    def can_exit(self, graphs):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return np.ones(len(graphs), dtype=bool)


@pytest.mark.parametrize("error", [LookupError("mine"), KeyboardInterrupt()])
def test_a_rule_that_raises_ends_its_step_before_anything_is_learned(error):
    rules = Once(error, -1)
    # The environment is so large that each step has new graphs, for which the rules are called.
    env = gfn.GraphEnv([gfn.AddEdge(max_edges=3)], 12, start=12, labelled=True, rules=rules)
    trainer = gfn.Trainer(env, count_edges, gfn.GraphNet(embedding=8), batch=4).fit(2)
    rules.left = 20
    before = None

    def look(trainer, record):
        nonlocal before
        before = {name: tensor.clone() for name, tensor in trainer.named_parameters()}

    with pytest.raises(type(error)):
        trainer.fit(100, callback=look, every=1)
    done = trainer.steps_done
    assert 2 < done < 20 and len(trainer.history["loss"]) == done
    # The step failed because rules raised an exception, so it must not have changed the parameters.
    assert all(torch.equal(before[name], tensor) for name, tensor in trainer.named_parameters())
    rules.left = 20
    with pytest.raises(type(error)):
        trainer.fit(100)
    assert trainer.steps_done < done + 20


def test_trainers_of_one_environment_raise_their_own():
    class Mine(gfn.GraphRules):
        broken = False

        def can_exit(self, graphs):
            if self.broken:
                raise LookupError("mine")
            return np.ones(len(graphs), dtype=bool)

    rules = Mine()
    env = gfn.GraphEnv([gfn.AddEdge()], 8, start=8, labelled=True, rules=rules)
    inner = gfn.Trainer(env, count_edges, gfn.GraphNet(embedding=8), batch=4)

    def reward(graphs):
        rules.broken = True
        with pytest.raises(LookupError):
            inner.sample(2)
        rules.broken = False
        return count_edges(graphs)

    # The rules raise an exception in a call of `inner`. It must not affect the outer trainer, which has the
    # same rules, so training continues.
    assert gfn.Trainer(env, reward, gfn.GraphNet(embedding=8), batch=4).fit(2).steps_done == 2


@pytest.mark.parametrize(
    "settings",
    [
        dict(directed=True),
        dict(start=3),
        dict(
            start=gfn.Graphs.from_arrays(
                np.array([4]), np.array([[0, 1], [2, 3]]), np.array([0, 2]), directed=False
            )
        ),
    ],
)
def test_graphs_that_moves_back_would_cut_are_refused(settings):
    with pytest.raises(ValueError, match="attached"):
        gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge()], 5, **settings)


def test_graphs_that_grow_attached_are_learned():
    env = gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge()], 3)
    trainer = gfn.Trainer(
        env,
        count_edges,
        gfn.GraphNet(embedding=32),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 300)),
    )
    # The environment has five states: no node, one node, two nodes with an edge, a path, and a triangle.
    exact = trainer.fit(300).exact()
    assert exact.n_states == 5 and exact.tv < 0.03


def test_a_run_goes_on_in_its_own_environment_alone(tmp_path):
    def start(a, b):
        return gfn.Graphs.from_arrays(np.array([3]), np.array([[a, b]]), np.array([0, 1]), directed=False)

    def trainer(reward=count_edges, **settings):
        env = gfn.GraphEnv([gfn.AddEdge()], 3, labelled=True, **settings)
        return gfn.Trainer(env, reward, gfn.GraphNet(embedding=8), batch=4)

    run = trainer(start=start(0, 1)).fit(1)
    run.save(tmp_path / "run")
    first = run.sample(6).graph6()
    assert trainer(start=start(0, 1)).resume(tmp_path / "run").steps_done == 1
    for other in (
        trainer(start=start(1, 2)),
        trainer(start=start(0, 1), rules=Thin()),
        trainer(gfn.RingReward(), start=start(0, 1)),
    ):
        with pytest.raises(ValueError):
            other.resume(tmp_path / "run")
    assert len(first) == 6
