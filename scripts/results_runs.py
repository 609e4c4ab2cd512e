"""The tables of docs/results.md and of the README, with the commands of their runs. This file has only data,
which `scripts/results.py` reads.

A section has tables. A table has columns and rows. A column has a title, a kind (scripts/results_cells.py
lists the kinds), and keys of the JSON of `reproduce`. `must` holds values that the JSON of each run of a
table must have. A command is a task of `reproduce` with its flags, to which `--seed` and `--json` are added.
Runs have one thread by default. Paths that start with `out/data/` are files of others, which aren't in this
repository; docs/reproduce.md says how each one is made.
"""

import pathlib
import sys
from typing import NamedTuple

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python" / "examples" / "pmo"))
from published import PUBLISHED

ALL, FIVE = (0, 1, 2), (0, 1, 2, 3, 4)


class Row(NamedTuple):
    """A row of a table: the runs of one command."""

    name: str
    what: str
    command: str
    seeds: tuple = ALL
    # Other methods on the same task, each as a label with a cell of another row: (label, name of the row,
    # kind, keys...).
    beside: tuple = ()
    # The published figure, with its source.
    published: str = ""
    # The text in place of `*` in the keys of the table's columns, for several rows from the same runs.
    key: str = ""


# The columns with which most tables begin.
SIZE = [
    ("parameters", "same", "params"),
    ("steps x batch", "by", "steps", "batch"),
    ("reward calls", "spread", "reward_calls"),
    ("processor, s", "processor"),
]
EXACT = {"exact": True, "threads": 1, "device": "cpu"}
SAMPLED = {"threads": 1, "device": "cpu"}
L1, TV, JSD = ("L1", "spread", "l1"), ("TV", "spread", "tv"), ("JSD", "spread", "jsd")
LOG_Z = ("log Z - true", "difference", "log_z", "log_z_true")
MODES = ("modes", "of", "modes_found", "modes_total")

FROZEN = "--lr 0 --steps 400"
REPLICAS = "--threads-for replicas --threads"
GNN = "bayesian-structure --policy gnn --layers 2 --objective tb --replay 100000 --steps 300"
SPEED_GRID = "hypergrid --ndim 4 --height 8 --exit-bias -2"
# The flags of all graph problems.
PROBLEM = "graph-problem --objective fl-db --updates 8 --beta-from 1 --degrees --branches 0"
RB = f"{PROBLEM} --beta 50 --graphs rb-large --batch 8 --steps 60"
BA = f"{PROBLEM} --graphs ba --embedding 32 --layers 3 --batch 4 --steps 100"
BA_LARGE = f"{PROBLEM} --graphs ba-large --embedding 32 --layers 3 --batch 4 --steps 150"
LTFT = "Zhang et al., *Let the flows tell*, 2023"
BUDGET = "hypergrid --steps 250 --lr 1e-2 --epsilon 0.2"

TEN = tuple(range(10))
# The flags of tasks on structures.
SACHS_TRUTH = "--truth examples/data/sachs_consensus_edges.csv"
INTERVENTIONS = (
    "bayesian-structure --data out/data/sachs_interventional.csv --interventions INT --score bde "
    f"{SACHS_TRUTH}"
)
OBSERVATIONS = f"bayesian-structure --data examples/data/sachs_observational.csv --log {SACHS_TRUTH}"
METHODS = [
    ("policy", "policy"),
    ("order-mcmc", "order MCMC"),
    ("structure-mcmc", "structure MCMC"),
    ("greedy", "greedy search"),
]
DAG_GFLOWNET = "DAG-GFlowNet, Deleu et al. 2022"


# The training of the policy on Sachs's data, chosen on seeds 7 and 8.
SHORT = "--steps 600 --batch 16"


def methods(name, what, command, seeds, policy=SHORT, orders=""):
    """Returns a row for each method that samples structures. `policy` and `orders` are flags of the policy
    and of order MCMC."""
    flags = {"policy": policy}
    for method, _ in METHODS[1:]:
        flags[method] = f"--by {method} {orders if method == 'order-mcmc' else ''}".strip()
    return [
        Row(f"{name}-{method}", f"{what}: {label}", f"{command} {flags[method]}", seeds)
        for method, label in METHODS
    ]


