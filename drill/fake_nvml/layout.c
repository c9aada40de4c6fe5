/* The layouts of this library, for the test that compares them with those of its callers. */
#include "internal.h"
#include <stddef.h>
#include <stdio.h>

static char text[8192];
static size_t length;

static void say(const char *name, size_t number)
{
    length += (size_t)snprintf(text + length, sizeof text - length, "%s %zu\n", name, number);
}

#define SIZE(type) say(#type, sizeof(struct type))
#define AT(type, member) say(#type "." #member, offsetof(struct type, member))

/* A line each: a struct and its size, or a member and its offset. */
API const char *fakeNvmlLayout(void)
{
    length = 0;
    SIZE(utilization); AT(utilization, memory);
    SIZE(memory); AT(memory, free); AT(memory, used);
    SIZE(memory_v2); AT(memory_v2, total); AT(memory_v2, reserved); AT(memory_v2, free); AT(memory_v2, used);
    SIZE(bar1_memory); AT(bar1_memory, free); AT(bar1_memory, used);
    SIZE(pci_info); AT(pci_info, domain); AT(pci_info, device); AT(pci_info, bus_id);
    SIZE(process_info); AT(process_info, memory); AT(process_info, gpu_instance);
    SIZE(process_utilization); AT(process_utilization, timestamp); AT(process_utilization, decoder);
    SIZE(event_data); AT(event_data, type); AT(event_data, data); AT(event_data, gpu_instance);
    SIZE(field_value); AT(field_value, timestamp); AT(field_value, type); AT(field_value, code);
    AT(field_value, value);
    SIZE(sample); AT(sample, value);
    SIZE(ecc_counts); AT(ecc_counts, memory);
    SIZE(gpm_metric); AT(gpm_metric, value);
    SIZE(gpm_metrics); AT(gpm_metrics, older); AT(gpm_metrics, metrics);
    SIZE(gpm_support);
    SIZE(violation_time); AT(violation_time, violation_ns);
    SIZE(rule); AT(rule, device); AT(rule, hang); AT(rule, held);
    SIZE(flow_rates); AT(flow_rates, slot);
    SIZE(instance); AT(instance, memory_total);
    SIZE(field); AT(field, value);
    SIZE(metric); AT(metric, value);
    SIZE(process); AT(process, sm_util); AT(process, memory);
    SIZE(event); AT(event, type);
    SIZE(device); AT(device, features); AT(device, gpu_util); AT(device, power_mw); AT(device, nvlink_active);
    AT(device, remapped); AT(device, gpm_lag_us); AT(device, memory_total); AT(device, energy_mj); AT(device, violations_ns); AT(device, ecc);
    AT(device, link_errors); AT(device, flows); AT(device, instances); AT(device, fields);
    AT(device, metrics); AT(device, processes);
    SIZE(control); AT(control, driver); AT(control, cuda); AT(control, clock_us); AT(control, rule_count);
    AT(control, calls); AT(control, wide_processes); AT(control, rules); AT(control, events); AT(control, devices);
    return text;
}
