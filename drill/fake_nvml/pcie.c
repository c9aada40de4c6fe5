/* The PCIe link and what goes over it. Transmit is GPU to host, receive is host to GPU. */
#include "internal.h"

#define BUSY_LINK 1e6 /* bytes/s in one direction above which a link that saves power runs at full speed */
#define KILOBYTE 1000.0

NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, FEATURE_PCIE_LINK, unsigned int, generation_max)
/* nvmlPcieLinkMaxSpeed counts as generations do */
NUMBER(nvmlDeviceGetPcieLinkMaxSpeed, FEATURE_PCIE_LINK, unsigned int, generation_max)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, FEATURE_PCIE_LINK, unsigned int, generation_gpu_max)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, FEATURE_PCIE_LINK, unsigned int, width_max)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, FEATURE_PCIE_LINK, unsigned int, width_current)
NUMBER(nvmlDeviceGetPcieReplayCounter, FEATURE_PCIE_LINK, unsigned int, replays)

static uint32_t generation_now(const struct device *device)
{
    int is_busy = flow_now(device, PCIE_TX) > BUSY_LINK || flow_now(device, PCIE_RX) > BUSY_LINK;
    return is_busy ? device->generation_max : device->generation_idle;
}

API result nvmlDeviceGetCurrPcieLinkGeneration(handle which, unsigned int *out)
{
    TARGET(which, FEATURE_PCIE_LINK, WHOLE_GPU);
    *out = generation_now(at.device);
    return SUCCESS;
}

/* Millions of transfers a second on one lane, now. */
API result nvmlDeviceGetPcieSpeed(handle which, unsigned int *out)
{
    static const unsigned int speeds[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
    TARGET(which, FEATURE_PCIE_LINK, WHOLE_GPU);
    uint32_t generation = generation_now(at.device);
    *out = generation < sizeof speeds / sizeof *speeds ? speeds[generation] : 0;
    return SUCCESS;
}

/* KB/s over a window for which the call blocks. Under a clock that stands still the rate in force is the mean. */
API result nvmlDeviceGetPcieThroughput(handle which, int counter, unsigned int *out)
{
    TARGET(which, FEATURE_PCIE_THROUGHPUT, WHOLE_GPU);
    if (counter < 0 || counter > 1 || !out)
        return INVALID_ARGUMENT;
    enum flow flow = counter ? PCIE_RX : PCIE_TX;
    double begun = now_us(), before = flowed(at.device, flow, begun);
    nap(control()->window_us);
    double ended = now_us();
    double mean = flow_now(at.device, flow);
    if (control()->window_us && ended > begun)
        mean = (flowed(at.device, flow, ended) - before) / (ended - begun) * 1e6;
    *out = (unsigned int)(mean / KILOBYTE);
    return SUCCESS;
}
