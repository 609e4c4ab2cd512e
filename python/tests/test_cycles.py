"""Tests of reference cycles: a trainer uses an object, and the object refers to the trainer. Python's garbage
collector must free both."""

import gc
import weakref

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from test_modules import Messages, module_trainer


class Holder:
    """An object with a reference `held` to the trainer or environment that uses the object."""

    held = None

    def reward(self, states):
        return np.zeros(len(states))

    def loss(self, scores):
        return (scores.log_z.mean() + scores.log_pf.sum()).square()

    def conditions(self, n, generator):
        return np.zeros((n, 1))

    def drawn(self, n, generator):
        return np.zeros((n, 1), dtype=int)

    def found(self, states, generator):
        return states

    def weight(self, log_reward, loss):
        return log_reward

    def relabelled(self, states, conditions, generator):
        return conditions


class Rewarding(Holder):
    """A reward with a method `partial_log_reward` for unfinished states."""

    def __call__(self, states):
        return self.reward(states)

    def partial_log_reward(self, states):
        return self.reward(states)


class Rules(gfn.GraphRules):
    held = None


class VectorRules(gfn.VectorRules):
    held = None


def grid(reward, **settings):
    return gfn.Trainer(gfn.HyperGrid(1, 2), reward, gfn.Mlp((4,)), batch=2, **settings)


def with_reward():
    holder = Holder()
    holder.held = grid(holder.reward).fit(2)
    return holder


def with_partial_rewards():
    holder = Rewarding()
    holder.held = grid(holder, objective=gfn.DetailedBalance(forward_looking=True)).fit(2)
    return holder


def with_objective():
    holder = Holder()
    holder.held = grid(holder.reward, objective=gfn.OwnObjective(holder.loss)).fit(2)
    return holder


def with_conditions():
    holder = Holder()
    holder.held = grid(
        lambda states, conditions: np.zeros(len(states)), conditions=gfn.Conditions(holder.conditions, 1)
    ).fit(2)
    return holder


def with_sources():
    holder = Holder()
    parts = dict(
        sources=[
            gfn.Source(holder.drawn, share=0.5),
            gfn.Search(holder.found, every=1),
            gfn.Replay(10, after=0),
        ]
    )
    holder.held = grid(
        holder.reward, objective=gfn.AugmentedTrajectoryBalance(0.1, novelty=holder.reward), **parts
    ).fit(2)
    return holder


def with_fresh_objects():
    holder = Holder()
    holder.held = grid(
        holder.reward, sources=[gfn.FreshSource(lambda wanted, rng: holder.drawn(wanted.max, rng))]
    ).fit(2)
    return holder


def with_priority():
    holder = Holder()
    holder.held = grid(holder.reward, sources=[gfn.Replay(10, after=0, draw=holder.weight)]).fit(2)
    return holder


def with_several_rewards():
    holder = Holder()
    both = gfn.Conditioning(2, preferences=gfn.Dirichlet())
    holder.held = grid([holder.reward, holder.reward], conditions=both).fit(2)
    return holder


def with_hindsight():
    holder = Holder()
    parts = dict(
        conditions=gfn.Conditions(holder.conditions, 1),
        sources=[gfn.Replay(10, after=0), gfn.Hindsight(holder.relabelled, share=0.5)],
    )
    holder.held = grid(lambda states, conditions: np.zeros(len(states)), **parts).fit(2)
    return holder


def with_graph_rules():
    rules = Rules()
    env = gfn.GraphEnv([gfn.AddEdge()], rules=rules, max_nodes=2, start=2, labelled=True)
    rules.held = gfn.Trainer(env, Holder().reward, gfn.EdgeMlp((4,)), batch=2).fit(2)
    return rules


def with_vector_rules():
    rules = VectorRules()
    env = gfn.VectorEnv(1, 2, [(0, 0, 1)], rules=rules)
    rules.held = gfn.Trainer(env, Holder().reward, gfn.Mlp((4,)), batch=2).fit(2)
    return rules


class TensorRules(gfn.TensorRules):
    """The rules of a single move, and a reward of tensors."""

    held = None

    def initial(self):
        return torch.tensor([0])

    def masks(self, states):
        return states == 0

    def step(self, states, moves):
        return torch.ones_like(states)

    def backward_masks(self, states):
        return states == 1

    def backward_step(self, states, moves):
        return torch.zeros_like(states)

    def _reward(self, states):
        return torch.zeros(len(states))


def with_tensor_rules():
    rules = TensorRules()
    reward = gfn.TensorReward(rules._reward)
    rules.held = gfn.Trainer(gfn.TensorEnv(rules, 1, 2, 1), reward, gfn.Mlp((4,)), batch=2).fit(2)
    return rules


def rules_of_an_environment():
    rules = Rules()
    rules.held = gfn.GraphEnv([gfn.AddEdge()], rules=rules, max_nodes=2, start=2, labelled=True)
    return rules


def with_module():
    module = Messages()
    # The trainer is stored in a list, which the torch module doesn't inspect.
    module.held = [module_trainer(module).fit(2)]
    return module


def with_teacher():
    module = Messages()
    teacher = gfn.Teacher(gfn.GraphModule(module, 64, 64))
    module.held = [module_trainer(Messages(), sources=[teacher]).fit(2)]
    return module


CYCLES = [
    with_reward,
    with_partial_rewards,
    with_objective,
    with_conditions,
    with_sources,
    with_hindsight,
    with_fresh_objects,
    with_priority,
    with_several_rewards,
    with_graph_rules,
    with_vector_rules,
    with_tensor_rules,
    rules_of_an_environment,
    with_module,
    with_teacher,
]


@pytest.mark.parametrize("make", CYCLES, ids=lambda make: make.__name__)
def test_a_cycle_is_collected(make):
    held = weakref.ref(make())
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("make", CYCLES, ids=lambda make: make.__name__)
def test_what_is_in_use_is_not(make):
    """Checks, as a negative control, that a trainer that is still in use isn't freed. The trainer would be
    freed if a reference were reported to the garbage collector twice."""
    holder = make()
    held = holder.held
    kind = weakref.ref(holder)
    del holder
    for _ in range(3):
        gc.collect()
    assert kind() is not None
    trainers = [
        each for each in (held if isinstance(held, list) else [held]) if isinstance(each, gfn.Trainer)
    ]
    for trainer in trainers:
        assert trainer.fit(2).steps_done == 4
    assert len(trainers) == (make is not rules_of_an_environment)


def test_it_is_collected_while_it_works():
    """Runs the garbage collector in a reward. The trainer is in use at this time, so it must not be freed."""

    def reward(states):
        gc.collect()
        return np.zeros(len(states))

    assert grid(reward).fit(5).steps_done == 5


def trainers():
    gc.collect()
    return sum(type(each) is gfn.Trainer for each in gc.get_objects())


def test_many_cycles_leave_nothing_behind():
    before = trainers()
    for _ in range(20):
        with_reward()
    assert trainers() == before
