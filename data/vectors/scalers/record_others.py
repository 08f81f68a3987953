# SPDX-License-Identifier: Apache-2.0
"""Record what the loss scalers of frameworks other than PyTorch do with scripted overflows.

    python3 record_others.py deepspeed > deepspeed.txt
    python3 record_others.py megatron > megatron.txt
    KERAS_BACKEND=torch python3 record_others.py keras > keras.txt
    python3 record_others.py tf-keras > tf-keras.txt
    python3 record_others.py fairseq fairseq-0.12.2 > fairseq.txt    (unpacked source archive)
    python3 record_others.py accelerate > accelerate.txt             (defaults only)

The frameworks come from PyPI: deepspeed (installed with DS_BUILD_OPS=0), megatron-core, keras 3,
tf_keras with tensorflow-cpu, fairseq (source archive; one module is loaded alone), accelerate.
How each class was driven stands in the header of its file.  No result depends on a seed but the
overflow patterns of the cases named random*, whose seeds are in the case line.
"""
import contextlib
import importlib
import importlib.metadata as metadata
import importlib.util
import inspect
import logging
import os
import platform
import random
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
STEP, SKIP, RAISE = "step", "skip", "raise"


def hexf(x):
    """C99 hexadecimal form of a double, without trailing zeros."""
    x = float(x)
    if x != x or x in (float("inf"), float("-inf")):
        return str(x)
    if x == 0:
        return "0x0p+0"
    head, exp = x.hex().split("p")
    if "." in head:
        head = head.rstrip("0").rstrip(".")
    return head + "p" + exp


def run_length(text):
    """'0*5 1 0*3' -> [0, 0, 0, 0, 0, 1, 0, 0, 0]"""
    out = []
    for word in text.split():
        bit, _, n = word.partition("*")
        out += [int(bit)] * int(n or 1)
    return out


def scripted(w):
    """(name, overflow pattern) for a growth window of w steps."""
    yield "clean", f"0*{3 * w + 4}"
    yield "first", f"1 0*{2 * w + 3}"
    yield "single", f"0*2 1 0*{2 * w + 3} 1 0*{w + 2}"
    for k in (2, 3, 4):
        yield f"run{k}", f"0*2 1*{k} 0*{2 * w + 3} 1*{k} 0*2 1 0*{w + 2}"
    yield "spaced", f"1 0 1 0 1 0 1 0*{w + 2} 1 0 1 0*{2 * w + 2}"
    for d in (-2, -1, 0, 1, 2):               # overflow near the step at which a clean run grows
        if w + d > 0:
            sign = "m" if d < 0 else "p"
            yield f"near_growth_{sign}{abs(d)}", f"0*{w + d} 1 0*{2 * w + 3}"
            yield f"near_growth2_{sign}{abs(d)}", f"0*{w + d} 1 1 0*{w + d} 1 0*{w + 2}"


def random_patterns(base):
    for i, p in enumerate((0.03, 0.12, 0.35, 0.6)):
        pick = random.Random(base + i)
        yield f"random{i}", base + i, p, [int(pick.random() < p) for _ in range(300)]


def all_patterns(windows, base, few=False):
    """All scripted patterns for the first window, some for the others, and the random ones."""
    for w in windows:
        for name, text in () if few else scripted(w):
            if w == windows[0] or name in ("clean", "single", "run3", "near_growth_p0"):
                yield f"w{w}_{name}", w, run_length(text), {}
    w = windows[0]
    for i, (name, seed, p, bits) in enumerate(random_patterns(base)):
        if not few or i == 1:
            yield f"w{w}_{name}", w, bits, {"seed": seed, "p": p}


def header(framework, lines, columns):
    print("# SPDX-License-Identifier: Apache-2.0")
    print(f"# {framework}, recorded by record_others.py, python {platform.python_version()}")
    for line in lines:
        print("#", line)
    print("# case NAME and what the constructor got, then one line per step:")
    print("#", columns)
    print("# INF 1: scripted overflow.  SCALE: exact value after the update.  EVENT: step, skip,")
    print("# raise (the framework threw its minimum-reached exception; the case ends).")


def defaults(values):
    for name, value in values.items():
        print(f"# default {name}={value}")


def signature_defaults(cls):
    return {k: ("(required)" if p.default is p.empty else repr(p.default))
            for k, p in inspect.signature(cls.__init__).parameters.items()
            if k != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}