def simulated(nodes, edges, rows, max_parents, policy, orders):
    """Returns rows on simulated data. Order MCMC with `orders` takes about the time of the policy."""
    return methods(
        f"er-{nodes}-{edges}-{rows}",
        f"{nodes} nodes, {edges} edges, {rows:,} rows",
        f"bayesian-structure --nodes {nodes} --edges {edges} --rows {rows} --held-out 100 --max-parents "
        f"{max_parents}",
        FIVE,
        policy,
        orders,
    )


SIMULATED = [
    row
    for nodes, edges, most, policy, orders in [
        (20, 20, 4, "--steps 1000 --batch 16", "--steps 5000000 --graphs 50000"),
        (20, 40, 4, "--steps 1000 --batch 16", "--steps 5000000 --graphs 50000"),
        (25, 40, 4, "--steps 1000 --batch 16", "--steps 100000"),
        (50, 80, 3, "--steps 500 --batch 16", "--graphs 1000"),
    ]
    for rows in (100, 1_000)
    for row in simulated(nodes, edges, rows, most, policy, orders)
]

# The columns of tables on structures that are compared with a known graph.
KNOWN_GRAPH = [
    ("E-SHD", "mean", "expected_shd"),
    ("E-F1", "mean", "expected_f1"),
    ("Brier", "mean", "brier"),
    ("AUROC", "mean", "auroc"),
    ("AUPRC", "mean", "auprc"),
]
KNOWN_CLASS = [
    ("CPDAG E-SHD", "mean", "cpdag_expected_shd"),
    ("E-F1", "mean", "cpdag_expected_f1"),
    ("Brier", "mean", "cpdag_brier"),
    ("AUROC", "mean", "cpdag_auroc"),
    ("AUPRC", "mean", "cpdag_auprc"),
]
HELD_OUT = [("held-out log-likelihood", "mean", "held_out_log_likelihood")]
COST = [("local scores", "spread", "local_scores"), ("processor, s", "processor")]
EXACT_AUROC = ("exact AUROC", "mean", "auroc_exact")
EXACT_EDGES = [("edges: r", "spread", "edge_pearson"), ("RMSE", "spread", "edge_rmse")]

