/* GPU performance monitoring: two samples, and what happened between them. */
#include "internal.h"
#include <math.h>
#include <stdlib.h>

#define MEBIBYTE 1048576.0
#define GPM_VERSION 1

enum { METRIC_PCIE_TX = 20, METRIC_PCIE_RX = 21, METRIC_NVLINK_RX = 60, METRIC_NVLINK_TX = 61 };

struct gpm_sample {
    double at_us;
    double bytes[FLOWS];
    int device; /* counted from 1; 0: never filled */
};

API result nvmlGpmQueryDeviceSupport(handle which, struct gpm_support *out)
{
    TARGET(which, 0, ANY_HANDLE);
    if (out->version != GPM_VERSION)
        return ARGUMENT_VERSION_MISMATCH;
    out->is_supported = (at.device->features & FEATURE_GPM) != 0;
    return SUCCESS;
}

API result nvmlGpmSampleAlloc(struct gpm_sample **out)
{
    if (!is_initialized())
        return UNINITIALIZED;
    *out = calloc(1, sizeof **out);
    return *out ? SUCCESS : OUT_OF_MEMORY;
}

API result nvmlGpmSampleFree(struct gpm_sample *sample)
{
    if (!is_initialized())
        return UNINITIALIZED;
    result code = enter(__func__, -1);
    if (!code)
        free(sample);
    return code;
}

static result fill(const struct target *at, struct gpm_sample *sample)
{
    if (!sample)
        return INVALID_ARGUMENT;
    sample->at_us = now_us();
    for (int flow = 0; flow < FLOWS; flow++)
        sample->bytes[flow] = flowed(at->device, (enum flow)flow, sample->at_us - at->device->gpm_lag_us);
    sample->device = at->index + 1;
    return SUCCESS;
}

API result nvmlGpmSampleGet(handle which, struct gpm_sample *sample)
{
    TARGET(which, FEATURE_GPM, WHOLE_GPU);
    return fill(&at, sample);
}

API result nvmlGpmMigSampleGet(handle which, unsigned int gpu_instance, struct gpm_sample *sample)
{
    TARGET(which, FEATURE_GPM, WHOLE_GPU);
    for (uint32_t i = 0; i < at.device->instance_count && i < MAX_INSTANCES; i++)
        if (at.device->instances[i].uuid[0] && at.device->instances[i].gpu_instance == gpu_instance)
            return fill(&at, sample);
    return INVALID_ARGUMENT;
}

static int flow_of(unsigned int metric)
{
    switch (metric) {
    case METRIC_PCIE_TX: return PCIE_TX;
    case METRIC_PCIE_RX: return PCIE_RX;
    case METRIC_NVLINK_TX: return NVLINK_TX;
    case METRIC_NVLINK_RX: return NVLINK_RX;
    default: return -1;
    }
}

static void answer(const struct device *device, const struct gpm_metrics *asked, struct gpm_metric *out)
{
    out->value = 0;
    out->code = NOT_SUPPORTED;
    out->info = (struct metric_info){NULL, NULL, NULL};
    for (uint32_t i = 0; i < device->metric_count && i < MAX_METRICS; i++)
        if (device->metrics[i].id == out->id) {
            out->code = device->metrics[i].code;
            out->value = device->metrics[i].value;
            return;
        }
    int flow = flow_of(out->id);
    if (flow < 0 || (flow >= NVLINK_TX && !(device->features & FEATURE_NVLINK)))
        return;
    double seconds = (asked->newer->at_us - asked->older->at_us) / 1e6;
    out->code = SUCCESS;
    out->value = seconds > 0 ? (asked->newer->bytes[flow] - asked->older->bytes[flow]) / seconds / MEBIBYTE : NAN;
}

API result nvmlGpmMetricsGet(struct gpm_metrics *asked)
{
    if (!is_initialized())
        return UNINITIALIZED;
    if (!asked || !asked->older || !asked->newer || !asked->older->device
        || asked->older->device != asked->newer->device)
        return INVALID_ARGUMENT;
    if (asked->version != GPM_VERSION)
        return ARGUMENT_VERSION_MISMATCH;
    int device = asked->newer->device - 1;
    result code = enter(__func__, device);
    for (unsigned int i = 0; !code && i < asked->count; i++)
        answer(&control()->devices[device], asked, &asked->metrics[i]);
    return code;
}
