"""Quantised operands of an emulated model beside what other people's quantisers make of the same numbers: codes and scales in every bit.

    python3 peers.py [--transformer-engine DIR] [--microxcaling DIR] [--policy te-nvfp4 ...]

trains two small decoders for three steps under each policy; each operand that enters a product of a linear layer through a recipe is
given to the code of its owners:

    torchao               to_mx, NVFP4Tensor.to_nvfp4, hp_tensor_to_float8_dynamic   (pip install torchao)
    TransformerEngine     NVFP4QuantizerRef and CurrentScalingQuantizerRef of pytorch/custom_recipes, BlockwiseQuantizerReference of
                          tests/pytorch/references, _float_to_e8m0 of tests/pytorch/test_mxfp8_2d_quantize.py (a checkout: DIR)
    microxcaling          _quantize_mx of mx/mx_ops.py (a checkout: DIR)

How their files are loaded without a GPU build: data/vectors/blocks/record_te.py and record_references.py. What is not there is named
and skipped. Of stochastic rounding, which they have not on a CPU, the scales have to be theirs, and each code one of the
two neighbours of the number. The exit code is 1 if a bit differs.
"""
import argparse
import collections
import dataclasses
import importlib
import os
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.environ.get("MPSIM_SRCDIR") or os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [HERE, os.path.join(SOURCES, "data", "vectors", "blocks")]

f32 = np.float32
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], f32)


@dataclasses.dataclass
class Operand:
    """What enters a product: rows lie along its depth."""
    path: str
    kind: str            # fprop, dgrad, wgrad
    role: str            # act, weight, agrad
    x: torch.Tensor      # numbers before the recipe, in their dtype
    codes: np.ndarray    # a byte each
    scales: np.ndarray   # codes of scales, or the binary32 numbers that decode
    values: np.ndarray   # what codes and scales stand for
    step: int = 1


# what a quantiser makes: codes or None, scales or None, values or None
Made = Tuple[Optional[np.ndarray], Optional[np.ndarray], Optional[np.ndarray]]


class Peers:
    """The owners' code that is here; `missing` says what is not."""

    def __init__(self, transformer_engine: str, microxcaling: str) -> None:
        self.missing: "List[str]" = []
        self.references = importlib.import_module("record_references")
        self.torchao = self.of("torchao", lambda: importlib.import_module("torchao.prototype.mx_formats.mx_tensor"))
        self.te = self.of("TransformerEngine", lambda: self.load_te(transformer_engine))
        self.microx = self.of("microxcaling", lambda: self.load_microx(microxcaling))

    def of(self, name: str, load: "Callable[[], Any]") -> Any:
        try:
            return load()
        except (ImportError, OSError) as error:
            self.missing.append(f"{name}: {error}")
            return None

    def load_te(self, root: str) -> Any:
        if not root:
            raise ImportError("no checkout was named")
        self.nvfp4, self.current = importlib.import_module("record_te").stand_ins(root)
        sys.path.insert(0, os.path.join(root, "tests", "pytorch"))
        self.blockwise = importlib.import_module("references.blockwise_quantizer_reference").BlockwiseQuantizerReference
        self.scale_of = importlib.import_module("references.quantize_scale_calc").scale_from_amax_tensor
        path = os.path.join(root, "tests", "pytorch", "test_mxfp8_2d_quantize.py")
        self.e8m0 = self.references.functions(path, ("_float_to_e8m0",), {"torch": torch, "FP8_E4M3_MAX": 448.0})["_float_to_e8m0"]
        return True

    def load_microx(self, root: str) -> Any:
        if not root:
            raise ImportError("no checkout was named")
        sys.path.insert(0, root)
        return importlib.import_module("mx.mx_ops")


# ---- judges: a peer, and what it makes of an operand ----

