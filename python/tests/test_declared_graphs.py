"""Tests of graph environments that remove parts, have several initial states, scaffolds, molecules with
rules, or input graphs."""

import itertools
import math
import pickle
import warnings

import gfn_rs as gfn
import networkx as nx
import numpy as np
import pytest
from refusals import refused

NET = gfn.GraphNet(layers=2, embedding=16)


def flat(states):
    return np.zeros(len(states))


def count_edges(graphs):
    return graphs.n_edges.astype(float)


def exact(env, reward=flat, policy=NET):
    return gfn.Trainer(env, reward, policy).exact()


def graphs_of(*given):
    return gfn.Graphs.from_networkx([nx.Graph(graph) for graph in given])


def complete(n):
    return graphs_of(nx.complete_graph(n))


# `count` is the number of graphs of n nodes up to isomorphism (OEIS A000088).
@pytest.mark.parametrize("n, count", [(2, 2), (3, 4), (4, 11), (5, 34)])
def test_removing_edges_of_the_complete_graph_comes_to_all_graphs(n, count):
    env = gfn.GraphEnv([gfn.RemoveEdge()], n, start=complete(n), scaffold="alike")
    assert env.check(walks=300) == (count, count)
    up = gfn.GraphEnv([gfn.AddEdge()], n, start=n)
    down, up = exact(env, count_edges), exact(up, count_edges)
    assert down.n_states == up.n_states == count and down.log_z == pytest.approx(up.log_z)


def test_nodes_of_the_start_are_told_apart_or_not():
    edges = math.comb(4, 2)
    for settings in (
        dict(),
        dict(scaffold="distinct"),
        dict(labelled=True),
        dict(labelled=True, scaffold="alike"),
    ):
        assert exact(gfn.GraphEnv([gfn.RemoveEdge()], 4, start=complete(4), **settings)).n_states == 2**edges
    # Initial nodes that are equal and have no edges are interchangeable by default: `scaffold` is "alike".
    assert exact(gfn.GraphEnv([gfn.AddEdge()], 4, start=4)).n_states == 11
    assert exact(gfn.GraphEnv([gfn.AddEdge()], 4, start=4, scaffold="distinct")).n_states == 2**edges


def test_what_was_never_there_is_not_put_back():
    """Starts at a path of three nodes and removes its two edges. Backward moves must not add an edge to the
    third pair of nodes, which never had one."""
    assert (
        exact(gfn.GraphEnv([gfn.RemoveEdge()], 3, start=graphs_of(nx.path_graph(3)), labelled=True)).n_states
        == 4
    )
    path = gfn.Graphs.from_arrays([3], [[0, 1], [1, 2]], [0, 2], directed=False, edge_classes=[0, 1])
    env = gfn.GraphEnv([gfn.RemoveEdge()], 3, start=path, edge_classes=2)
    assert env.check() == (4, 4) and exact(env).n_states == 4
    both = graphs_of(nx.path_graph(4), nx.cycle_graph(4)) + graphs_of(nx.star_graph(3))
    env = gfn.GraphEnv([gfn.RemoveEdge()], 4, start=both, labelled=True)
    # All three instances reach the graph without edges, which is an error.
    refused(
        lambda: gfn.Trainer(env, flat, NET, gfn.DetailedBalance()).fit(1),
        ValueError,
        "no two instances lead to the same graph",
    )


def test_graphs_that_are_taken_apart_are_learned():
    env = gfn.GraphEnv([gfn.RemoveEdge()], 4, start=complete(4), scaffold="alike")
    trainer = gfn.Trainer(
        env,
        count_edges,
        gfn.GraphNet(embedding=32),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 300)),
    )
    before = trainer.exact().tv
    assert trainer.fit(300).exact().tv < 0.05 < before


def orbits(graphs, ring):
    """Returns the number of different graphs, where graphs are equal if an isomorphism maps them to each
    other and the ring to itself."""
    classes = []
    for graph in graphs.networkx():
        nx.set_node_attributes(graph, {a: a < ring for a in graph}, "ring")
        graph.add_edges_from(graph.edges, tie=False)
        if not any(
            nx.is_isomorphic(graph, other, node_match=lambda one, two: one["ring"] == two["ring"])
            for other in classes
        ):
            classes.append(graph)
    return len(classes)


