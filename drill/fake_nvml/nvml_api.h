/* Names, numbers and layouts of the public NVML interface, as far as the fake answers it. */
#ifndef NVML_API_H
#define NVML_API_H
#include <stdint.h>

typedef int result;
typedef void *handle;

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    OUT_OF_MEMORY = 20,
    ARGUMENT_VERSION_MISMATCH = 25,
};

enum { VALUE_DOUBLE, VALUE_UINT, VALUE_ULONG, VALUE_ULONGLONG, VALUE_SLONGLONG, VALUE_SINT, VALUE_USHORT };

typedef union {
    double d;
    unsigned int ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
    int si;
    unsigned short us;
} value;

struct utilization { unsigned int gpu, memory; };
struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned int version; unsigned long long total, reserved, free, used; };
struct bar1_memory { unsigned long long total, free, used; };
struct pci_info {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};
struct process_info_v1 { unsigned int pid; unsigned long long memory; };
struct process_info { unsigned int pid; unsigned long long memory; unsigned int gpu_instance, compute_instance; };
struct wide_process_info { struct process_info info; unsigned long long protected_memory; };
struct process_utilization {
    unsigned int pid;
    unsigned long long timestamp;
    unsigned int sm, memory, encoder, decoder;
};
struct event_data {
    handle device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
};
struct field_value {
    unsigned int id, scope;
    long long timestamp, latency_us;
    int type;
    result code;
    value value;
};
struct sample { unsigned long long timestamp; value value; };
struct ecc_counts { unsigned long long l1, l2, memory, registers; };
struct violation_time { unsigned long long reference_us, violation_ns; };
struct metric_info { const char *short_name, *long_name, *unit; };
struct gpm_metric { unsigned int id; result code; double value; struct metric_info info; };
struct gpm_sample;
struct gpm_metrics {
    unsigned int version, count;
    struct gpm_sample *older, *newer;
    struct gpm_metric metrics[]; /* how many a caller's array holds depends on its headers */
};
struct gpm_support { unsigned int version, is_supported; };
#endif
