"""Policies: lib/include/mpsim/policy.h, of libmpsim-trace, which the first policy loads.

    p = Policy.open("te-mxfp8", layers=["h.0.attn", "h.0.mlp"])     # the name of a bundled one, a file, or a dict of its keys
    plan = p.plan(0)                                                # in force at step 0, the first
    place = plan.place("h.0.mlp", "linear", rank=2)
    place.format["act"], place.recipe["act"], place.kept
"""
from __future__ import annotations

import ctypes
import functools
import json
import math
import os
import re
import weakref
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_float, c_int, c_int16, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any, Iterable, Mapping, Optional, Union

from ._error import FileError, InputError
from ._formats import Format, find
from ._library import ENOMEM, INSTALLED, CFormat, CRecipe, CScalerConfig, lib, text
from ._open import EIO, LINE
from ._open import library as of_files
from ._optim import ALGORITHMS, NUMBERS, STORES, CMuon, CStates, CVariant, fields

ROLES = ("act", "out", "weight", "agrad", "dgrad", "wgrad")
KINDS = ("linear", "conv", "batchnorm", "norm", "softmax", "embedding", "loss", "other")
MASTERS = (None, "fp32", "split")
TABLE = 1 << 16  # the rank of an embedding's weight
BASES = ("precision", "mixed_precision", "opt_level", "amp_opt_level", "fp8_recipe")  # keys that say what a dict without a name is
WHERE = re.compile("^policy: (line [0-9]+: )?")  # of a dict's keys: it has no lines
FOLDER = os.path.join(INSTALLED, "share", "mpsim", "policies")


class CDelayedConfig(ctypes.Structure):
    _fields_ = [("history", c_uint32), ("algorithm", c_uint8), ("variant", c_uint8), ("margin", c_int16), ("fp8_max", c_float)]


class CPlacement(ctypes.Structure):
    _fields_ = [("format", CFormat * 6), ("storage", CFormat), ("kept", CFormat), ("state", CFormat), ("recipe", POINTER(CRecipe) * 6),
                ("hadamard", c_uint32), ("promote", c_uint32), ("muon", c_uint32), ("states", POINTER(CStates))]


class CPlanOptimizer(ctypes.Structure):
    _fields_ = [*fields(c_int32, "algorithm", "store", "variant_given", "state_given", "has_muon", "nesterov", "amsgrad", "maximize"),
                ("state", CFormat), ("states", POINTER(CStates)), ("number", c_double * len(NUMBERS)), ("muon", CMuon)]


class CPlan(ctypes.Structure):
    _fields_ = [("from", c_uint64), ("precision", c_char * 32), ("autocast", c_char_p), ("recipe", c_char_p), ("compute", CFormat),
                ("params", CFormat), ("grads", CFormat), ("master", c_int32), ("casts_all", c_int32), ("attends", c_int32),
                ("delayed_given", c_int32), ("delayed", CDelayedConfig), ("scaler", CScalerConfig), ("clip", c_int32), ("clip_given", c_int32),
                ("clip_scaled", c_int32), ("max_norm", c_double), ("optimizer", CPlanOptimizer)]


class CDepth(ctypes.Structure):
    _fields_ = [("known", c_int32), ("first", c_uint64), ("last", c_uint64)]


class CLayerPlace(ctypes.Structure):
    _fields_ = [("name", c_char_p), *fields(c_int32, "kind", "rank", "weighs", "multiplies", "attends")]


# by their names in C, for the test that compares them with the headers
STRUCTURES = {"mpsim_delayed_config": CDelayedConfig, "mpsim_placement": CPlacement, "mpsim_plan_optimizer": CPlanOptimizer,
              "mpsim_plan": CPlan, "mpsim_depth": CDepth, "mpsim_layer_place": CLayerPlace}


