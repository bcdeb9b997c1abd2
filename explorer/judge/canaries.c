/* What became of canaries. Place: above verdict.c; below those that make them. */
#include "explorer/judge/canaries.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "explorer/judge/verdict.h"

void canary_tell(canary_t *canary, canary_fate_t fate, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(canary->by, sizeof(canary->by), format, args);
    va_end(args);
    verdict_clean(canary->by);
    canary->fate = fate;
}

void canaries_append(canaries_t *canaries, const canaries_t *others)
{
    CHECK(canaries->n + others->n <= CANARIES_MAX);
    for (uint32_t i = 0; i < others->n; i++) {
        canaries->list[canaries->n++] = others->list[i];
    }
}

const canary_t *canaries_deaf(const canaries_t *canaries)
{
    for (uint32_t i = 0; i < canaries->n; i++) {
        if (canaries->list[i].fate == CANARY_DEAF) {
            return &canaries->list[i];
        }
    }
    return NULL;
}

json_t *canaries_object(const canaries_t *canaries)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < canaries->n; i++) {
        const canary_t *canary = &canaries->list[i];
        json_t *condemned = canary->fate == CANARY_UNTRIED
                                ? json_null()
                                : json_boolean(canary->fate == CANARY_CONDEMNED);
        (void)json_array_append_new(list, json_pack("{s:s, s:i, s:o, s:s}", "name", canary->name,
                                                    "invariant", (int)canary->invariant,
                                                    "condemned", condemned, "by", canary->by));
    }
    return list;
}

bool canaries_read(const json_t *object, canaries_t *out)
{
    *out = (canaries_t){.n = 0};
    for (size_t i = 0; i < json_array_size(object); i++) {
        canary_t *canary = &out->list[out->n];
        const char *name;
        const char *by;
        int invariant;
        json_t *condemned;
        if (out->n == CANARIES_MAX
            || json_unpack(json_array_get(object, i), "{s:s, s:i, s:o, s:s}", "name", &name,
                           "invariant", &invariant, "condemned", &condemned, "by", &by)
                   != 0) {
            return false;
        }
        canary->invariant = (uint32_t)invariant;
        canary->fate = json_is_null(condemned)   ? CANARY_UNTRIED
                       : json_is_true(condemned) ? CANARY_CONDEMNED
                                                 : CANARY_DEAF;
        (void)snprintf(canary->name, sizeof(canary->name), "%s", name);
        (void)snprintf(canary->by, sizeof(canary->by), "%s", by);
        out->n++;
    }
    return true;
}
