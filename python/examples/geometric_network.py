"""Trains a custom network with GINEConv of PyTorch Geometric, on graphs of two colours up to isomorphism.

python geometric_network.py
"""

import argparse

import gfn_rs as gfn
import torch
from torch_geometric.nn import GINEConv, global_add_pool

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--steps", type=int, default=1000)
arguments.add_argument("--nodes", type=int, default=4)
arguments.add_argument("--width", type=int, default=64)
arguments.add_argument("--layers", type=int, default=2)
arguments.add_argument("--batch", type=int, default=64)
arguments.add_argument("--lr", type=float, default=3e-3)
arguments.add_argument("--seed", type=int, default=0)
given = arguments.parse_args()


class Gine(torch.nn.Module):
    """A network of several GINEConv layers with residual connections. The network has no batch normalisation,
    because the output for a state must not depend on the other states of the batch."""

    def __init__(self, width, layers):
        super().__init__()
        self.node, self.edge = torch.nn.Embedding(2, width), torch.nn.Embedding(1, width)
        self.layers = torch.nn.ModuleList(
            GINEConv(self.perceptron(width), train_eps=True) for _ in range(layers)
        )

    @staticmethod
    def perceptron(width):
        return torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
        )

    def forward(self, batch):
        x, edges = self.node(batch.node_classes), self.edge(batch.edge_classes)
        for layer in self.layers:
            x = x + layer(x, batch.edge_index, edges)
        return x, global_add_pool(x, batch.batch, size=batch.n_graphs)


# The initial weights of the module come from torch's random numbers, so torch needs a seed, too. The setting
# `seed` of the trainer determines only the initial weights that the library adds, those of the heads.
torch.manual_seed(given.seed)
policy = gfn.GraphModule(Gine(given.width, given.layers), given.width, given.width, pair_walks=3)
trainer = gfn.Trainer(
    gfn.ColoredGraphs(given.nodes),
    gfn.ColoredGraphReward(),
    policy,
    batch=given.batch,
    adam=gfn.Adam(lr=given.lr, schedule=gfn.Linear(1, 0, given.steps)),
    seed=given.seed,
)

print(f"{trainer.n_parameters} parameters; total variation before: {trainer.exact().tv:.4f}")
trainer.fit(given.steps)
exact, seconds = trainer.exact(), trainer.history["seconds"].sum()
print(
    f"total variation after {given.steps} steps ({seconds:.0f} s): {exact.tv:.4f}, over {exact.n_states} "
    f"states"
)
