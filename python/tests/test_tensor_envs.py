"""Tests of custom environments and rewards that are functions of torch tensors, and of mistakes in them that
must raise an error."""

import itertools
import math
import pickle
import threading
import traceback

import gfn_rs as gfn
import numpy as np
import pytest
import torch
from refusals import refused

GRID = dict(width=2, values=4, n_moves=2)
FEW = dict(batch=4, adam=gfn.Adam(lr=3e-3))


def flat(states):
    return np.zeros(len(states))


def slope(states):
    # These numbers are exact in single precision, in which torch computes them.
    return 0.25 * states[:, 0] - 0.125 * states[:, 1]


class Grid(gfn.TensorRules):
    """The rules of a grid, whose moves are steps by one along an axis."""

    def __init__(self, ndim=2, height=4):
        self.height, self.one = height, torch.eye(ndim, dtype=torch.int64)

    def initial(self):
        return torch.zeros(len(self.one), dtype=torch.int64)

    def masks(self, states):
        return states < self.height - 1

    def step(self, states, moves):
        return states + self.one.to(states.device)[moves]

    def backward_masks(self, states):
        return states > 0

    def backward_step(self, states, moves):
        return states - self.one.to(states.device)[moves]


class Insertions(gfn.TensorRules):
    """The rules of an environment of permutations of n items. Move `item * n + place` inserts an item before
    position `place` of the present items. Backward move `place` removes the item at this position."""

    def __init__(self, n):
        self.n, self.places = n, torch.arange(n)

    def initial(self):
        return torch.zeros(self.n, dtype=torch.int64)

    def masks(self, states):
        places = self.places.to(states.device)
        absent = ~(states[:, :, None] == places + 1).any(1)
        is_free = places <= (states > 0).sum(1, keepdim=True)
        return (absent[:, :, None] & is_free[:, None, :]).flatten(1)

    def step(self, states, moves):
        places = self.places.to(states.device)
        place, item = moves[:, None] % self.n, moves[:, None] // self.n + 1
        moved = states.gather(1, (places - (places > place).long()).expand_as(states))
        return moved.where(places != place, item)

    def backward_masks(self, states):
        return states > 0

    def backward_step(self, states, moves):
        places = self.places.to(states.device)
        padded = torch.nn.functional.pad(states, (0, 1))
        return padded.gather(1, places + (places >= moves[:, None]).long())

    def reverse(self, states, moves):
        return moves % self.n

    def backward_reverse(self, states, moves):
        item = states.gather(1, moves[:, None])[:, 0].clamp(min=1)
        return (item - 1) * self.n + moves


def insertions(n, n_steps=None):
    return gfn.TensorEnv(Insertions(n), n, n + 1, n * n, n, has_exit=False, n_steps=n_steps)


def changed(**methods):
    """Returns rules of the grid in which these methods are replaced."""
    return type("Changed", (Grid,), methods)()


def made(rules, **settings):
    return lambda: gfn.TensorEnv(rules, **{**GRID, **settings})


def test_a_grid_of_tensors_is_the_library_s_bit_for_bit():
    own = gfn.TensorEnv(Grid(2, 8), width=2, values=8, n_moves=2)
    settings = dict(batch=16, sources=[gfn.LocalSearch(4)], seed=4)
    runs = [
        gfn.Trainer(env, reward, gfn.Mlp((32,)), **settings)
        for env, reward in itertools.product((own, gfn.HyperGrid(2, 8)), (slope, gfn.TensorReward(slope)))
    ]
    losses = [run.fit(10).history["loss"].tolist() for run in runs]
    assert losses[0] == losses[1] == losses[2] == losses[3] and len(losses[0]) == 10
    exact, expected = runs[0].exact(), runs[3].exact()
    assert (exact.n_states, exact.log_z, exact.tv) == (64, expected.log_z, expected.tv)
    other = gfn.Trainer(own, gfn.TensorReward(lambda states: 2 * slope(states)), gfn.Mlp((32,)), **settings)
    assert other.fit(10).history["loss"].tolist() != losses[0]


