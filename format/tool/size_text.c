/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/size_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "format/base/ckd.h"

#define FRACTION_DIGITS_MAX 6

struct unit {
    const char *name;
    uint64_t bytes;
};

static const struct unit units[] = {
    {"", 1},
    {"B", 1},
    {"K", UINT64_C(1) << 10},
    {"M", UINT64_C(1) << 20},
    {"G", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"kB", UINT64_C(1000)},
    {"KB", UINT64_C(1000)},
    {"MB", UINT64_C(1000000)},
    {"GB", UINT64_C(1000000000)},
    {"TB", UINT64_C(1000000000000)},
};

void k3_size_format(uint64_t bytes, char out_text[K3_SIZE_TEXT_BYTES])
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out_text, K3_SIZE_TEXT_BYTES, "%u B", (unsigned)bytes);
        return;
    }
    double value = (double)bytes / 1024;
    unsigned unit = 0;
    while (value >= 999.5 && unit < 5) { /* 999.5 would round to four digits */
        value /= 1024;
        unit++;
    }
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(out_text, K3_SIZE_TEXT_BYTES, "%.*f %s", digits, value, names[unit]);
}

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(units[i].name, name) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

/* Digits at *p, moved past them; false when there are none or too many. */
static bool take_digits(const char **p, unsigned digits_max, uint64_t *out_value,
                        unsigned *out_count)
{
    uint64_t value = 0;
    unsigned count = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++, count++) {
        if (count == digits_max || ckd_mul(&value, value, 10U) ||
            ckd_add(&value, value, (uint64_t)(**p - '0'))) {
            return false;
        }
    }
    *out_value = value;
    *out_count = count;
    return count > 0;
}

static bool parse(const char *text, uint64_t *out_bytes)
{
    const char *p = text;
    uint64_t whole = 0, fraction = 0;
    unsigned digits = 0, fraction_digits = 0;
    if (!take_digits(&p, 20, &whole, &digits)) {
        return false;
    }
    if (*p == '.') {
        p++;
        if (!take_digits(&p, FRACTION_DIGITS_MAX, &fraction, &fraction_digits)) {
            return false;
        }
    }
    if (*p == ' ' && p[1] != '\0') {
        p++;
    }
    const struct unit *unit = find_unit(p);
    if (!unit) {
        return false;
    }
    uint64_t scale = 1;
    for (unsigned i = 0; i < fraction_digits; i++) {
        scale *= 10;
    }
    uint64_t bytes = 0; /* the fraction's product stays below 10^6 * 2^40 */
    if (ckd_mul(&bytes, whole, unit->bytes) ||
        ckd_add(&bytes, bytes, fraction * unit->bytes / scale)) {
        return false;
    }
    *out_bytes = bytes;
    return true;
}

enum k3_code k3_size_parse(const char *text, uint64_t *out_bytes, struct k3_error *err)
{
    if (!parse(text, out_bytes)) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "'%.40s' is not a size (such as 12GiB, 1.5G, 8GB or 4096)", text);
    }
    return K3_OK;
}
