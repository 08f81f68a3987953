"""Sections of files of nvdlfw-inspect 0.2, as arguments of mpsim.watch."""
from __future__ import annotations

import re
from typing import Any

from ._error import InputError

# nvdlfw-inspect's names of tensors
INSPECT = {"activation": "act", "weight": "weight", "gradient": "agrad", "wgrad": "wgrad", "dgrad": "dgrad", "output": "out"}


def names_of(layers: dict[str, Any]) -> str:
    """A regular expression of the whole names that a `layers` of nvdlfw-inspect 0.2 chooses."""
    unknown = [key for key in layers if key not in ("exact_layer_names", "layer_name_regex_pattern", "layer_numbers", "layer_types")]
    if unknown:
        raise InputError(f"watch: inspect: expected layers by exact_layer_names, layer_name_regex_pattern, layer_numbers or "
                         f"layer_types, found {unknown[0]!r}")
    if layers.get("exact_layer_names"):
        return "|".join(map(re.escape, layers["exact_layer_names"]))
    if layers.get("layer_name_regex_pattern"):
        return f"(?s:.*(?:{layers['layer_name_regex_pattern']}).*)"  # which it searches for
    types, given = layers.get("layer_types") or ["all"], layers.get("layer_numbers", -1)
    ranges = [str(each).partition("-") for each in (given if isinstance(given, list) else [given])]
    words = ".*" if "all" in types else "|".join(f".*{re.escape(word)}.*" for word in types)
    if given in (-1, [-1]):
        return words
    try:
        numbers = {str(n) for low, _, high in ranges for n in range(int(low), int(high or low) + 1)}
    except ValueError:
        raise InputError(f"watch: inspect: expected layer_numbers as 3 or '1-5', or a list of these, found {given!r}") from None
    return rf"(?=(?:.*\.)?(?:{'|'.join(sorted(numbers))})(?:\..*)?$)(?:{words})"


def inspected(config: dict[str, Any]) -> dict[str, Any]:
    """Arguments of watch from a section of a file of nvdlfw-inspect 0.2."""
    try:
        return _arguments(config)
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"watch: inspect: expected a section of an nvdlfw-inspect file as a dict: {error}") from None


def _arguments(config: dict[str, Any]) -> dict[str, Any]:
    """Arguments of watch from a section of a file of nvdlfw-inspect 0.2: its layers, and of LogTensorStats tensors,
    freq, start_step and end_step or start_end_list. Which numbers it would log is not asked: all are counted."""
    features = config.get("transformer_engine", config)
    stats = next((v for k, v in features.items() if k.startswith("LogTensorStats")), features)
    if not config.get("enabled", True) or not stats.get("enabled", True):
        raise InputError("watch: inspect: expected a section that is enabled, found enabled: False")
    struct = stats.get("tensors_struct")
    if struct:
        rest = [{k: v for k, v in each.items() if k not in ("tensor", "stats")} for each in struct]
        if any(each != rest[0] for each in rest):
            raise InputError("watch: inspect: expected tensors_struct with one freq and range of steps, found several")
        stats = {**stats, **rest[0], "tensors": [each["tensor"] for each in struct]}
    tensors = stats.get("tensors", ["activation", "gradient", "weight"])
    tensors = list(INSPECT) if "all" in tensors else tensors
    for word in tensors:
        if word not in INSPECT:
            raise InputError(f"watch: inspect: expected tensors of {', '.join(INSPECT)}, found {word!r}")
    end = stats.get("end_step")
    spans = stats.get("start_end_list") or [(stats.get("start_step") or 0, -1 if end in (None, -1) else end + 1)]
    return {"modules": names_of(config.get("layers", {})), "kinds": [INSPECT[word] for word in tensors],
            "every": stats.get("freq") or 1, "spans": spans}
