"""Molecules: reading them, scores from their properties, and rankings as tables, files and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from . import _gfn
from ._gfn import Graphs
from ._objects import lines
from ._settings import Settings, check


class MoleculesRead(NamedTuple):
    """The result of `read_molecules`: the molecules that were read from a file or list, and a report.

    >>> read, names = gfn.read_molecules(["OCC", "[Pt]", "c1ccccc1"]), ["ethanol", "platinum", "benzene"]
    >>> [(smiles, names[row]) for smiles, row in zip(read.smiles, read.rows)]
    [('CCO', 'ethanol'), ('c1ccccc1', 'benzene')]
    """

    smiles: list[str]
    """The canonical SMILES of the molecules that could be read, in the order of the input."""
    report: str
    """A text about the lines that were changed or skipped: the number of lines for each reason, and the first
    of these lines. Lines of a file are counted from 1, and items of a list from 0."""
    rows: list[int]
    """The index of each molecule's item in the list or column, or of its record in the file, from 0 on. The
    header and empty lines of a file aren't records, so `pandas.read_csv(path).iloc[rows]` are the rows of the
    molecules."""


def read_molecules(
    source: str | PathLike[str] | Iterable[Any], cleanup: bool = True, column: str | None = None
) -> MoleculesRead:
    """Reads the molecules of a file, or of a list, array or column of SMILES or of molecules of RDKit.
    Missing entries of a column (None, NaN, the NA of pandas) are skipped, and the report counts them. Of a
    data frame, pass the column: `read_molecules(frame["smiles"])`.

    A file whose first line names a column is a table. The SMILES are in the column called `column` or, by
    default, in the column `smiles`. If there is no such column, the first column is used whose name ends in
    `smiles` (`canonical_smiles`). Upper and lower case are equal. Fields are separated by tabs, `;`, `,`, `|`
    or blanks and may be quoted. Any other file has a SMILES at the start of each line, up to a separator.
    Files that end in `.sdf`, `.sd` or `.mol` are SD files (V2000), whose stereochemistry isn't read. Gzipped
    files (`.smi.gz`, `.csv.gz`, `.sdf.gz`) are unpacked.

    Hydrogens that are written as atoms become implicit hydrogens of their neighbours. A neutral nitrogen with
    five bonds (`CN(=O)=O`) gets charges, as in RDKit. With `cleanup`, only the largest part of a molecule
    with several parts is kept, isotopes are read as elements (deuterium as hydrogen), and charges from
    protonation are removed. Without `cleanup`, molecules with several parts or isotopes are skipped.

    The SMILES are canonical: one text for each molecule. These SMILES aren't RDKit's canonical SMILES, and
    may differ in aromaticity (a ring with a triple bond is never aromatic here). To compare molecules with
    those of another program, pass both to `canonical_smiles`.

    Raises a `ValueError` if no molecule could be read, if the file has no column `column`, if `column` is
    given for a list, or if the file isn't text (for example a zip archive).

    >>> read = read_molecules(["CCO ethanol", "[Na+].CC(=O)[O-]", "[Pt]"])
    >>> read.smiles, read.rows
    (['CCO', 'CC(=O)O'], [0, 1])
    >>> read.report.splitlines()[0].partition("; ")[2]
    '1 line skipped; 1 with an element beyond B C N O F Si P S Cl Se Br I'
    """
    check(cleanup, "cleanup", bool)
    check(column, "column", str | None)
    if isinstance(source, (str, PathLike)):
        smiles, rows, report = _gfn.read_molecules(source, bool(cleanup), column)
        return MoleculesRead(smiles, report, rows)
    texts = lines(source, "molecules", missing="")
    if column is not None:
        raise ValueError(
            f"column is {column!r} for a list: expected None, because only files have columns; of a data "
            f"frame, pass frame[{column!r}]"
        )
    smiles, rows, report = _gfn.read_molecules(texts, bool(cleanup), None)
    n_empty = sum(not text.strip() for text in texts)
    note = "\n1 entry is empty" if n_empty == 1 else f"\n{n_empty} entries are empty"
    return MoleculesRead(smiles, report + note if n_empty else report, rows)


def canonical_smiles(molecules: Any, stereo: bool = True) -> list[str]:
    """Returns the library's canonical SMILES of each molecule (`Graphs`, SMILES, or molecules of RDKit):
    equal texts for equal molecules. Use it to compare sampled molecules with known molecules, because other
    programs write other texts for the same molecule.

    Without `stereo`, marks of stereochemistry are left out, so that stereoisomers are equal. Environments
    without `stereo` sample molecules without such marks. A row that isn't a single molecule is a
    `ValueError`, and an empty cell a `TypeError`. `read_molecules` cleans raw data:
    `canonical_smiles(read_molecules(column).smiles, stereo=False)`.

    >>> known = set(canonical_smiles(["Cc1cccc(C)c1", "C[C@H](N)O"], stereo=False))
    >>> ranking = Ranking(["CC(N)O", "Cc1cc(C)ccc1", "CCO"], [0.0, 1.0, 2.0])
    >>> [smiles for smiles in ranking.smiles if smiles not in known]
    ['CCO']
    """
    check(stereo, "stereo", bool)
    return _gfn.canonical_smiles(_rows(molecules), bool(stereo))


@dataclass(frozen=True)
class Factor(Settings):
    """A factor of a `MoleculeScore`: a property of molecules, a shape that maps the property to a number of
    at least 0, and a power of this number.

    `property` is `"weight"`, `"heavy_atoms"`, `"heteroatom_share"`, `"aromatic_atoms"`, `"rings"`,
    `"polar_surface"`, `"donors"`, `"acceptors"`, `"qed"`, `"log_p"`, `"molar_refractivity"`,
    `"rotatable_bonds"`, `"lipinski_violations"`, or one of these dictionaries. `{"similarity": {"to":
    SMILES}}` is the similarity to another molecule. `{"synthetic_accessibility": {"table": FILE}}` is a
    number from 1 (easy) to 10 (hard); the file is `Contrib/SA_Score/fpscores.pkl.gz` of RDKit.
    `{"substructures": {"smarts": [...], "file": FILE}}` is the number of these substructures in the molecule;
    `smarts` or `file` may be left out. `{"seh": {"weights": FILE}}` is the output of the published proxy of
    binding to sEH; the file is `mols/data/pretrained_proxy/best_params.pkl.gz` of github.com/GFNOrg/gflownet.

    The numbers equal RDKit's, with two exceptions: similarities use the library's own fingerprints, and
    `"rings"` is the number of independent rings (bonds less atoms, plus 1), which RDKit's `CalcNumRings`
    exceeds for cages: adamantane has 3, and 4 by RDKit.

    `shape` maps the property x to a number. `"value"` is x itself, and `"exponential"` is exp(x). `{"window":
    {"least", "most", "width"}}` is 1 from `least` to `most`, and `exp(-distance / width)` outside.
    `{"linear": {"zero", "one"}}` is linear in x: 0 at `zero`, 1 at `one`, and never below 0. `{"limit":
    {"least", "most", "otherwise"}}` is a filter: 1 from `least` to `most`, and `otherwise` (0 by default)
    outside. The result is raised to the power `power`.

    >>> factor = gfn.Factor("rings", {"limit": {"most": 1}})
    >>> gfn.MoleculeScore([factor]).properties(["C1CC1C1CC1"])["rings"].tolist()
    [2.0]
    """

    property: str | dict[str, Any]
    shape: str | dict[str, Any] = "value"
    power: float = 1.0

    def _json(self) -> Any:
        return self._values()


@dataclass(frozen=True)
class MoleculeScore(Settings):
    """A score of molecules, the product of its `factors`, for `MoleculeReward`.

    >>> score = MoleculeScore([Factor("qed", power=2.0), Factor("rings", {"limit": {"most": 2}})])
    >>> score.properties(["CC(=O)Oc1ccccc1C(=O)O"])["qed"].round(3).tolist()
    [0.55]
    >>> float(score.log_scores(["c1ccc2cc3ccccc3cc2c1"])[0])
    -inf
    """

    factors: Sequence[Factor]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_score", _gfn.Score(self._json()))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> MoleculeScore:
        """Reads a score from a TOML file, which has a table `[[factors]]` for each factor. Python 3.11 or
        later is needed."""
        import tomllib

        with open(path, "rb") as file:
            said = tomllib.load(file)
        if set(said) != {"factors"}:
            raise ValueError(
                f"{path} has the top-level keys {sorted(said)}: expected only tables [[factors]]"
            )
        return cls([Factor(**factor) for factor in said["factors"]])

    def _json(self) -> Any:
        return self._values()

    def properties(self, molecules: Any) -> dict[str, npt.NDArray[np.float64]]:
        """Returns the properties of molecules (`Graphs`, SMILES, or molecules of RDKit): an array `[n]` for
        each property's name. If several factors have the same property, its names are numbered:
        `substructures`, `substructures_2`."""
        columns = self._score.properties(_rows(molecules))  # type: ignore[attr-defined]
        return dict(zip(self._score.names(), columns))  # type: ignore[attr-defined]

    def log_scores(self, molecules: Any) -> npt.NDArray[np.float64]:
        """Returns the logarithm of the score of each molecule, `[n]`; -inf for a score of 0."""
        return self._score.log_scores(_rows(molecules))  # type: ignore[attr-defined, no-any-return]


def _rows(molecules: Any) -> Any:
    if isinstance(molecules, str):
        raise TypeError("molecules is a str: expected Graphs, or a list of SMILES or of molecules of RDKit")
    return molecules.smiles if isinstance(molecules, Graphs) else molecules


# The number of molecules that the text of a ranking shows.
_SHOWN = 10


class Ranking:
    """A list of distinct molecules, best first. A ranking can be filtered by score, diversity and scaffold,
    and written as a table, an SD file and pictures. A notebook shows a ranking as a table.

    molecules
        `Graphs`, SMILES or molecules of RDKit.
    log_scores
        A number for each molecule, by which the molecules are ordered.
    columns
        Further numbers by name, or a `MoleculeScore` for its properties.

    >>> ranking = Ranking(["CCO", "c1ccccc1", "OCC", "Cc1ccccc1"], [0.0, 2.0, 0.0, 1.0])
    >>> ranking.smiles
    ['c1ccccc1', 'Cc1ccccc1', 'CCO']
    >>> ranking.best_per_scaffold().smiles
    ['c1ccccc1', 'CCO']
    """

    def __init__(
        self,
        molecules: Any,
        log_scores: ArrayLike,
        columns: Mapping[str, ArrayLike] | MoleculeScore | None = None,
    ) -> None:
        rows = list(_rows(molecules))
        if isinstance(columns, MoleculeScore):
            columns = columns.properties(rows)
        named = {name: _column(values, name, len(rows)) for name, values in (columns or {}).items()}
        self._ranking = _gfn.Ranking(rows, _column(log_scores, "log_scores", len(rows)), list(named.items()))

    @classmethod
    def _of(cls, ranking: _gfn.Ranking) -> Ranking:
        it = cls.__new__(cls)
        it._ranking = ranking
        return it

    def best(self, k: int) -> Ranking:
        """Returns the ranking of the best `k` molecules."""
        return self._of(self._ranking.best(k))

    def diverse(self, k: int, similarity: float = 0.7) -> Ranking:
        """Returns the best `k` molecules that differ from each other: the Tanimoto similarity of circular
        fingerprints between any two of them is below `similarity`."""
        return self._of(self._ranking.diverse(k, similarity))

    def best_per_scaffold(self, per_scaffold: int = 1) -> Ranking:
        """Returns the best `per_scaffold` molecules of each Bemis-Murcko scaffold. All molecules without
        rings count as one scaffold."""
        return self._of(self._ranking.best_per_scaffold(per_scaffold))

    def __len__(self) -> int:
        return len(self._ranking)

    @property
    def smiles(self) -> list[str]:
        """The canonical SMILES of this library (not those of RDKit), best first. `canonical_smiles` returns
        the same texts for known molecules, to find the new molecules of a ranking."""
        return self._ranking.smiles()

    @property
    def log_scores(self) -> npt.NDArray[np.float64]:
        """The log-score of each molecule, `[n]`, best first."""
        return self._ranking.log_scores()

    @property
    def columns(self) -> dict[str, npt.NDArray[np.float64]]:
        """The further numbers of the molecules: an array `[n]` for each column's name."""
        return dict(self._ranking.columns())

    def __repr__(self) -> str:
        """Returns the number of molecules, and the first rows of the table."""
        table = self.best(_SHOWN).csv().rstrip()
        more = f"\n... and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
        return f"Ranking of {len(self)} molecules, best first:\n{table}{more}"

    def frame(self) -> Any:
        """Returns the ranking as a pandas data frame, with the columns of `csv`."""
        import pandas

        return pandas.DataFrame({"smiles": self.smiles, "log_score": self.log_scores, **self.columns})

    def csv(self) -> str:
        """Returns the ranking as a table in CSV: the SMILES, log-score and further numbers of each
        molecule."""
        return self._ranking.csv()

    def sdf(self) -> str:
        """Returns the text of an SD file (V2000) with the same data as the table. A molecule that the format
        can't represent is an error; `write` leaves such molecules out of the file."""
        return self._ranking.sdf()

    def svg(self, title: str = "", shown: int = 24) -> str:
        """Returns an SVG with pictures of the first `shown` molecules."""
        return self._ranking.svg(title, shown)

    def write(self, folder: str | PathLike[str], title: str = "", shown: int = 24) -> None:
        """Writes `molecules.csv`, `molecules.sdf` and `molecules.svg` to a folder; a warning names the
        molecules that the SD file can't represent."""
        self._ranking.write(folder, title, shown)

    def _repr_html_(self) -> str:
        return self._ranking.html(24)


def _column(values: ArrayLike, name: str, n: int) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"{name} has the shape {array.shape}: expected ({n},), one number for each molecule")
    return array
