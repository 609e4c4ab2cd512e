"""Tests of policies around custom torch modules."""

import gfn_rs as gfn
import numpy as np
import pytest
import torch


class Messages(torch.nn.Module):
    """A graph module for nodes of two classes: two rounds of message passing, written in plain torch."""

    def __init__(self, width=64, classes=2):
        super().__init__()
        self.color = torch.nn.Embedding(classes, width)
        layers = (
            torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
            for _ in range(2)
        )
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, batch):
        x = self.color(batch.node_classes)
        source, target = batch.edge_index
        for layer in self.layers:
            x = x + layer(x + torch.zeros_like(x).index_add(0, target, x[source]))
        return x, x.new_zeros(batch.n_graphs, x.shape[1]).index_add(0, batch.batch, x)


def module_trainer(module, env=gfn.ColoredGraphs(3), **changes):
    policy = gfn.GraphModule(module, 64, 64, pair_walks=changes.pop("pair_walks", None))
    return gfn.Trainer(
        env,
        changes.pop("reward", gfn.ColoredGraphReward()),
        policy,
        **{"batch": 64, "adam": gfn.Adam(lr=2e-3), **changes},
    )


def test_a_module_learns_and_its_parameters_are_trained():
    torch.manual_seed(0)
    module = Messages()
    start = {name: tensor.detach().clone() for name, tensor in module.named_parameters()}
    trainer = module_trainer(module, adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, 600)))
    named = dict(trainer.named_parameters())
    assert {f"torso.{name}" for name in start} < set(named)
    before = trainer.exact().tv
    exact = trainer.fit(600).exact()
    assert exact.tv < 0.03 and exact.tv < before / 5, (before, exact.tv)
    assert all(not torch.equal(start[name], tensor) for name, tensor in module.named_parameters())


def test_a_module_s_checkpoint_goes_on(tmp_path):
    def fresh():
        torch.manual_seed(0)
        return module_trainer(Messages())

    whole, half = fresh().fit(8), fresh().fit(4)
    half.save(tmp_path / "half")
    torch.manual_seed(1)
    other = module_trainer(Messages()).resume(tmp_path / "half").fit(4)
    assert other.history["loss"].tolist() == whole.history["loss"].tolist()


class Half(Messages):
    """The module `Messages` with layers in half precision, and with outputs multiplied by `scale`."""

    def __init__(self, kind, scale):
        super().__init__()
        self.kind, self.scale = kind, scale

    def forward(self, batch):
        with torch.autocast("cpu", dtype=self.kind):
            nodes, _ = super().forward(batch)
        nodes = self.scale * nodes.float()
        return nodes, nodes.new_zeros(batch.n_graphs, nodes.shape[1]).index_add(0, batch.batch, nodes)


@pytest.mark.parametrize(
    "kind, scale", [(torch.bfloat16, 1.0), (torch.bfloat16, 300.0), (torch.float16, 1.0)]
)
def test_layers_may_compute_in_half_precision(kind, scale):
    """Trains a module with layers in half precision. The results for a graph are rounded in the same way in
    every batch, so the trainer's check that results don't depend on the batch must pass."""
    torch.manual_seed(0)
    it = module_trainer(Half(kind, scale), env=gfn.ColoredGraphs(4))
    assert it.fit(2).steps_done == 2 and it.exact().n_states > 10


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_parameters_in_half_precision_are_refused(kind):
    with pytest.raises(ValueError, match="the same kind and device for all"):
        module_trainer(Messages().to(kind))


