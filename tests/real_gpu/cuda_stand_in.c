/* CUDA's driver library as far as the copier calls it: it checks what it is given and copies in host memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_CONTEXT = 201 };
#define CONTEXT ((void *)0x5a5a5a5a5a5aull)

static int is_ready, users;
static __thread void *current;
static void *host, *memory;

int cuInit(unsigned int flags)
{
    is_ready = flags == 0;
    return is_ready ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGetByPCIBusId(int *device, const char *bus_id)
{
    if (!is_ready)
        return NOT_INITIALIZED;
    *device = 7;
    return strstr(bus_id, ":19:00.0") ? SUCCESS : INVALID_DEVICE;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    users++;
    *context = CONTEXT;
    return device == 7 ? SUCCESS : INVALID_DEVICE;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device == 7 && --users == 0 && !host && !memory ? SUCCESS : INVALID_VALUE;
}

int cuCtxSetCurrent(void *context)
{
    current = context;
    return context == CONTEXT ? SUCCESS : INVALID_CONTEXT;
}

int cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
    if (current != CONTEXT || flags)
        return INVALID_CONTEXT;
    *out = host = calloc(1, size);
    return host ? SUCCESS : INVALID_VALUE;
}

int cuMemAlloc_v2(uint64_t *out, size_t size)
{
    if (current != CONTEXT)
        return INVALID_CONTEXT;
    memory = calloc(1, size);
    *out = (uint64_t)(uintptr_t)memory;
    return memory ? SUCCESS : INVALID_VALUE;
}

static int copy(void *to, const void *from, size_t size)
{
    if (current != CONTEXT)
        return INVALID_CONTEXT;
    memcpy(to, from, size);
    return SUCCESS;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    return to == (uint64_t)(uintptr_t)memory && from == host ? copy(memory, host, size) : INVALID_VALUE;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
    return from == (uint64_t)(uintptr_t)memory && to == host ? copy(host, memory, size) : INVALID_VALUE;
}

int cuMemFree_v2(uint64_t at)
{
    free((void *)(uintptr_t)at);
    memory = NULL;
    return SUCCESS;
}

int cuMemFreeHost(void *at)
{
    free(at);
    host = NULL;
    return SUCCESS;
}
