"""Computes a reward that takes 10 ms per object in parallel workers: a pool of processes, Ray, Dask or MPI.

    python executors.py --engine processes --workers 8
    python executors.py --engine ray                       # pip install ray
    python executors.py --engine dask                      # pip install distributed
    mpirun -n 9 python -m mpi4py.futures executors.py --engine mpi

With `--actors`, the workers sample objects, too, and training doesn't wait for the workers.
"""

import argparse
import multiprocessing
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

import numpy as np

import gfn_rs as gfn


def reward(points):
    time.sleep(0.01 * len(points))
    return -0.3 * np.abs(points - 3).sum(axis=1)


def make(seed, **changes):
    """Returns a trainer. The main process calls this function for the trainer that it trains. With
    `--actors`, each worker also calls it, for a trainer that only samples objects."""
    return gfn.Trainer(
        gfn.HyperGrid(2, 8), changes.pop("reward", reward), gfn.Mlp((32,)), batch=128, seed=seed, **changes
    )


class RayExecutor(Executor):
    """An executor that runs calls as tasks of Ray. Ray repeats a task if its worker ends."""

    def __init__(self, **options):
        import ray

        ray.init(**options)
        self._ray, self._known = ray, {}

    def submit(self, function, /, *given, **named):
        # Ray sends a function to the workers when `remote` is called. The result is stored, so that each
        # function is sent once.
        if function not in self._known:
            self._known[function] = self._ray.remote(function)
        return self._known[function].remote(*given, **named).future()

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._ray.shutdown()


@contextmanager
def engine(name, workers):
    if name == "processes":
        # New processes are spawned, because the threads of libtorch don't survive a fork.
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as executor:
            yield executor
    elif name == "ray":
        with RayExecutor(num_cpus=workers) as executor:
            yield executor
    elif name == "dask":
        from distributed import Client

        # This is a cluster on the local machine. For an existing cluster, use Client("tcp://scheduler:8786"),
        # or a cluster of dask-jobqueue or dask-kubernetes.
        with Client(n_workers=workers, threads_per_worker=1) as client:
            yield client.get_executor()
    else:
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as executor:
            yield executor


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--engine", choices=["processes", "ray", "dask", "mpi"], default="processes")
    flags.add_argument("--workers", type=int, default=2)
    flags.add_argument("--actors", action="store_true", help="workers draw, too")
    flags.add_argument("--steps", type=int, default=100)
    asked = flags.parse_args()
    with engine(asked.engine, asked.workers) as executor:
        replay = gfn.Replay(10_000, share=0.5, after=5)
        actors = gfn.Actors(make, executor, tasks=asked.workers) if asked.actors else None
        if actors is not None:
            trainer = make(0, sources=[gfn.FreshSource(actors), replay])
        else:
            trainer = make(0, reward=gfn.ParallelReward(reward, executor), sources=[replay])
        # The first step isn't measured, because workers import torch in it.
        trainer.fit(1)
        before, began = trainer.reward_calls, time.perf_counter()
        trainer.fit(asked.steps)
        took = time.perf_counter() - began
        exact = trainer.exact()
        if actors is not None:
            actors.close()
    calls = trainer.reward_calls - before
    print(
        f"{calls} objects in {took:.1f} s: {calls / took:.0f} per second, of {100 * asked.workers} that the "
        f"reward allows"
    )
    if actors is not None:
        print(
            f"received {actors.received}, used {actors.used}, too old {actors.stale}, lost calls "
            f"{actors.lost}"
        )
    print(f"total variation after {asked.steps} steps: {exact.tv:.3f}")


if __name__ == "__main__":
    main()
