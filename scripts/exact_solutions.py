"""Solves a graph problem exactly, or within a time limit, on each graph on which a policy was measured. Needs
the solver CP-SAT of OR-tools (`pip install ortools`).

    reproduce graph-problem --problem clique --graphs rb-large --per-graph measured.jsonl
    python3 scripts/exact_solutions.py measured.jsonl --problem clique --seconds 10 --out exact.jsonl

Each line of the file of measurements is JSON with a graph as `graph6` and, as far as they were measured, the
sizes of the best and the mean sample, of the greedy solution, of local search and of the optimum. The file of
`--out` has a line per graph: the size of the best solution that the solver found (`value`), its proven bound
on the size of any solution (`bound`), `proven` (whether the two are equal), and the time in seconds. The last
line of the output has the means. It is an error if a measured size is better than the solver's bound.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

PROBLEMS = ("independent-set", "clique", "dominating-set", "cut")
# The names of the sizes of solutions in a line of measurements.
SIZES = ("best", "mean", "greedy", "local_search", "optimum")


class SolutionsError(Exception):
    """An error that the user of this script can correct."""


def read_graph6(line):
    """Returns the number of nodes and the list of edges (a, b), a < b, of a graph in the format graph6."""
    codes = [code - 63 for code in str(line).strip().encode()]
    if not codes or min(codes) < 0 or max(codes) > 63:
        raise SolutionsError(
            f"a line isn't graph6, whose characters are ? to ~: {line[:40]!r}; write the file by "
            "`reproduce graph-problem --per-graph FILE`"
        )
    n, start = codes[0], 1
    if n == 63 and len(codes) < 4:
        raise SolutionsError(
            f"a line of graph6 ends within its number of nodes: {line[:40]!r}; write the file again"
        )
    if n == 63:
        n, start = (codes[1] << 12) + (codes[2] << 6) + codes[3], 4
    bits = [code >> shift & 1 for code in codes[start:] for shift in range(5, -1, -1)]
    pairs = [(a, b) for b in range(n) for a in range(b)]
    if len(bits) < len(pairs):
        raise SolutionsError(
            f"a line has {len(bits)} bits, expected {len(pairs)} for the pairs of {n} nodes; write the file "
            "again"
        )
    return n, [pair for pair, bit in zip(pairs, bits) if bit]


def cover_by_cliques(n, edges):
    """Returns lists of nodes such that the nodes of a list are pairwise adjacent, and each edge is in a list.
    Few long lists give the solver a tighter relaxation than one constraint per edge."""
    near = [set() for _ in range(n)]
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    left, cliques = set(edges), []
    for edge in edges:
        if edge not in left:
            continue
        clique, both = list(edge), near[edge[0]] & near[edge[1]]
        while both:
            # Prefers the node with the most edges to the clique that aren't covered yet.
            node = max(sorted(both), key=lambda c: sum((min(a, c), max(a, c)) in left for a in clique))
            clique.append(node)
            both &= near[node]
        left -= {(min(a, b), max(a, b)) for a in clique for b in clique if a != b}
        cliques.append(clique)
    return cliques


def build(model, problem, n, edges):
    """Adds the problem on a graph to a model of CP-SAT. Returns the variables of the nodes."""
    chosen = [model.new_bool_var(str(a)) for a in range(n)]
    if problem in ("independent-set", "clique"):
        excluded = edges
        if problem == "clique":
            known = set(edges)
            excluded = [(a, b) for b in range(n) for a in range(b) if (a, b) not in known]
        for clique in cover_by_cliques(n, excluded):
            model.add_at_most_one(chosen[a] for a in clique)
        model.maximize(sum(chosen))
    elif problem == "dominating-set":
        near = [[a] for a in range(n)]
        for a, b in edges:
            near[a].append(b)
            near[b].append(a)
        for nodes in near:
            model.add_bool_or(chosen[a] for a in nodes)
        model.minimize(sum(chosen))
    else:
        # The two sides of a cut can be exchanged, so the side of the first node is fixed.
        for first in chosen[:1]:
            model.add(first == 0)
        cut = []
        for a, b in edges:
            is_cut = model.new_bool_var(f"{a} {b}")
            model.add_bool_or(chosen[a], chosen[b], is_cut.negated())
            model.add_bool_or(chosen[a].negated(), chosen[b].negated(), is_cut.negated())
            cut.append(is_cut)
        model.maximize(sum(cut))
    return chosen


def solution_size(problem, n, edges, nodes):
    """Returns the size of a solution: the number of its nodes, or of the edges of a cut. Raises an error if
    the nodes aren't a solution. Uses only the list of edges, not the model."""
    inside = set(nodes)
    if problem == "cut":
        return sum((a in inside) != (b in inside) for a, b in edges)
    within = sum(a in inside and b in inside for a, b in edges)
    dominated = inside | {b for a, b in edges if a in inside} | {a for a, b in edges if b in inside}
    right = {
        "independent-set": within == 0,
        "clique": within == len(inside) * (len(inside) - 1) // 2,
        "dominating-set": len(dominated) == n,
    }[problem]
    if not right:
        raise SolutionsError(
            f"the solver's nodes {sorted(inside)} aren't a solution of the problem {problem}; report this"
        )
    return len(inside)


