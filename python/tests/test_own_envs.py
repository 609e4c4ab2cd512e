"""Tests of custom environments that step batches of arrays, and of mistakes in them that must raise an
error."""

import itertools
import math
import pickle

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import refused

GRID = dict(width=2, values=4, n_moves=2)


def flat(states):
    return np.zeros(len(states))


class Grid(gfn.EnvRules):
    """The rules of a grid, whose moves are steps by one along an axis."""

    def __init__(self, ndim=2, height=4):
        self.ndim, self.height, self.asked = ndim, height, 0

    def initial(self):
        return np.zeros(self.ndim, dtype=int)

    def masks(self, states):
        self.asked += 1
        return np.column_stack([states < self.height - 1, np.ones(len(states), dtype=bool)])

    def step(self, states, moves):
        states[np.arange(len(states)), moves] += 1
        return states

    def backward_masks(self, states):
        return states > 0

    def backward_step(self, states, moves):
        states[np.arange(len(states)), moves] -= 1
        return states


class Insertions(gfn.EnvRules):
    """The rules of an environment of permutations of n items. Move `item * n + place` inserts an item before
    position `place` of the present items. Backward move `place` removes the item at this position."""

    def __init__(self, n):
        self.n = n

    def initial(self):
        return np.zeros(self.n, dtype=np.int32)

    def masks(self, states):
        n, there = self.n, (states[:, :, None] == np.arange(1, self.n + 1)).any(axis=1)
        places = np.arange(n) <= (states > 0).sum(axis=1)[:, None]
        return (~there[:, :, None] & places[:, None, :]).reshape(len(states), n * n)

    def step(self, states, moves):
        rows = [
            np.insert(row, move % self.n, move // self.n + 1)[: self.n]
            for row, move in zip(states, moves, strict=True)
        ]
        return np.array(rows, dtype=np.uint8).reshape(-1, self.n)

    def backward_masks(self, states):
        return states > 0

    def backward_step(self, states, moves):
        return np.array(
            [np.append(np.delete(row, move), 0) for row, move in zip(states, moves, strict=True)]
        ).reshape(-1, self.n)

    def reverse(self, states, moves):
        return moves % self.n

    def backward_reverse(self, states, moves):
        return (states[np.arange(len(states)), moves] - 1) * self.n + moves


def insertions(n):
    return gfn.Env(Insertions(n), width=n, values=n + 1, n_moves=n * n, n_backward_moves=n, has_exit=False)


def test_a_grid_by_hand_is_the_library_s():
    own = gfn.Env(Grid(2, 8), width=2, values=8, n_moves=2)
    reward, settings = gfn.HyperGridReward(), dict(batch=16, adam=gfn.Adam(lr=3e-3), seed=4)
    theirs = gfn.Trainer(gfn.HyperGrid(2, 8), reward, gfn.Mlp((64, 64)), **settings)
    log_rewards = {
        tuple(row): log
        for row, log in zip(theirs.exact().states.tolist(), theirs.exact().log_rewards, strict=True)
    }

    def same(states):
        return np.array([log_rewards[tuple(row)] for row in states.tolist()])

    ours = gfn.Trainer(own, same, gfn.Mlp((64, 64)), **settings)
    theirs = gfn.Trainer(gfn.HyperGrid(2, 8), same, gfn.Mlp((64, 64)), **settings)
    # The training run must be equal bit for bit to the run in the library's environment.
    assert ours.fit(20).history["loss"].tolist() == theirs.fit(20).history["loss"].tolist()
    exact, expected = ours.exact(), theirs.exact()
    assert (exact.n_states, exact.log_z, exact.tv) == (64, expected.log_z, expected.tv)


def test_a_grid_by_hand_is_learned():
    rules = Grid(2, 4)
    trainer = gfn.Trainer(
        gfn.Env(rules, **GRID),
        lambda states: states[:, 0].astype(float),
        gfn.Mlp((64, 64)),
        batch=32,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 400)),
    )
    before, asked = trainer.exact().tv, rules.asked
    after = trainer.fit(1)
    # All states of a batch must be passed to `masks` in one call. A trajectory has at most seven steps, and
    # the trainer checks some states at the end of `fit`, so there must be at most 20 calls.
    assert 1 <= rules.asked - asked <= 20
    after = trainer.fit(399).exact().tv
    assert after < 0.03 < before