@functools.lru_cache(maxsize=None)
def library() -> Any:
    loaded = of_files()
    opened = [c_uint64, c_char_p, c_size_t]
    prototypes: dict[str, tuple[Any, list[Any]]] = {
        "policy_open": (c_int, [POINTER(c_void_p), c_char_p, c_char_p, *opened]),
        "policy_read": (c_int, [POINTER(c_void_p), c_char_p, c_char_p, c_size_t, *opened]),
        "policy_free": (None, [c_void_p]), "policy_say": (c_char_p, [c_void_p, c_int]), "policy_plans": (c_size_t, [c_void_p]),
        "policy_plan_at": (c_size_t, [c_void_p, c_uint64]), "policy_plan": (c_int, [c_void_p, c_size_t, POINTER(CPlan)]),
        "policy_describe": (c_int, [c_void_p, c_size_t, c_char_p, c_size_t]),
        "policy_variant": (POINTER(CVariant), [c_void_p, c_size_t, c_int]), "layer_kind_name": (c_char_p, [c_int]),
        "depth_add": (None, [POINTER(CDepth), c_char_p]), "policy_kind": (c_int, [c_void_p, c_size_t, c_char_p, c_int]),
        "policy_place": (c_int, [c_void_p, c_size_t, POINTER(CLayerPlace), POINTER(CDepth), POINTER(CPlacement)])}
    for name, (restype, argtypes) in prototypes.items():
        function = getattr(loaded, "mpsim_" + name)
        function.restype, function.argtypes = restype, argtypes
    return loaded


def _format(c: CFormat) -> Format:
    return find(text(c.name))


class Placement:
    """Where the tensors of a layer are.

    format: by role ("act", "out", "weight", "agrad", "dgrad", "wgrad"), of `mpsim.formats`.
    storage: of the model's parameters; kept: of what accumulates updates; state: of moments.
    recipe: by role, of what enters a product: a block recipe (CRecipe) or None.
    hadamard, promote, muon: as in mpsim/placement.h; states: the name of moments in few bits, or None.
    """

    __slots__ = ("c", "format", "storage", "kept", "state", "recipe", "hadamard", "promote", "muon", "states")

    def __init__(self, c: CPlacement) -> None:
        self.c = c
        self.format: dict[str, Format] = {role: _format(f) for role, f in zip(ROLES, c.format)}
        self.storage, self.kept, self.state = _format(c.storage), _format(c.kept), _format(c.state)
        self.recipe: dict[str, Optional[CRecipe]] = {role: r.contents if r else None for role, r in zip(ROLES, c.recipe)}
        self.hadamard: int = c.hadamard
        self.promote: int = c.promote
        self.muon = bool(c.muon)
        self.states: Optional[str] = text(c.states.contents.name) if c.states else None

    def __repr__(self) -> str:
        said = [f"{role} {f.name}" + (f" as {text(r.name)}" if r else "") for (role, f), r in zip(self.format.items(), self.recipe.values())]
        return f"<mpsim placement: {', '.join(said)}, kept {self.kept.name}>"


class PlanOptimizer:
    """What a plan says of the optimizer.

    algorithm: "adamw", ...; None: the user's. variant(algorithm): the plan's for an algorithm, or None; variant_given: the policy names one.
    store: "nearest", "stochastic" or "kahan". state: the format of moments; None: that of what accumulates updates. states: the name of
    moments in few bits, or None. numbers: those that the policy gives, by name; flags: nesterov, amsgrad and maximize, if it gives them.
    muon: whether matrices of hidden layers are stepped by Muon; c: the structure.
    """

    def __init__(self, plan: Plan) -> None:
        self.c = c = plan.c.optimizer
        self._plan = plan
        self.algorithm: Optional[str] = ALGORITHMS[c.algorithm] if c.algorithm >= 0 else None
        self.variant_given = bool(c.variant_given)
        self.store: str = STORES[c.store]
        self.state: Optional[Format] = _format(c.state) if c.state_given else None
        self.states: Optional[str] = text(c.states.contents.name) if c.states else None
        self.numbers: dict[str, float] = {name: x for name, x in zip(NUMBERS, c.number) if not math.isnan(x)}
        self.flags: dict[str, bool] = {name: bool(x) for name in ("nesterov", "amsgrad", "maximize") if (x := getattr(c, name)) >= 0}
        self.muon = bool(c.has_muon)

    def variant(self, algorithm: Union[str, int]) -> Optional[CVariant]:
        number = ALGORITHMS.index(algorithm) if isinstance(algorithm, str) else algorithm
        found = library().mpsim_policy_variant(self._plan.policy.handle, self._plan.number, number)
        return found.contents if found else None


