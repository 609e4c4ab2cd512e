"""The 20 oracles of the benchmark PMO (Gao et al. 2022) that need RDKit only. An oracle is a score of a
molecule, between 0 and 1.

The definitions are those of GuacaMol (Brown et al. 2019) in the form of PyTDC since 0.3.7, by which newer
results of PMO are computed. The other three oracles of PMO (`drd2`, `gsk3b`, `jnk3`) are trained classifiers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable

from rdkit import Chem, DataStructs
from rdkit.Chem import Crippen, GraphDescriptors, QED, rdFingerprintGenerator, rdMolDescriptors
from rdkit.Chem.Pharm2D import Generate, Gobbi_Pharm2D

Oracle = Callable[[Chem.Mol], float]

_MORGAN = rdFingerprintGenerator.GetMorganGenerator
_FINGERPRINTS: dict[str, Callable[[Chem.Mol], object]] = {
    "ECFP4": _MORGAN(2).GetSparseCountFingerprint,
    "ECFP6": _MORGAN(3).GetSparseCountFingerprint,
    "FCFP4": _MORGAN(
        2, atomInvariantsGenerator=rdFingerprintGenerator.GetMorganFeatureAtomInvGen()
    ).GetSparseCountFingerprint,
    "atom_pairs": rdFingerprintGenerator.GetAtomPairGenerator(maxDistance=10).GetSparseCountFingerprint,
    "pharmacophore": lambda molecule: Generate.Gen2DFingerprint(molecule, Gobbi_Pharm2D.factory),
}

CELECOXIB = "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F"
TROGLITAZONE = "Cc1c(C)c2OC(C)(COc3ccc(CC4SC(=O)NC4=O)cc3)CCc2c(C)c1O"
THIOTHIXENE = "CN(C)S(=O)(=O)c1ccc2Sc3ccccc3C(=CCCN4CCN(C)CC4)c2c1"
ALBUTEROL = "CC(C)(C)NCC(O)c1ccc(O)c(CO)c1"
MESTRANOL = "COc1ccc2C3CCC4(C)C(CCC4(O)C#C)C3CCc2c1"
CAMPHOR = "CC1(C)C2CCC1(C)C(=O)C2"
MENTHOL = "CC(C)C1CCC(C)CC1O"
TADALAFIL = "CN1CC(=O)N2C(Cc3c([nH]c4ccccc34)C2c2ccc3OCOc3c2)C1=O"
SILDENAFIL = "CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1"
OSIMERTINIB = "COc1cc(N(C)CCN(C)C)c(NC(=O)C=C)cc1Nc1nccc(n1)-c1cn(C)c2ccccc12"
FEXOFENADINE = "CC(C)(C(=O)O)c1ccc(cc1)C(O)CCCN1CCC(CC1)C(O)(c1ccccc1)c1ccccc1"
RANOLAZINE = "COc1ccccc1OCC(O)CN1CCN(CC(=O)Nc2c(C)cccc2C)CC1"
PERINDOPRIL = "CCCC(NC(C)C(=O)N1C(CC2CCCCC12)C(=O)O)C(=O)OCC"
AMLODIPINE = "CCOC(=O)C1=C(COCCN)NC(C)=C(C1c1ccccc1Cl)C(=O)OC"
SITAGLIPTIN = "NC(Cc1cc(F)c(F)cc1F)CC(=O)N1CCn2c(C1)nnc2C(F)(F)F"
ZALEPLON = "CCN(C(C)=O)c1cccc(c1)-c1ccnc2c(cnn12)C#N"
# The molecule whose core or decoration the two hops replace.
HOP_START = "CCCOc1cc2ncnc(Nc3ccc4ncsc4c3)c2cc1S(=O)(=O)C(C)(C)C"
HOP_CORE = "[#7]-c1n[c;h1]nc2[c;h1]c(-[#8])[c;h0][c;h1]c12"


def gaussian(value: float, mean: float, width: float) -> float:
    """Returns a bell curve: 1 at the mean."""
    return math.exp(-0.5 * ((value - mean) / width) ** 2)


def at_most(value: float, limit: float, width: float) -> float:
    """Returns 1 up to the limit, and a half bell curve above it."""
    return gaussian(max(value, limit), limit, width)


def at_least(value: float, limit: float, width: float) -> float:
    """Returns 1 from the limit on, and a half bell curve below it."""
    return gaussian(min(value, limit), limit, width)


def geometric_mean(*scores: float) -> float:
    return math.prod(scores) ** (1 / len(scores))


def similarity(target: str, kind: str, enough: float = 1.0) -> Oracle:
    """Returns an oracle: the Tanimoto similarity to a SMILES, divided by `enough` and at most 1."""
    fingerprint = _FINGERPRINTS[kind]
    of_target = fingerprint(Chem.MolFromSmiles(target))

    def score(molecule: Chem.Mol) -> float:
        return min(DataStructs.TanimotoSimilarity(of_target, fingerprint(molecule)) / enough, 1.0)

    return score


def isomers(formula: str) -> Oracle:
    """Returns an oracle: the geometric mean of a bell curve for the number of atoms of each element in the
    formula, and one for the number of all atoms, with hydrogens."""
    wanted = {element: int(n or 1) for element, n in re.findall(r"([A-Z][a-z]?)(\d*)", formula)}

    def score(molecule: Chem.Mol) -> float:
        atoms = Counter(atom.GetSymbol() for atom in Chem.AddHs(molecule).GetAtoms())
        scores = [gaussian(atoms[element], n, 1.0) for element, n in wanted.items()]
        return geometric_mean(*scores, gaussian(sum(atoms.values()), sum(wanted.values()), 2.0))

    return score


def contains(smarts: str) -> Oracle:
    """Returns an oracle: 1 if a molecule has the substructure, otherwise 0."""
    pattern = Chem.MolFromSmarts(smarts)
    return lambda molecule: float(molecule.HasSubstructMatch(pattern))


def median(first: Oracle, second: Oracle) -> Oracle:
    return lambda molecule: geometric_mean(first(molecule), second(molecule))


def _osimertinib() -> Oracle:
    features, radius_3 = similarity(OSIMERTINIB, "FCFP4", 0.8), similarity(OSIMERTINIB, "ECFP6")
    return lambda molecule: geometric_mean(
        features(molecule),
        at_most(radius_3(molecule), 0.85, 0.1),
        at_least(rdMolDescriptors.CalcTPSA(molecule), 100, 10),
        at_most(Crippen.MolLogP(molecule), 1, 1),
    )


def _fexofenadine() -> Oracle:
    similar = similarity(FEXOFENADINE, "atom_pairs", 0.8)
    return lambda molecule: geometric_mean(
        similar(molecule),
        at_least(rdMolDescriptors.CalcTPSA(molecule), 90, 10),
        at_most(Crippen.MolLogP(molecule), 4, 1),
    )


def _ranolazine() -> Oracle:
    similar = similarity(RANOLAZINE, "atom_pairs", 0.7)
    return lambda molecule: geometric_mean(
        similar(molecule),
        at_least(Crippen.MolLogP(molecule), 7, 1),
        at_least(rdMolDescriptors.CalcTPSA(molecule), 95, 20),
        gaussian(sum(atom.GetSymbol() == "F" for atom in molecule.GetAtoms()), 1, 1),
    )


def _perindopril() -> Oracle:
    similar = similarity(PERINDOPRIL, "ECFP4")
    return lambda molecule: geometric_mean(
        similar(molecule), gaussian(rdMolDescriptors.CalcNumAromaticRings(molecule), 2, 0.5)
    )


def _amlodipine() -> Oracle:
    similar = similarity(AMLODIPINE, "ECFP4")
    return lambda molecule: geometric_mean(
        similar(molecule), gaussian(rdMolDescriptors.CalcNumRings(molecule), 3, 0.5)
    )


def _like_sitagliptin(molecule: Chem.Mol) -> tuple[float, float]:
    """Returns bell curves around log P and the polar surface of sitagliptin."""
    target = Chem.MolFromSmiles(SITAGLIPTIN)
    surface = rdMolDescriptors.CalcTPSA
    return (
        gaussian(Crippen.MolLogP(molecule), Crippen.MolLogP(target), 0.2),
        gaussian(surface(molecule), surface(target), 5),
    )


def _sitagliptin() -> Oracle:
    """Isomers of sitagliptin with its properties that aren't similar to it."""
    similar, same_formula = similarity(SITAGLIPTIN, "ECFP4"), isomers("C16H15F6N5O")
    return lambda molecule: geometric_mean(
        gaussian(similar(molecule), 0, 0.1), *_like_sitagliptin(molecule), same_formula(molecule)
    )


