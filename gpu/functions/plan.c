/* plan.c -- the instructions, and the binades of which all results are kept; see functions.h. */
#include "functions.h"

static const gpu_operation operations[GPU_OPERATIONS] = {
    {"ex2.approx.ftz.f32", GPU_UNARY, 0},   {"rcp.approx.ftz.f32", GPU_UNARY, 0},
    {"rsqrt.approx.ftz.f32", GPU_UNARY, 0}, {"lg2.approx.ftz.f32", GPU_UNARY, 0},
    {"tanh.approx.f32", GPU_UNARY, 0},      {"sin.approx.ftz.f32", GPU_UNARY, 0},
    {"cos.approx.ftz.f32", GPU_UNARY, 0},   {"sqrt.approx.ftz.f32", GPU_UNARY, 0},
    {"ex2.approx.f32", GPU_UNARY, 0},       {"rcp.approx.f32", GPU_UNARY, 0},
    {"rsqrt.approx.f32", GPU_UNARY, 0},     {"lg2.approx.f32", GPU_UNARY, 0},
    {"sin.approx.f32", GPU_UNARY, 0},       {"cos.approx.f32", GPU_UNARY, 0},
    {"sqrt.approx.f32", GPU_UNARY, 0},      {"ex2.approx.f16", GPU_HALF, 0},
    {"tanh.approx.f16", GPU_HALF, 0},       {"ex2.approx.ftz.bf16", GPU_HALF, 0},
    {"tanh.approx.bf16", GPU_HALF, 0},      {"ex2.approx.f16x2", GPU_PACKED, 15},
    {"tanh.approx.f16x2", GPU_PACKED, 16},  {"ex2.approx.ftz.bf16x2", GPU_PACKED, 17},
    {"tanh.approx.bf16x2", GPU_PACKED, 18}, {"div.approx.ftz.f32", GPU_BINARY, 0},
    {"div.approx.f32", GPU_BINARY, 0},      {"div.full.ftz.f32", GPU_BINARY, 0},
    {"div.full.f32", GPU_BINARY, 0},
};

const gpu_operation *gpu_operation_at(int operation)
{
    return operation >= 0 && operation < GPU_OPERATIONS ? &operations[operation] : 0;
}

/* 4093 and 13 are primes: the sample has every pattern of low bits. */
void gpu_extent_of(gpu_extent *e, int tiny)
{
    const gpu_extent full = {0, 4093, 1 << 30}, small = {16, 13, 1 << 12};
    *e = tiny ? small : full;
}

/* ---- what is kept ---- */

/* Binary32: 0x3f800000 begins [1, 2). First what the whole function follows from if the unit looks at a significand (rcp), at
 * one and the parity of the exponent (rsqrt, sqrt), at 23 bits of a fraction (ex2, and sin by symmetry: [4, 8) holds turns of
 * [0.64, 1.27), all multiples of 2^-23 from 1 on), at a significand whose logarithm is added to the exponent (lg2). Then
 * what shows how operands below 1 are aligned, and other binades. */
static const gpu_table tables[] = {
    {15, 0},
    {16, 0},
    {17, 0},
    {18, 0},
    {GPU_RCP, 0x3f800000},
    {GPU_EX2, 0x3f800000},
    {GPU_RSQRT, 0x3f800000},
    {GPU_RSQRT, 0x40000000},
    {GPU_LG2, 0x3f800000},
    {GPU_LG2, 0x3f000000},
    {GPU_SIN, 0x40800000},
    {GPU_SQRT, 0x3f800000},
    {GPU_SQRT, 0x40000000},
    {GPU_EX2, 0x3f000000},
    {GPU_TANH, 0x3f800000},
    {GPU_TANH, 0x3f000000},
    {GPU_TANH, 0x3e800000},
    {GPU_TANH, 0x40000000},
    {GPU_COS, 0x40800000},
    {GPU_EX2, 0xbf800000},
    {GPU_SIN, 0x40000000},
    {GPU_SIN, 0x3f800000},
    {GPU_LG2, 0x40000000},
    {GPU_TANH, 0x3e000000},
    {GPU_TANH, 0x40800000},
    {GPU_TANH, 0x3d800000},
    {GPU_EX2, 0x3e800000},
    {GPU_SIN, 0x3f000000},
    {GPU_COS, 0x40000000},
    {GPU_COS, 0x3f800000},
    {GPU_TANH, 0x3d000000},
    {GPU_LG2, 0x3e800000},
    {GPU_EX2, 0x3e000000},
    {GPU_SIN, 0x3e800000},
    {GPU_SIN, 0x3c000000},
};

size_t gpu_tables(void)
{
    return sizeof tables / sizeof *tables;
}

gpu_table gpu_table_at(size_t i)
{
    return tables[i];
}

uint32_t gpu_table_count(const gpu_table *t, const gpu_extent *e)
{
    return operations[t->operation].shape == GPU_HALF ? 1 << 16 : gpu_extent_count(e);
}

uint32_t gpu_table_operand(const gpu_table *t, const gpu_extent *e, uint32_t i)
{
    return t->first + (operations[t->operation].shape == GPU_HALF ? i : i << e->shift);
}
