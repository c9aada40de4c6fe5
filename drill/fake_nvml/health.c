/* How full, busy, warm and sound a GPU is. */
#include "internal.h"

#define MEMORY_V2 (2u << 24 | (unsigned int)sizeof(struct memory_v2))

/* Version 1 knows no reserved part and counts it as used. */
API result nvmlDeviceGetMemoryInfo(handle which, struct memory *out)
{
    TARGET(which, FEATURE_MEMORY, ANY_HANDLE);
    out->total = at.instance ? at.instance->memory_total : at.device->memory_total;
    out->used = at.instance ? at.instance->memory_used + at.instance->memory_reserved
                            : at.device->memory_used + at.device->memory_reserved;
    out->free = out->total - out->used;
    return SUCCESS;
}

API result nvmlDeviceGetMemoryInfo_v2(handle which, struct memory_v2 *out)
{
    TARGET(which, FEATURE_MEMORY, ANY_HANDLE);
    if (out->version != MEMORY_V2)
        return ARGUMENT_VERSION_MISMATCH;
    out->total = at.instance ? at.instance->memory_total : at.device->memory_total;
    out->used = at.instance ? at.instance->memory_used : at.device->memory_used;
    out->reserved = at.instance ? at.instance->memory_reserved : at.device->memory_reserved;
    out->free = out->total - out->used - out->reserved;
    if (control()->reserved_in_used)
        out->used += out->reserved;
    return SUCCESS;
}

API result nvmlDeviceGetBAR1MemoryInfo(handle which, struct bar1_memory *out)
{
    TARGET(which, FEATURE_MEMORY, WHOLE_GPU);
    out->total = at.device->bar1_total;
    out->used = at.device->bar1_used;
    out->free = out->total - out->used;
    return SUCCESS;
}

API result nvmlDeviceGetUtilizationRates(handle which, struct utilization *out)
{
    TARGET(which, FEATURE_UTILIZATION, WHOLE_GPU);
    out->gpu = at.device->gpu_util;
    out->memory = at.device->memory_util;
    return SUCCESS;
}

API result nvmlDeviceGetTemperature(handle which, int sensor, unsigned int *out)
{
    TARGET(which, 0, WHOLE_GPU);
    if (sensor != 0)
        return INVALID_ARGUMENT;
    *out = at.device->temperature;
    return SUCCESS;
}

NUMBER(nvmlDeviceGetPowerUsage, FEATURE_POWER, unsigned int, power_mw)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, FEATURE_POWER, unsigned long long, energy_mj)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, FEATURE_CLOCK_REASONS, unsigned long long, clock_reasons)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, FEATURE_CLOCK_REASONS, unsigned long long, clock_reasons)

/* nvmlPerfPolicyType_t numbers the last two apart from the others. */
API result nvmlDeviceGetViolationStatus(handle which, unsigned int policy, struct violation_time *out)
{
    TARGET(which, FEATURE_CLOCK_REASONS, WHOLE_GPU);
    if (policy == 10 || policy == 11)
        policy -= 4;
    else if (policy > 5)
        return INVALID_ARGUMENT;
    out->reference_us = (unsigned long long)now_us();
    out->violation_ns = at.device->violations_ns[policy];
    return SUCCESS;
}

/* nvmlClockType_t: 0 graphics, 1 SM, 2 memory; MHz */
API result nvmlDeviceGetClockInfo(handle which, unsigned int type, unsigned int *out)
{
    TARGET(which, 0, WHOLE_GPU);
    if (type > 3)
        return INVALID_ARGUMENT;
    if (type == 3)
        return NOT_SUPPORTED; /* the video clock */
    *out = type == 2 ? at.device->memory_clock : at.device->sm_clock;
    return SUCCESS;
}

API result nvmlDeviceGetEccMode(handle which, unsigned int *current, unsigned int *pending)
{
    TARGET(which, FEATURE_ECC, WHOLE_GPU);
    *current = *pending = at.device->ecc_enabled;
    return SUCCESS;
}

unsigned long long ecc_total(const struct device *device, int kind, int counter)
{
    unsigned long long total = 0;
    for (int location = 0; location < LOCATIONS; location++)
        total += device->ecc[kind][counter][location];
    return total;
}

/* Counts exist while ECC is on. */
static result ecc_refusal(const struct device *device, int kind, int counter)
{
    if (kind < 0 || kind > 1 || counter < 0 || counter > 1)
        return INVALID_ARGUMENT;
    return device->ecc_enabled ? SUCCESS : NOT_SUPPORTED;
}

API result nvmlDeviceGetTotalEccErrors(handle which, int kind, int counter, unsigned long long *out)
{
    TARGET(which, FEATURE_ECC, WHOLE_GPU);
    result code = ecc_refusal(at.device, kind, counter);
    if (!code)
        *out = ecc_total(at.device, kind, counter);
    return code;
}

API result nvmlDeviceGetDetailedEccErrors(handle which, int kind, int counter, struct ecc_counts *out)
{
    TARGET(which, FEATURE_ECC, WHOLE_GPU);
    result code = ecc_refusal(at.device, kind, counter);
    if (code)
        return code;
    const uint64_t *counts = at.device->ecc[kind][counter];
    *out = (struct ecc_counts){counts[0], counts[1], counts[2], counts[3]};
    return SUCCESS;
}

API result nvmlDeviceGetMemoryErrorCounter(handle which, int kind, int counter, int location,
                                           unsigned long long *out)
{
    TARGET(which, FEATURE_ECC, WHOLE_GPU);
    result code = ecc_refusal(at.device, kind, counter);
    if (code)
        return code;
    if (location < 0 || location >= LOCATIONS)
        return INVALID_ARGUMENT;
    *out = at.device->ecc[kind][counter][location];
    return SUCCESS;
}

API result nvmlDeviceGetRemappedRows(handle which, unsigned int *correctable, unsigned int *uncorrectable,
                                     unsigned int *pending, unsigned int *failed)
{
    TARGET(which, FEATURE_REMAPPED_ROWS, WHOLE_GPU);
    *correctable = at.device->remapped[0];
    *uncorrectable = at.device->remapped[1];
    *pending = at.device->remapped[2];
    *failed = at.device->remapped[3];
    return SUCCESS;
}