STRUCTURES = [
    {
        "title": "Proteins of Sachs et al. 2005, all rows",
        "text": "11 variables, beside the exact edge probabilities: Pearson's r and RMSE. The policy "
        "learns from chains over orders. E-SHD and AUROC compare with the consensus network, "
        "which the data don't support in full: the last column is the AUROC of the exact edge "
        "probabilities. E-SHD to AUPRC are means. The scores of all parent sets are computed in "
        "advance.",
        "must": SAMPLED,
        "columns": [*COST, *EXACT_EDGES, *KNOWN_GRAPH, EXACT_AUROC],
        "rows": [
            row._replace(published=published) if row.name.endswith("-policy") else row
            for name, what, command, published in [
                (
                    "sachs-interventions",
                    "5,400 rows with interventions, BDe",
                    INTERVENTIONS,
                    f"AUROC 0.700, exact 0.816 ({DAG_GFLOWNET}; other cuts of the data)",
                ),
                (
                    "sachs-observations",
                    "853 observations, BGe",
                    OBSERVATIONS,
                    f"E-SHD 22.88, AUROC 0.541 ({DAG_GFLOWNET}; from memory)",
                ),
            ]
            for row in methods(name, what, command, ALL)
        ],
    },
    {
        "title": "Proteins of Sachs et al. 2005, ten splits",
        "text": "Ten random splits of the rows, a tenth of which is set aside. The log-likelihood is that"
        " of an observation that was set aside: of discretised data (interventions), or of "
        "standardised numbers. It and E-SHD to AUPRC are means.",
        "must": SAMPLED,
        "columns": [*COST, *HELD_OUT, *KNOWN_GRAPH],
        "rows": methods("split-interventions", "interventions", f"{INTERVENTIONS} --held-out 540", TEN)
        + methods("split-observations", "observations", f"{OBSERVATIONS} --held-out 85", TEN),
    },
    {
        "title": "Simulated structures, exact edge probabilities",
        "text": "Erdos-Renyi graphs of 20 nodes with 40 edges, 100 rows: edge probabilities beside the exact "
        "ones, and the AUROC of both against the true edges. Each seed draws another data set.",
        "must": SAMPLED,
        "columns": [
            *EXACT_EDGES,
            ("AUROC", "mean", "auroc"),
            EXACT_AUROC,
        ],
        "rows": methods(
            "exact-20",
            "20 nodes, 40 edges, 100 rows",
            "bayesian-structure --nodes 20 --edges 40 --rows 100 --max-parents 4 --exact-up-to 20",
            FIVE,
            "--steps 1000 --batch 16",
        )[:2],
    },
    {
        "title": "Simulated structures",
        "text": "Erdos-Renyi graphs with an expected number of edges, linear Gaussian data, BGe score, "
        "uniform prior, at most 4 parents of a node (3 for 50 nodes); five data sets, the mean over "
        "them with its range. The log-likelihood is that of an observation of 100 further ones.",
        "must": SAMPLED,
        "columns": [*COST, *HELD_OUT, *KNOWN_GRAPH],
        "rows": SIMULATED,
    },
    {
        "title": "Simulated structures, by equivalence class",
        "text": "The same runs; the CPDAGs of the samples are compared with that of the true graph.",
        "must": SAMPLED,
        "columns": KNOWN_CLASS,
        "rows": [row._replace(name=f"class-{row.name}") for row in SIMULATED],
    },
    {
        "title": "All structures of 5 nodes",
        "text": "Simulated data, another set for each seed, BGe score. Exact, over all 29,281 graphs; "
        "Pearson's r and RMSE are of edge probabilities.",
        "must": EXACT,
        "columns": SIZE
        + [JSD, ("edges: r", "spread", "edge_pearson"), ("RMSE", "spread", "edge_rmse"), LOG_Z],
        "rows": [
            Row(
                "structure-5",
                "5 nodes",
                "bayesian-structure",
                published="JSD 0.02 (torchgfn, `train_bayesian_structure.py`; on-policy 0.36; other data)",
            )
        ],
    },
]

SEH = "scripts/molecules/seh_metrics.py --calls {} --run seh-frag --weights out/data/seh_proxy.npz"
SEH_GENETIC = f"{SEH.format('1600 6400 19500')} --by genetic --batch 64 --steps 305"
SEH_RANDOM = f"{SEH.format('1600 6400 19500')} --by random --batch 64 --steps 305"
PMO = "python/examples/pmo/pmo.py --molecules out/data/zinc_60000.smi --prior out/data/pmo_prior"
SEH_OWN = f"{SEH.format('1600 6400 19500')} --steps 600 --batch 64 --unit 4 --samples 64"

