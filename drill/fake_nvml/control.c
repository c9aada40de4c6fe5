/* The control block, its clock, its rules and the handles of GPUs. */
#define _GNU_SOURCE
#include "internal.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANDLE_TAG 0x7eull
#define HANDLE_TAG_SHIFT 40
#define CHANGE_US 20 /* what a change of rates takes */
#define CHANGE_TRIES 1000

static struct control *block;
/* Each process initialises for itself; handles carry the generation, so that one from before a shutdown is stale. */
static int users;
static uint32_t generation;

struct control *control(void)
{
    if (block)
        return block;
    const char *path = getenv("FAKE_NVML_CONTROL");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return NULL;
    struct stat status;
    struct control *mapped = MAP_FAILED;
    if (!fstat(file, &status) && (size_t)status.st_size >= sizeof *mapped)
        mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return NULL;
    if (mapped->magic != CONTROL_MAGIC || mapped->version != CONTROL_VERSION || mapped->size != sizeof *mapped) {
        munmap(mapped, sizeof *mapped);
        return NULL;
    }
    return block = mapped;
}

double real_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

double now_us(void)
{
    return block->clock_us > 0 ? block->clock_us : real_us();
}

void nap(uint32_t us)
{
    struct timespec left = {us / 1000000, (long)(us % 1000000) * 1000};
    while (us && nanosleep(&left, &left))
        ;
}

int is_initialized(void)
{
    return __atomic_load_n(&users, __ATOMIC_ACQUIRE) > 0;
}

/* A parent waits for its vfork child in state D, as in a driver that doesn't answer: /proc shows it, and no
 * signal but SIGKILL reaches the thread. The child shares the block, sees the rule released, and doesn't outlive
 * its parent. */
static void hang_uninterruptibly(volatile uint32_t *hang)
{
    pid_t parent = getpid(), child = vfork();
    if (child == 0) {
        while (*hang && getppid() == parent)
            usleep(1000);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

result enter(const char *function, int device)
{
    if (!control())
        return strcmp(function, "nvmlInitWithFlags") ? UNINITIALIZED : DRIVER_NOT_LOADED;
    __atomic_add_fetch(&block->calls, 1, __ATOMIC_RELAXED);
    uint32_t count = __atomic_load_n(&block->rule_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < MAX_RULES; i++) {
        struct rule *rule = &block->rules[i];
        if ((rule->device >= 0 && rule->device != device)
            || (strcmp(rule->function, "*") && strncmp(rule->function, function, sizeof rule->function)))
            continue;
        uint32_t hit = __atomic_add_fetch(&rule->hits, 1, __ATOMIC_RELAXED);
        if (hit <= rule->after || (rule->times && hit > rule->after + rule->times))
            continue;
        __atomic_add_fetch(&rule->held, 1, __ATOMIC_ACQ_REL);
        nap(rule->delay_us);
        volatile uint32_t *hang = &rule->hang;
        if (*hang == HANG_UNINTERRUPTIBLE)
            hang_uninterruptibly(hang);
        while (*hang)
            usleep(1000);
        result code = rule->code;
        __atomic_sub_fetch(&rule->held, 1, __ATOMIC_ACQ_REL);
        if (code >= 0)
            return code;
    }
    return SUCCESS;
}

handle handle_of(int device, int instance)
{
    uint64_t bits = HANDLE_TAG << HANDLE_TAG_SHIFT | (uint64_t)(generation & 0xffffff) << 16;
    return (handle)(uintptr_t)(bits | (uint64_t)(instance + 1) << 8 | (uint64_t)device);
}

result find_target(const char *function, handle which, uint32_t feature, enum reach reach, struct target *at)
{
    if (!is_initialized())
        return UNINITIALIZED;
    uint64_t bits = (uintptr_t)which;
    uint32_t device = bits & 0xff, instance = bits >> 8 & 0xff;
    if (bits >> HANDLE_TAG_SHIFT != HANDLE_TAG || (bits >> 16 & 0xffffff) != (generation & 0xffffff)
        || device >= block->device_count || instance > MAX_INSTANCES)
        return INVALID_ARGUMENT;
    at->device = &block->devices[device];
    at->instance = instance ? &at->device->instances[instance - 1] : NULL;
    at->index = (int)device;
    result code = enter(function, at->index);
    if (code)
        return code;
    if (at->device->presence != PRESENT)
        return GPU_IS_LOST;
    /* an instance that a new partitioning took away leaves its handle behind */
    if (at->instance && (instance > at->device->instance_count || !at->instance->uuid[0]))
        return INVALID_ARGUMENT;
    if ((at->instance && reach == WHOLE_GPU) || (at->device->features & feature) != feature)
        return NOT_SUPPORTED;
    return SUCCESS;
}

static struct flow_rate rate_in_force(const struct device *device, enum flow flow)
{
    for (int tries = 0;; tries++) {
        uint32_t version = __atomic_load_n(&device->flows.version, __ATOMIC_ACQUIRE);
        struct flow_rate rate = device->flows.slot[version / 2 % 2][flow];
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        int is_settled = version % 2 == 0 && version == __atomic_load_n(&device->flows.version, __ATOMIC_RELAXED);
        /* one who drives may be killed in the middle of a change */
        if (is_settled || tries >= CHANGE_TRIES)
            return rate;
        nap(CHANGE_US);
    }
}

double flowed(const struct device *device, enum flow flow, double at_us)
{
    struct flow_rate rate = rate_in_force(device, flow);
    double since = at_us - rate.since_us;
    return rate.base + (since > 0 ? rate.rate * since / 1e6 : 0);
}

double flow_now(const struct device *device, enum flow flow)
{
    return rate_in_force(device, flow).rate;
}

result put_text(char *out, unsigned int size, const char *text)
{
    if (!out)
        return INVALID_ARGUMENT;
    if (strlen(text) + 1 > size)
        return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}

API result nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    result code = enter(__func__, -1);
    if (code)
        return code;
    if (__atomic_fetch_add(&users, 1, __ATOMIC_ACQ_REL) == 0)
        generation++;
    return SUCCESS;
}

API result nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

API result nvmlShutdown(void)
{
    if (!is_initialized())
        return UNINITIALIZED;
    result code = enter(__func__, -1);
    if (!code)
        __atomic_sub_fetch(&users, 1, __ATOMIC_ACQ_REL);
    return code;
}
