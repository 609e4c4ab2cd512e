"""Compares the library's stereochemistry with RDKit's: the identity of molecules, keys, and numbers of
stereoisomers.

    python -m venv venv && venv/bin/pip install rdkit==2026.9.1
    venv/bin/python scripts/molecules/stereo.py FILES...
    venv/bin/python scripts/molecules/stereo.py --golden > gym/molecules/tests/golden/stereoisomers.json

FILES are text files (or `.gz`) with a SMILES at the start of each line, or the golden file (`.json`). The
files of molecules in RDKit's package are read, too. The script makes three comparisons, for all molecules
that both programs can read:

* Identity: RDKit must read the library's canonical SMILES as the same molecule.
* Keys: all random SMILES that RDKit writes for a molecule must have one key. Molecules that RDKit
  distinguishes must have different keys.
* Isomers: for 1,000 molecules without marks of stereochemistry, the library's number of stereoisomers must
  be RDKit's, and each isomer must have a different key.

RDKit has an older perception of stereochemistry, which is its default, and a newer one. If these disagree,
both results are printed. An example is 1,4-diethylidenecyclohexane, which has two stereoisomers: the older
perception finds none, and the newer one finds three. The script fails if a molecule is wrong according to
both, and if a number of isomers isn't between the two numbers of RDKit.
"""

import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from collections import defaultdict

import rdkit
from rdkit import Chem, RDLogger
from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers, StereoEnumerationOptions

ROOT = pathlib.Path(__file__).parents[2]
ISOMERS = 1_000
MAX_SETTINGS = 64
"""The largest number of combinations of stereo marks for which the isomers of a molecule are enumerated."""


def texts_of(path):
    if str(path).endswith(".json"):
        yield from (case["smiles"] for case in json.loads(path.read_text())["cases"] if case["valid"])
        return
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt") as file:
        for line in file:
            words = line.replace(",", " ").split()[:2]
            # In some files, the name of a molecule is before its SMILES.
            yield from [word for word in words if Chem.MolFromSmiles(word)][:1] or words[:1]


def our_results(texts):
    """Returns the library's results for each text: the canonical SMILES, the SMILES without stereochemistry,
    the key, and the number of stereoisomers. Returns None for a text that the library can't read."""
    if not texts:
        return []
    with tempfile.TemporaryDirectory() as folder:
        given, found = pathlib.Path(folder) / "given", pathlib.Path(folder) / "found"
        given.write_text("\n".join(texts) + "\n")
        environment = {**os.environ, "GFN_SMILES": str(given), "GFN_FOUND": str(found)}
        command = [
            "cargo",
            "test",
            "--quiet",
            "--profile",
            "ci",
            "--test",
            "gym",
            "molecules::molecule_stereo::what_rdkit_is_compared_with",
        ]
        subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)
        rows = [line.split("\t") for line in found.read_text().splitlines()]
    assert len(rows) == len(texts)
    return [row if len(row) == 4 else None for row in rows]


def rdkit_smiles(text, legacy):
    """Returns RDKit's canonical isomeric SMILES of a text. RDKit writes a SMILES of the molecule, reads this
    SMILES, and writes it again. This removes marks of stereochemistry that RDKit doesn't keep."""
    Chem.SetUseLegacyStereoPerception(legacy)
    molecule = Chem.MolFromSmiles(text)
    molecule = molecule and Chem.MolFromSmiles(Chem.MolToSmiles(molecule))
    return molecule and Chem.MolToSmiles(molecule)


def isomers_of(text, legacy):
    Chem.SetUseLegacyStereoPerception(legacy)
    options = StereoEnumerationOptions(unique=True, maxIsomers=0)
    return {
        Chem.MolToSmiles(isomer)
        for isomer in EnumerateStereoisomers(Chem.MolFromSmiles(text), options=options)
    }


def random_texts(text, n):
    """Returns random SMILES of a molecule. SMILES that RDKit itself reads as another molecule, which happens
    for symmetric rings, are left out."""
    Chem.SetUseLegacyStereoPerception(True)
    molecule, name = Chem.MolFromSmiles(text), rdkit_smiles(text, True)
    texts = [Chem.MolToSmiles(molecule, doRandom=True) for _ in range(n)]
    return [other for other in texts if rdkit_smiles(other, True) == name]


def compare_keys(rows):
    """Returns the SMILES of one molecule that have different keys, and the SMILES of different molecules that
    have the same key. Only SMILES that are wrong by both of RDKit's perceptions are returned."""
    wrong = []
    for name, by_molecule in [("split", True), ("merged", False)]:
        found = []
        for legacy in (True, False):
            groups = defaultdict(dict)
            for text, key, canonical in rows:
                one, other = (canonical[legacy], key) if by_molecule else (key, canonical[legacy])
                groups[one].setdefault(other, text)
            found.append({one: group for one, group in groups.items() if len(group) > 1})
        members = [{text for group in groups.values() for text in group.values()} for groups in found]
        both = members[0] & members[1]
        print(f"  keys {name}: {len(found[0])} by the older perception, {len(found[1])} by the newer one")
        for groups in found:
            for group in list(groups.values())[:5]:
                print("    ", *group.values())
        wrong += sorted(both)
    return wrong


