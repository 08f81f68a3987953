# SPDX-License-Identifier: Apache-2.0
"""The package's recorder, taken from its file: the package would load libmpsim, which no recorder needs."""
import importlib.util
import os

HERE = os.path.dirname(os.path.abspath(__file__))
_spec = importlib.util.spec_from_file_location(
    "mpsim_record", os.path.join(HERE, "..", "..", "python", "src", "mpsim", "record.py"))
module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(module)
Recorder, raw_bytes = module.Recorder, module.raw_bytes
save_safetensors, safetensors_header = module.save_safetensors, module.safetensors_header
