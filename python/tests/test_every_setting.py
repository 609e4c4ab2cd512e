"""Tests that every setting of every class of settings has an effect or raises an error, so that none is
ignored.

Each case is a class, a function that runs an object of this class, the settings of the object, and another
value for every setting. The outcome of a run is the parameters, losses and objects after two or more steps,
or the message of an error.
"""

import copy
import dataclasses
import inspect

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from gfn_rs._settings import Settings


def zero(states):
    return np.zeros(len(states))


class Differing:
    """A reward that differs between states, with a method for log R of unfinished states."""

    def __call__(self, states):
        return 0.3 * np.asarray(states, dtype=float).reshape(len(states), -1).sum(axis=1)

    partial_log_reward = __call__


def told(states):
    if isinstance(states, gfn.Graphs):
        names = (
            "n_nodes",
            "edges",
            "node_classes",
            "edge_classes",
            "node_attributes",
            "edge_attributes",
            "directed",
        )
        return [np.asarray(getattr(states, name)).tolist() for name in names]
    return np.asarray(states).tolist()


def run(env, reward, policy, objective=None, steps=2, **settings):
    """Trains for a few steps, and returns the outcome: losses, parameters and objects."""
    trainer = gfn.Trainer(
        env, reward, policy, objective, **{"batch": 8, "adam": gfn.Adam(lr=0.01), **settings}
    )
    trainer.fit(steps)
    width = trainer._n_conditions
    conditions = (
        np.full((4, width), 0.5)
        if width and not isinstance(settings["conditions"], gfn.Conditioning)
        else None
    )
    if width and conditions is None:
        conditions = settings["conditions"].draw(4, seed=0)
    parameters = [
        (name, tuple(tensor.shape), tensor.double().sum().item())
        for name, tensor in trainer.named_parameters()
    ]
    return (
        parameters,
        trainer.history["loss"].tolist(),
        told(trainer.sample(4, conditions)),
        trainer.reward_calls,
    )


GRID, LABELLED, ALIKE = (
    gfn.HyperGrid(2, 4),
    gfn.GraphBuilding(4, labelled=True, edge_classes=2),
    gfn.GraphBuilding(4),
)
SMALL = gfn.Mlp((8,))
NETS = {
    "graphs": gfn.GraphNet(layers=1, embedding=8),
    "box": gfn.BoxNet((8,)),
    "line": gfn.LineNet((8,)),
    "diffusion": gfn.DiffusionNet(),
}


def for_env(net=None):
    return lambda env: run(env, zero, NETS.get(net, SMALL))


def of_reward(env, net=None, **settings):
    def made(reward):
        policy = NETS.get(net, SMALL)
        trainer = gfn.Trainer(env, reward, policy, batch=8, **settings)
        return told(trainer.sample_with_rewards(40)[1])

    return made


def of_prior(prior):
    return gfn.StructureReward(DATA, prior=prior)(np.eye(3, k=1, dtype=bool)[None]).tolist()


def of_policy(env, reward=zero, **settings):
    return lambda policy: run(env, reward, policy, **settings)


def anew(env, **settings):
    """Returns a function that trains a policy with new copies of its modules. Each run needs new copies,
    because a run trains the modules."""
    return lambda policy: of_policy(env, **settings)(
        dataclasses.replace(policy, **copy.deepcopy(policy._own_modules()))
    )


UNIFORM_CONDITIONS = gfn.Conditions(lambda n, rng: rng.uniform(size=(n, 1)), 1)


def conditioned(net):
    return dict(conditions=UNIFORM_CONDITIONS, reward=lambda states, conditions: np.zeros(len(states)))


def of_objective(policy=SMALL, **settings):
    return lambda objective: run(
        GRID, Differing(), policy, objective, **{"exploration": gfn.Exploration(epsilon=0.0), **settings}
    )


def of_source(*more, steps=4, env=GRID, reward=None, policy=SMALL, **settings):
    return lambda source: run(
        env, reward or Differing(), policy, steps=steps, sources=[*more, source], **settings
    )


def of_temperature(schedule):
    return run(GRID, Differing(), SMALL, steps=4, exploration=gfn.Exploration(temperature=schedule))


def of_updates(name, **settings):
    return lambda part: run(
        GRID, Differing(), SMALL, steps=4, adam=gfn.Adam(**{"lr": 0.01, name: part}), **settings
    )


