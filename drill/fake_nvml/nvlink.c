/* NVLink: which links are up, and what went wrong on them. Traffic is read as field values. */
#include "internal.h"

#define LINK_TARGET(which, link)                                   \
    TARGET(which, FEATURE_NVLINK, WHOLE_GPU);                      \
    if ((link) >= MAX_LINKS || (link) >= at.device->nvlink_count)  \
        return INVALID_ARGUMENT

API result nvmlDeviceGetNvLinkState(handle which, unsigned int link, unsigned int *out)
{
    LINK_TARGET(which, link);
    *out = at.device->nvlink_active >> link & 1;
    return SUCCESS;
}

API result nvmlDeviceGetNvLinkVersion(handle which, unsigned int link, unsigned int *out)
{
    LINK_TARGET(which, link);
    *out = at.device->nvlink_version;
    return SUCCESS;
}

API result nvmlDeviceGetNvLinkErrorCounter(handle which, unsigned int link, unsigned int counter,
                                           unsigned long long *out)
{
    LINK_TARGET(which, link);
    if (counter >= LINK_ERRORS)
        return INVALID_ARGUMENT;
    *out = at.device->link_errors[link][counter];
    return SUCCESS;
}