@pytest.mark.parametrize("n_steps, rollouts", [(None, "host"), (None, "device"), (4, "device")])
def test_permutations_by_insertion_are_those_that_there_are(n_steps, rollouts):
    env = insertions(4, n_steps)
    states = sum(math.factorial(4) // math.factorial(4 - k) for k in range(5))
    assert env.check() == (states, states)

    def ascents(states):
        return (states.diff(dim=1) > 0).sum(1).double()

    every = torch.tensor(list(itertools.permutations(range(1, 5))))
    adam = gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 400))
    settings = dict(batch=32, adam=adam, rollouts=rollouts)
    trainer = gfn.Trainer(env, gfn.TensorReward(ascents), gfn.Mlp((64, 64)), **settings)
    exact = trainer.exact()
    ends = exact.states[np.isfinite(exact.log_rewards)]
    assert sorted(map(tuple, ends.tolist())) == sorted(map(tuple, every.tolist()))
    assert exact.n_states == states and exact.log_z == pytest.approx(ascents(every).logsumexp(0).item())
    assert trainer.fit(400).exact().tv < 0.05 < exact.tv


def test_ends_are_restricted():
    rules = changed(can_end=lambda self, states: states.sum(1) % 2 == 0)
    exact = gfn.Trainer(made(rules)(), flat, gfn.Mlp((8,))).exact()
    ends = exact.states[np.isfinite(exact.log_rewards)]
    assert len(ends) == 8 and (ends.sum(axis=1) % 2 == 0).all() and exact.n_states == 16


def test_methods_get_whole_batches_without_copies_and_without_gradients():
    seen = []

    def note(self, states, *moves):
        parameter = torch.nn.Parameter(torch.ones(()))
        # The list keeps all tensors alive, so only tensors that share their memory have equal addresses.
        seen.append((states, (states * parameter).requires_grad))

    def noted(method):
        return lambda self, *given: (note(self, *given), getattr(Grid, method)(self, *given))[1]

    names = ("masks", "step", "backward_masks", "backward_step")
    ends = lambda self, states: (note(self, states), torch.ones(len(states), dtype=torch.bool))[1]
    rules = changed(can_end=ends, **{name: noted(name) for name in names})
    reward = gfn.TensorReward(lambda states: (note(None, states), states.sum(1))[1])
    trainer = gfn.Trainer(made(rules)(), reward, gfn.Mlp((8,)), batch=64, sources=[gfn.LocalSearch(8)]).fit(1)
    assert seen and not any(grad for _, grad in seen)
    # `masks` and `can_end` follow each other with the same states, so both must get the same memory.
    assert any(one[0].data_ptr() == other[0].data_ptr() for one, other in itertools.pairwise(seen))
    seen.clear()
    trainer.fit(1)
    # A trajectory has at most seven steps, and a step takes about ten calls, however many trajectories a
    # batch has.
    assert max(len(states) for states, _ in seen) >= 64 and len(seen) < 7 * 2 * 20


TENSORS = {
    "initial": lambda n: torch.zeros(2, dtype=torch.int64),
    "masks": lambda n: torch.ones((n, 2), dtype=torch.bool),
    "can_end": lambda n: torch.ones(n, dtype=torch.bool),
    "step": lambda n: torch.zeros((n, 2), dtype=torch.int64),
    "backward_masks": lambda n: torch.ones((n, 2), dtype=torch.bool),
    "backward_step": lambda n: torch.zeros((n, 2), dtype=torch.int64),
    "reverse": lambda n: torch.zeros(n, dtype=torch.int64),
    "backward_reverse": lambda n: torch.zeros(n, dtype=torch.int64),
}


def answering(method, answer):
    """Returns rules of the grid one of whose methods returns `answer` of a valid result."""
    replaced = lambda self, *given: answer(TENSORS[method](len(given[0]) if given else 1))
    # `reverse` and `backward_reverse` must be defined together.
    same = {name: lambda self, states, moves: moves for name in ("reverse", "backward_reverse")}
    return changed(**{**(same if method in same else {}), method: replaced})


@pytest.mark.parametrize("method", TENSORS)
@pytest.mark.parametrize(
    "answer, kind, message",
    [
        (lambda right: None, TypeError, "gave a NoneType: expected a torch.Tensor of "),
        (lambda right: right.numpy(), TypeError, "gave a ndarray: expected a torch.Tensor of "),
        (lambda right: right.double(), TypeError, "returned a tensor of torch.float64, .*: expected a "),
        (lambda right: right.to(torch.int32), TypeError, "returned a tensor of torch.int32, .*: expected a "),
        (lambda right: right[..., None], ValueError, r"of shape \[.*, 1\] and .*: expected .* of shape \["),
        (lambda right: right[:-1], ValueError, r"of shape \[.*: expected .* of shape \["),
        (lambda right: right.to("meta"), ValueError, "on the device meta: expected .* on the device cpu"),
    ],
)
def test_answers_of_other_types_and_shapes_are_refused(method, answer, kind, message):
    refused(made(answering(method, answer)), kind, f"`{method}` .*{message}")