@pytest.mark.parametrize("grown, n_distinct", [(1, 7), (2, None)])
def test_decorations_of_a_ring_are_counted_by_its_symmetries(grown, n_distinct):
    """Counts the graphs that grow on a ring. No edge between nodes of the ring is added, so the number must
    be the number of graphs up to isomorphisms that map the ring to itself."""

    def env(scaffold):
        return gfn.GraphEnv(
            [gfn.AddNode(attached=True)], 6 + grown, start=graphs_of(nx.cycle_graph(6)), scaffold=scaffold
        )

    apart, alike = exact(env("distinct")), exact(env("alike"))
    assert n_distinct in (None, apart.n_states)
    assert alike.n_states == orbits(apart.states, 6) < apart.n_states
    # Each state is an object with the reward 1, so Z is the number of states.
    assert alike.log_z == pytest.approx(math.log(alike.n_states))


def test_attributes_are_unset_and_nodes_removed():
    given = dict(node_attributes=np.array([[1], [2]]), edge_attributes=np.array([[2]]))
    start = gfn.Graphs.from_arrays([2], [[0, 1]], [0, 1], directed=False, **given)
    sizes = dict(node_attributes=[2], edge_attributes=[2], start=start, labelled=True)
    assert exact(gfn.GraphEnv([gfn.ClearNodeAttribute()], 2, **sizes)).n_states == 4
    assert exact(gfn.GraphEnv([gfn.ClearEdgeAttribute()], 2, **sizes)).n_states == 2
    both = exact(
        gfn.GraphEnv([gfn.ClearNodeAttribute(), gfn.ClearEdgeAttribute(), gfn.RemoveEdge()], 2, **sizes)
    )
    # The attributes of the two nodes have 4 combinations. The edge has 3 states: it has its attribute, it has
    # no attribute, or it is removed. An edge with an attribute can't be removed.
    assert both.n_states == 4 * 3
    assert exact(gfn.GraphEnv([gfn.RemoveNode()], 3, start=3, labelled=True)).n_states == 4
    path = graphs_of(nx.path_graph(3))
    assert exact(gfn.GraphEnv([gfn.RemoveNode(attached=True)], 3, start=path, labelled=True)).n_states == 3


TWINS = [
    (gfn.AddEdge(), gfn.RemoveEdge()),
    (gfn.AddNode(), gfn.RemoveNode()),
    (gfn.AddNode(attached=True), gfn.RemoveNode(attached=True)),
    (gfn.SetNodeAttribute(), gfn.ClearNodeAttribute()),
    (gfn.SetEdgeAttribute(), gfn.ClearEdgeAttribute()),
]
SIZES = dict(max_nodes=3, start=2, node_attributes=[1], edge_attributes=[1])