MOLECULES = [
    {
        "title": "Binding to sEH, our recipe",
        "text": "Trees of at most nine of 72 fragments, reward R^32 with R = proxy / 8. Metrics of the "
        "first 19,500 scored molecules by RDKit (Morgan fingerprints): the mean R of the last "
        "1,000 and of the best 100; modes (R > 7/8, Tanimoto similarity below 0.7 to each earlier"
        " mode); the same with a similarity of at most 0.5 (Bengio et al. 2021); #Circles (Xie et"
        " al. 2023) of molecules with R > 7/8 at a distance of 0.7. Half of each batch of the "
        "policy is replayed.",
        "must": SAMPLED,
        "columns": [
            ("parameters", "same", "params"),
            ("steps x batch", "by", "steps", "batch"),
            ("calls", "same", "calls_at_19500"),
            ("processor, s", "processor"),
            ("mean", "spread", "mean_last_1000_at_19500"),
            ("best 100", "spread", "best_100_at_19500"),
            ("modes", "spread", "modes_at_19500"),
            ("by 0.5", "spread", "modes_raw_7_at_19500"),
            ("#Circles", "spread", "circles_at_19500"),
            ("mean at 1,600", "spread", "mean_last_1000_at_1600"),
            ("at 6,400", "spread", "mean_last_1000_at_6400"),
        ],
        "rows": [
            Row("seh-own", "policy, SubTB", SEH_OWN),
            Row("seh-genetic", "genetic algorithm", SEH_GENETIC),
            Row("seh-random", "random trees", SEH_RANDOM),
        ],
    },
    {
        "title": "Binding to sEH, the recipe of recursionpharma/gflownet",
        "text": "TB, power 32 from the first step, learning rate 1e-4, uniform P_B, no replay. The published "
        "column is recursionpharma/gflownet at f064713 by its own trainer at these rates, with "
        "440,583 parameters, one seed, measured beside ours ([results/peers.md](results/peers.md)).",
        "must": SAMPLED,
        "columns": [
            ("parameters", "same", "params"),
            ("steps x batch", "by", "steps", "batch"),
            ("processor, s", "processor"),
            ("mean at 1,600", "spread", "mean_last_1000_at_1600"),
            ("at 6,400", "spread", "mean_last_1000_at_6400"),
            ("at 9,500", "spread", "mean_last_1000_at_9500"),
            ("best 100 at 9,500", "spread", "best_100_at_9500"),
            ("modes", "spread", "modes_at_9500"),
        ],
        "rows": [
            Row(
                "seh-published",
                "policy, TB",
                f"{SEH.format('1600 6400 9500')} --objective tb --replay 0 --beta-from 32 --lr 1e-4 "
                "--log-z-lr 1e-3 --lr-end 1 --epsilon 0 --backward uniform --ema 0.99 --ema-sampling "
                "--unit 16 --steps 149 --samples 64",
                published="means 0.237, 0.386, 0.465 (9,408 calls); best 100 0.805, 2 modes",
            )
        ],
    },
    {
        "title": "PMO, the oracles that need RDKit only",
        "text": "The area under the curve of the mean of the ten best molecules, up to 10,000 calls, mean"
        " over the seeds. A policy over SMILES that has learned 60,000 molecules of ZINC, the "
        "same for all seeds, is tuned to each oracle relative to itself (python/examples/pmo). "
        "Published: REINVENT (Gao et al. 2022), Genetic GFN (Kim et al. 2024). REINVENT was run "
        "with an older PyTDC, so its areas of both isomers, sitagliptin and zaleplon, and its "
        "sum, may not compare.",
        "must": {"example": "pmo", "calls": 10_000},
        "columns": [("area of the ten best", "mean", "*_auc_top10")],
        "rows": [
            Row(f"pmo-{key}", key, PMO, FIVE, published=f"{reinvent:.3f}, {genetic:.3f}", key=key)
            for key, (reinvent, genetic) in [*PUBLISHED.items(), ("sum", map(sum, zip(*PUBLISHED.values())))]
        ],
    },
    {
        "title": "Molecules whose distribution is known",
        "text": "Exact, over all finished states.",
        "must": EXACT,
        "columns": SIZE + [JSD, TV, LOG_Z],
        "rows": [
            Row("molecule", "at most 4 atoms of C, N, O: 571 molecules", "molecule"),
            Row("molecule-stereo", "the same with stereo centres: 649 stereoisomers", "molecule --stereo"),
            Row("fragments", "at most 3 of 8 fragments: 539 junction trees", "fragments"),
            Row("qm9str", "strings of QM9's blocks: 161,051", "qm9str"),
        ],
    },
    {
        "title": "Junction trees without the symmetry correction",
        "text": "What the correction is for: the same run trained on R in place of R times |Aut|, beside the "
        "same exact target. Its log Z is of another target and isn't compared.",
        "must": {**EXACT, "symmetry_corrected": False},
        "columns": SIZE + [JSD, TV],
        "rows": [
            Row(
                "fragments-uncorrected",
                "junction trees of fragments",
                "fragments --no-symmetry-correction",
                beside=(("with the correction: TV", "fragments", "spread", "tv"),),
            )
        ],
    },
]

