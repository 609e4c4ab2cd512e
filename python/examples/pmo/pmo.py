"""Runs oracles of the benchmark PMO. A policy over SMILES learns the molecules of a file. Then a copy of it
is tuned to each oracle, relative to the first policy, with a replay buffer and offspring of the best.

python pmo.py --molecules zinc.smi --prior zinc_prior --seeds 0 1 2 3 4
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import time
from pathlib import Path

import gfn_rs as gfn
import numpy as np
from benchmark import CALLS, Record
from genetic import offspring
from oracles import ORACLES
from published import PUBLISHED
from smiles import Vocabulary, canonical

MOLECULES = Path(__file__).resolve().parents[3] / "examples" / "data" / "molecules.smi"
MAX_TOKENS = 100
BATCH = 64


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--molecules", default=MOLECULES, help="a file of SMILES that the first policy learns")
    add("--prior", help="a folder with the first policy, which is written if there is none")
    add("--steps", type=int, default=2_500, help="the training steps of the first policy")
    add("--width", type=int, default=128, help="the width of the network")
    add("--oracles", nargs="+", default=list(ORACLES), choices=list(ORACLES), metavar="ORACLE")
    add("--seeds", "--seed", nargs="+", type=int, default=[0], help="the seeds of the runs of each oracle")
    add("--calls", type=int, default=CALLS, help="the largest number of oracle calls of a run")
    add("--beta", type=float, default=100.0, help="R is exp(beta score)")
    add("--updates", type=int, default=4, help="training steps per round of 64 samples")
    add("--lr", type=float, default=5e-4, help="the learning rate of the tuned policy")
    add("--offspring", type=int, default=16, help="offspring of the best molecules per round")
    add("--mutation", type=float, default=0.3, help="the share of offspring that are changed in one place")
    add("--out", help="a file to which each run adds a line of JSON")
    add(
        "--json", action="store_true", help="print the areas, averaged over the seeds, as a last line of JSON"
    )
    given = parser.parse_args()
    if given.calls < 10:
        parser.error(f"--calls is {given.calls}: expected at least 10, because the score is a mean of ten")
    return given


def learn_molecules(given: argparse.Namespace) -> tuple[Vocabulary, gfn.Trainer]:
    """Returns the tokens and the trainer of the first policy, which learns the molecules of the file."""
    folder = None if given.prior is None else Path(given.prior)
    if folder is not None and (folder / "tokens.json").exists():
        check_prior(folder, given)
        vocabulary = Vocabulary(json.loads((folder / "tokens.json").read_text()), MAX_TOKENS)
        return vocabulary, prior_trainer(vocabulary, given, None).restore(folder / "policy")
    smiles = {text for read in gfn.read_molecules(given.molecules).smiles if (text := canonical(read))}
    vocabulary = Vocabulary.from_smiles(sorted(smiles), MAX_TOKENS, least=min(10, 1 + len(smiles) // 1_000))
    rows, _ = vocabulary.encode(sorted(smiles))
    print(f"{len(rows)} of {len(smiles)} molecules, {len(vocabulary.tokens)} tokens", flush=True)
    trainer = prior_trainer(vocabulary, given, rows).fit(given.steps)
    samples = vocabulary.decode(trainer.sample(500))
    share = np.mean([canonical(text) is not None for text in samples])
    print(f"after {trainer.steps_done} steps {share:.0%} of 500 samples are molecules", flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        trainer.save(folder / "policy")
        (folder / "settings.json").write_text(json.dumps(prior_settings(given)))
        # The tokens are written last, so that a folder with them is whole.
        (folder / "tokens.json").write_text(json.dumps(vocabulary.tokens))
    return vocabulary, trainer


def prior_settings(given: argparse.Namespace) -> dict[str, int | str]:
    """Returns the settings of the first policy by the names of their flags. The file of molecules is
    identified by a hash of its contents."""
    molecules = hashlib.sha256(Path(given.molecules).read_bytes()).hexdigest()[:12]
    return {"width": given.width, "steps": given.steps, "molecules": molecules, "max_tokens": MAX_TOKENS}


def check_prior(folder: Path, given: argparse.Namespace) -> None:
    """Ends the program if the first policy in the folder was made with other settings."""
    path = folder / "settings.json"
    if not path.exists():
        raise SystemExit(
            f"--prior {folder} has no file settings.json, so its settings are unknown; give another folder"
        )
    saved = json.loads(path.read_text())
    differences = [
        f"{name} is {saved.get(name, 'unknown')} there and {value} here"
        for name, value in prior_settings(given).items()
        if saved.get(name) != value
    ]
    if differences:
        raise SystemExit(
            f"--prior {folder} has a policy that was made with other settings: {', '.join(differences)}; "
            "give the settings of the folder, or another folder"
        )


def prior_trainer(vocabulary: Vocabulary, given: argparse.Namespace, rows: np.ndarray | None) -> gfn.Trainer:
    return gfn.Trainer(
        gfn.TokenSequence(len(vocabulary.tokens), MAX_TOKENS, min_length=1),
        lambda states: np.zeros(len(states)),
        gfn.SequenceNet("gru", width=given.width, layers=1),
        gfn.MaximumLikelihood(),
        batch=2 * BATCH,
        adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, given.steps), max_norm=5.0),
        sources=[] if rows is None else [gfn.Data(rows, share=1.0)],
    )


def optimise(
    record: Record, vocabulary: Vocabulary, prior: gfn.Trainer, given: argparse.Namespace, seed: int
) -> None:
    """Tunes a copy of the prior to the oracle of the record, until the budget of calls is spent or the best
    molecules don't change."""

    def log_reward(states: np.ndarray) -> list[float]:
        return [given.beta * record.scores.get(text, 0.0) for text in vocabulary.decode(states)]

    waiting: list[np.ndarray] = []
    trainer = gfn.Trainer(
        prior.env,
        log_reward,
        copy.deepcopy(prior.network),
        gfn.RelativeTrajectoryBalance(prior),
        batch=BATCH,
        adam=gfn.Adam(lr=given.lr, schedule=None),
        sources=[
            # New molecules come from the loop below. In the other steps, the whole batch is replayed.
            gfn.FreshSource(lambda request, rng: waiting.pop() if waiting else None),
            gfn.Replay(1_024, after=0, distinct=True, eviction="best_reward", draw="weighted_ranks"),
        ],
        seed=seed,
    )
    rng = np.random.default_rng(seed)
    new: list[str] = []
    while not record.is_full and not record.has_stopped_improving():
        found = [text for sample in vocabulary.decode(trainer.sample(BATCH)) if (text := canonical(sample))]
        if given.offspring > 0 and len(record.scores) >= 10:
            found += offspring(record.best(1_024), given.offspring, given.mutation, rng)
        calls = record.add(found)
        new += list(record.scores)[len(record.scores) - calls :]
        rows, _ = vocabulary.encode(new)
        # The first batch has no replayed molecules.
        if trainer.steps_done > 0 or len(rows) >= BATCH:
            waiting[:] = [rows] if len(rows) > 0 else []
            new = []
            trainer.fit(given.updates)


