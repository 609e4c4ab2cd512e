#!/usr/bin/env python3
"""Trains on every enumerable environment of the gym with default settings, and fails if an exact total
variation is above its bound. This detects defaults that stop working.

  check_defaults.py [NAME ...] [--steps N]

The names select rows of the table; by default all rows are run. Each row is trained for 2,000 steps unless
`--steps` is given. The script needs the Python package (`pip install ./python`). It takes minutes, so it
isn't part of `.ci/run`.

A bound is about twice the result of one seed, and at least 0.01. A row without a bound hasn't been measured
yet, and is only printed.
"""

import argparse
import sys
import time

import gfn_rs as gfn
import numpy as np


def edges(graphs):
    return graphs.n_edges / 2


def turns(nodes):
    """Returns the log-rewards of paths in a binary tree. A log-reward is half of the number of left turns."""
    return 0.5 * (nodes == 1).sum(axis=1)


def couplings(n):
    ring = np.roll(np.eye(n), 1, axis=1)
    return 0.5 * (ring + ring.T)


def samples(n):
    """Returns 100 observations of a chain of `n` Gaussian variables."""
    noise = np.random.default_rng(0).normal(size=(100, n))
    return np.cumsum(noise, axis=1)


SPECIES = ["ACGTAC", "ACGTTC", "TCGTTC", "TCGAAC", "GCGAAC"]
BITS = ["00001111", "11110000"]

# Each row has an environment, a reward, a network with default settings, and the bound on total variation
# after 2,000 steps. The bound is None if it is unknown.
ROWS = {
    "ring": (gfn.Ring(3), gfn.RingReward(), gfn.GraphNet(), None),
    "triangle": (gfn.Triangle(3), gfn.TriangleReward(), gfn.GraphNet(), None),
    "coloured graphs": (gfn.ColoredGraphs(4), gfn.ColoredGraphReward(), gfn.GraphNet(), None),
    "graph building": (gfn.GraphBuilding(5), edges, gfn.GraphNet(), None),
    "molecules": (gfn.Molecules(3), gfn.MoleculeReward(), gfn.GraphNet(), None),
    "fragments": (gfn.Fragments(2), gfn.MoleculeReward(), gfn.GraphNet(), None),
    "grid": (gfn.HyperGrid(2, 8), gfn.HyperGridReward(), gfn.Mlp(), 0.01),
    "words": (gfn.BitSequence(2, 8), gfn.HammingReward(BITS), gfn.Mlp(), 0.01),
    "words, sequence": (gfn.BitSequence(2, 8), gfn.HammingReward(BITS), gfn.SequenceNet(), None),
    "words, either end": (gfn.PrependAppendBitSequence(2, 8), gfn.HammingReward(BITS), gfn.Mlp(), None),
    "words, any order": (gfn.NonAutoregressiveBitSequence(2, 8), gfn.HammingReward(BITS), gfn.Mlp(), None),
    "spins": (gfn.DiscreteEbm(6), gfn.IsingReward(couplings(6)), gfn.Mlp(), 0.02),
    "sets": (gfn.SetAddition(8, 4), gfn.WeightReward(1.0, [1, 2, 3, 4, 5, 6, 7, 8]), gfn.Mlp(), 0.01),
    "binary tree": (gfn.PerfectBinaryTree(6), turns, gfn.Mlp(), 0.01),
    "phylogeny": (gfn.PhyloTree(5), gfn.ParsimonyReward(SPECIES, 10.0), gfn.Mlp(), None),
    "toy": (gfn.ToyDag(), gfn.ToyReward([1, 2, 3, 4, 5, 6]), gfn.Mlp(), 0.01),
    "structures": (gfn.BayesianStructure(3), gfn.StructureReward(samples(3)), gfn.Mlp(), 0.25),
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *ROWS], metavar="NAME", help="rows, all by default")
    parser.add_argument("--steps", type=int, default=2_000)
    options = parser.parse_args()
    above = []
    print("| environment | states | total variation | at most | s |\n|---|---|---|---|---|", flush=True)
    for name in options.names or ROWS:
        env, reward, policy, most = ROWS[name]
        began = time.monotonic()
        exact = gfn.Trainer(env, reward, policy).fit(options.steps, progress=False).exact()
        if most is not None and not exact.tv <= most:
            above.append(name)
        print(
            f"| {name} | {exact.n_states} | {exact.tv:.4f} | {'-' if most is None else most} | "
            f"{time.monotonic() - began:.0f} |",
            flush=True,
        )
    if above:
        sys.exit("the total variation is above its bound for: " + ", ".join(above))


if __name__ == "__main__":
    main()
