"""Compares the library's descriptors and substructures with those of RDKit.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1 ./python
    venv/bin/python scripts/molecules/check_descriptors.py corpus corpus [MORE.smi.gz ...]
    venv/bin/python scripts/molecules/check_descriptors.py score corpus
    venv/bin/python scripts/molecules/check_descriptors.py compare corpus/molecules.csv

`corpus` writes two files. `corpus.smi` has the molecules of all SMILES files in the package `rdkit`, of
`tests/golden/molecules.json` and of the given files. `score.toml` has all properties, alerts that cover the
whole SMARTS language, and the PAINS of `rdkit`.

`score` computes these properties with the library's Python package, for all molecules that it can read, and
writes them to `molecules.csv`.

`compare` lists the molecules with a property that differs from RDKit's by more than 1e-3. It fails if more
than one molecule in a thousand differs in the same property. RDKit reads the SMILES in the table, which have
no stereochemistry.

`golden` writes which golden molecules match each alert, according to RDKit:

    venv/bin/python scripts/molecules/check_descriptors.py golden > \
        gym/molecules/tests/golden/substructures.json
"""

import csv
import gzip
import json
import sys
from pathlib import Path

from rdkit import Chem, RDConfig, RDLogger, __version__
from rdkit.Chem import QED, Crippen, Descriptors, Lipinski, rdMolDescriptors

SHARE, TOLERANCE = 1e-3, 1e-3
GOLDEN = Path(__file__).resolve().parents[2] / "gym/molecules/tests/golden/molecules.json"
DATA, CONTRIB = Path(RDConfig.RDDataDir), Path(RDConfig.RDContribDir)
PAINS = DATA / "Pains" / "wehi_pains.csv"

# The SMARTS patterns of the alerts, which are substructures to be counted. Together they use each part of the
# SMARTS language.
ALERTS = """
    [CX4][Cl,Br,I] [CX3H1](=O)[#6] [NX3;H2,H1;!$(NC=O)]
    [$([CX3]([#6])[#6]),$([CX3H][#6])]=[$([NX2][#6]),$([NX2H])] [n;R2] [R3] [r3] [!r;!R]~[R] [D3;+1]
    [#7;v5,v4] a-!@a c:c-c:c C=!@C C#C [S,s;X2] [O-][N+]=O [x3] [C;R1]1[C;R1][C;R1][C;R1][C;R1][C;R1]1 [h0;c]
    *1~*~*~*~*~*~*1 [#6]~[#7]~[#6] [OX2H][CX3]=O C(=O)N.C(=O)N [!#6;!#1]~[!#6] [#1]O[#6;X3] [#1,#6]O[#6;X3]
    [NH]C(=O) [c;$(c1ccccc1)] [^2]~[^3] N-,=,:N""".split()

SIMPLE = {
    "qed": QED.qed,
    "log_p": Crippen.MolLogP,
    "molar_refractivity": Crippen.MolMR,
    "polar_surface": rdMolDescriptors.CalcTPSA,
    "weight": Descriptors.MolWt,
    "heavy_atoms": lambda m: m.GetNumHeavyAtoms(),
    # This is the number of independent rings. CalcNumRings isn't used, because since 2026.09 it counts all
    # relevant rings. A cage has more of these than independent rings.
    "rings": lambda m: len(Chem.GetSSSR(m)),
    "donors": Lipinski.NumHDonors,
    "acceptors": Lipinski.NumHAcceptors,
    "rotatable_bonds": rdMolDescriptors.CalcNumRotatableBonds,
    "aromatic_atoms": lambda m: len(m.GetAromaticAtoms()),
    "lipinski_violations": lambda m: sum(
        [
            Descriptors.MolWt(m) > 500,
            Crippen.MolLogP(m) > 5,
            Lipinski.NumHDonors(m) > 5,
            Lipinski.NumHAcceptors(m) > 10,
        ]
    ),
}


def pains():
    with open(PAINS, newline="") as file:
        return [row[0] for row in csv.reader(file)]


