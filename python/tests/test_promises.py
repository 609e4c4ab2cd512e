"""Tests of the checks that policies, rewards and rules keep their contracts, and of a trainer's warnings."""

import warnings

import networkx
import numpy as np
import pytest
import torch

import gfn_rs as gfn

WAVES = lambda points: 3 * np.sin(points * 0.8).sum(axis=1)  # noqa: E731


class Mates(torch.nn.Module):
    """A module whose output depends on the other states of the batch: it subtracts a share of the batch's
    mean from its hidden layer, or multiplies the layer by the size of the batch."""

    def __init__(self, mean, size, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.mean, self.size = mean, size
        self.a, self.b = torch.nn.Linear(12, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        hidden = torch.relu(self.a(x))
        return torch.relu(self.b((hidden - self.mean * hidden.mean(0)) * (1 + self.size * len(x))))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mean, size", [(0.1, 0.0), (1.0, 0.0), (0.0, 1e-3)])
def test_a_slight_dependence_on_batch_mates_is_refused(mean, size, seed):
    with pytest.raises(ValueError, match="probabilities that a policy gives a state"):
        gfn.Trainer(
            gfn.HyperGrid(2, 6), WAVES, gfn.VectorModule(Mates(mean, size, seed), 16), batch=32, seed=seed
        )


def test_a_dependence_that_grows_is_refused_after_ten_steps_and_by_exact_figures():
    module = Mates(0.0, 0.0)
    trainer = gfn.Trainer(gfn.HyperGrid(2, 6), WAVES, gfn.VectorModule(module, 16), batch=32).fit(5)
    trainer.exact()
    module.mean = 0.1
    with pytest.raises(ValueError, match="probabilities that a policy gives a state"):
        trainer.exact()
    with pytest.raises(ValueError, match="probabilities that a policy gives a state"):
        trainer.fit(20)
    assert trainer.steps_done == 10


@pytest.mark.parametrize("seed", range(4))
def test_a_reward_that_sees_labels_is_refused_at_every_seed(seed):
    def edges_of_the_first(graphs):
        return np.array(
            [
                float((graphs[[k]].edges[:, 0] == 0).sum()) if graphs.n_edges[k] else 0.0
                for k in range(len(graphs))
            ]
        )

    env = gfn.GraphBuilding(max_nodes=3, attached=True)
    trainer = gfn.Trainer(env, edges_of_the_first, gfn.GraphNet(embedding=16), batch=16, seed=seed)
    with pytest.raises(ValueError, match="a reward doesn't depend on labels"):
        trainer.fit(101)


class TwoEdges(gfn.GraphRules):
    """Rules that forbid all moves once the graph has the edge 0-1, and the exit unless it has two edges."""

    def restrict(self, graphs, moves):
        stuck = np.array(
            [
                any(tuple(sorted(edge)) == (0, 1) for edge in graphs[k].edges.tolist())
                for k in range(len(graphs))
            ],
            bool,
        )
        return ~stuck[moves.graph]

    def can_exit(self, graphs):
        return np.asarray(graphs.n_edges) == 2


def test_dead_ends_are_told_of_in_plain_words():
    env = gfn.GraphEnv([gfn.AddEdge()], 3, start=3, labelled=True, directed=False, rules=TwoEdges())
    with pytest.raises(ValueError, match="without any move and without the exit"):
        env.check()
    with pytest.raises(ValueError, match="without any move and without the exit"):
        gfn.Trainer(env, lambda graphs: np.zeros(len(graphs)), gfn.GraphNet(embedding=8), batch=8).exact()


def test_an_environment_with_nothing_to_build_is_refused():
    env = gfn.GraphEnv([gfn.AddEdge()], 1, start=1, directed=False)
    with pytest.raises(ValueError, match="legal in the initial state"):
        gfn.Trainer(env, lambda graphs: np.zeros(len(graphs)), gfn.GraphNet(embedding=8), batch=8)


def test_rewards_in_place_of_their_logarithms_are_warned_of():
    trainer = gfn.Trainer(gfn.HyperGrid(2, 4), lambda x: 1e6 * x[:, 0].astype(float), gfn.Mlp((16,)), batch=8)
    with pytest.warns(gfn.TrainingWarning, match="Does the reward return R itself"):
        trainer.fit(1)
    assert any("Does the reward return R itself" in text for text in trainer.warnings)


def test_a_run_that_ends_far_from_its_target_is_warned_of_once():
    trainer = gfn.Trainer(
        gfn.HyperGrid(2, 32),
        lambda x: 10.0 * (x.sum(axis=1) - 62.0),
        gfn.Mlp((16,)),
        batch=32,
        adam=gfn.Adam(lr=1e-6),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", gfn.TrainingWarning)
        trainer.fit(50)
    with pytest.warns(gfn.TrainingWarning, match="don't trust averages"):
        trainer.fit(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error", gfn.TrainingWarning)
        trainer.fit(1)
    assert sum("don't trust averages" in text for text in trainer.warnings) == 1


def test_trainer_warnings_holds_all_that_was_warned_of():
    class Detached(Mates):
        def forward(self, x):
            return super().forward(x).detach()

    trainer = gfn.Trainer(gfn.HyperGrid(2, 6), WAVES, gfn.VectorModule(Detached(0.0, 0.0), 16), batch=8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.fit(1)
        for _ in range(4):
            trainer.batch()
        for parameter in trainer.parameters():
            parameter.requires_grad_(False)
        trainer.fit(1)
    emitted = [str(one.message) for one in caught if issubclass(one.category, gfn.TrainingWarning)]
    for words in ("only the heads are trained", "no step is counted", "no parameter is trained"):
        assert any(words in text for text in emitted), words
    assert set(emitted) == set(trainer.warnings)
    # A second trainer must have its own list of warnings.
    assert (
        gfn.Trainer(gfn.HyperGrid(2, 6), WAVES, gfn.VectorModule(Mates(0.0, 0.0), 16), batch=8)
        .fit(1)
        .warnings
        == []
    )


def test_weights_of_edges_that_are_not_read_are_warned_of():
    weighted = networkx.Graph()
    weighted.add_weighted_edges_from([(0, 1, 1.0), (1, 2, 2.5)])
    with pytest.warns(UserWarning, match=r"from 1 to 2 has the weight 2\.5, which is ignored") as caught:
        gfn.Cut(gfn.Graphs.from_networkx([weighted]))
    assert len(caught) == 1 and caught[0].filename == __file__
    weighted[1][2]["weight"] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gfn.Graphs.from_networkx([weighted, networkx.path_graph(3)])
