# data/ -- policies, traces, recorders, independent counts, recorded casts. Policies are installed.
dist_policies_DATA += \
  data/policies/apex-O0.yaml \
  data/policies/apex-O1.yaml \
  data/policies/apex-O2.yaml \
  data/policies/apex-O3.yaml \
  data/policies/bf16-kahan.yaml \
  data/policies/bf16-pure.yaml \
  data/policies/bf16-stochastic.yaml \
  data/policies/coat-fp8-states.yaml \
  data/policies/deepseek-v3-fp8.yaml \
  data/policies/deepseek-v3-fp8-f32.yaml \
  data/policies/deepseek-v3-fp8-ue8m0.yaml \
  data/policies/deepspeed-fp16.yaml \
  data/policies/fp32.yaml \
  data/policies/fp16-static.yaml \
  data/policies/fp8-lm.yaml \
  data/policies/fp16-unscaled.yaml \
  data/policies/fp32-bf16-fp16.yaml \
  data/policies/keras-mixed-float16.yaml \
  data/policies/lion.yaml data/policies/megatron-bf16.yaml \
  data/policies/megatron-fp16.yaml \
  data/policies/mxfp8-ceil.yaml data/policies/mxfp8-even.yaml data/policies/mxfp8-floor.yaml \
  data/policies/mxfp8-rceil.yaml data/policies/muon-bf16.yaml \
  data/policies/nemo-bf16-mixed.yaml \
  data/policies/nemo-fp16-mixed.yaml \
  data/policies/nemo-fp16-fp8-blockwise.yaml \
  data/policies/nemo-fp16-fp8-current.yaml \
  data/policies/nemo-fp16-fp8-delayed.yaml \
  data/policies/nemo-fp16-mxfp8.yaml \
  data/policies/nemo-fp8-e4m3-max.yaml \
  data/policies/nemo-fp8-e4m3-recent.yaml \
  data/policies/nemo-fp8-hybrid-max.yaml \
  data/policies/nemo-fp8-hybrid-recent.yaml \
  data/policies/nemo-rl-bf16.yaml \
  data/policies/nemo-rl-fp16.yaml \
  data/policies/nemo-rl-fp32.yaml \
  data/policies/nvfp4-pretraining.yaml \
  data/policies/pytorch-amp-bf16.yaml \
  data/policies/pytorch-amp-fp16.yaml \
  data/policies/te-fp8-current.yaml data/policies/te-fp8-current-dpa.yaml \
  data/policies/te-fp8-delayed.yaml data/policies/te-fp8-delayed-dpa.yaml \
  data/policies/te-mxfp8.yaml \
  data/policies/te-nvfp4.yaml \
  data/policies/te-nvfp4-without-2d.yaml data/policies/te-nvfp4-without-rht.yaml \
  data/policies/te-nvfp4-without-sr.yaml data/policies/tf-mixed-float16.yaml \
  data/policies/torchao-nvfp4.yaml data/policies/torchao-adamw4bit.yaml \
  data/policies/torchao-adamw8bit.yaml data/policies/torchao-adamwfp8.yaml \
  data/policies/torchao-bf16-sr.yaml

# The rest is distributed, not installed. A folder stands for all that is in it.
EXTRA_DIST += data/README.md data/policies/README.md data/amp-mlp data/charlm data/counts data/digits/README.md data/text/README.md data/text/make.py \
  data/digits-cnn data/cpu data/judge data/experiments data/gpu data/logs data/names data/record data/vectors data/replay-cases
dist-hook:
	find $(distdir)/data -name __pycache__ -prune -exec rm -rf {} +
