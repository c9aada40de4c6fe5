/* Which GPUs there are and what they are called. */
#include "internal.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A fault before any device is known: the library isn't initialised, or a rule says so. */
#define ENTER()                                  \
    do {                                         \
        if (!is_initialized())                   \
            return UNINITIALIZED;                \
        result code_ = enter(__func__, -1);      \
        if (code_)                               \
            return code_;                        \
    } while (0)

API const char *nvmlErrorString(result code)
{
    static __thread char text[32];
    snprintf(text, sizeof text, "fake NVML error %d", code);
    return text;
}

API result nvmlSystemGetDriverVersion(char *out, unsigned int size)
{
    ENTER();
    return put_text(out, size, control()->driver);
}

API result nvmlSystemGetNVMLVersion(char *out, unsigned int size)
{
    ENTER();
    return put_text(out, size, control()->nvml);
}

API result nvmlSystemGetCudaDriverVersion(int *out)
{
    ENTER();
    *out = (int)control()->cuda;
    return SUCCESS;
}

API result nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    return nvmlSystemGetCudaDriverVersion(out);
}

API result nvmlDeviceGetCount_v2(unsigned int *out)
{
    ENTER();
    unsigned int count = 0;
    for (uint32_t i = 0; i < control()->device_count; i++)
        count += control()->devices[i].presence != GONE;
    *out = count;
    return SUCCESS;
}

/* The handle of a GPU that is still enumerated. */
static result open_device(const char *function, int device, handle *out)
{
    result code = enter(function, device);
    if (code)
        return code;
    if (control()->devices[device].presence == LOST)
        return GPU_IS_LOST;
    *out = handle_of(device, -1);
    return SUCCESS;
}

API result nvmlDeviceGetHandleByIndex_v2(unsigned int index, handle *out)
{
    if (!is_initialized())
        return UNINITIALIZED;
    for (uint32_t i = 0; i < control()->device_count; i++)
        if (control()->devices[i].presence != GONE && index-- == 0)
            return open_device(__func__, (int)i, out);
    return INVALID_ARGUMENT;
}

API result nvmlDeviceGetHandleByUUID(const char *uuid, handle *out)
{
    if (!is_initialized())
        return UNINITIALIZED;
    for (uint32_t i = 0; i < control()->device_count; i++) {
        struct device *device = &control()->devices[i];
        if (device->presence == GONE)
            continue;
        if (!strcmp(uuid, device->uuid))
            return open_device(__func__, (int)i, out);
        for (uint32_t k = 0; k < device->instance_count; k++)
            if (device->instances[k].uuid[0] && !strcmp(uuid, device->instances[k].uuid)) {
                *out = handle_of((int)i, (int)k);
                return enter(__func__, (int)i);
            }
    }
    return NOT_FOUND;
}

API result nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, handle *out)
{
    if (!is_initialized())
        return UNINITIALIZED;
    for (uint32_t i = 0; i < control()->device_count; i++)
        if (control()->devices[i].presence != GONE && !strcasecmp(bus_id, control()->devices[i].bus_id))
            return open_device(__func__, (int)i, out);
    return NOT_FOUND;
}

API result nvmlDeviceGetUUID(handle which, char *out, unsigned int size)
{
    TARGET(which, 0, ANY_HANDLE);
    return put_text(out, size, at.instance ? at.instance->uuid : at.device->uuid);
}

API result nvmlDeviceGetName(handle which, char *out, unsigned int size)
{
    TARGET(which, 0, ANY_HANDLE);
    return put_text(out, size, at.device->name);
}

API result nvmlDeviceGetSerial(handle which, char *out, unsigned int size)
{
    TARGET(which, 0, ANY_HANDLE);
    return at.device->serial[0] ? put_text(out, size, at.device->serial) : NOT_SUPPORTED; /* cards for desktops */
}

API result nvmlDeviceGetIndex(handle which, unsigned int *out)
{
    TARGET(which, 0, ANY_HANDLE);
    *out = at.instance ? (unsigned int)(at.instance - at.device->instances) : (unsigned int)at.index;
    return SUCCESS;
}

API result nvmlDeviceGetPciInfo_v3(handle which, struct pci_info *out)
{
    TARGET(which, 0, ANY_HANDLE);
    memset(out, 0, sizeof *out);
    strcpy(out->bus_id, at.device->bus_id);
    sscanf(at.device->bus_id, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xffff,
             out->bus & 0xff, out->device & 0xff);
    return SUCCESS;
}

NUMBER(nvmlDeviceGetMinorNumber, 0, unsigned int, minor)
NUMBER(nvmlDeviceGetArchitecture, 0, unsigned int, architecture)
NUMBER(nvmlDeviceGetPersistenceMode, 0, unsigned int, persistence)
NUMBER(nvmlDeviceGetVirtualizationMode, 0, unsigned int, virtualization)

API result nvmlDeviceGetMigMode(handle which, unsigned int *current, unsigned int *pending)
{
    TARGET(which, 0, WHOLE_GPU);
    *current = *pending = at.device->mig_enabled;
    return SUCCESS;
}

API result nvmlDeviceGetMaxMigDeviceCount(handle which, unsigned int *out)
{
    TARGET(which, 0, WHOLE_GPU);
    *out = at.device->mig_enabled ? 7 : 0; /* seven slices is what A100 to B200 can be cut into */
    return SUCCESS;
}

API result nvmlDeviceGetMigDeviceHandleByIndex(handle which, unsigned int index, handle *out)
{
    TARGET(which, 0, WHOLE_GPU);
    if (index >= at.device->instance_count || !at.device->instances[index].uuid[0])
        return NOT_FOUND; /* indices may have gaps */
    *out = handle_of(at.index, (int)index);
    return SUCCESS;
}

API result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle which, handle *out)
{
    TARGET(which, 0, ANY_HANDLE);
    if (!at.instance)
        return INVALID_ARGUMENT;
    *out = handle_of(at.index, -1);
    return SUCCESS;
}

API result nvmlDeviceIsMigDeviceHandle(handle which, unsigned int *out)
{
    TARGET(which, 0, ANY_HANDLE);
    *out = at.instance != NULL;
    return SUCCESS;
}

API result nvmlDeviceGetGpuInstanceId(handle which, unsigned int *out)
{
    TARGET(which, 0, ANY_HANDLE);
    if (!at.instance)
        return NOT_SUPPORTED;
    *out = at.instance->gpu_instance;
    return SUCCESS;
}

API result nvmlDeviceGetComputeInstanceId(handle which, unsigned int *out)
{
    TARGET(which, 0, ANY_HANDLE);
    if (!at.instance)
        return NOT_SUPPORTED;
    *out = at.instance->compute_instance;
    return SUCCESS;
}
