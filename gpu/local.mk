# gpu/ -- CUDA kernels and the cross-check with the hardware; nothing is built yet.
EXTRA_DIST += gpu/README.md
