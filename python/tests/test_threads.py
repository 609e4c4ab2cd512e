"""Tests of the number of threads, which is set once per process."""

import subprocess
import sys

import pytest

RING = "gfn.Trainer(gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(embedding=8), batch=4).fit(1)"


def run(code):
    return subprocess.run(
        [sys.executable, "-c", "import gfn_rs as gfn, torch\n" + code],
        capture_output=True,
        text=True,
        timeout=240,
    )


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


def test_a_daemon_thread_at_the_end_of_python_is_left_quietly():
    done = run(
        """
import numpy as np, threading, time
begun = threading.Event()
def reward(states):
    begun.set()
    time.sleep(0.3)
    return np.zeros(len(states))
trainer = gfn.Trainer(gfn.HyperGrid(2, 6), reward, gfn.Mlp((8,)), batch=8)
threading.Thread(target=lambda: trainer.fit(10**7), daemon=True).start()
begun.wait()
print("leaving")
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_any_other_thread_works_to_its_end():
    done = run(
        f"import threading\nthreading.Thread(target=lambda: print({RING}.fit(200).steps_done)).start()"
    )
    assert (done.returncode, done.stdout) == (0, "201\n"), done.stderr


@pytest.mark.parametrize("before", ["gfn.set_threads(2)", ""])
def test_a_fork_of_a_process_that_has_trained_trains(before):
    """Trains in a forked process, in which the threads of the parent's pool don't exist. The reward is a
    reward of graphs, because such rewards use the pool even if the pool has only one thread."""
    done = run(
        f"""
import os, time
{before}
trainer = {RING.replace("batch=4", "batch=4096")}
child = os.fork()
if child == 0:
    trainer.fit(1).sample(5000)
    gfn.Molecules(5).check()
    os._exit(7)
for _ in range(600):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        break
    time.sleep(0.05)
else:
    os.kill(child, 9)
print("ended with", os.waitstatus_to_exitcode(status) if ended else None)
"""
    )
    assert done.stdout == "ended with 7\n", done.stderr


def test_other_threads_run_while_a_trainer_is_made():
    done = run("""
import numpy as np, threading, time
ticks, made = 0, threading.Event()
def tick():
    global ticks
    while not made.is_set():
        ticks += 1
        time.sleep(0.01)
data = np.random.default_rng(0).normal(size=(2000, 9))
thread = threading.Thread(target=tick)
thread.start()
began, before = time.perf_counter(), ticks
gfn.Trainer(
    gfn.BayesianStructure(9),
    gfn.StructureReward(data, score="bde", bins=3),
    gfn.Mlp((8,), backward="uniform"),
    gfn.ModifiedDetailedBalance(),
    batch=4,
)
seconds, ticked = time.perf_counter() - began, ticks - before
made.set()
thread.join()
print(seconds, ticked)
""")
    seconds, ticked = map(float, done.stdout.split())
    assert ticked > 10 * seconds, (seconds, ticked)
