"""The tables of docs/results.md and of the README, with the commands of their runs. This file has only data,
which `scripts/results.py` reads.

A table has columns and rows. A column has a title, a kind (scripts/results_cells.py lists the kinds), and
keys of the JSON of `reproduce`. A row has a name, a description, a command and seeds. `must` holds values
that the JSON of each run of a table must have. A command is a task of `reproduce` with its flags, to which
`--seed` and `--json` are added. Runs have one thread by default.
"""

ALL, ONE, FIVE = (0, 1, 2), (0,), (0, 1, 2, 3, 4)

# The columns with which most tables begin.
SIZE = [
    ("parameters", "same", "params"),
    ("steps x batch", "by", "steps", "batch"),
    ("processor, s", "processor"),
]
EXACT = {"exact": True, "threads": 1, "device": "cpu"}
SAMPLED = {"threads": 1, "device": "cpu"}
L1, TV, JSD = ("L1", "spread", "l1"), ("TV", "spread", "tv"), ("JSD", "spread", "jsd")
LOG_Z = ("log Z - true", "difference", "log_z", "log_z_true")
MODES = ("modes", "of", "modes_found", "modes_total")

FROZEN = "--lr 0 --steps 400"
REPLICAS = "--threads-for replicas --threads"
STRUCTURES = "bayesian-structure --policy gnn --layers 2 --objective tb --replay 100000 --steps 300"
SPEED_GRID = "hypergrid --ndim 4 --height 8 --exit-bias -2"
BUDGET = "hypergrid --steps 250 --lr 1e-2 --epsilon 0.2"