def corpus(folder, more):
    folder.mkdir(exist_ok=True)
    files = sorted([*DATA.rglob("*.smi"), *CONTRIB.rglob("*.smi"), *map(Path, more)])
    texts = []
    for path in files:
        opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
        with opened as file:
            words = [line.replace(",", " ").split() for line in file]
        # In some files, the name of a molecule is before its SMILES.
        texts += [
            next((word for word in line if Chem.MolFromSmiles(word)), line[0]) for line in words if line
        ]
    with open(DATA / "Pains" / "test_data" / "wehi_mols.csv", newline="") as file:
        texts += [row[0] for row in csv.reader(file)]
    texts += [case["smiles"] for case in json.loads(GOLDEN.read_text())["cases"] if case["valid"]]
    texts = list(dict.fromkeys(texts))
    (folder / "corpus.smi").write_text("\n".join(texts) + "\n")
    factors = [f'"{name}"' for name in SIMPLE]
    factors.append(
        f"{{ synthetic_accessibility = {{ table = '{CONTRIB / 'SA_Score' / 'fpscores.pkl.gz'}' }} }}"
    )
    factors += [f"{{ substructures = {{ smarts = ['{smarts}'] }} }}" for smarts in ALERTS]
    factors.append(f"{{ substructures = {{ file = '{PAINS}' }} }}")
    # With this shape the factor of a property rises linearly from 0 at -1000 to 1 at 1000. No property is as
    # low as -1000, so every molecule has a score with a finite logarithm.
    shape = "shape = { linear = { zero = -1000.0, one = 1000.0 } }"
    (folder / "score.toml").write_text(
        "".join(f"[[factors]]\nproperty = {factor}\n{shape}\n\n" for factor in factors)
    )
    print(f"{len(texts)} texts of {len(files)} files")


def score(folder):
    import gfn_rs as gfn

    smiles, report = gfn.read_molecules(folder / "corpus.smi", cleanup=False)
    print(report)
    score = gfn.MoleculeScore.read(folder / "score.toml")
    gfn.Ranking(smiles, score.log_scores(smiles), score).write(folder)


def match_counter(smarts):
    """Returns a function that counts the patterns that a molecule matches. As in the library, a pattern gets
    the molecule with explicit hydrogens only if the pattern lists #1 together with other elements."""
    queries = [Chem.MolFromSmarts(text, mergeHs=True) for text in smarts]
    explicit = ["#1," in text or ",#1" in text for text in smarts]

    def count(plain, full):
        return sum(
            (full if hydrogens else plain).HasSubstructMatch(query)
            for query, hydrogens in zip(queries, explicit)
        )

    return count


def compare(path):
    sys.path.append(str(CONTRIB / "SA_Score"))
    import sascorer

    patterns = [match_counter([smarts]) for smarts in ALERTS] + [match_counter(pains())]
    wrong, total = {}, 0
    with open(path, newline="") as file:
        rows = csv.reader(file)
        head = next(rows)
        at = {name: head.index(name) for name in [*SIMPLE, "synthetic_accessibility"]}
        first = head.index("substructures")
        for row in rows:
            molecule = Chem.MolFromSmiles(row[head.index("smiles")])
            full, total = Chem.AddHs(molecule), total + 1
            pairs = [(name, row[at[name]], SIMPLE[name](molecule)) for name in SIMPLE]
            pairs.append(
                (
                    "synthetic_accessibility",
                    row[at["synthetic_accessibility"]],
                    sascorer.calculateScore(molecule),
                )
            )
            names = [f"substructure {smarts}" for smarts in ALERTS] + ["PAINS"]
            pairs += [
                (name, row[first + k], count(molecule, full))
                for k, (name, count) in enumerate(zip(names, patterns))
            ]
            for name, ours, theirs in pairs:
                if not abs(float(ours) - theirs) <= TOLERANCE:
                    wrong.setdefault(name, []).append(
                        f"{row[head.index('smiles')]}: {ours}, RDKit has {theirs}"
                    )
    print(f"{total} molecules; of {len(SIMPLE) + 1 + len(patterns)} properties {len(wrong)} differ anywhere")
    for name, cases in sorted(wrong.items(), key=lambda pair: -len(pair[1])):
        print(f"{name}: {len(cases)} differ")
        print("".join(f"    {case}\n" for case in cases[:20]), end="")
    sys.exit(total == 0 or any(len(cases) > SHARE * total for cases in wrong.values()))


def golden():
    molecules = [
        Chem.MolFromSmiles(case["smiles"])
        for case in json.loads(GOLDEN.read_text())["cases"]
        if case["valid"]
    ]
    pairs = [(molecule, Chem.AddHs(molecule)) for molecule in molecules]
    cases = [
        {"smarts": text, "found_in": [k for k, pair in enumerate(pairs) if match_counter([text])(*pair)]}
        for text in ALERTS
    ]
    head = (f'{{"source": "rdkit {__version__}", "description": "The valid molecules of molecules.json, from '
        f'0, that have each pattern.", "cases": [\n')
    print(head + ",\n".join(map(json.dumps, cases)) + "\n]}")


def main():
    RDLogger.DisableLog("rdApp.*")
    match sys.argv[1:]:
        case ["corpus", folder, *more]:
            corpus(Path(folder), more)
        case ["score", folder]:
            score(Path(folder))
        case ["golden"]:
            golden()
        case ["compare", path]:
            compare(path)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