def show(value):
    if value is None or isinstance(value, str):
        return value or "none"
    if isinstance(value, (bool, int)):
        return str(int(value))
    return min(repr(float(value)), hexf(value), key=len)       # both are what strtod reads


def case(name, params, bits, step):
    """step(inf) -> (scale, counter, event[, more columns])"""
    print("case", name, " ".join(f"{k}={show(v)}" for k, v in params.items()))
    for inf in bits:
        scale, counter, event, *more = step(inf)
        print(inf, hexf(scale), counter, event, *more)
        if event == RAISE:
            break


def backend_version(name):
    return importlib.import_module(name).__version__


def load_alone(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- DeepSpeed -------------------------------------------------------------------------------
def record_deepspeed():
    from types import SimpleNamespace

    import torch
    with contextlib.redirect_stdout(sys.stderr):      # its logger writes there
        import deepspeed
    from deepspeed.runtime.fp16 import loss_scaler as ls
    from deepspeed.runtime.fp16.fused_optimizer import FP16_Optimizer
    from deepspeed.runtime.fp16.unfused_optimizer import FP16_UnfusedOptimizer
    from deepspeed.runtime.precision_config import DeepSpeedFP16Config
    from deepspeed.utils import logger
    logger.setLevel(logging.CRITICAL)
    assert deepspeed.__version__ == metadata.version("deepspeed")
    ls.dist.get_rank = lambda *a: 0            # only used to decide who logs
    ls.log_dist = lambda *a, **k: None
    header("DeepSpeed " + metadata.version("deepspeed"),
           ["rule=zero: DynamicLossScaler.update_scale (dist.get_rank replaced by 0).  The scale",
            "is a Python float.  init growth(scale_factor, not an argument) window(scale_window)",
            "hysteresis(delayed_shift) consecutive(consecutive_hysteresis) floor(min_scale)",
            "raise(raise_error_at_min_scale).",
            "rule=fused, rule=unfused: FP16_Optimizer._update_scale and FP16_UnfusedOptimizer's,",
            "called as functions on a namespace with the framework's LossScaleConfig: no",
            "hysteresis.  HYST: cur_hysteresis after the update, - where there is none.",
            "Overflow with a scale of inf: DynamicLossScaler throws OverflowError for float16",
            "(int(scale) in its log message), whatever the log level; no case goes there."],
           "INF SCALE COUNTER(cur_iter) EVENT HYST")
    defaults({"DynamicLossScaler." + k: v
              for k, v in signature_defaults(ls.DynamicLossScaler).items()})
    for profile, d in ls.LOSS_SCALE_PROFILE_DEFAULTS.items():
        defaults({f"{profile.value}.{k}": v for k, v in vars(d).items()})
    cfg = DeepSpeedFP16Config()
    defaults({"fp16." + k: getattr(cfg, k) for k in (
        "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
        "consecutive_hysteresis", "min_loss_scale")})

    def zero(name, bits, init=2.0**16, window=4, hysteresis=1, consecutive=False, floor=1.0,
             raises=True, **more):
        s = ls.DynamicLossScaler(init_scale=init, scale_window=window, min_scale=floor,
                                 delayed_shift=hysteresis, consecutive_hysteresis=consecutive,
                                 raise_error_at_min_scale=raises, dtype=torch.half)

        def step(inf):
            try:
                s.update_scale(bool(inf))
            except OverflowError:
                raise
            except Exception as e:
                assert "already at minimum" in str(e)
                return s.cur_scale, s.cur_iter, RAISE, s.cur_hysteresis
            return s.cur_scale, s.cur_iter, SKIP if inf else STEP, s.cur_hysteresis
        case(name, dict(rule="zero", init=init, growth=s.scale_factor, window=window,
                        hysteresis=hysteresis, consecutive=consecutive, floor=floor,
                        **{"raise": raises}, **more), bits, step)

    def wrapper(name, bits, cls, kind, init=2.0**16, window=4, floor=1.0, args=True, **more):
        ns = SimpleNamespace(verbose=False)
        given = {ls.INITIAL_LOSS_SCALE: init, ls.SCALE_WINDOW: window, ls.MIN_LOSS_SCALE: floor}
        ns.loss_scale_config = c = ls.LossScaleConfig(
            torch.float16, True, 0, given if args else None, profile=ls.LossScaleProfile(kind))

        def step(inf):
            cls._update_scale(ns, bool(inf))
            return c.cur_scale, c.cur_iter, SKIP if inf else STEP, "-"
        case(name, {"rule": kind, "init": c.cur_scale, "growth": c.scale_factor,
                    "window": c.scale_window, "floor": c.min_loss_scale, **more}, bits, step)

    for h, c in ((1, False), (2, False), (2, True), (3, False), (3, True)):
        tag = f"zero_h{h}" + ("c" if c else "")
        for name, w, bits, more in all_patterns((4, 5, 1), 10 * h + c):
            if more and h == 3 and more["p"] not in (0.12, 0.35):
                continue
            zero(f"{tag}_{name}", bits, window=w, hysteresis=h, consecutive=c, floor=2.0**-40,
                 init=2.0**32, **more)
        for r in (True, False):
            bits = run_length("0*2 1*7 0*10 1*12")
            zero(f"{tag}_floor_raise{int(r)}", bits, init=16.0, hysteresis=h, consecutive=c,
                 raises=r)
            zero(f"{tag}_floor_odd_raise{int(r)}", bits, init=24.0, hysteresis=h, floor=5.0,
                 consecutive=c, raises=r)
    zero("zero_floor_at_start", [0, 1, 1], init=1.0)
    zero("zero_floor_tiny", [1] * 12 + [0] * 9, init=2.0**-1070, floor=0.0, raises=False)
    zero("zero_to_inf", [0] * 24, init=2.0**1021)
    zero("zero_not_a_power", run_length("1*3 0*12 1*4"), init=3000.0, floor=1.5)
    for cls, kind in ((FP16_Optimizer, "fused"), (FP16_UnfusedOptimizer, "unfused")):
        for name, w, bits, more in all_patterns((4, 1), 90, kind == "unfused"):
            wrapper(f"{kind}_{name}", bits, cls, kind, window=w, floor=2.0**-40, **more)
        wrapper(f"{kind}_floor", run_length("1*20 0*6 1*2"), cls, kind)
        wrapper(f"{kind}_to_inf", run_length("0*20 1*2"), cls, kind, init=2.0**1021)
        wrapper(f"{kind}_default", run_length("0*2 1*40 0*2"), cls, kind, args=False)


# --- Megatron-Core ---------------------------------------------------------------------------
@contextlib.contextmanager
def cuda_is_cpu(torch):
    real = torch.tensor

    def tensor(*args, **kwargs):
        if kwargs.get("device") == "cuda":
            kwargs["device"] = "cpu"
        return real(*args, **kwargs)
    torch.tensor = tensor
    try:
        yield
    finally:
        torch.tensor = real


def record_megatron():
    import torch
    from megatron.core.optimizer import OptimizerConfig
    from megatron.core.optimizer.grad_scaler import DynamicGradScaler
    header("Megatron-Core " + metadata.version("megatron-core"),
           [f"DynamicGradScaler.update with torch {torch.__version__}; during construction",
            'torch.tensor(device="cuda") went to the CPU.  Scale, factors and floor are float32',
            "tensors.  init growth backoff window(growth_interval) hysteresis floor(min_scale).",
            "HYST: _hysteresis_tracker after the update.  event skip: what the optimizer does."],
           "INF SCALE COUNTER(_growth_tracker) EVENT HYST")
    defaults({"DynamicGradScaler." + k: v
              for k, v in signature_defaults(DynamicGradScaler).items()})
    cfg = OptimizerConfig()
    defaults({"OptimizerConfig." + k: getattr(cfg, k) for k in (
        "loss_scale", "initial_loss_scale", "min_loss_scale", "loss_scale_window", "hysteresis",
        "clip_grad")})

    def one(name, bits, init=2.0**16, growth=2.0, backoff=0.5, window=4, hysteresis=1,
            floor=1.0, **more):
        with cuda_is_cpu(torch):
            s = DynamicGradScaler(initial_scale=init, min_scale=floor, growth_factor=growth,
                                  backoff_factor=backoff, growth_interval=window,
                                  hysteresis=hysteresis)

        def step(inf):
            s.update(bool(inf))
            assert s.scale.dtype == torch.float32
            return (s.scale.double().item(), s._growth_tracker, SKIP if inf else STEP,
                    s._hysteresis_tracker)
        case(name, dict(init=init, growth=growth, backoff=backoff, window=window,
                        hysteresis=hysteresis, floor=floor, **more), bits, step)

    for h in (1, 2, 3):
        for name, w, bits, more in all_patterns((4, 5, 1), 200 + 10 * h):
            one(f"h{h}_{name}", bits, window=w, hysteresis=h, floor=2.0**-40, init=2.0**32, **more)
        one(f"h{h}_floor", run_length("0*2 1*9 0*10 1*12"), init=16.0, hysteresis=h)
        one(f"h{h}_floor_odd", run_length("0*2 1*9 0*10 1*12"), init=24.0, hysteresis=h, floor=5.0)
        for name, w, bits, more in all_patterns((4,), 300 + 10 * h, True):
            one(f"h{h}_factors_{name}", bits, growth=1.5, backoff=0.7, hysteresis=h,
                floor=2.0**-20, window=w, **more)
        one(f"h{h}_to_inf", run_length("0*12 1*4 0*5"), init=2.0**126, hysteresis=h)
        one(f"h{h}_to_inf_factors", run_length("0*12 1*4 0*5"), init=2.0**126, growth=3.1,
            backoff=0.3, hysteresis=h)
    one("floor_subnormal", [1] * 30 + [0] * 9, init=2.0**-120, floor=2.0**-149)
    one("floor_subnormal_factors", [1] * 60 + [0] * 12, init=2.0**-130, growth=1.1, backoff=0.7,
        floor=2.0**-149, window=1)
    one("floor_f32", run_length("1*6 0*5"), init=1.0, backoff=0.3, floor=0.1)
    one("default", [0] * 2 + [1] * 40 + [0] * 3, window=1000, hysteresis=2, init=2.0**32)


# --- Keras 3 ---------------------------------------------------------------------------------
def record_keras():
    import keras
    import numpy as np
    lso = keras.optimizers.LossScaleOptimizer
    backend = keras.backend.backend()
    header(f"Keras {keras.__version__}, backend {backend}"
           f" {backend_version(backend)}",
           ["LossScaleOptimizer(SGD(0.5)).apply([gradient], [variable]) with a gradient of three",
            "float32 values, one of them inf or NaN on overflow.  EVENT: from the iteration count",
            "of the inner optimizer.  Growth 2, backoff 0.5 and no floor are fixed in the class;",
            "init(initial_scale) window(dynamic_growth_steps).  The tensorflow backend",
            "(2.21.0, CPU) gave the same lines when this file was made, except that every scale",
            "below 2^-126 became 0: TensorFlow flushes subnormals."],
           "INF SCALE COUNTER(step_counter) EVENT")
    defaults({"LossScaleOptimizer." + k: v for k, v in signature_defaults(lso).items()})

    def one(name, bits, init=2.0**15, window=4, **more):
        v = keras.Variable(np.zeros(3, np.float32))
        opt = lso(keras.optimizers.SGD(0.5), initial_scale=init, dynamic_growth_steps=window)
        count, bad = [0], [np.inf, np.nan, -np.inf]

        def step(inf):
            g = np.array([1, bad[count[0] % 3] if inf else 2, 3], np.float32)
            count[0] += inf
            before = int(opt.iterations)
            opt.apply([keras.ops.convert_to_tensor(g)], [v])
            event = STEP if int(opt.iterations) == before + 1 else SKIP
            assert (event == SKIP) == bool(inf)
            scale = keras.ops.convert_to_numpy(opt.dynamic_scale)
            assert scale.dtype == np.float32
            return float(scale), int(opt.step_counter), event
        case(name, dict(init=init, growth=2.0, backoff=0.5, window=window, **more), bits, step)

    for name, w, bits, more in all_patterns((4, 5, 1), 400):
        one(name, bits, window=w, **more)
    one("to_inf", run_length("0*16 1*3 0*5"), init=2.0**125)
    one("to_zero", [1] * 12 + [0] * 6, init=2.0**-140)
    one("not_a_power", run_length("1*3 0*9 1*30"), init=3000.1)
    one("not_a_power_to_zero", [1] * 14 + [0] * 6, init=1.2e-41)


# --- tf.keras --------------------------------------------------------------------------------
def record_tf_keras():
    import numpy as np
    import tensorflow as tf
    import tf_keras
    base = tf_keras.mixed_precision.LossScaleOptimizer
    outer = type(base(tf_keras.optimizers.SGD(0.5)))
    probe = base(tf_keras.optimizers.SGD(0.5), initial_scale=3.0)
    g = np.float32(0.1) * np.arange(1, 200, dtype=np.float32)
    got = probe.get_unscaled_gradients([tf.constant(g)])[0].numpy()
    recip = (g * (np.float32(1) / np.float32(3))).astype(np.float32)
    h = g.astype(np.float16)
    got16 = probe.get_unscaled_gradients([tf.constant(h)])[0].numpy()
    recip16 = h * np.float16(np.float32(1) / np.float32(3))
    header(f"tf_keras {tf_keras.__version__}, tensorflow {tf.__version__}",
           [f"mixed_precision.LossScaleOptimizer -> {outer.__name__}, around SGD(0.5), eager, CPU:",
            "apply_gradients([(gradient, variable)]) with a gradient of three float32 values, one",
            "of them inf or NaN on overflow.  EVENT: whether the variable changed (iterations",
            "counts skipped steps too).  Growth 2 and floor 1 are fixed; init(initial_scale)",
            "window(dynamic_growth_steps).  legacy.SGD in the older wrapper gave the same lines.",
            "get_unscaled_gradients, initial_scale 3, 199 float32 gradients: equal to",
            f"g*f32(1/3) in {int((got == recip).sum())}, to f32(g/3) in"
            f" {int((got == g / np.float32(3)).sum())}; 199 float16 gradients, result"
            f" {got16.dtype}: equal to",
            f"f16(g*f16(f32(1/3))) in {int((got16 == recip16).sum())}, to"
            f" f16(g/3) in {int((got16 == (h / np.float32(3)).astype(np.float16)).sum())},"
            f" to f16(g*f32(1/3)) in"
            f" {int((got16 == (h * np.float32(1 / 3)).astype(np.float16)).sum())}."],
           "INF SCALE COUNTER(dynamic_counter) EVENT")
    defaults({f"{outer.__name__}." + k: v for k, v in signature_defaults(outer).items()})
    opt = base(tf_keras.optimizers.SGD(0.5))
    defaults({"initial_scale": opt.initial_scale, "dynamic_growth_steps": opt.dynamic_growth_steps,
              "multiplier": opt._loss_scale.multiplier})

    def one(name, bits, init=2.0**15, window=4, **more):
        pair = []
        for sgd in (tf_keras.optimizers.SGD(0.5), tf_keras.optimizers.legacy.SGD(0.5)):
            v = tf.Variable(np.zeros(3, np.float32))
            pair.append((base(sgd, initial_scale=init, dynamic_growth_steps=window), v))
        count, bad = [0], [np.inf, np.nan, -np.inf]

        def step(inf):
            g = np.array([1, bad[count[0] % 3] if inf else 2, 3], np.float32)
            count[0] += inf
            res = []
            for opt, v in pair:
                before = v.numpy()
                opt.apply_gradients([(tf.constant(g), v)])
                event = STEP if (v.numpy() != before).all() else SKIP
                assert (event == SKIP) == bool(inf) and opt.loss_scale.dtype == tf.float32
                res.append((float(opt.loss_scale), int(opt.dynamic_counter), event))
            assert res[0] == res[1]
            return res[0]
        case(name, dict(init=init, growth=2.0, window=window, floor=1.0, **more), bits, step)

    for name, w, bits, more in all_patterns((4, 1), 500):
        one(name, bits, window=w, **more)
    one("high_random", next(random_patterns(520))[3], init=2.0**60)
    one("to_max", run_length("0*20 1*3 0*5"), init=2.0**125)
    one("floor", run_length("1*6 0*5 1*3"), init=16.0)
    one("floor_from_below", run_length("0*5 1*2"), init=0.25)
    one("to_max_window1", run_length("0*8 1 0*3"), init=1.5 * 2.0**124, window=1)
    one("floor_below_overflow", run_length("1 0*5"), init=0.25)
    one("not_a_power", run_length("1*3 0*9 1*12"), init=3000.1)


# --- fairseq ---------------------------------------------------------------------------------
def record_fairseq(root):
    module = load_alone(os.path.join(root, "fairseq/optim/dynamic_loss_scaler.py"), "fairseq_dls")
    cls = module.DynamicLossScaler
    version = os.path.basename(os.path.normpath(root)).rpartition("-")[2]
    header(f"fairseq {version} (source archive from PyPI)",
           ["fairseq/optim/dynamic_loss_scaler.py loaded alone; per step check_overflow(norm) with",
            "norm inf or NaN on overflow, and update() when it throws nothing, as the trainer",
            "does.  The scale is a Python float; on overflow it is DIVIDED by factor.",
            "init(init_scale) factor(scale_factor) window(scale_window) tolerance threshold",
            "floor(min_loss_scale).  OVER: _overflows_since_rescale, LAST: _last_rescale_iter."],
           "INF SCALE COUNTER(_iter) EVENT OVER LAST")
    defaults({"DynamicLossScaler." + k: v for k, v in signature_defaults(cls).items()})

    def one(name, bits, init=2.0**15, factor=2.0, window=4, tolerance=0.0, threshold=None,
            floor=1e-4, **more):
        s = cls(init_scale=init, scale_factor=factor, scale_window=window, tolerance=tolerance,
                threshold=threshold, min_loss_scale=floor)
        count = [0]

        def step(inf):
            norm = (float("nan") if count[0] % 2 else float("inf")) if inf else 1.5
            count[0] += inf
            event = STEP
            try:
                s.check_overflow(norm)
                s.update()
            except FloatingPointError:
                event = RAISE
            except OverflowError:
                event = SKIP
            assert (event == STEP) == (not inf)
            return (s.loss_scale, s._iter, event, s._overflows_since_rescale,
                    s._last_rescale_iter)
        case(name, dict(init=init, factor=factor, window=window, tolerance=tolerance,
                        threshold=threshold, floor=floor, **more), bits, step)

    for tol in (0.0, 0.3, 0.05):
        tag = "t%g" % tol
        for name, w, bits, more in all_patterns((4, 5, 1), 600, tol == 0.05):
            one(f"{tag}_{name}", bits, window=w, tolerance=tol, floor=0.0, init=2.0**30, **more)
        one(f"{tag}_floor", [1] * 40, tolerance=tol)
        one(f"{tag}_floor_spaced", run_length("1*14 0*5 1*3 0 1*5 0*2 1*30"), tolerance=tol)
        one(f"{tag}_threshold", run_length("0*3 1*20 0*9 1*12"), tolerance=tol, threshold=4.0)
        one(f"{tag}_threshold_at_floor", [1] * 20, init=16.0, tolerance=tol, threshold=0.5,
            floor=0.5)
        one(f"{tag}_threshold_below_floor", [1] * 20, init=16.0, tolerance=tol, threshold=0.1,
            floor=0.5)
        for name, w, bits, more in all_patterns((4,), 640, True):
            one(f"{tag}_factor_{name}", bits, factor=1.5, window=w, tolerance=tol,
                floor=0.0, **more)
    one("init_below_floor", [0, 0, 1], init=2.0**-15)
    one("init_below_floor_tolerated", [0, 0, 0, 0, 1], init=2.0**-15, tolerance=0.9)
    one("init_at_floor", [0, 0, 1], init=1e-4)
    one("to_inf", run_length("0*16 1*3"), init=2.0**1021)


def record_accelerate():
    import dataclasses

    import accelerate
    from accelerate.utils import dataclasses as d
    print("# SPDX-License-Identifier: Apache-2.0")
    print(f"# accelerate {accelerate.__version__}: defaults of its recipe classes, recorded by")
    print("# record_others.py.  GradScalerKwargs go to torch's GradScaler unchanged.")
    for name in ("GradScalerKwargs", "TERecipeKwargs", "MSAMPRecipeKwargs", "AORecipeKwargs"):
        cls = getattr(d, name, None)
        for f in dataclasses.fields(cls) if cls else ():
            value = f.default if f.default is not f.default_factory else None
            if f.default is dataclasses.MISSING:
                value = "(factory)"
            print(f"# default {name}.{f.name}={value!r}")
    d.is_transformer_engine_available = lambda *a, **k: True    # its absence is checked first
    print("# TERecipeKwargs() after its __post_init__, no environment variables set:")
    for name, value in vars(d.TERecipeKwargs()).items():
        print(f"# filled TERecipeKwargs.{name}={value!r}")


if __name__ == "__main__":
    {"deepspeed": record_deepspeed, "megatron": record_megatron, "keras": record_keras,
     "tf-keras": record_tf_keras, "fairseq": record_fairseq,
     "accelerate": record_accelerate}[sys.argv[1]](*sys.argv[2:])