class Plan:
    """A policy from a step on; `Policy.plan` has it.

    start: the first step that it is in force for, from 0. precision: the policy's word. compute, params, grads: formats of products, of the
    model's parameters, and of weight gradients as backward leaves them. autocast: the row's name; casts_all: it speaks of all operations
    (all rows but "none" and "torch"). master: None, "fp32" or "split". recipe: the word of fp8_recipe, or None; attends: it has the products of
    attention, too. delayed: settings of scales from steps before, or None. scaler: the loss scaler's. clip: the rule or None, max_norm;
    clip_given: the policy speaks of clipping; clip_scaled: before gradients are unscaled. optimizer: PlanOptimizer. describe: one line.
    """

    def __init__(self, policy: Policy, number: int) -> None:
        self.policy, self.number, self.c = policy, number, CPlan()
        library().mpsim_policy_plan(policy.handle, number, byref(self.c))
        c, line = self.c, ctypes.create_string_buffer(LINE)
        library().mpsim_policy_describe(policy.handle, number, line, LINE)
        self.describe: str = line.value.decode()
        self.start: int = max(getattr(c, "from") - 1, 0)
        self.precision: str = text(c.precision)
        self.autocast: str = text(c.autocast)
        self.casts_all, self.attends = bool(c.casts_all), bool(c.attends)
        self.recipe: Optional[str] = text(c.recipe) or None
        self.compute, self.params, self.grads = _format(c.compute), _format(c.params), _format(c.grads)
        self.master: Optional[str] = MASTERS[c.master]
        self.delayed: Optional[CDelayedConfig] = c.delayed if c.delayed_given else None
        self.scaler: CScalerConfig = c.scaler
        self.clip: Optional[str] = text(lib.mpsim_clip_name(c.clip)) if c.clip else None
        self.clip_given, self.clip_scaled = bool(c.clip_given), bool(c.clip_scaled)
        self.max_norm: float = c.max_norm
        self.optimizer = PlanOptimizer(self)
        self._kinds: dict[tuple[str, int], str] = {}
        self._places: dict[tuple[Any, ...], Placement] = {}

    def kind(self, layer: str, rank: int = -1) -> str:
        """The kind of a layer ("linear", "norm", ...): as layer_kinds says it, else the name, else the dimensions of its weight."""
        key = layer, rank
        if key not in self._kinds:
            self._kinds[key] = KINDS[library().mpsim_policy_kind(self.policy.handle, self.number, layer.encode(), rank)]
        return self._kinds[key]

    def place(self, layer: str, kind: Optional[str] = None, rank: int = -1, attention: bool = False, weighs: Optional[bool] = None,
              multiplies: Optional[bool] = None) -> Placement:
        """Where the tensors of a layer are.

        kind: what the layer does, unless layer_kinds names another for it; None: as `kind` says it. rank: dimensions of its weight, TABLE of
        an embedding. attention: a product of attention. weighs: it has parameters (by default where it has a rank and is no product of
        attention). multiplies: it is a product (by default of kinds linear and conv).
        """
        key = layer, kind, rank, attention, weighs, multiplies
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._place(*key)
        return found

    def _place(self, layer: str, kind: Optional[str], rank: int, attention: bool, weighs: Optional[bool],
               multiplies: Optional[bool]) -> Placement:
        product = attention or (kind or self.kind(layer, rank)) in ("linear", "conv")
        asked = CLayerPlace(layer.encode(), KINDS.index(kind) if kind else -1, rank, rank >= 0 and not attention if weighs is None else weighs,
                            product if multiplies is None else multiplies, attention)
        to = CPlacement()
        library().mpsim_policy_place(self.policy.handle, self.number, byref(asked), byref(self.policy.depth), byref(to))
        return Placement(to)

    def __repr__(self) -> str:
        return f"<mpsim plan of {self.policy.name}: {self.describe}>"


