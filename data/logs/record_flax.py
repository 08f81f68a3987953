"""A run with flax's DynamicScale, whose scale is bounded by binary32 alone: python record_flax.py"""
import jax
import jax.numpy as jnp
from flax.training import dynamic_scale

jax.config.update('jax_platforms', 'cpu')
x = jax.random.normal(jax.random.key(1), (64, 8))
y = jnp.sin(x.sum(1))
w = jnp.zeros(8)
scaler = dynamic_scale.DynamicScale(growth_factor=10.0, growth_interval=1)
for step in range(96):
    scaler, finite, loss, grad = scaler.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    w = jnp.where(finite, w - 0.05 * grad, w)
    if step % 6 == 5:
        print(f'step {step} loss {loss:.4f} is_finite {finite} loss_scale {scaler.scale}')