def te_nvfp4(tile_of_weight: str, rht: bool) -> "Callable[[Peers, Operand], Made]":
    def judge(p: Peers, o: Operand) -> Made:
        tile = tile_of_weight if o.role == "weight" else "1x16"
        x = o.x
        if rht and o.kind == "wgrad":
            q = object.__new__(p.nvfp4.NVFP4QuantizerRef)
            q.__dict__.update(with_rht=True, quant_tile_shape=(1, 16), with_random_sign_mask=True)
            x = q._apply_rht(x)
            o.x = x  # for neighbours
        return p.references.te_nvfp4(p, x, {"tile": tile, "axis": "rows", "rht": "0"})
    return judge


def element_of(o: Operand, elements: str) -> str:
    """Of all operands, or "of activations and weights/of gradients"."""
    first, _, gradients = elements.partition("/")
    return gradients if gradients and o.role == "agrad" else first


def torchao_mx(elements: str, mode: str) -> "Callable[[Peers, Operand], Made]":
    return lambda p, o: p.references.torchao_mx(p, o.x, {"element": element_of(o, elements), "mode": mode})


def torchao_nvfp4(p: Peers, o: Operand) -> Made:
    return p.references.torchao_nvfp4(p, o.x, {"level": "2"})


def torchao_float8(row: bool) -> "Callable[[Peers, Operand], Made]":
    def judge(p: Peers, o: Operand) -> Made:
        from torchao.float8 import config, float8_scaling_utils, float8_training_tensor
        made = float8_scaling_utils.hp_tensor_to_float8_dynamic(
            o.x, torch.float8_e5m2 if o.role == "agrad" and not row else torch.float8_e4m3fn, float8_training_tensor.LinearMMConfig(),
            scaling_granularity=config.ScalingGranularity.AXISWISE if row else config.ScalingGranularity.TENSORWISE,
            axiswise_dim=-1 if row else None, round_scales_to_power_of_2=row)
        return made._data.view(torch.uint8).numpy(), made._scale.float().reciprocal().reshape(-1, 1).numpy(), None
    return judge


def microx(elements: str) -> "Callable[[Peers, Operand], Made]":
    def judge(p: Peers, o: Operand) -> Made:
        return p.references.microx(p, o.x.float(), {"element": element_of(o, elements), "axis": "rows", "round": "even"})
    return judge


def te_mxfp8(p: Peers, o: Operand) -> Made:
    """The owners' scales, and codes by torch's cast under them."""
    x = o.x.float()
    rows, depth = x.shape
    blocks = p.references.padded(x, 1, 32).reshape(rows, -1, 32)
    scale = p.e8m0(blocks.abs().amax(-1))
    y = (blocks / torch.pow(2.0, scale.float() - 127)[:, :, None]).clamp(-448, 448).to(torch.float8_e4m3fn)
    return y.view(torch.uint8).reshape(rows, -1)[:, :depth].numpy(), scale.numpy(), None


def te_current(elements: str) -> "Callable[[Peers, Operand], Made]":
    def judge(p: Peers, o: Operand) -> Made:
        dtype = p.references.FP8[element_of(o, elements)]
        q = object.__new__(p.current.CurrentScalingQuantizerRef)
        q.__dict__.update(dtype=dtype, pow_2_scales=False, eps=0.0, with_amax_reduction=False, rowwise_usage=True,
                          columnwise_usage=False)
        codes, inverse, _, _ = q._quantize(o.x)
        return codes.view(torch.uint8).numpy(), inverse.float().reshape(1, 1).numpy(), None
    return judge


class TeDelayed:
    """Delayed scaling: the scale of the largest amax of the steps before, by TransformerEngine's scale_from_amax_tensor; 1 at first."""

    def __init__(self, elements: str) -> None:
        self.elements = elements
        self.amax: "Dict[Tuple[str, str], Dict[int, float]]" = {}

    def __call__(self, p: Peers, o: Operand) -> Made:
        dtype, seen = p.references.FP8[element_of(o, self.elements)], self.amax.setdefault((o.path, o.role), {})
        before = [amax for step, amax in seen.items() if step < o.step]
        scale, inverse = torch.ones(1), torch.ones(1)
        if before and max(before) > 0:
            scale, inverse, _ = p.scale_of(torch.float32, torch.tensor([max(before)]), dtype, eps=0.0, pow_2_scales=False)
        seen[o.step] = float(o.x.float().abs().max())
        top = torch.finfo(dtype).max
        codes = (o.x.float() * scale).clamp(-top, top).to(dtype).view(torch.uint8).numpy()
        return codes, inverse.reshape(1, 1).numpy(), None


