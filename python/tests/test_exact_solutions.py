"""Checks `scripts/exact_solutions.py` against all sets of nodes of small graphs."""

import importlib.util
import itertools
import json
import pathlib
import random
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("exact_solutions", ROOT / "scripts" / "exact_solutions.py")
exact = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(exact)


def graph6(n, edges):
    bits = "".join("1" if (a, b) in edges else "0" for b in range(n) for a in range(b))
    bits += "0" * (-len(bits) % 6)
    return chr(63 + n) + "".join(chr(63 + int(bits[k : k + 6], 2)) for k in range(0, len(bits), 6))


def best_size(problem, n, edges):
    """Returns the size of the best of all sets of nodes, without the script's functions."""
    near = [{a} for a in range(n)]
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    sizes = []
    for chosen in itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(n + 1)):
        inside = set(chosen)
        if problem == "cut":
            sizes.append(sum((a in inside) != (b in inside) for a, b in edges))
        elif problem == "dominating-set":
            if set().union(*(near[a] for a in chosen)) == set(range(n)):
                sizes.append(len(chosen))
        elif all((b in near[a]) == (problem == "clique") for a, b in itertools.combinations(chosen, 2)):
            sizes.append(len(chosen))
    return min(sizes) if problem == "dominating-set" else max(sizes)


def random_graphs():
    draw = random.Random(3)
    for n, p in [(1, 0.5), (6, 0.0), (6, 1.0), (9, 0.3), (9, 0.7), (10, 0.5)]:
        yield n, [(a, b) for b in range(n) for a in range(b) if draw.random() < p]


@pytest.mark.parametrize("problem", exact.PROBLEMS)
def test_values_are_those_of_all_sets_of_nodes(problem):
    pytest.importorskip("ortools")
    for n, edges in random_graphs():
        assert exact.read_graph6(graph6(n, set(edges))) == (n, edges)
        row = exact.solve(problem, n, edges, 20.0)
        assert row["proven"] and row["value"] == row["bound"] == best_size(problem, n, edges), (n, edges)


def test_every_edge_is_in_a_clique_of_the_cover():
    for n, edges in random_graphs():
        pairs = [set(itertools.combinations(sorted(one), 2)) for one in exact.cover_by_cliques(n, edges)]
        assert set().union(*pairs) == set(edges)


def test_sets_that_are_no_solutions_are_refused():
    path = [(0, 1), (1, 2), (2, 3)]
    for problem, wrong, right, size in [
        ("independent-set", [0, 1], [0, 2], 2),
        ("clique", [0, 2], [1, 2], 2),
        ("dominating-set", [0, 1], [1, 2], 2),
    ]:
        assert exact.solution_size(problem, 4, path, right) == size
        with pytest.raises(exact.SolutionsError, match="aren't a solution"):
            exact.solution_size(problem, 4, path, wrong)
    assert exact.solution_size("cut", 4, path, [1, 3]) == 3


def test_sizes_that_contradict_the_solver_are_refused():
    row = {"nodes": 4, "edges": 3, "value": 2, "bound": 2, "proven": True, "seconds": 0.1}
    sizes = {"best": 1.0, "mean": 1.0, "greedy": 2.0, "local_search": 2.0, "optimum": 2.0}
    exact.check_measured(0, "independent-set", row, sizes)
    for problem, change in [
        ("independent-set", {"best": 3.0}),
        ("independent-set", {"optimum": 1.0}),
        # A smaller dominating set is the better one.
        ("dominating-set", {}),
    ]:
        with pytest.raises(exact.SolutionsError, match="check that the measurements are of the problem"):
            exact.check_measured(0, problem, row, {**sizes, **change})


def test_the_script_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(exact.SolutionsError, match="pip install ortools"):
        exact.solve("cut", 2, [(0, 1)], 1.0)
    for text in ["not graph6!", "K~", "~?", "~"]:
        with pytest.raises(exact.SolutionsError, match="write the file"):
            exact.read_graph6(text)
    command = [str(tmp_path / "measured"), "--problem", "cut"]
    for text in ['{"nodes": 2}\n', "7\n", '{"graph6": "A_", "best": "many"}\n', "[]\n"]:
        (tmp_path / "measured").write_text(text)
        with pytest.raises(exact.SolutionsError, match="line 1 of .* isn't JSON with the entry `graph6`"):
            exact.main(command)
    (tmp_path / "measured").write_bytes(b"\xff\xfe")
    with pytest.raises(exact.SolutionsError, match="isn't a text file"):
        exact.main(command)
    for wrong in [["--first", "-1"], ["--seconds", "0"], ["--seconds", "nan"]]:
        with pytest.raises(SystemExit):
            exact.main([*command, *wrong])


def test_measurements_are_read_and_summarised(tmp_path, capsys):
    pytest.importorskip("ortools")
    measured, out = tmp_path / "measured.jsonl", tmp_path / "exact.jsonl"
    lines = [{"graph6": graph6(n, set(edges)), "best": n} for n, edges in random_graphs()]
    measured.write_text("".join(json.dumps(line) + "\n" for line in lines))
    exact.main([str(measured), "--problem", "dominating-set", "--out", str(out), "--first", "3"])
    summary = json.loads(capsys.readouterr().out)
    assert [json.loads(line)["value"] for line in out.read_text().splitlines()] == [1, 6, 1]
    assert (summary["graphs"], summary["proven"], summary["value"]) == (3, 3, 8 / 3)
    assert (summary["measured_best"], summary["measured_optimum"]) == (13 / 3, None)
