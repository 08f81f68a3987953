# SPDX-License-Identifier: Apache-2.0
"""Record what torch.optim's SGD, Adam and AdamW give on CPU, step by step.

    python3 record_optim.py .

Writes sgd.safetensors, adam.safetensors and adamw.safetensors, then runs check_optim.py.
Every capability (default, avx2, avx512) runs in a process of its own, started with
ATEN_CPU_CAPABILITY and MKL_CBWR=AVX2 (README.md says why); all get the same parameters and
gradients.  Of the runs of one group of options which gave the same bits only the first is
stored; the others are named in its `also`.
"""
import os
import pickle
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "record"))
SEED, STEPS = 20240601, 6
N = int(os.environ.get("MPSIM_N", 67))                    # other lengths: for experiments
LONG_N, LONG_STEPS, LONG_KEEP = 19, 40, 10
ENV = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MKL_CBWR": "AVX2"}
CAPABILITIES, IMPLS = ("default", "avx2", "avx512"), ("forloop", "foreach", "fused")
SGD = {"lr": 0.1, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0}
ADAM = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0,
        "amsgrad": False}
ADAMW = dict(ADAM, weight_decay=1e-2)
ALL, LOW = ("f32", "bf16", "f16"), ("bf16", "f16")
# optimizer, defaults, [(options, dtypes)]
GROUPS = [
    ("sgd", SGD, [
        ({}, ALL),
        ({"momentum": 0.9}, ALL),
        ({"momentum": 0.9, "nesterov": True}, ALL),
        ({"momentum": 0.9, "dampening": 0.1, "lr": 0.03}, ("f32",)),
        ({"momentum": 0.9, "weight_decay": 0.01, "lr": 0.05}, ("f32", "f16")),
        ({"momentum": 0.9, "maximize": True}, ("f32",)),
        ({"momentum": 0.9, "weight_decay": 0.01, "nesterov": True, "dampening": 0.0,
          "maximize": True, "lr": 0.01}, ("f32", "bf16")),
        ({"momentum": 0.9, "weight_decay": 0.01, "lr": 0.02, "grad_scale": 1000.0}, ALL),
        ({"momentum": 0.95, "lr": 0.01, "long": True}, ("f32",)),
    ]),
    ("adam", ADAM, [
        ({}, ALL),
        ({"lr": 2e-3, "beta2": 0.99}, ("f32",)),
        ({"beta1": 0.3, "beta2": 0.95, "lr": 3e-3}, ("f32",)),
        ({"weight_decay": 0.01}, ("f32", "bf16")),
        ({"amsgrad": True}, ("f32", "bf16")),
        ({"eps": 1e-3, "beta2": 0.99, "lr": 0.25, "maximize": True}, LOW),
        ({"eps": 1e-6, "weight_decay": 0.01, "lr": 2e-3, "grad_scale": 1000.0}, ALL),
        ({"long": True}, ("f32",)),
    ]),
    ("adamw", ADAMW, [
        ({}, ("f32", "bf16")),
        ({"weight_decay": 0.1, "lr": 3e-4}, ALL),
        ({"amsgrad": True, "lr": 2e-3}, ("f32", "bf16")),
        ({"eps": 1e-6, "amsgrad": True}, ("f16",)),
        ({"long": True}, ("f32",)),
    ]),
]


def inputs(torch, n, steps, dtype, seed):
    """Initial parameter and the gradients: normal times powers of two, zeros, tiny values."""
    gen = torch.Generator().manual_seed(seed)

    def normal():
        return torch.randn(n, generator=gen, dtype=torch.float64)

    def uniform():
        return torch.rand(n, generator=gen, dtype=torch.float64)

    p = normal() * 0.1
    at = torch.randperm(n, generator=gen)
    p[at[0]], p[at[1]], p[at[2]], p[at[3]], p[at[4]] = 37.5, -1000.3, 1.3e-7, -0.0, 2.7e-5
    grads = []
    for _ in range(steps):
        g = normal() * torch.exp2(uniform() * 16 - 12)
        at = torch.randperm(n, generator=gen)
        g[at[:2]], g[at[2]] = 0.0, -0.0
        g[at[3:6]] = normal()[:3] * 2.0 ** -18            # subnormal in binary16
        g[at[6]] = 2.0 ** -24
        grads.append(g.to(dtype))
    return p.to(dtype), grads