GRAPHS = [
    {
        "title": "Rings and coloured graphs",
        "text": "Exact, over all finished graphs: JSD is the Jensen-Shannon divergence in nats, TV the total "
        "variation. Rings are on labelled nodes; coloured graphs are up to isomorphism. A mode is "
        "found if it is sampled at least a tenth as often as it should be.",
        "must": EXACT,
        "columns": SIZE + [JSD, TV, MODES, LOG_Z],
        "rows": [
            Row("ring-4", "rings, 4 nodes, directed", "ring --nodes 4 --directed"),
            Row("ring-5-undirected", "rings, 5 nodes, undirected", "ring --nodes 5 --undirected"),
            Row("ring-5", "rings, 5 nodes, directed: 2^20 graphs", "ring --nodes 5 --directed"),
            Row("colored", "coloured graphs: 420 classes", "colored-graphs"),
        ],
    },
    {
        "title": "Coloured graphs without the symmetry correction",
        "text": "The same run trained on R in place of R times |Aut|, beside the same exact target.",
        "must": {**EXACT, "symmetry_corrected": False},
        "columns": SIZE + [JSD, TV],
        "rows": [
            Row(
                "colored-uncorrected",
                "coloured graphs",
                "colored-graphs --no-symmetry-correction",
                beside=(("with the correction: TV", "colored", "spread", "tv"),),
            )
        ],
    },
    {
        "title": "Graph problems",
        "text": "The best of 20 samples on graphs on which the policy wasn't trained, the same graphs "
        "for each seed: RB graphs for independent sets and cliques, Barabasi-Albert graphs for "
        "dominating sets (small is better) and cuts, by the published generators. Greedy "
        "solutions, and 10,000 rounds of local search from them, are on the same graphs. On 40 "
        "such graphs for independent sets of 200 to 300 nodes, CP-SAT proves the optimum of 25 "
        "within 10 s each (scripts/exact_solutions.py). Local search finds sets of the same size on "
        "these 25, and larger sets than CP-SAT on 13 of the other 15. Training for cuts on graphs of "
        "200 to 300 nodes diverged with seed 2: its policy moves no node, so its cuts are 0. The "
        "published figures are of 500 other graphs of the same models. That of independent sets of "
        "200 to 300 nodes was seen in a copy of a published table; the others are quoted from "
        "memory.",
        "must": SAMPLED,
        "columns": [
            ("parameters", "same", "params"),
            ("steps x batch", "by", "steps", "batch"),
            ("graphs", "same", "held_out_graphs"),
            ("processor, s", "processor"),
            ("best of 20", "spread", "best"),
            ("mean sample", "spread", "mean"),
            ("greedy", "spread", "greedy"),
            ("local search", "spread", "local_search"),
            ("best / local search, %", "share", "best", "local_search"),
            ("samples, s per graph", "spread", "sampling_s_each"),
            ("search, s per graph", "spread", "local_search_s_each"),
        ],
        "rows": [
            Row(
                "independent-set-large",
                "independent sets, 200 to 300 nodes",
                f"{RB} --held-out 500",
                published=f"19.18, optimum 20.10 ({LTFT})",
            ),
            Row(
                "independent-set-largest",
                "independent sets, 800 to 1,200 nodes, trained on 200 to 300",
                f"{RB} --held-out 20 --measured-on rb-largest",
                published=f"37.48, optimum 43.15 ({LTFT}; from memory)",
            ),
            Row(
                "clique-large",
                "cliques, 200 to 300 nodes",
                f"{RB} --held-out 500 --problem clique",
                published=f"16.24 ({LTFT}; from memory)",
            ),
            Row(
                "dominating-set-large",
                "dominating sets, 200 to 300 nodes, trained on 50 to 100",
                f"{BA} --held-out 100 --problem dominating-set --beta 50 --measured-on ba-large",
                published=f"28.61 ({LTFT}; from memory)",
            ),
            Row(
                "cut-large",
                "cuts, 200 to 300 nodes, trained on 50 to 100",
                f"{BA} --held-out 100 --problem cut --beta 20 --measured-on ba-large",
                published=f"704.3 ({LTFT}; from memory)",
            ),
            Row(
                "cut-large-at-size",
                "cuts, 200 to 300 nodes, trained on this size",
                f"{BA_LARGE} --held-out 100 --problem cut --beta 20",
                published=f"704.3 ({LTFT}; from memory)",
            ),
            Row(
                "cut-largest",
                "cuts, 800 to 1,200 nodes, trained on 50 to 100",
                f"{BA} --held-out 10 --problem cut --beta 20 --measured-on ba-largest",
                published=f"2864.6 ({LTFT}; from memory)",
            ),
            Row(
                "cut-largest-from-large",
                "cuts, 800 to 1,200 nodes, trained on 200 to 300",
                f"{BA_LARGE} --held-out 10 --problem cut --beta 20 --measured-on ba-largest",
                published=f"2864.6 ({LTFT}; from memory)",
            ),
        ],
    },
]

