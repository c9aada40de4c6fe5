/* Field values. The call succeeds whatever becomes of a single field: each carries its own return code. */
#include "internal.h"
#include <string.h>

#define ALL_LINKS 0xFFFFFFFFu
#define COUNTER_MODULUS 4294967296ull /* the PCIe byte counters have 32 bits */
#define KIBIBYTE 1024.0
#define RAW_PER_DATA 1.1 /* protocol overhead on a link; an assumption */

enum {
    FIELD_ECC_CORRECTED_VOLATILE = 3,
    FIELD_ECC_UNCORRECTED_AGGREGATE = 6,
    FIELD_VIOLATION_FIRST = 74,
    FIELD_VIOLATION_LAST = 81,
    FIELD_MEMORY_TEMPERATURE = 82,
    FIELD_ENERGY = 83,
    FIELD_PCIE_REPLAYS = 94,
    FIELD_NVLINK_DATA_TX = 138,
    FIELD_NVLINK_RAW_RX = 141,
    FIELD_REMAPPED_CORRECTABLE = 142,
    FIELD_REMAPPED_FAILED = 145,
    FIELD_POWER_AVERAGE = 185,
    FIELD_POWER_INSTANT = 186,
    FIELD_PCIE_TX_BYTES = 197,
    FIELD_PCIE_RX_BYTES = 198,
    FIELD_RECOVERY_ACTION = 230,
};

/* The driver leaves the union's other bytes as they are, so reading the wrong member gives nonsense. */
static result put(struct field_value *out, int type, double number)
{
    memset(&out->value, 0xA5, sizeof out->value);
    out->type = type;
    switch (type) {
    case VALUE_DOUBLE: out->value.d = number; break;
    case VALUE_UINT: out->value.ui = (unsigned int)number; break;
    case VALUE_ULONG: out->value.ul = (unsigned long)number; break;
    case VALUE_ULONGLONG: out->value.ull = (unsigned long long)number; break;
    case VALUE_SLONGLONG: out->value.sll = (long long)number; break;
    case VALUE_SINT: out->value.si = (int)number; break;
    case VALUE_USHORT: out->value.us = (unsigned short)number; break;
    default: return INVALID_ARGUMENT;
    }
    return SUCCESS;
}

/* Drivers add ECC counts to what the caller's buffer holds (NVIDIA/go-nvml#46): only a zeroed one reads right. */
static result add_ecc(const struct device *device, struct field_value *out)
{
    if (!(device->features & FEATURE_ECC) || !device->ecc_enabled)
        return NOT_SUPPORTED;
    unsigned int which = out->id - FIELD_ECC_CORRECTED_VOLATILE;
    out->type = VALUE_ULONGLONG;
    out->value.ull += ecc_total(device, which & 1, which >> 1 & 1);
    return SUCCESS;
}

/* KiB since the driver's start, of one link or of all: traffic spreads evenly over the links that are up. */
static result put_link_bytes(const struct device *device, struct field_value *out, double at_us)
{
    if (!(device->features & FEATURE_NVLINK))
        return NOT_SUPPORTED;
    if (out->scope != ALL_LINKS && out->scope >= device->nvlink_count)
        return INVALID_ARGUMENT;
    unsigned int which = out->id - FIELD_NVLINK_DATA_TX;
    double bytes = flowed(device, which & 1 ? NVLINK_RX : NVLINK_TX, at_us) * (which >= 2 ? RAW_PER_DATA : 1);
    if (out->scope != ALL_LINKS) {
        int is_up = device->nvlink_active >> out->scope & 1;
        bytes = is_up ? bytes / __builtin_popcount(device->nvlink_active) : 0;
    }
    return put(out, VALUE_ULONGLONG, bytes / KIBIBYTE);
}

static result put_if(const struct device *device, uint32_t feature, struct field_value *out, int type,
                     double number)
{
    return device->features & feature ? put(out, type, number) : NOT_SUPPORTED;
}

static result own_value(const struct device *device, struct field_value *out, double at_us)
{
    unsigned int id = out->id;
    if (id >= FIELD_ECC_CORRECTED_VOLATILE && id <= FIELD_ECC_UNCORRECTED_AGGREGATE)
        return add_ecc(device, out);
    if (id >= FIELD_NVLINK_DATA_TX && id <= FIELD_NVLINK_RAW_RX)
        return put_link_bytes(device, out, at_us);
    if (id >= FIELD_REMAPPED_CORRECTABLE && id <= FIELD_REMAPPED_FAILED)
        return put_if(device, FEATURE_REMAPPED_ROWS, out, VALUE_UINT,
                      device->remapped[id - FIELD_REMAPPED_CORRECTABLE]);
    if (id == FIELD_PCIE_TX_BYTES || id == FIELD_PCIE_RX_BYTES) {
        double bytes = flowed(device, id == FIELD_PCIE_TX_BYTES ? PCIE_TX : PCIE_RX, at_us);
        return put_if(device, FEATURE_PCIE_COUNTERS, out, VALUE_UINT,
                      (double)((unsigned long long)bytes % COUNTER_MODULUS));
    }
    if (id >= FIELD_VIOLATION_FIRST && id <= FIELD_VIOLATION_LAST)
        return put_if(device, FEATURE_CLOCK_REASONS, out, VALUE_ULONGLONG,
                      (double)device->violations_ns[id - FIELD_VIOLATION_FIRST]);
    switch (id) {
    case FIELD_MEMORY_TEMPERATURE:
        return put_if(device, FEATURE_MEMORY_TEMPERATURE, out, VALUE_UINT, device->memory_temperature);
    case FIELD_ENERGY: return put_if(device, FEATURE_POWER, out, VALUE_ULONGLONG, (double)device->energy_mj);
    case FIELD_PCIE_REPLAYS: return put_if(device, FEATURE_PCIE_LINK, out, VALUE_UINT, device->replays);
    case FIELD_POWER_AVERAGE:
    case FIELD_POWER_INSTANT: return put_if(device, FEATURE_POWER, out, VALUE_UINT, device->power_mw);
    case FIELD_RECOVERY_ACTION: return put(out, VALUE_UINT, device->recovery_action);
    default: return NOT_SUPPORTED;
    }
}

API result nvmlDeviceGetFieldValues(handle which, int count, struct field_value *values)
{
    TARGET(which, 0, WHOLE_GPU);
    if (count <= 0 || !values)
        return INVALID_ARGUMENT;
    double at_us = now_us();
    for (int i = 0; i < count; i++) {
        struct field_value *out = &values[i];
        const struct field *given = NULL;
        for (uint32_t k = 0; k < at.device->field_count && k < MAX_FIELDS; k++)
            if (at.device->fields[k].id == out->id && at.device->fields[k].scope == out->scope)
                given = &at.device->fields[k];
        out->timestamp = (long long)at_us;
        out->latency_us = 1;
        if (!given)
            out->code = own_value(at.device, out, at_us);
        else if ((out->code = given->code) == SUCCESS)
            out->code = put(out, given->type, given->value);
    }
    return SUCCESS;
}