def te_block(elements: str, pow2: str) -> "Callable[[Peers, Operand], Made]":
    def judge(p: Peers, o: Operand) -> Made:
        block = "128x128" if o.role == "weight" else "1x128"
        return p.references.te_block(p, o.x, {"element": element_of(o, elements), "block": block, "axis": "rows", "pow2": pow2})
    return judge


# policies, and who judges: (peer, attribute of Peers that has to be there, judge)
Judge = Tuple[str, str, Callable[[Peers, Operand], Made]]
JUDGES: "Dict[str, List[Judge]]" = {
    "te-nvfp4": [("TransformerEngine", "te", te_nvfp4("16x16", True))],
    "te-nvfp4-without-rht": [("TransformerEngine", "te", te_nvfp4("16x16", False))],
    "te-nvfp4-without-2d": [("TransformerEngine", "te", te_nvfp4("1x16", True))],
    "te-nvfp4-without-sr": [("TransformerEngine", "te", te_nvfp4("16x16", True))],
    "torchao-nvfp4": [("torchao", "torchao", torchao_nvfp4)],
    "te-mxfp8": [("TransformerEngine", "te", te_mxfp8), ("torchao", "torchao", torchao_mx("e4m3", "rceil"))],
    "mxfp8-floor": [("torchao", "torchao", torchao_mx("e4m3", "floor")), ("microxcaling", "microx", microx("e4m3"))],
    "mxfp8-even": [("torchao", "torchao", torchao_mx("e4m3", "even"))],
    "mxfp8-ceil": [("torchao", "torchao", torchao_mx("e4m3", "ceil"))],
    "mxfp8-rceil": [("torchao", "torchao", torchao_mx("e4m3", "rceil"))],
    "te-fp8-current": [("TransformerEngine", "te", te_current("e4m3/e5m2"))],
    "te-fp8-delayed": [("TransformerEngine", "te", TeDelayed("e4m3/e5m2"))],
    "nemo-fp16-fp8-blockwise": [("TransformerEngine", "te", te_block("e4m3/e5m2", "1"))],
    # policies that are no file: keys
    "mxfp4": [("microxcaling", "microx", microx("e2m1")), ("torchao", "torchao", torchao_mx("e2m1", "floor"))],
    "mxfp6": [("microxcaling", "microx", microx("e2m3/e3m2")), ("torchao", "torchao", torchao_mx("e2m3/e3m2", "floor"))],
    "torchao-tensorwise": [("torchao", "torchao", torchao_float8(False))],
    "torchao-rowwise": [("torchao", "torchao", torchao_float8(True))],
}
KEYS: "Dict[str, Dict[str, Any]]" = {
    "mxfp4": {"precision": "mxfp4"}, "mxfp6": {"precision": "mxfp6"},
    "torchao-tensorwise": {"precision": "fp8", "fp8_recipe": "torchao-tensorwise"},
    "torchao-rowwise": {"precision": "fp8", "fp8_recipe": "torchao-rowwise"},
}
# TransformerEngine's reference drops the sign of -0 (data/vectors/blocks/README.md)
UNSIGNED = {"te-nvfp4", "te-nvfp4-without-rht", "te-nvfp4-without-2d", "te-nvfp4-without-sr"}
STOCHASTIC = {"te-nvfp4", "te-nvfp4-without-rht", "te-nvfp4-without-2d"}


# ---- the comparison ----

@dataclasses.dataclass
class Count:
    operands: int = 0
    codes: int = 0
    scales: int = 0
    wrong_codes: int = 0
    wrong_scales: int = 0
    overflowed: int = 0
    first: str = ""

    def note(self, what: str, o: Operand, wrong: np.ndarray, counter: str) -> None:
        """Adds what is wrong, and remembers the first place."""
        setattr(self, counter, getattr(self, counter) + int(wrong.sum()))
        if wrong.any() and not self.first:
            at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            self.first = f"{o.path} {o.kind} {o.role}: {what} {at} of {wrong.shape}"