class Policy:
    """A policy: the name of a bundled one, a file, or its keys as a dict.

    layers: names of the network's products, for policies that keep the first and the last ones in bf16. steps_per_epoch: for schedules by
    epoch, of a policy that does not say it.

    >>> p = Policy.open("te-mxfp8")
    >>> p.plan(0).place("h.0.mlp", "linear", rank=2).format["act"].name
    'bf16'
    >>> Policy.open({"precision": "fp16", "clip": 1.0}).plan(0).clip
    'torch'
    """

    def __init__(self, handle: Any, layers: Iterable[str]) -> None:
        loaded = library()
        self.handle = handle
        self._free = weakref.finalize(self, loaded.mpsim_policy_free, handle)
        name, path, note, source, remarks = (loaded.mpsim_policy_say(handle, what) for what in range(5))
        self.name: str = text(name)
        self.path: str = os.fsdecode(path or b"")
        self.note: Optional[str] = text(note) or None
        self.source: Optional[str] = text(source) or None
        self.remarks: list[str] = text(remarks).splitlines()
        self.depth = CDepth()
        for layer in layers:
            loaded.mpsim_depth_add(byref(self.depth), layer.encode())
        self.plans = tuple(Plan(self, i) for i in range(loaded.mpsim_policy_plans(handle)))

    @classmethod
    def open(cls, source: Union[str, os.PathLike[str], Mapping[str, Any], Policy], layers: Iterable[str] = (), steps_per_epoch: int = 0) -> Policy:
        if isinstance(source, Policy):
            return source
        handle, line = c_void_p(), ctypes.create_string_buffer(LINE)
        if isinstance(source, Mapping):
            status = _read(handle, source, steps_per_epoch, line)
        elif isinstance(source, (str, os.PathLike)):
            folder = None if os.environ.get("MPSIM_POLICIES") else os.fsencode(FOLDER)
            status = library().mpsim_policy_open(byref(handle), os.fsencode(source), folder, steps_per_epoch, line, LINE)
        else:
            raise InputError(f"policy: expected the name of a policy, a file or a dict of its keys, found {type(source).__name__}")
        if status == ENOMEM:
            raise MemoryError("policy")
        if status:
            said = line.value.decode(errors="replace")
            raise (FileError if status == EIO else InputError)(WHERE.sub("policy: ", said) if isinstance(source, Mapping) else "policy: " + said)
        made = cls(handle, layers)
        if isinstance(source, Mapping) and "name" not in source:
            bases = [source[key] for key in BASES if isinstance(source.get(key), str)]
            made.name = f"dict of {' '.join(bases)}" if bases else "dict"
        return made

    def plan(self, step: int = 0) -> Plan:
        """The plan in force at a step; steps count from 0 here, those of a policy's schedule from 1."""
        if len(self.plans) == 1:
            return self.plans[0]
        number: int = library().mpsim_policy_plan_at(self.handle, step + 1)
        return self.plans[number]

    def __repr__(self) -> str:
        return f"<mpsim policy {self.name}>"


def _read(handle: Any, keys: Mapping[str, Any], steps_per_epoch: int, line: Any) -> int:
    """A dict as JSON, which is YAML."""
    try:
        written = json.dumps(dict(keys), allow_nan=False, ensure_ascii=False, indent=0).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"policy: expected a dict of texts, numbers, lists and dicts: {error}") from None
    status: int = library().mpsim_policy_read(byref(handle), b"policy", written, len(written), steps_per_epoch, line, LINE)
    return status
