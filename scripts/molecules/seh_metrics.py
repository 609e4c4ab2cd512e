"""Computes the metrics of a run of `seh-frag` by RDKit, at given numbers of reward calls, as JSON.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/seh_metrics.py FOLDER/scored.csv --calls 1600 6400 19500
    venv/bin/python scripts/molecules/seh_metrics.py --calls 6400 --run seh-frag --weights FILE --seed 0

`FOLDER` is the `--out` or `--run` of `reproduce seh-frag`, also with `--by genetic`. The file has a row for
each scored molecule, in order: `step,smiles,reward`, where the reward R is the proxy's output divided by 8.
Fingerprints are Morgan fingerprints of radius 2 with 2,048 bits. Molecules are equal if RDKit's canonical
SMILES are equal.

With `--run`, which takes a task of `reproduce` with all its flags, this script runs the task itself, by the
program in the environment variable REPRODUCE (by default `target/release/examples/reproduce`). It prints one
JSON object: that of the task, the metrics after the last call, and the metrics after each other number of
calls, with `_at_` and that number at the end of their names. Without `--run` the output has a line for each
number of calls:

* `mean_last_1000`: the mean R of the last 1,000 scored molecules
* `best_100`: the mean R of the best 100 distinct molecules
* `distinct`: the share of distinct molecules among all scored molecules
* `modes`: the number of molecules with R > 7/8 whose Tanimoto similarity to each earlier mode is below 0.7
* `modes_raw_7`: the number of molecules with a proxy output above 7 (the same R > 7/8) whose similarity to
  each earlier mode is at most 0.5, as Bengio et al. 2021 count modes
* `circles`: #Circles (Xie et al. 2023) of the distinct molecules with R > 7/8: the size of a set of molecules
  whose Tanimoto distances are above 0.7. The largest such set is hard to find, so, as in the paper, molecules
  are added one by one, in the order of scoring
* `unreadable`: the number of molecules that RDKit can't read; all other metrics ignore them
"""

import argparse
import csv
import heapq
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from rdkit import Chem, DataStructs, RDLogger
from rdkit.Chem import rdFingerprintGenerator

GOOD = 7 / 8
LAST = 1_000
BEST = 100


class Spread:
    """A set of fingerprints, to which a fingerprint is added if it is similar to no earlier one.

    `is_far(similarity)` says if a similarity to an earlier fingerprint is small enough.
    """

    def __init__(self, is_far):
        self.is_far = is_far
        self.fingerprints = []

    def offer(self, fingerprint):
        similarities = DataStructs.BulkTanimotoSimilarity(fingerprint, self.fingerprints)
        if all(map(self.is_far, similarities)):
            self.fingerprints.append(fingerprint)


class Metrics:
    """The metrics of the molecules that were added so far."""

    def __init__(self):
        self.generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
        self.rewards = []
        self.best = {}
        self.unreadable = 0
        self.spreads = {
            "modes": Spread(lambda similarity: similarity < 0.7),
            "modes_raw_7": Spread(lambda similarity: similarity <= 0.5),
            "circles": Spread(lambda similarity: 1 - similarity > 0.7),
        }

    def add(self, smiles, reward):
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None:
            self.unreadable += 1
            return
        self.rewards.append(reward)
        key = Chem.MolToSmiles(molecule)
        if key in self.best:
            return
        self.best[key] = reward
        if reward > GOOD:
            fingerprint = self.generator.GetFingerprint(molecule)
            for spread in self.spreads.values():
                spread.offer(fingerprint)

    def report(self, calls):
        last = self.rewards[-LAST:]
        best = heapq.nlargest(BEST, self.best.values())
        return {
            "calls": calls,
            "mean_last_1000": sum(last) / max(1, len(last)),
            "best_100": sum(best) / max(1, len(best)),
            "distinct": len(self.best) / max(1, len(self.rewards)),
            **{name: len(spread.fingerprints) for name, spread in self.spreads.items()},
            "unreadable": self.unreadable,
        }


def measure(rows, calls):
    """Returns the metrics after each number of calls that the table reaches, and after its last row."""
    metrics = Metrics()
    reports = []
    for scored, row in enumerate(rows, start=1):
        metrics.add(row["smiles"], float(row["reward"]))
        if scored in calls:
            reports.append(metrics.report(scored))
    total = len(metrics.rewards) + metrics.unreadable
    if total not in calls:
        reports.append(metrics.report(total))
    return reports


def read_reports(table, calls):
    with open(table, newline="") as file:
        return measure(csv.DictReader(file), set(calls))


def run_task(flags, calls):
    """Runs a task of `reproduce` with these flags. Returns its JSON object with the metrics."""
    program = os.environ.get("REPRODUCE", "target/release/examples/reproduce")
    with tempfile.TemporaryDirectory() as folder:
        command = [program, *flags, *([] if "--json" in flags else ["--json"]), "--out", folder]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        except FileNotFoundError:
            sys.exit(f"{program} doesn't exist; build it: cargo build --release --example reproduce")
        if done.returncode != 0:
            sys.exit(f"`{' '.join(command)}` failed with exit code {done.returncode}")
        result = json.loads(done.stdout.splitlines()[-1])
        *others, last = read_reports(pathlib.Path(folder) / "scored.csv", calls)
    for report in others:
        result.update({f"{name}_at_{report['calls']}": value for name, value in report.items()})
    return result | last


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?", help="the file `scored.csv` of a run")
    parser.add_argument("--calls", type=int, nargs="*", default=[], help="numbers of reward calls")
    parser.add_argument("--run", nargs=argparse.REMAINDER, help="a task of `reproduce` with its flags")
    arguments = parser.parse_args()
    if (arguments.table is None) == (arguments.run is None):
        parser.error("expected either the file of a run, or --run with a task")
    RDLogger.DisableLog("rdApp.*")
    if arguments.run is not None:
        print(json.dumps(run_task(arguments.run, arguments.calls)))
        return
    for report in read_reports(arguments.table, arguments.calls):
        print(json.dumps(report))


if __name__ == "__main__":
    main()
