# targets.sh -- what run.sh and coverage.sh know of each target; to be sourced, with $sources, the source tree.

# seeds TARGET FOLDER -- the corpus of the sources, unpacked
seeds() {
    mkdir -p "$2" && gzip -dc "$sources/tests/fuzz/corpus/$1.tar.gz" | (cd "$2" && tar -xf -)
}

# the longest input, bytes
longest() {
    case $1 in
    format | model | pattern | spec) echo 256 ;;
    state) echo 512 ;;
    digests | explain) echo 1024 ;;
    logs) echo 4096 ;; # two of them
    drawing | log | names | policy | text | vectors) echo 2048 ;;
    advise | folder | operands | pair | torch | trace) echo 65536 ;; # archives, of which a member may unpack to 1 MiB
    *) echo 8192 ;;
    esac
}

# what of the sources is a corpus, too
more() {
    case $1 in
    log) echo "$sources/data/logs $sources/tests/logs/written" ;;
    policy) echo "$sources/data/policies" ;;
    torch) echo "$sources/tests/trace/torch" ;;
    trace) echo "$sources/tests/trace/recorded $sources/tests/trace/quantised $sources/tests/trace/torch/torch-2.6.0" ;;
    esac
}

# the files whose words it may need
words() {
    case $1 in
    checkpoint | run) echo lib/train/run/*.c lib/scaler/text.c lib/train/state.c ;;
    drawing) echo sim/page/svg.c ;;
    explain) echo sim/explain/messages.c ;;
    folder) echo sim/trace/shards.c sim/trace/distcp.c sim/trace/zero*.c sim/trace/torchglobal.c sim/trace/torchfields.c ;;
    format) echo lib/format/format.c lib/block/table.c lib/round/preset.c sim/operand/target.c sim/operand/blocktarget.c ;;
    log | logs) echo sim/traininglog/logline.c sim/traininglog/logtable.c sim/traininglog/logseries.c sim/traininglog/facts.c sim/traininglog/course.c sim/traininglog/words.c sim/traininglog/metric.c ;;
    model) echo lib/dot/model.c ;;
    names) echo sim/trace/convention.c sim/trace/names.c ;;
    part) echo sim/stat/pack.c sim/stat/settings.c sim/stat/part.c ;;
    pattern | spec | state) echo sim/scaler/spec.c sim/scaler/pattern.c lib/scaler/text.c ;;
    policy) echo sim/policy/*.c ;;
    report) echo sim/plot/*.c sim/record/*.c ;;
    torch) echo sim/trace/torch*.c sim/pickle/*.c ;;
    advise) echo sim/advise/*.c sim/policy/table.c sim/trace/safetensors.c sim/trace/dtype.c ;;
    operands | pair | trace) echo sim/mismatch/arithmetic.c sim/trace/gguf*.c sim/trace/npy*.c sim/trace/onnx*.c sim/trace/chunks.h sim/trace/msgpack.c sim/trace/safetensors.c sim/trace/dtype.c sim/trace/packedfit.c \
        sim/trace/quantisedhint.c sim/trace/torchexport.c sim/trace/hdf5*.c sim/quant/form.c ;;
    vectors) echo sim/verify/vectors.c sim/trace/npy*.c ;;
    esac
}

# dictionary TARGET -- in libFuzzer's form: dict/TARGET, and the short words that the target's sources compare with
dictionary() {
    case $1 in
    logs) cat "$sources/tests/fuzz/dict/log" ;;
    advise | operands | pair) cat "$sources/tests/fuzz/dict/trace" ;;
    *) [ ! -r "$sources/tests/fuzz/dict/$1" ] || cat "$sources/tests/fuzz/dict/$1" ;;
    esac
    # shellcheck disable=SC2046 # words
    (cd "$sources" && set -- $(words "$1") && [ $# -gt 0 ] && cat "$@") |
        grep -v '^#include' | grep -o '"[^"\\% ]\{2,32\}"' | sort -u | LC_ALL=C grep '^[ -~]*$'
}
