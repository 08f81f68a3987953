"""Training loops that print what guides print, with torch.amp.GradScaler: python record.py FORM

Gradients pass through fp16, where they overflow if the scale is too large.
FORM: amp-stats, changed, skipping, tqdm, resumed
"""
import sys
import torch


def build(seed, size):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    x = torch.randn(256, 16)
    return model, x, size * torch.sin(x.sum(1, keepdim=True))


def step(model, opt, scaler, x, y):
    """One step; whether it was skipped."""
    opt.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    for p in model.parameters():
        p.grad = p.grad.half().float()
    before = scaler.get_scale()
    scaler.step(opt)
    scaler.update()
    return loss.item(), scaler.get_scale() < before


def main(form):
    model, x, y = build(1, 8 if form in ('changed', 'skipping') else 100)
    opt = torch.optim.SGD(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler('cpu', growth_interval=40)
    if form == 'amp-stats':
        for i in range(200):
            loss, _ = step(model, opt, scaler, x, y)
            if i % 10 == 0:
                print(f'[Epoch 1] step {i}/200 loss={loss:.4f}')
                print(f'[AMP Stats] Scale: {scaler.get_scale()}, Growth tracker: {scaler._get_growth_tracker()}')
    elif form == 'changed':
        history = [scaler.get_scale()]
        for i in range(300):
            loss, _ = step(model, opt, scaler, x, y)
            history.append(scaler.get_scale())
            if history[-1] != history[-2]:
                print(f'Loss scale changed to: {history[-1]}')
            if i % 50 == 0:
                print(f'Iteration {i}, Loss: {loss:.4f}')
    elif form == 'skipping':
        opt = torch.optim.SGD(model.parameters(), lr=0.35)
        for i in range(400):
            loss, skipped = step(model, opt, scaler, x, y)
            if i % 5 == 0:
                print(f'Batch {i}: loss = {loss:.4f}')
            if skipped:
                print('Gradient overflow detected, skipping update')
                print(f'Current scale: {scaler.get_scale()}')
            if scaler.get_scale() < 1e-3:
                break
    elif form == 'tqdm':
        from tqdm import tqdm
        bar = tqdm(range(60), desc='Epoch 0', file=sys.stdout, ncols=80, ascii=False, mininterval=0, miniters=2)
        for i in bar:
            loss, _ = step(model, opt, scaler, x, y)
            bar.set_postfix(loss=f'{loss:.3f}', scale=int(scaler.get_scale()), refresh=False)
    elif form == 'resumed':
        for i in range(24):
            if i == 12:
                print('Resuming from checkpoint at step 12')
                scaler = torch.amp.GradScaler('cpu', growth_interval=40)
            loss, skipped = step(model, opt, scaler, x, y)
            print(f'step {i + 1} loss {loss:.4f} scale {scaler.get_scale()} skipped {int(skipped)}')


main(sys.argv[1])