@pytest.mark.parametrize("pair", TWINS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
def test_what_undoes_each_other_is_refused(pair, turned, labelled):
    pair = pair[::-1] if turned else pair
    refused(
        lambda: gfn.GraphEnv([*pair, gfn.AddEdge()], labelled=labelled, **SIZES),
        ValueError,
        "each undoes the other",
    )


def test_rules_that_let_walks_come_round_are_refused():
    env = gfn.GraphEnv([gfn.AddEdge(), gfn.RemoveEdge()], 3, start=3, labelled=True, rules=gfn.GraphRules())
    refused(lambda: env.check(), ValueError, "no sequence of forward moves leads back")
    refused(lambda: gfn.Trainer(env, flat, NET).fit(1), ValueError, "no sequence of forward moves leads back")


def coloured(*classes):
    """Returns graphs without edges, whose nodes have these classes."""
    n = [len(each) for each in classes]
    none = np.zeros((0, 2), dtype=int)
    return gfn.Graphs.from_arrays(
        n, none, np.zeros(len(n) + 1, dtype=int), directed=False, node_classes=np.concatenate(classes)
    )


def test_several_graphs_are_instances():
    starts = coloured([0, 0, 0], [1, 1, 1], [0, 1, 1])
    env = gfn.GraphEnv([gfn.AddEdge()], 3, start=starts, node_classes=2, labelled=True)
    assert env.check() == (3 * 8, 3 * 8)
    settings = dict(batch=64, adam=gfn.Adam(lr=5e-3, schedule=gfn.Linear(1, 0, 250)))
    trainer = gfn.Trainer(
        env, count_edges, gfn.GraphNet(embedding=32), gfn.DetailedBalance(), **settings
    ).fit(250)
    graphs = trainer.sample(9_000)
    kinds = graphs.node_classes.reshape(-1, 3).sum(axis=1)
    for kind in (0, 3, 2):
        counts = np.bincount(graphs.n_edges[kinds == kind], minlength=4)
        weights = np.array([math.comb(3, k) * math.exp(k) for k in range(4)])
        assert np.abs(counts / counts.sum() - weights / weights.sum()).sum() < 0.1
    refused(trainer.exact, ValueError, "instance is None in an environment with 3 initial.*`instance=k`")
    refused(
        lambda: gfn.Trainer(env, count_edges, NET).fit(1),
        (ValueError, RuntimeError),
        "log Z of each instance",
    )


def test_the_parameters_of_several_starts_are_taken_over_for_one(tmp_path):
    starts = coloured([0, 0, 0], [1, 1, 1])
    envs = [
        gfn.GraphEnv([gfn.AddEdge()], 3, start=each, node_classes=2, labelled=True)
        for each in (starts, starts[:1])
    ]
    trainers = [
        gfn.Trainer(env, count_edges, NET, gfn.DetailedBalance(), adam=gfn.Adam(lr=5e-3), batch=32)
        for env in envs
    ]
    trainers[0].fit(100).save(tmp_path / "both")
    before = trainers[1].exact().tv
    assert trainers[1].restore(tmp_path / "both").exact().tv < before / 2


@pytest.mark.parametrize(
    "settings, kind, message",
    [
        (dict(start=gfn.Graphs.from_graph6([])), ValueError, "start is empty"),
        (dict(start=gfn.Graphs.from_graph6(["B?", "C?"])), ValueError, "the same number of nodes"),
        (dict(start=gfn.Graphs.from_graph6(["E???"])), ValueError, "at most 4"),
        (dict(start=[0, 1]), TypeError, "start"),
        (dict(start="B?"), TypeError, "start"),
        (dict(start=-1), ValueError, "start"),
        (dict(start=nx.Graph()), TypeError, "start"),
        (dict(scaffold="equal"), ValueError, "scaffold"),
        (dict(scaffold=1), TypeError, "scaffold"),
        (dict(scaffold=True), TypeError, "scaffold"),
        (
            dict(scaffold="alike", start=gfn.Graphs.from_graph6(["C~", "CF"])),
            ValueError,
            "set of symmetries of the initial graph is different in some instances.*`told_apart=True`",
        ),
        (dict(actions=[gfn.RemoveEdge]), TypeError, "actions"),
        (dict(actions=["remove_edge"]), TypeError, "actions"),
        (dict(actions=[gfn.ClearNodeAttribute()]), ValueError, "attribute"),
        (dict(actions=[gfn.ClearEdgeAttribute()]), ValueError, "attribute"),
    ],
)
def test_what_is_declared_wrongly_is_refused(settings, kind, message):
    refused(
        lambda: gfn.GraphEnv(**{**dict(actions=[gfn.AddEdge()], max_nodes=4, start=4), **settings}),
        kind,
        message,
    )


def test_removals_have_settings_of_their_kind():
    for value in (1, "yes", None):
        refused(lambda value=value: gfn.RemoveNode(attached=value), TypeError, "attached")
    refused(
        lambda: gfn.Trainer(gfn.GraphEnv([gfn.RemoveNode()], 3, start=3), flat, NET).fit(1),
        ValueError,
        "`SetNodeAttribute`, or distinguish nodes by their labels, `labelled=True`",
    )


@pytest.mark.parametrize("labelled", [False, True])
def test_starts_that_meet_are_refused(labelled):
    starts = gfn.Graphs.from_graph6(["B?", "BG"])
    env = gfn.GraphEnv([gfn.AddEdge()], 3, start=starts, labelled=labelled, scaffold="distinct")
    refused(
        lambda: gfn.Trainer(env, flat, NET, gfn.DetailedBalance()).fit(1),
        ValueError,
        "no two instances lead to the same graph",
    )


class Acyclic(gfn.GraphRules):
    """Rules that forbid bonds that close a ring."""

    def restrict(self, graphs, moves):
        return np.array(moves.types)[moves.kind] != "add_edge"


SMALL = ("C", "O", "CC")


class Larger(gfn.GraphRules):
    """Rules that don't allow the smallest molecules as finished objects."""

    def can_exit(self, graphs):
        return ~np.isin(graphs.smiles, SMALL)


def states_of(env):
    return exact(env, policy=gfn.GraphNet(layers=1, embedding=8))


def test_molecules_under_rules_are_those_of_the_setting_that_says_so():
    sizes = dict(max_atoms=4, elements=["C", "O"], charges=False)
    own, theirs = states_of(gfn.Molecules(**sizes, rules=Acyclic())), states_of(
        gfn.Molecules(**sizes, max_rings=0)
    )
    free = states_of(gfn.Molecules(**sizes))
    assert sorted(own.states.smiles) == sorted(theirs.states.smiles) and own.n_states < free.n_states
    assert own.log_z == pytest.approx(theirs.log_z)
    larger = states_of(gfn.Molecules(**sizes, rules=Larger()))
    ends = np.isfinite(larger.log_rewards)
    assert (
        ends.tolist() == [smiles not in ("", *SMALL) for smiles in larger.states.smiles]
        and larger.n_states == free.n_states
    )
    # Rewards must be divided among Kekule forms with rules as without rules, so log Z must be equal.
    assert states_of(gfn.Molecules(6, elements=["C"], rules=gfn.GraphRules())).log_z == pytest.approx(
        states_of(gfn.Molecules(6, elements=["C"])).log_z
    )


def test_molecules_under_rules_are_looked_at_and_learned():
    env = gfn.Molecules(3, elements=["C", "O"], charges=False, rules=Larger())
    assert env.check().states == states_of(env).n_states
    trainer = gfn.Trainer(
        env,
        flat,
        gfn.GraphNet(embedding=32),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 300)),
    )
    before = trainer.exact().tv
    assert trainer.fit(300).exact().tv < 0.1 < before
    assert set(trainer.sample(100).smiles).isdisjoint(SMALL)
    assert env.accepts(["CO", "CCCC"]).tolist() == [True, False]