GOLDEN = """
    CC(N)C(=O)O OC(=O)C(O)C(O)C(=O)O CC(O)C(O)C(C)O CC=CC CC=CC(C)O CC=CC=CC CC1CCC(C)CC1 CC1CC1C CC1C(C)C1C
    OC1C(O)C(O)C(O)C(O)C1O CS(=O)CC CP(=O)(O)CC C[N+](CC)(CO)C=C CN1CC1C C[Si](F)(Cl)Br CC(F)C(O)(O)C(F)C
    OC1CCCCC1O FC=CF CN=CC NN=C(C)CO CC(=NO)CC C1CCCCCC=C1 CC1OC(C)O1 CC(Cl)C=CC(Cl)C CC=CC(O)C=CC
    CP(=O)(O)OP(C)(=O)O CC1CCC2CCCCC2C1 CC12CCC3C(CCC4CC(O)CCC34C)C1CCC2 OCC1OC(O)C(O)C(O)C1O CSCC(C)S(C)=O
    CC(C)=CC=CC CPCC CC(C)(O)C(F)Cl C[S+](CC)CO C[S+]1CCC(O)C1 CS1(=NCCC1)=O O=S1CCOC1 CP1CCCC1C
    C1CC2CC(F)N1C2 C[B-](F)(Cl)Br CC(=CC=CC)CO c1ccccc1C(O)C(N)C OC(F)CC(CC(O)F)(CC(O)F)C(O)F
    FC(Cl)C(Br)C(F)Cl CC=C(C)C(C)=CC ClC=CC(=CC)C=CBr""".split()
"""Molecules whose stereoisomers are enumerated correctly by RDKit's older perception."""


def golden():
    random.seed(3)
    cases = []
    for text in GOLDEN:
        isomers = isomers_of(text, True)
        cases.append(
            {"smiles": text, "isomers": [[isomer, *random_texts(isomer, 3)] for isomer in sorted(isomers)]}
        )
    source = f"scripts/molecules/stereo.py --golden, RDKit {rdkit.__version__}"
    print(json.dumps({"source": source, "description": "texts of each isomer", "cases": cases}, indent=0))


def main():
    if sys.argv[1:] == ["--golden"]:
        return golden()
    RDLogger.DisableLog("rdApp.*")
    random.seed(1)
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    files += sorted(pathlib.Path(rdkit.__file__).parent.glob("*/**/*.smi"))
    failed, all_rows, flat_texts = [], [], {}
    for path in files:
        texts = list(dict.fromkeys(texts_of(path)))
        read = [
            (text, row) for text, row in zip(texts, our_results(texts)) if row and rdkit_smiles(text, True)
        ]
        chiral = sum("@" in row[0] or "/" in row[0] for _, row in read)
        wrong = []
        for text, row in read:
            pairs = [(rdkit_smiles(text, legacy), rdkit_smiles(row[0], legacy)) for legacy in (True, False)]
            if all(one != other for one, other in pairs):
                wrong.append((text, row[0], *pairs))
            flat_texts.setdefault(row[1])
        shuffled = [(text, other, row[2]) for text, row in read for other in random_texts(text, 3)]
        again = our_results([other for _, other, _ in shuffled])
        split = [
            (text, other) for (text, other, key), row in zip(shuffled, again) if row is None or row[2] != key
        ]
        print(
            f"{path.name}: {len(read)} of {len(texts)} read, {chiral} with marks; {len(wrong)} of another "
            f"identity, {len(split)} of {len(shuffled)} texts of another key"
        )
        for problem in (wrong + split)[:10]:
            print("  ", *problem)
        failed += wrong + split
        all_rows += [
            (text, row[2], {legacy: rdkit_smiles(text, legacy) for legacy in (True, False)})
            for text, row in read
        ]
    print(f"all files: {len(all_rows)} molecules")
    failed += compare_keys(all_rows)
    check_isomers(list(flat_texts), failed)
    sys.exit(bool(failed))


def check_isomers(flat, failed):
    """Compares the number of stereoisomers of each molecule, and their keys, with RDKit. Adds the molecules
    that differ to `failed`."""
    molecules = [
        text
        for text in random.sample(flat, len(flat))
        if len(random_settings(text)) <= MAX_SETTINGS.bit_length() - 1
    ]
    molecules = [text for text in molecules if random_settings(text)][:ISOMERS]
    counts = [int(row[3]) for row in our_results(molecules)]
    differ, rows = [], []
    for text, count in zip(molecules, counts):
        sets = [isomers_of(text, legacy) for legacy in (True, False)]
        if not min(map(len, sets)) <= count <= max(map(len, sets)):
            failed.append(text)
        if count != len(sets[0]):
            differ.append((text, count, *map(len, sets)))
        rows += [
            (isomer, {legacy: rdkit_smiles(isomer, legacy) for legacy in (True, False)})
            for isomer in sets[0] | sets[1]
        ]
    print(
        f"{len(molecules)} molecules that have stereo elements, {sum(counts)} isomers: {len(differ)} numbers "
        f"differ from the older perception's"
    )
    for text, count, older, newer in differ[:40]:
        print(f"   {text}: {count}, RDKit {older} and {newer}")
    keys = our_results([isomer for isomer, _ in rows])
    failed += compare_keys(
        [(isomer, key[2], canonical) for (isomer, canonical), key in zip(rows, keys) if key]
    )


def random_settings(text):
    Chem.SetUseLegacyStereoPerception(True)
    return list(Chem.FindPotentialStereo(Chem.MolFromSmiles(text)))


if __name__ == "__main__":
    main()
