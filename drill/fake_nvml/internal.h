/* What the parts of the fake library share. */
#ifndef INTERNAL_H
#define INTERNAL_H
#include "control.h"
#include "nvml_api.h"

#define API __attribute__((visibility("default")))
#define OUTSIDE_MIG 0xFFFFFFFFu

struct target {
    struct device *device;
    struct instance *instance; /* NULL: the whole GPU */
    int index;
};

enum reach { WHOLE_GPU, ANY_HANDLE };

/* The block named by $FAKE_NVML_CONTROL, or NULL. */
struct control *control(void);
/* Microseconds on the block's clock, and on the machine's. */
double now_us(void);
double real_us(void);
void nap(uint32_t us);
int is_initialized(void);
/* Counts a call of `function` and does what the rules say; `device` -1: none. */
result enter(const char *function, int device);
/* Finds the GPU behind a handle, after the rules, and says why not: unknown or stale, lost, not supported. */
result find_target(const char *function, handle which, uint32_t feature, enum reach reach, struct target *at);
handle handle_of(int device, int instance);
/* Bytes that have flowed by `at_us`, and bytes/s. */
double flowed(const struct device *device, enum flow flow, double at_us);
double flow_now(const struct device *device, enum flow flow);
result put_text(char *out, unsigned int size, const char *text);
unsigned long long ecc_total(const struct device *device, int kind, int counter);

/* Opens every function of one device: `at` is the target from here on. */
#define TARGET(which, feature, reach)                                            \
    struct target at;                                                            \
    do {                                                                         \
        result code_ = find_target(__func__, which, feature, reach, &at);        \
        if (code_)                                                               \
            return code_;                                                        \
    } while (0)

/* A function that gives one number of the whole GPU. */
#define NUMBER(function, feature, type, member)           \
    API result function(handle which, type *out)          \
    {                                                     \
        TARGET(which, feature, WHOLE_GPU);                \
        if (!out)                                         \
            return INVALID_ARGUMENT;                      \
        *out = at.device->member;                         \
        return SUCCESS;                                   \
    }
#endif
