"""Trains on the hard-core lattice gas: particles on a square lattice, of which no two are neighbours. The
moves of the environment and the reward are functions of torch tensors, so that states can stay on a GPU.

python tensor_environment.py
"""

import argparse

import gfn_rs as gfn
import torch

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--steps", type=int, default=1000)
arguments.add_argument("--side", type=int, default=4, help="the number of rows and columns of the lattice")
arguments.add_argument("--device", default="cpu")
given = arguments.parse_args()


class LatticeGas(gfn.TensorRules):
    """Move k puts a particle on site k, and backward move k takes it away. A site is an entry of a state: 1
    if a particle is there, otherwise 0."""

    def __init__(self, side):
        self.side = side

    def initial(self):
        return torch.zeros(self.side**2, dtype=torch.int64)

    def masks(self, states):
        lattice = states.view(-1, self.side, self.side)
        near = torch.nn.functional.pad(lattice, (1, 1, 1, 1))
        taken = lattice + near[:, 2:, 1:-1] + near[:, :-2, 1:-1] + near[:, 1:-1, 2:] + near[:, 1:-1, :-2]
        return (taken == 0).flatten(1)

    def step(self, states, moves):
        return states.scatter(1, moves[:, None], 1)

    def backward_masks(self, states):
        return states == 1

    def backward_step(self, states, moves):
        return states.scatter(1, moves[:, None], 0)


def log_reward(states):
    """Returns log R of each state: half of the number of particles."""
    return 0.5 * states.sum(1)


env = gfn.TensorEnv(LatticeGas(given.side), width=given.side**2, values=2, n_moves=given.side**2)
trainer = gfn.Trainer(
    env,
    gfn.TensorReward(log_reward),
    gfn.Mlp((128, 128)),
    batch=64,
    adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, given.steps)),
    device=given.device,
)
print(f"total variation before: {trainer.exact().tv:.3f}")
exact = trainer.fit(given.steps).exact()
print(f"total variation after {given.steps} steps: {exact.tv:.3f}, over {exact.n_states} states")
