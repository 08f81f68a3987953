/* t-tensorcore.c -- models of tensor cores against recorded outputs of the hardware, bit for bit,
 * and models with one rule changed, which must fail as often as they are known to. */
#include "support/dotcases.h"
#include "support/support.h"
#include "support/vectors.h"

#include <mpsim/dot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the addend of a recorded product is. */
typedef enum use { KEPT /* as recorded */, ROUNDED /* to fp16 */, ZERO } use;

/* A recorded array and the model that computes it. */
typedef struct set {
    const char *gpu, *type, *result, *model;
    use c;
    size_t k, instruction; /* products recorded, and of the instruction: the others were 0 */
} set;

static const set sets[] = {
    {"v100", "fp16", "d_fp32", "volta-fp16-fp32", KEPT, 4, 16},
    {"v100", "fp16", "d_fp16", "volta-fp16-fp16", ROUNDED, 4, 16},
    {"a100", "fp16", "d_fp32", "ampere-fp16-fp32", KEPT, 8, 16},
    {"a100", "fp16", "d_fp16", "ampere-fp16-fp16", ROUNDED, 8, 16},
    {"a100", "bf16", "d_fp32", "ampere-bf16-fp32", KEPT, 8, 16},
    {"a100", "tf32", "d_fp32", "ampere-tf32-fp32", KEPT, 4, 8},
    {"l40s", "fp16", "d_fp32", "ada-fp16-fp32", KEPT, 8, 16},
    {"l40s", "fp16", "d_fp16", "ada-fp16-fp16", ROUNDED, 8, 16},
    {"l40s", "bf16", "d_fp32", "ada-bf16-fp32", KEPT, 8, 16},
    {"l40s", "tf32", "d_fp32", "ada-tf32-fp32", KEPT, 4, 8},
    {"l40s", "e4m3", "d_fp32", "ada-fp8-fp32", KEPT, 32, 32},
    {"l40s", "e5m2", "d_fp32", "ada-fp8-fp32", KEPT, 32, 32},
    {"h100", "fp16", "d_fp32", "hopper-fp16-fp32", KEPT, 16, 16},
    {"h100", "fp16", "d_fp16", "hopper-fp16-fp16", ROUNDED, 16, 16},
    {"h100", "bf16", "d_fp32", "hopper-bf16-fp32", KEPT, 16, 16},
    {"h100", "tf32", "d_fp32", "hopper-tf32-fp32", KEPT, 4, 8},
    {"h100", "e4m3", "d_fp32", "hopper-wgmma-fp8-fp32", ZERO, 32, 32},
    {"h100", "e5m2", "d_fp32", "hopper-wgmma-fp8-fp32", ZERO, 32, 32},
    {"h100", "e4m3", "d_fp16", "hopper-mma-fp8-fp16", ROUNDED, 32, 32},
    {"h100", "e5m2", "d_fp16", "hopper-mma-fp8-fp16", ROUNDED, 32, 32},
    {"b200", "fp16", "d_fp32", "blackwell-fp16-fp32", KEPT, 16, 16},
    {"b200", "fp16", "d_fp16", "blackwell-fp16-fp16", ROUNDED, 16, 16},
    {"b200", "bf16", "d_fp32", "blackwell-bf16-fp32", KEPT, 16, 16},
    {"b200", "tf32", "d_fp32", "blackwell-tf32-fp32", KEPT, 4, 8},
    {"b200", "e4m3", "d_fp32", "blackwell-mma-fp8-fp32", KEPT, 32, 32},
    {"b200", "e5m2", "d_fp32", "blackwell-mma-fp8-fp32", KEPT, 32, 32},
    {"b200", "e4m3", "d_fp16", "blackwell-mma-fp8-fp16", ROUNDED, 32, 32},
    {"b200", "e5m2", "d_fp16", "blackwell-mma-fp8-fp16", ROUNDED, 32, 32},
};
enum { SETS = sizeof sets / sizeof sets[0], RECORDED = 5000, KMAX = 64 };

/* One rule changed: how many of the 5000 results differ then. The counts are facts about the
 * recorded results, found without this library (tests/dot/controls.py). */
typedef struct control {
    const char *gpu, *type, *result;
    const char *change; /* of the set's model; after '=': another model; after '~': of the model,
                           with the products sorted, those with k mod 4 in {0, 1} first */
    use c;
    int wrong;
} control;

