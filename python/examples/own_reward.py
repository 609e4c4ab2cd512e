"""Trains with a custom reward: on connected graphs of three and four nodes, up to isomorphism, with higher
rewards for graphs with triangles.

python own_reward.py
"""

import argparse

import gfn_rs as gfn
import networkx
import numpy as np

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--steps", type=int, default=600)
arguments.add_argument("--seed", type=int, default=0)
given = arguments.parse_args()


def triangles(graphs):
    """Returns log R of each graph, which is a third of the graph's number of triangles."""
    return np.array([sum(networkx.triangles(graph).values()) / 9 for graph in graphs.networkx()])


env = gfn.GraphBuilding(max_nodes=4, min_nodes=3, attached=True)
trainer = gfn.Trainer(
    env,
    triangles,
    gfn.GraphNet(embedding=64, pair_walks=3),
    batch=64,
    # The number of steps is known, so the learning rate can decrease to 0 at the end. The policy then ends
    # closer to the target than with the default schedule.
    adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, given.steps)),
    seed=given.seed,
)

print(f"total variation before: {trainer.exact().tv:.3f}")
trainer.fit(given.steps)

# The exact probability of every graph under the policy, and its target probability. These numbers aren't
# estimates.
exact = trainer.exact()
finished = np.flatnonzero(np.isfinite(exact.log_rewards))
print(f"total variation after {given.steps} steps: {exact.tv:.3f}, over {len(finished)} graphs")
print("graph6   log R   policy   target")
for k in finished[np.argsort(-exact.target[finished])][:5]:
    print(
        f"{exact.states[int(k)].graph6()[0]:6}  {exact.log_rewards[k]:6.2f}  {exact.probs[k]:7.3f}  "
        f"{exact.target[k]:7.3f}"
    )