@pytest.mark.parametrize("method", TENSORS)
def test_what_methods_raise_is_raised_with_its_traceback(method):
    def mine(right):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine") as caught:
        made(answering(method, mine))()
    assert "mine" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("rollouts", ["host", "device"])
@pytest.mark.parametrize("method", ["masks", "can_end", "step", "backward_masks", "backward_step"])
def test_what_fails_in_training_is_raised_by_it_and_training_goes_on(method, rollouts):
    broken = {"now": False}

    def asked(self, *given):
        if broken["now"]:
            raise LookupError("mine")
        return getattr(Grid, method)(self, *given)

    settings = dict(sources=[gfn.LocalSearch(2)], rollouts=rollouts, **FEW)
    trainer = gfn.Trainer(made(changed(**{method: asked}))(), flat, gfn.Mlp((8,)), **settings).fit(1)
    before = [tensor.clone() for tensor in trainer.parameters()]
    broken["now"] = True
    with pytest.raises(LookupError, match="mine"):
        trainer.fit(1)
    assert all(torch.equal(one, other) for one, other in zip(before, trainer.parameters(), strict=True))
    broken["now"] = False
    assert np.isfinite(trainer.fit(1).history["loss"][-1])


@pytest.mark.parametrize("method", ["step", "backward_step", "masks", "reverse"])
def test_arguments_that_are_changed_in_place_are_found(method):
    def in_place(self, *given):
        right = getattr(Grid, method)(self, *given).clone()
        given[-1].zero_()
        return right

    methods = {"backward_reverse": lambda self, states, moves: moves} if method == "reverse" else {}
    methods[method] = in_place
    refused(made(changed(**methods)), ValueError, f"`{method}` changed its argument in place")


def without(*point):
    return lambda self, states: (states > 0) & ~(states == torch.tensor(point)).all(1, keepdim=True)


def masks_without(*point):
    return lambda self, states: (states < 3) & ~(states == torch.tensor(point)).all(1, keepdim=True)


def reverses(forward, backward):
    return dict(reverse=lambda self, s, m: forward(m), backward_reverse=lambda self, s, m: backward(m))


@pytest.mark.parametrize(
    "methods, settings, message",
    [
        # The mistake in these rules: a backward move is missing in some states, or there are too many.
        (dict(backward_masks=without(1, 0)), {}, "backward move"),
        (dict(backward_masks=without(2, 3)), {}, "backward move"),
        (dict(backward_masks=lambda self, states: states >= 0), {}, "backward|at least 0"),
        # The mistake in these rules: a forward move is missing, or there are moves beyond the border.
        (dict(masks=masks_without(1, 1)), {}, "backward"),
        (dict(masks=lambda self, states: states >= 0), {}, "at least 0 and below `values`"),
        # The mistake in these rules: a backward move doesn't undo the move, or has another number.
        (
            dict(backward_step=lambda self, s, m: Grid.backward_step(self, s, 1 - m)),
            {},
            "restores|at least 0",
        ),
        (dict(step=lambda self, states, moves: states), {}, "changes the state|trajectory returns"),
        (reverses(lambda m: 1 - m, lambda m: 1 - m), {}, "is a legal backward move of the child"),
        (reverses(lambda m: m, lambda m: 1 - m), {}, "reverse of a move's reverse is the move"),
        (reverses(lambda m: m - 1, lambda m: m - 1), {}, "is a legal backward move of the child"),
        (reverses(lambda moves: moves + 2**32, lambda moves: moves), {}, "undo"),
        # The mistake in these rules: an entry has a value that isn't below `values`.
        ({}, dict(values=3), "at least 0 and below `values`"),
        (dict(initial=lambda self: torch.tensor([0, 4])), {}, "at least 0 and below `values`"),
        # The mistake in these rules: a state has no legal move and no exit.
        (dict(can_end=lambda self, states: states.sum(1) < 6), {}, "without any move and without the exit"),
        # The mistake in these rules: the legal moves of a state depend on the other states of the batch.
        (
            dict(masks=lambda self, states: (states < 3) & (torch.arange(len(states)) % 2 == 0)[:, None]),
            {},
            "not legal .* in state 1",
        ),
        # The mistake in these rules: trajectories don't all have this number of steps.
        ({}, dict(n_steps=3), "always 3, as `n_steps` says"),
    ],
)
def test_environments_that_contradict_themselves_are_refused(methods, settings, message):
    refused(made(changed(**methods), **settings), ValueError, message)


