"""Writes scaffolds and circular environments (atoms with their surroundings) of golden molecules, by RDKit.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/molecule_similarity.py > \
        gym/molecules/tests/golden/molecule_similarity.json

For pairs of molecules, the file has the number of environments that both share, and the number of
environments that at least one of them has. Environments have a radius of up to two bonds, as in the unfolded
Morgan fingerprint. By default RDKit drops environments that have the same bonds as another one. These are
included here, because which of them is dropped would depend on the order of atoms. For each molecule, the
file has its Bemis-Murcko scaffold, which is empty for a molecule without rings.
"""

import json
import pathlib

from rdkit import Chem, __version__
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.Scaffolds import MurckoScaffold

MOLECULES = pathlib.Path(__file__).resolve().parents[2] / "gym/molecules/tests/golden/molecules.json"
# A pair consists of a molecule and the molecule that is 1, 7 or 31 places later in the list.
STEPS = (1, 7, 31)
# Further molecules with substituents on charged and aromatic atoms, exocyclic double bonds, linkers, spiro
# rings and fused rings.
MORE = [
    "Cn1cccc1",
    "C[n+]1ccccc1",
    "O=C1CCCCC1",
    "CC(=O)c1ccccc1",
    "O=C(c1ccccc1)c1ccccc1",
    "CC(C)(c1ccccc1)c1ccccc1",
    "C1CCC2(CC1)CCCC2",
    "N=C1CCCN1C",
    "CS(=O)(=O)c1ccccc1",
    "O=S(=O)(c1ccccc1)N1CCCC1",
    "C=C1CCC(CCC2CC2)C1",
    "C(=CC1CC1)C1CC1",
    "CC=C1CCC1",
    "C[N+](C)(C)C1CCCCC1",
    "CC[N+]1(C)CCCCC1",
    "O=C1C=CC(=O)C=C1",
    "c1ccc(-c2ccccc2)cc1",
    "N#Cc1ccccc1",
    "C1CC1C#CC1CC1",
    "CP(=O)(c1ccccc1)c1ccccc1",
    "Cc1c[nH]cn1",
    "O=[N+]([O-])c1ccccc1",
    "C1CC1OCCOC1CC1",
    "CC(C)CC(=O)NC1CC1",
    "O=c1cc[nH]cc1",
    "C",
    "CC",
    "CCO",
]


def case(smiles, fingerprint):
    molecule = Chem.MolFromSmiles(smiles)
    scaffold = Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(molecule))
    return {"smiles": smiles, "scaffold": scaffold, "environments": len(fingerprint)}


def main():
    golden = json.loads(MOLECULES.read_text())
    texts = [c["smiles"] for c in golden["cases"] if c["valid"]] + MORE
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, includeRedundantEnvironments=True)
    sets = [set(generator.GetSparseFingerprint(Chem.MolFromSmiles(text)).GetOnBits()) for text in texts]
    pairs = [
        [
            i,
            (i + step) % len(sets),
            len(sets[i] & sets[(i + step) % len(sets)]),
            len(sets[i] | sets[(i + step) % len(sets)]),
        ]
        for step in STEPS
        for i in range(len(sets))
    ]
    print(json.dumps({
        "source": f"scripts/molecules/molecule_similarity.py, RDKit {__version__}",
        "description": "pairs: [first, second, environments shared, environments together]",
        "cases": [case(text, bits) for text, bits in zip(texts, sets)],
        "pairs": pairs,
    }))


if __name__ == "__main__":
    main()