static const control controls[] = {
    /* F - 1, F + 1, L / 2, rounding, products, alignments, c */
    {"v100", "fp16", "d_fp32", "F=22", KEPT, 2235},
    {"v100", "fp16", "d_fp32", "F=24", KEPT, 1200},
    {"v100", "fp16", "d_fp32", "F=25", KEPT, 1480},
    {"v100", "fp16", "d_fp32", "F=26", KEPT, 1559},
    {"v100", "fp16", "d_fp32", "L=2", KEPT, 828},
    {"v100", "fp16", "d_fp32", "round=nearest-even", KEPT, 649},
    {"v100", "fp16", "d_fp32", "normalised=1", KEPT, 793},
    {"v100", "fp16", "d_fp32", "align=floor", KEPT, 857},
    {"v100", "fp16", "d_fp32", "align=nearest", KEPT, 1386},
    {"v100", "fp16", "d_fp32", "", ZERO, 5000},
    {"v100", "fp16", "d_fp32", "", ROUNDED, 4993},

    {"v100", "fp16", "d_fp16", "F=22", ROUNDED, 0},
    {"v100", "fp16", "d_fp16", "F=24", ROUNDED, 0},
    {"v100", "fp16", "d_fp16", "L=2", ROUNDED, 1310},
    {"v100", "fp16", "d_fp16", "normalised=1", ROUNDED, 0},
    {"v100", "fp16", "d_fp16", "align=floor", ROUNDED, 0},
    {"v100", "fp16", "d_fp16", "align=nearest", ROUNDED, 0},
    {"v100", "fp16", "d_fp16", "", ZERO, 4997},
    {"v100", "fp16", "d_fp16", "result=binary32", KEPT, 918},

    {"a100", "fp16", "d_fp32", "F=23", KEPT, 1685},
    {"a100", "fp16", "d_fp32", "F=25", KEPT, 766},
    {"a100", "fp16", "d_fp32", "L=4", KEPT, 1261},
    {"a100", "fp16", "d_fp32", "round=nearest-even", KEPT, 1257},
    {"a100", "fp16", "d_fp32", "normalised=1", KEPT, 626},
    {"a100", "fp16", "d_fp32", "align=floor", KEPT, 847},
    {"a100", "fp16", "d_fp32", "align=nearest", KEPT, 975},
    {"a100", "fp16", "d_fp32", "", ZERO, 5000},
    {"a100", "fp16", "d_fp32", "", ROUNDED, 4989},

    {"a100", "fp16", "d_fp16", "F=23", ROUNDED, 1},
    {"a100", "fp16", "d_fp16", "F=25", ROUNDED, 0},
    {"a100", "fp16", "d_fp16", "L=4", ROUNDED, 1296},
    {"a100", "fp16", "d_fp16", "normalised=1", ROUNDED, 0},
    {"a100", "fp16", "d_fp16", "align=floor", ROUNDED, 1},
    {"a100", "fp16", "d_fp16", "align=nearest", ROUNDED, 0},
    {"a100", "fp16", "d_fp16", "", ZERO, 4997},
    {"a100", "fp16", "d_fp16", "result=binary32", KEPT, 647},

    {"a100", "bf16", "d_fp32", "F=22", KEPT, 2256},
    {"a100", "bf16", "d_fp32", "F=23", KEPT, 1003},
    {"a100", "bf16", "d_fp32", "F=25", KEPT, 426},
    {"a100", "bf16", "d_fp32", "F=26", KEPT, 527},
    {"a100", "bf16", "d_fp32", "L=4", KEPT, 741},
    {"a100", "bf16", "d_fp32", "round=nearest-even", KEPT, 1247},
    {"a100", "bf16", "d_fp32", "normalised=1", KEPT, 337},
    {"a100", "bf16", "d_fp32", "align=floor", KEPT, 34},
    {"a100", "bf16", "d_fp32", "align=nearest", KEPT, 432},
    {"a100", "bf16", "d_fp32", "", ZERO, 5000},
    {"a100", "bf16", "d_fp32", "", ROUNDED, 4989},

    {"a100", "tf32", "d_fp32", "F=23", KEPT, 1173},
    {"a100", "tf32", "d_fp32", "F=25", KEPT, 465},
    {"a100", "tf32", "d_fp32", "L=2", KEPT, 888},
    {"a100", "tf32", "d_fp32", "round=nearest-even", KEPT, 1151},
    {"a100", "tf32", "d_fp32", "normalised=1", KEPT, 396},
    {"a100", "tf32", "d_fp32", "align=floor", KEPT, 362},
    {"a100", "tf32", "d_fp32", "align=nearest", KEPT, 549},
    {"a100", "tf32", "d_fp32", "", ZERO, 5000},
    {"a100", "tf32", "d_fp32", "", ROUNDED, 4988},

    {"l40s", "fp16", "d_fp32", "F=23", KEPT, 1654},
    {"l40s", "fp16", "d_fp32", "F=25", KEPT, 828},
    {"l40s", "fp16", "d_fp32", "L=4", KEPT, 1196},
    {"l40s", "fp16", "d_fp32", "round=nearest-even", KEPT, 1290},
    {"l40s", "fp16", "d_fp32", "normalised=1", KEPT, 623},
    {"l40s", "fp16", "d_fp32", "align=floor", KEPT, 833},
    {"l40s", "fp16", "d_fp32", "align=nearest", KEPT, 1013},
    {"l40s", "fp16", "d_fp32", "", ZERO, 5000},
    {"l40s", "fp16", "d_fp32", "", ROUNDED, 4986},

    {"l40s", "fp16", "d_fp16", "F=23", ROUNDED, 0},
    {"l40s", "fp16", "d_fp16", "F=25", ROUNDED, 0},
    {"l40s", "fp16", "d_fp16", "L=4", ROUNDED, 1325},
    {"l40s", "fp16", "d_fp16", "normalised=1", ROUNDED, 0},
    {"l40s", "fp16", "d_fp16", "align=floor", ROUNDED, 1},
    {"l40s", "fp16", "d_fp16", "align=nearest", ROUNDED, 0},
    {"l40s", "fp16", "d_fp16", "", ZERO, 4996},
    {"l40s", "fp16", "d_fp16", "result=binary32", KEPT, 636},

    {"l40s", "bf16", "d_fp32", "F=23", KEPT, 950},
    {"l40s", "bf16", "d_fp32", "F=25", KEPT, 415},
    {"l40s", "bf16", "d_fp32", "L=4", KEPT, 692},
    {"l40s", "bf16", "d_fp32", "round=nearest-even", KEPT, 1236},
    {"l40s", "bf16", "d_fp32", "normalised=1", KEPT, 338},
    {"l40s", "bf16", "d_fp32", "align=floor", KEPT, 36},
    {"l40s", "bf16", "d_fp32", "align=nearest", KEPT, 466},
    {"l40s", "bf16", "d_fp32", "", ZERO, 5000},
    {"l40s", "bf16", "d_fp32", "", ROUNDED, 4988},

    {"l40s", "tf32", "d_fp32", "F=23", KEPT, 1198},
    {"l40s", "tf32", "d_fp32", "F=25", KEPT, 467},
    {"l40s", "tf32", "d_fp32", "L=2", KEPT, 850},
    {"l40s", "tf32", "d_fp32", "round=nearest-even", KEPT, 1138},
    {"l40s", "tf32", "d_fp32", "normalised=1", KEPT, 414},
    {"l40s", "tf32", "d_fp32", "align=floor", KEPT, 341},
    {"l40s", "tf32", "d_fp32", "align=nearest", KEPT, 557},
    {"l40s", "tf32", "d_fp32", "", ZERO, 5000},
    {"l40s", "tf32", "d_fp32", "", ROUNDED, 4992},

    {"l40s", "e4m3", "d_fp32", "F=12", KEPT, 2706},
    {"l40s", "e4m3", "d_fp32", "F=14", KEPT, 1538},
    {"l40s", "e4m3", "d_fp32", "L=8", KEPT, 999},
    {"l40s", "e4m3", "d_fp32", "L=32", KEPT, 1060},
    {"l40s", "e4m3", "d_fp32", "acc=binary32", KEPT, 1055},
    {"l40s", "e4m3", "d_fp32", "normalised=1", KEPT, 547},
    {"l40s", "e4m3", "d_fp32", "align=floor", KEPT, 1317},
    {"l40s", "e4m3", "d_fp32", "align=nearest", KEPT, 1946},
    {"l40s", "e4m3", "d_fp32", "", ZERO, 5000},
    {"l40s", "e4m3", "d_fp32", "", ROUNDED, 1500},

    {"l40s", "e5m2", "d_fp32", "F=12", KEPT, 2245},
    {"l40s", "e5m2", "d_fp32", "F=14", KEPT, 1156},
    {"l40s", "e5m2", "d_fp32", "L=8", KEPT, 702},
    {"l40s", "e5m2", "d_fp32", "L=32", KEPT, 717},
    {"l40s", "e5m2", "d_fp32", "acc=binary32", KEPT, 962},
    {"l40s", "e5m2", "d_fp32", "normalised=1", KEPT, 320},
    {"l40s", "e5m2", "d_fp32", "align=floor", KEPT, 673},
    {"l40s", "e5m2", "d_fp32", "align=nearest", KEPT, 1646},
    {"l40s", "e5m2", "d_fp32", "", ZERO, 4998},
    {"l40s", "e5m2", "d_fp32", "", ROUNDED, 1570},

    {"h100", "fp16", "d_fp32", "F=24", KEPT, 1175},
    {"h100", "fp16", "d_fp32", "F=26", KEPT, 536},
    {"h100", "fp16", "d_fp32", "L=8", KEPT, 1533},
    {"h100", "fp16", "d_fp32", "round=nearest-even", KEPT, 1782},
    {"h100", "fp16", "d_fp32", "normalised=1", KEPT, 412},
    {"h100", "fp16", "d_fp32", "align=floor", KEPT, 780},
    {"h100", "fp16", "d_fp32", "align=nearest", KEPT, 710},
    {"h100", "fp16", "d_fp32", "", ZERO, 5000},
    {"h100", "fp16", "d_fp32", "", ROUNDED, 4978},

    {"h100", "fp16", "d_fp16", "F=24", ROUNDED, 0},
    {"h100", "fp16", "d_fp16", "F=26", ROUNDED, 2},
    {"h100", "fp16", "d_fp16", "L=8", ROUNDED, 1311},
    {"h100", "fp16", "d_fp16", "normalised=1", ROUNDED, 0},
    {"h100", "fp16", "d_fp16", "align=floor", ROUNDED, 3},
    {"h100", "fp16", "d_fp16", "align=nearest", ROUNDED, 4},
    {"h100", "fp16", "d_fp16", "", ZERO, 4993},
    {"h100", "fp16", "d_fp16", "result=binary32", KEPT, 519},

    {"h100", "bf16", "d_fp32", "F=24", KEPT, 491},
    {"h100", "bf16", "d_fp32", "F=26", KEPT, 158},
    {"h100", "bf16", "d_fp32", "L=8", KEPT, 944},
    {"h100", "bf16", "d_fp32", "round=nearest-even", KEPT, 1683},
    {"h100", "bf16", "d_fp32", "normalised=1", KEPT, 146},
    {"h100", "bf16", "d_fp32", "align=floor", KEPT, 37},
    {"h100", "bf16", "d_fp32", "align=nearest", KEPT, 184},
    {"h100", "bf16", "d_fp32", "", ZERO, 5000},
    {"h100", "bf16", "d_fp32", "", ROUNDED, 4984},

    {"h100", "tf32", "d_fp32", "F=24", KEPT, 498},
    {"h100", "tf32", "d_fp32", "F=26", KEPT, 168},
    {"h100", "tf32", "d_fp32", "L=4", KEPT, 0}, /* 4 of 8 products were recorded */
    {"h100", "tf32", "d_fp32", "L=2", KEPT, 918},
    {"h100", "tf32", "d_fp32", "round=nearest-even", KEPT, 1400},
    {"h100", "tf32", "d_fp32", "normalised=1", KEPT, 159},
    {"h100", "tf32", "d_fp32", "align=floor", KEPT, 125},
    {"h100", "tf32", "d_fp32", "align=nearest", KEPT, 189},
    {"h100", "tf32", "d_fp32", "", ZERO, 5000},
    {"h100", "tf32", "d_fp32", "", ROUNDED, 4990},

    {"h100", "e4m3", "d_fp32", "F=12", ZERO, 1963},
    {"h100", "e4m3", "d_fp32", "F=14", ZERO, 867},
    {"h100", "e4m3", "d_fp32", "F=15", ZERO, 1045},
    {"h100", "e4m3", "d_fp32", "L=16", ZERO, 814},
    {"h100", "e4m3", "d_fp32", "acc=binary32", ZERO, 1415},
    {"h100", "e4m3", "d_fp32", "normalised=1", ZERO, 462},
    {"h100", "e4m3", "d_fp32", "align=floor", ZERO, 1030},
    {"h100", "e4m3", "d_fp32", "align=nearest", ZERO, 905},
    {"h100", "e4m3", "d_fp32", "", KEPT, 5000},

    {"h100", "e5m2", "d_fp32", "F=12", ZERO, 1026},
    {"h100", "e5m2", "d_fp32", "F=14", ZERO, 452},
    {"h100", "e5m2", "d_fp32", "L=16", ZERO, 378},
    {"h100", "e5m2", "d_fp32", "acc=binary32", ZERO, 841},
    {"h100", "e5m2", "d_fp32", "normalised=1", ZERO, 157},
    {"h100", "e5m2", "d_fp32", "align=floor", ZERO, 541},
    {"h100", "e5m2", "d_fp32", "align=nearest", ZERO, 457},
    {"h100", "e5m2", "d_fp32", "", KEPT, 5000},

    /* The path of mma.sync is another one. */
    {"h100", "e4m3", "d_fp32", "=hopper-mma-fp8-fp32", ZERO, 2989},
    {"h100", "e5m2", "d_fp32", "=hopper-mma-fp8-fp32", ZERO, 1797},
    {"h100", "e4m3", "d_fp32", "=hopper-mma-fp8-fp32", KEPT, 5000},
    {"h100", "e5m2", "d_fp32", "=hopper-mma-fp8-fp32", KEPT, 5000},
    {"h100", "e4m3", "d_fp16", "=hopper-wgmma-fp8-fp16", ROUNDED, 1887},
    {"h100", "e5m2", "d_fp16", "=hopper-wgmma-fp8-fp16", ROUNDED, 1660},

    /* The emulated path: split in k order, c not rounded, c = 0, c first, one addition of 32, two
       of 16 in k order, the other path's fraction; F inside the additions says nothing. */
    {"h100", "e4m3", "d_fp16", "order=sequential", ROUNDED, 1523},
    {"h100", "e4m3", "d_fp16", "result=binary32", KEPT, 540},
    {"h100", "e4m3", "d_fp16", "", ZERO, 4995},
    {"h100", "e4m3", "d_fp16", "~chunk=0:order=sequential", ROUNDED, 1887},
    {"h100", "e4m3", "d_fp16", "chunk=0:order=sequential:L=32", ROUNDED, 1880},
    {"h100", "e4m3", "d_fp16", "chunk=0:order=sequential", ROUNDED, 2227},
    {"h100", "e4m3", "d_fp16", "chunk=0:order=sequential:L=32:F=13", ROUNDED, 1887},
    {"h100", "e4m3", "d_fp16", "F=23", ROUNDED, 0},
    {"h100", "e4m3", "d_fp16", "F=24", ROUNDED, 0},
    {"h100", "e4m3", "d_fp16", "F=26", ROUNDED, 0},
    {"h100", "e4m3", "d_fp16", "F=27", ROUNDED, 0},
    {"h100", "e5m2", "d_fp16", "order=sequential", ROUNDED, 1179},
    {"h100", "e5m2", "d_fp16", "result=binary32", KEPT, 569},
    {"h100", "e5m2", "d_fp16", "", ZERO, 4996},
    {"h100", "e5m2", "d_fp16", "~chunk=0:order=sequential", ROUNDED, 1847},
    {"h100", "e5m2", "d_fp16", "chunk=0:order=sequential:L=32", ROUNDED, 1644},
    {"h100", "e5m2", "d_fp16", "chunk=0:order=sequential", ROUNDED, 2045},
    {"h100", "e5m2", "d_fp16", "chunk=0:order=sequential:L=32:F=13", ROUNDED, 1660},
    {"h100", "e5m2", "d_fp16", "F=23", ROUNDED, 0},
    {"h100", "e5m2", "d_fp16", "F=24", ROUNDED, 0},
    {"h100", "e5m2", "d_fp16", "F=26", ROUNDED, 0},
    {"h100", "e5m2", "d_fp16", "F=27", ROUNDED, 0},

    /* Every other field: formats and modes of the accumulator, of the sums of chunks, of the
       result, the chunks, the order, the bound; software models. */
    {"v100", "fp16", "d_fp32", "acc=e8m22", KEPT, 1859},
    {"v100", "fp16", "d_fp32", "chunk=8", KEPT, 1652},
    {"v100", "fp16", "d_fp16", "round=toward-zero", ROUNDED, 2470},
    {"a100", "fp16", "d_fp32", "acc=e8m22", KEPT, 2152},
    {"a100", "fp16", "d_fp32", "chunk=8", KEPT, 1587},
    {"a100", "fp16", "d_fp16", "round=toward-zero", ROUNDED, 2507},
    {"a100", "bf16", "d_fp32", "acc=e8m22", KEPT, 2184},
    {"a100", "bf16", "d_fp32", "chunk=8", KEPT, 1553},
    {"l40s", "e4m3", "d_fp32", "round=nearest-even", KEPT, 1141},
    {"l40s", "e4m3", "d_fp32", "acc=e8m12", KEPT, 2501},
    {"l40s", "e4m3", "d_fp32", "acc=e8m14", KEPT, 969},
    {"l40s", "e4m3", "d_fp32", "chunk=32", KEPT, 5000},
    {"l40s", "e5m2", "d_fp32", "round=nearest-even", KEPT, 1002},
    {"l40s", "e5m2", "d_fp32", "acc=e8m12", KEPT, 2269},
    {"l40s", "e5m2", "d_fp32", "acc=e8m14", KEPT, 881},
    {"l40s", "e5m2", "d_fp32", "chunk=32", KEPT, 4999},
    {"h100", "fp16", "d_fp32", "acc=e8m22", KEPT, 2323},
    {"h100", "fp16", "d_fp32", "chunk=16", KEPT, 1495},
    {"h100", "fp16", "d_fp32", "chunk=16:outer-round=toward-zero", KEPT, 1926},
    {"h100", "fp16", "d_fp32", "order=quads:chunk=16:L=8", KEPT, 2133},
    {"h100", "fp16", "d_fp32", "floor=0", KEPT, 88},
    {"h100", "fp16", "d_fp32", "=exact", KEPT, 2093},
    {"h100", "fp16", "d_fp32", "=exact:result-round=toward-zero", KEPT, 717},
    {"h100", "fp16", "d_fp32", "=fma:round=toward-zero", KEPT, 4075},
    {"h100", "fp16", "d_fp16", "round=toward-zero", ROUNDED, 2539},
    {"h100", "fp16", "d_fp16", "acc=binary32", ROUNDED, 1},
    {"h100", "fp16", "d_fp16", "acc=binary32:round=toward-zero", ROUNDED, 0}, /* not told apart */
    {"h100", "fp16", "d_fp16", "chunk=16", ROUNDED, 1379},
    {"h100", "e4m3", "d_fp32", "round=nearest-even", ZERO, 715},
    {"h100", "e4m3", "d_fp32", "acc=e8m12", ZERO, 1771},
    {"h100", "e4m3", "d_fp32", "acc=e8m14", ZERO, 1185},
    {"h100", "e4m3", "d_fp32", "chunk=16", ZERO, 1891},
    {"h100", "e4m3", "d_fp32", "order=quads:chunk=32", ZERO, 0}, /* one addition: any order */
    {"h100", "e5m2", "d_fp32", "round=nearest-even", ZERO, 440},
    {"h100", "e5m2", "d_fp32", "acc=e8m12", ZERO, 1292},
    {"h100", "e5m2", "d_fp32", "acc=e8m14", ZERO, 721},
    {"h100", "e5m2", "d_fp32", "chunk=16", ZERO, 956},
    {"h100", "e4m3", "d_fp16", "outer-round=toward-zero", ROUNDED, 1880},
    {"h100", "e4m3", "d_fp16", "round=toward-zero", ROUNDED, 2678},
    {"h100", "e4m3", "d_fp16", "acc=binary32", ROUNDED, 1880},
    {"h100", "e4m3", "d_fp16", "chunk=16", ROUNDED, 2399},
    {"h100", "e4m3", "d_fp16", "chunk=64", ROUNDED, 0}, /* filled up with zeros: the same */
    {"h100", "e4m3", "d_fp16", "L=8", ROUNDED, 1343},
    {"h100", "e4m3", "d_fp16", "L=32", ROUNDED, 1069},
    {"h100", "e5m2", "d_fp16", "outer-round=toward-zero", ROUNDED, 1839},
    {"h100", "e5m2", "d_fp16", "round=toward-zero", ROUNDED, 2089},
    {"h100", "e5m2", "d_fp16", "acc=binary32", ROUNDED, 1644},
    {"h100", "e5m2", "d_fp16", "chunk=16", ROUNDED, 2183},
    {"h100", "e5m2", "d_fp16", "L=8", ROUNDED, 907},
    {"h100", "e5m2", "d_fp16", "L=32", ROUNDED, 788},

    /* B200: fp8 with a result in binary32 shows the additions of chunks, but neither F, L, the accumulator nor the order. */
    {"b200", "fp16", "d_fp32", "F=24", KEPT, 1163},
    {"b200", "fp16", "d_fp32", "F=26", KEPT, 531},
    {"b200", "fp16", "d_fp32", "L=8", KEPT, 1577},
    {"b200", "fp16", "d_fp32", "round=nearest-even", KEPT, 1746},
    {"b200", "fp16", "d_fp32", "normalised=1", KEPT, 405},
    {"b200", "fp16", "d_fp32", "align=floor", KEPT, 754},
    {"b200", "fp16", "d_fp32", "align=nearest", KEPT, 682},
    {"b200", "fp16", "d_fp32", "", ZERO, 5000},
    {"b200", "fp16", "d_fp32", "", ROUNDED, 4983},
    {"b200", "fp16", "d_fp32", "acc=e8m22", KEPT, 2358},
    {"b200", "fp16", "d_fp32", "chunk=16", KEPT, 1449},
    {"b200", "fp16", "d_fp32", "floor=0", KEPT, 88},
    {"b200", "fp16", "d_fp32", "=exact", KEPT, 2105},
    {"b200", "fp16", "d_fp32", "=exact:result-round=toward-zero", KEPT, 694},
    {"b200", "fp16", "d_fp32", "=fma:round=toward-zero", KEPT, 4087},

    {"b200", "fp16", "d_fp16", "F=24", ROUNDED, 1},
    {"b200", "fp16", "d_fp16", "F=26", ROUNDED, 0},
    {"b200", "fp16", "d_fp16", "L=8", ROUNDED, 1316},
    {"b200", "fp16", "d_fp16", "round=toward-zero", ROUNDED, 2485},
    {"b200", "fp16", "d_fp16", "normalised=1", ROUNDED, 1},
    {"b200", "fp16", "d_fp16", "align=floor", ROUNDED, 0},
    {"b200", "fp16", "d_fp16", "align=nearest", ROUNDED, 0},
    {"b200", "fp16", "d_fp16", "", ZERO, 4995},
    {"b200", "fp16", "d_fp16", "result=binary32", KEPT, 505},
    {"b200", "fp16", "d_fp16", "chunk=16", ROUNDED, 1373},

    {"b200", "bf16", "d_fp32", "F=24", KEPT, 487},
    {"b200", "bf16", "d_fp32", "F=26", KEPT, 177},
    {"b200", "bf16", "d_fp32", "L=8", KEPT, 942},
    {"b200", "bf16", "d_fp32", "round=nearest-even", KEPT, 1617},
    {"b200", "bf16", "d_fp32", "normalised=1", KEPT, 142},
    {"b200", "bf16", "d_fp32", "align=floor", KEPT, 30},
    {"b200", "bf16", "d_fp32", "align=nearest", KEPT, 185},
    {"b200", "bf16", "d_fp32", "", ZERO, 5000},
    {"b200", "bf16", "d_fp32", "", ROUNDED, 4984},
    {"b200", "bf16", "d_fp32", "acc=e8m22", KEPT, 2298},
    {"b200", "bf16", "d_fp32", "chunk=16", KEPT, 1625},

    {"b200", "tf32", "d_fp32", "F=24", KEPT, 481},
    {"b200", "tf32", "d_fp32", "F=26", KEPT, 171},
    {"b200", "tf32", "d_fp32", "L=4", KEPT, 0}, /* 4 of 8 products were recorded */
    {"b200", "tf32", "d_fp32", "round=nearest-even", KEPT, 1502},
    {"b200", "tf32", "d_fp32", "normalised=1", KEPT, 153},
    {"b200", "tf32", "d_fp32", "align=floor", KEPT, 132},
    {"b200", "tf32", "d_fp32", "align=nearest", KEPT, 205},
    {"b200", "tf32", "d_fp32", "", ZERO, 5000},
    {"b200", "tf32", "d_fp32", "", ROUNDED, 4989},
    {"b200", "tf32", "d_fp32", "L=2", KEPT, 959},

    {"b200", "e4m3", "d_fp32", "order=sequential", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "chunk=0:order=sequential:L=32", KEPT, 1793},
    {"b200", "e4m3", "d_fp32", "chunk=0:order=sequential", KEPT, 2226},
    {"b200", "e4m3", "d_fp32", "F=23", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "F=24", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "F=26", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "L=8", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "L=32", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "chunk=16", KEPT, 897},
    {"b200", "e4m3", "d_fp32", "chunk=64", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "acc=e8m22", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "outer-round=toward-zero", KEPT, 1849},
    {"b200", "e4m3", "d_fp32", "", ZERO, 5000},
    {"b200", "e4m3", "d_fp32", "", ROUNDED, 4987},
    {"b200", "e4m3", "d_fp32", "=exact", KEPT, 0},
    {"b200", "e4m3", "d_fp32", "=pairwise", KEPT, 0},

    {"b200", "e5m2", "d_fp32", "order=sequential", KEPT, 0},
    {"b200", "e5m2", "d_fp32", "chunk=0:order=sequential:L=32", KEPT, 1764},
    {"b200", "e5m2", "d_fp32", "chunk=0:order=sequential", KEPT, 2218},
    {"b200", "e5m2", "d_fp32", "F=23", KEPT, 0},
    {"b200", "e5m2", "d_fp32", "F=24", KEPT, 0},
    {"b200", "e5m2", "d_fp32", "F=26", KEPT, 0},
    {"b200", "e5m2", "d_fp32", "L=8", KEPT, 2},
    {"b200", "e5m2", "d_fp32", "L=32", KEPT, 0},
    {"b200", "e5m2", "d_fp32", "chunk=16", KEPT, 878},
    {"b200", "e5m2", "d_fp32", "chunk=64", KEPT, 0},
    {"b200", "e5m2", "d_fp32", "acc=e8m22", KEPT, 8},
    {"b200", "e5m2", "d_fp32", "outer-round=toward-zero", KEPT, 1817},
    {"b200", "e5m2", "d_fp32", "", ZERO, 5000},
    {"b200", "e5m2", "d_fp32", "", ROUNDED, 4987},
    {"b200", "e5m2", "d_fp32", "=exact", KEPT, 1},
    {"b200", "e5m2", "d_fp32", "=pairwise", KEPT, 2},

    {"b200", "e4m3", "d_fp16", "order=sequential", ROUNDED, 1500},
    {"b200", "e4m3", "d_fp16", "chunk=0:order=sequential:L=32", ROUNDED, 1892},
    {"b200", "e4m3", "d_fp16", "chunk=0:order=sequential", ROUNDED, 2173},
    {"b200", "e4m3", "d_fp16", "chunk=0:order=sequential:L=32:F=13", ROUNDED, 1906},
    {"b200", "e4m3", "d_fp16", "F=23", ROUNDED, 0},
    {"b200", "e4m3", "d_fp16", "F=24", ROUNDED, 0},
    {"b200", "e4m3", "d_fp16", "F=26", ROUNDED, 0},
    {"b200", "e4m3", "d_fp16", "F=27", ROUNDED, 0},
    {"b200", "e4m3", "d_fp16", "L=8", ROUNDED, 1354},
    {"b200", "e4m3", "d_fp16", "L=32", ROUNDED, 1071},
    {"b200", "e4m3", "d_fp16", "chunk=16", ROUNDED, 2347},
    {"b200", "e4m3", "d_fp16", "chunk=64", ROUNDED, 0},
    {"b200", "e4m3", "d_fp16", "acc=binary32", ROUNDED, 1892},
    {"b200", "e4m3", "d_fp16", "round=toward-zero", ROUNDED, 2694},
    {"b200", "e4m3", "d_fp16", "outer-round=toward-zero", ROUNDED, 1926},
    {"b200", "e4m3", "d_fp16", "", ZERO, 4995},
    {"b200", "e4m3", "d_fp16", "result=binary32", KEPT, 580},

    {"b200", "e5m2", "d_fp16", "order=sequential", ROUNDED, 1150},
    {"b200", "e5m2", "d_fp16", "chunk=0:order=sequential:L=32", ROUNDED, 1597},
    {"b200", "e5m2", "d_fp16", "chunk=0:order=sequential", ROUNDED, 2030},
    {"b200", "e5m2", "d_fp16", "chunk=0:order=sequential:L=32:F=13", ROUNDED, 1625},
    {"b200", "e5m2", "d_fp16", "F=23", ROUNDED, 0},
    {"b200", "e5m2", "d_fp16", "F=24", ROUNDED, 0},
    {"b200", "e5m2", "d_fp16", "F=26", ROUNDED, 0},
    {"b200", "e5m2", "d_fp16", "F=27", ROUNDED, 0},
    {"b200", "e5m2", "d_fp16", "L=8", ROUNDED, 896},
    {"b200", "e5m2", "d_fp16", "L=32", ROUNDED, 759},
    {"b200", "e5m2", "d_fp16", "chunk=16", ROUNDED, 2135},
    {"b200", "e5m2", "d_fp16", "chunk=64", ROUNDED, 0},
    {"b200", "e5m2", "d_fp16", "acc=binary32", ROUNDED, 1597},
    {"b200", "e5m2", "d_fp16", "round=toward-zero", ROUNDED, 2079},
    {"b200", "e5m2", "d_fp16", "outer-round=toward-zero", ROUNDED, 1808},
    {"b200", "e5m2", "d_fp16", "", ZERO, 4994},
    {"b200", "e5m2", "d_fp16", "result=binary32", KEPT, 594},
};