def test_fragments_under_rules(tmp_path):
    class OneRing(gfn.GraphRules):
        def restrict(self, graphs, moves):
            # Moves are allowed only from graphs without a ring. The second condition is always False, because
            # no column is negative. It only tests that rules can read `moves.column`.
            rings = np.array([smiles.count("c1") for smiles in graphs.smiles])
            return (rings[moves.graph] == 0) | (moves.column < 0)

    free, own = states_of(gfn.Fragments(2)), states_of(gfn.Fragments(2, rules=OneRing()))
    assert 0 < own.n_states < free.n_states
    rules = gfn.GraphRules()
    assert states_of(gfn.Fragments(2, rules=rules)).n_states == free.n_states
    assert gfn.Fragments(2, rules=rules) == gfn.Fragments(2, rules=rules) != gfn.Fragments(2)


@pytest.mark.parametrize(
    "make", [lambda rules: gfn.Molecules(4, rules=rules), lambda rules: gfn.Fragments(2, rules=rules)]
)
@pytest.mark.parametrize(
    "method, answer, kind, message",
    [
        ("restrict", lambda n: [True] * n, TypeError, "list"),
        ("restrict", lambda n: np.ones(n + 1, dtype=bool), ValueError, "gave"),
        ("restrict", lambda n: np.ones(n), TypeError, "float64"),
        ("can_exit", lambda n: None, TypeError, "NoneType"),
        ("can_exit", lambda n: 1 / 0, ZeroDivisionError, "division"),
        ("is_reachable", lambda n: np.ones((n, 1), dtype=bool), TypeError, "shape"),
    ],
)
def test_mistakes_in_rules_of_molecules_are_raised(make, method, answer, kind, message):
    asked = lambda self, graphs, moves=None: answer(len(graphs if moves is None else moves))  # noqa: E731
    rules = type("Broken", (gfn.GraphRules,), {method: asked})()
    with pytest.raises(kind, match=message):
        gfn.Trainer(make(rules), flat, gfn.GraphNet(layers=1, embedding=8), batch=4).fit(1)


