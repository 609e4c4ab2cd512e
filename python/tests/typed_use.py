"""Programs of users with type annotations, which `test_typing.py` checks by mypy in strict mode. They aren't
run."""

import copy
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import gfn_rs as gfn
import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

Vectors = npt.NDArray[np.int64]
Points = npt.NDArray[np.float64]


def balance(scores: gfn.Scores) -> torch.Tensor:
    zeros = scores.log_pf.new_zeros(len(scores.log_reward))
    sums = zeros.index_add(0, scores.trajectory, scores.log_pf - scores.log_pb)
    return torch.nn.functional.huber_loss(scores.log_z + sums, scores.log_reward)


def train_on_a_grid() -> None:
    env = gfn.HyperGrid(2, 8)
    assert_type(env.initial(3), Vectors)
    step = env.step(env.initial(3), env.moves(env.initial(3)).draw(np.random.default_rng(0)))
    assert_type(step.states, Vectors)
    objective = gfn.OwnObjective(balance)
    trainer = gfn.Trainer(env, gfn.HyperGridReward(), gfn.Mlp((128, 128)), objective, batch=32)
    assert_type(trainer.fit(300).sample(5), Vectors)
    print(trainer.sample(5).sum(), trainer.step()["loss"], trainer.history["loss"][-1])
    points, log_rewards = trainer.sample_with_rewards(5)
    assert_type(points, Vectors)
    assert_type(log_rewards, npt.NDArray[np.float64])
    assert_type(trainer.exact().states, Vectors)
    assert_type(trainer.evaluate(100).top_k(3).states, Vectors)
    sampler = gfn.Sampler(env, trainer, epsilon=0.1)
    paths = sampler.sample(4, seed=1)
    assert_type(paths.terminal, Vectors)
    assert_type(paths.to_transitions().next_states, Vectors)
    network = gfn.Mlp((64,)).build(env, flow=True)
    assert_type(network(paths.states).log_pf, torch.Tensor)
    optimizer = torch.optim.Adam(trainer.parameters())
    batch = trainer.batch()
    scores = trainer.score(batch)
    loss = trainer.loss(scores)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    trainer.advance(batch, scores)


def train_with_conditions() -> None:
    def reward(points: Vectors, conditions: torch.Tensor) -> Points:
        beta: Points = conditions[:, 0].numpy()
        return beta * (points[:, 0] - points[:, 1]) / 4

    def draw(n: int, rng: np.random.Generator) -> torch.Tensor:
        return torch.as_tensor(rng.uniform(0.5, 4.0, size=(n, 1)))

    env = gfn.HyperGrid(2, 8)
    trainer = gfn.Trainer(env, reward, gfn.Mlp(), conditions=gfn.Conditions(draw, 1)).fit(10)
    print(trainer.exact(condition=torch.tensor([0.5])).tv)


class Capacity(gfn.VectorRules):
    def restrict(self, states: Vectors, moves: gfn.VectorMoves) -> npt.NDArray[np.bool_]:
        return np.asarray((states[moves.state] == moves.after[:, None]).sum(axis=1) < 3)


def fill_bins() -> gfn.Trainer[Vectors]:
    changes = np.array([(item, 0, bin) for item in range(6) for bin in (1, 2, 3)])
    env = gfn.VectorEnv(width=6, values=4, changes=changes, rules=Capacity())
    return gfn.Trainer(env, lambda bins: -bins.var(axis=1), gfn.Mlp()).fit(
        10, callback=lambda trainer, record: trainer.sample(1).sum() > 3
    )


class Count(gfn.TensorRules):
    def initial(self) -> torch.Tensor:
        return torch.tensor([0])

    def masks(self, states: torch.Tensor) -> torch.Tensor:
        return states < 3

    def step(self, states: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        return states + 1

    def backward_masks(self, states: torch.Tensor) -> torch.Tensor:
        return states > 0

    def backward_step(self, states: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        return states - 1


def count() -> gfn.Trainer[Vectors]:
    reward = gfn.TensorReward(lambda states: states.sum(1).double())
    return gfn.Trainer(gfn.TensorEnv(Count(), width=1, values=5, n_moves=1), reward, gfn.Mlp()).fit(10)


def log_qed(molecules: gfn.Graphs) -> list[float]:
    return [float(len(smiles)) for smiles in molecules.smiles]


def tune_molecules(smiles: list[str]) -> None:
    read, report, rows = gfn.read_molecules(smiles)
    env = gfn.Fragments.from_data(read, max_fragments=3, n=40)
    known = [each for each, fits in zip(read, env.accepts(read)) if fits]
    data = gfn.Data(known, share=1.0)
    constant = gfn.MoleculeReward("constant")
    prior = gfn.Trainer(env, constant, gfn.GraphNet(), gfn.MaximumLikelihood(), sources=[data]).fit(100)
    with ProcessPoolExecutor(2) as pool:
        reward = gfn.CachedReward(gfn.ParallelReward(log_qed, pool))
        objective = gfn.RelativeTrajectoryBalance(prior)
        trainer = gfn.Trainer(env, reward, copy.deepcopy(prior.network), objective, batch=32)
        molecules, log_rewards = trainer.fit(50).sample_with_rewards(200)
    assert_type(molecules, gfn.Graphs)
    gfn.Ranking(molecules, log_rewards).diverse(12).write("out")


def learn_structures(frame: Any) -> Points:
    trainer = gfn.Trainer(
        gfn.BayesianStructure(5),
        gfn.StructureReward(frame),
        gfn.Mlp((128, 128), backward="uniform"),
        gfn.ModifiedDetailedBalance(),
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 1000)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.5, 0, 500)),
        sources=[gfn.Replay(10_000)],
    )
    exact = trainer.exact()
    assert_type(exact.states, npt.NDArray[np.bool_])
    return np.tensordot(exact.target, exact.states.astype(float), axes=1)


class NoTriangle(gfn.GraphRules):
    def restrict(self, graphs: gfn.Graphs, moves: gfn.Moves) -> npt.NDArray[np.bool_]:
        return np.asarray(graphs.n_edges[moves.graph] < 5)


class Gnn(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.node = torch.nn.Embedding(1, width)

    def forward(self, batch: gfn.GraphBatch) -> tuple[torch.Tensor, torch.Tensor]:
        nodes = self.node(batch.node_classes)
        return nodes, nodes.new_zeros(batch.n_graphs, nodes.shape[1])


def train_on_graphs(device: str) -> list[Any]:
    env = gfn.GraphEnv([gfn.AddNode(attached=True), gfn.AddEdge()], max_nodes=5, rules=NoTriangle())
    policy = gfn.GraphModule(Gnn(32), node_width=32, graph_width=32)
    trainer = gfn.Trainer(env, lambda graphs: 0.5 * graphs.n_edges, policy, device=device).fit(20)
    trainer.resume("checkpoint").save("other")
    assert_type(trainer.sample(5), gfn.Graphs)
    box = gfn.Trainer(gfn.Box(), gfn.BoxReward(), gfn.BoxNet())
    assert_type(box.sample(3), Points)
    loaded: gfn.Network = gfn.load("checkpoint")
    print(gfn.Sampler(env, loaded).sample(3).terminal.n_edges, describe(env))
    return trainer.sample(5).networkx()


def describe(env: gfn.Environment) -> str:
    """Environments need no type argument in annotations, also in strict mode."""
    return f"{env!r} has {env.n_instances} initial states"
