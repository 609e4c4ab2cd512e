"""Estimates the probability of each edge of a Bayesian network, from a table of numbers with a column per
variable.

python structures.py [FILE.csv]
"""

import argparse
from pathlib import Path

import gfn_rs as gfn
import numpy as np
import pandas

FIVE_PROTEINS = Path(__file__).resolve().parent.parent.parent / "examples" / "data" / "sachs_five.csv"

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("file", nargs="?", default=FIVE_PROTEINS)
arguments.add_argument("--steps", type=int, default=5000)
arguments.add_argument("--samples", type=int, default=2000)
arguments.add_argument("--seed", type=int, default=0)
given = arguments.parse_args()

frame = pandas.read_csv(given.file)
env = gfn.BayesianStructure(frame.columns)
# The reward standardises each column, so the units of the data don't matter.
reward = gfn.StructureReward(frame)

trainer = gfn.Trainer(
    env,
    reward,
    # log R is a sum over variables. A single wide layer learns it in fewer steps than two narrow layers.
    gfn.Mlp((1024,), backward="uniform"),
    gfn.ModifiedDetailedBalance(),
    batch=64,
    adam=gfn.Adam(lr=2e-2, schedule=gfn.Linear(1, 0, given.steps)),
    # A few graphs have almost all of the probability. To find these graphs, half of the actions are random at
    # first, and a replay buffer repeats the best graphs.
    exploration=gfn.Exploration(epsilon=gfn.Linear(0.5, 0, max(given.steps // 2, 1))),
    sources=[gfn.Replay(10_000, draw="weighted_ranks")],
    seed=given.seed,
)
trainer.fit(given.steps)

found = gfn.structure_marginals(trainer.sample(given.samples), names=frame.columns)
print(f"probability of each edge, from the row to the column, among {given.samples} samples:")
print(found.frame().round(2).to_string())
if len(frame.columns) <= 14:
    # The sum over all graphs needs no training.
    exact_edges = gfn.edge_marginals(env, reward).edge
    off = np.sqrt(((found.edge - exact_edges) ** 2).mean())
    print(f"off the exact ones by {off:.3f} (root mean square)")
if len(frame.columns) <= 5:
    # Five variables have only 29,281 graphs, so the distribution of graphs is compared, too.
    exact = trainer.exact()
    print(f"total variation over {exact.n_states} graphs: {exact.tv:.3f}")
