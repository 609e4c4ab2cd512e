"""Writes gym/molecules/tests/golden/explicit_hydrogens.json, with SMILES by RDKit that have all hydrogens as
atoms, in random order."""

import json
import pathlib
import random

from rdkit import Chem, RDLogger, rdBase

# The molecules have stereocentres with a hydrogen in chains and rings, double bonds with hydrogens at either
# end, aromatic NH, charges, sulphur and phosphorus.
CASES = r"""
    C O N [NH4+] C#C C=C F[C@H](Cl)Br F[C@@H](Cl)Br C[C@H](N)C(=O)O C[C@@H](N)C(=O)O C[C@H](O)[C@@H](C)O
    C[C@H](O)[C@H](C)O C[C@@H]1CO1 O[C@H]1CCCC[C@@H]1F C[C@H]1CC[C@@H](C)CC1 C[C@H]1CC[C@H](C)CC1
    N[C@@H](CS)C(=O)O C[C@@H](C#N)O F/C=C/F F/C=C\F C/C=C/C=C\C C/C=C/[C@H](O)/C=C\C C/C(F)=C/C C/C(F)=C\C
    CC(=O)/C=C/c1ccccc1 C/C=N/O C/C=N\O OC/C=C\CO c1cc[nH]c1 c1c[nH]cn1 c1ccc2[nH]ccc2c1 Cc1ccccc1
    O=c1cc[nH]cc1 C[n+]1ccccc1 C[NH2+]C CC(=O)[O-] C[N+](=O)[O-] CN=[N+]=[N-] C[S@](=O)CC CS(=O)(=O)N
    CP(=O)(O)O C[P@H]Cl C[P@@H]CC C[SH](=O)=O C[Si@H](F)Cl OB(O)c1ccccc1 C[Se]C CC[N@H+](C)CO
    C[C@H]1C[C@@H]2CC[C@H]1C2 O[C@@H]1[C@@H](O)[C@H](O)[C@@H](CO)O[C@H]1O
    C[C@]12CC[C@H](O)C[C@H]1CC[C@@H]1[C@@H]2CC[C@]2(C)C(=O)CC[C@@H]12 CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O
    CN1[C@H]2CC[C@@H]1[C@H]([C@H](C2)OC(=O)c1ccccc1)C(=O)OC
    CC1(C)S[C@@H]2[C@H](NC(=O)Cc3ccccc3)C(=O)N2[C@H]1C(=O)O
""".split()
TEXTS = 6


def main() -> None:
    RDLogger.DisableLog("rdApp.*")
    random.seed(0)
    rdBase.SeedRandomNumberGenerator(0)
    cases = []
    for smiles in CASES:
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        texts = sorted({Chem.MolToSmiles(molecule, doRandom=True) for _ in range(TEXTS)})
        # RDKit must read each text with explicit hydrogens as the same molecule as `smiles`.
        assert all(Chem.CanonSmiles(text) == Chem.CanonSmiles(smiles) for text in texts), smiles
        cases.append({"smiles": smiles, "texts": texts})
    path = pathlib.Path(__file__).parents[2] / "gym/molecules/tests/golden/explicit_hydrogens.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(
        f'{{"source": "RDKit {rdBase.rdkitVersion}, AddHs and MolToSmiles(doRandom=True)", "cases": '
        f'[\n{lines}\n]}}\n'
    )


if __name__ == "__main__":
    main()
