"""Converts the interventional data of Sachs et al. to the table that `reproduce bayesian-structure
--interventions INT` reads.

    python3 scripts/sachs_table.py sachs.interventional.txt[.gz] table.csv

The file is from the site of bnlearn, after Sachs et al., Science 308, 2005. It has the levels (1 to 3) of 11
proteins and lipids. Its column INT is 0 in rows without an intervention. In other rows, INT is the number,
counted from 1, of the column whose value the experiment set. In the table, INT holds the name of that column.
Columns have the same names as in `examples/data/sachs_consensus_edges.csv`, which can be given as `--truth`.
"""

import gzip
import sys

NAMES = {"Raf": "praf", "Mek": "pmek", "Plcg": "plcg", "Erk": "p44/42", "Akt": "pakts473", "Jnk": "pjnk"}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    opened = gzip.open(sys.argv[1], "rt") if sys.argv[1].endswith(".gz") else open(sys.argv[1])
    with opened as file:
        header, *rows = [line.split() for line in file]
    if header[-1] != "INT":
        sys.exit(f"the last column is {header[-1]}, expected INT")
    names = [NAMES.get(name, name) for name in header[:-1]]
    with open(sys.argv[2], "w") as file:
        file.write(",".join([*names, "INT"]) + "\n")
        for *values, column in rows:
            file.write(",".join([*values, names[int(column) - 1] if int(column) > 0 else ""]) + "\n")
    print(f"{len(rows)} observations in {sys.argv[2]}")


if __name__ == "__main__":
    main()
