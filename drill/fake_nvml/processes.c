/* Who runs on a GPU, how much of it each process takes, and the driver's own samples. */
#include "internal.h"
#include <stddef.h>

#define SAMPLE_US 166667 /* the driver samples between every 1/6 s and every second */
#define SAMPLES_KEPT 100

static int is_on(const struct target *at, const struct process *process)
{
    return !at->instance || (process->gpu_instance == at->instance->gpu_instance
                             && process->compute_instance == at->instance->compute_instance);
}

static struct process_info told(const struct process *process)
{
    return (struct process_info){process->pid, process->memory, process->gpu_instance, process->compute_instance};
}

/* Writes what fits and tells how many there are: callers ask for the number first, with no room. */
static result list(const struct target *at, enum process_kind kind, unsigned int *count, struct process_info *out,
                   struct process_info_v1 *old, int are_wide)
{
    unsigned int room = out || old ? *count : 0, found = 0;
    for (uint32_t i = 0; i < at->device->process_count && i < MAX_PROCESSES; i++) {
        const struct process *process = &at->device->processes[i];
        if (process->kind != kind || !is_on(at, process))
            continue;
        if (found < room && are_wide && out)
            ((struct wide_process_info *)out)[found] = (struct wide_process_info){told(process), 0};
        else if (found < room && out)
            out[found] = told(process);
        if (found < room && old)
            old[found] = (struct process_info_v1){process->pid, process->memory};
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

/* The second version's layout was that of the third from the start. */
#define LIST(function, kind, are_wide)                                                            \
    API result function(handle which, unsigned int *count, struct process_info *out)              \
    {                                                                                             \
        TARGET(which, FEATURE_PROCESSES, ANY_HANDLE);                                             \
        return count ? list(&at, kind, count, out, NULL, are_wide) : INVALID_ARGUMENT;            \
    }

#define WIDE (control()->wide_processes != 0)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, PROCESS_COMPUTE, WIDE)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, PROCESS_COMPUTE, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, PROCESS_GRAPHICS, WIDE)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, PROCESS_GRAPHICS, 0)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, PROCESS_MPS, WIDE)

API result nvmlDeviceGetComputeRunningProcesses(handle which, unsigned int *count, struct process_info_v1 *out)
{
    TARGET(which, FEATURE_PROCESSES, ANY_HANDLE);
    return count ? list(&at, PROCESS_COMPUTE, count, NULL, out, 0) : INVALID_ARGUMENT;
}

static unsigned long long newest_sample(void)
{
    return (unsigned long long)(now_us() / SAMPLE_US) * SAMPLE_US;
}

API result nvmlDeviceGetProcessUtilization(handle which, struct process_utilization *out, unsigned int *count,
                                           unsigned long long last_seen)
{
    TARGET(which, FEATURE_SAMPLES, WHOLE_GPU);
    unsigned long long newest = newest_sample();
    unsigned int room = out ? *count : 0, found = 0;
    for (uint32_t i = 0; newest > last_seen && i < at.device->process_count && i < MAX_PROCESSES; i++) {
        const struct process *process = &at.device->processes[i];
        if (!(process->sm_util | process->memory_util | process->encoder_util | process->decoder_util))
            continue;
        if (found < room)
            out[found] = (struct process_utilization){process->pid, newest, process->sm_util, process->memory_util,
                                                      process->encoder_util, process->decoder_util};
        found++;
    }
    *count = found;
    if (!found)
        return NOT_FOUND; /* idle, or nothing new */
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

/* nvmlSamplingType_t, as far as there is something to tell */
static int sampled(const struct device *device, int type, unsigned int *value)
{
    switch (type) {
    case 0: *value = device->power_mw; return 1;
    case 1: *value = device->gpu_util; return 1;
    case 2: *value = device->memory_util; return 1;
    case 5: *value = device->sm_clock; return 1;
    case 6: *value = device->memory_clock; return 1;
    default: return 0;
    }
}

API result nvmlDeviceGetSamples(handle which, int type, unsigned long long last_seen, int *value_type,
                                unsigned int *count, struct sample *out)
{
    TARGET(which, FEATURE_SAMPLES, WHOLE_GPU);
    unsigned int value;
    if (!sampled(at.device, type, &value))
        return NOT_SUPPORTED;
    unsigned long long newest = newest_sample(), span = SAMPLES_KEPT * (unsigned long long)SAMPLE_US;
    unsigned long long after = newest > span && last_seen < newest - span ? newest - span : last_seen;
    unsigned int found = newest > after ? (unsigned int)((newest - after) / SAMPLE_US) : 0;
    if (!found)
        return NOT_FOUND;
    *value_type = VALUE_UINT;
    if (!out) {
        *count = found;
        return SUCCESS;
    }
    *count = found < *count ? found : *count;
    for (unsigned int i = 0; i < *count; i++) {
        out[i].timestamp = newest - (unsigned long long)(*count - 1 - i) * SAMPLE_US;
        out[i].value.ull = 0;
        out[i].value.ui = value;
    }
    return SUCCESS;
}