def run(torch, optimizer, options, dtype, impl):
    """One run; returns {tensor name: tensor}."""
    opts = dict(options)
    long, scale = opts.pop("long", False), opts.pop("grad_scale", None)
    n, steps = (LONG_N, LONG_STEPS) if long else (N, STEPS)
    start, grads = inputs(torch, n, steps, dtype, SEED + long)
    if "beta1" in opts:
        opts["betas"] = (opts.pop("beta1"), opts.pop("beta2"))
    cls = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer]
    p = torch.nn.Parameter(start.clone())
    opt = cls([p], foreach=impl == "foreach", fused=impl == "fused", **opts)
    out = {"p.0": start.clone()}
    for t, g in enumerate(grads, 1):
        if scale:                                         # as an AMP run: the gradient is scaled
            g = (g.double() * scale / 16).to(dtype)       # /16: within the range of binary16
            opt.grad_scale, opt.found_inf = torch.tensor(scale), torch.tensor(0.0)
            if t == 4:                                    # a step which must be skipped
                g[5] = float("inf")
                opt.found_inf.fill_(1.0)
        p.grad = g.clone()
        out[f"g.{t}"] = g.clone()
        opt.step()
        if long and t % LONG_KEEP:
            continue
        out[f"p.{t}"] = p.detach().clone()
        st = opt.state[p]
        for key, name in (("momentum_buffer", "m"), ("exp_avg", "m"), ("exp_avg_sq", "v"),
                          ("max_exp_avg_sq", "vmax")):
            if torch.is_tensor(st.get(key)):
                out[f"{name}.{t}"] = st[key].clone()
    return out


def child(path):
    """All runs of this process's capability, pickled."""
    import torch
    torch.set_num_threads(1)
    dtypes = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
    results = {}
    for optimizer, defaults, cases in GROUPS:
        for i, (options, names) in enumerate(cases):
            for name in names:
                for impl in IMPLS:
                    if "grad_scale" in options and impl != "fused":
                        continue
                    opts = dict(defaults, maximize=False)
                    opts.update(options)
                    results[optimizer, i, name, impl] = run(torch, optimizer, opts, dtypes[name],
                                                            impl)
    with open(path, "wb") as f:
        pickle.dump((torch.backends.cpu.get_cpu_capability(), results), f)


def same(torch, a, b):
    ints = {4: torch.int32, 2: torch.int16}
    return a.keys() == b.keys() and all(
        torch.equal(a[k].view(ints[a[k].element_size()]), b[k].view(ints[b[k].element_size()]))
        for k in a)


def value(x):
    return str(int(x)) if isinstance(x, bool) else repr(x)


def main(outdir):
    import torch
    from recorder import save_safetensors
    results = {}
    for cap in CAPABILITIES:
        path = os.path.join(outdir, f"tmp-{cap}.pickle")
        subprocess.run([sys.executable, os.path.abspath(__file__), "--child", path], check=True,
                       env=dict(os.environ, ATEN_CPU_CAPABILITY=cap, **ENV))
        with open(path, "rb") as f:
            got, runs = pickle.load(f)
        os.remove(path)
        if got.lower() != cap:
            print(f"{cap}: not on this processor ({got})")
            continue
        results.update({(cap,) + k: v for k, v in runs.items()})
    for optimizer, defaults, cases in GROUPS:
        tensors = {}
        meta = {"mpsim.framework": "torch " + torch.__version__, "mpsim.seed": str(SEED)}
        for i, (options, names) in enumerate(cases):
            for name in names:
                stored = []
                for impl in IMPLS:
                    for cap in CAPABILITIES:
                        r = results.get((cap, optimizer, i, name, impl))
                        if r is None:
                            continue
                        for other in stored:
                            if same(torch, r, other[2]):
                                other[3].append(f"{impl}/{cap}")
                                break
                        else:
                            stored.append((impl, cap, r, []))
                for impl, cap, r, also in stored:
                    case = f"{optimizer}-{name}-{impl}-{cap}-{i + 1}"
                    opts = dict(defaults, maximize=False)
                    opts.update(options)
                    long = opts.pop("long", False)
                    fields = {"optimizer": optimizer, "impl": impl, "capability": cap,
                              "dtype": name, "n": LONG_N if long else N,
                              "steps": LONG_STEPS if long else STEPS}
                    fields.update((k, value(v)) for k, v in opts.items())
                    if "grad_scale" in opts:
                        fields["found_inf_at"] = 4
                    if long:
                        fields["kept"] = LONG_KEEP
                    if also:
                        fields["also"] = ",".join(also)
                    meta[case] = " ".join(f"{k}={v}" for k, v in fields.items())
                    for k, v in r.items():
                        tensors[f"{case}/{k}"] = v
        path = os.path.join(outdir, optimizer + ".safetensors")
        save_safetensors(path, tensors, meta)
        print(path, os.path.getsize(path), "bytes,", len(meta) - 2, "cases")


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(sys.argv[2])
    else:
        main(sys.argv[1])
        import check_optim
        sys.exit(check_optim.main(sys.argv[1]))
