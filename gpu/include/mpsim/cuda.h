/* cuda.h -- libmpsim-cuda: all of its headers. */
#ifndef MPSIM_CUDA_H
#define MPSIM_CUDA_H

#include <mpsim/cudaattention.h>
#include <mpsim/cudabetween.h>
#include <mpsim/cudacall.h>
#include <mpsim/cudacast.h>
#include <mpsim/cudaenter.h>
#include <mpsim/cudagemm.h>
#include <mpsim/cudamuon.h>
#include <mpsim/cudanorm.h>
#include <mpsim/cudaoptim.h>
#include <mpsim/cudaquantize.h>
#include <mpsim/cudastats.h>
#include <mpsim/cudasum.h>

#endif
