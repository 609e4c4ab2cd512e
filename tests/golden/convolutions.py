"""Writes convolutions.json, which holds results of PyTorch Geometric's GATv2Conv and GPSConv in float64.

Run `python3 tests/golden/convolutions.py` in an environment that has torch_geometric.
"""

import json
import pathlib

import torch
import torch_geometric
from torch_geometric.nn import GATv2Conv, GINConv, GINEConv, GPSConv

WIDTH, HEADS, CLASSES = 6, 3, 2
# The graphs of the batch. Each has its number of nodes and its edges (source, target, class). The graphs have
# different sizes, and two of them have isolated nodes.
GRAPHS = [(4, [(0, 1, 0), (1, 2, 1), (2, 0, 0)]), (2, [(1, 0, 1)]), (1, []), (3, [(0, 1, 1), (1, 2, 1)])]

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)


def numbers(*size):
    return (0.5 * torch.randn(size)).mul(1000).round().div(1000)


def messages(directed):
    """Returns the (source, target) pair and the feature row of each message.

    A row has a column per edge class, a column for messages against the direction of an edge, and a column
    for messages from a node to itself.
    """
    ends, carried, first = [], [], 0
    for n, edges in GRAPHS:
        for a, b, kind in edges:
            for (j, i), back in (((a, b), False), ((b, a), True)):
                ends.append((first + j, first + i))
                carried.append([float(kind == k) for k in range(CLASSES)] + [float(back and directed), 0.0])
        first += n
    return ends, carried


def norm(of, prefix, kind):
    module = torch.nn.LayerNorm(WIDTH) if kind == "Layer" else torch_geometric.nn.GraphNorm(WIDTH)
    for name, parameter in module.named_parameters():
        parameter.data = of(f"{prefix}.{name}", 1 + numbers(WIDTH))
    return module


def linear(of, name, inputs, outputs, bias=True):
    layer = torch.nn.Linear(inputs, outputs)
    layer.weight.data = of(f"{name}.weight", numbers(outputs, inputs))
    layer.bias.data = of(f"{name}.bias", numbers(outputs)) if bias else torch.zeros(outputs)
    return layer