@pytest.mark.parametrize("n", [3, 4])
def test_permutations_by_insertion_are_those_that_there_are(n):
    env = insertions(n)
    states = sum(math.factorial(n) // math.factorial(n - k) for k in range(n + 1))
    assert env.check() == (states, states)

    def ascents(states):
        return (np.diff(states, axis=1) > 0).sum(axis=1).astype(float)

    every = np.array(list(itertools.permutations(range(1, n + 1))))
    trainer = gfn.Trainer(
        env, ascents, gfn.Mlp((64, 64)), batch=32, adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500))
    )
    exact = trainer.exact()
    ends = exact.states[np.isfinite(exact.log_rewards)]
    assert sorted(map(tuple, ends.tolist())) == sorted(map(tuple, every.tolist()))
    assert exact.n_states == states and exact.log_z == pytest.approx(np.logaddexp.reduce(ascents(every)))
    assert trainer.fit(500).exact().tv < 0.05 < exact.tv


def test_environments_of_one_s_own_can_be_compared_and_are_pickled():
    env = insertions(3)
    again = pickle.loads(pickle.dumps(env))
    assert again.check() == env.check() and again.n_moves == 9
    assert env == gfn.Env(env.rules, 3, 4, 9, 3, False) != gfn.Env(env.rules, 3, 5, 9, 3, False)


def changed(**methods):
    """Returns rules of the grid in which these methods are replaced."""
    return type("Changed", (Grid,), methods)()


def made(rules, **settings):
    return lambda: gfn.Env(rules, **{**GRID, **settings})


def always(answer):
    return lambda self, *given: answer


def of_batch(answer):
    return lambda self, states, *moves: answer(len(states))


SHAPES = {"initial": "[2]", "masks": "3]", "step": "2]", "backward_masks": "2]", "backward_step": "2]"}
# Invalid results of methods of rules: the type, the dtype or the shape is wrong.
UNLIKE = [
    None,
    3,
    "states",
    [0, 0],
    np.zeros(2),
    np.zeros((1, 2)),
    np.array(["a", "b"]),
    np.array([None, None]),
    {},
]
WRONG = {
    "initial": [*UNLIKE, np.zeros(2, dtype=bool)],
    "masks": UNLIKE,
    "step": [*UNLIKE, np.zeros((1, 2), dtype=bool)],
    "backward_masks": UNLIKE,
    "backward_step": UNLIKE,
}


@pytest.mark.parametrize(
    "method, answer", [(method, answer) for method, answers in WRONG.items() for answer in answers]
)
def test_answers_of_other_types_are_refused(method, answer):
    refused(
        made(changed(**{method: always(answer)})),
        TypeError,
        f"`{method}` gave .*: expected a numpy array of (bool|whole numbers) and shape ",
    )


@pytest.mark.parametrize(
    "method, answer, message",
    [
        ("initial", always(np.zeros(3, dtype=int)), r"shape \[2\]"),
        ("initial", always(np.zeros((1, 2), dtype=int)), r"shape \[2\]"),
        ("initial", always(np.array([0, 4])), "4: expected 0 to 3"),
        ("initial", always(np.array([-1, 0])), "-1: expected 0 to 3"),
        ("initial", always(np.array([2**40, 0])), "1099511627776: expected 0 to 3"),
        ("initial", always(np.array(0)), r"shape \[2\]"),
        ("masks", of_batch(lambda n: np.ones((n, 2), bool)), ", 3]"),
        ("masks", of_batch(lambda n: np.ones((n + 1, 3), bool)), ", 3]"),
        ("masks", of_batch(lambda n: np.ones(n, bool)), ", 3]"),
        ("masks", of_batch(lambda n: np.ones((0, 3), bool)), ", 3]"),
        ("backward_masks", of_batch(lambda n: np.ones((n, 3), bool)), ", 2]"),
        ("backward_masks", of_batch(lambda n: np.ones((3, n, 2), bool)), ", 2]"),
        ("step", of_batch(lambda n: np.ones((n + 1, 2), int)), ", 2]"),
        ("step", of_batch(lambda n: np.ones((n, 1), int)), ", 2]"),
        ("step", of_batch(lambda n: np.full((n, 2), 4)), "4: expected 0 to 3"),
        ("step", of_batch(lambda n: np.full((n, 2), -1)), "-1: expected 0 to 3"),
        ("backward_step", of_batch(lambda n: np.ones((2, n), int)), ", 2]"),
        ("backward_step", of_batch(lambda n: np.full((n, 2), 70_000)), "70000: expected 0 to 3"),
    ],
)
def test_answers_of_other_shapes_and_ranges_are_refused(method, answer, message):
    refused(made(changed(**{method: answer})), ValueError, f"`{method}` gave .*{message}")


