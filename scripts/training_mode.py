"""Writes gym/tests/golden/training_mode.pt, a TorchScript module that was saved in training mode.

The module gets points `[n, d]` and returns the sum of each point's coordinates. In training mode the sums are
negated, so that a test can detect the mode. The file is written without PyTorch, so that its bytes are the
same on all machines:

    python3 scripts/training_mode.py gym/tests/golden/training_mode.pt
"""

import sys
import zipfile

CODE = """class Mode(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.Mode,
    x: Tensor) -> Tensor:
    if self.training:
      y = torch.neg(torch.sum(x, [1]))
    else:
      y = torch.sum(x, [1])
    return y
"""
# A pickle of an object of the class Mode with {"training": True}, and a pickle of an empty tuple of
# constants.
OBJECT = b"\x80\x02c__torch__\nMode\n)\x81}(X\x08\x00\x00\x00training\x88ub."
CONSTANTS = b"\x80\x02)."

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_STORED) as file:
    parts = {"data.pkl": OBJECT, "code/__torch__.py": CODE, "constants.pkl": CONSTANTS, "version": b"3\n"}
    for name, content in parts.items():
        file.writestr(zipfile.ZipInfo("training_mode/" + name), content)