def _zaleplon() -> Oracle:
    return median(similarity(ZALEPLON, "ECFP4"), isomers("C19H17N3O2"))


def _valsartan() -> Oracle:
    """Molecules with a substructure of valsartan and the properties of sitagliptin."""
    part = contains("CN(C=O)Cc1ccc(c2ccccc2)cc1")
    complexity = GraphDescriptors.BertzCT
    target = complexity(Chem.MolFromSmiles(SITAGLIPTIN))

    def score(molecule: Chem.Mol) -> float:
        if part(molecule) == 0.0:
            return 0.0
        same = gaussian(complexity(molecule), target, 30)
        return geometric_mean(1.0, *_like_sitagliptin(molecule), same)

    return score


def _deco_hop() -> Oracle:
    """Molecules that keep the core of the start, but not its two decorations."""
    similar, core = similarity(HOP_START, "pharmacophore", 0.85), contains(HOP_CORE)
    first, second = contains("CS([#6])(=O)=O"), contains("[#7]-c1ccc2ncsc2c1")
    return lambda molecule: (
        (similar(molecule) + core(molecule) + (1 - first(molecule)) + (1 - second(molecule))) / 4
    )


def _scaffold_hop() -> Oracle:
    """Molecules that keep the decoration of the start, but not its core."""
    similar, core = similarity(HOP_START, "pharmacophore", 0.75), contains(HOP_CORE)
    decoration = contains("[#6]-[#6]-[#6]-[#8]-[#6]~[#6]~[#6]~[#6]~[#6]-[#7]-c1ccc2ncsc2c1")
    return lambda molecule: (similar(molecule) + decoration(molecule) + (1 - core(molecule))) / 3


