/* Event sets: each tells what happened on the GPUs registered with it, of the kinds registered, from then on. */
#include "internal.h"
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define LOOK_MS 1000 /* what is set in the block without a touch of its file is seen after so long */

struct event_set {
    int bell; /* rings when whoever drives touches the block's file: a driver sleeps too, and costs nobody CPU */
    uint32_t next;
    uint64_t types[MAX_DEVICES];
};

static void release(struct event_set *set)
{
    if (set && set->bell >= 0)
        close(set->bell);
    free(set);
}

API result nvmlEventSetCreate(struct event_set **out)
{
    if (!is_initialized())
        return UNINITIALIZED;
    result code = enter(__func__, -1);
    if (code)
        return code;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return OUT_OF_MEMORY;
    (*out)->next = control()->event_count;
    (*out)->bell = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if ((*out)->bell < 0 || inotify_add_watch((*out)->bell, getenv("FAKE_NVML_CONTROL"), IN_ATTRIB) < 0) {
        release(*out);
        return OUT_OF_MEMORY;
    }
    return SUCCESS;
}

API result nvmlEventSetFree(struct event_set *set)
{
    if (!is_initialized())
        return UNINITIALIZED;
    release(set);
    return SUCCESS;
}

API result nvmlDeviceGetSupportedEventTypes(handle which, unsigned long long *out)
{
    TARGET(which, FEATURE_EVENTS, WHOLE_GPU);
    *out = at.device->event_types;
    return SUCCESS;
}

API result nvmlDeviceRegisterEvents(handle which, unsigned long long types, struct event_set *set)
{
    TARGET(which, FEATURE_EVENTS, WHOLE_GPU);
    if (!set)
        return INVALID_ARGUMENT;
    if (types & ~at.device->event_types)
        return NOT_SUPPORTED;
    set->types[at.index] |= types;
    return SUCCESS;
}

/* The next event that the set asked for, if there is one. */
static const struct event *next_event(struct event_set *set)
{
    uint32_t count = __atomic_load_n(&control()->event_count, __ATOMIC_ACQUIRE);
    if (count - set->next > MAX_EVENTS)
        set->next = count - MAX_EVENTS; /* the ring went round meanwhile */
    while (set->next != count) {
        const struct event *event = &control()->events[set->next++ % MAX_EVENTS];
        if (event->device >= 0 && event->device < MAX_DEVICES && set->types[event->device] & event->type)
            return event;
    }
    return NULL;
}

static int has_lost_a_gpu(const struct event_set *set)
{
    for (int i = 0; i < MAX_DEVICES; i++)
        if (set->types[i] && control()->devices[i].presence != PRESENT)
            return 1;
    return 0;
}

/* Sleeps until the bell rings, at most so long. */
static void doze(const struct event_set *set, double ms)
{
    struct pollfd bell = {set->bell, POLLIN, 0};
    char rung[4096];
    if (poll(&bell, 1, ms < LOOK_MS ? (int)ms + 1 : LOOK_MS) > 0)
        while (read(set->bell, rung, sizeof rung) > 0)
            ;
}

API result nvmlEventSetWait_v2(struct event_set *set, struct event_data *out, unsigned int timeout_ms)
{
    if (!is_initialized())
        return UNINITIALIZED;
    if (!set || !out)
        return INVALID_ARGUMENT;
    result code = enter(__func__, -1);
    if (code)
        return code;
    double until_us = real_us() + timeout_ms * 1e3;
    for (;;) {
        const struct event *event = next_event(set);
        if (event) {
            *out = (struct event_data){handle_of(event->device, -1), event->type, event->data, OUTSIDE_MIG,
                                       OUTSIDE_MIG};
            return SUCCESS;
        }
        if (has_lost_a_gpu(set))
            return GPU_IS_LOST;
        double left_us = until_us - real_us();
        if (left_us <= 0)
            return TIMEOUT;
        doze(set, left_us / 1e3);
    }
}
