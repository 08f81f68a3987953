# logmade.awk -- 200 steps of a training log: noise of 0.03 that the batches make, a tenth of it of the run's own (log.md, log.sh).
function one() { x = x * 16807 % 2147483647; return x / 2147483647 } # the same with every awk
function noise() { return one() + one() + one() + one() - 2 }
BEGIN {
    x = 1000 + 7919 * batches; for (i = 0; i < 200; i++) batch[i] = 0.052 * noise()
    x = 1000 + 104729 * seed; own = 0.004 * noise()
    for (i = 0; i < 200; i++) {
        loss = 10.8 * exp(-i / 30) + 3 + batch[i] + 0.005 * noise() + own + bias + drift * i
        printf "step %d loss: %.4f grad_norm: %.3f\n", i, loss, 0.8 + 0.02 * noise()
    }
}
