"""Numbers of threads, which are set once in a process."""

import subprocess
import sys

import pytest

RING = "gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=8), batch=4).fit(1)"


def run(code):
    return subprocess.run([sys.executable, "-c", "import gfn_rs as gfn, torch\n" + code], capture_output=True, text=True)


@pytest.mark.parametrize(
    "before, threads",
    [("gfn.set_threads(2)", 2), ("gfn.set_threads(1)", 1), ("torch.set_num_threads(3)", 3)],
)
def test_a_number_that_was_chosen_holds(before, threads):
    done = run(f"{before}\n{RING}\nprint(torch.get_num_threads())")
    assert done.stdout.split() == [str(threads)], done.stderr


def test_a_second_number_is_refused():
    done = run(f"{RING}\ngfn.set_threads(2)")
    assert "ValueError: threads is 2" in done.stderr
    assert "ValueError: threads is 0" in run("gfn.set_threads(0)").stderr
    assert "ValueError: threads is -1" in run("gfn.set_threads(-1)").stderr
    assert "TypeError: threads is 'all'" in run("gfn.set_threads('all')").stderr
