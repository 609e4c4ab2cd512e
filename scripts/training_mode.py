"""Writes gym/tests/golden/training_mode.pt, a TorchScript module saved in training mode.

For points `[n, d]` the module returns their sums, negated in training mode. The file is written without
PyTorch, so that its bytes are the same everywhere: python3 scripts/training_mode.py
gym/tests/golden/training_mode.pt
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
# A pickle of Mode with {"training": True}, and a pickle without constants.
OBJECT = b"\x80\x02c__torch__\nMode\n)\x81}(X\x08\x00\x00\x00training\x88ub."
CONSTANTS = b"\x80\x02)."

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_STORED) as file:
    parts = {"data.pkl": OBJECT, "code/__torch__.py": CODE, "constants.pkl": CONSTANTS, "version": b"3\n"}
    for name, content in parts.items():
        file.writestr(zipfile.ZipInfo("training_mode/" + name), content)