static const set *find_set(const char *gpu, const char *type, const char *result)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(sets[i].gpu, gpu) == 0 && strcmp(sets[i].type, type) == 0 && strcmp(sets[i].result, result) == 0)
            return &sets[i];
    ck_abort_msg("no set %s %s.%s", gpu, type, result);
}

static void load_set(recorded_set *v, const set *s)
{
    const char *wrong = recorded_load(v, s->gpu, s->type, s->result);
    ck_assert_msg(!wrong, "%s %s.%s: %s", s->gpu, s->type, s->result, wrong);
    ck_assert_msg(v->n == RECORDED && v->k == s->k, "%s %s: %zu x %zu", s->gpu, s->type, v->n, v->k);
}

static void parse(mpsim_model *m, const char *name)
{
    const mpsim_status s = mpsim_model_parse(m, name);
    ck_assert_msg(s == MPSIM_OK, "%s: %s", name, mpsim_status_string(s));
}

/* The code of a recorded addend. It is not rounded where the model takes binary32. */
static uint64_t addend(const mpsim_model *m, use how, float c)
{
    const mpsim_format *half = mpsim_format_find("fp16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const uint64_t rounded = mpsim_encode_f32(half, &r, c, 0, NULL);
    if (how == ZERO)
        return 0;
    if (m->result.format.bits == 16)
        return rounded;
    return bits_of_f32(how == ROUNDED ? (float)mpsim_decode(half, rounded) : c);
}

/* Does the code stand for the recorded number, the sign of zero included? */
static int is_recorded(const mpsim_model *m, uint64_t code, float d)
{
    return bits_of_f32((float)mpsim_decode(&m->result.format, code)) == bits_of_f32(d);
}

static void sort_quads(recorded_set *v)
{
    const size_t bytes = mpsim_format_code_bytes(&v->operand);
    unsigned char row[4 * KMAX];
    for (size_t i = 0; i < 2 * v->n; i++) {
        unsigned char *p = (unsigned char *)(i < v->n ? v->a : v->b) + i % v->n * v->k * bytes;
        memcpy(row, p, v->k * bytes);
        for (size_t group = 0; group < 4; group += 2)
            for (size_t k = 0; k < v->k; k++)
                if ((k & 2) == group) {
                    memcpy(p, row + k * bytes, bytes);
                    p += bytes;
                }
    }
}

/* How many of the recorded results the model misses, with `pad` zero products appended. */
static int missed(const recorded_set *v, const mpsim_model *m, use how, size_t pad)
{
    const size_t bytes = mpsim_format_code_bytes(&v->operand);
    unsigned char a[4 * KMAX] = {0}, b[4 * KMAX] = {0};
    int wrong = 0;
    ck_assert(v->k + pad <= KMAX);
    for (size_t i = 0; i < v->n; i++) {
        uint64_t d = 0;
        memcpy(a, (const char *)v->a + i * v->k * bytes, v->k * bytes);
        memcpy(b, (const char *)v->b + i * v->k * bytes, v->k * bytes);
        const mpsim_status s = mpsim_dot(m, &v->operand, a, &v->operand, b, v->k + pad, addend(m, how, v->c[i]), NULL,
                                         &d);
        ck_assert_msg(s == MPSIM_OK, "%s: %s", m->name, mpsim_status_string(s));
        wrong += !is_recorded(m, d, v->d[i]);
    }
    return wrong;
}

START_TEST(every_recorded_result)
{
    const set *s = &sets[_i];
    recorded_set v;
    mpsim_model m;
    load_set(&v, s);
    parse(&m, s->model);
    ck_assert(mpsim_model_accepts(&m, &v.operand, &v.operand));
    const int wrong = missed(&v, &m, s->c, 0);
    ck_assert_msg(wrong == 0, "%s %s.%s, %s: %d of %zu differ", s->gpu, s->type, s->result, s->model, wrong, v.n);
    /* The hardware ran the whole instruction, with zeros in the places that are not recorded; and
       further instructions of zeros change nothing. */
    const int padded = missed(&v, &m, s->c, s->instruction - s->k);
    const int longer = missed(&v, &m, s->c, 2 * s->instruction - s->k);
    ck_assert_msg(padded == 0 && longer == 0, "%s %s.%s, %s: %d and %d of %zu differ with zeros", s->gpu, s->type,
                  s->result, s->model, padded, longer, v.n);
    ck_assert_msg(m.evidence == MPSIM_EVIDENCE_VECTORS, "%s: no vectors?", m.name);
    recorded_clear(&v);
}

/* Blocks of rows of a times rows of b: the diagonal is what was recorded. */
START_TEST(every_recorded_result_by_gemm)
{
    enum { BLOCK = 10 };
    const set *s = &sets[_i];
    recorded_set v;
    mpsim_model m;
    load_set(&v, s);
    parse(&m, s->model);
    const size_t bytes = mpsim_format_code_bytes(&v.operand);
    int wrong = 0;
    for (size_t i = 0; i < v.n; i += BLOCK) {
        const mpsim_matrix a = {&v.operand, (const char *)v.a + i * v.k * bytes, v.k, 0};
        const mpsim_matrix b = {&v.operand, (const char *)v.b + i * v.k * bytes, v.k, 1};
        uint64_t codes[BLOCK * BLOCK], wide[BLOCK * BLOCK];
        for (size_t j = 0; j < BLOCK * BLOCK; j++)
            codes[j] = addend(&m, s->c, v.c[i + j % BLOCK]);
        dot_pack(&m.result.format, wide, 0, codes, BLOCK * BLOCK);
        const mpsim_matrix c = {&m.result.format, wide, BLOCK, 0};
        ck_assert(mpsim_gemm(&m, BLOCK, BLOCK, v.k, &a, &b, &c, wide, BLOCK, NULL, NULL) == MPSIM_OK);
        for (size_t j = 0; j < BLOCK; j++)
            wrong += !is_recorded(&m, dot_unpack(&m.result.format, wide, j * BLOCK + j), v.d[i + j]);
    }
    ck_assert_msg(wrong == 0, "%s %s.%s, %s: %d of %zu differ", s->gpu, s->type, s->result, s->model, wrong, v.n);
    recorded_clear(&v);
}

START_TEST(one_rule_changed)
{
    if (!test_in_part((uint64_t)_i, 1))
        return;
    const set *s = &sets[_i];
    recorded_set v;
    int found = 0;
    load_set(&v, s);
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        const control *t = &controls[i];
        if (find_set(t->gpu, t->type, t->result) != s)
            continue;
        char name[128];
        mpsim_model m;
        recorded_set sorted;
        const int sort = t->change[0] == '~';
        if (t->change[0] == '=')
            snprintf(name, sizeof name, "%s", t->change + 1);
        else
            snprintf(name, sizeof name, "%s%s%s", s->model, t->change[0] ? ":" : "", t->change + sort);
        parse(&m, name);
        if (sort) {
            load_set(&sorted, s);
            sort_quads(&sorted);
        }
        const int wrong = missed(sort ? &sorted : &v, &m, t->c, 0);
        if (sort)
            recorded_clear(&sorted);
        ck_assert_msg(wrong == t->wrong, "%s %s.%s, %s, c %s: %d differ, known to be %d", s->gpu, s->type, s->result,
                      name,
                      t->c == KEPT   ? "kept"
                      : t->c == ZERO ? "zero"
                                     : "rounded",
                      wrong, t->wrong);
        found++;
    }
    ck_assert_int_gt(found, 6);
    recorded_clear(&v);
}

int main(void)
{
    const char *why;
    if (!recorded_folder(&why)) {
        printf("1..0 # SKIP %s\n", why);
        return EXIT_SUCCESS;
    }
    TCase *t = test_case("recorded", 20);
    tcase_add_loop_test(t, every_recorded_result, 0, SETS);
    tcase_add_loop_test(t, every_recorded_result_by_gemm, 0, SETS);
    tcase_add_loop_test(t, one_rule_changed, 0, SETS);
    TCase *const cases[] = {t, NULL};
    return test_main("tensorcore", cases);
}