TABLES = [
    {
        "title": "Graphs",
        "text": "Exact, over all finished graphs: JSD is the Jensen-Shannon divergence in nats, TV the total "
                "variation. Rings are on labelled "
        "nodes; coloured graphs are up to isomorphism. A mode is found if it is sampled at least a tenth as "
        "often as it should be.",
        "must": EXACT,
        "columns": SIZE + [JSD, TV, MODES, LOG_Z],
        "rows": [
            ("ring-4", "rings, 4 nodes, directed", "ring --nodes 4 --directed", ALL),
            ("ring-5-undirected", "rings, 5 nodes, undirected", "ring --nodes 5 --undirected", (0, 1)),
            ("ring-5", "rings, 5 nodes, directed: 2^20 graphs", "ring --nodes 5 --directed", ONE),
            ("colored", "coloured graphs: 420 classes", "colored-graphs", ONE),
        ],
    },
    {
        "title": "Replicas",
        "text": "Rings of 4 nodes at equal steps and batches: 128,000 trajectories, half of them replayed, "
                "of one trainer and of replicas that train "
        "as one. Processes (`--dist sync`) give the bits of as many threads.",
        "must": {"exact": True, "device": "cpu"},
        "columns": SIZE
        + [("members", "same", "members"), JSD, TV, MODES, ("reward calls", "spread", "reward_calls")],
        "rows": [
            ("replicas-1", "one", f"ring --nodes 4 --directed {REPLICAS} 1", FIVE),
            ("replicas-2", "two replicas", f"ring --nodes 4 --directed {REPLICAS} 2", FIVE),
            ("replicas-4", "four replicas", f"ring --nodes 4 --directed {REPLICAS} 4", FIVE),
        ],
    },
    {
        "title": "Without the symmetry correction",
        "text": "What the correction is for: the same runs trained on R in place of R times |Aut|, beside "
                "the same exact target. Their log Z "
        "is of another target and isn't compared.",
        "must": {**EXACT, "symmetry_corrected": False},
        "columns": SIZE + [JSD, TV],
        "rows": [
            ("colored-uncorrected", "coloured graphs", "colored-graphs --no-symmetry-correction", ONE),
            (
                "fragments-uncorrected",
                "junction trees of fragments",
                "fragments --no-symmetry-correction",
                ONE,
            ),
        ],
    },
    {
        "title": "Molecules",
        "text": "Exact, over all finished states.",
        "must": EXACT,
        "columns": SIZE + [JSD, TV, LOG_Z],
        "rows": [
            ("molecule", "at most 4 atoms of C, N, O: 571 molecules", "molecule", ONE),
            ("fragments", "at most 3 of 8 fragments: 539 junction trees", "fragments", ONE),
            ("qm9str", "strings of QM9's blocks: 161,051", "qm9str", ONE),
        ],
    },
    {
        "title": "Vectors",
        "text": "Exact, over all finished objects.",
        "must": EXACT,
        "columns": SIZE + [L1, MODES, LOG_Z],
        "rows": [
            ("grid-8-tb", "grid 8 x 8, TB", "hypergrid", ALL),
            ("grid-8-db", "grid 8 x 8, DB", "hypergrid --objective db", ALL),
            ("grid-8-subtb", "grid 8 x 8, SubTB", "hypergrid --objective subtb", ALL),
            ("grid-8-vargrad", "grid 8 x 8, log-partition variance", "hypergrid --objective vargrad", ALL),
            ("grid-8-4", "grid 8^4, TB", "hypergrid --ndim 4 --height 8", (0, 1)),
            ("bits", "sequences of 8 bits", "bit-sequence", ALL),
            ("ebm", "4 spins", "discrete-ebm", ALL),
            ("ising", "Ising, 3 x 3", "ising", ONE),
        ],
    },
    {
        "title": "Grids at 32,000 fresh trajectories",
        "text": "Exact. With replay, half of each batch of 256 is from a buffer of 10,000, so that as many "
                "trajectories are new ones.",
        "must": EXACT,
        "columns": SIZE + [L1, TV],
        "rows": [
            ("budget-8", "8 x 8, TB", f"{BUDGET} --batch 128", ALL),
            ("budget-8-replay", "8 x 8, TB, replay", f"{BUDGET} --batch 256 --replay 10000", ALL),
            ("budget-8-fm", "8 x 8, FM", f"{BUDGET} --batch 128 --objective fm", ALL),
            (
                "budget-8-fm-replay",
                "8 x 8, FM, replay",
                f"{BUDGET} --batch 256 --replay 10000 --objective fm",
                ALL,
            ),
            ("budget-16", "16 x 16, TB", f"{BUDGET} --batch 128 --height 16", ALL),
            (
                "budget-16-replay",
                "16 x 16, TB, replay",
                f"{BUDGET} --batch 256 --replay 10000 --height 16",
                ALL,
            ),
            ("budget-8-4", "8^4, TB", f"{BUDGET} --batch 128 --ndim 4 --height 8", ALL),
            (
                "budget-8-4-replay",
                "8^4, TB, replay",
                f"{BUDGET} --batch 256 --replay 10000 --ndim 4 --height 8",
                ALL,
            ),
        ],
    },
    {
        "title": "Modes that training sees",
        "text": "Of the 256 modes of a grid of 20^4 with rare rewards (r0 = 1e-3), half of each batch "
                "replayed; rewards are computed for new "
        "objects alone.",
        "must": EXACT,
        "columns": SIZE
        + [("modes seen", "spread", "modes_seen"), ("reward calls", "spread", "reward_calls"), TV],
        "rows": [
            (
                "modes-20-4",
                "grid 20^4, SubTB",
                "hypergrid --ndim 4 --height 20 --r0 1e-3 --objective subtb --replay 10000 --batch 32 "
                "--steps 2480 --epsilon 0.1",
                ONE,
            )
        ],
    },
    {
        "title": "Peaks beside Markov chains",
        "text": "16 Gaussian peaks that lie apart on a grid of 10^8, on a floor of 1e-9 of their height: the "
                "peaks that were found after parts of "
        "32,000 reward calls. Policies have one seed, chains three. 16 Metropolis-Hastings chains propose "
        "steps of 1 along an axis; replica exchange has two ladders of eight of them, and counts peaks at "
        "all temperatures. "
        "Published for an unnamed grid of eight dimensions: 1 to 2 peaks of width 0.5 by GFlowNets and 11 to "
        "16 by Metropolis-Hastings; of width 2 "
        "4.75 times as many by DB as by chains, at 500 times the cost.",
        "must": {"modes_total": 16, **SAMPLED},
        "columns": SIZE
        + [
            ("an eighth", "spread", "found_by_eighth"),
            ("a quarter", "spread", "found_by_quarter"),
            ("half", "spread", "found_by_half"),
            ("all", "spread", "modes_found"),
        ],
        "rows": [
            ("peaks-0.5-tb", "width 0.5, TB", "peaks --width 0.5 --objective tb", ONE),
            (
                "peaks-0.5-metropolis",
                "width 0.5, Metropolis-Hastings",
                "peaks --width 0.5 --by metropolis",
                ALL,
            ),
            ("peaks-0.5-tempering", "width 0.5, replica exchange", "peaks --width 0.5 --by tempering", ALL),
            ("peaks-2-tb", "width 2, TB", "peaks --width 2 --objective tb", ONE),
            ("peaks-2-db", "width 2, DB", "peaks --width 2 --objective db", ONE),
            ("peaks-2-subtb", "width 2, SubTB", "peaks --width 2 --objective subtb", ONE),
            ("peaks-2-metropolis", "width 2, Metropolis-Hastings", "peaks --width 2 --by metropolis", ALL),
            ("peaks-2-tempering", "width 2, replica exchange", "peaks --width 2 --by tempering", ALL),
        ],
    },
    {
        "title": "One policy for five conditions",
        "text": "Exact, the mean over the conditions.",
        "must": EXACT,
        "columns": SIZE + [L1, TV, JSD],
        "rows": [("conditional", "grid 8 x 8, rewards by condition", "conditional-hypergrid", (0, 1))],
    },
    {
        "title": "Boxes",
        "text": "Continuous states: the JSD of 10,000 samples on 50 x 50 cells, beside that of as many "
                "perfect samples.",
        "must": SAMPLED,
        "columns": SIZE + [JSD, ("perfect samples", "spread", "jsd_floor"), LOG_Z],
        "rows": [
            ("box-0.1", "step 0.1, TB", "box --delta 0.1", ONE),
            ("box-0.1-db", "step 0.1, DB", "box --delta 0.1 --objective db", ONE),
            ("box-0.25", "step 0.25, TB", "box --delta 0.25", ONE),
        ],
    },
    {
        "title": "Diffusion",
        "text": "Two Gaussians in the plane in 32 steps; figures of 2,000 samples. The bound is a lower one "
                "on log Z; W2 is the "
        "Wasserstein distance, beside that of perfect samples.",
        "must": SAMPLED,
        "columns": SIZE
        + [
            ("bound off by", "spread", "log_z_error"),
            ("reweighted off by", "spread", "log_z_reweighted_error"),
            ("W2", "spread", "w2"),
            ("perfect", "spread", "w2_perfect"),
            MODES,
        ],
        "rows": [("diffusion", "two modes", "diffusion", ONE)],
    },
    {
        "title": "Structures of Bayesian networks",
        "text": "Simulated data, another set for each seed, BGe score. Exact, over all 29,281 graphs of 5 "
                "nodes; Pearson's r and RMSE are of edge "
        "probabilities.",
        "must": EXACT,
        "columns": SIZE
        + [JSD, ("edges: r", "spread", "edge_pearson"), ("RMSE", "spread", "edge_rmse"), LOG_Z],
        "rows": [("structure-5", "5 nodes", "bayesian-structure", (0, 1))],
    },
    {
        "title": "Speed",
        "text": "Steps and visited states per second once warm. Policies of the rows on rings and grids are "
                "frozen (`--lr 0`), so that "
        "every step is the same work; all phases are run.",
        "must": SAMPLED,
        "columns": [
            ("parameters", "same", "params"),
            ("batch", "same", "batch"),
            ("mean length", "spread", "mean_len"),
            ("distinct states, %", "percent", "distinct_share"),
            ("steps/s", "spread", "its_per_s"),
            ("states/s", "spread", "states_per_s"),
            ("load", "load"),
        ],
        "rows": [
            (
                "speed-ring",
                "rings, 4 nodes, directed",
                f"ring --nodes 4 --directed --backward separate {FROZEN}",
                ALL,
            ),
            ("speed-grid", "grid 8^4, TB", f"{SPEED_GRID} {FROZEN}", ALL),
            ("speed-grid-db", "grid 8^4, DB", f"{SPEED_GRID} --objective db {FROZEN}", ALL),
            ("speed-grid-subtb", "grid 8^4, SubTB", f"{SPEED_GRID} --objective subtb {FROZEN}", ALL),
            (
                "speed-grid-20",
                "grid 20^4, TB",
                f"hypergrid --ndim 4 --height 20 --exit-bias -1.5 {FROZEN}",
                ALL,
            ),
            (
                "speed-box",
                "box, TB, 3 layers",
                "box --delta 0.1 --epsilon 0 --per-axis --components 2 --max-concentration 100 --backward "
                "separate --layers 3 --steps 400",
                ALL,
            ),
            ("speed-diffusion", "diffusion, 32 steps", "diffusion --steps 200", ALL),
            ("speed-gnn", "structures, GNN", f"{STRUCTURES} --batch 32", ALL),
            (
                "speed-gnn-wide",
                "structures, GNN of width 208",
                f"{STRUCTURES} --batch 32 --embedding 208",
                ALL,
            ),
            ("speed-gnn-64", "structures, GNN, 32 of 64 replayed", f"{STRUCTURES} --batch 64", ALL),
        ],
    },
]