PEAK_METHODS = [
    ("mixed", "chains and policy"),
    ("policy", "policy alone, TB"),
    ("metropolis", "Metropolis-Hastings"),
    ("tempering", "replica exchange"),
]
# The flags of chains and policy for each width of the peaks, chosen on seeds 7 to 11.
MIXED = {
    2: "--batch 64 --fresh 5 --chain-calls 21500 --warm-up 800 --steps 2000 --lr 1e-3 --embedding 128 "
    "--patience 60 --candidates 16 --draw-exponent 0.25",
    0.5: "--batch 64 --fresh 4 --chain-calls 30200 --candidates 64 --warm-up 12000 --steps 300 --lr 1e-3 "
    "--embedding 256",
}


def peak_rows(prefix, methods):
    """Returns a row for each width and method of a table on peaks."""
    return [
        Row(
            f"{prefix}-{width}-{method}",
            f"width {width}: {label}",
            (
                f"peaks --width {width} --by chains-and-policy {MIXED[width]}"
                if method == "mixed"
                else f"peaks --width {width} --by {method}"
            ),
        )
        for width in MIXED
        for method, label in methods
    ]


VECTORS = [
    {
        "title": "Grids, bits and spins",
        "text": "Exact, over all finished objects.",
        "must": EXACT,
        "columns": SIZE + [L1, MODES, LOG_Z],
        "rows": [
            Row("grid-8-tb", "grid 8 x 8, TB", "hypergrid"),
            Row("grid-8-db", "grid 8 x 8, DB", "hypergrid --objective db"),
            Row("grid-8-subtb", "grid 8 x 8, SubTB", "hypergrid --objective subtb"),
            Row("grid-8-vargrad", "grid 8 x 8, log-partition variance", "hypergrid --objective vargrad"),
            Row("grid-8-4", "grid 8^4, TB", "hypergrid --ndim 4 --height 8"),
            Row("bits", "sequences of 8 bits", "bit-sequence"),
            Row("ebm", "4 spins", "discrete-ebm"),
            Row("ising", "Ising, 3 x 3", "ising"),
        ],
    },
    {
        "title": "Grids at 32,000 fresh trajectories",
        "text": "Exact. With replay, half of each batch of 256 is from a buffer of 10,000, so that as many "
        "trajectories are new ones.",
        "must": EXACT,
        "columns": SIZE + [L1, TV],
        "rows": [
            Row("budget-8", "8 x 8, TB", f"{BUDGET} --batch 128"),
            Row("budget-8-replay", "8 x 8, TB, replay", f"{BUDGET} --batch 256 --replay 10000"),
            Row("budget-8-fm", "8 x 8, FM", f"{BUDGET} --batch 128 --objective fm"),
            Row(
                "budget-8-fm-replay",
                "8 x 8, FM, replay",
                f"{BUDGET} --batch 256 --replay 10000 --objective fm",
            ),
            Row("budget-16", "16 x 16, TB", f"{BUDGET} --batch 128 --height 16"),
            Row(
                "budget-16-replay",
                "16 x 16, TB, replay",
                f"{BUDGET} --batch 256 --replay 10000 --height 16",
            ),
            Row("budget-8-4", "8^4, TB", f"{BUDGET} --batch 128 --ndim 4 --height 8"),
            Row(
                "budget-8-4-replay",
                "8^4, TB, replay",
                f"{BUDGET} --batch 256 --replay 10000 --ndim 4 --height 8",
            ),
        ],
    },
    {
        "title": "Modes that training sees",
        "text": "Of the 256 modes of a grid of 20^4 with rare rewards (r0 = 1e-3), half of each batch "
        "replayed; rewards are computed for new objects alone.",
        "must": EXACT,
        "columns": SIZE + [("modes seen", "spread", "modes_seen"), TV],
        "rows": [
            Row(
                "modes-20-4",
                "grid 20^4, SubTB",
                "hypergrid --ndim 4 --height 20 --r0 1e-3 --objective subtb --replay 10000 --batch 32 "
                "--steps 2480 --epsilon 0.1",
            )
        ],
    },
    {
        "title": "Peaks on a grid of 10^8 points",
        "text": "16 Gaussian peaks on a grid of 10^8, on a floor of 1e-9: how many of them were found "
        "after a part of the budget of at most 32,000 reward calls, those of chains included. A "
        "peak is found if its Gaussian is at least half of its height at a scored point.",
        "must": SAMPLED,
        "columns": [
            ("reward calls", "spread", "reward_calls"),
            ("processor, s", "processor"),
            ("found by an eighth", "spread", "found_by_eighth"),
            ("a quarter", "spread", "found_by_quarter"),
            ("half", "spread", "found_by_half"),
            ("all", "spread", "modes_found"),
        ],
        "rows": peak_rows("peaks", PEAK_METHODS),
    },
    {
        "title": "Peaks that trained policies visit",
        "text": "20,000 samples of the policies of the same runs. A peak is visited if most of a sample's"
        " reward is its Gaussian, even far from the top; one such sample is enough, so this "
        "counts little without TV. TV is between the samples' shares (one per peak, one for the "
        "floor) and the exact shares.",
        "must": SAMPLED,
        "columns": [
            ("parameters", "same", "params"),
            ("peaks visited", "spread", "peaks_visited"),
            ("TV over the peaks", "spread", "tv_peaks"),
            ("share of the floor", "spread", "floor_share"),
            LOG_Z,
        ],
        "rows": peak_rows("visits", PEAK_METHODS[:2]),
    },
    {
        "title": "Sequences that bind a transcription factor",
        "text": "TFBind8, with the cubed score as reward. Exact, over all 65,536 sequences.",
        "must": EXACT,
        "columns": SIZE + [JSD, TV, ("Spearman of p and R", "spread", "spearman"), LOG_Z],
        "rows": [Row("tfbind8", "TB", "tfbind8 --table out/data/tfbind8.csv")],
    },
    {
        "title": "One policy for five conditions",
        "text": "Exact, the mean over the conditions.",
        "must": EXACT,
        "columns": SIZE + [L1, TV, JSD],
        "rows": [Row("conditional", "grid 8 x 8, rewards by condition", "conditional-hypergrid")],
    },
]

