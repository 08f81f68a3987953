# with_te.py TRACE: TransformerEngine dumps the operands of its layers before they are quantised. Not run here.
import os
import sys
import tempfile

import nvdlfw_inspect.api as inspect  # installed with TransformerEngine
import torch
import transformer_engine
import transformer_engine.pytorch as te
from transformer_engine.common.recipe import DelayedScaling

CONFIG = """
record:
  enabled: True
  layers:
    layer_name_regex_pattern: .*
  transformer_engine:
    DumpTensors:
      enabled: True
      tensors_struct:
        - {tensor: activation, high_precision_tensor: True, quantized_tensor: False, freq: 1}
        - {tensor: weight, high_precision_tensor: True, quantized_tensor: False, freq: 1}
        - {tensor: gradient, high_precision_tensor: True, quantized_tensor: False, freq: 1}
"""
with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
    f.write(CONFIG)
    f.flush()
    features = os.path.join(os.path.dirname(transformer_engine.__file__), "debug", "features")
    inspect.initialize(config_file=f.name, feature_dirs=[features], log_dir=sys.argv[1])
model = torch.nn.Sequential(te.Linear(64, 128, name="fc1"), te.Linear(128, 64, name="fc2")).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    with te.fp8_autocast(enabled=True, fp8_recipe=DelayedScaling()):
        loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    inspect.step()  # the number of the step in the names of the files