def solve(problem, n, edges, seconds):
    """Solves the problem on one graph with one thread. Returns the row of the graph."""
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise SolutionsError(
            "the package ortools, which has the exact solver, can't be imported; install it by "
            f"`pip install ortools` ({error})"
        ) from None
    started = time.perf_counter()
    model = cp_model.CpModel()
    chosen = build(model, problem, n, edges)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    row = {"nodes": n, "edges": len(edges), "value": None, "bound": None, "proven": False}
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        nodes = [a for a in range(n) if solver.value(chosen[a])]
        row["value"] = solution_size(problem, n, edges, nodes)
        # Sizes are whole numbers, so a bound of 19.7 on the largest is 19.
        slack = -1e-6 if problem == "dominating-set" else 1e-6
        bound = solver.best_objective_bound + slack
        row["bound"] = int(-(-bound // 1)) if problem == "dominating-set" else int(bound // 1)
        row["proven"] = row["value"] == row["bound"]
    row["seconds"] = round(time.perf_counter() - started, 3)
    return row


def check_measured(k, problem, row, measured):
    """Raises an error if a measured size of solutions of graph `k` contradicts the solver's row."""
    sign = -1 if problem == "dominating-set" else 1
    for name in SIZES:
        size = measured.get(name)
        if size is not None and row["bound"] is not None and sign * size > sign * row["bound"]:
            raise SolutionsError(
                f"graph {k}: the measured size `{name}` is {size}, expected none better than the solver's "
                f"bound {row['bound']}; check that the measurements are of the problem {problem}"
            )
    optimum = measured.get("optimum")
    if row["proven"] and optimum is not None and optimum != row["value"]:
        raise SolutionsError(
            f"graph {k}: the measured optimum is {optimum}, expected the solver's {row['value']}; check that "
            f"the measurements are of the problem {problem}"
        )


def summarise(problem, rows, measured):
    """Returns the means over the graphs that have a value. `measured` has the lines of measurements of the
    same graphs."""
    mean = lambda values: statistics.fmean(values) if values else None
    pairs = [(row, sizes) for row, sizes in zip(rows, measured) if row["value"] is not None]
    means = {name: mean([sizes[name] for _, sizes in pairs if sizes.get(name) is not None]) for name in SIZES}
    return {
        "problem": problem,
        "graphs": len(rows),
        "proven": sum(row["proven"] for row in rows),
        "value": mean([row["value"] for row, _ in pairs]),
        "bound": mean([row["bound"] for row, _ in pairs]),
        "seconds_each": mean([row["seconds"] for row in rows]),
        **{f"measured_{name}": value for name, value in means.items()},
    }


def main(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measured", type=pathlib.Path, help="file that reproduce --per-graph wrote")
    parser.add_argument("--problem", choices=PROBLEMS, required=True)
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit for each graph")
    parser.add_argument("--first", type=int, help="solve only this number of graphs, the first ones")
    parser.add_argument("--out", type=pathlib.Path, help="file for the rows of the graphs")
    options = parser.parse_args(words)
    if options.first is not None and options.first < 1:
        parser.error(f"--first is {options.first}, expected at least one graph")
    if not options.seconds > 0:
        parser.error(f"--seconds is {options.seconds}, expected a positive time limit")
    try:
        lines = options.measured.read_text().splitlines()[: options.first]
    except UnicodeDecodeError:
        raise SolutionsError(
            f"{options.measured} isn't a text file, expected lines of JSON; write the file by "
            "`reproduce graph-problem --per-graph FILE`"
        ) from None
    measured, rows = [], []
    for k, line in enumerate(lines):
        try:
            measured.append(json.loads(line))
            graph = measured[-1]["graph6"]
            for name in SIZES:
                float(measured[-1].get(name) or 0)
        except (ValueError, TypeError, KeyError):
            raise SolutionsError(
                f"line {k + 1} of {options.measured} isn't JSON with the entry `graph6` and numbers as "
                f"sizes: {line[:40]!r}; write the file by `reproduce graph-problem --per-graph FILE`"
            ) from None
        rows.append(solve(options.problem, *read_graph6(graph), options.seconds))
        check_measured(k, options.problem, rows[-1], measured[-1])
        if options.out:
            options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(json.dumps(summarise(options.problem, rows, measured)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (SolutionsError, OSError) as error:
        sys.exit(f"exact_solutions.py: {error}")