def test_layers_of_pytorch_geometric_work_unchanged():
    from torch_geometric import nn

    class Gine(torch.nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.node, self.edge = torch.nn.Embedding(2, width), torch.nn.Embedding(1, width)
            mlp = lambda: torch.nn.Sequential(
                torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
            )  # noqa: E731
            self.layers = torch.nn.ModuleList(nn.GINEConv(mlp()) for _ in range(2))

        def forward(self, batch):
            x, edges = self.node(batch.node_classes), self.edge(batch.edge_classes)
            for layer in self.layers:
                x = x + layer(x, batch.edge_index, edges)
            return x, nn.global_add_pool(x, batch.batch, size=batch.n_graphs)

    torch.manual_seed(0)
    trainer = module_trainer(Gine(), pair_walks=3)
    assert trainer.fit(5).exact().n_states > 10


def test_modules_that_see_labels_are_refused():
    class Labels(Messages):
        def forward(self, batch):
            nodes, graphs = super().forward(batch)
            return nodes + batch.node_labels[:, None], graphs

    with pytest.raises(ValueError, match="label"):
        module_trainer(Labels())


@pytest.mark.parametrize(
    "broken, kind, message",
    [
        (lambda batch, x, g: x, TypeError, "pair"),
        (lambda batch, x, g: (x, g, g), ValueError, "3 values"),
        (lambda batch, x, g: (x, "graphs"), TypeError, "torch.Tensor"),
        (lambda batch, x, g: (x[:, :3], g), ValueError, "shape"),
        (lambda batch, x, g: (x, g[:0]), ValueError, "shape"),
        (lambda batch, x, g: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_what_a_module_gives_is_checked(broken, kind, message):
    class Broken(Messages):
        def forward(self, batch):
            return broken(batch, *super().forward(batch))

    with pytest.raises(kind, match=message):
        module_trainer(Broken()).fit(1)


def test_not_a_number_in_a_module_ends_the_step():
    class Poisoned(Messages):
        poison = False

        def forward(self, batch):
            nodes, graphs = super().forward(batch)
            return (nodes * float("nan"), graphs) if self.poison else (nodes, graphs)

    module = Poisoned()
    trainer = module_trainer(module).fit(1)
    module.poison = True
    with pytest.raises((FloatingPointError, RuntimeError, ValueError)):
        trainer.fit(1)
    module.poison = False
    assert np.isfinite(trainer.fit(1).history["loss"][-1])


def test_double_precision_needs_a_module_of_it():
    with pytest.raises(ValueError, match="Double"):
        module_trainer(Messages(), double=True)
    module_trainer(Messages().double(), double=True)


class Normed(Messages):
    def __init__(self, layer):
        super().__init__()
        self.norm = layer

    def forward(self, batch):
        nodes, graphs = super().forward(batch)
        return self.norm(nodes), graphs


@pytest.mark.parametrize(
    "layer",
    [torch.nn.BatchNorm1d(64), torch.nn.BatchNorm1d(64, track_running_stats=False), torch.nn.Dropout(0.5)],
)
def test_states_that_depend_on_others_or_on_chance_are_refused(layer):
    with pytest.raises(ValueError, match="probabilities that a policy gives a state|equivariant"):
        module_trainer(Normed(layer)).fit(1)


@pytest.mark.parametrize(
    "layer", [torch.nn.BatchNorm1d(64).eval(), torch.nn.LayerNorm(64), torch.nn.Dropout(0.5).eval()]
)
def test_layers_that_do_not_are_taken(layer, tmp_path):
    trainer = module_trainer(Normed(layer)).fit(2)
    trainer.save(tmp_path / "run")
    losses = trainer.fit(1).history["loss"]
    assert module_trainer(Normed(layer)).resume(tmp_path / "run").fit(1).history["loss"][-1] == losses[-1]


def test_a_module_sees_classes_and_attributes():
    seen = {"node_classes": 0, "edge_classes": 0, "node_attributes": 0, "edge_attributes": 0}

    class Looks(Messages):
        def forward(self, batch):
            for name in seen:
                seen[name] = max([seen[name], *getattr(batch, name).flatten().tolist()])
            return super().forward(batch)

    env = gfn.GraphBuilding(3, node_classes=2, edge_classes=3, node_attributes=[4], edge_attributes=[5])
    module_trainer(
        Looks(),
        env=env,
        reward=lambda graphs: np.zeros(len(graphs)),
        exploration=gfn.Exploration(epsilon=1.0),
    ).fit(5)
    assert seen == {"node_classes": 1, "edge_classes": 2, "node_attributes": 4, "edge_attributes": 5}


class Failing(torch.autograd.Function):
    """An autograd function that returns its input. The backward pass raises the error in `raised`, if there
    is one."""

    raised: list = []

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if Failing.raised:
            raise Failing.raised.pop()
        return gradient


class Wrapped(Messages):
    def forward(self, batch):
        nodes, graphs = super().forward(batch)
        return Failing.apply(nodes), graphs


@pytest.mark.parametrize("settings", [{}, {"adam": gfn.Adam(lr=2e-3, chunk=100)}])
@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
def test_what_is_raised_in_a_backward_pass_comes_back_and_the_trainer_goes_on(kind, settings, tmp_path):
    trainer = module_trainer(Wrapped(), **settings).fit(2)
    Failing.raised.append(kind("mine"))
    with pytest.raises(kind, match="mine") as caught:
        trainer.fit(1)
    assert any(frame.name == "backward" for frame in caught.traceback)
    assert trainer.steps_done == 2 and all(p.grad is None or not p.grad.any() for p in trainer.parameters())
    trainer.fit(1).save(tmp_path / "saved")
    assert len(trainer.sample(3)) == 3 and trainer.steps_done == 3


def test_what_torch_refuses_in_a_backward_pass_leaves_the_trainer():
    class Inplace(Messages):
        def forward(self, batch):
            nodes, graphs = super().forward(batch)
            gate = torch.sigmoid(nodes)
            gate += 1
            return nodes * gate, graphs

    trainer = module_trainer(Inplace())
    with pytest.raises(RuntimeError, match="inplace operation"):
        trainer.fit(1)
    assert trainer.steps_done == 0 and len(trainer.sample(2)) == 2


def assigned(module):
    module.load_state_dict({name: value.clone() for name, value in module.state_dict().items()}, assign=True)


def replaced(module):
    module.layers[0][0].weight = torch.nn.Parameter(module.layers[0][0].weight.detach())


def reparametrized(module):
    torch.nn.utils.parametrizations.weight_norm(module.layers[0][0])


def added(module):
    module.more = torch.nn.Parameter(torch.zeros(3))


@pytest.mark.parametrize(
    "change, message",
    [
        (assigned, "another tensor"),
        (replaced, "another tensor"),
        (reparametrized, "was removed"),
        (added, "`more` was added"),
    ],
)
def test_a_module_with_other_parameters_is_refused(change, message, tmp_path):
    """Replaces parameters of a module after the trainer was built. The replacement must be an error, because
    the new parameters would neither be trained nor saved."""
    module = Messages()
    it = module_trainer(module).fit(1)
    change(module)
    for use in (
        lambda: it.fit(1),
        it.step,
        lambda: it.sample(1),
        it.exact,
        it.loss,
        lambda: it.save(tmp_path / "it"),
    ):
        with pytest.raises(ValueError, match=message):
            use()
    assert it.steps_done == 1


def test_a_module_whose_parameters_are_written_into_is_taken():
    module, other = Messages(), Messages()
    it = module_trainer(module).fit(1)
    module.load_state_dict(other.state_dict())
    module.layers[0][0].weight.data = torch.zeros_like(module.layers[0][0].weight)
    assert it.fit(1).steps_done == 2


def test_dropout_that_is_switched_on_later_is_refused():
    module = Normed(torch.nn.Dropout(0.5)).eval()
    it = module_trainer(module).fit(2)
    module.train()
    for _ in range(2):
        with pytest.raises(ValueError, match="probabilities that a policy gives a state|equivariant"):
            it.fit(1)
    module.eval()
    assert it.fit(1).steps_done == 3


def test_a_module_that_learns_nothing_is_told_of():
    class Detached(Messages):
        def forward(self, batch):
            return tuple(each.detach() for each in super().forward(batch))

    with pytest.warns(gfn.TrainingWarning, match="only the heads are trained"):
        module_trainer(Detached()).fit(1)
    it = module_trainer(Messages()).fit(1)
    for parameter in it.parameters():
        parameter.requires_grad_(False)
    with pytest.warns(gfn.TrainingWarning, match="no parameter is trained"):
        it.fit(1)


@pytest.mark.filterwarnings("error::gfn_rs.TrainingWarning")
def test_what_is_frozen_on_purpose_is_not_told_of():
    frozen = Messages().requires_grad_(False)
    module_trainer(frozen).fit(1)
    gfn.Trainer(
        gfn.HyperGrid(2, 3),
        lambda states: np.zeros(len(states)),
        gfn.Uniform(),
        gfn.LogPartitionVariance(),
        batch=4,
    ).fit(1)


def test_not_a_number_of_an_untrained_module_is_said():
    class Mean(Messages):
        def forward(self, batch):
            nodes, graphs = super().forward(batch)
            return nodes, graphs * 0 / (graphs * 0)

    with pytest.raises(FloatingPointError, match="log-probability that the policy returns is NaN"):
        module_trainer(Mean())


def test_symmetry_that_is_ignored_is_no_input():
    def made(symmetry, policy=lambda **changes: gfn.GraphNet(embedding=8, **changes)):
        it = gfn.Trainer(
            gfn.GraphBuilding(4), lambda graphs: graphs.n_edges / 4, policy(symmetry=symmetry), batch=8
        )
        return it.fit(2).history["loss"][-1], it.n_parameters

    assert made("auto") == made("exact")
    loss, n_parameters = made("ignored")
    assert loss != made("auto")[0] and n_parameters < made("auto")[1]
    # The value "ignored" is the behaviour that all networks had before the setting existed. For this value
    # the description in checkpoints must not contain the setting.
    assert (
        "symmetry" not in gfn.GraphNet(symmetry="ignored")._described()
        and "symmetry" in gfn.GraphNet()._described()
    )

    def module(symmetry):
        torch.manual_seed(0)
        return gfn.GraphModule(Messages(classes=1), 64, 64, symmetry=symmetry)

    assert made("ignored", module)[1] < made("auto", module)[1]
