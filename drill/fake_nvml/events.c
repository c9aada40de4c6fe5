/* Event sets: each tells what happened on the GPUs registered with it, of the kinds registered, from then on. */
#include "internal.h"
#include <stdlib.h>

#define POLL_US 20000 /* a real driver sleeps: waking often would count as CPU of whoever waits */

struct event_set {
    uint32_t next;
    uint64_t types[MAX_DEVICES];
};

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
    return SUCCESS;
}

API result nvmlEventSetFree(struct event_set *set)
{
    if (!is_initialized())
        return UNINITIALIZED;
    free(set);
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

API result nvmlEventSetWait_v2(struct event_set *set, struct event_data *out, unsigned int timeout_ms)
{
    if (!is_initialized())
        return UNINITIALIZED;
    if (!set || !out)
        return INVALID_ARGUMENT;
    result code = enter(__func__, -1);
    if (code)
        return code;
    for (unsigned long long waited_us = 0;; waited_us += POLL_US) {
        const struct event *event = next_event(set);
        if (event) {
            *out = (struct event_data){handle_of(event->device, -1), event->type, event->data, OUTSIDE_MIG,
                                       OUTSIDE_MIG};
            return SUCCESS;
        }
        if (has_lost_a_gpu(set))
            return GPU_IS_LOST;
        if (waited_us >= timeout_ms * 1000ull)
            return TIMEOUT;
        nap(POLL_US);
    }
}
