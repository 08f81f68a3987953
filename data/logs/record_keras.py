"""A run of Keras 3 on PyTorch under mixed_float16 that prints the loss scale per batch: python record_keras.py"""
import os

os.environ['KERAS_BACKEND'] = 'torch'
os.environ['CUDA_VISIBLE_DEVICES'] = ''
import keras
import numpy as np


class Scale(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        scale = float(self.model.optimizer.dynamic_scale)
        print(f"batch {batch}: loss: {logs['loss']:.4f} loss_scale: {scale}")


keras.utils.set_random_seed(1)
keras.mixed_precision.set_global_policy('mixed_float16')
x = np.random.randn(640, 16).astype('float32')
y = 60 * np.sin(x.sum(1, keepdims=True))
model = keras.Sequential([keras.layers.Dense(32, activation='tanh'), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e-3)), loss='mse')
model.fit(x, y, batch_size=32, epochs=1, verbose=0, callbacks=[Scale()])
