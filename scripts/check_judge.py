"""Compares total variation and flow consistency of `reproduce judge` with a second implementation.

    reproduce truth grid --out truth.csv
    reproduce judge grid examples/data/torchgfn_grid.csv --json > judged
    python3 scripts/check_judge.py truth.csv examples/data/torchgfn_grid.csv judged
"""

import csv
import json
import random
import sys

SUBSETS, SUBSET_SIZE = 4_000, 16


def read_shares(truth, samples):
    """Returns the target probability and the share of samples of each object, as dictionaries by the object's
    text. Also returns the list of samples."""
    with open(truth, newline="") as file:
        target = {row["object"]: float(row["probability"]) for row in csv.DictReader(file)}
    with open(samples) as file:
        lines = [" ".join(line.replace(",", " ").split()) for line in file]
    drawn = [line for line in lines if line in target]
    if len(drawn) not in (len(lines), len(lines) - 1):
        sys.exit(
            f"{len(lines) - len(drawn)} lines of {samples} aren't objects of {truth}, expected at most one "
            "such line, the header"
        )
    shares = dict.fromkeys(target, 0.0)
    for line in drawn:
        shares[line] += 1 / len(drawn)
    return target, shares, drawn


def normalise(values):
    total = sum(values)
    return [value / total for value in values] if total else values


def distance(p, q):
    return sum(abs(a - b) for a, b in zip(p, q)) / 2


def consistency(target, shares, drawn):
    """Returns the mean distance between the target and the samples' distribution on random subsets of
    objects. One half of a subset is drawn from the target, and the other half from the samples."""
    names, weights, total = list(target), list(target.values()), 0.0
    for _ in range(SUBSETS):
        subset = sorted(
            {*random.choices(names, weights, k=SUBSET_SIZE // 2), *random.choices(drawn, k=SUBSET_SIZE // 2)}
        )
        total += distance(
            normalise([shares[name] for name in subset]), normalise([target[name] for name in subset])
        )
    return total / SUBSETS


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    random.seed(0)
    target, shares, drawn = read_shares(*sys.argv[1:3])
    with open(sys.argv[3]) as file:
        judged = json.loads(file.read().splitlines()[-1])
    tv, fcs = distance(shares.values(), target.values()), consistency(target, shares, drawn)
    found = judged["consistency"]["fcs"]
    # The two estimates of flow consistency are means over different random subsets, so they may differ by
    # sampling noise.
    allowed = 0.5 * (found["high"] - found["estimate"]) + 1e-9
    print(
        f"total variation {tv:.6f} and {judged['tv']['estimate']:.6f}; flow consistency {fcs:.4f} and "
        f"{found['estimate']:.4f} (+- {allowed:.4f})"
    )
    if abs(tv - judged["tv"]["estimate"]) > 1e-9 or abs(fcs - found["estimate"]) > 2 * allowed:
        sys.exit("the figures computed here differ from those of the report")


if __name__ == "__main__":
    main()
