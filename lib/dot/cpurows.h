/* cpurows.h -- rows of the table of models: instructions of CPUs. Included by model.c, in its table.
 *
 * Sources: SDM: Intel, Software Developer's Manual, volume 2, the instruction's page. ISE: Intel,
 * Instruction Set Extensions Programming Reference, as the x86 emulator Bochs reads it and compared it
 * with Intel's SDE. ARM: Arm, Architecture Reference Manual, shared pseudo-code (BFDotAdd, BFMulH,
 * FPMulAddH, FPDotAdd), as qemu-user computes it. What was compared with hardware: data/cpu.
 *
 * A row is a chain, a tree or an exact sum in binary32, with an order and traits: what is flushed, how a sum ends. */

#define FLUSH (MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS)

/* An instruction: how it adds, in which order, L sums or 0, chunks of n products, traits; the modes of
 * all its roundings, to binary32, and its rule for NaN. */
#define INSTRUCTION(arch, row_name, instructions, formats, kind, how, L, n, all, mode, nans, known, open, from)     \
    {                                                                                                               \
        .name = arch "-" row_name, .addition = MPSIM_ADDITION_##kind, .order = MPSIM_ORDER_##how, .length = L,      \
        .traits = all, .floor = NONE, .operand_emin = OWN, .chunk = n, .product = {"binary32", mode},               \
        .accumulator = {"binary32", mode}, .outer = {"binary32", mode}, .result = "binary32", .architecture = arch, \
        .instruction = instructions, .operands = formats, .evidence = MPSIM_EVIDENCE_##known, .unconfirmed = open,  \
        .source = from, .nan = MPSIM_NANS_##nans                                                                    \
    }

#define NO_CPU "no hardware compared"
#define AN_EMULATOR "no hardware compared, but an emulator"
#define WHICH_NAN "; which NaN"

INSTRUCTION("avx512", "bf16-fp32", "vdpbf16ps", "bf16", FMA, ODD_FIRST, 0, 0, FLUSH | MPSIM_TRAIT_NAN_MINUS, RN,
            PAYLOAD, VECTORS, NULL, "AMD Zen 5, two Xeons (data/cpu); SDM"),
    INSTRUCTION("amx", "bf16-fp32", "tdpbf16ps", "bf16", FMA, LANES, 2, 32, FLUSH | MPSIM_TRAIT_NAN_MINUS, RN, PAYLOAD,
                VECTORS, NULL, "a Xeon (data/cpu); SDM; tiles of 32 products, for others: chunk="),
    INSTRUCTION("amx", "fp16-fp32", "tdpfp16ps", "fp16", FMA, LANES, 2, 32,
                MPSIM_TRAIT_FLUSH_SUMS | MPSIM_TRAIT_NAN_MINUS, RN, PAYLOAD, VECTORS, NULL,
                "a Xeon (data/cpu); SDM; tiles of 32 products, for others: chunk="),
    INSTRUCTION("amx", "fp8-fp32", "tdpbf8ps, tdpbhf8ps, tdphbf8ps, tdphf8ps", F8, EXACT, SEQUENTIAL, 0, 64,
                MPSIM_TRAIT_FLUSH_SUMS | MPSIM_TRAIT_NAN_MINUS, RN, PAYLOAD, MANUAL,
                NO_CPU "; public descriptions disagree: an earlier one has sums of single products" WHICH_NAN
                       "; infinities of both signs within four products",
                "ISE; tiles of 64 products, for others: chunk="),

    INSTRUCTION("arm", "bf16-fp32", "bfdot, bfmmla, bfmopa", "bf16", MULADD, PAIRWISE, 0, 2,
                FLUSH | MPSIM_TRAIT_FILLED | MPSIM_TRAIT_OVERFLOW, MPSIM_ROUND_TO_ODD, POSITIVE, MANUAL, AN_EMULATOR,
                "ARM, FPCR.EBF = 0"),
    INSTRUCTION("arm", "ebf16-fp32", "bfdot, bfmmla, bfmopa with FEAT_EBF16", "bf16", EXACT, SEQUENTIAL, 0, 2,
                MPSIM_TRAIT_FILLED, RN, POSITIVE, MANUAL, AN_EMULATOR WHICH_NAN, "ARM, FPCR.EBF = 1, FZ = 0"),
    INSTRUCTION("arm", "bfmlal-fp32", "bfmlalb, bfmlalt", "bf16", FMA, SEQUENTIAL, 0, 0, 0, RN, PAYLOAD, MANUAL,
                AN_EMULATOR WHICH_NAN "; signalling NaNs come first", "ARM, FPCR.FZ = 0"),
    INSTRUCTION("arm", "fmlal-fp32", "fmlal, fmlal2", "fp16", FMA, SEQUENTIAL, 0, 0, 0, RN, PAYLOAD, MANUAL,
                AN_EMULATOR WHICH_NAN "; signalling NaNs come first", "ARM, FPCR.FZ = FZ16 = 0"),
    INSTRUCTION("arm", "fp16-fp32", "fmopa of SME", "fp16", EXACT, SEQUENTIAL, 0, 2, MPSIM_TRAIT_FILLED, RN, POSITIVE,
                MANUAL, AN_EMULATOR, "ARM, FPCR.FZ = FZ16 = 0"),

#undef FLUSH
#undef INSTRUCTION
#undef NO_CPU
#undef AN_EMULATOR
#undef WHICH_NAN
