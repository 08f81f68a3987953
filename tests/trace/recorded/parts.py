#!/usr/bin/env python3
"""Records checkpoints whose tensors lie in pieces in several files, and what the frameworks say is in them.

    python -m torch.distributed.run --nproc-per-node N parts.py zero FOLDER STAGE DTYPE GROUPS
    python -m torch.distributed.run --nproc-per-node N parts.py fsdp FOLDER
    python -m torch.distributed.run --nproc-per-node N parts.py shards FOLDER
    python parts.py index FOLDER

zero: DeepSpeed, ZeRO stage 1 to 3. The digests are of what zero_to_fp32.py makes of the files (masters) and of the
moments as deepspeed.utils.safe_get_full_optimizer_state gathers them from the running ranks (stage 2, where it fails
here: as zero_to_fp32.py merges them).
fsdp, shards: torch.distributed.checkpoint, of FSDP2 with AdamW, and of DTensors cut in other ways. The digests are of
what dcp_to_torch_save makes of the files. index: safetensors in two files and an index, as huggingface_hub writes it.

Recorded with torch 2.15.0, deepspeed 0.19.8, safetensors 0.8.0, gloo on the CPU:
    zero1 (2 processes, stage 1, bf16, 1 group), zero2 (3, 2, bf16, 2), zero3 (3, 3, fp32, 2), fsdp (2), shards (4), index
Lines go to FOLDER.tsv: FOLDER, name, dtype, shape, SHA-256 of the little-endian codes, as in digests.tsv.
"""
import hashlib
import json
import os
import sys

import torch
import torch.nn as nn

how, folder = sys.argv[1], sys.argv[2].rstrip('/')


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 7)
        self.b = nn.Linear(7, 3, bias=False)
        self.n = nn.LayerNorm(3)
        self.register_buffer('shift', torch.arange(3.0))

    def forward(self, x):
        return self.n(self.b(torch.relu(self.a(x))) + self.shift.to(x.dtype))


def loss_of(y):
    return (y.float() ** 2 * torch.arange(1.0, 4.0)).sum()


def write(rows, of):
    """rows: (name, tensor)"""
    with open(folder + '.tsv', 'w') as f:
        for name, x in rows:
            x = x.detach().contiguous()
            raw = x.flatten().view(torch.uint8).numpy().tobytes() if x.numel() else b''
            kind = hashlib.sha256(raw).hexdigest() if x.dtype.is_floating_point else '-'
            shape = ','.join(str(n) for n in x.shape)
            f.write('\t'.join([of, name, str(x.dtype).replace('torch.', ''), shape, kind]) + '\n')


def merged(path, key):
    """What zero_to_fp32.py makes of the files if the moments stand where the masters do."""
    from deepspeed.utils import zero_to_fp32 as z
    files = z.get_optim_files(path)
    _, world, masters, paddings = z.parse_optim_states(files, path)
    states = [torch.load(f, weights_only=False)['optimizer_state_dict']['base_optimizer_state']['state'] for f in files]
    vectors = [[s[g][key][:x.numel()] for g, x in enumerate(m)] for s, m in zip(states, masters)]
    models = z.parse_model_states(z.get_model_state_files(path))
    return z._get_fp32_state_dict_from_zero2_checkpoint(world, vectors, models, True, paddings)


def zero(stage, dtype, groups):
    import deepspeed
    import torch.distributed as dist
    from deepspeed.utils import safe_get_full_optimizer_state
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    sys.modules['deepspeed.comm.torch'].build_shm_op = lambda: None  # no compiled collectives
    deepspeed.init_distributed(dist_backend='gloo', verbose=False)
    torch.manual_seed(7)
    m = Model()
    ps = list(m.parameters())
    if groups == 2:
        ps = [{'params': [p for p in ps if p.dim() > 1], 'weight_decay': 0.1},
              {'params': [p for p in ps if p.dim() == 1], 'weight_decay': 0.0}]
    config = {'train_micro_batch_size_per_gpu': 2, 'zero_allow_untested_optimizer': True,
              'zero_force_ds_cpu_optimizer': False,
              'zero_optimization': {'stage': stage, 'stage3_param_persistence_threshold': 0}}
    if dtype != 'fp32':
        config[dtype] = {'enabled': True}
    engine = deepspeed.initialize(model=m, optimizer=torch.optim.AdamW(ps, lr=1e-2), config=config)[0]
    for s in range(2):
        x = torch.randn(2, 5, generator=torch.Generator().manual_seed(100 * s + dist.get_rank()))
        engine.backward(loss_of(engine(x.to({'bf16': torch.bfloat16, 'fp32': torch.float32}[dtype]))))
        engine.step()
    engine.save_checkpoint(folder, tag='global_step2')
    rows = []
    keys = (('opt.m', 'exp_avg'), ('opt.v', 'exp_avg_sq'))
    if stage != 2:
        moments = [(kind + ':' + n, safe_get_full_optimizer_state(p, key))
                   for kind, key in keys for n, p in m.named_parameters()]
    dist.barrier()
    if stage == 2 and dist.get_rank() == 0:  # where that fails
        moments = [(kind + ':' + n, x) for kind, key in keys for n, x in merged(folder + '/global_step2', key).items()
                   if n != 'shift']
    if dist.get_rank() == 0:
        state = get_fp32_state_dict_from_zero_checkpoint(folder, tag='global_step2')
        rows = [('module/shift', m.shift)]
        if stage < 3:
            rows += [('weight:' + n, p) for n, p in m.named_parameters()]
        rows += [('master:' + n, state[n]) for n, _ in m.named_parameters()] + moments
        write(rows, os.path.basename(folder) + '/global_step2')
        for name in os.listdir(folder):
            if name != 'global_step2':
                os.remove(os.path.join(folder, name))
    dist.barrier()
    dist.destroy_process_group()