ORACLES: dict[str, Oracle] = {
    "albuterol_similarity": similarity(ALBUTEROL, "FCFP4", 0.75),
    "amlodipine_mpo": _amlodipine(),
    "celecoxib_rediscovery": similarity(CELECOXIB, "ECFP4"),
    "deco_hop": _deco_hop(),
    "fexofenadine_mpo": _fexofenadine(),
    "isomers_c7h8n2o2": isomers("C7H8N2O2"),
    "isomers_c9h10n2o2pf2cl": isomers("C9H10N2O2PF2Cl"),
    "median1": median(similarity(CAMPHOR, "ECFP4"), similarity(MENTHOL, "ECFP4")),
    "median2": median(similarity(TADALAFIL, "ECFP6"), similarity(SILDENAFIL, "ECFP6")),
    "mestranol_similarity": similarity(MESTRANOL, "atom_pairs", 0.75),
    "osimertinib_mpo": _osimertinib(),
    "perindopril_mpo": _perindopril(),
    "qed": QED.qed,
    "ranolazine_mpo": _ranolazine(),
    "scaffold_hop": _scaffold_hop(),
    "sitagliptin_mpo": _sitagliptin(),
    "thiothixene_rediscovery": similarity(THIOTHIXENE, "ECFP4"),
    "troglitazone_rediscovery": similarity(TROGLITAZONE, "ECFP4"),
    "valsartan_smarts": _valsartan(),
    "zaleplon_mpo": _zaleplon(),
}