@pytest.mark.parametrize(
    "rules, message",
    [
        (Grid, "Grid"),
        (None, "rules is None: expected an object like `TensorRules`"),
        (object(), "object"),
        (gfn.TensorRules(), "no method initial, masks, .* `TensorRules` except for reverse"),
        (changed(backward_mask=lambda self, states: None), "`backward_mask`.*`backward_masks` if that is"),
        (changed(reverse=lambda self, states, moves: moves), "both methods, or neither"),
        (type("Lacking", (Grid,), {"step": gfn.TensorRules.step})(), "no method step"),
    ],
)
def test_what_is_no_rules_is_refused(rules, message):
    refused(made(rules), TypeError, message)


@pytest.mark.parametrize(
    "settings, kind",
    [
        (dict(width=0), ValueError),
        (dict(width=3), ValueError),
        (dict(values=1), ValueError),
        (dict(n_moves=3), ValueError),
        (dict(n_backward_moves=3), ValueError),
        (dict(has_exit=None), TypeError),
        (dict(n_steps=0), ValueError),
        (dict(n_steps=2.0), TypeError),
    ],
)
def test_sizes_that_make_no_sense_are_refused(settings, kind):
    refused(made(Grid(), **settings), kind, "expected")


def test_ends_without_an_exit_are_refused():
    rules = changed(can_end=lambda self, states: states.sum(1) > 1)
    refused(made(rules, has_exit=False), TypeError, "`can_end`, but `has_exit` is False")


def test_environments_can_be_compared_pickled_and_loaded(tmp_path):
    env = insertions(3, 3)
    again = pickle.loads(pickle.dumps(env))
    assert again.check() == env.check() and again.n_steps == 3
    same, other = (gfn.TensorEnv(env.rules, 3, 4, 9, 3, False, n_steps) for n_steps in (3, None))
    assert env == same != other
    reward, path = gfn.TensorReward(slope), tmp_path / "run"
    trainer = gfn.Trainer(env, reward, gfn.Mlp((8,)), **FEW).fit(2)
    trainer.save(path)
    drawn = [gfn.Sampler(env, policy).sample(5, seed=0) for policy in (gfn.load(path, env=env), trainer)]
    assert (drawn[0].terminal == drawn[1].terminal).all() and torch.equal(drawn[0].log_pf, drawn[1].log_pf)
    resumed = gfn.Trainer(env, reward, gfn.Mlp((8,)), **FEW)
    resumed.resume(path)
    assert resumed.fit(1).history["loss"][-1] == trainer.fit(1).history["loss"][-1]
    with pytest.raises(ValueError, match="Insertions"):
        gfn.load(path)


