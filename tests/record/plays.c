/* plays.c -- devices that model rows play: the readers of stacks find the way, and nothing where a digit or the digest is
 * another one. */
#include "stacks.h"

#include "lib/digest/scalar.h"
#include "support/extent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct play {
    device_reader *read;
    stacks_reader *stack;
    const char *c; /* the case, but for what is played */
    played by;
    const char *answer;
} plays[] = {
    {device_batched,
     stacks_batched,
     "{\"case\": \"bfloat16 linear\", \"form\": \"bfloat16\", \"out\": \"bfloat16\", \"how\": \"linear\", \"m\": 64, \"n\": 64, \"k\": 512,"
     " \"streams\": [146, 147, 148], \"places\": [64, 149, 4096], \"elements\": 4096, \"d\": \"?\", \"kernels\": [\"nvjet_sm90\"]}",
     {"hopper-bf16-fp32", 0, 0, 0},
     "fits hopper-bf16-fp32 (added in binary32)"},
    {device_batched,
     stacks_batched,
     "{\"case\": \"float16 matrix\", \"form\": \"float16\", \"out\": \"float16\", \"how\": \"matrix\", \"m\": 64, \"n\": 64, \"k\": 1024,"
     " \"streams\": [146, 147, 148], \"places\": [64, 149, 4096], \"elements\": 4096, \"d\": \"?\", \"kernels\": [\"nvjet_splitK\"]}",
     {"hopper-fp16-fp32", 256, 0, 1},
     "fits hopper-fp16-fp32 in parts of 256 (rounded and then added)"},
    {device_batched,
     stacks_batched,
     "{\"case\": \"tf32 scaled\", \"form\": \"tf32\", \"out\": \"float32\", \"how\": \"scaled\", \"m\": 32, \"n\": 64, \"k\": 128,"
     " \"streams\": [146, 147, 148], \"places\": [64, 149, 2048], \"elements\": 2048, \"d\": \"?\", \"kernels\": [\"nvjet_sm90\"]}",
     {"hopper-tf32-fp32", 0, 0, 2},
     "fits hopper-tf32-fp32 (fma(beta, c, alpha sum))"},
    {device_batched,
     stacks_batched,
     "{\"case\": \"bfloat16 wide shared\", \"form\": \"bfloat16\", \"out\": \"float32\", \"how\": \"shared\", \"batch\": 3, \"m\": 32, \"n\": 48,"
     " \"k\": 512, \"streams\": [150, 151, 152], \"places\": [64, 153, 4608], \"elements\": 4608, \"d\": \"?\","
     " \"kernels\": [\"nvjet_splitK\"]}",
     {"hopper-bf16-fp32", 128, 0, 0},
     "fits hopper-bf16-fp32 in parts of 128"},
    {device_batched,
     stacks_batched,
     "{\"case\": \"float16 wide added\", \"form\": \"float16\", \"out\": \"float32\", \"how\": \"added\", \"batch\": 2, \"m\": 16, \"n\": 32,"
     " \"k\": 256, \"streams\": [150, 151, 152], \"places\": [64, 153, 1024], \"elements\": 1024, \"d\": \"?\", \"kernels\": [\"x\"]}",
     {"hopper-fp16-fp32", 0, 0, 2},
     "fits hopper-fp16-fp32 (added before the products)"},
    {device_convolutions,
     stacks_convolution,
     "{\"case\": \"tf32 forward\", \"form\": \"tf32\", \"out\": \"float32\", \"of\": \"forward\", \"images\": 2, \"channels\": 64,"
     " \"size\": 9, \"filters\": 16, \"filter\": 3, \"stride\": 1, \"padding\": 1, \"streams\": [154, 155, 156],"
     " \"places\": [64, 157, 2592], \"elements\": 2592, \"d\": \"?\", \"kernels\": [\"cutlass\"]}",
     {"hopper-tf32-fp32", 0, 5, 0},
     "fits hopper-tf32-fp32 by 32 channels"},
    {device_convolutions,
     stacks_convolution,
     "{\"case\": \"tf32 dgrad\", \"form\": \"tf32\", \"out\": \"float32\", \"of\": \"dgrad\", \"images\": 2, \"channels\": 16,"
     " \"size\": 12, \"filters\": 32, \"filter\": 3, \"stride\": 2, \"padding\": 1, \"streams\": [154, 155, 156],"
     " \"places\": [64, 157, 4608], \"elements\": 4608, \"d\": \"?\", \"kernels\": [\"cutlass\"]}",
     {"hopper-tf32-fp32", 0, 2 + 9 * (2 + 4), 0},
     "fits hopper-tf32-fp32 by 4 channels backwards without gaps"},
    {device_convolutions,
     stacks_convolution,
     "{\"case\": \"tf32 wgrad\", \"form\": \"tf32\", \"out\": \"float32\", \"of\": \"wgrad\", \"images\": 2, \"channels\": 8, \"size\": 16,"
     " \"filters\": 16, \"filter\": 3, \"stride\": 1, \"padding\": 1, \"streams\": [154, 155, 156], \"places\": [64, 157, 1152],"
     " \"elements\": 1152, \"d\": \"?\", \"kernels\": [\"cudnn_wgrad\"]}",
     {"hopper-tf32-fp32", 32, 2, 0},
     "fits hopper-tf32-fp32 in parts of 32 by images, columns, rows"},
    {device_grouped,
     stacks_grouped,
     "{\"case\": \"bfloat16 rows\", \"form\": \"bfloat16\", \"out\": \"bfloat16\", \"how\": \"rows\", \"groups\": 3, \"a\": [48, 256],"
     " \"b\": [3, 256, 64], \"ends\": [16, 16, 48], \"streams\": [161, 162, 164, 165], \"places\": [64, 163, 3072], \"elements\": 3072,"
     " \"d\": \"?\", \"kernels\": [\"x\"]}",
     {"hopper-bf16-fp32", 0, 0, 0},
     "fits hopper-bf16-fp32"},
    {device_grouped,
     stacks_grouped,
     "{\"case\": \"float8_e4m3fn depth\", \"form\": \"float8_e4m3fn\", \"out\": \"float32\", \"how\": \"depth\", \"groups\": 3,"
     " \"a\": [32, 640], \"b\": [640, 48], \"ends\": [256, 256, 640], \"streams\": [161, 162, 164, 165], \"places\": [64, 163, 4608],"
     " \"elements\": 4608, \"d\": \"?\", \"kernels\": [\"x\"]}",
     {"hopper-wgmma-fp8-promoted", 0, 0, 1},
     "fits hopper-wgmma-fp8-promoted by b's scale first"},
};

