"""Samples molecules in proportion to a power of RDKit's QED, a score of drug-likeness between 0 and 1.

python molecules_qed.py
"""

import argparse

import gfn_rs as gfn
import numpy as np
from rdkit.Chem import QED, Draw

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--steps", type=int, default=500)
arguments.add_argument("--atoms", type=int, default=9)
arguments.add_argument("--samples", type=int, default=500)
arguments.add_argument("--picture", default="molecules_qed.svg")
arguments.add_argument("--seed", type=int, default=0)
given = arguments.parse_args()


def reward(molecules):
    """Returns log R: R is QED to the power 16. QED is replaced by 1e-3 if it is smaller, so that log R isn't
    too small."""
    return [16 * np.log(max(QED.qed(molecule), 1e-3)) for molecule in molecules.rdkit()]


trainer = gfn.Trainer(
    gfn.Molecules(given.atoms, elements=["C", "N", "O"], charges=False),
    reward,
    gfn.GraphNet(layers=3, embedding=64, backward="shared_torso"),
    batch=32,
    adam=gfn.Adam(lr=1e-3, schedule=gfn.Linear(1, 0, given.steps)),
    # Half of each batch comes from a replay buffer, which draws molecules in proportion to their reward.
    sources=[gfn.Replay(2_000, distinct=True, draw="reward_prioritised")],
    seed=given.seed,
)


def qed_of_samples():
    molecules, log_rewards = trainer.sample_with_rewards(given.samples)
    return molecules, np.exp(log_rewards / 16)


_, before = qed_of_samples()
trainer.fit(given.steps)
molecules, qed = qed_of_samples()
print(
    f"mean QED of {given.samples} samples: {before.mean():.3f} before, {qed.mean():.3f} after {given.steps} "
    f"steps"
)
print(f"molecules scored: {trainer.reward_calls}, time: {trainer.history['seconds'].sum():.0f} s")

distinct = dict(sorted(zip(molecules.smiles, qed), key=lambda pair: -pair[1])[:200])
best = list(distinct.items())[:12]
print("QED    SMILES")
for smiles, score in best:
    print(f"{score:.3f}  {smiles}")

shown = [molecules[molecules.smiles.index(smiles)].rdkit()[0] for smiles, _ in best]
picture = Draw.MolsToGridImage(
    shown, molsPerRow=4, legends=[f"{score:.3f}" for _, score in best], useSVG=True
)
with open(given.picture, "w") as file:
    file.write(picture)
print(f"drawn in {given.picture}")