def case(conv, kind, directed, classes):
    parameters = {}

    def of(name, value):
        parameters[name] = value.reshape(-1).tolist()
        return value

    ends, carried = messages(directed)
    n = sum(size for size, _ in GRAPHS)
    x, batch = numbers(n, WIDTH), torch.tensor([g for g, (size, _) in enumerate(GRAPHS) for _ in range(size)])
    # Without classes, edges have no feature vectors, and PyTorch Geometric adds the self-loops of GATv2Conv.
    # The convolution Gat of this library then has a table `edges.class` of zeros.
    table = (
        [of("edges.class", numbers(CLASSES, WIDTH) if classes else torch.zeros(1, WIDTH))]
        if classes or conv == "Gat"
        else []
    )
    against = of("against", numbers(1, WIDTH)) if directed else torch.zeros(1, WIDTH)
    output = linear(of, "output", WIDTH, WIDTH)
    if conv == "Gat":
        itself = of("itself", numbers(1, WIDTH) if classes else torch.zeros(1, WIDTH))
        layer = GATv2Conv(
            WIDTH,
            WIDTH // HEADS,
            HEADS,
            edge_dim=CLASSES + 2 if classes else None,
            add_self_loops=not classes,
        )
        layer.lin_l, layer.lin_r = linear(of, "from", WIDTH, WIDTH), linear(
            of, "to", WIDTH, WIDTH, bias=False
        )
        layer.att.data = of("scores", numbers(HEADS, WIDTH // HEADS)).unsqueeze(0)
        layer.bias.data = torch.zeros(WIDTH)
        if classes:
            layer.lin_edge.weight.data = torch.cat([table[0], against, itself]).T
            ends = ends + [(i, i) for i in range(n)]
            carried = carried + [[0.0] * CLASSES + [0.0, 1.0]] * n
        attributes = {"edge_attr": torch.tensor(carried)} if classes else {}
        received = layer(x, torch.tensor(ends).T, **attributes)
        h, normed = x + output(received.relu()), norm(of, "norm", kind)
        y = normed(h) if kind == "Layer" else normed(h, batch)
    else:
        # If edges have no classes, GINConv adds the bias of `inner` once to the sum of the messages, but this
        # library adds it to each message. The bias is therefore zero in this case.
        inner = linear(of, "inner", WIDTH, WIDTH)
        if not classes:
            inner.bias.data = of("inner.bias", torch.zeros(WIDTH))
        mlp, eps = torch.nn.Sequential(inner, torch.nn.ReLU(), output), of("eps", numbers(1))
        local = (
            GINEConv(mlp, train_eps=True, edge_dim=CLASSES + 2) if classes else GINConv(mlp, train_eps=True)
        )
        inner.weight.data, output.weight.data = (
            torch.tensor(parameters[f"{name}.weight"]).view(WIDTH, WIDTH) for name in ("inner", "output")
        )
        inner.bias.data, output.bias.data = (
            torch.tensor(parameters[f"{name}.bias"]) for name in ("inner", "output")
        )
        local.eps.data = eps
        if classes:
            local.lin.weight.data = torch.cat([table[0], against, torch.zeros(1, WIDTH)]).T
            local.lin.bias.data = torch.zeros(WIDTH)
        layer = GPSConv(WIDTH, local, HEADS, norm="graph_norm")
        # GPSConv may reset its local convolution, so this checks that the weights set above are still in use.
        for name, module in (("inner", inner), ("output", output)):
            assert parameters[f"{name}.weight"] == module.weight.reshape(-1).tolist()
        layer.norm1, layer.norm2, layer.norm3 = (
            norm(of, name, kind) for name in ("norm", "whole.norm", "whole.norm_feed")
        )
        layer.norm_with_batch = kind == "Graph"
        query, key, value = (
            linear(of, f"whole.{name}", WIDTH, WIDTH, bias)
            for name, bias in (("query", True), ("key", False), ("value", True))
        )
        layer.attn.in_proj_weight.data = torch.cat([query.weight, key.weight, value.weight]).detach()
        layer.attn.in_proj_bias.data = torch.cat([query.bias, key.bias, value.bias]).detach()
        out = linear(of, "whole.output", WIDTH, WIDTH)
        layer.attn.out_proj.weight.data, layer.attn.out_proj.bias.data = out.weight.data, out.bias.data
        layer.mlp[0], layer.mlp[3] = linear(of, "whole.feed_in", WIDTH, 2 * WIDTH), linear(
            of, "whole.feed_out", 2 * WIDTH, WIDTH
        )
        attributes = {"edge_attr": torch.tensor(carried)} if classes else {}
        y = layer(x, torch.tensor(ends).T, batch, **attributes)
    return {
        "conv": {conv: {"heads": HEADS}},
        "norm": kind,
        "directed": directed,
        "edge_classes": CLASSES if classes else 1,
        "graphs": [[n, [(a, b, kind if classes else 0) for a, b, kind in edges]] for n, edges in GRAPHS],
        "width": WIDTH,
        "parameters": parameters,
        "x": x.reshape(-1).tolist(),
        "y": y.detach().reshape(-1).tolist(),
    }


settings = [
    ("Gat", "Layer", False, False),
    ("Gat", "Layer", False, True),
    ("Gat", "Graph", True, True),
    ("Gps", "Layer", False, False),
    ("Gps", "Graph", False, True),
    ("Gps", "Layer", True, True),
]
golden = {
    "source": f"tests/golden/convolutions.py: torch_geometric {torch_geometric.__version__}, torch "
              f"{torch.__version__}, float64.",
    "description": "A round of GATv2Conv (with self-loops, then ReLU, a linear map, a residual connection "
                   "and a norm) or of GPSConv with "
    "GINConv or GINEConv: parameters, rows x before and y after it, [nodes, width] row by row. Edges are "
    "[from, to, class].",
    "cases": [case(*setting) for setting in settings],
}
path = pathlib.Path(__file__).with_name("convolutions.json")
path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
