"""Checks that `gfn_rs.read_molecules` can read the SMILES and SD files in RDKit's package. Each line or
record must be read as a molecule, or skipped for a reason.

    python3 scripts/molecules/check_corpora.py [FILE...]

It needs RDKit and gfn_rs (`pip install ./python`). The report of `gfn_rs.read_molecules` on each file is
compared with RDKit. The number of lines must be equal. A text that is reported as "no SMILES" or as damaged
must be unreadable for RDKit, too, with at most one exception in two hundred. Files may be compressed (`.gz`).
"""

import gzip
import pathlib
import re
import sys

import gfn_rs as gfn
from rdkit import Chem, RDConfig, RDLogger

ENDINGS = (".smi", ".sdf", ".smi.gz", ".sdf.gz")


def files() -> list[pathlib.Path]:
    given = [pathlib.Path(path) for path in sys.argv[1:]]
    folders = [pathlib.Path(RDConfig.RDDataDir), pathlib.Path(RDConfig.RDContribDir)]
    found = [path for folder in folders for path in sorted(folder.rglob("*")) if path.name.endswith(ENDINGS)]
    return found + given


def count_with_rdkit(path: pathlib.Path, text: str) -> tuple[int, int]:
    """Returns the number of lines or records in a file, and the number of lines or records that RDKit can't
    read as SMILES or as a molfile."""
    if ".sd" in path.name:
        records = [record for record in text.split("$$$$")[:-1] if record.strip()]
        # All records but the first begin with the line break that follows `$$$$`. It is removed.
        blocks = [
            record.removeprefix("\r").removeprefix("\n") if k else record for k, record in enumerate(records)
        ]
        unread = sum(Chem.MolFromMolBlock(block, sanitize=False) is None for block in blocks)
        return len(records), unread
    lines = [re.split(r"[ \t,]", line.strip())[0] for line in text.splitlines() if line.strip()]
    return len(lines), sum(Chem.MolFromSmiles(line, sanitize=False) is None for line in lines)


def main() -> None:
    RDLogger.DisableLog("rdApp.*")
    bad = 0
    for path in files():
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace")
        report = gfn.read_molecules(path)[1].splitlines()[0]
        read, skipped = int(report.split()[0]), int(re.search(r"\), (\d+) skipped", report).group(1))
        unreadable = sum(int(n) for n in re.findall(r"(\d+) with (?:no SMILES|a record that)", report))
        lines, unread = count_with_rdkit(path, text)
        stated = lines - max(0, unreadable - unread)
        fine = read + skipped == lines and stated >= 0.995 * lines
        bad += not fine
        print(
            f"{'ok' if fine else 'BAD'} {path.name}: {lines} lines, {unread} that RDKit can't read; {report}"
        )
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