def run(name: str, seed: int, vocabulary: Vocabulary, prior: gfn.Trainer, given: argparse.Namespace) -> float:
    """Makes a run and prints its line. Returns the area under the curve of the ten best."""
    record = Record(ORACLES[name], given.calls)
    began = time.process_time()
    optimise(record, vocabulary, prior, given, seed)
    best = record.best(10)
    if len(best) < 10:
        raise SystemExit(f"{name}: {len(best)} valid molecules were found: train the first policy for longer")
    line = {
        "oracle": name,
        "seed": seed,
        "auc_top10": round(record.area(), 4),
        "calls": len(record.scores),
        "best": round(record.scores[best[0]], 4),
        "top10": round(float(np.mean([record.scores[text] for text in best])), 4),
        "molecule": best[0],
        "seconds": round(time.process_time() - began, 1),
    }
    print(json.dumps(line), flush=True)
    if given.out is not None:
        with open(given.out, "a") as file:
            file.write(json.dumps(line) + "\n")
    return record.area()


def published_text(names: list[str], comparable: bool) -> str:
    """Returns the columns with the sums of the published areas of these oracles; nothing for runs with
    another number of calls."""
    if not comparable:
        return ""
    reinvent, genetic = (sum(PUBLISHED[name][k] for name in names) for k in range(2))
    return f" {reinvent:9.3f} {genetic:12.3f}"


def main() -> None:
    given = arguments()
    vocabulary, prior = learn_molecules(given)
    areas = {
        name: [run(name, seed, vocabulary, prior, given) for seed in given.seeds] for name in given.oracles
    }
    # The published areas are of runs of 10,000 calls.
    comparable = given.calls == CALLS
    published = f" {'REINVENT':>9} {'Genetic GFN':>12}" if comparable else ""
    print(f"{'area of the ten best':26} {'here':>14}{published}")
    for name, values in areas.items():
        spread = np.std(values, ddof=1) if len(values) > 1 else 0.0
        print(f"{name:26} {np.mean(values):6.3f} ± {spread:.3f}" + published_text([name], comparable))
    total = sum(map(np.mean, areas.values()))
    print(f"{'sum':26} {total:6.3f}        " + published_text(list(areas), comparable))
    if given.json:
        means = {f"{name}_auc_top10": float(np.mean(values)) for name, values in areas.items()}
        print(json.dumps({"example": "pmo", "calls": given.calls, "sum_auc_top10": float(total), **means}))


if __name__ == "__main__":
    main()