# The rows of the README's table. `what` describes the row. `here` is the cell that is shown: the name of a
# row of another table in this file, a kind and a key. `beside` is what the cell is compared with: a text, a
# text with {} in the place of another cell, or a text with {} in the place of numbers that must occur in
# docs/results/earlier.md.
HEADLINES = [
    {
        "what": "rings, 5 nodes, directed: exact Jensen-Shannon divergence over 2^20 graphs",
        "here": ("ring-5", "spread", "jsd"),
        "beside": "a perfect sampler: 0",
    },
    {
        "what": "coloured graphs up to isomorphism, 420 classes: exact total variation",
        "here": ("colored", "spread", "tv"),
        "beside": ("{} without the symmetry correction", ("colored-uncorrected", "spread", "tv")),
    },
    {
        "what": "junction trees of fragments, 539: exact total variation",
        "here": ("fragments", "spread", "tv"),
        "beside": ("{} without the symmetry correction", ("fragments-uncorrected", "spread", "tv")),
    },
    {
        "what": "QM9 as strings of blocks, 161,051: exact total variation",
        "here": ("qm9str", "spread", "tv"),
        "beside": "a perfect sampler: 0",
    },
    {
        "what": "structures of Bayesian networks, 32 fresh trajectories a step: steps per second",
        "here": ("speed-gnn-64", "spread", "its_per_s"),
        "beside": (
            "torchgfn f39bfc9 ({} parameters): {}; gfn in the same minutes: {}",
            ["201,611", "4.5, 4.2, 3.2", "39, 39, 35"],
        ),
    },
    {
        "what": "hypergrid 8^4, trajectory balance, batch 16: states per second",
        "here": ("speed-grid", "spread", "states_per_s"),
        "beside": (
            "gfnx 068316d on JAX 0.12: {}; gfn at that time: {}",
            ["56,300", "98,000, 106,000, 106,000"],
        ),
    },
]
