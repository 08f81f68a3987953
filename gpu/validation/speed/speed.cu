/* speed.cu -- see speed.h. */
#include "attention.cuh"
#include "casts.cuh"
#include "models.cuh"
#include "products.cuh"

/* ---- the table ---- */

static int is_in_range(const gpu_speed_plan *plan)
{
    const size_t n = plan->elements;
    return plan->runs >= 1 && plan->runs <= 100 && n % COLUMNS == 0 && (n < SAMPLE || n % SAMPLE == 0) &&
           plan->order % 128 == 0;
}

static void list_items(item_list *list, const gpu_speed_plan *plan)
{
    list->n = 0;
    if (is_in_range(plan) && plan->elements) {
        list_tensors(list, plan);
        list_casts(list, plan);
        list_layers(list, plan);
    }
    if (is_in_range(plan) && plan->order)
        list_products(list, plan);
    if (is_in_range(plan) && plan->order)
        list_attention(list, plan);
    if (is_in_range(plan) && plan->order)
        list_models(list, plan);
}

static void begin_row(gpu_speed_row *r, const item *it, gpu_status status, const char *text)
{
    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "%s", it->name);
    snprintf(r->group, sizeof r->group, "%s", it->group);
    snprintf(r->text, sizeof r->text, "%s", text);
    r->status = status;
    r->bytes = it->bytes;
    r->flops = it->flops;
    r->checked = -1;
}

size_t gpu_speed_list(gpu_speed_row *rows, size_t max, const gpu_speed_plan *plan)
{
    item_list list;
    list_items(&list, plan);
    const size_t n = list.n < max ? list.n : max;
    for (size_t i = 0; i < n; i++)
        begin_row(&rows[i], &list.at[i], GPU_SKIPPED, "not reached");
    return n;
}

/* ---- a row ---- */

/* The device, and its clocks if they can be asked for. */
static void open_session(session *s, gpu_nvml *nvml)
{
    cudaDeviceProp properties = {};
    char bus[32] = "";
    int device = 0;
    keep_error(s, cudaGetDevice(&device));
    keep_error(s, cudaGetDeviceProperties(&properties, device));
    s->multiprocessors = properties.multiProcessorCount;
#if !GPU_ON_HOST
    keep_error(s, cudaDeviceGetPCIBusId(bus, sizeof bus, device));
#endif
    if (gpu_nvml_open(nvml, s->plan->nvml, bus) == 0)
        s->nvml = nvml;
}

static void close_session(session *s)
{
    keep_error(s, cudaDeviceSynchronize());
    if (s->error != cudaSuccess)
        give_up(s, GPU_FAILED, cudaGetErrorString(s->error));
    if (s->row->status != GPU_DONE) {
        s->row->seconds = 0;
        s->row->checked = -1;
    }
    if (s->nvml)
        gpu_nvml_close(s->nvml);
}

/* Of the libraries' products, or of the copy; attention has neither: see beside.py. */
static void set_share(session *s, const item *it)
{
    if (it->product)
        set_share_of_libraries(s);
    else if (it->bytes > 0)
        set_share_of_copy(s);
}

int gpu_speed_measure(gpu_speed_row *rows, size_t count, size_t i, const gpu_speed_plan *plan)
{
    item_list list;
    gpu_nvml nvml;
    list_items(&list, plan);
    if (i >= count || count > list.n)
        return -1;
    const item *it = &list.at[i];
    session s = {plan, list.at, rows, i, &rows[i], 1, NULL, cudaSuccess};
    begin_row(s.row, it, GPU_DONE, "");
    open_session(&s, &nvml);
    if (s.error == cudaSuccess)
        it->measure(&s, it);
    close_session(&s);
    if (s.row->status == GPU_DONE)
        set_share(&s, it);
    return s.row->status == GPU_FAILED ? -1 : 0;
}
