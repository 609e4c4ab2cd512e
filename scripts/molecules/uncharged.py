"""Writes gym/molecules/tests/golden/uncharged.json, with charged molecules and the results of RDKit's
Uncharger for them."""

import json
import pathlib

from rdkit import Chem, RDLogger, rdBase
from rdkit.Chem.MolStandardize import rdMolStandardize

# The molecules are acids, amines, zwitterions, quaternary cations with and without anions, nitro groups,
# N-oxides, carbanions, dications, nitrate and chlorate, nitronates, and acids of sulphur.
CASES = """
    CC(=O)[O-] C[NH3+] [NH3+]CC(=O)[O-] C[N+](C)(C)C C[N+](C)(C)CC(=O)[O-] C[N+](=O)[O-] c1cc[n+]([O-])cc1
    c1cc[nH+]cc1 C[n+]1ccccc1 [O-]c1ccccc1 [O-]c1ccccc1C(=O)[O-] C[N+](C)(C)CC(C(=O)[O-])[O-]
    C[N+](C)(C)CC(C(=O)[O-])C(=O)[O-] CS(=O)(=O)[O-] COP(=O)([O-])[O-] [NH3+]CC[NH3+] [NH3+]CCC(=O)[O-]
    c1nn[n-]n1 Cc1nn[n-]n1 Cc1nnn[n-]1 [S-]CC C[S-] CC[CH2-] [CH3-] [C-]#N C[N+]#[C-] [N-]=[N+]=NC
    CN=[N+]=[N-] C[N-]C C[NH-] [OH-] [OH3+] [NH4+] [Cl-] C[O-] C=[NH2+] CC(N)=[NH2+] NC(N)=[NH2+] C[SH2+]
    C[S+](C)C C[S+](C)CC(=O)[O-] C[P+](C)(C)C C[N+](C)(C)CC[O-] C[N+](C)(C)CC(O)CC(=O)[O-] C[N+]1(C)CCOCC1
    O=C([O-])c1ccc[nH+]c1 O=C([O-])c1ccc[n+](C)c1 C[N+](C)(C)CC[N+](C)(C)CC(=O)[O-]
    [O-][N+](=O)c1ccc([O-])cc1 [O-]S(=O)(=O)CC[NH+](C)C COP(=O)([O-])OCC[N+](C)(C)C [O-][n+]1ccccc1C(=O)[O-]
    CC([O-])=CC C[B-](F)(F)F F[B-](F)(F)F [O-]CC[N+](C)(C)CCC(=O)[O-] [S-]CC[N+](C)(C)CC(=O)[O-]
    [NH3+]C(C[N+](C)(C)C)C(=O)[O-] c1cc[n-]c1 O=c1cc[n-]c(=O)[nH]1 [O-][N+](=O)[O-] [S-][N+](=O)[O-]
    [O-][N+](=S)[O-] [O-][Cl+][O-] [O-][Br+][O-] [O-][Cl+2]([O-])[O-] [O-][I+2]([O-])[O-] [O-]Cl
    CO[N+](=O)[O-] N[N+](=O)[O-] CC=[N+]([O-])[O-] C[CH-][N+](=O)[O-] C[N-][N+](=O)[O-] [N-]=[N+]=[N-]
    C[N+](C)(C)CO[N+](=O)[O-] CC(=O)[S-] CC(=S)[S-] C[N+](C)(C)CC([O-])CC(=O)[S-]
    C[N+](C)(C)CC([O-])CC(=S)[O-] C[N+](C)(C)CC([S-])CC(=S)[S-]
""".split()


def main() -> None:
    RDLogger.DisableLog("rdApp.*")
    uncharger = rdMolStandardize.Uncharger()
    cases = []
    for smiles in CASES:
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None:
            continue
        cases.append({"smiles": smiles, "uncharged": Chem.MolToSmiles(uncharger.uncharge(molecule))})
    path = pathlib.Path(__file__).parents[2] / "gym/molecules/tests/golden/uncharged.json"
    text = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(
        f'{{"source": "RDKit {rdBase.rdkitVersion}, rdMolStandardize.Uncharger", "cases": [\n{text}\n]}}\n'
    )


if __name__ == "__main__":
    main()