class Torso(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        torch.manual_seed(0)
        self.node = torch.nn.Linear(1, width)

    def forward(self, batch):
        nodes = self.node(torch.bincount(batch.edge_index[0], minlength=len(batch.batch)).float()[:, None])
        return nodes, torch.zeros(batch.n_graphs, nodes.shape[1]).index_add(0, batch.batch, nodes)


class Rows(torch.nn.Module):
    """A module that applies a linear layer to the first `inputs` entries of each state."""

    def __init__(self, inputs, width=8, shape=lambda x: x):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.shape = torch.nn.Linear(inputs, width), shape

    def forward(self, rows, *_):
        return self.shape(self.layer(rows.float()[..., : self.layer.in_features]))


class Thin(gfn.GraphRules):
    def restrict(self, graphs, moves):
        return graphs.n_edges[moves.graph] < 1


class Single(gfn.GraphRules):
    def restrict(self, graphs, moves):
        return graphs.n_nodes[moves.graph] < 1


class Low(gfn.VectorRules):
    def restrict(self, states, moves):
        return states[moves.state].sum(axis=1) < 1


def shifted(points, rng):
    return np.clip(points + 1, 0, 3)


def loss_of(scores):
    log_z = 0.0 if scores.log_z is None else scores.log_z.mean()
    return (log_z + scores.log_pf.sum() / 8 - scores.log_reward.mean()).square()


class Spread(gfn.EnvRules):
    """The rules of a grid whose moves are steps by one along an axis, with a given initial state."""

    def __init__(self, start=0):
        self.start = start

    def initial(self):
        return np.full(2, self.start)

    def masks(self, states):
        return np.column_stack([states < 4, np.ones(len(states), dtype=bool)])

    def step(self, states, moves):
        return states + np.eye(2, dtype=int)[moves]

    def backward_masks(self, states):
        return states > self.start

    def backward_step(self, states, moves):
        return states - np.eye(2, dtype=int)[moves]


class TensorSpread(gfn.TensorRules):
    """The rules of `Spread` as functions of tensors."""

    def __init__(self, start=0, width=2):
        self.start, self.one = start, torch.eye(width, dtype=torch.int64)

    def initial(self):
        return torch.full((len(self.one),), self.start)

    def masks(self, states):
        return states < 4

    def step(self, states, moves):
        return states + self.one[moves]

    def backward_masks(self, states):
        return states > self.start

    def backward_step(self, states, moves):
        return states - self.one[moves]


def of_problem(env):
    return run(env, gfn.SizeReward(), NETS["graphs"])


CYCLES = gfn.Graphs.from_graph6(["Dhc", "EhEG"])
UNIFORM = np.tile([[0, 0, 1], [0, 1, 2], [1, 0, 1], [1, 1, 2]], 1)
POINTS = np.array([[1, 2], [3, 0], [2, 2]])
FOUR = gfn.Graphs.from_arrays([2], [[0, 1]], [0, 1], directed=False)
ALL_MOVES = [gfn.AddNode(), gfn.AddEdge(), gfn.SetNodeAttribute(), gfn.SetEdgeAttribute()]
DATA = np.random.default_rng(0).normal(size=(30, 3)) @ np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
VARIED = gfn.Conditioning(
    2,
    temperature=gfn.UniformTemperature(0.5, 2.0),
    preferences=gfn.Dirichlet(),
    focus=gfn.Focus(gfn.Dirichlet()),
)
TWO = [lambda states: 0.3 * states[:, 0], lambda states: 0.3 * states[:, 1]]


def trained(**settings):
    return gfn.Trainer(GRID, Differing(), SMALL, batch=8, seed=9, **settings).fit(2)


def drawn(conditioning):
    return conditioning.draw(3, seed=0).tolist()


def beside_replay(**settings):
    return lambda replay: run(GRID, Differing(), SMALL, steps=6, sources=[replay], **settings)


REPLAY = dict(capacity=12, after=0)
RELATIVE = dict(policy=gfn.Mlp((8,)), exploration=gfn.Exploration(epsilon=0.0))
DIFFUSION = gfn.Diffusion(1, steps=4)
GAUSSIAN = gfn.GaussianTarget([0.5], 0.7)

# The cases of the test. Each case is a class, a function that runs an object of the class, the settings of
# the first run, and for each setting another value that must change the outcome.
CASES = [
    (gfn.Ring, for_env("graphs"), dict(n_nodes=3), dict(n_nodes=4, directed=False)),
    (gfn.Triangle, for_env("graphs"), dict(colors=2), dict(colors=3, directed=True)),
    (gfn.ColoredGraphs, for_env("graphs"), dict(max_nodes=3), dict(max_nodes=4)),
    (
        gfn.GraphBuilding,
        for_env("graphs"),
        dict(max_nodes=4),
        dict(
            max_nodes=5,
            directed=True,
            max_edges=1,
            min_nodes=2,
            node_classes=2,
            edge_classes=2,
            node_attributes=(2,),
            edge_attributes=(2,),
        )
        | dict(attached=True, labelled=True, corrects_symmetry=False),
    ),
    (
        gfn.Molecules,
        for_env("graphs"),
        dict(max_atoms=5),
        dict(
            max_atoms=4,
            elements=["C", "N"],
            charges=False,
            extra_valences=1,
            max_bond_order=1,
            max_rings=0,
            max_ring_size=3,
            corrects_symmetry=False,
            scaffold="C*",
            attachments=[0],
            told_apart=True,
            stereo=True,
            rules=Thin(),
        ),
    ),
    (
        gfn.Fragments,
        for_env("graphs"),
        dict(max_fragments=2),
        dict(max_fragments=3, library="FILE", rules=Single()),
    ),
    (gfn.HyperGrid, for_env(), dict(ndim=2, height=4), dict(ndim=3, height=5)),
    (gfn.BitSequence, for_env(), dict(word_size=2, seq_size=4), dict(word_size=1, seq_size=6)),
    (gfn.PrependAppendBitSequence, for_env(), dict(word_size=2, seq_size=4), dict(word_size=1, seq_size=6)),
    (
        gfn.NonAutoregressiveBitSequence,
        for_env(),
        dict(word_size=2, seq_size=4),
        dict(word_size=1, seq_size=6),
    ),
    (gfn.TokenSequence, for_env(), dict(n_tokens=3, length=3), dict(n_tokens=4, length=4, min_length=1)),
    (gfn.DiscreteEbm, for_env(), dict(n=4), dict(n=5)),
    (
        gfn.SetAddition,
        for_env(),
        dict(n_items=5, max_items=3),
        dict(n_items=6, max_items=2, fixed_length=True),
    ),
    (gfn.PerfectBinaryTree, for_env(), dict(depth=3), dict(depth=4)),
    (gfn.PhyloTree, for_env(), dict(n=4), dict(n=5)),
    (
        gfn.BayesianStructure,
        for_env(),
        dict(nodes=3),
        dict(nodes=4, max_parents=1, forbidden=[(0, 1)], required=[(0, 1)]),
    ),
    (gfn.Box, for_env("box"), dict(ndim=2), dict(ndim=1, delta=0.4, polar=True)),
    (gfn.Line, for_env("line"), dict(n_steps=3), dict(n_steps=4)),
    (
        gfn.Diffusion,
        for_env("diffusion"),
        dict(dim=1, steps=4),
        dict(dim=2, steps=5, sigma=2.0, process="ornstein_uhlenbeck", rate=2.0, beta_min=0.02, beta_max=0.5),
    ),
    (gfn.Diffusion, for_env("diffusion"), dict(dim=1, steps=4, process="ornstein_uhlenbeck"), dict(rate=2.0)),
    (
        gfn.Diffusion,
        for_env("diffusion"),
        dict(dim=1, steps=4, process="variance_preserving"),
        dict(beta_min=0.02, beta_max=0.5),
    ),
    (
        gfn.GraphEnv,
        for_env("graphs"),
        dict(actions=ALL_MOVES, max_nodes=4, node_attributes=[1], edge_attributes=[1], labelled=True),
        dict(
            actions=ALL_MOVES[:3],
            max_nodes=5,
            directed=True,
            node_classes=2,
            edge_classes=2,
            node_attributes=[2],
            edge_attributes=[2],
            start=1,
        )
        | dict(labelled=False, rules=Thin()),
    ),
    (
        gfn.GraphEnv,
        for_env("graphs"),
        dict(actions=[gfn.AddNode(), gfn.AddEdge()], max_nodes=4),
        dict(corrects_symmetry=False, start=FOUR),
    ),
    (
        gfn.GraphEnv,
        for_env("graphs"),
        dict(actions=[gfn.AddEdge()], max_nodes=4, start=4),
        dict(scaffold="distinct"),
    ),
    (gfn.VectorEnv, for_env(), dict(width=2, values=3, changes=UNIFORM), dict(start=[1, 0])),
    (
        gfn.VectorEnv,
        for_env(),
        dict(width=2, values=3, changes=UNIFORM),
        dict(width=3, values=4, changes=UNIFORM[:3], rules=Low()),
    ),
    (gfn.AddNode, lambda move: for_env("graphs")(gfn.GraphEnv([move], 4)), dict(), dict(attached=True)),
    (
        gfn.AddEdge,
        lambda move: for_env("graphs")(gfn.GraphEnv([move], 4, start=4, labelled=True)),
        dict(),
        dict(max_edges=1),
    ),
    (
        gfn.RemoveNode,
        lambda move: for_env("graphs")(gfn.GraphEnv([move, gfn.RemoveEdge()], 4, start=FOUR, labelled=True)),
        dict(),
        dict(attached=True),
    ),
    *(
        (kind, of_problem, dict(graphs=CYCLES[:1]), dict(graphs=CYCLES[1:], for_size=True))
        for kind in (gfn.IndependentSet, gfn.Clique, gfn.DominatingSet, gfn.Cut)
    ),
    (
        gfn.Env,
        for_env(),
        dict(rules=Spread(), width=2, values=8, n_moves=2),
        dict(rules=Spread(2), width=3, values=6, n_moves=3, n_backward_moves=3, has_exit=False),
    ),
    (
        gfn.TensorEnv,
        for_env(),
        dict(rules=TensorSpread(), width=2, values=8, n_moves=2),
        dict(rules=TensorSpread(2), width=3, values=6, n_moves=3, n_backward_moves=3)
        | dict(has_exit=False, n_steps=3),
    ),
    # The following cases are policies.
    (
        gfn.GraphNet,
        of_policy(LABELLED),
        dict(layers=1, embedding=8, conv="transformer", heads=2),
        dict(
            layers=2,
            embedding=16,
            conv="gin",
            heads=4,
            identity=False,
            pair_walks=2,
            global_=False,
            backward="shared_torso",
        )
        | dict(initial_log_z=1.0, initial_exit_bias=1.0, logit_scale=(4,)),
    ),
    (gfn.GraphNet, of_policy(LABELLED), dict(layers=1, embedding=8), dict(heads=8)),
    (
        gfn.GraphNet,
        of_policy(LABELLED),
        dict(layers=1, embedding=8, conv="gat"),
        dict(heads=8, degrees=True, norm="graph", jumping="concat", unit=4.0),
    ),
    (
        gfn.GraphNet,
        of_policy(LABELLED),
        dict(layers=1, embedding=8, conv="gps"),
        dict(heads=8, degrees=True, closed_walks=2, norm="none", jumping="max"),
    ),
    (gfn.GraphNet, of_policy(ALIKE), dict(layers=1, embedding=8), dict(backward="separate")),
    (gfn.GraphNet, of_policy(ALIKE), dict(layers=1, embedding=8), dict(symmetry="ignored")),
    (
        gfn.GraphNet,
        of_policy(ALIKE),
        dict(layers=1, embedding=8, symmetry="ignored"),
        dict(symmetry="refined"),
    ),
    (
        gfn.GraphNet,
        of_policy(LABELLED, **conditioned("graphs")),
        dict(layers=1, embedding=8),
        dict(logit_scale=(4,), log_z=torch.nn.Linear(1, 1)),
    ),
    (
        gfn.EdgeMlp,
        of_policy(gfn.Ring(3)),
        dict(hidden=(8,)),
        dict(
            hidden=(8, 8),
            activation="tanh",
            layer_norm=True,
            backward="separate",
            initial_log_z=1.0,
            logit_scale=(4,),
        ),
    ),
    (
        gfn.EdgeMlp,
        of_policy(gfn.Ring(3), **conditioned("graphs")),
        dict(hidden=(8,)),
        dict(logit_scale=(4,), log_z=torch.nn.Linear(1, 1)),
    ),
    (
        gfn.GraphModule,
        anew(ALIKE),
        dict(module=Torso(), node_width=8, graph_width=8),
        dict(
            module=torch.nn.Linear(8, 8),
            node_width=4,
            graph_width=4,
            backward="shared_torso",
            pair_walks=2,
            initial_log_z=1.0,
            initial_exit_bias=1.0,
            flow=torch.nn.Linear(8, 1),
            log_z=torch.nn.Linear(1, 1),
        )
        | dict(logit_scale=(4,), symmetry="ignored"),
    ),
    (
        gfn.Mlp,
        of_policy(GRID),
        dict(hidden=(8,)),
        dict(
            hidden=(8, 8),
            activation="tanh",
            layer_norm=True,
            backward="separate",
            initial_log_z=1.0,
            heads=2,
            weight_noise=0.1,
            logit_scale=(4,),
        ),
    ),
    (
        gfn.Mlp,
        of_policy(GRID, **conditioned("grid")),
        dict(hidden=(8,)),
        dict(logit_scale=(4,), log_z=torch.nn.Linear(1, 1)),
    ),
    (
        gfn.VectorModule,
        anew(GRID),
        dict(module=Rows(2), width=8),
        dict(
            module=Rows(2, 9),
            width=9,
            inputs="entries",
            backward="uniform",
            initial_log_z=1.0,
            heads=2,
            logit_scale=(4,),
            flow=torch.nn.Linear(8, 1),
        ),
    ),
    (
        gfn.VectorModule,
        anew(GRID, **conditioned("grid")),
        dict(module=Rows(2), width=8),
        dict(logit_scale=(4,), log_z=torch.nn.Linear(1, 1)),
    ),
    (
        gfn.SequenceModule,
        anew(gfn.TokenSequence(3, 3)),
        dict(module=Rows(3), width=8),
        dict(module=Rows(3, 9), width=9, initial_log_z=1.0, logit_scale=(4,))
        | dict(flow=torch.nn.Linear(8, 1), log_z=torch.nn.Linear(1, 1)),
    ),
    (
        gfn.DagModule,
        anew(gfn.BayesianStructure(3)),
        dict(module=Rows(3, shape=lambda x: (x, x.sum(1))), node_width=8, graph_width=8),
        dict(
            module=Rows(3),
            node_width=9,
            graph_width=9,
            backward="shared_torso",
            initial_log_z=1.0,
            initial_exit_bias=1.0,
            logit_scale=(4,),
            flow=torch.nn.Linear(8, 1),
            log_z=torch.nn.Linear(1, 1),
        ),
    ),
    (
        gfn.SequenceNet,
        of_policy(gfn.TokenSequence(3, 3)),
        dict(width=8, layers=1, heads=2),
        dict(kind="gru", width=16, layers=2, heads=4, initial_log_z=1.0),
    ),
    (
        gfn.SequenceNet,
        of_policy(gfn.TokenSequence(3, 3), **conditioned("sequences")),
        dict(width=8, layers=1, heads=2),
        dict(logit_scale=(4,), log_z=torch.nn.Linear(1, 1)),
    ),
    (
        gfn.SequenceNet,
        of_policy(gfn.TokenSequence(3, 3)),
        dict(kind="lstm", width=8, layers=1),
        dict(heads=2),
    ),
    (
        gfn.EdgeTransformer,
        of_policy(gfn.BayesianStructure(3)),
        dict(embedding=8, heads=2),
        dict(embedding=16, heads=4, layers=2, head_layers=2, initial_log_z=1.0),
    ),
    (
        gfn.BoxNet,
        of_policy(gfn.Box()),
        dict(hidden=(8,), components=2),
        dict(
            hidden=(8, 8),
            activation="tanh",
            layer_norm=True,
            components=3,
            backward="separate",
            initial_log_z=1.0,
        ),
    ),
    (
        gfn.LineNet,
        of_policy(gfn.Line(3)),
        dict(hidden=(8,)),
        dict(
            hidden=(8, 8),
            activation="tanh",
            layer_norm=True,
            components=3,
            backward="separate",
            initial_log_z=1.0,
        ),
    ),
    (
        gfn.DiffusionNet,
        of_policy(DIFFUSION, GAUSSIAN),
        dict(),
        dict(
            langevin_clip=10.0,
            initial_log_z=1.0,
            network={"hidden": 16},
            log_variance_range=1.0,
            backward_range=0.5,
        ),
    ),
    # The following cases are objectives.
    (
        gfn.TrajectoryBalance,
        of_objective(),
        dict(),
        dict(backward="maximum_entropy", regression="shifted_cosh"),
    ),
    (
        gfn.LogPartitionVariance,
        of_objective(),
        dict(),
        dict(backward="trajectory_likelihood", regression="shifted_cosh"),
    ),
    (gfn.LogPartitionDeviation, of_objective(), dict(), dict(regression="forward_kl")),
    (
        gfn.AlphaDivergence,
        lambda divergence: of_objective()(gfn.TrajectoryBalance(regression=divergence)),
        dict(alpha=0.5),
        dict(alpha=2.0),
    ),
    (
        gfn.RelativeTrajectoryBalance,
        of_objective(),
        dict(prior=gfn.Uniform()),
        dict(prior=trained(), beta=2.0, regression="shifted_cosh"),
    ),
    (
        gfn.RelativeLogPartitionVariance,
        of_objective(),
        dict(prior=gfn.Uniform()),
        dict(prior=trained(), beta=2.0, regression="shifted_cosh"),
    ),
    (
        gfn.TrustPcl,
        of_objective(),
        dict(prior=gfn.Uniform()),
        dict(prior=trained(), alpha=2.0, regression="shifted_cosh"),
    ),
    (
        gfn.DetailedBalance,
        of_objective(),
        dict(),
        dict(forward_looking=True, backward="maximum_entropy", regression="absolute"),
    ),
    (
        gfn.ModifiedDetailedBalance,
        of_objective(steps=4),
        dict(),
        dict(target_network=2, regression="half_squared"),
    ),
    (
        gfn.SubTrajectoryBalance,
        of_objective(),
        dict(),
        dict(
            weighting="equal",
            lambda_=0.5,
            forward_looking=True,
            backward="maximum_entropy",
            regression="shifted_cosh",
        ),
    ),
    (gfn.SubTrajectoryBalance, of_objective(), dict(weighting="tb"), dict(lambda_=0.5)),
    (
        gfn.RandomDistillation,
        lambda novelty: of_objective()(gfn.AugmentedTrajectoryBalance(0.5, novelty=novelty)),
        dict(hidden=(8,), outputs=4),
        dict(hidden=(8, 8), outputs=8, lr=0.1),
    ),
    (
        gfn.AugmentedTrajectoryBalance,
        of_objective(),
        dict(edges=0.5),
        dict(edges=1.0, terminal=1.0, novelty=lambda states: np.ones(len(states)), regression="shifted_cosh"),
    ),
    (
        gfn.AugmentedDetailedBalance,
        of_objective(),
        dict(edges=0.5),
        dict(edges=1.0, terminal=1.0, novelty=lambda states: np.ones(len(states)), regression="shifted_cosh"),
    ),
    (
        gfn.PolicyGradient,
        of_objective(steps=3),
        dict(),
        dict(
            advantage="total",
            gae_lambda=0.2,
            critic="evaluation_balance",
            critic_lambda=0.5,
            regression="shifted_cosh",
        ),
    ),
    (gfn.PolicyGradient, of_objective(steps=3), dict(critic="evaluation_balance"), dict(critic_lambda=0.5)),
    (gfn.FlowMatching, of_objective(), dict(), dict(regression="shifted_cosh")),
    (gfn.PolicyGradient, of_objective(), dict(advantage="total"), dict(gae_lambda=0.2)),
    (
        gfn.ProximalPolicy,
        of_objective(steps=3, adam=gfn.Adam(lr=0.1)),
        dict(clip=0.01),
        dict(
            advantage="total",
            gae_lambda=0.2,
            clip=0.3,
            kl=1.0,
            value_weight=2.0,
            epochs=2,
            n_minibatches=2,
            critic="lambda_returns",
            critic_lambda=0.5,
            regression="shifted_cosh",
        ),
    ),
    (
        gfn.ProximalPolicy,
        of_objective(steps=3, adam=gfn.Adam(lr=0.1)),
        dict(kl=1.0, critic="evaluation_balance"),
        dict(divergence="exact", critic_lambda=0.5),
    ),
    (
        gfn.OwnObjective,
        of_objective(),
        dict(function=loss_of),
        dict(function=lambda scores: 2.0 * loss_of(scores), log_z=False, flow=True),
    ),
    # The following cases are sources and other parts of a trainer.
    (
        gfn.Replay,
        beside_replay(),
        REPLAY,
        dict(
            capacity=4,
            share=0.25,
            after=4,
            distinct=True,
            eviction="best_reward",
            draw="reward_prioritised",
            exponent=3.0,
        )
        | dict(path="policy_backward", rank_by="loss", k=0.5, diverse=1.0, norm="l1"),
    ),
    (gfn.Replay, beside_replay(), dict(draw="reward_prioritised", **REPLAY), dict(exponent=3.0)),
    (
        gfn.Replay,
        beside_replay(),
        dict(draw="rank_prioritised", **REPLAY),
        dict(rank_by="loss", exponent=3.0),
    ),
    (gfn.Replay, beside_replay(), dict(draw="weighted_ranks", **REPLAY), dict(k=5.0, rank_by="loss")),
    (gfn.Replay, beside_replay(), dict(diverse=1.2, **REPLAY), dict(norm="max")),
    (gfn.Replay, beside_replay(), dict(path="stored", **REPLAY), dict(objects_alone=True)),
    (
        gfn.Data,
        of_source(steps=8, adam=gfn.Adam(lr=0.3)),
        dict(objects=POINTS),
        dict(objects=POINTS - (POINTS > 2), share=0.25, path="policy_backward", conditions=np.zeros((3, 1))),
    ),
    (
        gfn.Source,
        of_source(),
        dict(function=lambda n, rng: rng.integers(0, 4, (n, 2))),
        dict(function=lambda n, rng: np.ones((n, 2), int), share=0.25),
    ),
    (
        gfn.FreshSource,
        of_source(),
        dict(function=lambda wanted, rng: np.ones((wanted.max, 2), int)),
        dict(
            function=lambda wanted, rng: gfn.FreshObjects(np.ones((wanted.max, 2), int), np.ones(wanted.max))
        ),
    ),
    (
        gfn.TransitionBatches,
        of_updates("transitions", objective=gfn.DetailedBalance()),
        dict(size=4),
        dict(size=6, updates=3),
    ),
    (gfn.LocalSearch, of_source(), dict(max_back=2), dict(max_back=3, rounds=2, acceptance="greedy")),
    (
        gfn.Teacher,
        of_source(steps=12, batch=32),
        dict(policy=SMALL, lr=0.3),
        dict(
            policy=gfn.Mlp((16,)),
            share=0.25,
            under_sampled=0.0,
            alpha=3.0,
            epsilon=10.0,
            lr=1.0,
            log_z_lr=10.0,
            max_norm=1e-4,
        ),
    ),
    (
        gfn.Search,
        of_source(gfn.Replay(12, after=0)),
        dict(function=shifted, every=1, objects=4),
        dict(function=lambda points, rng: points, every=3, objects=8),
    ),
    (
        gfn.ChainSource,
        of_source(steps=12),
        dict(
            ladders=3,
            rounds=2,
            proposals="back_and_forth",
            max_back=2,
            patience=1,
            starts="uniform",
            candidates=3,
            rounds_between=4,
        ),
        dict(
            share=0.75,
            ladders=5,
            powers=(1.0, 0.0),
            rounds=5,
            proposals="policy",
            max_back=6,
            score_changes=True,
            max_reward_calls=5,
            patience=7,
            starts="policy",
            candidates=9,
            rounds_between=30,
            capacity=2,
            exponent=9.0,
            path="policy_backward",
        ),
    ),
    (
        gfn.Mala,
        of_source(gfn.Replay(64, after=0), env=DIFFUSION, reward=GAUSSIAN, policy=NETS["diffusion"]),
        dict(every=2, objects=4, steps=8, burn_in=4, thin=2),
        dict(every=1, objects=6, steps=10, burn_in=2, thin=1, step_size=0.5, acceptance=0.9),
    ),
    (
        gfn.Hindsight,
        of_source(
            gfn.Replay(12, after=0),
            steps=6,
            conditions=UNIFORM_CONDITIONS,
            reward=lambda x, c: c.numpy()[:, 0] * x[:, 0],
        ),
        dict(function=lambda objects, conditions, rng: conditions * 0.5),
        dict(function=lambda objects, conditions, rng: conditions * 0.1, share=1.0),
    ),
    (
        gfn.FocusInHindsight,
        of_source(gfn.Replay(12, after=0), steps=6, conditions=VARIED, reward=TWO),
        dict(share=0.0),
        dict(share=1.0),
    ),
    (
        gfn.Average,
        lambda average: run(GRID, Differing(), SMALL, steps=6, adam=gfn.Adam(lr=0.01, average=average))
        and averaged(average),
        dict(decay=0.5),
        dict(decay=0.9, sampling=True),
    ),
    (gfn.Thompson, of_source(policy=gfn.Mlp((8,), heads=4)), dict(share=0.25), dict(share=1.0)),
    (
        gfn.Adam,
        lambda adam: run(GRID, Differing(), SMALL, steps=4, adam=adam),
        dict(lr=0.01),
        dict(
            lr=0.1,
            log_z_lr=1.0,
            schedule=0.5,
            weight_decay=0.5,
            max_norm=1e-3,
            average=gfn.Average(sampling=True),
            transitions=gfn.TransitionBatches(4),
        ),
    ),
    (
        gfn.Exploration,
        lambda exploration: run(GRID, Differing(), SMALL, steps=4, exploration=exploration),
        dict(),
        dict(
            epsilon=1.0,
            temperature=3.0,
            exit_bias=2.0,
            noise=1.0,
            reward_exponent=gfn.Linear(0.1, 1, 10),
            max_steps=1,
        ),
    ),
    # The following cases are rewards.
    (gfn.RingReward, of_reward(gfn.Ring(3), "graphs"), dict(), dict(ring=10.0, floor=1e-3)),
    (gfn.TriangleReward, of_reward(gfn.Triangle(1), "graphs"), dict(), dict(triangle=10.0, floor=1e-2)),
    (gfn.ColoredGraphReward, of_reward(gfn.ColoredGraphs(4), "graphs"), dict(), dict(kind="even")),
    (
        gfn.MoleculeReward,
        of_reward(gfn.Molecules(3), "graphs"),
        dict(floor=0.5),
        dict(score="drug_like", beta=2.0, floor=1e-3),
    ),
    (
        gfn.MoleculeScore,
        lambda score: told(score.log_scores(["CCO", "C1CC1"])),
        dict(factors=[]),
        dict(factors=[gfn.Factor("weight")]),
    ),
    (
        gfn.Factor,
        lambda factor: told(gfn.MoleculeScore([factor]).log_scores(["CCO", "C1CC1"])),
        dict(property="weight"),
        dict(property="heavy_atoms", shape="exponential", power=2.0),
    ),
    (gfn.SizeReward, of_reward(gfn.Cut(CYCLES[:1]), "graphs"), dict(), dict(beta=2.0)),
    (gfn.HyperGridReward, of_reward(GRID), dict(), dict(kind="cosine", preset="easy")),
    (
        gfn.HammingReward,
        of_reward(gfn.BitSequence(2, 4)),
        dict(modes=["0011"]),
        dict(modes=["1111"], temperature=0.5),
    ),
    (
        gfn.IsingReward,
        of_reward(gfn.DiscreteEbm(2)),
        dict(couplings=[[0, 1], [1, 0]]),
        dict(couplings=[[0, 2], [2, 0]], alpha=0.5),
    ),
    (
        gfn.WeightReward,
        of_reward(gfn.SetAddition(3, 2)),
        dict(base=1.0, weights=[1, 2, 3]),
        dict(base=2.0, weights=[1, 2, 4]),
    ),
    (
        gfn.ParsimonyReward,
        of_reward(gfn.PhyloTree(4)),
        dict(sequences=["AC", "AG", "CG", "CC"], offset=3.0),
        dict(sequences=["AA", "AA", "CT", "CT"], offset=4.0, temperature=2.0),
    ),
    (
        gfn.TableReward,
        of_reward(gfn.TokenSequence(2, 2)),
        dict(alphabet="AB", path="TABLE", floor=0.1),
        dict(alphabet="BA", path="OTHER", floor=0.2, exponent=2.0),
    ),
    (
        gfn.ToyReward,
        of_reward(gfn.ToyDag()),
        dict(rewards=[1, 2, 3, 4, 5, 6]),
        dict(rewards=[6, 5, 4, 3, 2, 1]),
    ),
    (
        gfn.StructureReward,
        of_reward(gfn.BayesianStructure(3)),
        dict(data=DATA, standardise=False),
        dict(
            data=DATA[:20],
            score="bic",
            standardise=True,
            alpha_mu=2.0,
            alpha_w=7.0,
            nu=[1.0, 0.0, 0.0],
            interventions=DATA > 1,
            prior=gfn.FairPrior(),
        ),
    ),
    (
        gfn.StructureReward,
        of_reward(gfn.BayesianStructure(3)),
        dict(data=DATA, score="bde", bins=3),
        dict(
            bins=2,
            equivalent_sample_size=3.0,
            level_probs={name: [0.2, 0.3, 0.5] for name in ("x0", "x1", "x2")},
        ),
    ),
    (gfn.EdgePenalty, of_prior, dict(beta=0.5), dict(beta=0.4)),
    (gfn.ErdosRenyiPrior, of_prior, dict(edges_per_node=0.3), dict(edges_per_node=0.5)),
    (gfn.BoxReward, of_reward(gfn.Box(), "box"), dict(), dict(r0=0.2, r1=0.6, r2=3.0)),
    (gfn.LineReward, of_reward(gfn.Line(3), "line"), dict(modes=[(0.0, 1.0)]), dict(modes=[(1.0, 1.0)])),
    (gfn.GaussianTarget, of_reward(DIFFUSION, "diffusion"), dict(mean=[0.0]), dict(mean=[1.0], sd=0.5)),
    (
        gfn.MixtureTarget,
        of_reward(gfn.Diffusion(2, 4), "diffusion"),
        dict(name="forty_modes"),
        dict(name="nine_modes", seed=1),
    ),
    (gfn.MixtureTarget, of_reward(gfn.Diffusion(2, 4), "diffusion"), dict(), dict(seed=1)),
    (gfn.FunnelTarget, of_reward(gfn.Diffusion(2, 4), "diffusion"), dict(dim=2), dict(dim=3, sd=1.0)),
    (gfn.CoxTarget, of_reward(gfn.Diffusion(4, 4), "diffusion"), dict(side=2), dict(side=3, seed=1)),
    (gfn.ManyWellTarget, of_reward(gfn.Diffusion(2, 4), "diffusion"), dict(dim=2), dict(dim=4)),
    # The following cases are settings of conditions.
    (
        gfn.Conditions,
        lambda conditions: run(
            GRID, lambda states, conditions: 0.1 * states[:, 0], SMALL, conditions=conditions
        ),
        dict(function=lambda n, rng: rng.uniform(size=(n, 1)), width=1),
        dict(function=lambda n, rng: np.ones((n, 1)), width=2),
    ),
    (
        gfn.UniformTemperature,
        lambda law: drawn(gfn.Conditioning(temperature=law)),
        dict(least=1.0, most=2.0),
        dict(least=0.5, most=4.0, bins=4),
    ),
    (
        gfn.LogUniformTemperature,
        lambda law: drawn(gfn.Conditioning(temperature=law)),
        dict(least=1.0, most=2.0),
        dict(least=0.5, most=4.0, bins=4),
    ),
    (
        gfn.GammaTemperature,
        lambda law: drawn(gfn.Conditioning(temperature=law)),
        dict(shape=1.0, scale=2.0, most=3.0),
        dict(shape=2.0, scale=0.5, most=1.0, bins=4),
    ),
    (
        gfn.OneOf,
        lambda law: drawn(gfn.Conditioning(2, preferences=law)),
        dict(vectors=[[0.5, 0.5], [1, 0]]),
        dict(vectors=[[0.25, 0.75], [0, 1]], bins=4),
    ),
    (
        gfn.Dirichlet,
        lambda law: drawn(gfn.Conditioning(2, preferences=law)),
        dict(),
        dict(concentration=3.0, bins=4),
    ),
    (
        gfn.Focus,
        lambda focus: run(
            GRID,
            TWO,
            SMALL,
            conditions=gfn.Conditioning(2, temperature=gfn.UniformTemperature(1, 2), focus=focus),
        ),
        dict(directions=gfn.Dirichlet(), limit=0.5),
        dict(directions=gfn.Dirichlet(4.0), cosine=0.5, limit=0.01, outside=-10.0),
    ),
    (
        gfn.Condition,
        lambda condition: VARIED.encode([condition]).tolist(),
        dict(beta=1.0, preferences=[1, 1], focus=[1, 1]),
        dict(beta=2.0, preferences=[1, 3], focus=[1, 3]),
    ),
    (
        gfn.Conditioning,
        lambda conditions: run(GRID, TWO, SMALL, conditions=conditions),
        dict(n_rewards=2, temperature=gfn.UniformTemperature(1, 2), preferences=[0.5, 0.5]),
        dict(
            n_rewards=3,
            temperature=gfn.UniformTemperature(1, 8),
            preferences=[0.25, 0.75],
            focus=gfn.Focus([1, 1]),
        ),
    ),
    # The following cases are schedules.
    (gfn.Constant, of_temperature, dict(value=1.0), dict(value=3.0)),
    (gfn.Linear, of_temperature, dict(from_=1.0, to=9.0, steps=4), dict(from_=5.0, to=30.0, steps=2)),
    (gfn.Cosine, of_temperature, dict(from_=1.0, to=9.0, steps=4), dict(from_=5.0, to=30.0, steps=2)),
    (gfn.Exponential, of_temperature, dict(from_=1.0, to=9.0, steps=4), dict(from_=5.0, to=30.0, steps=2)),
    (gfn.InverseRoot, of_updates("schedule"), dict(from_=1.0, steps=1), dict(from_=2.0, steps=3)),
]

# The settings that can't change the outcome of a run, each with the reason.
ALONE = {
    ("OwnObjective", "name"): "it names a run",
    ("CachedReward", "reward"): "test_rewards.py has it: a reward that is kept is the same",
    ("StructureReward", "allow_few_observations"): "test_structures.py has it: it lets a check pass",
    ("CachedReward", "capacity"): "test_rewards.py has it: how many answers are kept",
    **{
        ("ExternalReward", name): "test_external.py has it: a program"
        for name in "command timeout beta floor".split()
    },
    ("Adam", "chunk"): "scored in parts, a batch is the same but for rounding: a test below has it",
    **{("FreshObjects", name): "what a function gives" for name in ("objects", "log_rewards", "conditions")},
    **{("BatchRequest", name): "what a function is given" for name in ("min", "max", "allow_more")},
}


# The settings whose values in `CASES` must raise an error, and a text in the error's message. Any other error
# fails the test.
REFUSED = {
    ("Adam", "transitions"): "whole trajectories",
    ("Env", "width"): "`initial` gave an array of int64 and shape (2,)",
    ("Env", "n_moves"): "`masks` gave an array of bool",
    ("Env", "n_backward_moves"): "n_backward_moves",
    ("Env", "has_exit"): "`masks` gave an array of bool",
    ("TensorEnv", "width"): "`initial` returned a tensor of torch.int64, of shape [2]",
    ("TensorEnv", "n_moves"): "`masks` returned a tensor of torch.bool, of shape [1, 2]",
    ("TensorEnv", "n_backward_moves"): "n_backward_moves",
    ("TensorEnv", "n_steps"): "always 3, as `n_steps` says",
    ("Diffusion", "rate"): "Diffusion.rate",
    ("Diffusion", "beta_min"): "Diffusion.beta_min",
    ("Diffusion", "beta_max"): "Diffusion.beta_max",
    ("Molecules", "attachments"): "None if there is no scaffold",
    ("Molecules", "told_apart"): "False if there is no scaffold",
    ("GraphNet", "conv"): "GraphNet.heads",
    ("GraphNet", "logit_scale"): "n_conditions is 0",
    ("GraphNet", "heads"): "GraphNet.heads",
    ("EdgeMlp", "logit_scale"): "n_conditions is 0",
    ("GraphModule", "flow"): "TrajectoryBalance doesn't use log F",
    ("GraphModule", "log_z"): "the policy has no conditions",
    ("VectorModule", "flow"): "TrajectoryBalance doesn't use log F",
    ("SequenceModule", "flow"): "TrajectoryBalance doesn't use log F",
    ("SequenceModule", "log_z"): "the policy has no conditions",
    ("DagModule", "flow"): "TrajectoryBalance doesn't use log F",
    ("DagModule", "log_z"): "the policy has no conditions",
    ("GraphModule", "module"): "must be Tensor",
    ("GraphModule", "node_width"): "embeddings of nodes of shape",
    ("GraphModule", "graph_width"): "embeddings of graphs of shape",
    ("GraphModule", "logit_scale"): "n_conditions is 0",
    ("VectorModule", "module"): "embeddings of states of shape",
    ("VectorModule", "width"): "embeddings of states of shape",
    ("VectorModule", "logit_scale"): "n_conditions is 0",
    ("SequenceModule", "module"): "embeddings of states of shape",
    ("SequenceModule", "width"): "embeddings of states of shape",
    ("SequenceModule", "logit_scale"): "n_conditions is 0",
    ("DagModule", "module"): "gave a value that isn't a tuple",
    ("DagModule", "node_width"): "embeddings of nodes of shape",
    ("DagModule", "graph_width"): "embeddings of graphs of shape",
    ("DagModule", "logit_scale"): "n_conditions is 0",
    ("Mlp", "logit_scale"): "n_conditions is 0",
    ("SequenceNet", "kind"): "SequenceNet.heads",
    ("SequenceNet", "heads"): "SequenceNet.heads",
    ("SubTrajectoryBalance", "lambda_"): "SubTrajectoryBalance.lambda_",
    ("PolicyGradient", "gae_lambda"): "PolicyGradient.gae_lambda",
    ("PolicyGradient", "critic_lambda"): "PolicyGradient.critic_lambda",
    ("ProximalPolicy", "critic_lambda"): "ProximalPolicy.critic_lambda",
    ("Replay", "exponent"): "Replay.exponent",
    ("Replay", "rank_by"): "Replay.rank_by",
    ("Replay", "k"): "Replay.k",
    ("Replay", "norm"): "Replay.norm",
    ("Replay", "objects_alone"): "with objects_alone",
    ("ChainSource", "score_changes"): "`log_reward_change`",
    ("ChainSource", "starts"): "ChainSource.candidates",
    ("Data", "conditions"): "conditions of given objects",
    ("MixtureTarget", "seed"): "MixtureTarget.seed",
    ("FunnelTarget", "dim"): "the target's dimension",
    ("CoxTarget", "side"): "the target's dimension",
    ("ManyWellTarget", "dim"): "the target's dimension",
    ("Conditioning", "n_rewards"): "the distribution of preferences",
    ("Exploration", "noise"): "noise is 1",
    ("Exploration", "max_steps"): "did not end within 1 steps",
    ("Conditions", "width"): "conditions(n, rng) gave an array of shape",
    ("Trainer", "conditions"): "takes 2 positional arguments but 3 were given",
    ("Trainer", "device"): "device cuda:99",
}


def refused_as_expected(error, key):
    """Raises the error again unless it is the error that `REFUSED` expects for this setting."""
    if REFUSED.get(key, "no refusal") not in str(error):
        raise error


def averaged(average):
    trainer = gfn.Trainer(GRID, Differing(), SMALL, batch=8, adam=gfn.Adam(lr=0.05, average=average)).fit(6)
    losses = trainer.history["loss"].tolist()
    trainer.take_average()
    return losses, [tensor.double().sum().item() for tensor in trainer.parameters()]


def table(rewards):
    return "sequence,reward\n" + "".join(
        f"{word},{reward}\n" for word, reward in zip(("AA", "AB", "BA"), rewards)
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    texts = {"FILE": "C 0,0\nCO 0,1\n", "TABLE": table([1, 2, 3]), "OTHER": table([3, 2, 1])}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


def named(case):
    return f"{case[0].__name__}-{'-'.join(case[3])[:30]}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_setting_changes_something_or_is_refused(case, files):
    kind, outcome, base, others = case
    made = lambda values: kind(
        **{
            name: files.get(value, value) if isinstance(value, str) else value
            for name, value in values.items()
        }
    )
    expected = outcome(made(base))
    # Two runs with equal settings must have equal outcomes. Otherwise a comparison with other settings would
    # show nothing.
    assert outcome(made(base)) == expected
    for name, value in others.items():
        try:
            got = outcome(made({**base, name: value}))
        except (ValueError, TypeError, RuntimeError) as error:
            refused_as_expected(error, (kind.__name__, name))
            continue
        assert got != expected, f"{kind.__name__}.{name} = {value!r} changes nothing"


# The classes whose objects are built by the library, not by users.
GIVEN = (gfn.Moves, gfn.Masks, gfn.Step, gfn.Transitions)


def test_no_setting_is_left_out():
    cases = [
        case if isinstance(case, tuple) and isinstance(case[0], type) else case.values[0] for case in CASES
    ]
    covered = {(case[0].__name__, name) for case in cases for name in case[3]} | set(ALONE)
    kinds = [
        kind
        for kind in vars(gfn).values()
        if isinstance(kind, type)
        and dataclasses.is_dataclass(kind)
        and kind not in GIVEN
        and kind.__module__ not in ("gfn_rs._results", "gfn_rs._solving")
    ]
    every = {(kind.__name__, field.name) for kind in kinds for field in dataclasses.fields(kind)}
    assert len(kinds) > 80 and len(every) > 200
    assert every == covered, (sorted(every - covered), sorted(covered - every))
    assert all(issubclass(kind, Settings) or kind in (gfn.FreshObjects, gfn.BatchRequest) for kind in kinds)


TRAINER = dict(
    batch=4,
    adam=gfn.Adam(lr=0.1),
    exploration=gfn.Exploration(epsilon=1.0),
    sources=[gfn.Replay(10, after=0)],
    conditions=gfn.Conditions(lambda n, rng: np.zeros((n, 1)), 1),
    seed=1,
    device="cuda:99",
    double=True,
)
# The sources, each with a text in the error's message if the source can't be used without a replay buffer.
SOURCES = {
    gfn.Data(POINTS): None,
    gfn.Source(lambda n, rng: np.ones((n, 2), int)): None,
    gfn.FreshSource(lambda wanted, rng: np.ones((wanted.max, 2), int)): None,
    gfn.LocalSearch(2): None,
    gfn.Teacher(SMALL): None,
    gfn.Thompson(0.5): "Thompson sampling",
    gfn.ChainSource(): None,
    gfn.Search(shifted, every=1, objects=4): "a search among objects needs",
    gfn.Hindsight(lambda objects, conditions, rng: conditions): "hindsight needs",
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)
def test_every_source_changes_something_or_is_refused(source):
    if SOURCES[source] is not None:
        with pytest.raises(ValueError, match=SOURCES[source]):
            run(GRID, Differing(), SMALL, steps=4, sources=[source])
        return
    assert run(GRID, Differing(), SMALL, steps=4, sources=[source]) != run(GRID, Differing(), SMALL, steps=4)


def test_every_setting_of_a_trainer_changes_something_or_is_refused():
    expected = run(GRID, Differing(), SMALL, steps=4)
    for name, value in TRAINER.items():
        try:
            got = run(GRID, Differing(), SMALL, **{"steps": 4, name: value})
        except (ValueError, TypeError, RuntimeError) as error:
            refused_as_expected(error, ("Trainer", name))
            continue
        assert ("Trainer", name) not in REFUSED, f"{name} = {value!r} is taken"
        assert got != expected, f"{name} = {value!r} changes nothing"
    # `chunk` only saves memory. The outcome of a run in chunks may differ from the expected outcome by
    # rounding only. A chunk of 0 must be an error.
    chunked = run(GRID, Differing(), SMALL, steps=4, adam=gfn.Adam(lr=0.01, chunk=3))
    assert chunked[1] == pytest.approx(expected[1], rel=1e-4)
    with pytest.raises(ValueError, match="chunk"):
        run(GRID, Differing(), SMALL, adam=gfn.Adam(lr=0.01, chunk=0))
    # On the CPU, trajectories are sampled on the host by default. On tensors each step draws random numbers
    # for finished trajectories, too, so the trajectories are different.
    assert run(GRID, Differing(), SMALL, steps=4, rollouts="host") == expected
    moved = run(GRID, Differing(), SMALL, steps=4, rollouts="device")
    assert np.isfinite(moved[1]).all() and moved[1] != pytest.approx(expected[1], rel=1e-4)
    # A policy in double precision has no copy on the host.
    with pytest.raises(ValueError, match='a copy of the policy on the host.*rollouts="device"'):
        run(GRID, Differing(), SMALL, double=True, rollouts="host")
    with pytest.raises(ValueError, match="rollouts is 'gpu'"):
        run(GRID, Differing(), SMALL, rollouts="gpu")
    parameters = set(inspect.signature(gfn.Trainer).parameters)
    others = {"env", "reward", "policy", "objective", "rollouts"}
    assert parameters - others == set(TRAINER) and len(parameters) == 13
