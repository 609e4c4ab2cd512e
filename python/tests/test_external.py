"""Tests of `ExternalReward`, whose program scores molecules."""

import sys
from pathlib import Path

import gfn_rs as gfn
import numpy as np
import pytest

SCORER = Path(__file__).resolve().parent.parent.parent / "examples" / "heteroatom_scorer.py"


def trainer(reward, **settings):
    env = gfn.Molecules(3, elements=["C", "N", "O"], charges=False)
    return gfn.Trainer(env, reward, gfn.GraphNet(layers=2, embedding=16), batch=32, **settings)


def program(tmp_path, body):
    """Returns the command of a program that runs `body` for each input line."""
    path = tmp_path / "scorer.py"
    lines = "\n    ".join(body.splitlines())
    path.write_text(
        f"import sys, time\nfor line in sys.stdin:\n    line = line.strip()\n    {lines}\n    "
        f"sys.stdout.flush()\n"
    )
    return [sys.executable, str(path)]


def test_a_program_is_the_same_reward_as_the_library_s():
    """Compares a program with the library's own score, the share of atoms that aren't carbon. The program
    writes at least six digits, so runs and targets must be equal up to rounding."""
    ours = trainer(gfn.MoleculeReward(beta=2.0), seed=3).fit(10)
    program = trainer(gfn.ExternalReward([sys.executable, str(SCORER)], beta=2.0), seed=3).fit(10)
    assert np.allclose(program.history["loss"], ours.history["loss"], rtol=1e-6)
    ours, program = ours.exact(), program.exact()
    assert np.allclose(program.log_rewards, ours.log_rewards, atol=1e-9) and program.tv == pytest.approx(
        ours.tv, abs=1e-6
    )
    # As a negative control, a reward with another `beta` must differ.
    other = trainer(gfn.ExternalReward([sys.executable, str(SCORER)], beta=1.0)).exact()
    assert not np.allclose(other.log_rewards, ours.log_rewards, atol=0.01)


def test_a_floor_holds(tmp_path):
    rewards = trainer(gfn.ExternalReward(program(tmp_path, "print(0)"), floor=0.5)).sample_with_rewards(8)[1]
    assert np.allclose(rewards, np.log(0.5))


@pytest.mark.parametrize(
    "body, settings, message",
    [
        ("sys.exit(3)", {}, "ended"),
        ("print('good')", {}, "good"),
        ("print(float('nan'))", {}, "NaN|nan"),
        ("print(-1.0)", {}, "-1"),
        ("print(float('inf'))", {}, "inf"),
        ("time.sleep(60)", {"timeout": 0.3}, "0.3|300"),
        ("print(1)\nprint(2)", {}, "line"),
    ],
    ids=["ends", "no number", "NaN", "negative", "infinite", "late", "too many lines"],
)
def test_programs_that_fail(tmp_path, body, settings, message):
    it = trainer(gfn.ExternalReward(program(tmp_path, body), **settings))
    with pytest.raises((RuntimeError, ValueError, FloatingPointError), match=f"(?s)({message})"):
        it.fit(3)
    assert it.steps_done < 3


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: gfn.ExternalReward("python3 scorer.py"), TypeError, "a list"),
        (lambda: trainer(gfn.ExternalReward([])), ValueError, "command"),
        (lambda: trainer(gfn.ExternalReward(["true"], timeout=0.0)), ValueError, "timeout|patience"),
        (lambda: trainer(gfn.ExternalReward(["true"], timeout=-1.0)), ValueError, "timeout"),
        (
            lambda: trainer(gfn.ExternalReward(["no such program"])).fit(1),
            (OSError, RuntimeError, ValueError),
            "no such program",
        ),
        (
            lambda: gfn.Trainer(gfn.Ring(3), gfn.ExternalReward(["true"]), gfn.GraphNet()),
            TypeError,
            "molecules",
        ),
    ],
)
def test_bad_programs_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
