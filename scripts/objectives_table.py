#!/usr/bin/env python3
"""Writes docs/objectives.md, a table of the exact distances to the target that are reached by training with
every objective on every source of trajectories, for three seeds.

The script can be run from any folder: scripts/objectives_table.py. It trains on 2 environments, with 3 seeds,
for all pairs of an objective and a source. This takes about half an hour on one core.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH, SEEDS = 16, (0, 1, 2)
ENVIRONMENTS = {"grid": "5 x 5 grid, original reward", "dag": "The toy DAG of 11 states"}
STEPS = 1000
# The number of training steps for pairs of environment and objective that need more steps than the others.
SLOW = {("grid", "subtb-geometric"): 2000}


def pairs(environment, seed):
    def run(steps, *only):
        command = [
            "cargo",
            "run",
            "--release",
            "--quiet",
            "--example",
            "reproduce",
            "--",
            "compare-objectives",
        ]
        command += [
            "--environment",
            environment,
            "--seed",
            str(seed),
            "--steps",
            str(steps),
            "--batch",
            str(BATCH),
            "--json",
        ]
        done = subprocess.run(command + list(only), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])["pairs"]

    found = {(pair["objective"], pair["source"]): pair for pair in run(STEPS)}
    for (where, objective), steps in SLOW.items():
        if where == environment:
            found.update({(objective, pair["source"]): pair for pair in run(steps, "--only", objective)})
    return found.values()


def table(environment):
    worst, refused, seconds = {}, {}, 0.0
    for seed in SEEDS:
        print(f"{environment}, seed {seed}", file=sys.stderr)
        for pair in pairs(environment, seed):
            key = pair["objective"], pair["source"]
            if pair["tv"] is None:
                worst[key] = None
                refused[pair["objective"]] = pair["why"]
            else:
                worst[key] = max(worst.get(key, 0.0), pair["tv"])
                seconds += pair["train_s"]
    sources = list(dict.fromkeys(source for _, source in worst))
    lines = [f"## {ENVIRONMENTS[environment]}", "", "| objective | " + " | ".join(sources) + " |"]
    lines.append("|---" * (len(sources) + 1) + "|")
    for objective in dict.fromkeys(objective for objective, _ in worst):
        cells = [worst[objective, source] for source in sources]
        steps = SLOW.get((environment, objective))
        name = f"`{objective}`" + (f", {steps:,} steps" if steps else "")
        lines.append(f"| {name} | " + " | ".join("-" if tv is None else f"{tv:.1e}" for tv in cells) + " |")
    trained = [tv for tv in worst.values() if tv is not None]
    runs = len(trained) * len(SEEDS)
    lines += [
        "",
        f"Worst of all: {max(trained):.4f}. Mean training time of a run: {seconds / runs:.1f} s on one "
        f"thread.",
        "",
    ]
    if refused:
        lines += (
            ["A dash is a typed error:", ""] + [f"* `{name}`: {why}" for name, why in refused.items()] + [""]
        )
    return lines


def main():
    lines = [
        "# Every objective on every source of trajectories",
        "",
        f"Exact total variation to the target after {STEPS:,} steps of {BATCH} trajectories (replayed ones "
        f"included), the worst of",
        f"seeds {', '.join(map(str, SEEDS))}. A network of 2 x 64, learning rate 3e-3 falling to 0. Relative "
        f"objectives have the uniform policy as prior",
        "and R(x) / prior(x) as reward, so that their target is everyone else's; at temperature 1 Trust-PCL "
        "is relative TB. Made by `scripts/objectives_table.py`, which runs",
        "`cargo run --release --example reproduce -- compare-objectives --environment grid --seed 0 --json` "
        "and its likes.",
        "",
    ]
    for environment in ENVIRONMENTS:
        lines += table(environment)
    (ROOT / "docs" / "objectives.md").write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