@pytest.mark.parametrize("method", SHAPES)
@pytest.mark.parametrize("raised", [LookupError("mine"), KeyboardInterrupt(), StopIteration("mine")])
def test_what_methods_raise_is_raised(method, raised):
    def broken(self, *given):
        raise raised

    with pytest.raises(type(raised)):
        made(changed(**{method: broken}))()


@pytest.mark.parametrize("method", ["masks", "step", "backward_masks", "backward_step"])
@pytest.mark.parametrize(
    "raised, answer", [(LookupError, None), (TypeError, 3), (ValueError, np.zeros((1, 1, 1), dtype=int))]
)
def test_what_fails_in_training_is_raised_by_it_and_training_goes_on(method, raised, answer):
    rules, own = Grid(), getattr(Grid, method)
    broken = {"now": False}

    def asked(self, states, *moves):
        if not broken["now"]:
            return own(self, states, *moves)
        if raised is LookupError:
            raise LookupError("mine")
        return np.asarray(answer, dtype=bool) if "masks" in method and raised is ValueError else answer

    rules.__class__ = type("Broken", (Grid,), {method: asked})
    # The trainer also uses local search, which makes backward steps, so that all methods of the rules are
    # called.
    trainer = gfn.Trainer(
        gfn.Env(rules, **GRID), flat, gfn.Mlp((8,)), batch=4, sources=[gfn.LocalSearch(2)]
    ).fit(1)
    broken["now"] = True
    with pytest.raises(raised, match="mine" if raised is LookupError else f"`{method}` gave"):
        trainer.fit(1)
    broken["now"] = False
    assert np.isfinite(trainer.fit(1).history["loss"][-1])


def masks(self, states):
    return np.column_stack([states < 3, np.ones(len(states), dtype=bool)])


def at(states, *point):
    return (states == point).all(axis=1)


def mask_without(*point):
    def back(self, states):
        legal = states > 0
        legal[at(states, *point), 0] = False
        return legal

    return back


def round_step(self, states, moves):
    states[np.arange(len(states)), moves] = (states[np.arange(len(states)), moves] + 1) % 4
    return states


def round_back(self, states, moves):
    states[np.arange(len(states)), moves] = (states[np.arange(len(states)), moves] - 1) % 4
    return states


@pytest.mark.parametrize(
    "methods, message",
    [
        # The mistake in these rules: a backward move is missing in some states.
        (dict(backward_masks=mask_without(1, 0)), "backward move"),
        (dict(backward_masks=mask_without(2, 3)), "backward move"),
        # The mistake in these rules: there are too many backward moves. The first rules allow a backward move
        # from the initial state, the second rules allow all backward moves from all states.
        (dict(backward_masks=lambda self, states: (states > 0) | at(states, 0, 0)[:, None]), "backward"),
        (dict(backward_masks=lambda self, states: np.ones((len(states), 2), dtype=bool)), "gave -1"),
        # The mistake in the next three rules: a backward move doesn't undo the forward move. In the third of
        # these rules, forward moves don't change the state.
        (
            dict(backward_step=lambda self, states, moves: Grid.backward_step(self, states, 1 - moves)),
            "gave -1|restores|undo",
        ),
        (dict(backward_step=lambda self, states, moves: np.zeros_like(states)), "restores"),
        (dict(step=lambda self, states, moves: states), "changes the state|trajectory returns to"),
        # The mistake in these rules: all moves lead to the same state.
        (dict(step=lambda self, states, moves: Grid.step(self, states, 0 * moves)), "gave 4|backward|undo"),
        # The mistake in these rules: the states form a cycle.
        (
            dict(
                masks=lambda self, states: np.ones((len(states), 3), bool),
                step=round_step,
                backward_step=round_back,
            ),
            "trajectory returns to|that it has left",
        ),
        # The mistake in these rules: the legal moves of a state depend on the other states of the batch.
        (
            dict(masks=lambda self, states: masks(self, states) & (np.arange(len(states)) % 2 == 0)[:, None]),
            "other states of its batch",
        ),
        # The mistake in these rules: a state has no legal move and no exit.
        (
            dict(masks=lambda self, states: np.column_stack([states < 3, states.sum(axis=1) < 6])),
            "without any move and without the exit",
        ),
    ],
)
def test_environments_that_contradict_themselves_are_refused(methods, message):
    refused(made(changed(**methods)), ValueError, message)


def test_a_trainer_looks_again():
    class Turned(Grid):
        wrong = np.False_

        def backward_masks(self, states):
            return Grid.backward_masks(self, states) & (~self.wrong | (states.sum(axis=1) != 1))[:, None]

    rules = Turned()
    env = gfn.Env(rules, **GRID)
    rules.wrong = np.True_
    with pytest.raises(ValueError, match="backward move"):
        gfn.Trainer(env, flat, gfn.Mlp((8,))).fit(1)