CONTINUOUS = [
    {
        "title": "Boxes",
        "text": "The JSD of 10,000 samples on 50 x 50 cells, beside that of as many perfect samples.",
        "must": SAMPLED,
        "columns": SIZE + [JSD, ("perfect samples", "spread", "jsd_floor"), LOG_Z],
        "rows": [
            Row("box-0.1", "step 0.1, TB", "box --delta 0.1"),
            Row("box-0.1-db", "step 0.1, DB", "box --delta 0.1 --objective db"),
            Row("box-0.25", "step 0.25, TB", "box --delta 0.25"),
            Row("box-polar", "polar, step 0.25, TB", "box --polar --delta 0.25"),
        ],
    },
    {
        "title": "Diffusion",
        "text": "Figures of 2,000 samples. The bound is a lower one on log Z; W2 is the Wasserstein distance,"
        " beside that of perfect samples.",
        "must": SAMPLED,
        "columns": SIZE
        + [
            ("bound off by", "spread", "log_z_error"),
            ("reweighted off by", "spread", "log_z_reweighted_error"),
            ("W2", "spread", "w2"),
            ("perfect", "spread", "w2_perfect"),
            MODES,
        ],
        "rows": [Row("diffusion", "two Gaussians in the plane, 32 steps", "diffusion")],
    },
]

