/* fuzz-run.c -- training runs as text (mpsim-run/1): what is read is written and read again as it was. */
#include "input.h"

#include <train/train.h>
#include <stdlib.h>
#include <string.h>

static char *written(const train_run *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    must(f && train_run_write(r, f) == 0 && fclose(f) == 0);
    return text;
}

static int read_text(train_run *r, char *text, size_t n)
{
    char error[TRAIN_ERROR] = "";
    FILE *f = fmemopen(text, n, "r");
    must(f != NULL);
    const int bad = train_run_read(r, f, error);
    fclose(f);
    if (bad)
        must_be_line(error);
    must(strlen(error) < sizeof error);
    return bad;
}

static void check_run(const train_run *r)
{
    char *text = written(r), *again = NULL;
    train_run copy;
    must(r->n_plans >= 1 && r->n_plans <= TRAIN_PLANS && r->plans[0].from == 0);
    must(r->n_layers >= 1 && r->n_layers <= TRAIN_LAYERS);
    for (size_t i = 0; i < r->n_plans; i++)
        must(mpsim_scaler_config_check(&r->plans[i].scaler) == MPSIM_OK);
    must(read_text(&copy, text, strlen(text)) == 0);
    again = written(&copy);
    must(strcmp(text, again) == 0);
    train_run_clear(&copy);
    free(text);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = input_text(data, n);
    train_run r;
    if (n && read_text(&r, text, n) == 0) {
        check_run(&r);
        train_run_clear(&r);
    }
    free(text);
    return 0;
}