/* The last digit of a member becomes another. */
static void change(json_t *c, const char *key)
{
    char text[1 << 12];
    snprintf(text, sizeof text, "%s", device_text(c, key));
    char *last = text + strlen(text) - 1;
    *last = *last == '1' ? '2' : '1';
    json_object_set_new(c, key, json_string(text));
}

/* A changed digit takes turns: each answers its case once more. */
static void check_play(const json_t *head, const struct play *p, device_ok *ok)
{
    static const char *const keys[] = {"d", "digest"};
    char answer[DEVICE_ANSWER] = "";
    stack s;
    json_t *c = json_loads(p->c, 0, NULL);
    device_need(c && p->stack(c, &s));
    stacks_play(c, &s, &p->by);
    p->read(head, c, answer);
    ok(strcmp(answer, p->answer) == 0, "%s, played by %s", device_text(c, "case"), p->by.row);
    printf("# %s\n", answer);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && test_in_whole_part((uint64_t)(p - plays), 5); i++) {
        json_t *changed = json_deep_copy(c);
        device_need(changed != NULL);
        change(changed, keys[i]);
        p->read(head, changed, answer);
        ok(strcmp(answer, "none fits") == 0, "%s: another %s is found", device_text(c, "case"), keys[i]);
        json_decref(changed);
    }
    json_decref(c);
}

/* 4 tiles of 16 by 16, of which the last is cut: places of each tell. */
static void check_segments(const json_t *head, device_ok *ok)
{
    char answer[DEVICE_ANSWER] = "";
    json_t *c = json_loads(
        "{\"case\": \"float16 sums NT\", \"form\": \"float16\", \"out\": \"float16\", \"m\": 32, \"n\": 32, \"k\": 512,"
        " \"streams\": [140, 141], \"places\": [64, 142, 1024], \"d\": \"?\","
        " \"kernels\": [\"tilesize16x16x64_segment_k_on\"]}",
        0, NULL);
    device_need(c != NULL);
    device_play_segments(c, "hopper-fp16-fp16", 3, 192);
    device_segments(head, c, answer);
    ok(strcmp(answer, "fits hopper-fp16-fp16 in tiles of 16x16: 3 whole, 1 cut at 192 (1-1)") == 0, "%s: %s", "tiles",
       answer);
    change(c, "digest");
    device_segments(head, c, answer);
    ok(strstr(answer, "none fits") == answer && strstr(answer, "the digest does not") != NULL,
       "%s: another digest is found: %s", "tiles", answer);
    change(c, "d");
    device_segments(head, c, answer);
    ok(strstr(answer, "none fits") == answer && strstr(answer, " by no way (0-0)") != NULL,
       "%s: another d is found: %s", "tiles", answer);
    json_decref(c);
}

/* 131136 products of -128 and -128: 2^31 and 2^20 more. */
static void check_integers(device_ok *ok)
{
    static const struct {
        uint32_t code;
        const char *answer;
    } beyond[] = {{0x80100000, "fits exact sums modulo 2^32"},
                  {0x7fffffff, "fits exact sums (saturated)"},
                  {0x80100001, "none fits"}};
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        char words[20], digest[20], answer[DEVICE_ANSWER] = "";
        snprintf(words, sizeof words, "%08x %08x", (unsigned)beyond[i].code, (unsigned)beyond[i].code);
        snprintf(digest, sizeof digest, "%016" PRIx64, mpsim_mix(0, beyond[i].code) + mpsim_mix(1, beyond[i].code));
        json_t *c = json_pack("{s:i,s:i,s:b,s:[i,i],s:[i,i,i],s:i,s:s,s:s}", "n", 2, "k", 131136, "least", 1, "streams",
                              158, 159, "places", 2, 160, 2, "elements", 2, "d", words, "digest", digest);
        device_need(c != NULL);
        device_integers(NULL, c, answer);
        ok(strcmp(answer, beyond[i].answer) == 0, "sums beyond int32, %s: %s", words, beyond[i].answer);
        json_decref(c);
    }
}

void device_check_plays(device_ok *ok)
{
    json_t *head = json_pack("{s:s,s:[i,i]}", "kind", "cuda", "capability", 9, 0);
    device_need(head != NULL);
    for (size_t i = 0; i < sizeof plays / sizeof plays[0]; i++)
        check_play(head, &plays[i], ok);
    check_integers(ok);
    check_segments(head, ok);
    json_decref(head);
}
