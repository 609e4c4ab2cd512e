"""Writes random weights with the shapes of the sEH proxy's weights, for tests. The published weights aren't
part of the project.

    python3 scripts/molecules/made_up_seh_weights.py weights.npz
"""

import random
import struct
import sys
import zipfile

SHAPES = [
    (64, 71),
    (64,),
    (64, 64),
    (64,),
    (128, 4),
    (128,),
    (4096, 128),
    (4096,),
    (192, 64),
    (192, 64),
    (192,),
    (192,),
    (512, 64),
    (512,),
    (105, 512),
    (105,),
    (256, 128),
    (256, 64),
    (256,),
    (256,),
    (1, 128),
    (1,),
]

rng = random.Random(0)
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for place, shape in enumerate(SHAPES):
        n = 1
        for side in shape:
            n *= side
        header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        numbers = (rng.gauss(0, 0.3) / shape[-1] ** 0.5 for _ in range(n))
        body = struct.pack(f"<{n}f", *numbers)
        archive.writestr(
            f"p{place:02}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body
        )