@pytest.mark.parametrize(
    "make", [lambda rules: gfn.Molecules(4, rules=rules), lambda rules: gfn.Fragments(2, rules=rules)]
)
@pytest.mark.parametrize("rules", [3, "rules", gfn.GraphRules, gfn.EnvRules(), object()])
def test_what_is_no_rules_of_molecules_is_refused(make, rules):
    refused(lambda: make(rules), TypeError, "rules is")


def maximal(graph):
    return {frozenset(clique) for clique in nx.find_cliques(graph)}


def dominating(graph):
    sets = [frozenset(each) for k in range(len(graph) + 1) for each in itertools.combinations(graph, k)]
    dominating = [each for each in sets if nx.is_dominating_set(graph, each)]
    return {each for each in dominating if not any(other < each for other in dominating)}


def cut_edges(graph, side):
    return sum((a in side) != (b in side) for a, b in graph.edges)


GRAPHS = [nx.cycle_graph(5), nx.gnp_random_graph(6, 0.5, seed=3), nx.star_graph(4)]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    "kind, solutions, size",
    [
        (gfn.IndependentSet, lambda graph: maximal(nx.complement(graph)), lambda graph, nodes: len(nodes)),
        (gfn.Clique, maximal, lambda graph, nodes: len(nodes)),
        (gfn.DominatingSet, dominating, lambda graph, nodes: -len(nodes)),
        (
            gfn.Cut,
            lambda graph: {
                frozenset(s) for k in range(len(graph) + 1) for s in itertools.combinations(graph, k)
            },
            cut_edges,
        ),
    ],
)
def test_problems_have_the_solutions_that_there_are(graph, kind, solutions, size):
    env = kind(graphs_of(graph))
    result = exact(env, gfn.SizeReward(0.7))
    ends = np.isfinite(result.log_rewards)
    marks = result.states[ends].node_attributes[:, 0].reshape(-1, len(graph))
    chosen = marks != 2 if kind is gfn.DominatingSet else marks == 1
    found = [frozenset(np.flatnonzero(row).tolist()) for row in chosen]
    assert len(found) == len(set(found)) and set(found) == solutions(graph)
    assert result.log_rewards[ends] == pytest.approx([0.7 * size(graph, nodes) for nodes in found])


def test_one_policy_learns_several_graphs():
    env = gfn.IndependentSet(graphs_of(*GRAPHS[:2]))
    net = gfn.GraphNet(layers=3, embedding=32, identity=False)
    trainer = gfn.Trainer(
        env, gfn.SizeReward(2.0), net, gfn.DetailedBalance(), batch=32, adam=gfn.Adam(lr=3e-3)
    ).fit(150)
    graphs = trainer.sample(500)
    sizes = np.array(
        [(row[:, 0] == 1).sum() for row in np.split(graphs.node_attributes, graphs.node_ptr[1:-1])]
    )
    assert set(graphs.n_nodes.tolist()) == {5, 6} and (sizes[graphs.n_nodes == 5] == 2).all()
    refused(trainer.exact, ValueError, "`instance=k`")
    assert set(trainer.sample(50, instance=1).n_nodes.tolist()) == {env.graphs.n_nodes[1]}
    picked = np.arange(30) % 2
    assert trainer.sample(30, instance=picked).n_nodes.tolist() == env.graphs.n_nodes[picked].tolist()
    for wrong, kind in ((2, (ValueError, IndexError)), ([0], ValueError), (-1, ValueError)):
        refused(lambda: trainer.sample(3, instance=wrong), kind, "instance")


