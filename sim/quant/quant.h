/* quant.h -- how files store quantised tensors: packed codes, the order of block scales, and the layouts of
 * checkpoints, a row each. Pure functions: nothing is read, written or printed here.
 *
 * A quantised tensor is a matrix of rows x cols (all dimensions but the last, and that one), a code for each element,
 * a scale for each block of a grid, and perhaps a scale of the tensor. Files hold it as up to three tensors, its
 * parts. A form says how; a geometry is a form with the sizes of one tensor put in, and leads from a part's bytes
 * to the matrix and back. Stored scales are what codes are multiplied by. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* quant_up -- how many pieces of `side` cover n. */
static inline uint64_t quant_up(uint64_t n, uint64_t side)
{
    return n / side + (n % side != 0);
}

/* ---- codes (pack.c) ---- */

/* A row of codes, which begins at a byte. Bits that are left over are 0. */
typedef enum quant_packing {
    QUANT_BYTES,        /* a code in each byte                                                          */
    QUANT_NIBBLES,      /* two in a byte, the first in bits 0 to 3                                      */
    QUANT_SIXES,        /* four in three bytes, little-endian: the first in bits 0 to 5 of the first    */
    QUANT_SIXES_TORCHAO /* four in three bytes as torchao 0.13 has them: from the highest bit down the upper four
                           bits of codes 0, 1, 3, 2, then the lower two of 0, 1, 3, 2                */
} quant_packing;

/* quant_packed -- bytes of n codes. */
uint64_t quant_packed(quant_packing p, uint64_t n);
void quant_pack(quant_packing p, unsigned char *to, const unsigned char *codes, size_t n);
/* quant_unpack -- n codes, a byte each; `codes` and `from` may not overlap. */
void quant_unpack(quant_packing p, unsigned char *codes, const unsigned char *from, size_t n);
const char *quant_packing_name(quant_packing p);

/* ---- the order of scales (scales.c) ---- */

/* What cuBLAS and the tensor cores of Blackwell read: tiles of 128 x 4 scales, 512 bytes each, row-major; in a tile
 * scale (o, i) is byte (o % 32) * 16 + o / 32 * 4 + i. i counts the blocks along which products are summed, o the
 * other way. Places beyond the matrix are 0. */
uint64_t quant_swizzled_index(uint64_t o, uint64_t i, uint64_t inner);

/* ---- forms (form.c) ---- */

enum {
    QUANT_WHOLE = 0,        /* of a block's side, as in mpsim/block.h: the whole dimension */
    QUANT_ANY = UINT32_MAX, /* any                                                         */
    QUANT_RANK_MAX = 64
};

/* The scale of the tensor. */
typedef enum quant_tensor_scale {
    QUANT_NONE,     /* there is none                                                       */
    QUANT_MULTIPLY, /* codes are multiplied by it, too                                     */
    QUANT_DIVIDE,   /* they are divided by it: it is the reciprocal                        */
    QUANT_AMAX,     /* the largest magnitude is stored: the scale is amax / (6 * 448)      */
    QUANT_MAYBE     /* QUANT_MULTIPLY, or absent                                           */
} quant_tensor_scale;

/* Shape of the part that holds the scales. */
typedef enum quant_arrangement {
    QUANT_GRID,              /* the grid; where block_rows is 1: the tensor's shape, the last dimension in blocks */
    QUANT_PADDED,            /* the grid in a matrix whose sides are multiples of pad_rows and pad_cols         */
    QUANT_PADDED_TRANSPOSED, /* likewise, the grid transposed                                              */
    QUANT_SCALAR,            /* one scale, of no dimension                                                       */
    QUANT_ONE                /* one scale, of shape [1]                                                          */
} quant_arrangement;

/* Shape of the part that holds the codes. */
typedef enum quant_code_shape {
    QUANT_ROWS,       /* the tensor's; packed along the last dimension                         */
    QUANT_TRANSPOSED, /* cols x rows; packed along the rows of the tensor                      */
    QUANT_SPLIT       /* the tensor's, the last dimension in two: blocks, and bytes of a block */
} quant_code_shape;

/* Scales in the order of cuBLAS, and the shape that the part has then. */
typedef enum quant_swizzle {
    QUANT_UNSWIZZLED, /* never                                            */
    QUANT_TILES,      /* [32 * tiles down, 16 * tiles across], of torchao */
    QUANT_AS_PLAIN    /* that of the plain order, whose padding is a tile's */
} quant_swizzle;

/* A row of the table: one kind of quantised tensor of one layout. */
typedef struct quant_form {
    const char *layout;              /* the word for it: "torchao"                                        */
    const char *type;                /* what its owner calls it: "MXTensor"                               */
    const char *elements;            /* formats of the elements: "e4m3 e5m2"                              */
    const char *scale;               /* format of the block scales: "e8m0", "e4m3", "binary32"; "*": any  */
    uint32_t block_rows, block_cols; /* elements of the matrix that a stored scale is of       */
    quant_packing packing;
    quant_code_shape code_shape;
    quant_arrangement arrangement;
    uint32_t pad_rows, pad_cols; /* PADDED, PADDED_TRANSPOSED: of the matrix as it is stored              */
    quant_swizzle swizzle;
    quant_tensor_scale tensor_scale;
    uint8_t tensor_rank;                  /* of the tensor scale: 0 or 1 ([1])                                  */
    uint8_t multiple_rows, multiple_cols; /* the sides of a tensor are multiples; 0: of the block's */
    uint8_t rank;                         /* dimensions a tensor may have at most                               */
    uint8_t prefix;                       /* names: '_' before the last component, which the suffix follows     */
    uint8_t sibling;       /* names: the suffix of scales stands for the last component, which is "weight"   */
    uint8_t view;          /* only of views in pickles: nobody writes it                         */
    const char *suffix[3]; /* by quant_part: "" is the tensor's own name; the last only with a tensor_scale */
    const char *dtypes[3]; /* of safetensors; the first is written; "": the format's own      */
    const char *source;
} quant_form;