TRAINING = [
    {
        "title": "Replicas",
        "text": "Rings of 4 nodes at equal steps and batches: 128,000 trajectories, half of them replayed, of"
        " one trainer and of replicas that train as one. Processes (`--dist sync`) give the bits of "
        "as many threads.",
        "must": {"exact": True, "device": "cpu"},
        "columns": [*SIZE, ("members", "same", "members"), JSD, TV, MODES],
        "rows": [
            Row("replicas-1", "one", f"ring --nodes 4 --directed {REPLICAS} 1", FIVE),
            Row("replicas-2", "two replicas", f"ring --nodes 4 --directed {REPLICAS} 2", FIVE),
            Row("replicas-4", "four replicas", f"ring --nodes 4 --directed {REPLICAS} 4", FIVE),
        ],
    },
    {
        "title": "Speed",
        "text": "Steps and visited states per second once warm. Policies of the rows on rings and grids are "
        "frozen (`--lr 0`), so that every step is the same work; all phases are run. Speeds of other "
        "libraries that were measured beside ours are in [results/peers.md](results/peers.md).",
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
            Row(
                "speed-ring",
                "rings, 4 nodes, directed",
                f"ring --nodes 4 --directed --backward separate {FROZEN}",
            ),
            Row("speed-grid", "grid 8^4, TB", f"{SPEED_GRID} {FROZEN}"),
            Row("speed-grid-db", "grid 8^4, DB", f"{SPEED_GRID} --objective db {FROZEN}"),
            Row("speed-grid-subtb", "grid 8^4, SubTB", f"{SPEED_GRID} --objective subtb {FROZEN}"),
            Row(
                "speed-grid-20",
                "grid 20^4, TB",
                f"hypergrid --ndim 4 --height 20 --exit-bias -1.5 {FROZEN}",
            ),
            Row(
                "speed-box",
                "box, TB, 3 layers",
                "box --delta 0.1 --epsilon 0 --per-axis --components 2 --max-concentration 100 --backward "
                "separate --layers 3 --steps 400",
            ),
            Row("speed-diffusion", "diffusion, 32 steps", "diffusion --steps 200"),
            Row("speed-gnn", "structures, GNN", f"{GNN} --batch 32"),
            Row("speed-gnn-wide", "structures, GNN of width 208", f"{GNN} --batch 32 --embedding 208"),
            Row("speed-gnn-64", "structures, GNN, 32 of 64 replayed", f"{GNN} --batch 64"),
        ],
    },
]

SECTIONS = [
    ("Structures of Bayesian networks", STRUCTURES),
    ("Molecules", MOLECULES),
    ("Graphs", GRAPHS),
    ("Vectors", VECTORS),
    ("Continuous states", CONTINUOUS),
    ("Training", TRAINING),
]

# The rows of the README's table. `what` describes the row. `here` is the cell that is shown: the name of a
# row of another table in this file, a kind and a key. `beside` is what the cell is compared with: a text, a
# text with {} in the place of another cell, or a text with {} in the place of numbers that must occur in
# docs/results/peers.md.
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