def test_two_threads_use_the_same_rules():
    env, losses = made(Grid())(), {}

    def train(seed):
        run = gfn.Trainer(env, gfn.TensorReward(slope), gfn.Mlp((8,)), seed=seed, **FEW).fit(5)
        losses[seed, threading.current_thread().name] = run.history["loss"].tolist()

    threads = [threading.Thread(target=train, args=(seed,), name="other") for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(2):
        train(seed)
        assert losses[seed, "other"] == losses[seed, threading.current_thread().name]


def test_roll_outs_on_a_device_call_rewards_and_rules_with_its_tensors():
    """The CPU is the device here. A failure in an environment without an exit must end the roll-out, too."""
    rules, calls, broken = Insertions(3), [], set()

    def asked(self, states):
        if "rules" in broken:
            raise LookupError("mine")
        return Insertions.masks(self, states)

    def reward(states):
        calls.append(states)
        return {}["mine"] if "reward" in broken else states[:, 0].double()

    rules.__class__ = type("Noted", (Insertions,), {"masks": asked})
    env = gfn.TensorEnv(rules, 3, 4, 9, 3, has_exit=False)

    class OnTensors(gfn.TensorReward):
        def __call__(self, states):
            raise AssertionError("states were converted to arrays")

    with pytest.raises(AssertionError, match="arrays"):
        gfn.Trainer(env, OnTensors(reward), gfn.Mlp((8,)), rollouts="host", **FEW).fit(1)
    trainer = gfn.Trainer(env, OnTensors(reward), gfn.Mlp((8,)), rollouts="device", **FEW).fit(1)
    assert [states.shape for states in calls] == [(4, 3)]
    for part, kind in (("rules", LookupError), ("reward", KeyError)):
        broken.add(part)
        with pytest.raises(kind, match="mine"):
            trainer.fit(1)
        broken.clear()
        assert np.isfinite(trainer.fit(1).history["loss"][-1])


def test_samples_and_evaluations_come_from_the_place_of_roll_outs():
    """On tensors each step moves all trajectories, finished ones too; on the host only unfinished ones."""
    sizes, broken = {"step": [], "backward_step": []}, set()

    def noted(method):
        def move(self, states, moves):
            if len(states) == 64 and broken:
                raise LookupError("mine")
            sizes[method].append(len(states))
            return getattr(Grid, method)(self, states, moves)

        return move

    env, greedy = made(changed(**{method: noted(method) for method in sizes}))(), []
    objects = np.array([[3, 3], [1, 0]] * 32)
    for rollouts in ("host", "device"):
        trainer = gfn.Trainer(env, slope, gfn.Mlp((8,)), rollouts=rollouts, **FEW)
        sampler = gfn.Sampler(env, trainer)
        greedy.append(sampler.sample(1, greedy=True).states.tolist())
        for method, draw in (
            ("step", lambda: trainer.sample(64)),
            ("step", lambda: trainer.evaluate(64)),
            ("step", lambda: sampler.sample(64)),
            ("backward_step", lambda: trainer.evaluate_on(objects[:2], paths=32)),
            ("backward_step", lambda: sampler.backward(objects)),
        ):
            sizes[method].clear()
            draw()
            whole = sizes[method].count(64)
            assert whole >= 6 if rollouts == "device" else whole <= 2
            if rollouts == "device":
                broken.add(method)
                with pytest.raises(LookupError, match="mine"):
                    draw()
                broken.clear()
    assert greedy[0] == greedy[1]


def test_a_method_of_this_name_makes_no_reward_of_tensors():
    class Named:
        def __call__(self, states):
            return slope(states)

        def on_tensors(self, states):
            raise AssertionError("the reward is no TensorReward")

    run, expected = (
        gfn.Trainer(gfn.HyperGrid(2, 4), reward, gfn.Mlp((8,)), rollouts="device", **FEW).fit(2)
        for reward in (Named(), gfn.TensorReward(slope))
    )
    assert run.history["loss"].tolist() == expected.history["loss"].tolist()


def training(function, env=gfn.HyperGrid(2, 4), policy=gfn.Mlp((8,)), **settings):
    return lambda: gfn.Trainer(env, gfn.TensorReward(function), policy, **FEW, **settings).fit(1)


@pytest.mark.parametrize(
    "function, kind, message",
    [
        (lambda states: None, TypeError, "the reward gave a NoneType: expected a torch.Tensor of real num"),
        (lambda states: slope(states).numpy(), TypeError, "gave a ndarray: expected a torch.Tensor of real"),
        (lambda states: slope(states) * 1j, TypeError, "returned a tensor of torch.complex64"),
        (lambda states: states, ValueError, r"of shape \[\d+, 2\] and .*: expected .* of shape \[\d+\]"),
        (lambda states: slope(states)[0], ValueError, r"of shape \[\] and"),
        (lambda states: states.zero_().sum(1), ValueError, "the reward changed its argument in place"),
        (lambda states: slope(states) * math.nan, FloatingPointError, "NaN|nan"),
        (lambda states: {}[0], KeyError, "0"),
    ],
)
def test_mistakes_in_rewards_of_tensors_are_raised(function, kind, message):
    refused(training(function), kind, message)


def test_rewards_of_tensors_are_for_vectors_without_conditions():
    conditions = gfn.Conditions(lambda n, rng: rng.uniform(size=(n, 1)), 1)
    refused(training(slope, conditions=conditions), ValueError, "TensorReward.*gets no conditions")
    graphs = training(slope, gfn.Ring(3), gfn.GraphNet(embedding=8))
    refused(graphs, TypeError, "no vectors of whole numbers: expected an environment of vectors")
    refused(training(slope, gfn.Box(), gfn.BoxNet((8,))), TypeError, "no vectors of whole numbers")
    refused(lambda: gfn.TensorReward(3), TypeError, "function is ")
    refused(lambda: gfn.TensorReward(Grid), TypeError, "function is ")


def test_rewards_of_tensors_can_be_cached_and_weighted():
    plain, cached = (
        gfn.Trainer(gfn.HyperGrid(2, 4), reward, gfn.Mlp((8,)), **FEW).fit(3).history["loss"].tolist()
        for reward in (slope, gfn.CachedReward(gfn.TensorReward(slope)))
    )
    assert plain == cached
    weights = gfn.Conditioning(2, preferences=gfn.Dirichlet())
    rewards = [gfn.TensorReward(lambda states, k=k: 0.1 * states[:, k]) for k in range(2)]
    run = gfn.Trainer(gfn.HyperGrid(2, 4), rewards, gfn.Mlp((8,)), conditions=weights, **FEW).fit(2)
    assert np.isfinite(run.history["loss"]).all()