def distributed():
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
    from torch.distributed.device_mesh import init_device_mesh
    dist.init_process_group('gloo')
    world, rank = dist.get_world_size(), dist.get_rank()
    mesh = init_device_mesh('cpu', (world,))
    torch.manual_seed(7)
    if how == 'fsdp':
        from torch.distributed.checkpoint.state_dict import get_state_dict
        from torch.distributed.fsdp import fully_shard
        m = nn.Linear(5, 7)
        fully_shard(m, mesh=mesh)
        o = torch.optim.AdamW(m.parameters(), lr=1e-2)
        for s in range(2):
            x = torch.randn(2, 5, generator=torch.Generator().manual_seed(100 * s + rank))
            o.zero_grad()
            m(x).pow(2).sum().backward()
            o.step()
        weights, optimizer = get_state_dict(m, o)
        state = {'model': weights, 'optimizer': {'state': optimizer['state']}, 'step': 2}
    else:
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        x = torch.arange(60.0).reshape(6, 10)
        state = {'columns': distribute_tensor(x, mesh, [Shard(1)]),
                 'rows': distribute_tensor(x.bfloat16(), mesh, [Shard(0)]),
                 'copies': distribute_tensor(x[:2], mesh, [Replicate()]),
                 'middle': distribute_tensor(torch.arange(42.0).reshape(2, 7, 3).half(), mesh, [Shard(1)]),
                 'integers': distribute_tensor(torch.arange(9), mesh, [Shard(0)]),
                 'grid': distribute_tensor(x, init_device_mesh('cpu', (2, 2)), [Shard(0), Shard(1)]),
                 'nested': {'list': [torch.ones(2), {'deep': torch.full((3,), 2.5)}]}, 'number': torch.tensor(1.5)}
    dcp.save(state, checkpoint_id=folder)
    dist.barrier()
    if rank == 0:
        dcp_to_torch_save(folder, folder + '.pt')
        rows = []

        def walk(o, path):
            if isinstance(o, torch.Tensor):
                rows.append(('/'.join(path), o))
            elif isinstance(o, (dict, list)):
                for k, v in o.items() if isinstance(o, dict) else enumerate(o):
                    walk(v, path + [str(k)])
        walk(torch.load(folder + '.pt', weights_only=False), [])
        os.remove(folder + '.pt')
        write(rows, os.path.basename(folder))
    dist.barrier()
    dist.destroy_process_group()


def index():
    from safetensors.torch import save_file
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(7)
    tensors = {'embed.weight': torch.randn(4, 3).bfloat16(), 'layers.0.weight': torch.randn(3, 3),
               'layers.1.weight': torch.randn(3, 3).half(), 'head.weight': torch.randn(4, 3), 'ids': torch.arange(4)}
    names = ['model-%05d-of-00002.safetensors' % (i + 1) for i in range(2)]
    where = {n: names[i // 3] for i, n in enumerate(tensors)}
    for name in names:
        save_file({n: x for n, x in tensors.items() if where[n] == name}, os.path.join(folder, name),
                  metadata={'format': 'pt'})
    size = sum(x.numel() * x.element_size() for x in tensors.values())
    with open(os.path.join(folder, 'model.safetensors.index.json'), 'w') as f:
        json.dump({'metadata': {'total_size': size}, 'weight_map': dict(sorted(where.items()))}, f, indent=2)
    write(tensors.items(), os.path.basename(folder) + '/model.safetensors.index.json')


if how == 'zero':
    zero(int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
elif how == 'index':
    index()
else:
    distributed()