def spread(scales: np.ndarray, shape: "Tuple[int, int]") -> np.ndarray:
    """A scale for each element."""
    s = scales.reshape(scales.shape[0] if scales.ndim > 1 else 1, -1)
    rows, cols = (-(-shape[0] // s.shape[0]), -(-shape[1] // s.shape[1]))
    return np.repeat(np.repeat(s, 16 if 1 < s.shape[0] < shape[0] else rows, 0), 16 if s.shape[1] > 1 else cols, 1)[
        :shape[0], :shape[1]]


def neighbours(o: Operand, scales: np.ndarray) -> np.ndarray:
    """Where a code is neither of the two numbers of E2M1 about the scaled number."""
    x = o.x.float().numpy()
    decode = f32(1) / f32(f32(448 * 6) / f32(np.abs(x).max()))
    inverse = (spread(torch.from_numpy(scales).view(torch.float8_e4m3fn).float().numpy(), x.shape) * decode).astype(f32)
    with np.errstate(divide="ignore"):
        y = np.clip(x * np.minimum(f32(1) / inverse, np.finfo(f32).max), -6, 6).astype(f32)
    a, v = np.abs(y), E2M1[o.codes & 7]
    low = E2M1[np.searchsorted(E2M1[:8], a, side="right") - 1]
    high = E2M1[np.minimum(np.searchsorted(E2M1[:8], a, side="left"), 7)]
    sign = (o.codes >= 8) != np.signbit(y)
    return ((v != low) & (v != high)) | (sign & (v != 0))


def same_bytes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which numbers differ: scales as codes or as binary32."""
    if a.size != b.size:
        raise ValueError(f"{a.shape} beside {b.shape}")
    a, b = a.reshape(-1), b.reshape(-1)
    return a.view(np.uint32) != b.view(np.uint32) if b.dtype == f32 else a != b


def judged(p: Peers, policy: str, judge: Judge, o: Operand, count: Count) -> None:
    """Scales, then codes; of a peer that gives neither of these, numbers."""
    codes, scales, values = judge[2](p, o)
    count.operands += 1
    if scales is not None:
        wrong = same_bytes(np.asarray(o.scales, scales.dtype), scales)
        count.scales += wrong.size
        count.note("scale", o, wrong, "wrong_scales")
    if policy in STOCHASTIC and o.role == "agrad":
        wrong = neighbours(o, np.asarray(scales))
    elif codes is not None:
        wrong = (o.codes != codes) & ~((o.codes == 8) & (codes == 0) & (o.x == 0).numpy() & (policy in UNSIGNED))
    else:  # what both stand for
        wrong = (o.values != np.asarray(values)) & ~np.isnan(np.asarray(values))
    count.codes += wrong.size
    count.note("code", o, wrong, "wrong_codes")


# ---- where operands come from ----

def from_trace(policy: str, folder: str) -> "Iterator[Operand]":
    """Operands that mpsim.quantize makes of a trace's tensors: a judgement of the judges, without an emulated model."""
    import mpsim
    import parity
    run = parity.train(folder, "mlp", policy_of(policy, folder), "hopper", 3, ["--width", "160", "--batch", "160", "--lr", "1"], "3")
    plan = next(line for line in run.text["layer"] if line.startswith("fc2 "))
    recipes = dict(w.split("=") for w in plan.split()[1:])
    file = mpsim.open(run.trace(3))
    for role, name in (("act", "act:fc2"), ("weight", "weight:fc2.weight"), ("agrad", "agrad:fc2")):
        x = torch.from_numpy(parity.tensor_of(file, name)).to(torch.float16 if "fp16" in policy else torch.bfloat16)
        for kind, y in (("fprop", x), ("wgrad", x.t().contiguous())):
            recipe = recipes.get(role + ".recipe", "")
            if not recipe or role == "weight" and kind == "wgrad":
                continue
            if kind == "wgrad" and "hadamard" in recipes:
                continue  # mpsim.quantize does not round what it transforms
            q = mpsim.quantize(y, recipe, **({"seed": 0, "stream": 0} if recipe.endswith("-sr") else {}))
            scales = q.scales if q.scale_codes is None else q.scale_codes
            yield Operand("fc2", kind, role, y, np.asarray(q.codes), np.asarray(scales), np.asarray(q.values))


def from_emulator(policy: str, folder: str, steps: int = 3) -> "Iterator[Operand]":
    """What enters products through recipes in a small decoder under mpsim.emulate: Llama's form, then GPT-2's."""
    import mpsim
    import parity
    made: "List[Operand]" = []
    for net in ("llama", "gpt"):
        place = os.path.join(folder, net)
        os.mkdir(place)
        run = parity.train(place, net, policy_of(policy, folder), "hopper", steps, SIZES, f"1-{steps}")
        low = torch.float16 if "fp16" in policy else torch.bfloat16
        training = parity.Training(run)
        with training.emulate() as e:
            e.on_operand(lambda **k: made.append(operand_of(net, training.at, low, **k)))
            for number, batches in enumerate(parity.batches_of(run), 1):
                training.at = number
                training.step(e, number, batches)
        yield from made
        made.clear()


# sides that blocks of 32 divide, and rows that blocks of 128 do not
SIZES = ["--depth", "1", "--width", "64", "--heads", "2", "--context", "48", "--batch", "2", "--validation", "2"]


def operand_of(net: str, step: int, low: torch.dtype, **k: Any) -> Operand:
    """From the emulator's words; numbers in the dtype that they have in a training."""
    x = torch.from_numpy(np.array(k["input"], f32)).to(low)
    return Operand(f"{net}.{k['path']}", k["kind"], k["role"], x, np.array(k["codes"]), np.array(k["scales"]),
                   np.array(k["values"], f32), step)


def policy_of(name: str, folder: str) -> str:
    """A bundled policy, or a file of the keys."""
    if name not in KEYS:
        return name
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(f"{key}: {value}\n" for key, value in KEYS[name].items()))
    return path


def judge_all(p: Peers, policy: str, operands: "Iterator[Operand]") -> "Dict[str, Count]":
    """All operands under all judges of a policy that are here."""
    counts: "Dict[str, Count]" = collections.defaultdict(Count)
    for o in operands:
        for judge in JUDGES[policy]:
            if not o.x.isfinite().all():  # overflowed gradients: kernels and references differ there
                counts[judge[0]].overflowed += 1
            elif getattr(p, judge[1]):
                judged(p, policy, judge, dataclasses.replace(o), counts[judge[0]])
    return counts


def main() -> int:
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--transformer-engine", default="", metavar="DIR", help="a checkout of NVIDIA/TransformerEngine")
    a.add_argument("--microxcaling", default="", metavar="DIR", help="a checkout of microsoft/microxcaling")
    a.add_argument("--policy", action="append", choices=sorted(JUDGES))
    a.add_argument("--from-trace", action="store_true", help="operands by mpsim.quantize, of tensors of mpsim train")
    words = a.parse_args()
    p, bad = Peers(words.transformer_engine, words.microxcaling), 0
    for line in p.missing:
        print("SKIP", line)
    for policy in words.policy or JUDGES:
        with tempfile.TemporaryDirectory() as folder:
            source = from_trace(policy, folder) if words.from_trace else from_emulator(policy, folder)
            for peer, c in judge_all(p, policy, source).items():
                print(f"{policy:26}{peer:20}{c.operands:5} operands{c.wrong_scales:8,} of {c.scales:9,} scales"
                      f"{c.wrong_codes:8,} of {c.codes:11,} codes differ  {c.first}"
                      + (f"  {c.overflowed} operands with infinities left out" if c.overflowed else ""), flush=True)
                bad += c.wrong_scales + c.wrong_codes
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