class Duck:
    """Rules that aren't a subclass of `gfn.EnvRules`."""

    initial, masks, step = Grid.initial, Grid.masks, Grid.step
    backward_masks, backward_step = Grid.backward_masks, Grid.backward_step

    def __init__(self):
        self.ndim, self.height, self.asked = 2, 4, 0


def without(method):
    rules = Duck()
    kind = type("Lacking", (Duck,), {method: None})
    rules.__class__ = kind
    return rules


@pytest.mark.parametrize(
    "rules, message",
    [
        (Grid, "Grid"),
        (None, "rules"),
        (3, "int"),
        ("rules", "str"),
        (object(), "object"),
        (gfn.EnvRules(), "no method initial"),
    ],
)
def test_what_is_no_rules_is_refused(rules, message):
    refused(made(rules), TypeError, message)


@pytest.mark.parametrize("method", SHAPES)
def test_a_method_that_is_missing_is_named(method):
    refused(made(without(method)), TypeError, f"no method {method}")
    inherited = type("Inherited", (Grid,), {method: getattr(gfn.EnvRules, method)})()
    refused(made(inherited), TypeError, f"no method {method}")


@pytest.mark.parametrize(
    "wrong, right",
    [
        ("backwards_step", "backward_step"),
        ("Step", "step"),
        ("mask", "masks"),
        ("backward_mask", "backward_masks"),
        ("reversed", "reverse"),
        ("inital", "initial"),
    ],
)
def test_misspelt_methods_are_refused(wrong, right):
    refused(made(changed(**{wrong: always(None)})), TypeError, f"`{wrong}`.*`{right}` if that is meant")


def test_rules_need_no_class():
    assert made(Duck())().check().states == 16


@pytest.mark.parametrize(
    "settings, kind",
    [
        (dict(width=0), ValueError),
        (dict(width=-1), ValueError),
        (dict(width=2.0), TypeError),
        (dict(width="two"), TypeError),
        (dict(width=True), TypeError),
        (dict(width=3), ValueError),
        (dict(values=1), ValueError),
        (dict(values=65_537), ValueError),
        (dict(values=None), TypeError),
        (dict(values=2), ValueError),
        (dict(n_moves=0), ValueError),
        (dict(n_moves=-2), ValueError),
        (dict(n_moves=3), ValueError),
        (dict(n_moves=[2]), TypeError),
        (dict(n_backward_moves=0), ValueError),
        (dict(n_backward_moves=1), ValueError),
        (dict(n_backward_moves=3), ValueError),
        (dict(n_backward_moves="2"), TypeError),
        (dict(has_exit=False), ValueError),
        (dict(has_exit=1), TypeError),
        (dict(has_exit=None), TypeError),
    ],
)
def test_sizes_that_make_no_sense_are_refused(settings, kind):
    refused(made(Grid(), **settings), kind, "expected")


@pytest.mark.parametrize(
    "methods, kind, message",
    [
        (dict(reverse=of_batch(lambda n: np.zeros(n, int))), TypeError, "both methods, or neither"),
        (dict(backward_reverse=of_batch(lambda n: np.zeros(n, int))), TypeError, "both methods, or neither"),
        (
            dict(reverse=of_batch(lambda n: np.full(n, 2)), backward_reverse=lambda self, s, m: m),
            ValueError,
            "`reverse` gave 2: expected 0 to 1",
        ),
        (
            dict(reverse=of_batch(lambda n: np.zeros(n + 1, int)), backward_reverse=lambda self, s, m: m),
            ValueError,
            "`reverse` gave an array",
        ),
        (
            dict(reverse=lambda self, s, m: m, backward_reverse=of_batch(lambda n: np.full(n, -1))),
            ValueError,
            "`backward_reverse` gave -1",
        ),
        (
            dict(reverse=lambda self, s, m: m, backward_reverse=of_batch(lambda n: [0] * n)),
            TypeError,
            "`backward_reverse` gave a",
        ),
        (
            dict(reverse=lambda self, s, m: 1 - m, backward_reverse=lambda self, s, m: 1 - m),
            ValueError,
            "backward|undo|restores",
        ),
    ],
)
def test_reverses_that_undo_nothing_are_refused(methods, kind, message):
    refused(made(changed(**methods)), kind, message)


@pytest.mark.parametrize("policy", [gfn.GraphNet(), gfn.SequenceNet(), gfn.BoxNet()])
def test_policies_for_other_states_are_refused(policy):
    with pytest.raises((TypeError, ValueError)):
        gfn.Trainer(made(Grid())(), flat, policy)