def test_a_policy_that_knows_the_numbers_of_nodes_is_warned_of():
    def warned(graphs, identity):
        net = gfn.GraphNet(embedding=8, identity=identity)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            env = gfn.IndependentSet(graphs)
            trainer = gfn.Trainer(env, gfn.SizeReward(), net, gfn.DetailedBalance(), batch=4)
        assert trainer.warnings == [str(each.message) for each in caught]
        return any("identity of GraphNet is True for 2" in message for message in trainer.warnings)

    several = graphs_of(*GRAPHS[:2])
    assert warned(several, True) and not warned(several, False) and not warned(several[:1], True)
    refused(lambda: gfn.Cut([nx.path_graph(3)]), TypeError, "Cut.graphs is a list: .*`Graphs.from_networkx")


@pytest.mark.parametrize("kind", [gfn.IndependentSet, gfn.Clique, gfn.DominatingSet, gfn.Cut])
@pytest.mark.parametrize(
    "graphs, error, message",
    [
        (gfn.Graphs.from_graph6([]), ValueError, "at least one input graph"),
        (gfn.Graphs.from_graph6(["Dhc", "Dhc"]), ValueError, "occurs twice"),
        (gfn.Graphs.from_arrays([2], [[0, 1]], [0, 1], directed=True), ValueError, "undirected"),
        (coloured([0, 1]), ValueError, "without classes"),
        (["Dhc"], TypeError, "graphs"),
        (nx.cycle_graph(5), TypeError, "graphs"),
        (None, TypeError, "graphs"),
        (3, TypeError, "graphs"),
    ],
)
def test_graphs_that_no_problem_reads_are_refused(kind, graphs, error, message):
    refused(lambda: kind(graphs), error, message)


@pytest.mark.parametrize(
    "beta, kind",
    [
        (0.0, ValueError),
        (-1.0, ValueError),
        (math.nan, ValueError),
        (math.inf, ValueError),
        ("1", TypeError),
        (None, TypeError),
    ],
)
def test_sizes_are_rewarded_by_positive_numbers(beta, kind):
    refused(lambda: gfn.Trainer(gfn.Cut(graphs_of(GRAPHS[0])), gfn.SizeReward(beta), NET), kind, "beta")


def test_rewards_and_environments_of_others_are_told_apart():
    for env in (gfn.GraphBuilding(3), gfn.Molecules(3)):
        refused(lambda env=env: gfn.Trainer(env, gfn.SizeReward(), NET), TypeError, "SizeReward")
    refused(
        lambda: gfn.Trainer(gfn.HyperGrid(2, 3), gfn.SizeReward(), gfn.Mlp((8,))), TypeError, "SizeReward"
    )
    refused(
        lambda: gfn.Trainer(gfn.Cut(graphs_of(GRAPHS[0])), gfn.RingReward(), gfn.Mlp((8,))), TypeError, "Mlp"
    )


def test_graphs_of_several_starts_know_theirs_wherever_they_go():
    """Starts at two initial graphs, a path of three nodes and a ring of three nodes. Equal graphs that grow
    from different initial graphs must be different states."""
    env = gfn.GraphEnv([gfn.AddNode(attached=True)], 5, start=graphs_of(nx.path_graph(3), nx.cycle_graph(3)))
    starts = env.initial(4, [0, 1, 1, 0])
    sent = pickle.loads(pickle.dumps(starts))
    assert sent == starts and env.is_initial(sent).all() and env.keys(sent) == env.keys(starts)
    drawn = gfn.Sampler(env, gfn.GraphNet(embedding=8).build(env)).sample(20, seed=0)
    again = pickle.loads(pickle.dumps(drawn))
    assert again.terminal == drawn.terminal and len(set(drawn.terminal.n_edges - drawn.terminal.n_nodes)) == 2
    named = gfn.Sampler(env, gfn.GraphNet(embedding=8).build(env)).sample(3, instances=[1, 0, 1])
    assert (named.terminal.n_edges - named.terminal.n_nodes).tolist() == [0, -1, 0]
