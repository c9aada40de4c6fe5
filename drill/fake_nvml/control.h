/* The control block: one file, mapped by the fake library and by whoever drives it, so that the
 * GPUs change while a program runs on them. Plain values of fixed size, no pointers; block.py mirrors it
 * and a test compares both, offset by offset. */
#ifndef CONTROL_H
#define CONTROL_H
#include <stdint.h>

#define CONTROL_MAGIC 0x464e564cu
#define CONTROL_VERSION 2u
#define MAX_DEVICES 8
#define MAX_INSTANCES 8
#define MAX_LINKS 18 /* NVML_NVLINK_MAX_LINKS */
#define MAX_FIELDS 32
#define MAX_METRICS 16
#define MAX_PROCESSES 16
#define MAX_EVENTS 64
#define MAX_RULES 64
#define LOCATIONS 8 /* nvmlMemoryLocation_t: L1, L2, DRAM, registers, texture, texture shared, CBU, SRAM */
#define POLICIES 8  /* power, thermal, sync boost, board, low use, reliability, below app, below base clocks */
#define LINK_ERRORS 5 /* nvmlNvLinkErrorCounter_t: replay, recovery, CRC flit, CRC data, ECC data */

/* What a GPU can do; what it can't do answers NOT_SUPPORTED. */
enum feature {
    FEATURE_MEMORY = 1 << 0,
    FEATURE_UTILIZATION = 1 << 1,
    FEATURE_PCIE_THROUGHPUT = 1 << 2,
    FEATURE_PCIE_COUNTERS = 1 << 3,
    FEATURE_PCIE_LINK = 1 << 4,
    FEATURE_GPM = 1 << 5,
    FEATURE_CLOCK_REASONS = 1 << 6,
    FEATURE_ECC = 1 << 7,
    FEATURE_REMAPPED_ROWS = 1 << 8,
    FEATURE_EVENTS = 1 << 9,
    FEATURE_PROCESSES = 1 << 10,
    FEATURE_SAMPLES = 1 << 11,
    FEATURE_POWER = 1 << 12,
    FEATURE_MEMORY_TEMPERATURE = 1 << 13,
    FEATURE_NVLINK = 1 << 14,
};

enum presence { PRESENT = 0, LOST = 1, GONE = 2 };
enum hang { HANG_NONE = 0, HANG_SLEEPING = 1, HANG_UNINTERRUPTIBLE = 2 };
enum flow { PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX, FLOWS };
enum process_kind { PROCESS_COMPUTE = 0, PROCESS_GRAPHICS = 1, PROCESS_MPS = 2 };

/* What happens instead of, or before, the answer of one function. */
struct rule {
    char function[64];  /* the exported name, or *: all; empty: the rule is off */
    int32_t device;     /* -1: any */
    int32_t code;       /* the return code to give; -1: answer as ever */
    uint32_t delay_us;  /* asleep before the answer */
    uint32_t hang;      /* enum hang; the call goes on once this is back to 0 */
    uint32_t after;     /* so many matching calls pass first */
    uint32_t times;     /* so many calls are hit; 0: all */
    uint32_t hits;      /* matching calls, counted by the library */
    uint32_t held;      /* calls asleep or hanging in it now */
};

/* Bytes that flowed: base + rate since an instant. */
struct flow_rate {
    double rate; /* bytes/s */
    double base; /* bytes */
    double since_us;
};

/* The slot in force is version / 2 % 2. Python raises version to an odd number, takes the time, fills the other
 * slot and raises version again: who reads the old slot has read the clock before that time. */
struct flow_rates {
    uint32_t version;
    uint32_t spare;
    struct flow_rate slot[2][FLOWS];
};

struct instance { /* a MIG device: a compute instance of a GPU instance */
    char uuid[96];
    uint32_t gpu_instance, compute_instance;
    uint64_t memory_total, memory_used, memory_reserved; /* bytes */
};

struct field { /* a field value that is not the library's own */
    uint32_t id, scope;
    int32_t code, type; /* nvmlReturn_t, nvmlValueType_t */
    double value;
};

struct metric { /* a GPM metric that doesn't follow from traffic */
    uint32_t id;
    int32_t code;
    double value;
};

struct process {
    uint32_t pid, kind;
    uint32_t gpu_instance, compute_instance;             /* 0xFFFFFFFF outside MIG */
    uint32_t sm_util, memory_util, encoder_util, decoder_util; /* percent */
    uint64_t memory;                                     /* bytes; all ones: not available */
};

struct event {
    int32_t device;
    uint32_t spare;
    uint64_t type, data;
};

struct device {
    char name[96], uuid[96], serial[32], bus_id[32];
    uint32_t features, presence, architecture, minor, virtualization, persistence;
    uint32_t generation_max, generation_gpu_max, generation_idle, width_max, width_current, replays;
    uint32_t gpu_util, memory_util;                      /* percent */
    uint32_t temperature, memory_temperature;            /* degrees Celsius */
    uint32_t power_mw, ecc_enabled, mig_enabled, recovery_action;
    uint32_t nvlink_count, nvlink_version, nvlink_active; /* active: one bit a link */
    uint32_t sm_clock, memory_clock;                     /* MHz */
    uint32_t instance_count, field_count, metric_count, process_count;
    uint32_t remapped[4]; /* correctable, uncorrectable, pending, failed */
    uint32_t gpm_lag_us;  /* a GPM sample shows what had flowed so long ago */
    uint64_t memory_total, memory_used, memory_reserved; /* bytes */
    uint64_t bar1_total, bar1_used;                      /* bytes */
    uint64_t energy_mj, clock_reasons, event_types;
    uint64_t violations_ns[POLICIES];          /* time that clocks were held down, by its reason */
    uint64_t ecc[2][2][LOCATIONS];             /* [corrected, uncorrected][volatile, aggregate][location] */
    uint64_t link_errors[MAX_LINKS][LINK_ERRORS];
    struct flow_rates flows;
    struct instance instances[MAX_INSTANCES];
    struct field fields[MAX_FIELDS];
    struct metric metrics[MAX_METRICS];
    struct process processes[MAX_PROCESSES];
};

struct control {
    uint32_t magic, version, size, device_count;
    char driver[80], nvml[80];
    uint32_t cuda;      /* 1000 * major + 10 * minor */
    uint32_t window_us; /* how long the PCIe throughput call measures: 20000 on hardware */
    double clock_us;    /* above 0: the time, instead of the machine's monotonic clock */
    uint32_t rule_count, event_count;
    uint64_t calls; /* counted by the library */
    uint32_t wide_processes; /* the third process list has entries of 32 bytes, as in drivers 535.43 to 535.86 */
    uint32_t reserved_in_used; /* the second version of memory counts what is reserved as used too */
    struct rule rules[MAX_RULES];
    struct event events[MAX_EVENTS]; /* a ring: event n lies at n % MAX_EVENTS */
    struct device devices[MAX_DEVICES];
};
#endif