typedef enum quant_part { QUANT_CODES, QUANT_SCALES, QUANT_TENSOR_SCALE, QUANT_PARTS } quant_part;

/* The table, of which rows of a layout follow one another; NULL past the end. */
const quant_form *quant_form_at(size_t i);
/* quant_layout_at -- the first row of the i-th layout. */
const quant_form *quant_layout_at(size_t i);
const quant_form *quant_layout_find(const char *layout);

/* quant_form_find -- the row of a layout that holds elements and scales of these formats (names of the table of
 * formats; e8m0 scales also as binary32) in blocks of this size: the form's own, or several of them, whose scales are
 * equal (NVFP4's 16x16 as 1x16). NULL and in `why` what the layout holds if there is none. */
const quant_form *quant_form_find(const char *layout, const char *element, const char *scale, uint32_t block_rows,
                                  uint32_t block_cols, int tensor_scale, char *why, size_t size);

/* quant_form_has -- whether word is one of the words of a list ("e4m3 e5m2"). */
int quant_form_has(const char *list, const char *word);

/* quant_part_name -- the name of a part of the tensor `name`: what snprintf returns; -1 if the form has no such part, or
 * no name for it (a prefix needs a '.' in the tensor's, a sibling one that ends in ".weight"). */
int quant_part_name(const quant_form *f, quant_part p, const char *name, char *to, size_t size);
/* quant_part_of -- whether `stored` can be the name of that part: then `name` is the tensor's. */
int quant_part_of(const quant_form *f, quant_part p, const char *stored, char *name, size_t size);

/* ---- one tensor (geometry.c) ---- */

typedef struct quant_shape {
    size_t rank;
    uint64_t sides[QUANT_RANK_MAX];
    uint64_t count; /* of elements as they are stored: bytes of packed codes */
} quant_shape;

typedef struct quant_geometry {
    const quant_form *form;
    int swizzled;
    quant_shape tensor;              /* what is stored, unpacked                                  */
    uint64_t rows, cols;             /* the same as a matrix                                      */
    uint64_t block_rows, block_cols; /* elements of a block that has a stored scale; never 0      */
    uint64_t grid_rows, grid_cols;   /* blocks                                                    */
    quant_shape parts[QUANT_PARTS];
    uint64_t lines, line_codes, line_bytes; /* codes as stored: rows of the matrix, or columns (TRANSPOSED) */
    uint64_t line_scales;                   /* PADDED, PADDED_TRANSPOSED, GRID: scales of a stored row              */
} quant_geometry;

/* quant_geometry_of -- of a tensor of this shape, two dimensions or more; blocks as of quant_form_find. In the swizzled
 * order a block has one row or one column: those of others are stored once for each of their rows. 0, or -1 and why the
 * form has no place for it: "its 40 columns are not a multiple of 32, as blocks of 1x32 need". */
int quant_geometry_of(quant_geometry *g, const quant_form *f, size_t rank, const uint64_t *shape, uint32_t block_rows,
                      uint32_t block_cols, int swizzled, char *why, size_t size);

/* quant_side -- what it takes for a block's side of so many elements: QUANT_WHOLE for `whole` of them, or more than the
 * number holds. A block longer than the matrix stays as it is: in the swizzled order it tells along which side blocks lie. */
static inline uint32_t quant_side(uint64_t block, uint64_t whole)
{
    return block == whole || block >= QUANT_ANY ? QUANT_WHOLE : (uint32_t)block;
}

/* quant_geometry_from -- from the shapes of the codes and of the scales as they are stored (`count` is not looked at).
 * packed: the last side of codes counts bytes; else elements, as with dtypes of less than a byte. Sides of blocks that
 * the form leaves open (QUANT_ANY) come from the shapes: a power of two, or the whole dimension. 0, or -1 and why
 * they do not fit each other. */
int quant_geometry_from(quant_geometry *g, const quant_form *f, const quant_shape *codes, const quant_shape *scales,
                        int swizzled, int packed, char *why, size_t size);

/* quant_scale_at -- which element of the scales' part is of block (i, j) of the grid. */
uint64_t quant_scale_at(const quant_geometry *g, uint64_t i, uint64_t j);

/* quant_factor -- what codes are multiplied by, from a block scale and the tensor's as they are stored (1 where there
 * is none), with the roundings to binary32 of the form's own dequantisation. */
float quant_factor(const quant_form *f, float scale, float tensor);
/* quant_stored -- the tensor scale as it is stored, from the global decode scale of mpsim/block.h and the largest
 * magnitude that it is of; of a recipe without one: 1 and 6 * 448. */
float quant_stored(const quant_form *f, float decode, float amax);
